//! `windlass permission …`: what is allowed here, why, and taking it back.

use crate::{Exit, args, screen, setup::Setup};
use anyhow::bail;
use serde_json::{Value, json};
use windlass_permission::{Decision, Level, quote};
use windlass_project::{Approvals, Flags};
use windlass_protocol::text::{ago, one_line};
use windlass_protocol::{Access, Mode};

/// Does a command.
pub(crate) fn permission(command: args::Permission) -> anyhow::Result<Exit> {
    match command {
        args::Permission::List { json } => list(json),
        args::Permission::Revoke { number, .. } => revoke(number),
        args::Permission::Explain { command, output, workspace, mode } => {
            let flags = Flags { mode, ..Flags::default() };
            let setup = Setup::read_at(workspace.as_deref(), flags)?;
            let mut explanation = explain(&command, &setup)?;
            let rules = rules(&setup).into_iter();
            explanation.rules.extend(
                rules.map(|rule| format!("{} = {} ({})", rule.subject, rule.level, rule.origin)),
            );
            match output {
                args::Form::Json => {
                    screen::json(&serde_json::to_string_pretty(&explanation.json())?);
                }
                args::Form::Text => explanation.tell(),
            }
            Ok(Exit::Done)
        }
    }
}

/// A rule as it is shown.
struct Shown {
    subject: String,
    level: String,
    origin: String,
}

/// The rules in force, in the order they are read.
fn rules(setup: &Setup) -> Vec<Shown> {
    let shown = setup.config.shown().iter();
    shown
        .filter_map(|(name, level, origin)| {
            let subject = match name.strip_prefix("permission")? {
                "" => "*",
                subject => subject.strip_prefix('.')?,
            };
            Some(Shown {
                subject: subject.to_owned(),
                level: level.clone(),
                origin: origin.to_string(),
            })
        })
        .collect()
}

fn list(as_json: bool) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let rules = rules(&setup);
    let approvals = Approvals::read(&setup.places)?.of(&setup.root);
    if as_json {
        let rules: Vec<Value> = rules
            .iter()
            .map(|rule| json!({"rule": rule.subject, "level": rule.level, "origin": rule.origin}))
            .collect();
        let numbered = approvals.iter().zip(1..);
        let approvals: Vec<Value> = numbered
            .map(|(approval, number)| {
                let (key, subject, at) = (&approval.key, &approval.subject, approval.at);
                json!({"number": number, "key": key, "subject": subject, "at": at})
            })
            .collect();
        let all = json!({"rules": rules, "approvals": approvals});
        screen::json(&serde_json::to_string_pretty(&all)?);
        return Ok(Exit::Done);
    }
    if rules.is_empty() {
        screen::note(&format!("no rules; {}", without_rules(setup.mode_here())));
    }
    for rule in &rules {
        screen::line(&one_line(&format!("{} = {}  ({})", rule.subject, rule.level, rule.origin)));
    }
    if approvals.is_empty() {
        screen::note("you allowed nothing here for good");
        return Ok(Exit::Done);
    }
    let now = crate::now();
    screen::note("you allowed here for good, until `windlass permission revoke NUMBER`:");
    for (approval, number) in approvals.iter().zip(1..) {
        let since = ago(approval.at, now);
        let told = format!("{number:>4}  {}  {}  ({since})", approval.key, approval.subject);
        screen::line(&one_line(&told));
    }
    Ok(Exit::Done)
}

/// What holds where no rule says anything.
fn without_rules(mode: Mode) -> &'static str {
    match mode {
        Mode::Plan => {
            "in mode plan reading is allowed, and commands that only look; nothing in the project is \
             changed"
        }
        Mode::Ask => {
            "in mode ask reading is allowed, and commands that only look; everything else is asked \
             about"
        }
        Mode::Auto => {
            "in mode auto reading and edits in the project are allowed, and commands that stay in it \
             and in the sandbox; everything else is asked about"
        }
        Mode::Full => {
            "in mode full everything is allowed but what is protected, and leaving the sandbox is \
             asked about"
        }
    }
}

/// Takes back the approval of this number, or all.
fn revoke(number: Option<usize>) -> anyhow::Result<Exit> {
    let (places, root) = Setup::places()?;
    let mut approvals = Approvals::read(&places)?;
    let Some(number) = number else {
        let count = approvals.clear(&root)?;
        screen::note(&format!("{count} taken back; they will be asked about again"));
        return Ok(Exit::Done);
    };
    match approvals.remove(&root, number)? {
        Some(approval) => {
            let told = one_line(&format!("{} {}", approval.key, approval.subject));
            screen::note(&format!("taken back, and asked about again: {told}"));
            Ok(Exit::Done)
        }
        None => {
            bail!("there is no number {number}; `windlass permission list` shows what there is")
        }
    }
}

/// What would become of a command.
pub(crate) struct Explanation {
    pub(crate) verdict: Level,
    pub(crate) mode: Mode,
    /// Why, unless it is allowed.
    pub(crate) reason: String,
    /// Its simple commands, in the order they stand there.
    pub(crate) segments: Vec<Segment>,
    /// Why there may be more to it than its simple commands.
    pub(crate) doubts: Vec<String>,
    /// The kind of command that a lasting yes could mean.
    pub(crate) kind: Option<String>,
    /// The rules that were heard.
    pub(crate) rules: Vec<String>,
}

/// One simple command of it.
pub(crate) struct Segment {
    pub(crate) text: String,
    pub(crate) words: Vec<String>,
    pub(crate) verdict: Level,
    pub(crate) reason: String,
    pub(crate) rule: Option<String>,
}

/// Judges a command without running it.
fn explain(command: &str, setup: &Setup) -> anyhow::Result<Explanation> {
    let policy = setup.policy(setup.ground()?, setup.mode_here())?;
    let access = Access::Run { command: command.to_owned(), folder: ".".to_owned() };
    let Some(judgement) = policy.judge(command, ".") else {
        bail!("nobody can say here what a command would touch");
    };
    let (verdict, reason) = match policy.decide(vec![access], &[]) {
        Decision::Allowed(_) => (Level::Allow, String::new()),
        Decision::Ask(question) => (Level::Ask, question.reason().to_owned()),
        Decision::Denied { reason } => (Level::Deny, reason),
    };
    let segments = judgement.segments.into_iter().map(|judged| Segment {
        text: judged.text,
        words: judged.words,
        verdict: judged.level,
        reason: judged.reason,
        rule: judged.rule,
    });
    let (segments, mode, kind) = (segments.collect(), setup.mode_here(), judgement.template);
    let doubts = judgement.doubts;
    Ok(Explanation { verdict, mode, reason, segments, doubts, kind, rules: Vec::new() })
}

impl Explanation {
    fn json(&self) -> Value {
        let segments: Vec<Value> = self.segments.iter().map(Segment::json).collect();
        let verdict = self.verdict.to_string();
        json!({
            "verdict": verdict,
            "mode": self.mode,
            "reason": self.reason,
            "segments": segments,
            "doubts": self.doubts,
            "kind": self.kind,
            "rules": self.rules,
        })
    }

    fn tell(&self) {
        let why = if self.reason.is_empty() { "" } else { ": " };
        let told = format!("{} in mode {}{why}{}", self.verdict, self.mode, self.reason);
        screen::line(&one_line(&told));
        for segment in &self.segments {
            screen::line(&one_line(&format!("  {}: {}", segment.verdict, segment.text)));
            if !segment.words.is_empty() {
                screen::line(&one_line(&format!("    words: {}", quote(&segment.words))));
            }
            let rule = segment.rule.as_ref().map(|rule| format!(" [{rule}]")).unwrap_or_default();
            screen::line(&one_line(&format!("    {}{rule}", segment.reason)));
        }
        for doubt in &self.doubts {
            screen::line(&format!("  not proven plain: {doubt}"));
        }
        if let Some(kind) = &self.kind {
            screen::line(&one_line(&format!("  a lasting yes could mean: {kind}")));
        }
        for rule in &self.rules {
            screen::line(&one_line(&format!("  rule: {rule}")));
        }
    }
}

impl Segment {
    fn json(&self) -> Value {
        json!({
            "text": self.text,
            "words": self.words,
            "verdict": self.verdict.to_string(),
            "reason": self.reason,
            "rule": self.rule,
        })
    }
}
