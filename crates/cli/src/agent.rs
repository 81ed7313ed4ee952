//! Agents: from what files say to what the engine puts to work. And `windlass agent`.

use crate::{Exit, screen, setup::Setup};
use anyhow::bail;
use serde_json::json;
use std::sync::Arc;
use windlass_engine::{Asked, Role, Worker};
use windlass_permission::Rules;
use windlass_project::{Employer, Flags, Layer, Origin, Profile, Profiles};
use windlass_toolkit::Bounds;

impl Setup {
    /// The agents there are, and a word about those that cannot be used.
    pub(crate) fn profiles(&self) -> anyhow::Result<Profiles> {
        let mut profiles = Profiles::load(&self.places, &self.config)?;
        for diagnostic in &profiles.diagnostics {
            screen::note(&format!("note: {diagnostic}"));
        }
        profiles.all.retain(|profile| match rules(profile) {
            Ok(_) => true,
            Err(error) => {
                let at = place(profile.origin.as_ref());
                screen::note(&format!("note: {at}: permission: {error}; the agent is left out"));
                false
            }
        });
        Ok(profiles)
    }

    /// The agents as the engine puts them to work. Only where a model is asked do they have one.
    pub(crate) fn workers(
        &self,
        profiles: &Profiles,
        asked: Option<&Asked>,
        chosen: Option<&str>,
    ) -> anyhow::Result<Arc<[Arc<Worker>]>> {
        // What the command line says of the model is about the agent that it says, too.
        let by_flag = self.config.model.as_ref().is_some_and(|(_, at)| at.layer == Layer::Flag);
        let fixed = chosen.filter(|_| by_flag);
        let mut workers = Vec::new();
        for profile in &profiles.all {
            workers.push(Arc::new(Worker {
                name: profile.name.clone(),
                description: profile.description.clone(),
                role: match profile.employer {
                    Employer::Person => Role::Primary,
                    Employer::Agent => Role::Subagent,
                    Employer::Both => Role::All,
                },
                prompt: profile.prompt.as_str().into(),
                bounds: Bounds {
                    rules: rules(profile)?,
                    tools: profile.tools.clone(),
                    ceiling: profile.ceiling,
                },
                model: asked
                    .filter(|_| fixed != Some(profile.name.as_str()))
                    .and_then(|asked| self.model_of(profile, asked)),
            }));
        }
        Ok(workers.into())
    }

    /// An agent's own model, if it has one or wants another temperature. One that cannot be had is
    /// told about, and the agent works with the usual one.
    fn model_of(&self, profile: &Profile, asked: &Asked) -> Option<(Asked, Arc<str>)> {
        let usual = self.config.model.as_ref().map(|(name, _)| name.as_str()).unwrap_or_default();
        let mut own = None;
        if let (Some(name), Some(origin)) = (&profile.model, &profile.origin) {
            let chosen = self.choose_named(name, origin, None);
            match chosen.and_then(|choice| choice.asked(None)) {
                Ok(asked) => own = Some((asked, Arc::from(name.as_str()))),
                Err(error) => {
                    let (agent, why) = (&profile.name, crate::words(&error));
                    screen::note(&format!("note: {agent} works with {usual}: {why}"));
                }
            }
        }
        if let Some(temperature) = profile.temperature {
            let (asked, name) = own.unwrap_or_else(|| (asked.clone(), usual.into()));
            let mut options = (*asked.options).clone();
            options.temperature = Some(temperature);
            return Some((Asked { options: Arc::new(options), ..asked }, name));
        }
        own
    }
}

fn rules(profile: &Profile) -> Result<Vec<Rules>, windlass_permission::RuleError> {
    profile.permissions.iter().map(Rules::parse).collect()
}

fn place(origin: Option<&Origin>) -> String {
    origin.map_or_else(|| "built in".to_owned(), ToString::to_string)
}

/// The agent that a person wants to work with.
pub(crate) fn chosen(profiles: &Profiles, name: &str) -> anyhow::Result<String> {
    let fits = |profile: &&Profile| profile.employer != Employer::Agent;
    match profiles.find(name) {
        Some(profile) if fits(&profile) => Ok(name.to_owned()),
        Some(_) => {
            bail!("{name} works for other agents only. Set `mode: all` in its file to work with it")
        }
        None => {
            let known = profiles.all.iter().filter(fits).map(|profile| profile.name.as_str());
            let known = known.collect::<Vec<_>>().join(", ");
            bail!("there is no agent `{name}`. There is: {known}")
        }
    }
}

/// `windlass agent list`.
pub(crate) fn list(as_json: bool) -> anyhow::Result<Exit> {
    let setup = Setup::read(Flags::default())?;
    let profiles = setup.profiles()?;
    if as_json {
        let row = |profile: &Profile| {
            json!({
                "name": profile.name,
                "description": profile.description,
                "mode": profile.employer.name(),
                "model": profile.model,
                "from": place(profile.origin.as_ref()),
            })
        };
        let rows: Vec<_> = profiles.all.iter().map(row).collect();
        screen::json(&serde_json::to_string_pretty(&rows)?);
        return Ok(Exit::Done);
    }
    for profile in &profiles.all {
        let Profile { name, description, employer, .. } = profile;
        let from = place(profile.origin.as_ref());
        screen::line(&format!("{name:<12}  {:<8}  {description}  ({from})", employer.name()));
    }
    Ok(Exit::Done)
}
