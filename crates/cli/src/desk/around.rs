//! What models could be asked here: keys that are set, servers that answer on this machine.

use super::house::House;
use crate::setup::Setup;
use futures_util::future::join_all;
use std::cmp::Reverse;
use std::time::Duration;
use windlass_llm::catalog::{self, Auth, Model};
use windlass_llm::nearby;
use windlass_protocol::wire::Found;

/// How long a server on this machine may take to answer.
const PATIENCE: Duration = Duration::from_millis(400);
/// So many models of a provider are offered at first.
const OFFERED: usize = 8;
/// A model with less room is soon full of code, and this much is plenty.
const ROOM: u64 = 100_000;
const PLENTY: u64 = 400_000;
/// What a million tokens of output may cost for a model to be offered first, in dollars.
const DEAR: f64 = 20.0;

impl House {
    /// Looks around: what can be asked at once, then what needs a key.
    pub(super) async fn look_around(&self) -> Vec<Found> {
        let ready = self.setup.ready();
        let near = self.near().await;
        let mut found = Vec::new();
        for (provider, how) in ready {
            if near.iter().any(|(id, ..)| *id == provider) {
                continue;
            }
            let models = named(&provider, &self.setup.models_of(&provider), OFFERED);
            found.push(Found { provider, how, ready: true, models });
        }
        for (provider, address, models) in near {
            let how = format!("{} answers at {address}", name(&provider));
            let models = models.iter().map(|model| format!("{provider}/{model}")).collect();
            found.push(Found { provider, how, ready: true, models });
        }
        for row in catalog::PROVIDERS.iter().filter(|row| row.auth != Auth::Optional) {
            if found.iter().any(|other| other.provider == row.id) {
                continue;
            }
            let how = format!("needs a key; {} makes them", row.keys_at);
            let models = named(row.id, &self.setup.models_of(row.id), OFFERED);
            found.push(Found { provider: row.id.to_owned(), how, ready: false, models });
        }
        found
    }

    /// The servers on this machine that answer: the provider, the address, the models.
    pub(super) async fn near(&self) -> Vec<(String, String, Vec<String>)> {
        let local = catalog::PROVIDERS.iter().filter(|row| row.auth == Auth::Optional);
        let asked = local.filter_map(|row| {
            let said = self.setup.config.providers.get(row.id);
            let said = said.and_then(|(said, _)| said.base_url.clone());
            let url = said.or_else(|| row.url(Setup::env).ok())?;
            Some(async move {
                let models = nearby::models(&url, PATIENCE).await?;
                let address = url.trim_start_matches("http://").split('/').next();
                Some((row.id.to_owned(), address.unwrap_or_default().to_owned(), models))
            })
        });
        join_all(asked).await.into_iter().flatten().collect()
    }
}

fn name(provider: &str) -> &str {
    catalog::provider(provider).map_or(provider, |row| row.name)
}

/// The models of a provider, as a person names them, the best first.
pub(super) fn named(provider: &str, models: &[(String, Model)], most: usize) -> Vec<String> {
    let suited = ranked(models);
    suited.into_iter().take(most).map(|(id, _)| format!("{provider}/{id}")).collect()
}

/// Models that can work with tools: those that think and have room first, then the newest, going by
/// the number in the name, then the ablest, going by the price.
pub(super) fn ranked(models: &[(String, Model)]) -> Vec<&(String, Model)> {
    let mut suited: Vec<&(String, Model)> =
        models.iter().filter(|(_, model)| model.calls).collect();
    suited.sort_by_key(|(id, model)| {
        let room = model.context.unwrap_or_default();
        let price = model.price.output.unwrap_or_default();
        let fits = (room >= ROOM || model.context.is_none(), model.reasons, price <= DEAR);
        Reverse((fits, room >= PLENTY, version(id), (price * 100.0) as u64, Reverse(id.len())))
    });
    suited
}

/// The first number in a name, with a second one behind a dot or a dash. A date is none.
fn version(id: &str) -> (u32, u32) {
    let number = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, rest) = text.split_at_checked(end)?;
        let short = (1..=3).contains(&digits.len());
        Some((digits.parse::<u32>().ok().filter(|_| short)?, rest.to_owned()))
    };
    let start = id.find(|c: char| c.is_ascii_digit()).unwrap_or(id.len());
    let Some((major, rest)) = id.get(start..).and_then(number) else { return (0, 0) };
    let minor = rest.strip_prefix(['.', '-']).and_then(number);
    (major, minor.map_or(0, |(minor, _)| minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(provider: &str) -> Vec<String> {
        let models: Vec<_> =
            catalog::models(provider).map(|model| (model.id.clone(), model)).collect();
        named(provider, &models, 3)
    }

    #[test]
    fn the_first_model_that_is_offered_is_new_able_and_not_the_dearest() {
        for provider in ["anthropic", "openai", "google", "deepseek", "xai"] {
            let offered = best(provider);
            let first = offered.first().unwrap().split_once('/').unwrap().1;
            let model = catalog::model(provider, first).unwrap();
            assert!(model.calls && model.reasons, "{first}");
            assert!(model.context.unwrap() >= ROOM, "{first}");
            assert!(model.price.output.unwrap() <= DEAR, "{first}");
            assert!(!first.contains("-mini") && !first.contains("-lite"), "{first}");
        }
    }

    #[test]
    fn a_version_is_the_first_number_and_no_date() {
        for (id, wanted) in [
            ("claude-sonnet-5", (5, 0)),
            ("claude-sonnet-4-6", (4, 6)),
            ("claude-sonnet-4-20250514", (4, 0)),
            ("gpt-5.4-mini", (5, 4)),
            ("gemini-flash-latest", (0, 0)),
            ("mistral-large-2411", (0, 0)),
            ("", (0, 0)),
        ] {
            assert_eq!(version(id), wanted, "{id}");
        }
    }
}
