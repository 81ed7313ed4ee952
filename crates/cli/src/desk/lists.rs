//! What can be chosen from: files, models, agents, commands.

use super::around;
use super::house::{House, fault};
use crate::{command, init, models};
use windlass_llm::catalog::Model;
use windlass_project::{Commands, Employer};
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Health, Listing, Row};
use windlass_sandbox::Workspace;

/// No list of files is longer.
const MOST_FILES: usize = 100_000;

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

    /// The model in use first, then those of each provider that can be asked, the best first.
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
        if let Some((name, _)) = &self.setup.config.model {
            let (used, others): (Vec<Row>, Vec<Row>) =
                rows.into_iter().partition(|row| row.name == *name);
            let used = used.into_iter().next().unwrap_or_else(|| row(name.clone(), None));
            rows = std::iter::once(used).chain(others).collect();
        }
        rows
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
        Ok(commands.all.into_iter().map(row).collect())
    }

    /// What a command asks.
    pub(super) async fn command(&self, name: &str, arguments: &str) -> Result<Answered, Fault> {
        let own = Commands::load(&self.setup.places, &self.setup.config);
        let own = own.is_ok_and(|own| own.find(name).is_some());
        if name == "init" && !own {
            return Ok(Answered::Prompt { text: init::prompt(arguments) });
        }
        let engine = self.bare().await?;
        let (text, runs) = command::prompt(&self.setup, &engine, name, Some(arguments))
            .await
            .map_err(|error| fault(&error))?;
        if let Some(run) = runs.first() {
            let message = format!(
                "the command {name} wants `{}` run first, which only `windlass run --command {name}` \
                 does",
                run.command
            );
            return Err(Fault::Config { message });
        }
        Ok(Answered::Prompt { text })
    }
}
