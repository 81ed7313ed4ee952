//! A batch: a call that consists of several calls. They are resolved one by one, permitted as a
//! whole, and run in order. A denial or failure of one call is its own result; the others continue.

use crate::call_failure::CallFailure;
use crate::hook::{Hook, HookContext, HookRun};
use crate::pipeline::finish_output::{self, FinishedCall};
use crate::pipeline::{ToolCall, ToolRuntime};
use crate::registry::ToolSnapshot;
use crate::tool::{CallContext, PreparedCall, SubCall};
use crate::tool_caller::ToolCaller;
use crate::truncate_output::OutputLimits;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_permission::Decision;
use windlass_protocol::{
    CallId, CallRepair, OutputDisplay, PermissionMode, ToolAccess, ToolOutput,
};

/// The minimum `OutputLimits` for each call of a batch.
const MIN_CALL_OUTPUT_LIMITS: OutputLimits = OutputLimits { lines: 40, bytes: 2_000 };

/// The calls of a batch, run as one `PreparedCall`.
pub(crate) struct CallBatch {
    calls: Vec<BatchCall>,
    hooks: Vec<Arc<dyn Hook>>,
    folder: String,
    mode: PermissionMode,
    /// The output limits for each call.
    limits: OutputLimits,
}

struct BatchCall {
    /// The tool name (as spelled if the call did not resolve) and the arguments.
    finished: FinishedCall,
    /// The call, or the reason why it cannot run.
    call: Result<Box<dyn PreparedCall>, String>,
}

impl ToolRuntime {
    /// Resolves the calls of a batch. Also returns the repairs that were made, and the reason of
    /// hooks that require approval.
    pub(crate) async fn prepare_batch(
        &self,
        snapshot: &ToolSnapshot,
        (call, caller): (&ToolCall, &dyn ToolCaller),
        (sub_calls, hook_runs): (Vec<SubCall>, &mut Vec<HookRun>),
    ) -> (CallBatch, Vec<String>, Option<String>) {
        let count = sub_calls.len().max(1);
        let limits = OutputLimits {
            lines: (self.limits.lines / count).max(MIN_CALL_OUTPUT_LIMITS.lines),
            bytes: (self.limits.bytes / count).max(MIN_CALL_OUTPUT_LIMITS.bytes),
        };
        let (mut calls, mut changes) = (Vec::with_capacity(sub_calls.len()), Vec::new());
        let mut ask_reasons = Vec::new();
        for SubCall { tool, arguments } in sub_calls {
            let sub_call = ToolCall { tool: tool.clone(), arguments, ..call.clone() };
            calls.push(match self.resolve_call(snapshot, (&sub_call, caller), hook_runs).await {
                Err(outcome) => {
                    let finished = FinishedCall {
                        tool,
                        arguments: Value::Null,
                        changed_by: Vec::new(),
                        ignored_fields: Vec::new(),
                    };
                    BatchCall { finished, call: Err(outcome.text().to_owned()) }
                }
                Ok(resolved) => {
                    let tool = resolved.tool.name().to_owned();
                    ask_reasons.extend(resolved.ask_reason);
                    if let Some(CallRepair { arguments, changes: repairs }) = resolved.repair {
                        let (number, repairs) = (calls.len() + 1, repairs.join("; "));
                        let change = format!(
                            "call {number}: {repairs}; interpreted as {tool} \
                                              {arguments}"
                        );
                        changes.push(self.truncate(&change));
                    }
                    let call = match resolved.tool.allows_batching() {
                        true => self.check_permitted(resolved.prepared),
                        false => Err(format!("{tool} cannot be part of a batch; call it directly")),
                    };
                    let finished = FinishedCall {
                        tool,
                        arguments: resolved.arguments,
                        changed_by: resolved.changed_by,
                        ignored_fields: resolved.ignored_fields,
                    };
                    BatchCall { finished, call }
                }
            });
        }
        let (hooks, folder, mode) = (self.hooks.clone(), self.folder(), self.policy.mode());
        let ask_reason = (!ask_reasons.is_empty()).then(|| ask_reasons.join("; "));
        (CallBatch { calls, hooks, folder, mode, limits }, changes, ask_reason)
    }

    /// Checks that the `Policy` does not deny a call by itself.
    fn check_permitted(
        &self,
        prepared: Box<dyn PreparedCall>,
    ) -> Result<Box<dyn PreparedCall>, String> {
        let declared = prepared.access();
        let resolved: Result<Vec<ToolAccess>, _> =
            declared.iter().map(|access| self.workspace.resolve_access(access)).collect();
        let resolved = resolved.map_err(|error| error.to_string())?;
        let spelled: Vec<ToolAccess> =
            declared.iter().map(|access| self.workspace.normalize_access(access)).collect();
        match self.policy.decide(resolved, &spelled) {
            Decision::Allowed(_) | Decision::Ask(_) => Ok(prepared),
            Decision::Denied { reason } => Err(format!("This call is not permitted: {reason}.")),
        }
    }
}

#[async_trait]
impl PreparedCall for CallBatch {
    fn access(&self) -> Vec<ToolAccess> {
        let mut accesses = Vec::new();
        for call in self.calls.iter().filter_map(|entry| entry.call.as_ref().ok()) {
            for access in call.access() {
                if !accesses.contains(&access) {
                    accesses.push(access);
                }
            }
        }
        accesses
    }

    async fn preview(&self, cx: &CallContext<'_>) -> Result<Option<String>, CallFailure> {
        let mut previews = Vec::new();
        for BatchCall { finished: FinishedCall { tool, .. }, call } in &self.calls {
            let Ok(call) = call else { continue };
            match call.preview(cx).await {
                Ok(None) => {}
                Ok(Some(preview)) => previews.push(preview.trim_end().to_owned()),
                // The call may depend on an earlier one, which has not run yet.
                Err(failure) => previews.push(format!("{tool} cannot be previewed yet: {failure}")),
            }
        }
        Ok((!previews.is_empty()).then(|| previews.join("\n")))
    }

    async fn run(self: Box<Self>, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure> {
        let CallBatch { calls, hooks, folder, mode, limits } = *self;
        let call: Option<CallId> = Some(cx.call);
        let context = HookContext {
            session: cx.session,
            call,
            folder: &folder,
            mode,
            agent: None,
            judge: cx.caller.hook_judge(),
        };
        let count = calls.len();
        let (mut combined, mut texts, mut diffs) = (ToolOutput::default(), Vec::new(), Vec::new());
        let (mut done_count, mut statuses) = (0, Vec::new());
        for (index, BatchCall { finished, call }) in calls.into_iter().enumerate() {
            let tool = finished.tool.clone();
            let result = match call {
                Err(reason) => Err(CallFailure::new(reason)),
                Ok(_) if cx.cancel.is_cancelled() => {
                    Err(CallFailure::new("Interrupted before it ran; nothing was done."))
                }
                Ok(call) => call.run(cx).await,
            };
            let result = match result {
                Ok(output) => {
                    finish_output::run_after_hooks(&hooks, (&context, cx.caller), finished, output)
                        .await
                }
                Err(failure) => Err(finished.add_argument_note(failure)),
            };
            let (status, text) = match result {
                Ok(output) => {
                    let mut output =
                        finish_output::truncate_output(output, limits, cx.caller).await;
                    done_count += 1;
                    combined.attachments.append(&mut output.attachments);
                    combined.todos = output.todos.or(combined.todos);
                    combined.started_jobs.append(&mut output.started_jobs);
                    match output.display {
                        OutputDisplay::Diff { unified_diff } => diffs.push(unified_diff),
                        OutputDisplay::Text
                        | OutputDisplay::Markdown
                        | OutputDisplay::Terminal { .. }
                        | OutputDisplay::Checklist { .. } => {}
                    }
                    ("done", output.text)
                }
                Err(failure) => ("failed", finish_output::truncate_text(&failure.text, limits)),
            };
            statuses.push(json!({"tool": tool, "status": status}));
            texts.push(format!(
                "[{} of {count}: {tool}, {status}]\n{}",
                index + 1,
                text.trim_end()
            ));
        }
        combined.title = format!("{done_count} of {count} calls");
        combined.text = texts.join("\n\n");
        combined.metadata.insert("calls".to_owned(), Value::Array(statuses));
        if !diffs.is_empty() {
            combined.display = OutputDisplay::Diff { unified_diff: diffs.concat() };
        }
        Ok(combined)
    }
}
