//! Lists for the front end to choose from: files, models, agents and commands.

use super::model_discovery;
use super::workspace_state::{WorkspaceState, to_fault};
use crate::commands::agent::with_valid_rules;
use crate::commands::{init, models};
use crate::custom_command::{self, PreparedCommand};
use windlass_llm::catalog::Model;
use windlass_project::ConfigOrigin;
use windlass_protocol::frontend_messages::{
    DoctorCheckStatus, HostResponse, ListRow, ListedItemKind, MAX_LISTED_FILES, ModelListItem,
};
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{
    AgentRole, Fact, Fault, PermissionMode, PromptSettings, QueryReply, REVIEW_PROMPT_START,
    REVIEW_TARGET_END, SessionQuery, SessionSummary, StepPurpose, TurnGoal,
};
use windlass_sandbox::Workspace;

/// Number of recent sessions searched for recently used models, and with `MAX_RECENT_FACTS` the
/// number of last facts searched in each.
const MAX_RECENT_SESSIONS: usize = 20;
const MAX_RECENT_FACTS: u64 = 100;

impl WorkspaceState {
    /// Returns the rows of the requested [`ListedItemKind`].
    pub(crate) async fn list_rows(&self, list: ListedItemKind) -> Result<HostResponse, Fault> {
        let rows = match list {
            ListedItemKind::Files => self.list_files(),
            ListedItemKind::Models => {
                return Ok(HostResponse::Models { models: self.list_models().await });
            }
            ListedItemKind::Agents => self.list_agents(AgentRole::is_primary).await,
            ListedItemKind::Subagents => self.list_agents(AgentRole::is_subagent).await,
            ListedItemKind::Skills => self.list_skills(),
            ListedItemKind::Hooks => Ok(self.list_hooks()),
            ListedItemKind::Config => Ok(self.list_settings()),
            ListedItemKind::Commands => self.list_commands().await,
        };
        Ok(HostResponse::Rows { rows: rows.map_err(|error| to_fault(&error))? })
    }

    fn list_files(&self) -> anyhow::Result<Vec<ListRow>> {
        let files = Workspace::open(&self.setup.root)?.list_files(&|_| true, MAX_LISTED_FILES);
        let row = |(name, _)| ListRow { name, ..ListRow::default() };
        let mut rows: Vec<ListRow> = files.into_iter().map(row).collect();
        rows.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(rows)
    }

    /// Lists models: the current one first, then recently used ones, then those of each usable
    /// provider, best first.
    async fn list_models(&self) -> Vec<ModelListItem> {
        let row = |name: String, model: Option<&Model>| {
            let note = model.map_or_else(String::new, models::describe_model);
            let note = note.split_whitespace().collect::<Vec<_>>().join(" ");
            ModelListItem { name, note, ..ModelListItem::default() }
        };
        let mut rows = Vec::new();
        let local = self.find_local_servers().await;
        for (provider, _) in self.setup.ready_providers() {
            if local.iter().any(|(id, ..)| *id == provider) {
                continue;
            }
            let models = self.setup.provider_models(&provider);
            let ranked = model_discovery::rank_models(&models).into_iter();
            rows.extend(ranked.map(|(id, model)| row(format!("{provider}/{id}"), Some(model))));
        }
        for (provider, _, models) in local {
            rows.extend(models.into_iter().map(|id| row(format!("{provider}/{id}"), None)));
        }
        let current = self.setup.config.model.as_ref().map(|(name, _)| name.clone());
        if let Some(name) =
            current.as_ref().filter(|name| !rows.iter().any(|row| row.name == **name))
        {
            rows.push(row(name.clone(), None));
        }
        let recent = self.recent_models().await;
        let changed = lock(&self.memory.favorite_models).clone();
        let favorites = changed.unwrap_or_else(|| self.setup.config.tui.favorite_models.clone());
        for row in &mut rows {
            (row.is_favorite, row.is_recent) =
                (favorites.contains(&row.name), recent.contains(&row.name));
        }
        let preferred: Vec<String> = current.into_iter().chain(recent).collect();
        rows.sort_by_key(|row| {
            preferred.iter().position(|name| *name == row.name).unwrap_or(preferred.len())
        });
        rows
    }

    /// Returns the models of the last sessions, most recent first. They come from the `StepStarted`
    /// facts in the log; no separate history is stored.
    async fn recent_models(&self) -> Vec<String> {
        let Ok(engine) = self.inspect_engine().await else { return Vec::new() };
        let Ok(QueryReply::Sessions { sessions }) =
            engine.query(SessionQuery::Sessions { workspace: None }).await
        else {
            return Vec::new();
        };
        let mut models = Vec::new();
        for SessionSummary { session, fact_count, .. } in
            sessions.into_iter().take(MAX_RECENT_SESSIONS)
        {
            let after = fact_count.saturating_sub(MAX_RECENT_FACTS);
            let query = SessionQuery::Events { session, after, limit: None };
            let Ok(QueryReply::Events { events }) = engine.query(query).await else { continue };
            models.extend(events.into_iter().rev().filter_map(|record| match record.fact {
                Fact::StepStarted { model, purpose: StepPurpose::Answer, .. } => Some(model),
                _ => None,
            }));
        }
        models
    }

    fn list_skills(&self) -> anyhow::Result<Vec<ListRow>> {
        let skills = self.setup.load_skills()?;
        let row = |skill: &windlass_toolkit::SkillDefinition| ListRow {
            name: skill.name.clone(),
            note: format!("{} ({})", skill.description, skill.folder),
            status: DoctorCheckStatus::Ok,
        };
        Ok(skills.iter().map(row).collect())
    }

    fn list_hooks(&self) -> Vec<ListRow> {
        let row = |hook: &windlass_project::HookConfig| {
            let tools = hook.matcher.as_ref().map(|matcher| format!(", tools {matcher}"));
            let plugin = if hook.plugin.is_some() { ", of a plugin" } else { "" };
            let (point, tools) = (hook.point.name(), tools.unwrap_or_default());
            let note = format!("{point}{tools}{plugin}");
            ListRow { name: hook.name.clone(), note, status: DoctorCheckStatus::Ok }
        };
        self.setup.config.hooks.iter().map(row).collect()
    }

    fn list_settings(&self) -> Vec<ListRow> {
        let values = self.setup.config.effective_values().iter();
        let row = |(name, value, origin): &(String, String, ConfigOrigin)| ListRow {
            name: name.clone(),
            note: format!("{value}  ({origin})"),
            status: DoctorCheckStatus::Ok,
        };
        values.map(row).collect()
    }

    async fn list_agents(
        &self,
        is_listed: impl Fn(AgentRole) -> bool,
    ) -> anyhow::Result<Vec<ListRow>> {
        let agents = with_valid_rules(self.setup.load_agent_configs().await?).all;
        // On the screen, plan is a mode. The built-in agent of that name is for the command line.
        let is_plan_mode = |agent: &windlass_project::AgentConfig| {
            agent.origin.is_none() && agent.name == PermissionMode::Plan.name()
        };
        let selectable =
            agents.into_iter().filter(|agent| is_listed(agent.role) && !is_plan_mode(agent));
        let row = |agent: windlass_project::AgentConfig| ListRow {
            name: agent.name,
            note: agent.description,
            status: DoctorCheckStatus::Ok,
        };
        Ok(selectable.map(row).collect())
    }

    async fn list_commands(&self) -> anyhow::Result<Vec<ListRow>> {
        let commands = self.setup.load_commands().await?;
        let row = |command: windlass_project::CustomCommand| ListRow {
            name: command.name,
            note: command.description,
            status: DoctorCheckStatus::Ok,
        };
        let prompts = self.setup.server_prompts().into_iter().map(|(server, prompt)| ListRow {
            name: format!("{server}:{}", prompt.name),
            note: match prompt.arguments.as_slice() {
                [] => prompt.description,
                arguments => format!("{} ({})", prompt.description, arguments.join(", ")),
            },
            status: DoctorCheckStatus::Ok,
        });
        Ok(commands.all.into_iter().map(row).chain(prompts).collect())
    }

    /// Expands a custom command into its prompt and the shell commands to run first.
    pub(crate) async fn expand_command(
        &self,
        name: &str,
        arguments: &str,
        agent: &str,
    ) -> Result<PreparedCommand, Fault> {
        let commands = self.setup.load_commands().await;
        let command = commands.map(|commands| commands.find(name).cloned()).ok();
        let is_known = command.as_ref().map(Option::is_some);
        if name == "init" && is_known != Some(true) {
            let text = init::init_prompt(arguments);
            return Ok(PreparedCommand { text, ..PreparedCommand::default() });
        }
        if name == "review" && is_known != Some(true) {
            let text = review_prompt(arguments);
            return Ok(PreparedCommand { text, ..PreparedCommand::default() });
        }
        if name == "goal" && is_known != Some(true) {
            return goal_prompt(arguments);
        }
        if is_known == Some(false) && !name.contains(':') {
            let tip = windlass_tui::missing_command_tip(name).unwrap_or("/help lists the commands");
            let message = format!("Unknown command /{name}. {}", tip.trim_end_matches('.'));
            return Err(Fault::Config { message });
        }
        let command_model = |command| custom_command::command_model(&self.setup, command);
        let model = command.flatten().as_ref().and_then(command_model);
        if let Some(name) = &model {
            (self.setup.model_resolver())(name, None)?;
        }
        // The hooks of commands are those of the engine with a model.
        let engine = self.best_engine().await?;
        let command = (name, Some(arguments));
        let prepared = custom_command::expand_command(&self.setup, &engine, command, agent).await;
        let mut prepared = prepared.map_err(|error| to_fault(&error))?;
        prepared.settings.model = model;
        Ok(prepared)
    }
}

/// Returns the prompt of `/review`: about the uncommitted changes, or about a branch.
fn review_prompt(arguments: &str) -> String {
    let scope = match arguments.trim() {
        "" => format!(
            "{REVIEW_PROMPT_START}, and the untracked files. If there are none, review the last \
             commit."
        ),
        branch => format!(
            "Review {branch}{REVIEW_TARGET_END} {branch}) {branch}`, or `git diff {branch}...HEAD` \
             if it is the base of the current branch."
        ),
    };
    format!(
        "{scope}\n\nRead the code around the changes before you judge them. Change nothing. Report \
         what is wrong, worst first: each finding with file and line, what happens, and how to fix \
         it. Look for errors, broken edge cases, security problems, missing tests and documents \
         that are no longer true; leave style to the formatter. If nothing is wrong, say so."
    )
}

/// Returns the prompt of `/goal`.
fn goal_prompt(arguments: &str) -> Result<PreparedCommand, Fault> {
    let arguments = arguments.trim();
    let (text, goal) = match arguments.strip_prefix('!').map(str::trim) {
        None if !arguments.is_empty() => {
            let condition = arguments.to_owned();
            (format!("Work until this is reached: {condition}"), TurnGoal::Judged { condition })
        }
        Some(command) if !command.is_empty() => {
            let text = format!("Work until this command succeeds: `{command}`");
            (text, TurnGoal::Command { command: command.to_owned() })
        }
        Some(_) | None => {
            let message = "Name the goal: /goal CONDITION, or /goal !COMMAND that must succeed";
            return Err(Fault::Config { message: message.to_owned() });
        }
    };
    let settings = PromptSettings { goal: Some(goal), ..PromptSettings::default() };
    Ok(PreparedCommand { text, settings, ..PreparedCommand::default() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_protocol::command_of_prompt;

    #[test]
    fn the_prompts_of_commands_are_recognized() {
        for (prompt, command) in [
            (init::init_prompt(""), "/init"),
            (init::init_prompt(" name the tests "), "/init name the tests"),
            (review_prompt(""), "/review"),
            (review_prompt(" topic "), "/review topic"),
        ] {
            assert_eq!(command_of_prompt(&prompt).as_deref(), Some(command), "{prompt}");
        }
        assert_eq!(command_of_prompt("Review topic, please."), None);
    }
}
