//! Discovers usable models: providers with an API key, and local model servers.

use super::workspace_state::WorkspaceState;
use crate::setup::LoadedProject;
use futures_util::future::join_all;
use std::cmp::Reverse;
use std::time::Duration;
use windlass_llm::catalog::{self, AuthScheme, Model};
use windlass_llm::local_servers;
use windlass_protocol::frontend_messages::ProviderListItem;

/// Timeout for a response from a local server.
const LOCAL_SERVER_TIMEOUT: Duration = Duration::from_millis(400);
/// Maximum number of models offered per provider at first.
const MAX_OFFERED_MODELS: usize = 8;
/// A smaller context window fills up quickly with code; `AMPLE_CONTEXT_TOKENS` is plenty.
const MIN_CONTEXT_TOKENS: u64 = 100_000;
const AMPLE_CONTEXT_TOKENS: u64 = 400_000;
/// Maximum price for a million output tokens of a model that is offered first, in dollars.
const MAX_OUTPUT_DOLLARS: f64 = 20.0;

impl WorkspaceState {
    /// Lists providers: first those that are ready to use (`is_ready`), then those that need an API
    /// key.
    pub(crate) async fn discover_providers(&self) -> Vec<ProviderListItem> {
        let ready = self.setup.ready_providers();
        let local = self.find_local_servers().await;
        let mut options = Vec::new();
        for (provider, evidence) in ready {
            if local.iter().any(|(id, ..)| *id == provider) {
                continue;
            }
            let models =
                model_names(&provider, &self.setup.provider_models(&provider), MAX_OFFERED_MODELS);
            options.push(ProviderListItem {
                display_name: display_name(&provider).to_owned(),
                provider,
                evidence,
                is_ready: true,
                takes_key: true,
                models,
            });
        }
        for (provider, address, models) in local {
            let evidence = format!("{} running at {address}", display_name(&provider));
            let models = models.iter().map(|model| format!("{provider}/{model}")).collect();
            options.push(ProviderListItem {
                display_name: display_name(&provider).to_owned(),
                provider,
                evidence,
                is_ready: true,
                takes_key: false,
                models,
            });
        }
        for row in
            catalog::ALL_PROVIDERS.iter().filter(|row| row.auth != AuthScheme::OptionalBearer)
        {
            if options.iter().any(|option| option.provider == row.id) {
                continue;
            }
            let evidence = format!("needs an API key; get one at {}", row.key_help_url);
            let models =
                model_names(row.id, &self.setup.provider_models(row.id), MAX_OFFERED_MODELS);
            options.push(ProviderListItem {
                provider: row.id.to_owned(),
                display_name: row.name.to_owned(),
                evidence,
                is_ready: false,
                takes_key: true,
                models,
            });
        }
        options
    }

    /// Returns the local servers that respond: provider, address and models.
    pub(crate) async fn find_local_servers(&self) -> Vec<(String, String, Vec<String>)> {
        let providers =
            catalog::ALL_PROVIDERS.iter().filter(|row| row.auth == AuthScheme::OptionalBearer);
        let queries = providers.filter_map(|row| {
            let settings = self.setup.config.providers.get(row.id);
            let base_url = settings.and_then(|(settings, _)| settings.base_url.clone());
            let url =
                base_url.or_else(|| row.resolve_base_url(LoadedProject::env_variable).ok())?;
            Some(async move {
                let models = local_servers::list_local_models(&url, LOCAL_SERVER_TIMEOUT).await?;
                let address = url.trim_start_matches("http://").split('/').next();
                Some((row.id.to_owned(), address.unwrap_or_default().to_owned(), models))
            })
        });
        join_all(queries).await.into_iter().flatten().collect()
    }
}

fn display_name(provider: &str) -> &str {
    catalog::find_provider(provider).map_or(provider, |row| row.name)
}

/// Returns the models of a provider as `provider/model`, best first.
pub(crate) fn model_names(provider: &str, models: &[(String, Model)], limit: usize) -> Vec<String> {
    let ranked = rank_models(models);
    ranked.into_iter().take(limit).map(|(id, _)| format!("{provider}/{id}")).collect()
}

/// Ranks the models that support tools: first those with reasoning and a large enough context
/// window, then the newest by the version in the name, then the most capable by price.
pub(crate) fn rank_models(models: &[(String, Model)]) -> Vec<&(String, Model)> {
    let mut ranked: Vec<&(String, Model)> =
        models.iter().filter(|(_, model)| model.calls).collect();
    ranked.sort_by_key(|(id, model)| {
        let context = model.context.unwrap_or_default();
        let price = model.price.output.unwrap_or_default();
        let suitability = (
            context >= MIN_CONTEXT_TOKENS || model.context.is_none(),
            model.reasons,
            price <= MAX_OUTPUT_DOLLARS,
        );
        Reverse((
            suitability,
            context >= AMPLE_CONTEXT_TOKENS,
            parse_version(id),
            (price * 100.0) as u64,
            Reverse(id.len()),
        ))
    });
    ranked
}

/// Parses the first number in a model id as its version, with a minor number after a dot or dash. A
/// date does not count.
fn parse_version(id: &str) -> (u32, u32) {
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

    fn best_models(provider: &str) -> Vec<String> {
        let models: Vec<_> =
            catalog::models_of_provider(provider).map(|model| (model.id.clone(), model)).collect();
        model_names(provider, &models, 3)
    }

    #[test]
    fn the_first_offered_model_is_capable_and_affordable() {
        for provider in ["anthropic", "openai", "google", "deepseek", "xai"] {
            let offered = best_models(provider);
            let first = offered.first().unwrap().split_once('/').unwrap().1;
            let model = catalog::find_model(provider, first).unwrap();
            assert!(model.calls && model.reasons, "{first}");
            assert!(model.context.unwrap() >= MIN_CONTEXT_TOKENS, "{first}");
            assert!(model.price.output.unwrap() <= MAX_OUTPUT_DOLLARS, "{first}");
            assert!(!first.contains("-mini") && !first.contains("-lite"), "{first}");
        }
    }

    #[test]
    fn a_version_is_the_first_number_but_not_a_date() {
        for (id, expected) in [
            ("claude-sonnet-5", (5, 0)),
            ("claude-sonnet-4-6", (4, 6)),
            ("claude-sonnet-4-20250514", (4, 0)),
            ("gpt-5.4-mini", (5, 4)),
            ("gemini-flash-latest", (0, 0)),
            ("mistral-large-2411", (0, 0)),
            ("", (0, 0)),
        ] {
            assert_eq!(parse_version(id), expected, "{id}");
        }
    }
}
