//! How a turn is told of: in a few words while it goes on, as a whole when it is over.

use super::Show;
use crate::args::Output;
use crate::{Exit, screen};
use serde_json::json;
use windlass_protocol::text::one_line;
use windlass_protocol::{Outcome, Part, Point, Role, SessionId, Transcript, TurnEnd, Verdict};

impl Show {
    /// Says how it ended.
    pub(super) fn finish(mut self, session: SessionId, end: TurnEnd) -> Exit {
        let failed = self.direct && !matches!(self.last_outcome, Some(Outcome::Completed { .. }))
            || matches!(self.answer, Some(Err(_)));
        let exit = match (&end, &failed) {
            (TurnEnd::Done, true) => Exit::Failed,
            _ => Exit::of(&end),
        };
        match self.manner.output {
            Output::Text => {
                self.stage.end_line();
                if let (true, Some(outcome)) = (self.direct, &self.last_outcome) {
                    print_outcome(outcome);
                }
                if let Some(Ok(answer)) = &self.answer {
                    screen::json(&answer.to_string());
                }
                if let TurnEnd::Limit { what } = &end {
                    screen::note(&format!(
                        "stopped: {what} was reached; `windlass run --continue` goes on"
                    ));
                }
                if let TurnEnd::Looped { what } = &end {
                    screen::note(&format!(
                        "stopped: the model went in circles ({what}); word the task differently"
                    ));
                }
                if end == TurnEnd::Interrupted {
                    screen::note("interrupted; `windlass run --continue` goes on");
                }
            }
            Output::Json => {
                let result = self.object(session, &end, exit);
                screen::json(&result.to_string());
            }
            Output::Events => {}
        }
        if let TurnEnd::Failed { fault } = &end {
            screen::error(&format!("{fault}. {}", super::next::hint(fault)));
        }
        if let Some(Err(why)) = &self.answer {
            screen::error(&format!("the answer does not fit the schema: {why}"));
        }
        exit
    }

    /// All of it in one object, for a program.
    fn object(&self, session: SessionId, end: &TurnEnd, exit: Exit) -> serde_json::Value {
        let answer = self.answer.as_ref().and_then(|answer| answer.as_ref().ok());
        let text = || answer_of(&self.transcript).into();
        json!({
            "session": session,
            "end": end,
            "exit": exit as u8,
            "result": answer.cloned().unwrap_or_else(text),
            "usage": self.usage,
            "cost": self.cost,
            "files": self.files.changed(),
            "outcome": self.last_outcome.as_ref().filter(|_| self.direct),
        })
    }
}

/// The text of the model's last message.
pub(super) fn answer_of(transcript: &Transcript) -> String {
    let last = transcript.messages.iter().rev().find(|message| message.role == Role::Assistant);
    let text = |part: &Part| match part {
        Part::Text { text, .. } => Some(text.clone()),
        Part::Reasoning { .. } | Part::File(_) | Part::Call(_) => None,
    };
    last.map(|message| message.parts.iter().filter_map(text).collect()).unwrap_or_default()
}

/// The arguments of a call on one short line: the value of a single field, or all of it.
pub(crate) fn brief(arguments: &str) -> String {
    const LONGEST: usize = 60;
    let first = serde_json::from_str::<serde_json::Value>(arguments).ok().and_then(|value| {
        let first = value.as_object()?.values().next()?.as_str()?.to_owned();
        Some(first)
    });
    let text = first.unwrap_or_else(|| arguments.to_owned()).replace('\n', " ");
    windlass_protocol::text::beginning(&text, LONGEST)
}

/// What became of a call, in a few words.
pub(crate) fn gist(outcome: &Outcome) -> String {
    let first = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match outcome {
        Outcome::Completed { output } => match output.text.lines().count() {
            0 | 1 => first(&output.text),
            lines => format!("{lines} lines"),
        },
        Outcome::Failed { text } => format!("failed, {}", first(text)),
        Outcome::Denied { text } => format!("denied, {}", first(text)),
        Outcome::Interrupted { .. } => "interrupted".into(),
        Outcome::Unknown => "may have run; its result was lost".into(),
    }
}

/// Prints what a person's own call gave.
fn print_outcome(outcome: &Outcome) {
    match outcome {
        Outcome::Completed { output } => screen::raw(&with_line_end(&output.text)),
        other => screen::error(other.text()),
    }
}

fn with_line_end(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// What a hook would not let pass; nothing of what it did. `label` is the call it was about.
pub(super) fn hooked(
    (hook, point): (&str, Point),
    label: Option<&str>,
    verdict: &Verdict,
) -> Option<String> {
    let about = label.and_then(|label| label.split(' ').next()).unwrap_or(point.name());
    let line = match verdict {
        Verdict::Passed | Verdict::Rewrote | Verdict::Asks { .. } => return None,
        Verdict::Refused { reason } => format!("hook {hook} refused {about}: {reason}"),
        Verdict::Failed { reason } if point.decides() => {
            format!("hook {hook} failed, which refuses {about}: {reason}")
        }
        Verdict::Failed { reason } => format!("hook {hook} failed at {point}: {reason}"),
    };
    Some(one_line(&line))
}
