//! Resolution of a call: finds the tool and its arguments. It decides nothing and changes nothing.
//!
//! A call of an alias tool becomes the call it means: hooks, rules and records apply to that call.

use crate::hook::{self, HookPayload, HookRun};
use crate::pipeline::patch_in_command::patch_in_command;
use crate::pipeline::{ToolCall, ToolRuntime};
use crate::registry::{ToolSnapshot, ToolSnapshotEntry};
use crate::tool::{AnyTool, PreparedCall};
use crate::tool_caller::ToolCaller;
use crate::{argument_repair, validate_arguments};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_protocol::{CallAuthor, CallOutcome, CallRepair, ToolAccess};

/// The tool that answers malformed calls and calls of unknown tools.
pub const INVALID_TOOL: &str = "invalid";

/// The tool that takes a patch which a model passes to a command.
const PATCH_TOOL: &str = "apply_patch";

/// A call with its tool and parsed arguments.
pub(crate) struct ResolvedCall {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) arguments: Value,
    pub(crate) prepared: Box<dyn PreparedCall>,
    pub(crate) repair: Option<CallRepair>,
    /// The hooks that changed the arguments.
    pub(crate) changed_by: Vec<String>,
    /// The unknown fields of the arguments, which were removed.
    pub(crate) ignored_fields: Vec<String>,
    /// The reason of a hook that replied `AskUser`, or of a rule that names the tool.
    pub(crate) ask_reason: Option<String>,
}

/// A call after an alias was unwrapped.
struct UnaliasedCall<'a> {
    entry: &'a ToolSnapshotEntry,
    arguments: Value,
    changes: Vec<String>,
    /// The name of the alias tool that the model called, if any.
    wrapper_tool: Option<String>,
}

impl ToolRuntime {
    /// Resolves a call to its tool and arguments. Fails if a rule denies the tool outright.
    pub(crate) async fn resolve_call(
        &self,
        snapshot: &ToolSnapshot,
        (call, caller): (&ToolCall, &dyn ToolCaller),
        hook_runs: &mut Vec<HookRun>,
    ) -> Result<ResolvedCall, CallOutcome> {
        let failed = |text: String| CallOutcome::Failed { text: self.truncate(&text) };
        let UnaliasedCall { entry, arguments: original, mut changes, wrapper_tool } =
            self.unwrap_call(snapshot, call).map_err(|outcome| *outcome)?;
        let tool = Arc::clone(&entry.tool);
        let name = tool.name().to_owned();
        let payload = HookPayload::BeforeCall { tool: name.clone(), arguments: original.clone() };
        let folder = self.folder();
        let (runs, result) =
            hook::run_hooks(&self.hooks, &self.hook_context((call, caller), &folder), payload)
                .await;
        hook_runs.extend(runs);
        let result = result
            .map_err(|stop| CallOutcome::Denied { text: self.truncate(&stop.to_string()) })?;
        let (ask_reason, arguments) = match result.payload {
            HookPayload::BeforeCall { arguments, .. } => (result.ask_reason, arguments),
            _ => (result.ask_reason, original.clone()),
        };
        let changed_by = result.changed_by;
        // The record must match what runs, even if a hook changed it.
        if arguments != original {
            changes.push(format!("{} changed the arguments", changed_by.join(", ")));
        }
        let target = (name.as_str(), wrapper_tool.as_deref());
        let validated =
            validate_arguments::validate_arguments(target, &entry.definition, &arguments);
        let (arguments, ignored_fields) = match validated {
            Ok(()) => (arguments, Vec::new()),
            Err(failure) => {
                self.without_unknown_fields(entry, arguments).ok_or_else(|| failed(failure.text))?
            }
        };
        if !ignored_fields.is_empty() {
            let names = argument_repair::shorten(&ignored_fields.join("`, `"));
            changes.push(format!("unknown field `{names}` was ignored"));
        }
        let repair = (!changes.is_empty()).then(|| CallRepair {
            arguments: match wrapper_tool {
                Some(_) => json!({"name": name, "arguments": arguments}).to_string(),
                None => arguments.to_string(),
            },
            changes: changes.iter().map(|change| self.truncate(change)).collect(),
        });
        let prepared = Arc::clone(&tool)
            .prepare(arguments.clone(), self.workspace.working_folder())
            .map_err(|failure| failed(failure.text))?;
        if let Some(wrapper_tool) = wrapper_tool.filter(|_| prepared.sub_calls().is_some()) {
            let text = format!("{name} cannot be called through {wrapper_tool}; call it directly.");
            return Err(failed(text));
        }
        let ask_reason =
            ask_reason.or_else(|| self.policy.tool_ask_reason(&name, &prepared.access()));
        Ok(ResolvedCall {
            tool,
            arguments,
            prepared,
            repair,
            changed_by,
            ignored_fields,
            ask_reason,
        })
    }

    /// Removes unknown fields from the arguments of a call that only reads or whose tool ignores
    /// them, and returns their names. Another call fails instead: the field may be meant to limit
    /// its effect, such as `dryRun`.
    fn without_unknown_fields(
        &self,
        entry: &ToolSnapshotEntry,
        mut arguments: Value,
    ) -> Option<(Value, Vec<String>)> {
        let names =
            validate_arguments::remove_unknown_fields(&entry.definition.schema, &mut arguments)?;
        let tool = Arc::clone(&entry.tool);
        let prepared = tool.prepare(arguments.clone(), self.workspace.working_folder()).ok()?;
        let only_reads = |access: &ToolAccess| {
            access.is_read_only() && !matches!(access, ToolAccess::Subagent { .. })
        };
        let accesses = prepared.access();
        let is_reading = !accesses.is_empty() && accesses.iter().all(only_reads);
        let is_harmless = is_reading || entry.tool.ignores_unknown_fields();
        (is_harmless && prepared.sub_calls().is_none()).then_some((arguments, names))
    }

    /// Unwraps an alias and returns the call that is meant.
    fn unwrap_call<'a>(
        &self,
        snapshot: &'a ToolSnapshot,
        call: &ToolCall,
    ) -> Result<UnaliasedCall<'a>, Box<CallOutcome>> {
        let failed = |text: String| Box::new(CallOutcome::Failed { text: self.truncate(&text) });
        let outer = self.find_tool(snapshot, (call.author, &call.tool, &call.arguments))?;
        let Some(target) = outer.entry.tool.alias_of(&outer.arguments) else { return Ok(outer) };
        let wrapper_tool = outer.entry.tool.name();
        let inner = self.find_tool(snapshot, (call.author, &target.tool, &target.arguments))?;
        let name = inner.entry.tool.name();
        let nested = inner.entry.tool.alias_of(&inner.arguments).is_some() || name == wrapper_tool;
        if nested || target.tool == INVALID_TOOL {
            let text = format!("{name} cannot be called through {wrapper_tool}; call it directly.");
            return Err(failed(text));
        }
        // A malformed inner call is answered as if it had no wrapper.
        let wrapper_tool = (name != INVALID_TOOL).then(|| wrapper_tool.to_owned());
        let changes = outer.changes.into_iter().chain(inner.changes).collect();
        Ok(UnaliasedCall { wrapper_tool, changes, ..inner })
    }

    /// Finds the tool of a call; it must exist and no rule may deny it.
    fn find_tool<'a>(
        &self,
        snapshot: &'a ToolSnapshot,
        call_parts: (CallAuthor, &str, &str),
    ) -> Result<UnaliasedCall<'a>, Box<CallOutcome>> {
        let failed = |text: String| Box::new(CallOutcome::Failed { text: self.truncate(&text) });
        let ParsedCall { name, arguments, changes } = parse_call(snapshot, call_parts);
        let Some(entry) = snapshot.get(&name) else {
            return Err(failed(format!("Unknown tool `{name}`.")));
        };
        let tool = &entry.tool;
        // A rule may name the tool or its permission key, and applies whatever the call accesses.
        for name in [tool.name(), tool.permission_key()] {
            if self.policy.denies_outright(name) {
                let text = format!("This call is not permitted: a rule denies {name}.");
                return Err(Box::new(CallOutcome::Denied { text }));
            }
        }
        if self.policy.is_removed(tool.name()) {
            let text = format!("This call is not permitted: this agent may not use {name}.");
            return Err(Box::new(CallOutcome::Denied { text }));
        }
        if !self.registry.is_current(tool) {
            let text = format!(
                "{name} has changed since it was offered; read its definition \
                                again."
            );
            return Err(failed(text));
        }
        Ok(UnaliasedCall { entry, arguments, changes, wrapper_tool: None })
    }
}

/// Returns the patch in a call of `bash` that does nothing but apply it in the workspace root.
fn patch_of_call<'a>(tool: &str, arguments: &'a Value) -> Option<&'a str> {
    let is_default = |name: &str| {
        arguments.get(name).is_none_or(|value| matches!(value, Value::Null | Value::Bool(false)))
    };
    let is_plain = ["workdir", "background", "terminal", "outside"].into_iter().all(is_default);
    let command = arguments.get("command")?.as_str().filter(|_| tool == "bash" && is_plain)?;
    patch_in_command(command)
}

/// The tool name and arguments of a call, after repair.
struct ParsedCall {
    name: String,
    arguments: Value,
    changes: Vec<String>,
}

/// Finds the tool name and arguments of a call; a malformed call becomes a call of `INVALID_TOOL`.
fn parse_call(
    snapshot: &ToolSnapshot,
    (author, tool, arguments): (CallAuthor, &str, &str),
) -> ParsedCall {
    let invalid = |error: String| ParsedCall {
        name: INVALID_TOOL.to_owned(),
        arguments: json!({"tool": tool, "error": error}),
        changes: Vec::new(),
    };
    let entry = match author {
        CallAuthor::Model => snapshot.find_by_spelling(tool),
        CallAuthor::User | CallAuthor::Command | CallAuthor::Goal => {
            snapshot.find_by_spelling(tool).or_else(|| snapshot.get(tool))
        }
    };
    let Some(entry) = entry else {
        return invalid(match snapshot.equivalent_tool(tool) {
            Some(other) => format!("Unknown tool. Use {other} instead"),
            None => {
                format!("Unknown tool. Try one of: {}", snapshot.suggested_names(tool).join(", "))
            }
        });
    };
    let mut parsed = match argument_repair::parse_arguments(arguments) {
        Ok(parsed) => parsed,
        Err(error) => return invalid(format!("The arguments are not valid JSON: {error}")),
    };
    argument_repair::coerce(&entry.definition.schema, &mut parsed.value, &mut parsed.changes);
    let name = entry.tool.name().to_owned();
    if let Some(patch) = patch_of_call(&name, &parsed.value)
        && snapshot.find_by_spelling(PATCH_TOOL).is_some()
    {
        return ParsedCall {
            name: PATCH_TOOL.to_owned(),
            arguments: json!({"patchText": patch}),
            changes: vec!["the command was a patch, which apply_patch takes".to_owned()],
        };
    }
    if name != tool {
        parsed.changes.insert(0, format!("the name was `{}`", argument_repair::shorten(tool)));
    }
    ParsedCall { name, arguments: parsed.value, changes: parsed.changes }
}
