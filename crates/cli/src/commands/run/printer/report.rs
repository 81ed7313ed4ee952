//! Formats the results of a turn: short lines while it runs, a report at its end.

use super::TurnPrinter;
use crate::CliExit;
use crate::args::RunOutputFormat;
use crate::terminal::output;
use serde_json::json;
use windlass_protocol::display_text::{first_line_with_item, to_one_line};
use windlass_protocol::{
    CallOutcome, HookPoint, HookVerdict, NO_USER_DENIAL_TEXT, SessionId, TurnEndReason,
    USER_DENIAL_TEXT,
};

impl TurnPrinter {
    /// Prints how the turn ended and returns the exit code.
    pub(in super::super) fn print_end(mut self, session: SessionId, end: TurnEndReason) -> CliExit {
        let failed = self.is_direct_call
            && !matches!(self.last_outcome, Some(CallOutcome::Completed { .. }))
            || matches!(self.answer, Some(Err(_)));
        let exit = match (&end, &failed) {
            (TurnEndReason::Completed, true) => CliExit::Failed,
            // The model gave up, or only said that it could not finish.
            (TurnEndReason::Completed, false) if self.lacks_approval => CliExit::Denied,
            _ => CliExit::from_turn_end(&end),
        };
        match self.options.output {
            RunOutputFormat::Text => {
                self.progress.end_line();
                if let (true, Some(outcome)) = (self.is_direct_call, &self.last_outcome) {
                    print_outcome(outcome, self.lacks_approval);
                }
                if let Some(Ok(answer)) = &self.answer {
                    output::print_json(&answer.to_string());
                }
                if let TurnEndReason::LimitReached { limit } = &end {
                    let resume = self.resume_command();
                    output::print_note(&format!(
                        "stopped: {limit} was reached; resume with {resume}"
                    ));
                }
                if let TurnEndReason::LoopDetected { repeated_action } = &end {
                    output::print_note(&format!(
                        "stopped: the model was stuck in a loop ({repeated_action}); rephrase the \
                         task"
                    ));
                }
                if end == TurnEndReason::Completed
                    && !self.is_direct_call
                    && self.transcript.last_answer().trim().is_empty()
                {
                    output::print_note(
                        "the model ended its turn without an answer; ask again, or choose another \
                         model with `--model`",
                    );
                }
                if self.is_left_running {
                    output::print_note(&match self.server.is_lost() {
                        true => "the turn resumes when the server starts again: `windlass serve`"
                            .to_owned(),
                        false => format!(
                            "the turn goes on in the server; to look at it: `windlass attach \
                             --session {session}`"
                        ),
                    });
                } else if end == TurnEndReason::Interrupted {
                    let command = self.resume_command();
                    output::print_note(&format!("interrupted; resume with {command}"));
                }
            }
            RunOutputFormat::Json => {
                let result = self.to_json(session, &end, exit);
                output::print_json(&result.to_string());
            }
            RunOutputFormat::Events => {}
        }
        if let TurnEndReason::Failed { fault } = &end {
            let message = fault.to_string();
            let message = message.strip_suffix('.').unwrap_or(&message);
            let hint = super::failure_hints::next_step_hint(fault);
            output::print_error(format!("{message}. {hint}").trim_end());
        }
        if let Some(Err(violations)) = &self.answer {
            output::print_error(&format!("the answer does not match the schema: {violations}"));
        }
        exit
    }

    /// Returns the command that goes on with the session.
    fn resume_command(&self) -> &'static str {
        match self.options.is_attached {
            true => "`windlass run --attach --continue`",
            false => "`windlass run --continue`",
        }
    }

    /// Returns the whole result as one object, for `--output json`.
    fn to_json(&self, session: SessionId, end: &TurnEndReason, exit: CliExit) -> serde_json::Value {
        let answer = self.answer.as_ref().and_then(|answer| answer.as_ref().ok());
        let text = || self.transcript.last_answer().into();
        json!({
            "session": session,
            "end": end,
            "exit": exit as u8,
            "result": answer.cloned().unwrap_or_else(text),
            "usage": self.usage,
            "cost": self.cost,
            "files": self.files.changed_files(),
            "outcome": self.last_outcome.as_ref().filter(|_| self.is_direct_call),
        })
    }
}

/// Summarizes a call's arguments on one short line: the first field if it is a string, otherwise
/// all fields that are strings or numbers.
pub(crate) fn summarize_arguments(arguments: &str) -> String {
    const MAX_SUMMARY_CHARS: usize = 60;
    let text = match serde_json::from_str::<serde_json::Value>(arguments) {
        Ok(serde_json::Value::Object(fields)) => match fields.values().next() {
            Some(serde_json::Value::String(first)) => first.clone(),
            Some(_) | None => {
                let scalar = |value: &serde_json::Value| match value {
                    serde_json::Value::String(text) => Some(text.clone()),
                    serde_json::Value::Number(number) => Some(number.to_string()),
                    _ => None,
                };
                fields.values().filter_map(scalar).collect::<Vec<_>>().join(" ")
            }
        },
        Ok(_) | Err(_) => arguments.to_owned(),
    };
    let text = text.replace('\n', " ");
    windlass_protocol::display_text::truncate_chars(&text, MAX_SUMMARY_CHARS)
}

/// Summarizes the [`Outcome`] of a call in a few words.
pub(crate) fn summarize_outcome(outcome: &CallOutcome) -> String {
    let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    match outcome {
        CallOutcome::Completed { output } => {
            let exit_code = output.exit_code().filter(|code| *code != 0);
            match (exit_code, output.text.lines().count()) {
                (None, 0 | 1) => first_line(&output.text),
                (None, lines) => format!("{lines} lines"),
                (Some(code), 0 | 1) => format!("exit {code}"),
                (Some(code), lines) => format!("exit {code}, {lines} lines"),
            }
        }
        CallOutcome::Failed { text } => format!("failed, {}", first_line_with_item(text)),
        CallOutcome::Denied { text } => match first_line(text).strip_prefix(USER_DENIAL_TEXT) {
            Some(reason) => format!("denied{}", reason.trim_end_matches('.')),
            // The reason was printed when the approval was missing.
            None if text.starts_with(NO_USER_DENIAL_TEXT) => "denied".to_owned(),
            None => format!("denied, {}", first_line_with_item(text)),
        },
        CallOutcome::Interrupted { .. } => "interrupted".into(),
        CallOutcome::ResultUnknown => "may have run; result unknown".into(),
    }
}

/// Returns true if a call failed, or its command ended with an error.
pub(super) fn is_failure(outcome: &CallOutcome) -> bool {
    match outcome {
        CallOutcome::Completed { output } => output.exit_code().is_some_and(|code| code != 0),
        CallOutcome::Failed { .. } => true,
        CallOutcome::Denied { .. }
        | CallOutcome::Interrupted { .. }
        | CallOutcome::ResultUnknown => false,
    }
}

/// Formats the duration of a call, which is often less than a second.
pub(super) fn format_call_duration(millis: u64) -> String {
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..10_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => format!("{} s", millis / 1_000),
    }
}

/// Prints the outcome of a direct call.
fn print_outcome(outcome: &CallOutcome, lacks_approval: bool) {
    match outcome {
        CallOutcome::Completed { output } => output::print_raw(&ensure_newline(&output.text)),
        CallOutcome::Denied { text } if lacks_approval || text.starts_with(USER_DENIAL_TEXT) => {
            output::print_error("denied: the call required approval and did not get it");
        }
        other => output::print_error(other.text()),
    }
}

fn ensure_newline(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Describes a hook verdict that refused or failed; `None` for all others. `label` is the call that
/// the hook ran for.
pub(super) fn describe_hook_verdict(
    (hook, point): (&str, HookPoint),
    label: Option<&str>,
    verdict: &HookVerdict,
) -> Option<String> {
    let subject = label.and_then(|label| label.split(' ').next()).unwrap_or(point.name());
    let line = match verdict {
        HookVerdict::Passed | HookVerdict::Rewrote | HookVerdict::Asks { .. } => return None,
        HookVerdict::Refused { reason } => format!("hook {hook} refused {subject}: {reason}"),
        HookVerdict::Failed { reason } if point.can_change_outcome() => {
            format!("hook {hook} failed, so {subject} was denied: {reason}")
        }
        HookVerdict::Failed { reason } => format!("hook {hook} failed at {point}: {reason}"),
    };
    Some(to_one_line(&line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_of_a_failure_names_its_cause() {
        let text = "todowrite was called with invalid arguments:\n- `todos`: required, but missing\n\
                    Call it again like this: {}";
        assert_eq!(
            summarize_outcome(&CallOutcome::Failed { text: text.to_owned() }),
            "failed, todowrite was called with invalid arguments: `todos`: required, but missing"
        );
        let text = "no such file\nDid you mean b?".to_owned();
        assert_eq!(summarize_outcome(&CallOutcome::Failed { text }), "failed, no such file");
    }
}
