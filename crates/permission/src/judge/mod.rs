//! What a command line may do: read it, weigh each simple command, and hear the rules.
//!
//! It is pure: where things are is told by [`Places`]. It keeps the invariant that nothing is
//! allowed in [`Mode::Ask`] that is not proven to look only, and that the strictest of all simple
//! commands decides. Start reading at [`judge`].

mod beneath;
mod class;
mod grammar;
mod names;
mod opaque;
mod operands;
mod paths;
mod programs;
mod ruling;
mod scripts;
mod tails;
mod template;
mod walk;
mod weigh;
mod wrappers;
mod wrapping;

use crate::rules::{Level, Rules, Subject};
use crate::{Places, Shelter, shell};
use class::Class;
use paths::Ground;
use std::sync::Arc;
use walk::Walk;
use windlass_protocol::Mode;

/// What a judgement depends on besides the command.
pub(crate) struct Setting<'a> {
    /// The person's own rules.
    pub(crate) own: &'a Rules,
    /// Rules that can only make it stricter.
    pub(crate) tighter: &'a [Arc<Rules>],
    pub(crate) places: &'a dyn Places,
    pub(crate) mode: Mode,
    pub(crate) shelter: Shelter,
}

/// What came of a command line.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The strictest of all.
    pub level: Level,
    /// Every simple command, what nests others before what it nests.
    pub segments: Vec<Judged>,
    /// It wants the network.
    pub connects: bool,
    /// Why there may be more to it than was read.
    pub doubts: Vec<String>,
    /// The kind of command it is, if an answer for always may mean all of that kind.
    pub template: Option<String>,
}

/// What came of a simple command.
#[derive(Clone, Debug)]
pub struct Judged {
    /// As it is written.
    pub text: String,
    /// Its words.
    pub words: Vec<String>,
    /// How strict the verdict is.
    pub level: Level,
    /// Why.
    pub reason: String,
    /// The rule that said so, if one did.
    pub rule: Option<String>,
}

/// Judges a command line that runs in a folder below the workspace.
pub(crate) fn judge(text: &str, folder: &str, setting: &Setting<'_>) -> Judgement {
    let ground = Ground::new(setting.places, setting.own, setting.tighter);
    let start = setting.places.root().join(folder);
    let mut walk = Walk::new(&ground, setting, &start);
    walk.walk(shell::read(text), 0);
    let Walk { judged: mut segments, mut doubts, connects, beyond, .. } = walk;
    if doubts == [shell::COMMENT] && names_nothing(&segments) {
        doubts.clear();
    }
    if beyond {
        // Anything weaker would be a way around a deny.
        let reason = "it is too long or too deeply nested to be judged. Split it, or write a \
             script with the write tool and run that";
        segments.push(about(text, Level::Deny, reason.to_owned()));
    }
    if segments.is_empty() {
        let reason = doubts.first().cloned().unwrap_or_else(|| "it is empty".to_owned());
        segments.push(about(text, Level::Ask, reason));
    }
    if !ground.inside(&start) {
        let reason = format!("{folder} lies outside of the workspace");
        segments.push(about(text, Level::Ask, reason));
    }
    let mut level = segments.iter().map(|judged| judged.level).max().unwrap_or(Level::Ask);
    let whole = setting.own.level("bash", &Subject::new(text));
    let everything =
        whole.as_ref().is_some_and(|rule| rule.everything && rule.level == Level::Allow);
    let proven = match (setting.mode, setting.shelter) {
        (Mode::Plan | Mode::Ask, _)
        | (Mode::Auto, Shelter::Off)
        | (Mode::Auto | Mode::Full, Shelter::Missing) => doubts.is_empty(),
        (Mode::Auto, Shelter::Standing) | (Mode::Full, Shelter::Standing | Shelter::Off) => true,
    };
    if !doubts.is_empty() && Class::Work.breaks_plan(setting.mode, setting.shelter) {
        level = Level::Deny;
    }
    if !proven && !everything {
        level = level.max(Level::Ask);
    }
    // A rule may speak about the text as a whole; `*` was heard for every command already.
    let tighter =
        setting.tighter.iter().filter_map(|rules| rules.level("bash", &Subject::new(text)));
    for rule in whole.into_iter().chain(tighter) {
        let known = |judged: &Judged| judged.rule.as_deref() == Some(rule.written);
        let speaks = rule.level > Level::Allow && !segments.iter().any(known);
        if speaks && rule.level >= level && (!rule.everything || rule.level == Level::Deny) {
            level = rule.level;
            let judged = about(text, level, rule.says("the"));
            segments.push(Judged { rule: Some(rule.written.to_owned()), ..judged });
        }
    }
    let mut judgement = Judgement { level, segments, connects, doubts, template: None };
    judgement.template = template::template(text, &judgement, setting.places);
    judgement
}

/// A verdict on the command line as a whole.
fn about(text: &str, level: Level, reason: String) -> Judged {
    let text = text.chars().take(80).collect();
    Judged { text, words: Vec::new(), level, reason, rule: None }
}

/// True if no file and nothing else is named: then a comment has nothing to say that counts. Of a
/// name it can say what is not so.
fn names_nothing(segments: &[Judged]) -> bool {
    segments.iter().all(|judged| {
        let git = judged.words.first().is_some_and(|program| program == "git");
        let mut rest = judged.words.iter().skip(1 + usize::from(git));
        rest.all(|word| word.starts_with('-')) && !judged.text.contains(['<', '>'])
    })
}

#[cfg(test)]
mod tests;
