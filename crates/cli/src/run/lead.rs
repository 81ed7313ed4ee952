//! What runs before a prompt: the commands of which the output goes into it.
//!
//! Each is a call of the person's own, in the session that is asked afterwards: the same rules, the same
//! sandbox, the same record. If one does not run, the model hears nothing.

use super::{Show, gist};
use crate::ask::Stops;
use crate::command::given;
use crate::screen;
use windlass_engine::{Handle, Watcher};
use windlass_project::Run;
use windlass_protocol::{Fault, Op, Outcome, TurnEnd};

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
            let op = Op::shell(command);
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
