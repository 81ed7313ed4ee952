//! What rules say about a command.
//!
//! A deny and an ask speak about a command in every form: with its wrappers and without, by its
//! path and by its name, and as it is written. An allow speaks only about what really runs, and
//! only if that is plain; `*` means everything.

use super::{Setting, programs};
use crate::Level;
use crate::rules::Subject;

/// Whether a command is plain words, without assignments and redirections.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    Yes,
    No,
}

/// A command that rules are asked about.
pub(super) struct Asked<'a> {
    pub(super) text: &'a str,
    pub(super) forms: &'a [Vec<String>],
    /// What is run by no other.
    pub(super) effective: &'a [String],
    pub(super) plain: Plain,
}

/// What came of it.
pub(super) struct Ruled {
    pub(super) level: Level,
    pub(super) written: String,
    /// It means files of secrets too.
    pub(super) opens_secrets: bool,
    /// It is the person's own.
    own: bool,
}

impl Ruled {
    pub(super) fn reason(&self) -> String {
        let whose = if self.own { "your" } else { "the" };
        format!("{whose} rule {} says {}", self.written, self.level)
    }
}

/// The strictest that a rule says, if any speaks.
pub(super) fn rule(setting: &Setting<'_>, asked: &Asked<'_>) -> Option<Ruled> {
    let mut ruled = allowed(setting, asked);
    let mut tighten = |level: Level, written: &str, own: bool| {
        if level > Level::Allow && ruled.as_ref().is_none_or(|ruled| level > ruled.level) {
            ruled = Some(Ruled { level, written: written.to_owned(), opens_secrets: false, own });
        }
    };
    for subject in spellings(asked) {
        let effective = asked.effective.contains(&subject);
        let subject = Subject::new(&subject);
        if let Some(rule) = setting.own.level("bash", &subject) {
            // What a person wants to be asked about in general is not meant for other spellings.
            if effective || !rule.everything || rule.level == Level::Deny {
                tighten(rule.level, rule.written, true);
            }
        }
        for rules in setting.tighter {
            if let Some(rule) = rules.level("bash", &subject) {
                tighten(rule.level, rule.written, false);
            }
        }
    }
    ruled
}

/// True if a rule, whosever, denies some commands.
pub(super) fn denies_some(setting: &Setting<'_>) -> bool {
    let all = std::iter::once(setting.own).chain(setting.tighter.iter().map(AsRef::as_ref));
    all.into_iter().any(|rules| rules.denies_some("bash"))
}

/// The rule of the person's own that allows everything that really runs, if so.
fn allowed(setting: &Setting<'_>, asked: &Asked<'_>) -> Option<Ruled> {
    let written = [asked.text.to_owned()];
    let (subjects, known) = match asked.effective {
        [] => (written.as_slice(), Plain::No),
        effective => (effective, asked.plain),
    };
    let mut found = None;
    for subject in subjects {
        let rule = setting.own.level("bash", &Subject::new(subject))?;
        if rule.level != Level::Allow || (known == Plain::No && !rule.everything) {
            return None;
        }
        let opens_secrets = rule.opens_secrets || rule.everything;
        let written = rule.written.to_owned();
        found = Some(Ruled { level: Level::Allow, written, opens_secrets, own: true });
    }
    found
}

/// Every way to write a command: as it stands, with each wrapper taken off, by name only, and
/// without the options before a subcommand.
fn spellings(asked: &Asked<'_>) -> Vec<String> {
    let mut all = vec![asked.text.to_owned()];
    for form in asked.forms {
        let mut add = |words: String| {
            if !all.contains(&words) {
                all.push(words);
            }
        };
        add(form.join(" "));
        if let Some((first, rest)) = form.split_first() {
            let name = first.rsplit('/').next().unwrap_or(first);
            add(std::iter::once(name)
                .chain(rest.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(" "));
            for start in programs::subcommands(name, rest) {
                let rest = rest.get(start..).unwrap_or_default();
                add(format!("{name} {}", rest.join(" ")));
            }
        }
    }
    all
}
