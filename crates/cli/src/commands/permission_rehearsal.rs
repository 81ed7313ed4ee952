//! Implements `windlass permission rehearse`: decides the recorded calls of all sessions again, by
//! the rules in effect and by the rules of a file, and shows the difference.
//!
//! Nothing is run and no session is changed. Hooks and agents are not part of it, so a call that an
//! agent of the user's own allowed is shown as the rules alone decide it.

use crate::CliExit;
use crate::setup::{LoadedProject, ProjectContext};
use crate::terminal::output;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use windlass_permission::{Decision, PermissionLevel, PermissionRules, Policy};
use windlass_project::ConfigFlags;
use windlass_protocol::display_text::{pluralize, to_one_line, truncate_chars};
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Fact, PermissionMode, SessionId, ToolAccess,
};
use windlass_storage::{Log, SessionFilter, SqliteLog};

/// Limit for a file with rules.
const MAX_RULES_BYTES: u64 = 1 << 20;
/// Limit for the examples of one group.
const MAX_EXAMPLES: usize = 3;
/// Limit for the length of an example, in characters.
const MAX_EXAMPLE_CHARS: usize = 120;

/// The policies of one project: by the rules in effect and by the rules of the file.
struct ComparedPolicies {
    mode: PermissionMode,
    current: Policy,
    new: Policy,
}

/// A recorded call until its outcome is known.
struct RecordedCall {
    tool: String,
    arguments: String,
    accesses: Option<Vec<ToolAccess>>,
    recorded: &'static str,
}

/// A change of the decision: before, after, and the rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct DecisionChange {
    from: PermissionLevel,
    to: PermissionLevel,
    /// The new rule that decides, or the old one that is gone.
    rule: String,
}

/// A call that the new rules decide in another way.
struct ChangedCall {
    session: SessionId,
    call: CallId,
    tool: String,
    subject: String,
    recorded: &'static str,
}

/// The result so far.
#[derive(Default)]
struct RehearsalReport {
    sessions: usize,
    skipped_sessions: usize,
    calls: usize,
    /// Calls whose accesses are not recorded, because they failed before the decision.
    undecided_calls: usize,
    changes: BTreeMap<DecisionChange, (usize, Vec<ChangedCall>)>,
}

/// Runs `windlass permission rehearse`.
pub(crate) async fn rehearse_rules(
    file: &str,
    project_only: bool,
    as_json: bool,
) -> anyhow::Result<CliExit> {
    let rules = read_rules(file)?;
    let setup = LoadedProject::load(ConfigFlags::default())?;
    let mut report = RehearsalReport::default();
    if LoadedProject::path_exists(&setup.dirs.data.join("windlass.db")) {
        let log = SqliteLog::open(&setup.dirs.data).await?;
        let mut policies: HashMap<String, Option<ComparedPolicies>> = HashMap::new();
        let own_workspace = setup.workspace_name();
        for row in log.list(&SessionFilter::default()).await? {
            if project_only && row.workspace != own_workspace {
                continue;
            }
            let workspace = row.workspace;
            let compared = policies
                .entry(workspace)
                .or_insert_with_key(|workspace| compare_policies(&setup, workspace, &rules));
            let Some(compared) = compared else {
                report.skipped_sessions += 1;
                continue;
            };
            report.sessions += 1;
            rehearse_session(&log, row.session, compared, &mut report).await?;
        }
    }
    if as_json {
        output::print_json(&serde_json::to_string_pretty(&report.to_json())?);
    } else {
        report.print();
    }
    Ok(CliExit::Done)
}

/// Reads the `permission` rules of a file.
fn read_rules(file: &str) -> anyhow::Result<PermissionRules> {
    let bytes = LoadedProject::read_file(file, MAX_RULES_BYTES)?;
    let text = String::from_utf8(bytes).with_context(|| format!("{file} is not UTF-8"))?;
    let config = windlass_project::parse_config_object(&text)
        .map_err(|error| anyhow::anyhow!("{file}: {error}"))?;
    let Some(rules) = config.get("permission") else {
        bail!("{file} contains no `permission`; write {{\"permission\": {{…}}}}");
    };
    PermissionRules::parse(rules)
        .map_err(|error| anyhow::anyhow!("{file}: permission{}: {error}", error.pointer))
}

/// Returns the policies for the sessions of a folder, if the folder and its config can be read.
fn compare_policies(
    setup: &LoadedProject,
    workspace: &str,
    rules: &PermissionRules,
) -> Option<ComparedPolicies> {
    let root = PathBuf::from(workspace);
    if !root.is_absolute() || !LoadedProject::path_exists(&root) {
        return None;
    }
    let project = LoadedProject::read_config(
        (setup.dirs.clone(), root),
        ConfigFlags::default(),
        ProjectContext::default(),
    );
    let project = project.ok()?;
    let (mode, machine_paths) = (project.effective_mode(), project.machine_paths().ok()?);
    let current = project.build_policy(machine_paths.clone(), mode).ok()?;
    let new = current.clone().with_user_rules(rules.clone());
    Some(ComparedPolicies { mode, current, new })
}

/// Reads the facts of a session page by page, and decides its calls again.
async fn rehearse_session(
    log: &SqliteLog,
    session: SessionId,
    compared: &ComparedPolicies,
    report: &mut RehearsalReport,
) -> anyhow::Result<()> {
    let mut open_calls: BTreeMap<CallId, RecordedCall> = BTreeMap::new();
    let mut decisions = HashMap::new();
    let (mut mode, mut after) = (compared.mode, 0);
    loop {
        let page = log.read(session, after).await?;
        let Some(last) = page.last() else { break };
        after = last.seq;
        for record in page {
            match record.fact {
                Fact::ModeChanged { mode: new_mode } => mode = new_mode,
                Fact::ToolCalled { call, tool, arguments, author: CallAuthor::Model, .. } => {
                    let recorded = "not decided";
                    let accesses = None;
                    let recorded_call = RecordedCall { tool, arguments, accesses, recorded };
                    open_calls.insert(call, recorded_call);
                }
                Fact::PermissionAsked { call, accesses, .. } => {
                    if let Some(open) = open_calls.get_mut(&call) {
                        (open.accesses, open.recorded) = (Some(accesses), "asked");
                    }
                }
                Fact::PermissionAnswered { call, answer } => {
                    if let Some(open) = open_calls.get_mut(&call) {
                        open.recorded = if answer.is_yes() { "approved" } else { "rejected" };
                    }
                }
                Fact::CallStarted { call, accesses, .. } => {
                    if let Some(open) = open_calls.get_mut(&call) {
                        open.accesses = Some(accesses);
                        if open.recorded == "not decided" {
                            open.recorded = "allowed";
                        }
                    }
                }
                Fact::CallSettled { call, outcome, .. } => {
                    if let Some(mut settled) = open_calls.remove(&call) {
                        if settled.accesses.is_none()
                            && matches!(outcome, CallOutcome::Denied { .. })
                        {
                            settled.accesses = accesses_of_denied_call(&settled);
                            settled.recorded = "denied";
                        }
                        let compared = (compared, mode);
                        report.compare_call((session, call), settled, compared, &mut decisions);
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Returns the accesses of a call that was denied, from its arguments: only calls that were asked
/// about or started record them.
fn accesses_of_denied_call(call: &RecordedCall) -> Option<Vec<ToolAccess>> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
    let access = match call.tool.as_str() {
        "bash" => {
            let folder = text("workdir").unwrap_or_else(|| ".".to_owned());
            ToolAccess::RunCommand { command: text("command")?, folder }
        }
        "read" => ToolAccess::Read { path: text("filePath")? },
        "edit" | "write" => ToolAccess::Edit { path: text("filePath")? },
        "skill" => ToolAccess::ReadSkill { name: text("name")? },
        "task" => ToolAccess::Subagent { agent: text("subagent_type")? },
        _ => return None,
    };
    Some(vec![access])
}

/// Returns the level of a call, and the rule about the whole tool if it decides.
fn decide_call(
    policy: &Policy,
    tool: &str,
    accesses: &[ToolAccess],
) -> (PermissionLevel, Option<String>) {
    let mut keys = std::iter::once(tool.to_owned()).chain(windlass_tools::permission_key(tool));
    if let Some(key) = keys.find(|key| policy.denies_outright(key)) {
        return (PermissionLevel::Deny, Some(format!("\"{key}\": \"*\"")));
    }
    match policy.decide(accesses.to_vec(), &[]) {
        Decision::Allowed(_) if policy.tool_ask_reason(tool, accesses).is_some() => {
            (PermissionLevel::Ask, Some(format!("\"{tool}\": \"*\"")))
        }
        Decision::Allowed(_) => (PermissionLevel::Allow, None),
        Decision::Ask(_) => (PermissionLevel::Ask, None),
        Decision::Denied { .. } => (PermissionLevel::Deny, None),
    }
}

/// Returns the user's rules that match the accesses of a call.
fn matching_rules(policy: &Policy, accesses: &[ToolAccess]) -> Option<String> {
    let rules = accesses.iter().filter_map(|access| policy.rule_for_access(access));
    let mut rules: Vec<String> = rules.collect();
    rules.dedup();
    (!rules.is_empty()).then(|| rules.join(", "))
}

/// Compares the decisions of both policies about a call.
fn compare_decisions(
    (compared, mode): (&ComparedPolicies, PermissionMode),
    tool: &str,
    accesses: &[ToolAccess],
) -> Option<DecisionChange> {
    let [current, new] =
        [&compared.current, &compared.new].map(|policy| policy.clone().with_mode(mode));
    let (from, old_tool_rule) = decide_call(&current, tool, accesses);
    let (to, new_tool_rule) = decide_call(&new, tool, accesses);
    if from == to {
        return None;
    }
    let new_rule = new_tool_rule.or_else(|| matching_rules(&new, accesses));
    let rule = new_rule.unwrap_or_else(|| {
        match old_tool_rule.or_else(|| matching_rules(&current, accesses)) {
            Some(rule) => format!("no rule; until now {rule}"),
            None => "no rule".to_owned(),
        }
    });
    Some(DecisionChange { from, to, rule })
}

impl RehearsalReport {
    fn compare_call(
        &mut self,
        (session, call): (SessionId, CallId),
        recorded: RecordedCall,
        (compared, mode): (&ComparedPolicies, PermissionMode),
        decisions: &mut HashMap<String, Option<DecisionChange>>,
    ) {
        self.calls += 1;
        let Some(mut accesses) = recorded.accesses else {
            self.undecided_calls += 1;
            return;
        };
        // The decision adds the network to a command.
        let runs_command = |access: &ToolAccess| matches!(access, ToolAccess::RunCommand { .. });
        if accesses.iter().any(runs_command) {
            accesses.retain(|access| !matches!(access, ToolAccess::Connect { .. }));
        }
        let tool = recorded.tool;
        let key = format!("{mode} {tool} {}", json!(accesses));
        let change = decisions
            .entry(key)
            .or_insert_with(|| compare_decisions((compared, mode), &tool, &accesses));
        let Some(change) = change.clone() else { return };
        let subjects: Vec<&str> = accesses.iter().map(ToolAccess::subject).collect();
        let subject = subjects.join(", ");
        let (count, examples) = self.changes.entry(change).or_default();
        *count += 1;
        let is_new = !examples.iter().any(|example| example.subject == subject);
        if is_new && examples.len() < MAX_EXAMPLES {
            let recorded = recorded.recorded;
            examples.push(ChangedCall { session, call, tool, subject, recorded });
        }
    }

    /// Returns the number of changed calls for each pair of levels.
    fn totals(&self) -> BTreeMap<(PermissionLevel, PermissionLevel), usize> {
        let mut totals = BTreeMap::new();
        for (DecisionChange { from, to, .. }, (count, _)) in &self.changes {
            *totals.entry((*from, *to)).or_default() += count;
        }
        totals
    }

    /// Returns the groups, the largest first.
    fn groups(&self) -> Vec<(&DecisionChange, usize, &[ChangedCall])> {
        let groups = self.changes.iter();
        let mut groups: Vec<_> =
            groups.map(|(change, (count, examples))| (change, *count, &**examples)).collect();
        groups.sort_by_key(|(_, count, _)| std::cmp::Reverse(*count));
        groups
    }

    fn to_json(&self) -> Value {
        let changes: Vec<Value> = self
            .totals()
            .into_iter()
            .map(|((from, to), count)| {
                json!({"from": from.to_string(), "to": to.to_string(), "count": count})
            })
            .collect();
        let groups: Vec<Value> = self
            .groups()
            .into_iter()
            .map(|(DecisionChange { from, to, rule }, count, examples)| {
                let examples: Vec<Value> = examples
                    .iter()
                    .map(|ChangedCall { session, call, tool, subject, recorded }| {
                        json!({"session": session, "call": call, "tool": tool,
                            "subject": subject, "recorded": recorded})
                    })
                    .collect();
                let (from, to) = (from.to_string(), to.to_string());
                json!({"from": from, "to": to, "rule": rule, "count": count,
                    "examples": examples})
            })
            .collect();
        json!({
            "sessions": self.sessions,
            "skipped_sessions": self.skipped_sessions,
            "calls": self.calls,
            "undecided_calls": self.undecided_calls,
            "changes": changes,
            "groups": groups,
        })
    }

    fn print(&self) {
        let totals = self.totals();
        let changed: usize = totals.values().sum();
        output::print_line(&format!(
            "{} in {}; {changed} would be decided differently",
            pluralize(self.calls, "call"),
            pluralize(self.sessions, "session")
        ));
        for ((from, to), count) in &totals {
            output::print_line(&format!("{count:>7}  {from} → {to}"));
        }
        for (DecisionChange { from, to, rule }, count, examples) in self.groups() {
            output::print_line("");
            let calls = pluralize(count, "call");
            output::print_line(&to_one_line(&format!("{from} → {to}, {calls}: {rule}")));
            for ChangedCall { tool, subject, recorded, .. } in examples {
                let subject = truncate_chars(&to_one_line(subject), MAX_EXAMPLE_CHARS);
                output::print_line(&format!("    {tool}: {subject}  ({recorded})"));
            }
        }
        if self.undecided_calls > 0 {
            output::print_note(&format!(
                "{} not compared: they failed before they were decided",
                pluralize(self.undecided_calls, "call")
            ));
        }
        if self.skipped_sessions > 0 {
            output::print_note(&format!(
                "{} not compared: their folder is gone or its config cannot be read",
                pluralize(self.skipped_sessions, "session")
            ));
        }
    }
}
