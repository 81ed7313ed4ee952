//! Implements `windlass permission …`: lists rules and approvals, explains decisions, and saves and
//! revokes approvals.

use super::agent::agent_restrictions;
use super::agent::with_valid_rules;
use crate::reports::permissions::{PermissionRuleRow, project_approvals, rules_in_force};
use crate::setup::LoadedProject;
use crate::terminal::output;
use crate::{CliExit, args};
use anyhow::bail;
use serde_json::{Value, json};
use windlass_permission::{Decision, PermissionLevel, quote};
use windlass_project::{AgentConfig, ApprovalStore, ConfigFlags};
use windlass_protocol::display_text::{format_age, to_one_line};
use windlass_protocol::{AgentRole, DEFAULT_AGENT, PermissionMode, ProjectApproval, ToolAccess};

/// Runs a `windlass permission` command.
pub(crate) async fn run_permission(command: args::PermissionCommand) -> anyhow::Result<CliExit> {
    match command {
        args::PermissionCommand::List { json } => list_rules(json),
        args::PermissionCommand::Rehearse { file, project, json } => {
            super::permission_rehearsal::rehearse_rules(&file, project, json).await
        }
        args::PermissionCommand::Approve { access } => approve_access(access),
        args::PermissionCommand::Revoke { number, .. } => revoke_approvals(number),
        args::PermissionCommand::Explain { command, output, workspace, mode, agent } => {
            let flags = ConfigFlags { mode, ..ConfigFlags::default() };
            let setup = LoadedProject::load_at(workspace.as_deref(), flags)?;
            let name = agent.as_deref().unwrap_or(DEFAULT_AGENT);
            let agent = find_agent(&setup, name).await?;
            let mut explanation = explain_command(&command, &setup, &agent)?;
            let rules = rules_in_force(&setup).into_iter();
            explanation.applied_rules.extend(rules.map(|rule| rule.describe(" ")));
            explanation.applied_rules.extend(agent.permissions.iter().flat_map(|rules| {
                let rows = rule_rows(rules).into_iter();
                rows.map(|(subject, level)| format!("{subject} = {level} (agent {})", agent.name))
            }));
            match output {
                args::OutputFormat::Json => {
                    output::print_json(&serde_json::to_string_pretty(&explanation.to_json())?);
                }
                args::OutputFormat::Text => explanation.print(),
            }
            Ok(CliExit::Done)
        }
    }
}

/// Returns the agent of this name.
async fn find_agent(setup: &LoadedProject, name: &str) -> anyhow::Result<AgentConfig> {
    let agents = with_valid_rules(setup.load_agent_configs().await?);
    let Some(agent) = agents.find(name) else {
        bail!("unknown agent `{name}`; run `windlass agent list` to see all agents");
    };
    Ok(agent.clone())
}

/// Returns the keys with their patterns and the levels of a `permission` value.
fn rule_rows(rules: &Value) -> Vec<(String, String)> {
    let text = |level: &Value| {
        let name = level.as_str().or_else(|| level.get("level")?.as_str());
        name.unwrap_or_default().to_owned()
    };
    let Some(keys) = rules.as_object() else { return vec![("*".to_owned(), text(rules))] };
    let rows = keys.iter().flat_map(|(key, value)| match value.as_object() {
        Some(patterns) => {
            let row = |(pattern, level)| (format!("{key} {pattern}"), text(level));
            patterns.iter().map(row).collect()
        }
        None => vec![(key.clone(), text(value))],
    });
    rows.collect()
}

/// Saves an approval for the project, as the answer to a question about it would.
fn approve_access(access: args::ApprovableAccess) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let (approval, effect) = match access {
        args::ApprovableAccess::Registries => {
            (ProjectApproval::registries(), "commands may download from package registries")
        }
    };
    ApprovalStore::read(&setup.dirs)?.add(
        &setup.root,
        &approval.key,
        &approval.subject,
        crate::now_millis(),
    )?;
    output::print_note(&format!(
        "{effect} in this project; `windlass permission list` shows the approval, and \
         `windlass permission revoke` removes it"
    ));
    Ok(CliExit::Done)
}

fn list_rules(as_json: bool) -> anyhow::Result<CliExit> {
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let rules = rules_in_force(&setup);
    let approvals = project_approvals(&setup)?;
    if as_json {
        let rules: Vec<Value> = rules
            .iter()
            .map(|rule| {
                let PermissionRuleRow { subject, level, origin, no_effect } = rule;
                let mut row = json!({"rule": subject, "level": level, "origin": origin});
                if let (Value::Object(row), Some(text)) = (&mut row, no_effect) {
                    row.insert("no_effect".to_owned(), text.clone().into());
                }
                row
            })
            .collect();
        let numbered = approvals.iter().zip(1..);
        let approvals: Vec<Value> = numbered
            .map(|(approval, number)| {
                let (key, subject, at) = (&approval.key, &approval.subject, approval.at);
                json!({"number": number, "key": key, "subject": subject, "at": at})
            })
            .collect();
        let all = json!({"rules": rules, "approvals": approvals});
        output::print_json(&serde_json::to_string_pretty(&all)?);
        return Ok(CliExit::Done);
    }
    if rules.is_empty() {
        output::print_note(&format!("no rules; {}", default_behavior(setup.effective_mode())));
    }
    for rule in &rules {
        output::print_line(&to_one_line(&rule.describe("  ")));
    }
    if approvals.is_empty() {
        output::print_note("no saved approvals for this project");
        return Ok(CliExit::Done);
    }
    let now = crate::now_millis();
    output::print_note(
        "saved approvals for this project (remove one with `windlass permission revoke NUMBER`):",
    );
    for (approval, number) in approvals.iter().zip(1..) {
        let age = format_age(approval.at, now);
        let line = format!("{number:>4}  {}  {}  ({age})", approval.key, approval.subject);
        output::print_line(&to_one_line(&line));
    }
    Ok(CliExit::Done)
}

/// Describes the behavior of a [`PermissionMode`] when no rule matches.
fn default_behavior(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Plan => {
            "plan mode allows reading and read-only commands; nothing in the project is changed"
        }
        PermissionMode::Ask => {
            "ask mode allows reading and read-only commands; everything else requires approval"
        }
        PermissionMode::Auto => {
            "auto mode allows reading and edits in the project, and commands that stay in it and \
             in the sandbox; everything else requires approval"
        }
        PermissionMode::Full => {
            "full mode allows everything that no rule denies and that is not protected; it never \
             asks, and commands cannot leave the sandbox"
        }
    }
}

/// Revokes the approval with this number, or all of them for `None`.
fn revoke_approvals(number: Option<usize>) -> anyhow::Result<CliExit> {
    let (dirs, root) = LoadedProject::find_dirs()?;
    let mut approvals = ApprovalStore::read(&dirs)?;
    let Some(number) = number else {
        let count = approvals.clear(&root)?;
        output::print_note(&match count {
            0 => "no saved approvals to revoke".to_owned(),
            _ => format!("{count} revoked; they will require approval again"),
        });
        return Ok(CliExit::Done);
    };
    match approvals.remove(&root, number)? {
        Some(approval) => {
            let description = to_one_line(&format!("{} {}", approval.key, approval.subject));
            output::print_note(&format!("revoked; it will require approval again: {description}"));
            Ok(CliExit::Done)
        }
        None => {
            bail!(
                "approval {number} not found; run `windlass permission list` to see all approvals"
            )
        }
    }
}

/// The permission decision for a command, with its reasons.
pub(crate) struct CommandPermissionExplanation {
    pub(crate) verdict: PermissionLevel,
    pub(crate) mode: PermissionMode,
    /// The reason for asking or denying; empty if the command is allowed.
    pub(crate) reason: String,
    /// The simple commands of the command line, in source order.
    pub(crate) segments: Vec<SegmentPermissionExplanation>,
    /// Reasons why the command line may do more than its simple commands.
    pub(crate) ambiguities: Vec<String>,
    /// The command kind that a saved approval could cover.
    pub(crate) command_kind: Option<String>,
    /// The rules considered for the decision.
    pub(crate) applied_rules: Vec<String>,
}

/// One simple command of the command line, with its decision.
pub(crate) struct SegmentPermissionExplanation {
    pub(crate) text: String,
    pub(crate) words: Vec<String>,
    pub(crate) verdict: PermissionLevel,
    pub(crate) reason: String,
    pub(crate) rule: Option<String>,
}

/// Evaluates a command with the [`Policy`](windlass_permission::Policy) of this project, without
/// running it.
fn explain_command(
    command: &str,
    setup: &LoadedProject,
    agent: &AgentConfig,
) -> anyhow::Result<CommandPermissionExplanation> {
    let policy = setup.build_policy(setup.machine_paths()?, setup.effective_mode())?;
    let restrictions = agent_restrictions(agent)?;
    let policy = match agent.role {
        AgentRole::Primary | AgentRole::All => restrictions.apply_to(policy),
        AgentRole::Subagent => restrictions.apply_to_subagent(policy),
    };
    let access = ToolAccess::RunCommand { command: command.to_owned(), folder: ".".to_owned() };
    let Some(command_verdict) = policy.evaluate_command(command, ".") else {
        bail!("cannot evaluate commands here: paths cannot be resolved");
    };
    let has_bash = !policy.is_removed("bash") && !policy.denies_outright("bash");
    let (verdict, reason) = match policy.decide(vec![access], &[]) {
        _ if !has_bash => (PermissionLevel::Deny, format!("{} has no tool bash", agent.name)),
        Decision::Allowed(_) => (PermissionLevel::Allow, String::new()),
        Decision::Ask(question) => (PermissionLevel::Ask, question.reason().to_owned()),
        Decision::Denied { reason } => (PermissionLevel::Deny, reason),
    };
    let segments =
        command_verdict.segments.into_iter().map(|segment| SegmentPermissionExplanation {
            text: segment.text,
            words: segment.words,
            verdict: segment.level,
            reason: segment.reason,
            rule: segment.rule,
        });
    Ok(CommandPermissionExplanation {
        verdict,
        mode: policy.mode(),
        reason,
        segments: segments.collect(),
        ambiguities: command_verdict.ambiguities,
        command_kind: command_verdict.approval_template,
        applied_rules: Vec::new(),
    })
}

impl CommandPermissionExplanation {
    fn to_json(&self) -> Value {
        let segments: Vec<Value> =
            self.segments.iter().map(SegmentPermissionExplanation::to_json).collect();
        let verdict = self.verdict.to_string();
        json!({
            "verdict": verdict,
            "mode": self.mode,
            "reason": self.reason,
            "segments": segments,
            "ambiguities": self.ambiguities,
            "kind": self.command_kind,
            "rules": self.applied_rules,
        })
    }

    fn print(&self) {
        let separator = if self.reason.is_empty() { "" } else { ": " };
        let headline = format!("{} in mode {}{separator}{}", self.verdict, self.mode, self.reason);
        output::print_line(&to_one_line(&headline));
        for segment in &self.segments {
            output::print_line(&to_one_line(&format!("  {}: {}", segment.verdict, segment.text)));
            if !segment.words.is_empty() {
                output::print_line(&to_one_line(&format!("    words: {}", quote(&segment.words))));
            }
            let rule = segment.rule.as_ref().map(|rule| format!(" [{rule}]")).unwrap_or_default();
            output::print_line(&to_one_line(&format!("    {}{rule}", segment.reason)));
        }
        for ambiguity in &self.ambiguities {
            output::print_line(&format!("  ambiguous: {ambiguity}"));
        }
        if let Some(kind) = &self.command_kind {
            output::print_line(&to_one_line(&format!("  a saved approval could cover: {kind}")));
        }
        for rule in &self.applied_rules {
            output::print_line(&to_one_line(&format!("  rule: {rule}")));
        }
    }
}

impl SegmentPermissionExplanation {
    fn to_json(&self) -> Value {
        json!({
            "text": self.text,
            "words": self.words,
            "verdict": self.verdict.to_string(),
            "reason": self.reason,
            "rule": self.rule,
        })
    }
}
