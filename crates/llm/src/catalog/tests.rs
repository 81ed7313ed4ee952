//! Consistency of the catalog, and its agreement with models.dev where `shared/models.json` is next
//! to the checkout.
#![allow(clippy::disallowed_methods, reason = "the tests read a file outside the workspace")]

use super::{
    ALL_PROVIDERS, AuthScheme, CallIdFormat, Model, Price, ReasoningBudgetRange, find_model,
    find_provider, models_of_provider,
};
use crate::adapt::schema::SchemaSubset;
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_protocol::ReasoningEffort;

const TABLE: &str = include_str!("models.tsv");

/// Loads the data of models.dev, if the file exists.
fn load_models_dev() -> Option<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/models.json");
    Some(serde_json::from_str(&std::fs::read_to_string(path).ok()?).unwrap())
}

#[test]
fn popular_providers_are_listed() {
    let ids = "anthropic openai google openrouter groq deepseek mistral xai togetherai together \
        fireworks-ai fireworks cerebras moonshotai moonshot zai alibaba azure ollama lmstudio vllm \
        llamacpp llama.cpp github-models github huggingface nvidia minimax cohere perplexity";
    for id in ids.split_whitespace() {
        assert!(find_provider(id).is_some(), "{id}");
    }
    assert_eq!(find_provider("together"), find_provider("togetherai"));
    assert_eq!(find_provider("nobody"), None);
}

#[test]
fn every_provider_row_is_complete_and_unique() {
    let ids: BTreeSet<&str> = ALL_PROVIDERS.iter().map(|row| row.id).collect();
    assert_eq!(ids.len(), ALL_PROVIDERS.len());
    for row in ALL_PROVIDERS {
        assert!(
            !row.id.is_empty() && !row.name.is_empty() && !row.key_env_vars.is_empty(),
            "{row:?}"
        );
        assert_eq!(find_provider(row.id), Some(row), "an alias shadows {}", row.id);
        assert!(row.key_help_url.starts_with("https://"), "{row:?}");
        let local = row.auth == AuthScheme::OptionalBearer;
        let scheme = if local { "http://127.0.0.1:" } else { "https://" };
        assert!(row.base_url.starts_with(scheme) && !row.base_url.ends_with('/'), "{row:?}");
        assert_eq!(row.quirks.inline_calls, local, "{row:?}");
    }
}

#[test]
fn a_base_url_reports_a_missing_variable() {
    let azure = find_provider("azure").unwrap();
    assert_eq!(azure.resolve_base_url(|_| None), Err("AZURE_RESOURCE_NAME"));
    let url = azure.resolve_base_url(|name| (name == "AZURE_RESOURCE_NAME").then(|| "mine".into()));
    assert_eq!(url.unwrap(), "https://mine.openai.azure.com/openai/v1");
    let groq = find_provider("groq").unwrap();
    assert_eq!(groq.resolve_base_url(|_| None).unwrap(), groq.base_url);
}

#[test]
fn a_host_inherits_the_quirks_of_a_model() {
    let quirks = |id: &str, model: &str| find_provider(id).unwrap().quirks_for_model(model);
    assert_eq!(
        quirks("openrouter", "anthropic/claude-opus-4.7").call_id_format,
        CallIdFormat::Identifier64
    );
    assert_eq!(quirks("openrouter", "google/gemini-2.5-pro").schema_subset, SchemaSubset::Gemini);
    assert_eq!(
        quirks("vllm", "mistralai/Devstral-Small").call_id_format,
        CallIdFormat::NineAlphanumeric
    );
    assert_eq!(
        quirks("fireworks", "accounts/fireworks/models/kimi-k2p6").call_id_format,
        CallIdFormat::Any
    );
    assert!(quirks("github", "openai/gpt-5").max_completion_tokens);
    assert!(!quirks("github", "meta/llama-3.3-70b-instruct").max_completion_tokens);
    assert_eq!(quirks("mistral", "mistral-large-latest"), find_provider("mistral").unwrap().quirks);
}

#[test]
fn every_row_of_the_model_table_is_parsed() {
    let mut read = 0;
    for section in TABLE.split("\n[").skip(1) {
        let (id, rows) = section.split_once("]\n").unwrap();
        assert!(find_provider(id).is_some(), "{id}");
        let ids: BTreeSet<String> = models_of_provider(id).map(|model| model.id).collect();
        let table_rows: Vec<&str> = rows.lines().filter(|row| !row.is_empty()).collect();
        assert!(!table_rows.is_empty(), "{id}");
        assert_eq!(ids.len(), table_rows.len(), "{id}: a row is invalid or duplicated");
        for row in table_rows {
            assert_eq!(row.split('\t').count(), 11, "{row}");
        }
        read += ids.len();
    }
    let rows = TABLE.lines().filter(|row| row.contains('\t')).count();
    assert_eq!(read, rows);
}

#[test]
fn a_model_is_found_under_every_name_of_its_provider() {
    let opus = find_model("anthropic", "claude-opus-4-5").unwrap();
    assert_eq!((opus.context, opus.output), (Some(200_000), Some(64_000)));
    assert_eq!(
        opus.efforts,
        [ReasoningEffort::Low, ReasoningEffort::Medium, ReasoningEffort::High]
    );
    assert_eq!(
        opus.budget,
        Some(ReasoningBudgetRange { min_tokens: Some(1_024), max_tokens: None })
    );
    assert!(opus.images && opus.pdfs && opus.calls && opus.reasons);
    let kimi = find_model("moonshot", "kimi-k2.5").unwrap();
    assert!(kimi.toggles && !kimi.temperature && kimi.efforts.is_empty());
    assert_eq!(find_model("anthropic", "kimi-k2.5"), None);
    assert_eq!(find_model("nobody", "kimi-k2.5"), None);
    assert_eq!(models_of_provider("ollama").count(), 0);
}

#[test]
fn an_unlisted_model_has_conservative_defaults() {
    let model = Model::unlisted("mine");
    assert!(model.calls && !model.images && !model.reasons && model.output.is_none());
    assert_eq!(model.max_output_tokens(), 8_192);
}

#[test]
fn providers_agree_with_models_dev() {
    let Some(models_dev) = load_models_dev() else { return };
    let mut compared = 0;
    for row in ALL_PROVIDERS {
        let Some(entry) = models_dev.get(row.id) else { continue };
        if let Some(api) = entry["api"].as_str() {
            assert_eq!(row.base_url, api.trim_end_matches('/'), "{}", row.id);
        }
        for name in entry["env"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            let is_url_variable = row.base_url.contains(&format!("{{{name}}}"));
            assert!(row.key_env_vars.contains(&name) || is_url_variable, "{}: {name}", row.id);
        }
        assert!(models_of_provider(row.id).next().is_some(), "{} has no section", row.id);
        compared += 1;
    }
    assert!(compared >= 22, "{compared}");
}

#[test]
fn models_agree_with_models_dev() {
    let Some(models_dev) = load_models_dev() else { return };
    for row in ALL_PROVIDERS {
        let known: BTreeSet<String> = models_of_provider(row.id).map(|model| model.id).collect();
        for model in models_of_provider(row.id) {
            let entry = &models_dev[row.id]["models"][&model.id];
            assert_eq!(model, expected_model(&model.id, entry), "{}", row.id);
            assert_ne!(entry["status"], "deprecated", "{}/{}", row.id, model.id);
        }
        for (id, entry) in models_dev[row.id]["models"].as_object().into_iter().flatten() {
            let has_text = ["input", "output"]
                .map(|direction| has_word(&entry["modalities"][direction], "text"));
            let is_other_host = row.id == "azure" && entry.get("provider").is_some();
            let useful = has_text == [true, true] && entry["tool_call"] == true && !is_other_host;
            if useful && entry["status"] != "deprecated" && !id.contains("realtime") {
                assert!(known.contains(id), "{}/{id} is missing", row.id);
            }
        }
    }
}

fn has_word(list: &Value, word: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|found| found == word))
}

fn expected_model(id: &str, entry: &Value) -> Model {
    let limit = |key: &str| entry["limit"][key].as_u64().filter(|tokens| *tokens > 0);
    let cost = |key: &str, other: &str| {
        let found = entry["cost"][key].as_f64();
        found.or_else(|| entry["cost"][other].as_f64())
    };
    let options = entry["reasoning_options"].as_array().cloned().unwrap_or_default();
    let option = |kind: &str| options.iter().find(|option| option["type"] == kind);
    let efforts = option("effort").map(|option| option["values"].as_array().unwrap().clone());
    let efforts = efforts.unwrap_or_default();
    let efforts: Vec<ReasoningEffort> =
        efforts.iter().filter_map(|effort| ReasoningEffort::from_name(effort.as_str()?)).collect();
    Model {
        id: id.to_owned(),
        context: limit("context"),
        output: limit("output"),
        price: Price {
            input: cost("input", ""),
            output: cost("output", ""),
            cache_read: cost("cache_read", "cached_input"),
            cache_write: cost("cache_write", "cached_write"),
        },
        images: has_word(&entry["modalities"]["input"], "image"),
        pdfs: has_word(&entry["modalities"]["input"], "pdf"),
        calls: entry["tool_call"] == true,
        reasons: entry["reasoning"] == true,
        toggles: option("toggle").is_some() || efforts.contains(&ReasoningEffort::None),
        structured: entry["structured_output"] == true,
        temperature: entry["temperature"] != false,
        efforts,
        budget: option("budget_tokens").map(|option| ReasoningBudgetRange {
            min_tokens: option["min"].as_u64(),
            max_tokens: option["max"].as_u64(),
        }),
    }
}
