//! The end of the tool pipeline: after-hooks, then truncation of the result.

use crate::argument_repair;
use crate::call_failure::CallFailure;
use crate::hook::{self, Hook, HookContext, HookPayload, HookRun};
use crate::tool_caller::ToolCaller;
use crate::truncate_output::{self, OutputLimits};
use serde_json::Value;
use std::sync::Arc;
use windlass_protocol::{ALLOWED_CALLS_KEY, OutputDisplay, ToolOutput};

/// Size of the head and tail that are shown of an output which exceeds the limits.
const SHOWN_BYTES: usize = 20 << 10;
/// The tool that returns `AllowedCalls`.
const SKILL_TOOL: &str = "skill";
/// Further files of a result are left out.
const MAX_OUTPUT_FILES: usize = 16;

/// The call whose output `run_after_hooks` shows to the hooks.
pub(crate) struct FinishedCall {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// The hooks that changed the arguments.
    pub(crate) changed_by: Vec<String>,
    /// The unknown fields of the arguments, which were removed.
    pub(crate) ignored_fields: Vec<String>,
}

impl FinishedCall {
    /// Returns the failure of the call with a note on the hooks that changed its arguments.
    pub(crate) fn add_argument_note(&self, mut failure: CallFailure) -> CallFailure {
        add_hook_note(&mut failure.text, "arguments", &self.changed_by);
        failure
    }
}

/// Appends a note on the hooks that changed a part of a call, so that the model does not take the
/// change for its own.
fn add_hook_note(text: &mut String, part: &str, hooks: &[String]) {
    if !hooks.is_empty() {
        let separator = if text.is_empty() { "" } else { "\n" };
        text.push_str(&format!("{separator}[{part} changed by {}]", hooks.join(", ")));
    }
}

/// Tells the model which fields had no effect, so that it does not rely on them.
fn add_ignored_note(text: &mut String, fields: &[String]) {
    if !fields.is_empty() {
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        let names = argument_repair::shorten(&fields.join("`, `"));
        text.push_str(&format!("{separator}[ignored: the tool has no field `{names}`]"));
    }
}

/// Runs the after-hooks on an output in order, and records their verdicts.
pub(crate) async fn run_after_hooks(
    hooks: &[Arc<dyn Hook>],
    (context, caller): (&HookContext<'_>, &dyn ToolCaller),
    FinishedCall { tool, arguments, changed_by, ignored_fields }: FinishedCall,
    output: ToolOutput,
) -> Result<ToolOutput, CallFailure> {
    // Hooks do not change the calls that a skill allows, and no other tool sets them.
    let allowed_calls =
        output.metadata.get(ALLOWED_CALLS_KEY).filter(|_| tool == SKILL_TOOL).cloned();
    let original_text = output.text.clone();
    let payload = HookPayload::AfterCall { tool, arguments, output };
    let (hook_runs, result) = hook::run_hooks(hooks, context, payload).await;
    record_hook_runs(caller, hook_runs).await;
    let stop = match result.map(|result| (result.payload, result.changed_by)) {
        Ok((HookPayload::AfterCall { mut output, .. }, output_changed_by)) => {
            let is_text_changed = output.text != original_text;
            add_hook_note(&mut output.text, "arguments", &changed_by);
            add_ignored_note(&mut output.text, &ignored_fields);
            if is_text_changed {
                add_hook_note(&mut output.text, "output", &output_changed_by);
            }
            output.metadata.shift_remove(ALLOWED_CALLS_KEY);
            let entry = allowed_calls.map(|calls| (ALLOWED_CALLS_KEY.to_owned(), calls));
            output.metadata.extend(entry);
            return Ok(output);
        }
        Ok(_) => return Err(CallFailure::new("The call ran, but its result was lost.")),
        Err(stop) => stop,
    };
    let hook::HookDenial { hook, reason } = stop;
    let text = format!("The call ran, but the hook `{hook}` withheld its result: {reason}");
    Err(CallFailure::new(text))
}

/// Records each `HookRun` with the `ToolCaller`.
pub(crate) async fn record_hook_runs(caller: &dyn ToolCaller, hook_runs: Vec<HookRun>) {
    for hook_run in hook_runs {
        caller.record_hook(hook_run).await;
    }
}

/// Truncates an output to its limits. The full text is stored as a blob that can be read.
pub(crate) async fn truncate_output(
    mut output: ToolOutput,
    limits: OutputLimits,
    caller: &dyn ToolCaller,
) -> ToolOutput {
    output.title = truncate_text(&output.title, limits);
    output.display = match output.display {
        OutputDisplay::Text => OutputDisplay::Text,
        OutputDisplay::Markdown => OutputDisplay::Markdown,
        // Derived from the text, so that it never shows more than the model got.
        OutputDisplay::Terminal { .. } => {
            let colored_text = truncate_output::strip_controls_except_colors(&output.text);
            // A cut could fall inside a color sequence.
            let colored_text =
                colored_text.filter(|text| truncate_output::truncate(text, limits, "").is_none());
            OutputDisplay::Terminal { colored_text }
        }
        OutputDisplay::Diff { unified_diff } => {
            OutputDisplay::Diff { unified_diff: truncate_text(&unified_diff, limits) }
        }
        OutputDisplay::Checklist { mut items } => {
            for item in &mut items {
                item.content = truncate_text(&item.content, limits);
            }
            OutputDisplay::Checklist { items }
        }
    };
    if serde_json::to_string(&output.metadata).map_or(0, |json| json.len()) > limits.bytes {
        output.metadata.clear();
    }
    output.attachments.truncate(MAX_OUTPUT_FILES);
    for file in &mut output.attachments {
        file.name = truncate_text(&file.name, limits);
    }
    output.text = truncate_output::strip_controls(&output.text);
    if truncate_output::truncate(&output.text, limits, "").is_some() {
        let reference = match caller.put_blob(output.text.clone().into_bytes()).await {
            Ok(blob) => {
                let reference = format!("read or grep blob:{}", blob.short_name());
                output.full_text = Some(blob);
                reference
            }
            Err(failure) => format!("lost, {failure}"),
        };
        let shown = OutputLimits { bytes: limits.bytes.min(SHOWN_BYTES), ..limits };
        if let Some(truncated) = truncate_output::truncate(&output.text, shown, &reference) {
            output.text = truncated;
        }
    }
    output
}

/// Applies `strip_controls` and `truncate` to a text.
pub(crate) fn truncate_text(text: &str, limits: OutputLimits) -> String {
    let text = truncate_output::strip_controls(text);
    truncate_output::truncate(&text, limits, "not stored").unwrap_or(text)
}
