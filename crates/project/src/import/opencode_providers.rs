//! Imports OpenCode's providers, models and model options.

use super::plan_builder::ImportPlanBuilder;
use super::{ImportScope, secret_detection};
use serde_json::{Map, Value, json};

/// The npm packages of OpenCode's providers, such as `@ai-sdk/openai`, and the wire format of each.
const PROVIDER_PACKAGES: [(&str, &str); 4] = [
    ("@ai-sdk/openai-compatible", "openai-chat"),
    ("@ai-sdk/openai", "openai-responses"),
    ("@ai-sdk/anthropic", "anthropic"),
    ("@ai-sdk/google", "gemini"),
];

pub(super) fn import_provider(builder: &mut ImportPlanBuilder<'_>, name: &str, value: Value) {
    let setting = format!("provider.{name}");
    let Value::Object(mut map) = value else { return builder.skip(setting, "not an object") };
    let mut converted = Map::new();
    match map.shift_remove("npm").as_ref().and_then(Value::as_str) {
        Some(package) => {
            match PROVIDER_PACKAGES.iter().find(|(npm_name, _)| *npm_name == package) {
                Some((_, api)) => drop(converted.insert("api".into(), (*api).into())),
                None => {
                    let package = secret_detection::mask_line(package);
                    return builder
                        .skip(setting, format!("unsupported provider package `{package}`"));
                }
            }
        }
        None if builder.checks.canonical_provider(name).is_some() => {}
        None => {
            return builder.skip(setting, "unknown provider without a package (`npm`)");
        }
    }
    if builder.scope == ImportScope::Project && builder.checks.canonical_provider(name).is_some() {
        return builder.skip(setting, "a project cannot change a built-in provider");
    }
    if let Some(Value::Object(options)) = map.shift_remove("options") {
        import_options(builder, &setting, name, options, &mut converted);
    }
    if let Some(Value::Object(models)) = map.shift_remove("models") {
        let models = models.into_iter().map(|(id, model)| {
            let converted_model = convert_model(builder, &format!("{setting}.models.{id}"), model);
            (id, Value::Object(converted_model))
        });
        let models: Map<String, Value> = models.collect();
        converted.insert("models".into(), models.into());
    }
    map.shift_remove("name");
    builder.skip_unsupported(&setting, &map.keys().map(String::as_str).collect::<Vec<_>>());
    if converted.is_empty() {
        return;
    }
    let url = converted.get("base_url").and_then(Value::as_str).map(secret_detection::mask_url);
    let models = converted.get("models").and_then(Value::as_object).map_or(0, Map::len);
    let models = match models {
        0 => String::new(),
        1 => ", 1 model".to_owned(),
        count => format!(", {count} models"),
    };
    let key = if converted.contains_key("api_key") { ", with its API key (not shown)" } else { "" };
    let description = format!("{}{models}{key}", url.unwrap_or_else(|| "default URL".to_owned()));
    builder.set_key(&["provider", name], converted.into(), &description);
}

fn import_options(
    builder: &mut ImportPlanBuilder<'_>,
    parent: &str,
    name: &str,
    mut options: Map<String, Value>,
    converted: &mut Map<String, Value>,
) {
    let is_user = builder.scope == ImportScope::User;
    match options.shift_remove("baseURL") {
        Some(Value::String(url)) if url.contains("{env:") || url.contains("{file:") => {
            builder
                .skip(format!("{parent}.options.baseURL"), "variables are not supported in URLs");
        }
        Some(Value::String(url)) if !is_user && secret_detection::mask_url(&url) != url => {
            let reason = "it seems to contain a secret, which is never written to a project file";
            builder.skip(format!("{parent}.options.baseURL"), reason);
        }
        Some(url) => drop(converted.insert("base_url".into(), url)),
        None => {}
    }
    match options.shift_remove("apiKey") {
        Some(Value::String(key)) if is_user && !key.contains("{file:") => {
            let is_whole_reference = key.starts_with("{env:") && key.ends_with('}');
            if is_whole_reference || !key.contains("{env:") {
                converted.insert("api_key".into(), key.into());
            } else {
                builder.skip(
                    format!("{parent}.options.apiKey"),
                    "only a whole `{env:NAME}` is supported",
                );
            }
        }
        Some(_) => {
            let reason = if is_user {
                "`{file:…}` is not supported"
            } else {
                "API keys are never written to a project file"
            };
            let reason = format!("{reason}; save the key with `windlass auth login {name}`");
            builder.skip(format!("{parent}.options.apiKey"), reason);
        }
        None => {}
    }
    if let Some(Value::Object(headers)) = options.shift_remove("headers") {
        let mut imported = Map::new();
        for (header, value) in headers {
            let text = value.as_str().unwrap_or_default();
            let setting = format!("{parent}.options.headers.{header}");
            if text.contains("{env:") || text.contains("{file:") {
                builder.skip(setting, "variables are not supported in a provider's headers");
            } else if !is_user && secret_detection::is_secret(&header, text) {
                builder.skip(
                    setting,
                    "it looks like a secret, which is never written to a project file",
                );
            } else {
                imported.insert(header, value);
            }
        }
        if !imported.is_empty() {
            converted.insert("headers".into(), imported.into());
        }
    }
    import_timeouts(builder, parent, &mut options, converted);
    if options.shift_remove("setCacheKey").is_some() {
        let setting = format!("{parent}.options.setCacheKey");
        builder.skip(setting, "the provider's cache is always used");
    }
    let parent = format!("{parent}.options");
    let options = convert_options(builder, &parent, options);
    if !options.is_empty() {
        converted.insert("options".into(), options.into());
    }
}

/// Imports timeouts, which are in milliseconds there and in seconds here.
fn import_timeouts(
    builder: &mut ImportPlanBuilder<'_>,
    parent: &str,
    options: &mut Map<String, Value>,
    converted: &mut Map<String, Value>,
) {
    let mut timeouts = Map::new();
    for (source_key, keys) in
        [("timeout", ["headers", "first"].as_slice()), ("chunkTimeout", ["idle"].as_slice())]
    {
        match options.shift_remove(source_key) {
            Some(Value::Number(millis)) if millis.as_u64().is_some_and(|millis| millis > 0) => {
                let seconds = millis.as_u64().unwrap_or_default().div_ceil(1000);
                timeouts.extend(keys.iter().map(|key| ((*key).to_owned(), json!(seconds))));
            }
            Some(_) => builder.skip(
                format!("{parent}.options.{source_key}"),
                "a timeout is a number; `timeouts` of a provider set it in seconds",
            ),
            None => {}
        }
    }
    if !timeouts.is_empty() {
        converted.insert("timeouts".into(), timeouts.into());
    }
}

/// Converts options of a model and reports those without an equivalent.
pub(super) fn convert_options(
    builder: &mut ImportPlanBuilder<'_>,
    parent: &str,
    mut options: Map<String, Value>,
) -> Map<String, Value> {
    let mut converted = Map::new();
    for (source_key, key) in [
        ("temperature", "temperature"),
        ("topP", "top_p"),
        ("top_p", "top_p"),
        ("topK", "top_k"),
        ("maxOutputTokens", "max_output"),
        ("reasoningEffort", "effort"),
        ("reasoning_effort", "effort"),
        ("parallelToolCalls", "parallel_calls"),
    ] {
        if let Some(value) = options.shift_remove(source_key) {
            converted.insert(key.to_owned(), value);
        }
    }
    builder.skip_unsupported(parent, &options.keys().map(String::as_str).collect::<Vec<_>>());
    converted
}

/// Converts a model. `name`, `cost` and dates are dropped without a report.
fn convert_model(
    builder: &mut ImportPlanBuilder<'_>,
    setting: &str,
    model: Value,
) -> Map<String, Value> {
    let Value::Object(mut map) = model else { return Map::new() };
    let mut converted = Map::new();
    for (source_key, key) in [
        ("id", "id"),
        ("reasoning", "reasons"),
        ("tool_call", "calls"),
        ("temperature", "temperature"),
    ] {
        if let Some(value) = map.shift_remove(source_key) {
            converted.insert(key.to_owned(), value);
        }
    }
    if let Some(limit) = map.shift_remove("limit") {
        for key in ["context", "output"] {
            if let Some(value) = limit.get(key).and_then(Value::as_u64) {
                converted.insert(key.to_owned(), value.into());
            }
        }
    }
    let input_kinds = map.shift_remove("modalities");
    let input_kinds =
        input_kinds.as_ref().and_then(|kinds| kinds.get("input")).and_then(Value::as_array);
    if let Some(kinds) = input_kinds {
        for (kind, key) in [("image", "images"), ("pdf", "pdfs")] {
            converted
                .insert(key.to_owned(), kinds.iter().any(|it| it.as_str() == Some(kind)).into());
        }
        map.shift_remove("attachment");
    } else if let Some(value) = map.shift_remove("attachment") {
        converted.insert("images".into(), value);
    }
    if let Some(Value::Object(options)) = map.shift_remove("options") {
        let options = convert_options(builder, &format!("{setting}.options"), options);
        if !options.is_empty() {
            converted.insert("options".into(), options.into());
        }
    }
    if let Some(Value::Object(variants)) = map.shift_remove("variants") {
        let mut converted_variants = Map::new();
        for (name, variant) in variants {
            let Value::Object(mut options) = variant else { continue };
            if options.shift_remove("disabled") == Some(Value::Bool(true)) {
                continue;
            }
            let setting = format!("{setting}.variants.{name}");
            let options = convert_options(builder, &setting, options);
            if !options.is_empty() {
                converted_variants.insert(name, options.into());
            }
        }
        if !converted_variants.is_empty() {
            converted.insert("variants".into(), converted_variants.into());
        }
    }
    for key in ["name", "cost", "release_date", "last_updated", "knowledge"] {
        map.shift_remove(key);
    }
    builder.skip_unsupported(setting, &map.keys().map(String::as_str).collect::<Vec<_>>());
    converted
}
