//! What runs before a prompt: the commands of which the output goes into it.
//!
//! Each is a call of the person's own, in the session that is asked afterwards: the same rules, the same
//! sandbox, the same record. If one does not run, the model hears nothing.

use super::{Show, gist};
use crate::ask::Stops;
use crate::screen;
use serde_json::json;
use windlass_engine::{Handle, Watcher};
use windlass_project::Run;
use windlass_protocol::{Fault, Op, Outcome, Output, TurnEnd};

/// How many bytes of what a command gives go into a prompt.
const LONGEST: usize = 30 << 10;

/// What a command gives that did what it was to do.
const WELL: &str = "\n(exit code 0)";

/// As long as the first line of a prompt is where it is the title.
const LONGEST_TITLE: usize = 80;

/// Why the model was not asked.
enum Stopped {
    /// A command did not run.
    At(TurnEnd),
    /// The session stopped by itself.
    Lost,
}

impl Show {
    /// Says what is wanted, after what has to run first, and watches until it is done. `None` if the
    /// session stopped by itself.
    pub(super) async fn see_through(
        &mut self,
        handle: &Handle,
        mut watcher: Watcher,
        (runs, mut op): (&[Run], Option<Op>),
    ) -> Result<Option<TurnEnd>, Fault> {
        let stops = Stops::new().map_err(|error| Fault::Internal { message: error.to_string() });
        let mut stops = stops?;
        let gave = match self.lead(runs, (handle, &mut watcher, &mut stops)).await? {
            Ok(gave) => gave,
            Err(Stopped::At(end)) => return Ok(Some(end)),
            Err(Stopped::Lost) => return Ok(None),
        };
        if let Some(Op::Prompt { text, .. }) = &mut op {
            *text = Run::fill(text, runs.iter().zip(gave.iter().map(String::as_str)));
        }
        self.direct = matches!(op, Some(Op::Call { .. } | Op::Undo { .. }));
        self.wanted.clone_from(&op);
        if let Some(op) = op {
            handle.send(op).await;
        }
        self.watch(handle, &mut watcher, &mut stops).await
    }

    /// Runs commands, one after the other, and says what each gave.
    async fn lead(
        &mut self,
        runs: &[Run],
        (handle, watcher, stops): (&Handle, &mut Watcher, &mut Stops),
    ) -> Result<Result<Vec<String>, Stopped>, Fault> {
        let mut gave = Vec::new();
        self.direct = !runs.is_empty();
        for Run { command, .. } in runs {
            let arguments = json!({ "command": command }).to_string();
            let op = Op::Call { tool: "bash".to_owned(), arguments };
            (self.wanted, self.last_outcome) = (Some(op.clone()), None);
            self.doing.clone_from(command);
            handle.send(op).await;
            let Some(end) = self.watch(handle, watcher, stops).await? else {
                return Ok(Err(Stopped::Lost));
            };
            match (&self.last_outcome, end) {
                (Some(outcome @ Outcome::Completed { output }), TurnEnd::Done) => {
                    gave.push(given(output));
                    self.tell(&format!("• {command}: {}", gist(outcome)));
                }
                (_, end) => {
                    screen::note(&format!(
                        "the model was not asked, because this did not run: {command}"
                    ));
                    // What fails to start is as good as denied.
                    let end = if end == TurnEnd::Done { TurnEnd::Denied } else { end };
                    return Ok(Err(Stopped::At(end)));
                }
            }
        }
        (self.direct, self.last_outcome) = (false, None);
        self.doing = "waiting for the model".into();
        Ok(Ok(gave))
    }
}

/// What a prompt's session is called.
pub(super) fn title(op: &Option<Op>) -> Option<String> {
    let Some(Op::Prompt { text, .. }) = op else { return None };
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(windlass_protocol::text::beginning(line, LONGEST_TITLE))
}

/// What goes into the prompt.
fn given(output: &Output) -> String {
    let well = output.metadata.get("exit").and_then(serde_json::Value::as_i64) == Some(0);
    let text = output.text.trim_end();
    let text = text.strip_suffix(WELL).filter(|_| well).unwrap_or(text).trim_end();
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let fits = text.floor_char_boundary(LONGEST);
    let (shown, rest) = text.split_at_checked(fits).unwrap_or_default();
    format!("{shown}\n({} bytes more were left out)", rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str, exit: i64) -> Output {
        let metadata = serde_json::Map::from_iter([("exit".to_owned(), exit.into())]);
        Output { text: text.to_owned(), metadata, ..Output::default() }
    }

    #[test]
    fn how_a_command_ended_is_told_unless_it_ended_well() {
        assert_eq!(given(&output("main\n(exit code 0)", 0)), "main");
        assert_eq!(given(&output("oh\n(exit code 1)", 1)), "oh\n(exit code 1)");
        let said = "it says\n(exit code 0)\n(exit code 3)";
        assert_eq!(given(&output(said, 3)), said);
        assert_eq!(given(&output("a\n(exit code 0)", 3)), "a\n(exit code 0)", "its own words");
    }

    #[test]
    fn much_of_it_is_cut_between_characters() {
        let long = "é".repeat(LONGEST);
        let text = given(&output(&format!("x{long}"), 0));
        let (shown, told) = text.split_once('\n').unwrap();
        assert!(shown.len() <= LONGEST && shown.len() > LONGEST - 3, "{}", shown.len());
        assert!(told.contains(&format!("{} bytes", 2 * LONGEST + 1 - shown.len())), "{told}");
    }
}
