//! The catalog of providers and models: the deviations of each provider from its wire format, and
//! the capabilities of its models.
//!
//! Providers are entries of a constant, so that the compiler checks them. Models are lines of a
//! table that is parsed only on lookup. Nothing is fetched: a provider or model that is not in the
//! catalog still works, with conservative assumptions. Start reading at [`find_provider`] and
//! [`find_model`].

mod models;
mod providers;
#[cfg(test)]
mod tests;

pub use crate::quirks::{CallIdFormat, Quirks, ReasoningEcho, ReasoningEffortField};
pub use models::{Model, Price, ReasoningBudgetRange, find_model, models_of_provider};
pub use providers::{ALL_PROVIDERS, generic_provider};

use crate::adapt::schema::SchemaSubset;
use crate::wire_format::WireFormat;

/// A provider in the catalog; see `ALL_PROVIDERS`.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// The ID used in the config, such as `anthropic`.
    pub id: &'static str,
    /// The display name.
    pub name: &'static str,
    /// The wire format of its API.
    pub format: WireFormat,
    /// The base URL; all request paths are appended to it. `{NAME}` is a placeholder for a value
    /// from the environment or the config.
    pub base_url: &'static str,
    /// The scheme that sends the API key.
    pub auth: AuthScheme,
    /// Environment variables that may contain the API key; the first one that is set wins.
    pub key_env_vars: &'static [&'static str],
    /// Headers sent with every request.
    pub fixed_headers: &'static [(&'static str, &'static str)],
    /// A page that tells the user how to get an API key or start the server.
    pub key_help_url: &'static str,
    /// The path of a `GET` request that fails with a wrong API key; `None` if there is none that is
    /// documented.
    pub key_check_path: Option<&'static str>,
    /// Deviations of the provider from its wire format.
    pub quirks: Quirks,
}

/// The scheme that sends an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthScheme {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// The bare key in the named header.
    Header(&'static str),
    /// Like `Bearer`, but without a key no header is sent; for servers that usually need none.
    OptionalBearer,
}

/// Returns the provider with this ID or alias (`kimi` for `moonshotai`).
pub fn find_provider(id: &str) -> Option<&'static Provider> {
    let id = match id {
        "together" => "togetherai",
        "fireworks" => "fireworks-ai",
        "moonshot" | "kimi" => "moonshotai",
        "llama.cpp" => "llamacpp",
        "github" => "github-models",
        "gemini" => "google",
        "z.ai" | "zhipu" => "zai",
        "dashscope" | "qwen" => "alibaba",
        "lm-studio" => "lmstudio",
        id => id,
    };
    ALL_PROVIDERS.iter().find(|provider| provider.id == id)
}

impl Provider {
    /// Returns the quirks that apply to one model. A provider that hosts models of many vendors
    /// inherits the requirements of the vendor's own API or of the model's chat template.
    pub fn quirks_for_model(&self, model: &str) -> Quirks {
        let mut quirks = self.quirks;
        let model = model.to_lowercase();
        let name_contains = |words: &[&str]| words.iter().any(|word| model.contains(word));
        if quirks.call_id_format == CallIdFormat::Any {
            if name_contains(&["mistral", "mixtral", "devstral", "codestral"]) {
                quirks.call_id_format = CallIdFormat::NineAlphanumeric;
            } else if name_contains(&["claude"]) {
                quirks.call_id_format = CallIdFormat::Identifier64;
            }
        }
        if quirks.schema_subset == SchemaSubset::Full && name_contains(&["gemini"]) {
            quirks.schema_subset = SchemaSubset::Gemini;
        }
        if quirks.schema_subset == SchemaSubset::Full && name_contains(&["kimi"]) {
            quirks.schema_subset = SchemaSubset::Basic;
        }
        // The chat templates of these models require strict alternation on every server.
        if quirks.inline_calls
            && name_contains(&["mistral", "mixtral", "devstral", "codestral", "gemma"])
        {
            quirks.strict_alternation = true;
        }
        if self.id == "github-models" && model.starts_with("openai/") {
            quirks.max_completion_tokens = true;
        }
        quirks
    }

    /// Returns the base URL with each `{NAME}` replaced by the value from `lookup`, or as the error
    /// the first name without a value.
    pub fn resolve_base_url(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<String, &'static str> {
        let mut url = String::new();
        let mut rest = self.base_url;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            url.push_str(before);
            url.push_str(&lookup(name).ok_or(name)?);
            rest = after;
        }
        url.push_str(rest);
        Ok(url)
    }
}
