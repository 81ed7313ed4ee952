//! The catalogue: which providers there are, how each departs from its wire format, and what
//! their models can do.
//!
//! Providers are rows of a constant, so that the compiler checks them; models are lines of a
//! table that is read only where somebody asks. Nothing here is fetched: a provider or model the
//! catalogue does not know is still usable, with careful assumptions. Start at [`provider`] and
//! [`model`].

mod models;
mod providers;
#[cfg(test)]
mod tests;

pub use models::{Budget, Model, Price, model, models};
pub use providers::{PROVIDERS, plain};

use crate::adapt::schema::Subset;
use crate::wire::Format;

/// A provider: a row.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// What a config calls it.
    pub id: &'static str,
    /// What people call it.
    pub name: &'static str,
    /// The wire format it speaks.
    pub format: Format,
    /// The address all paths are added to, with `{NAME}` for what an environment variable or the
    /// config has to say.
    pub base_url: &'static str,
    /// How a key is shown.
    pub auth: Auth,
    /// The environment variables that may hold the key; the first one set wins.
    pub env: &'static [&'static str],
    /// Headers that are always sent.
    pub headers: &'static [(&'static str, &'static str)],
    /// Where a person gets a key, or learns how to start the server.
    pub keys_at: &'static str,
    /// How it departs from its wire format.
    pub quirks: Quirks,
}

/// How a key is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auth {
    /// `Authorization: Bearer KEY`.
    Bearer,
    /// The key alone, in a header of this name.
    Header(&'static str),
    /// As a bearer if there is a key, for servers that usually want none.
    Optional,
}

/// How a provider departs from its wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quirks {
    /// The system prompt has the role `developer`, not `system`.
    pub developer: bool,
    /// `max_completion_tokens` instead of `max_tokens`.
    pub max_completion_tokens: bool,
    /// Takes `stream_options: {"include_usage": true}`. Where it does not, the request would be
    /// refused.
    pub stream_usage: bool,
    /// What it understands of a tool's schema.
    pub schema: Subset,
    /// What a call's id may look like.
    pub ids: CallIds,
    /// Refuses two messages of one role in a row, and a user's message right after a result.
    pub alternates: bool,
    /// How earlier thoughts go back to it.
    pub echo: Echo,
    /// How the effort of reasoning is written.
    pub effort: EffortStyle,
    /// Understands `response_format: {"type": "json_schema"}`.
    pub json_schema: bool,
    /// Understands `parallel_tool_calls`.
    pub parallel: bool,
    /// Thoughts and calls may come as text.
    pub text: bool,
    /// Understands marks for the prompt cache, `cache_control`.
    pub cache_marks: bool,
    /// Understands `prompt_cache_key`.
    pub cache_key: bool,
    /// Takes PDF files as parts of a message.
    pub pdfs: bool,
}

/// What a call's id may look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallIds {
    /// Anything. It must come back as it was: some models write ids they rely on.
    Any,
    /// Up to 64 letters, digits, `_` and `-`.
    Word64,
    /// Exactly nine letters or digits.
    Nine,
}

/// How earlier thoughts go back within a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Echo {
    /// Not at all, or as the wire format itself says.
    None,
    /// As `reasoning_content` of every message that made calls, even if there was no thought;
    /// without it the request may be refused.
    ReasoningContent,
    /// As `reasoning_content` of every message of the model's.
    AlwaysReasoningContent,
    /// As `reasoning_details`, unchanged.
    ReasoningDetails,
}

/// How the effort of reasoning is written in dialects of openai-chat. The other formats have one
/// way each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffortStyle {
    /// It is not.
    None,
    /// `"reasoning_effort": "high"`.
    ReasoningEffort,
    /// `"reasoning": {"effort": "high"}`.
    ReasoningObject,
    /// `"reasoning": {"enabled": true}`, or `reasoning_effort` for a model that lists efforts.
    ReasoningSwitch,
    /// `"thinking": {"type": "enabled"}`, or `reasoning_effort` for a model that lists efforts.
    /// Never both: some refuse it.
    ThinkingToggle,
    /// `"enable_thinking": true`, with `thinking_budget` for a model that takes a budget.
    EnableThinking,
}

/// The provider somebody names, by its id or by another name it is known by.
pub fn provider(id: &str) -> Option<&'static Provider> {
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
    PROVIDERS.iter().find(|provider| provider.id == id)
}

impl Provider {
    /// Its quirks when it hands on one model. A host of many makers' models inherits what the
    /// maker's own API or the model's template insists on.
    pub fn quirks_of(&self, model: &str) -> Quirks {
        let mut quirks = self.quirks;
        let model = model.to_lowercase();
        let named = |words: &[&str]| words.iter().any(|word| model.contains(word));
        if quirks.ids == CallIds::Any {
            if named(&["mistral", "mixtral", "devstral", "codestral"]) {
                quirks.ids = CallIds::Nine;
            } else if named(&["claude"]) {
                quirks.ids = CallIds::Word64;
            }
        }
        if quirks.schema == Subset::Full && named(&["gemini"]) {
            quirks.schema = Subset::Gemini;
        }
        if quirks.schema == Subset::Full && named(&["kimi"]) {
            quirks.schema = Subset::Plain;
        }
        // The templates of these insist on it, whoever runs them.
        if quirks.text && named(&["mistral", "mixtral", "devstral", "codestral", "gemma"]) {
            quirks.alternates = true;
        }
        if self.id == "github-models" && model.starts_with("openai/") {
            quirks.max_completion_tokens = true;
        }
        quirks
    }

    /// The base URL with its `{NAME}`s replaced by what `say` says, or the first name that `say`
    /// knows nothing about.
    pub fn url(&self, say: impl Fn(&str) -> Option<String>) -> Result<String, &'static str> {
        let mut url = String::new();
        let mut rest = self.base_url;
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after.split_once('}').unwrap_or((after, ""));
            url.push_str(before);
            url.push_str(&say(name).ok_or(name)?);
            rest = after;
        }
        url.push_str(rest);
        Ok(url)
    }
}
