//! The report about permissions: the rules in effect, and the approvals of the session and the
//! project.

use crate::setup::LoadedProject;
use std::collections::HashMap;
use windlass_project::{ApprovalStore, StoredApproval};
use windlass_protocol::display_text::{format_age, to_one_line};
use windlass_protocol::report::{ReportAction, ReportGroup, ReportRow, ReportRowState};
use windlass_protocol::{
    ApprovalKind, ApprovalScope, CallId, Fact, FactRecord, PermissionAnswer, ProjectApproval,
    ToolAccess,
};

/// The [`ReportRow::id`] of the approvals of the session, which are revoked together.
pub(crate) const SESSION_APPROVALS_ID: &str = "session";

/// A permission rule in effect.
pub(crate) struct PermissionRuleRow {
    pub(crate) subject: String,
    pub(crate) level: String,
    pub(crate) origin: String,
    /// The reason and the advice, if the rule never decides anything.
    pub(crate) no_effect: Option<String>,
}

impl PermissionRuleRow {
    pub(crate) fn describe(&self, space: &str) -> String {
        let PermissionRuleRow { subject, level, origin, no_effect } = self;
        let note = no_effect.as_ref().map(|it| format!("; no effect, because {it}"));
        format!("{subject} = {level}{space}({origin}){}", note.unwrap_or_default())
    }

    fn to_row(&self) -> ReportRow {
        let effect = self.no_effect.as_ref();
        ReportRow {
            group: ReportGroup::Rules,
            name: self.subject.clone(),
            note: self.origin.clone(),
            columns: vec![self.level.clone()],
            state: effect.map(|_| ReportRowState::Warning),
            details: effect.map_or_else(String::new, |reason| {
                format!(
                    "{} = {}\nSet in: {}\nNo effect, because {reason}",
                    self.subject, self.level, self.origin
                )
            }),
            ..ReportRow::default()
        }
    }
}

/// Returns the rules in effect, in order of evaluation, from the `permission` values of the config.
pub(crate) fn rules_in_force(setup: &LoadedProject) -> Vec<PermissionRuleRow> {
    let values = setup.config.effective_values().iter();
    let dead_rules = setup.dead_rules();
    values
        .filter_map(|(name, level, origin)| {
            let subject = match name.strip_prefix("permission")? {
                "" => "*",
                subject => subject.strip_prefix('.')?,
            };
            let dead = dead_rules.iter().find(|dead| dead.origin.as_ref() == Some(origin));
            Some(PermissionRuleRow {
                no_effect: dead.map(|dead| format!("{}. {}", dead.rule.reason, dead.rule.advice)),
                subject: subject.to_owned(),
                level: level.clone(),
                origin: origin.to_string(),
            })
        })
        .collect()
}

/// Returns the approvals saved for the project, oldest first.
pub(crate) fn project_approvals(setup: &LoadedProject) -> anyhow::Result<Vec<StoredApproval>> {
    Ok(ApprovalStore::read(&setup.dirs)?.for_project(setup.dirs.project_of(&setup.root)))
}

/// Returns the approvals that a session remembers from answers for the session, in words.
fn session_approvals(events: &[FactRecord]) -> Vec<String> {
    let mut asked: HashMap<CallId, (&[ToolAccess], Option<&ApprovalKind>)> = HashMap::new();
    let mut approvals: Vec<String> = Vec::new();
    for record in events {
        match &record.fact {
            Fact::PermissionAsked { call, accesses, approval_kind, .. } => {
                asked.insert(*call, (accesses.as_slice(), approval_kind.as_ref()));
            }
            Fact::PermissionAnswered { call, answer }
                if answer.scope() == Some(ApprovalScope::Session) =>
            {
                let Some((accesses, kind)) = asked.get(call) else { continue };
                let leaves_sandbox =
                    |access: &ToolAccess| matches!(access, ToolAccess::LeaveSandbox { .. });
                if accesses.iter().any(leaves_sandbox) {
                    continue;
                }
                let approval = match (answer, kind) {
                    (PermissionAnswer::Kind { .. }, Some(kind)) => kind.describe(),
                    _ => {
                        let accesses = accesses.iter().map(ProjectApproval::for_access);
                        let texts: Vec<String> =
                            accesses.map(|it| format!("{} {}", it.key, it.subject)).collect();
                        to_one_line(&texts.join(", "))
                    }
                };
                if !approvals.contains(&approval) {
                    approvals.push(approval);
                }
            }
            // Approvals of the other session are not copied.
            Fact::ApprovalsRevoked | Fact::SessionForked { .. } => approvals.clear(),
            _ => {}
        }
    }
    approvals
}

/// Returns the [`ReportRow::id`] of an approval of the project.
fn approval_id(approval: &StoredApproval) -> String {
    format!("{}\n{}", approval.key, approval.subject)
}

/// Ends the approval with this [`ReportRow::id`] for the project, also in all engines of the process.
pub(crate) fn revoke_project_approval(setup: &LoadedProject, id: &str) -> anyhow::Result<()> {
    let mut store = ApprovalStore::read(&setup.dirs)?;
    let project = setup.dirs.project_of(&setup.root);
    let approvals = store.for_project(project);
    let mut numbered = approvals.into_iter().enumerate();
    let Some((index, approval)) = numbered.find(|(_, approval)| approval_id(approval) == id) else {
        anyhow::bail!("this approval does not exist any more; open the list again");
    };
    store.remove(project, index + 1)?;
    let approval = ProjectApproval { key: approval.key, subject: approval.subject };
    setup.context.approvals.remove(&approval);
    Ok(())
}

/// Returns the rows of the report; `events` are those of the open session.
pub(crate) fn report_rows(
    setup: &LoadedProject,
    events: &[FactRecord],
) -> anyhow::Result<Vec<ReportRow>> {
    let session_row = |approval: String| ReportRow {
        id: SESSION_APPROVALS_ID.to_owned(),
        group: ReportGroup::SessionApprovals,
        name: approval,
        note: "revoking ends all approvals of this session".to_owned(),
        actions: vec![ReportAction::Revoke],
        ..ReportRow::default()
    };
    let now = crate::now_millis();
    let project_row = |approval: &StoredApproval| ReportRow {
        id: approval_id(approval),
        group: ReportGroup::ProjectApprovals,
        name: to_one_line(&format!("{} {}", approval.key, approval.subject)),
        columns: vec![format_age(approval.at, now)],
        actions: vec![ReportAction::Revoke],
        ..ReportRow::default()
    };
    let mut rows: Vec<ReportRow> = session_approvals(events).into_iter().map(session_row).collect();
    rows.extend(project_approvals(setup)?.iter().map(project_row));
    rows.extend(rules_in_force(setup).iter().map(PermissionRuleRow::to_row));
    Ok(rows)
}
