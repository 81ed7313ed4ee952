//! The environment of a config, and the expansion of `{env:NAME}` in its values.

use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use windlass_protocol::ClaudeToolNames;

/// The environment variables, built-in providers and tool names that a config can refer to.
pub trait ConfigEnv {
    /// Returns the value of an environment variable.
    fn env(&self, name: &str) -> Option<String>;
    /// Returns the canonical name of a built-in provider, given any of its names. A project cannot
    /// change such a provider.
    fn canonical_provider(&self, provider: &str) -> Option<&'static str>;
    /// Returns the names of our tools in Claude Code, for agents of plugins in its format.
    fn claude_tools(&self) -> ClaudeToolNames {
        ClaudeToolNames::default()
    }
}

/// The JSON pointer of a field below its entry, such as `/url`, and the problem with it.
pub(crate) type FieldError = (&'static str, String);

pub(super) fn field_error<T>(
    field: &'static str,
    reason: impl Into<String>,
) -> Result<T, FieldError> {
    Err((field, reason.into()))
}

/// Expands `{env:NAME}` in values. A project may not use it.
pub(super) fn expand_env_values(
    field: &'static str,
    values: BTreeMap<String, SecretString>,
    (is_user_defined, config_env): (bool, &dyn ConfigEnv),
) -> Result<BTreeMap<String, SecretString>, FieldError> {
    let mut expanded = BTreeMap::new();
    for (name, value) in values {
        let mut rest = value.expose_secret();
        let mut text = String::new();
        if rest.contains("{file:") {
            return field_error(field, "`{file:…}` is not supported; use `{env:NAME}`");
        }
        while let Some((before, after)) = rest.split_once("{env:") {
            if !is_user_defined {
                return field_error(
                    field,
                    "projects and plugins cannot read environment variables",
                );
            }
            let Some((variable, remaining)) = after.split_once('}') else {
                return field_error(field, "`{env:` is not closed");
            };
            let Some(value) = config_env.env(variable) else {
                return field_error(
                    field,
                    format!("the environment variable {variable} is not set"),
                );
            };
            text.push_str(before);
            text.push_str(&value);
            rest = remaining;
        }
        text.push_str(rest);
        expanded.insert(name, SecretString::from(text));
    }
    Ok(expanded)
}
