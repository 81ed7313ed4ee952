//! A call made of calls: they are understood one by one, permitted as a whole, and carried out in
//! order. What one of them is denied, or gets wrong, is its own result; the others go on.

use crate::bound::Limits;
use crate::finish::{self, Ran};
use crate::hook::{Firing, Hook, Moment};
use crate::registry::Snapshot;
use crate::road::{Call, Runtime};
use crate::tool::{Cx, Failure, Part, Prepared};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_permission::Decision;
use windlass_protocol::todo::TODOS;
use windlass_protocol::{Access, CallId, Display, Mode, Output, Repair};

/// How much of a result each of them is given at least, in bytes and lines.
const LEAST: Limits = Limits { lines: 40, bytes: 2_000 };

/// Calls that are carried out as one.
pub(crate) struct Batch {
    calls: Vec<Inner>,
    hooks: Vec<Arc<dyn Hook>>,
    folder: String,
    mode: Mode,
    /// For each of them.
    limits: Limits,
}

struct Inner {
    /// The tool, as it was spelled, or as it is called.
    tool: String,
    arguments: Value,
    /// The call, or why it cannot be made.
    call: Result<Box<dyn Prepared>, String>,
}

impl Runtime {
    /// Understands the calls that a call is made of, and says what had to be changed in them.
    pub(crate) async fn batch(
        &self,
        snapshot: &Snapshot,
        call: &Call,
        (parts, firings): (Vec<Part>, &mut Vec<Firing>),
    ) -> (Batch, Vec<String>, Option<String>) {
        let share = parts.len().max(1);
        let limits = Limits {
            lines: (self.limits.lines / share).max(LEAST.lines),
            bytes: (self.limits.bytes / share).max(LEAST.bytes),
        };
        let (mut calls, mut changes) = (Vec::with_capacity(parts.len()), Vec::new());
        let mut asks = Vec::new();
        for Part { tool, arguments } in parts {
            let part = Call { tool: tool.clone(), arguments, ..call.clone() };
            calls.push(match self.understood(snapshot, &part, firings).await {
                Err(outcome) => {
                    Inner { tool, arguments: Value::Null, call: Err(outcome.text().to_owned()) }
                }
                Ok(understood) => {
                    let tool = understood.tool.name().to_owned();
                    asks.extend(understood.ask);
                    if let Some(Repair { arguments, changes: made }) = understood.repaired {
                        let (number, made) = (calls.len() + 1, made.join("; "));
                        let change = format!("call {number}: {made}; it means {tool} {arguments}");
                        changes.push(self.short(&change));
                    }
                    let call = match understood.tool.batched() {
                        true => self.alone(understood.prepared),
                        false => {
                            Err(format!("{tool} cannot be part of a batch; call it by itself"))
                        }
                    };
                    Inner { tool, arguments: understood.arguments, call }
                }
            });
        }
        let (hooks, folder, mode) = (self.hooks.clone(), self.folder(), self.policy.mode());
        let ask = (!asks.is_empty()).then(|| asks.join("; "));
        (Batch { calls, hooks, folder, mode, limits }, changes, ask)
    }

    /// A call that may be made, as far as it alone is concerned, or why not.
    fn alone(&self, prepared: Box<dyn Prepared>) -> Result<Box<dyn Prepared>, String> {
        let declared = prepared.access();
        let resolved: Result<Vec<Access>, _> =
            declared.iter().map(|access| self.workspace.resolve(access)).collect();
        let resolved = resolved.map_err(|error| error.to_string())?;
        let spelled: Vec<Access> =
            declared.iter().map(|access| self.workspace.spelled(access)).collect();
        match self.policy.decide(resolved, &spelled) {
            Decision::Allowed(_) | Decision::Ask(_) => Ok(prepared),
            Decision::Denied { reason } => Err(format!("This call is not permitted: {reason}.")),
        }
    }
}

#[async_trait]
impl Prepared for Batch {
    fn access(&self) -> Vec<Access> {
        let mut all = Vec::new();
        for access in self.calls.iter().filter_map(|inner| inner.call.as_ref().ok()) {
            for access in access.access() {
                if !all.contains(&access) {
                    all.push(access);
                }
            }
        }
        all
    }

    async fn preview(&self, cx: &Cx<'_>) -> Result<Option<String>, Failure> {
        let mut shown = Vec::new();
        for Inner { tool, call, .. } in &self.calls {
            let Ok(call) = call else { continue };
            match call.preview(cx).await {
                Ok(None) => {}
                Ok(Some(preview)) => shown.push(preview.trim_end().to_owned()),
                // It may follow from one before it, which has not been done yet.
                Err(failure) => shown.push(format!("{tool} cannot be shown yet: {failure}")),
            }
        }
        Ok((!shown.is_empty()).then(|| shown.join("\n")))
    }

    async fn run(self: Box<Self>, cx: &Cx<'_>) -> Result<Output, Failure> {
        let Batch { calls, hooks, folder, mode, limits } = *self;
        let call: Option<CallId> = Some(cx.call);
        let moment = Moment { session: cx.session, call, folder: &folder, mode };
        let count = calls.len();
        let (mut whole, mut texts, mut diffs) = (Output::default(), Vec::new(), Vec::new());
        let (mut done, mut told) = (0, Vec::new());
        for (at, Inner { tool, arguments, call }) in calls.into_iter().enumerate() {
            let ran = match call {
                Err(why) => Err(Failure::new(why)),
                Ok(_) if cx.cancel.is_cancelled() => {
                    Err(Failure::new("Interrupted before it ran; nothing was done."))
                }
                Ok(call) => call.run(cx).await,
            };
            let ran = match ran {
                Ok(output) => {
                    let ran = Ran { tool: tool.clone(), arguments };
                    finish::hooked(&hooks, (&moment, cx.caller), ran, output).await
                }
                Err(failure) => Err(failure),
            };
            let (status, text) = match ran {
                Ok(output) => {
                    let mut output = finish::bounded(output, limits, cx.caller).await;
                    done += 1;
                    whole.attachments.append(&mut output.attachments);
                    if let Some(todos) = output.metadata.remove(TODOS) {
                        whole.metadata.insert(TODOS.to_owned(), todos);
                    }
                    match output.display {
                        Display::Diff { unified } => diffs.push(unified),
                        Display::Text | Display::Terminal { .. } | Display::Checklist { .. } => {}
                    }
                    ("done", output.text)
                }
                Err(failure) => ("failed", finish::short(&failure.text, limits)),
            };
            told.push(json!({"tool": tool, "status": status}));
            texts.push(format!("[{} of {count}: {tool}, {status}]\n{}", at + 1, text.trim_end()));
        }
        whole.title = format!("{done} of {count} calls");
        whole.text = texts.join("\n\n");
        whole.metadata.insert("calls".to_owned(), Value::Array(told));
        if !diffs.is_empty() {
            whole.display = Display::Diff { unified: diffs.concat() };
        }
        Ok(whole)
    }
}
