//! Permission requests: asked one at a time, answered once, and remembered if the approval is
//! lasting. A call that an earlier approval covers is not asked about; the log contains only the
//! answer.

use super::active_turn::{ApprovalState, CallStage, TurnCall};
use super::{EffectList, Session, SessionEffect};
use windlass_protocol::{
    ApprovalKind, ApprovalScope, CallId, Fact, LogSeq, OpError, PermissionAnswer, ProjectApproval,
    ToolAccess,
};
use windlass_toolkit::CallIntent;

/// Reason of a request that stays although no rule requires it any more.
pub(super) const ASKED_BEFORE: &str = "approval was requested before";

/// Accesses and kinds of calls that the user approved with `ApprovalScope::Session` or wider.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionApprovals {
    accesses: Vec<ToolAccess>,
    kinds: Vec<ApprovalKind>,
}

impl SessionApprovals {
    pub(super) fn is_empty(&self) -> bool {
        self.accesses.is_empty() && self.kinds.is_empty()
    }

    /// Records an answer that applies beyond its call. `LeaveSandbox` can only be approved for one
    /// command.
    pub(super) fn record_answer(&mut self, call: &TurnCall, answer: &PermissionAnswer) {
        let Some(accesses) = lasting_accesses(call, answer) else { return };
        if let (PermissionAnswer::Kind { .. }, Some(kind)) = (answer, &call.approval_kind) {
            if !self.kinds.contains(kind) {
                self.kinds.push(kind.clone());
            }
        } else {
            let new = accesses.iter().filter(|access| !self.accesses.contains(access));
            let new: Vec<ToolAccess> = new.cloned().collect();
            self.accesses.extend(new);
        }
    }

    /// Returns the answer of an earlier approval that covers this call. `LeaveSandbox` is never
    /// covered.
    pub(super) fn earlier_answer(&self, intent: &CallIntent) -> Option<PermissionAnswer> {
        if !intent.accepts_earlier_approval || leaves_sandbox(&intent.accesses) {
            return None;
        }
        if intent.accesses.iter().all(|access| self.accesses.contains(access)) {
            return Some(PermissionAnswer::Session);
        }
        let kind_approved =
            intent.approval_kind.as_ref().is_some_and(|kind| self.kinds.contains(kind));
        let scope = ApprovalScope::Session;
        kind_approved.then_some(PermissionAnswer::Kind { scope })
    }
}

fn leaves_sandbox(accesses: &[ToolAccess]) -> bool {
    accesses.iter().any(|access| matches!(access, ToolAccess::LeaveSandbox { .. }))
}

/// Returns the accesses that an answer approves beyond its call.
fn lasting_accesses<'a>(call: &'a TurnCall, answer: &PermissionAnswer) -> Option<&'a [ToolAccess]> {
    answer.scope()?;
    let accesses = call.asked_accesses.as_deref()?;
    (!leaves_sandbox(accesses)).then_some(accesses)
}

/// Returns the approvals to save for the project, beyond the session.
fn project_approvals(call: &TurnCall, answer: &PermissionAnswer) -> Vec<ProjectApproval> {
    let Some(accesses) = lasting_accesses(call, answer) else { return Vec::new() };
    match (answer, &call.approval_kind) {
        (
            PermissionAnswer::Kind { scope: ApprovalScope::Project },
            Some(ApprovalKind::Commands { pattern }),
        ) => {
            vec![ProjectApproval {
                key: ProjectApproval::COMMAND_KIND_KEY.to_owned(),
                subject: pattern.clone(),
            }]
        }
        (
            PermissionAnswer::Kind { scope: ApprovalScope::Project },
            Some(ApprovalKind::Registries),
        ) => vec![ProjectApproval::registries()],
        (
            PermissionAnswer::Project | PermissionAnswer::Kind { scope: ApprovalScope::Project },
            _,
        ) => accesses
            .iter()
            // `Connect` is approved together with the command, not separately.
            .filter(|access| !matches!(access, ToolAccess::Connect { .. }))
            .map(ProjectApproval::for_access)
            .collect(),
        (
            PermissionAnswer::Once
            | PermissionAnswer::Session
            | PermissionAnswer::No { .. }
            | PermissionAnswer::Unavailable { .. }
            | PermissionAnswer::Kind { .. },
            _,
        ) => Vec::new(),
    }
}

impl Session {
    /// Emits `PermissionAsked` for a call, with a preview of its effects.
    pub(super) fn on_preview_ready(
        &mut self,
        turn: u32,
        id: CallId,
        preview: Option<String>,
        out: &mut EffectList,
    ) {
        let Some(open) = self.turn.as_mut().filter(|open| open.number == turn) else { return };
        let is_previewing = |call: &&mut TurnCall| call.approval_state == ApprovalState::Previewing;
        let Some(call) = open.open_call_mut(id).filter(is_previewing) else { return };
        call.approval_state = ApprovalState::Asked;
        let CallStage::AwaitingPermission(intent) = call.stage.clone() else { return };
        let CallIntent { accesses, ask_reason, danger, repair, approval_kind, .. } = intent;
        let reason = ask_reason.unwrap_or_else(|| ASKED_BEFORE.to_owned());
        self.emit(
            Fact::PermissionAsked {
                call: id,
                accesses,
                reason,
                danger,
                preview,
                approval_kind,
                repair,
            },
            out,
        );
        self.advance_calls(out);
    }

    /// Records the answer to the permission request of a call. After a restart, the request of the
    /// earlier process may be answered before the call asks again; the answer then counts if the
    /// call still asks for the same.
    pub(super) fn on_permission_answer(
        &mut self,
        (id, asked): (CallId, Option<LogSeq>),
        answer: PermissionAnswer,
        out: &mut EffectList,
    ) -> Result<(), OpError> {
        let not_asked = self.not_asked_error(id);
        let Some(call) = self.turn.as_mut().and_then(|turn| turn.open_call_mut(id)) else {
            return Err(not_asked);
        };
        let is_open = match &call.stage {
            CallStage::AwaitingPermission(_) => call.approval_state == ApprovalState::Asked,
            // The user saw what the call would have done then; files may have changed since.
            CallStage::Preparing => !answer.is_yes() || !call.asked_with_preview,
            CallStage::NotStarted
            | CallStage::Running(_)
            | CallStage::Reconciling
            | CallStage::Done(_) => false,
        };
        let Some(accesses) = call.asked_accesses.clone() else { return Err(not_asked) };
        if !is_open || call.answer.is_some() || asked.is_some() && asked != call.asked_seq {
            return Err(not_asked);
        }
        // `LeaveSandbox` is approved for one call only, whatever the answer says. Approving a
        // detected loop does not approve anything permanently either.
        let only_once =
            answer.is_yes() && (leaves_sandbox(&accesses) || call.detected_loop.is_some());
        let answer = if only_once { PermissionAnswer::Once } else { answer };
        let approvals = project_approvals(call, &answer);
        let is_waiting = matches!(call.stage, CallStage::AwaitingPermission(_));
        self.emit(Fact::PermissionAnswered { call: id, answer: answer.clone() }, out);
        if !approvals.is_empty() {
            out.0.push(SessionEffect::SaveApprovals { approvals });
        }
        if is_waiting && !answer.is_yes() {
            out.0.push(SessionEffect::SendPermission { call: id, answer });
        }
        self.advance_calls(out);
        Ok(())
    }

    /// Returns true if a call has asked for permission to leave the sandbox.
    pub(crate) fn asks_to_leave_sandbox(&self, id: CallId) -> bool {
        let Some(turn) = &self.turn else { return false };
        let mut asked = turn.open_calls().iter().filter(|call| call.id == id);
        asked.any(|call| call.asked_accesses.as_deref().is_some_and(leaves_sandbox))
    }

    /// Approves a call that an earlier answer covers, before the user is asked.
    pub(super) fn approve_from_earlier(
        &mut self,
        id: CallId,
        answer: PermissionAnswer,
        out: &mut EffectList,
    ) {
        self.emit(Fact::PermissionAnswered { call: id, answer }, out);
        if let Some(call) = self.turn.as_mut().and_then(|turn| turn.open_call_mut(id)) {
            call.approval_state = ApprovalState::Covered;
        }
    }
}
