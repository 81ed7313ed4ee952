//! What can be chosen from: files, models, agents, commands.

use super::around;
use super::house::{House, fault};
use crate::{command, init, models};
use windlass_llm::catalog::Model;
use windlass_project::{Commands, Employer, Run};
use windlass_protocol::wire::{Answered, Health, Listing, Row};
use windlass_protocol::{Fact, Fault, Purpose, Query, Reply, SessionSummary};
use windlass_sandbox::Workspace;

/// No list of files is longer.
const MOST_FILES: usize = 100_000;

/// In so many sessions it is looked which models were asked last, among so many last facts.
const RECENT: usize = 20;
const LATELY: u64 = 100;

impl House {
    /// Lists something.
    pub(super) async fn list(&self, what: Listing) -> Result<Answered, Fault> {
        let rows = match what {
            Listing::Files => self.files(),
            Listing::Models => Ok(self.models().await),
            Listing::Agents => self.agents(),
            Listing::Commands => self.commands(),
        };
        Ok(Answered::Rows { rows: rows.map_err(|error| fault(&error))? })
    }

    fn files(&self) -> anyhow::Result<Vec<Row>> {
        let found = Workspace::at(&self.setup.root)?.census(&|_| true, MOST_FILES);
        let row = |(name, _)| Row { name, ..Row::default() };
        let mut rows: Vec<Row> = found.into_iter().map(row).collect();
        rows.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(rows)
    }

    /// The model in use first, then those that were asked last, then those of each provider that can be
    /// asked, the best first.
    async fn models(&self) -> Vec<Row> {
        let row = |name: String, model: Option<&Model>| {
            let note = model.map_or_else(String::new, models::told);
            let note = note.split_whitespace().collect::<Vec<_>>().join(" ");
            Row { name, note, health: Health::Good }
        };
        let mut rows = Vec::new();
        let near = self.near().await;
        for (provider, _) in self.setup.ready() {
            if near.iter().any(|(id, ..)| *id == provider) {
                continue;
            }
            let models = self.setup.models_of(&provider);
            let ranked = around::ranked(&models).into_iter();
            rows.extend(ranked.map(|(id, model)| row(format!("{provider}/{id}"), Some(model))));
        }
        for (provider, _, models) in near {
            rows.extend(models.into_iter().map(|id| row(format!("{provider}/{id}"), None)));
        }
        let current = self.setup.config.model.as_ref().map(|(name, _)| name.clone());
        if let Some(name) =
            current.as_ref().filter(|name| !rows.iter().any(|row| row.name == **name))
        {
            rows.push(row(name.clone(), None));
        }
        let first: Vec<String> = current.into_iter().chain(self.asked_last().await).collect();
        rows.sort_by_key(|row| {
            first.iter().position(|name| *name == row.name).unwrap_or(first.len())
        });
        rows
    }

    /// The models of the last sessions, the last one first. The log has them; nothing else is kept.
    async fn asked_last(&self) -> Vec<String> {
        let Ok(engine) = self.bare().await else { return Vec::new() };
        let Ok(Reply::Sessions { sessions }) =
            engine.query(Query::Sessions { workspace: None }).await
        else {
            return Vec::new();
        };
        let mut models = Vec::new();
        for SessionSummary { session, length, .. } in sessions.into_iter().take(RECENT) {
            let after = length.saturating_sub(LATELY);
            let query = Query::Events { session, after, most: None };
            let Ok(Reply::Events { events }) = engine.query(query).await else { continue };
            models.extend(events.into_iter().rev().filter_map(|record| match record.fact {
                Fact::StepStarted { model, purpose: Purpose::Answer, .. } => Some(model),
                _ => None,
            }));
        }
        models
    }

    fn agents(&self) -> anyhow::Result<Vec<Row>> {
        let profiles = self.setup.profiles()?.all;
        let ours = profiles.into_iter().filter(|profile| profile.employer != Employer::Agent);
        let row = |profile: windlass_project::Profile| Row {
            name: profile.name,
            note: profile.description,
            health: Health::Good,
        };
        Ok(ours.map(row).collect())
    }

    fn commands(&self) -> anyhow::Result<Vec<Row>> {
        let commands = Commands::load(&self.setup.places, &self.setup.config)?;
        let row = |command: windlass_project::Command| Row {
            name: command.name,
            note: command.description,
            health: Health::Good,
        };
        let brought = self.setup.prompts().into_iter().map(|(server, card)| Row {
            name: format!("{server}:{}", card.name),
            note: match card.arguments.as_slice() {
                [] => card.description,
                arguments => format!("{} ({})", card.description, arguments.join(", ")),
            },
            health: Health::Good,
        });
        Ok(commands.all.into_iter().map(row).chain(brought).collect())
    }

    /// What a command asks, and what is to run before.
    pub(super) async fn command(
        &self,
        name: &str,
        arguments: &str,
    ) -> Result<(String, Vec<Run>), Fault> {
        let own = Commands::load(&self.setup.places, &self.setup.config);
        let own = own.is_ok_and(|own| own.find(name).is_some());
        if name == "init" && !own {
            return Ok((init::prompt(arguments), Vec::new()));
        }
        let engine = self.bare().await?;
        let drafted = command::prompt(&self.setup, &engine, name, Some(arguments)).await;
        drafted.map_err(|error| fault(&error))
    }
}
