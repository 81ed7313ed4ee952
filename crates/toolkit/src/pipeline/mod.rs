//! The tool pipeline: the only way to run a call, for every tool and every caller.
//!
//! repair → unwrap → before-hooks → parse → access → permission → workspace → run → after-hooks →
//! truncate. Hooks run before permission, because a hook that rewrote the arguments afterwards
//! would run something that was not approved. Truncation comes last, so that no hook can exceed the
//! limits.

pub(crate) mod batch;
pub(crate) mod change_recorder;
pub(crate) mod crash_recovery;
pub(crate) mod finish_output;
mod patch_in_command;
pub(crate) mod resolve_call;

use crate::call_failure::CallFailure;
use crate::hook::{self, Hook, HookContext, HookPayload, HookRun};
use crate::pipeline::change_recorder::FileChangeQueue;
use crate::pipeline::finish_output::FinishedCall;
pub use crate::pipeline::resolve_call::INVALID_TOOL;
use crate::pipeline::resolve_call::ResolvedCall;
use crate::registry::{Registry, ToolSnapshot, tool_search};
use crate::tool::{CallContext, PreparedCall, StepContext, ToolFinder, ToolSearchResults};
use crate::tool_caller::{CallIntent, PermissionReply, ToolCaller};
use crate::truncate_output::{self, OutputLimits};
use async_trait::async_trait;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use windlass_permission::{Decision, Grant, PendingDecision, PermissionRules, Policy};
use windlass_protocol::{
    AllowedCalls, AllowedCallsSource, CallAuthor, CallId, CallOutcome, CallRepair,
    NO_USER_DENIAL_TEXT, PermissionAnswer, PermissionMode, RequestDanger, SessionId, ToolAccess,
    ToolOutput, USER_DENIAL_TEXT,
};
use windlass_sandbox::Workspace;

/// Limit for a call that changes something to stop after a cancellation. After that its effects are
/// unknown.
const CANCEL_GRACE: Duration = Duration::from_secs(2);

/// The preview of a call that would fail, if the reason would reveal content that needs approval.
const HIDDEN_FAILURE_TEXT: &str = "This call would fail. The reason is hidden because it would reveal content that you have \
     not approved.";

const BATCH_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Limit for a search to wait for pending tools.
const PENDING_TOOLS_TIMEOUT: Duration = Duration::from_secs(5);

/// The tools, hooks, rules and workspace that the sessions of a workspace share.
pub struct ToolRuntime {
    pub registry: Registry,
    /// The hooks, in the order they run.
    pub hooks: Vec<Arc<dyn Hook>>,
    pub policy: Policy,
    pub workspace: Workspace,
    /// The output limits for the model.
    pub limits: OutputLimits,
}

/// A tool call before `resolve_call`.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    pub session: SessionId,
    pub id: CallId,
    /// The author of the call. A model reaches the tools it was offered; the user reaches every
    /// tool.
    pub author: CallAuthor,
    /// The tool name, as spelled.
    pub tool: String,
    /// The arguments, as written.
    pub arguments: String,
    /// Calls of the skills and commands in effect. A call that they do not allow requires approval.
    pub allowed_calls: Vec<AllowedCalls>,
}

/// A resolved call with its permission decision.
struct DecidedCall {
    prepared: Box<dyn PreparedCall>,
    intent: CallIntent,
    permission: CallPermission,
}

enum CallPermission {
    Granted(Grant),
    Pending(PendingDecision),
}

#[async_trait]
impl ToolFinder for ToolRuntime {
    async fn find_tools(&self, step: &StepContext, query: &str, limit: usize) -> ToolSearchResults {
        let unavailable = self.registry.wait_for_pending(PENDING_TOOLS_TIMEOUT).await;
        let searchable = self.snapshot(step).await.searchable();
        let ranked = tool_search::rank_tools(query, &searchable);
        let is_named = ranked.first().is_some_and(|tool| tool_search::is_name_of(query, tool));
        let omitted = if is_named { 0 } else { ranked.len().saturating_sub(limit) };
        let tools = ranked.into_iter().take(limit).cloned().collect();
        ToolSearchResults { tools, omitted, unavailable }
    }
}

impl ToolRuntime {
    /// Returns the same runtime in another mode, or in the most permissive mode that is allowed.
    pub fn in_mode(&self, mode: PermissionMode) -> ToolRuntime {
        ToolRuntime {
            registry: self.registry.clone(),
            hooks: self.hooks.clone(),
            policy: self.policy.clone().with_mode(mode),
            workspace: self.workspace.clone(),
            limits: self.limits,
        }
    }

    /// Returns the `ToolSnapshot` of one step.
    pub async fn snapshot(&self, step: &StepContext) -> ToolSnapshot {
        self.registry.snapshot(step, &self.policy).await
    }

    /// Runs a call. It always ends in exactly one `Outcome`.
    #[tracing::instrument(name = "Tool.execute", skip_all, fields(tool = %call.tool, session = %call.session, message_id = caller.message_id(), call = %call.id))]
    pub async fn execute(
        &self,
        snapshot: &ToolSnapshot,
        call: ToolCall,
        caller: &dyn ToolCaller,
        cancel: CancellationToken,
    ) -> CallOutcome {
        let mut hook_runs = Vec::new();
        let decided = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(not_run_outcome()),
            decided = self.prepare_call(snapshot, (&call, caller), &mut hook_runs) => decided,
        };
        finish_output::record_hook_runs(caller, hook_runs).await;
        let (finished_call, decided) = match decided {
            Ok(decided) => decided,
            Err(outcome) => return outcome,
        };
        let read_only = decided.intent.read_only;
        let (session, id, author, step) = (call.session, call.id, call.author, &snapshot.step);
        let is_limited = !call.allowed_calls.is_empty();
        let cx = |workspace| CallContext {
            session,
            call: id,
            author,
            world: Arc::new(workspace),
            cancel: cancel.clone(),
            caller,
            step,
            is_limited,
            finder: self,
        };
        let permission = async {
            match caller.request_permission(decided.intent).await {
                PermissionReply::Answer(answer) => Ok(answer),
                PermissionReply::ShowPreview => {
                    let preview = match &decided.permission {
                        CallPermission::Granted(_) => None,
                        CallPermission::Pending(pending) => {
                            let cx = cx(self.workspace.open_read_only(pending.preview_grant()));
                            match decided.prepared.preview(&cx).await {
                                Ok(preview) => preview,
                                Err(failure) if pending.may_reveal() => return Err(failure),
                                // The reason would reveal content that the user may want to
                                // protect.
                                Err(_) => Some(HIDDEN_FAILURE_TEXT.to_owned()),
                            }
                        }
                    };
                    Ok(caller.ask_permission(preview.map(|text| self.truncate(&text))).await)
                }
            }
        };
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return not_run_outcome(),
            answer = permission => match answer {
                Ok(answer) => answer,
                Err(failure) => return CallOutcome::Failed { text: self.truncate(&failure.text) },
            },
        };
        let grant = match (decided.permission, &answer) {
            (CallPermission::Granted(grant), answer) if answer.is_yes() => Some(grant),
            (CallPermission::Granted(_), _) => None,
            (CallPermission::Pending(pending), answer) => pending.resolve(answer),
        };
        let Some(grant) = grant else { return denied_outcome(answer) };
        if let Err(error) = self.workspace.check_root() {
            return CallOutcome::Failed { text: error.to_string() };
        }
        let (recorder, mut queue) = FileChangeQueue::open();
        let is_writing = queue.is_writing();
        let cx = cx(self.workspace.open_granted(grant, recorder));
        let result = tokio::select! {
            biased;
            result = decided.prepared.run(&cx) => result,
            never = queue.record_batches(caller) => match never {},
            outcome = wait_for_cancel(&cancel, read_only, &is_writing) => return outcome,
        };
        let output = match result {
            Ok(output) => output,
            Err(failure) if failure.is_result_unknown => return CallOutcome::ResultUnknown,
            Err(failure) if cancel.is_cancelled() => {
                return CallOutcome::Interrupted { text: self.truncate(&failure.text) };
            }
            Err(failure) => {
                let failure = finished_call.add_argument_note(failure);
                return CallOutcome::Failed { text: self.truncate(&failure.text) };
            }
        };
        self.finish_call(&call, caller, finished_call, output).await
    }

    /// Runs the after-hooks on the output of a call and returns the `Outcome`.
    async fn finish_call(
        &self,
        call: &ToolCall,
        caller: &dyn ToolCaller,
        finished_call: FinishedCall,
        output: ToolOutput,
    ) -> CallOutcome {
        let folder = self.folder();
        let context = self.hook_context((call, caller), &folder);
        match finish_output::run_after_hooks(&self.hooks, (&context, caller), finished_call, output)
            .await
        {
            Ok(output) => {
                let output = finish_output::truncate_output(output, self.limits, caller).await;
                CallOutcome::Completed { output }
            }
            Err(failure) => CallOutcome::Failed { text: self.truncate(&failure.text) },
        }
    }

    /// Returns the full preview of a call for the user. Nothing is changed and nothing is recorded.
    pub async fn preview(
        &self,
        snapshot: &ToolSnapshot,
        call: ToolCall,
        caller: &dyn ToolCaller,
    ) -> Result<Option<String>, CallOutcome> {
        let (_, decided) = self.prepare_call(snapshot, (&call, caller), &mut Vec::new()).await?;
        let grant = match decided.permission {
            CallPermission::Pending(pending) => pending.preview_grant(),
            CallPermission::Granted(grant) => grant,
        };
        let workspace = Arc::new(self.workspace.open_read_only(grant));
        let (cancel, step) = (CancellationToken::new(), &snapshot.step);
        let (session, author) = (call.session, call.author);
        let cx = CallContext {
            session,
            call: call.id,
            author,
            world: workspace,
            cancel,
            caller,
            step,
            is_limited: !call.allowed_calls.is_empty(),
            finder: self,
        };
        let to_outcome =
            |failure: CallFailure| CallOutcome::Failed { text: self.truncate(&failure.text) };
        let preview = decided.prepared.preview(&cx).await.map_err(to_outcome)?;
        Ok(preview.map(|text| truncate_output::show_controls(&text)))
    }

    /// Resolves a call and decides on its permission, without touching any file.
    async fn prepare_call(
        &self,
        snapshot: &ToolSnapshot,
        (call, caller): (&ToolCall, &dyn ToolCaller),
        hook_runs: &mut Vec<HookRun>,
    ) -> Result<(FinishedCall, DecidedCall), CallOutcome> {
        let resolved = self.resolve_call(snapshot, (call, caller), hook_runs).await?;
        let ResolvedCall { tool, arguments, changed_by, ignored_fields, .. } = resolved;
        let (mut prepared, mut repair) = (resolved.prepared, resolved.repair);
        let mut ask_reason = resolved.ask_reason;
        if let Some(sub_calls) = prepared.sub_calls() {
            let (batch, changes, batch_ask_reason) =
                self.prepare_batch(snapshot, (call, caller), (sub_calls, hook_runs)).await;
            prepared = Box::new(batch);
            ask_reason = ask_reason.or(batch_ask_reason);
            if !changes.is_empty() {
                let unchanged =
                    || CallRepair { arguments: call.arguments.clone(), changes: Vec::new() };
                repair.get_or_insert_with(unchanged).changes.extend(changes);
            }
        }
        let declared = prepared.access();
        let accesses: Result<Vec<ToolAccess>, _> =
            declared.iter().map(|access| self.workspace.resolve_access(access)).collect();
        let accesses = accesses
            .map_err(|error| CallOutcome::Denied { text: self.truncate(&error.to_string()) })?;
        let spelled: Vec<ToolAccess> =
            declared.iter().map(|access| self.workspace.normalize_access(access)).collect();
        let outside_reason = self.outside_allowed_calls(call, &accesses, &spelled);
        let decision = match call.author {
            CallAuthor::Model => self.policy.decide(accesses, &spelled),
            CallAuthor::User | CallAuthor::Command | CallAuthor::Goal => {
                self.policy.decide_user_call(accesses, &spelled)
            }
        };
        let decision = self.require_limit_approval(decision, outside_reason);
        let decision = self.require_approval(decision, ask_reason);
        let tool = tool.name().to_owned();
        let finished_call = FinishedCall { tool, arguments, changed_by, ignored_fields };
        let (permission, accesses, ask_reason) = match decision {
            Decision::Allowed(grant) => {
                let accesses = grant.accesses().to_vec();
                (CallPermission::Granted(grant), accesses, None)
            }
            Decision::Denied { reason } => {
                let reason = truncate_output::show_controls(&reason);
                let text = self.truncate(&format!(
                    "This call is not permitted: {reason}. If you cannot continue without it, \
                     say so."
                ));
                return Err(CallOutcome::Denied { text });
            }
            Decision::Ask(pending) => {
                let calls = (call, caller);
                self.run_permission_hooks(calls, &finished_call.tool, &pending, hook_runs).await?;
                let (accesses, reason) = (pending.accesses().to_vec(), pending.reason());
                let ask_reason = Some(reason.to_owned());
                (CallPermission::Pending(pending), accesses, ask_reason)
            }
        };
        let (approval_kind, accepts_earlier_approval, danger) = match &permission {
            CallPermission::Pending(pending) => (
                pending.approval_kind().cloned(),
                pending.accepts_earlier_approval(),
                pending.danger(),
            ),
            CallPermission::Granted(_) => (None, true, RequestDanger::Normal),
        };
        let read_only = accesses.iter().all(ToolAccess::is_read_only);
        let intent = CallIntent {
            accesses,
            read_only,
            ask_reason,
            danger,
            approval_kind,
            accepts_earlier_approval,
            repair,
        };
        Ok((finished_call, DecidedCall { prepared, intent, permission }))
    }

    /// Returns the reason to require approval of a call that the skills or commands in effect do not
    /// allow. A skill does not widen the limit of a command; several skills add to each other.
    fn outside_allowed_calls(
        &self,
        call: &ToolCall,
        accesses: &[ToolAccess],
        spelled: &[ToolAccess],
    ) -> Option<String> {
        let allows = |allowed: &&AllowedCalls| {
            // Rules that cannot be parsed allow nothing.
            let rules = PermissionRules::parse(&Value::Object(allowed.rules.clone())).ok();
            rules.is_some_and(|rules| self.policy.allows_under(rules, accesses, spelled))
        };
        let refusal = |source: AllowedCallsSource| {
            let mut limits = call.allowed_calls.iter().filter(|limit| limit.source == source);
            let description = AllowedCalls::describe(&call.allowed_calls, source)?;
            (!limits.any(|limit| allows(&limit))).then_some(description)
        };
        [AllowedCallsSource::Command, AllowedCallsSource::Skill].into_iter().find_map(refusal)
    }

    /// Requires approval for a call outside the limit of a skill or command. No rule lifts the limit,
    /// so the reason suggests none.
    fn require_limit_approval(&self, decision: Decision, limit: Option<String>) -> Decision {
        match (decision, limit) {
            (Decision::Ask(pending), Some(limit)) => {
                let reason = format!("{limit}; {}", pending.reason_without_advice());
                let reason = self.truncate(&reason);
                self.policy.ask_anyway(pending.accesses().to_vec(), reason)
            }
            (decision, limit) => self.require_approval(decision, limit),
        }
    }

    /// Applies a demand for approval to a `Decision`. A denial stays a denial.
    fn require_approval(&self, decision: Decision, ask_reason: Option<String>) -> Decision {
        let Some(reason) = ask_reason.map(|ask_reason| self.truncate(&ask_reason)) else {
            return decision;
        };
        match decision {
            Decision::Allowed(grant) => self.policy.ask_anyway(grant.accesses().to_vec(), reason),
            Decision::Ask(pending) => {
                let reason = format!("{reason}; {}", pending.reason());
                self.policy.ask_anyway(pending.accesses().to_vec(), reason)
            }
            Decision::Denied { reason } => Decision::Denied { reason },
        }
    }

    /// Runs the hooks for `HookPayload::PermissionAsked`.
    async fn run_permission_hooks(
        &self,
        call: (&ToolCall, &dyn ToolCaller),
        tool: &str,
        pending: &PendingDecision,
        hook_runs: &mut Vec<HookRun>,
    ) -> Result<(), CallOutcome> {
        let (accesses, reason) = (pending.accesses().to_vec(), pending.reason().to_owned());
        let payload = HookPayload::PermissionAsked { tool: tool.to_owned(), accesses, reason };
        let folder = self.folder();
        let (runs, result) =
            hook::run_hooks(&self.hooks, &self.hook_context(call, &folder), payload).await;
        hook_runs.extend(runs);
        match result {
            Ok(_) => Ok(()),
            Err(stop) => Err(CallOutcome::Denied { text: self.truncate(&stop.to_string()) }),
        }
    }

    pub(crate) fn hook_context<'a>(
        &self,
        (call, caller): (&ToolCall, &'a dyn ToolCaller),
        folder: &'a str,
    ) -> HookContext<'a> {
        let (session, call, judge) = (call.session, Some(call.id), caller.hook_judge());
        HookContext { session, call, folder, mode: self.policy.mode(), agent: None, judge }
    }

    pub(crate) fn folder(&self) -> String {
        self.workspace.root().to_string_lossy().into_owned()
    }

    pub(crate) fn truncate(&self, text: &str) -> String {
        finish_output::truncate_text(text, self.limits)
    }
}

/// Resolves when a canceled call must be abandoned. A read-only call is dropped at once; a call
/// that changes something gets `CANCEL_GRACE` to stop by itself. A recorded batch of changes is
/// awaited, so that none is left half written.
async fn wait_for_cancel(
    cancel: &CancellationToken,
    read_only: bool,
    is_writing: &AtomicBool,
) -> CallOutcome {
    cancel.cancelled().await;
    if read_only {
        return CallOutcome::Interrupted { text: "Interrupted before it finished.".into() };
    }
    tokio::time::sleep(CANCEL_GRACE).await;
    while is_writing.load(Ordering::SeqCst) {
        tokio::time::sleep(BATCH_POLL_INTERVAL).await;
    }
    CallOutcome::ResultUnknown
}

fn not_run_outcome() -> CallOutcome {
    CallOutcome::Interrupted { text: "Interrupted before it ran; nothing was done.".into() }
}

const NO_APPROVAL_ADVICE: &str = "Do not try to get the same effect in another way; do the rest, and \
                                  say at the end what is left to do.";

fn denied_outcome(answer: PermissionAnswer) -> CallOutcome {
    match answer {
        PermissionAnswer::No { reason: Some(reason) } => CallOutcome::Denied {
            text: format!("{USER_DENIAL_TEXT}: {}", truncate_output::show_controls(&reason)),
        },
        PermissionAnswer::Unavailable { hint } => CallOutcome::Denied {
            text: format!(
                "{NO_USER_DENIAL_TEXT} {NO_APPROVAL_ADVICE} {}",
                truncate_output::show_controls(&hint)
            ),
        },
        PermissionAnswer::No { reason: None }
        | PermissionAnswer::Once
        | PermissionAnswer::Session
        | PermissionAnswer::Project
        | PermissionAnswer::Kind { .. } => {
            CallOutcome::Denied { text: format!("{USER_DENIAL_TEXT}.") }
        }
    }
}
