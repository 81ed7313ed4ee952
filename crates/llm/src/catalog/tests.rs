//! The catalogue against itself, and against the facts it was written from, where they stand
//! beside the checkout.
#![allow(clippy::disallowed_methods, reason = "the tests read facts from outside")]

use super::{Auth, Budget, CallIds, Model, PROVIDERS, Price, model, models, provider};
use crate::adapt::schema::Subset;
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_protocol::Effort;

const TABLE: &str = include_str!("models.tsv");

/// What models.dev says, or nothing.
fn facts() -> Option<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/models.json");
    Some(serde_json::from_str(&std::fs::read_to_string(path).ok()?).unwrap())
}

#[test]
fn every_provider_people_ask_for_is_there() {
    let asked = "anthropic openai google openrouter groq deepseek mistral xai togetherai together \
        fireworks-ai fireworks cerebras moonshotai moonshot zai alibaba azure ollama lmstudio vllm \
        llamacpp llama.cpp github-models github huggingface nvidia minimax cohere perplexity";
    for id in asked.split_whitespace() {
        assert!(provider(id).is_some(), "{id}");
    }
    assert_eq!(provider("together"), provider("togetherai"));
    assert_eq!(provider("nobody"), None);
}

#[test]
fn every_row_is_whole_and_its_own() {
    let ids: BTreeSet<&str> = PROVIDERS.iter().map(|row| row.id).collect();
    assert_eq!(ids.len(), PROVIDERS.len());
    for row in PROVIDERS {
        assert!(!row.id.is_empty() && !row.name.is_empty() && !row.env.is_empty(), "{row:?}");
        assert_eq!(provider(row.id), Some(row), "another name hides {}", row.id);
        assert!(row.keys_at.starts_with("https://"), "{row:?}");
        let local = row.auth == Auth::Optional;
        let scheme = if local { "http://127.0.0.1:" } else { "https://" };
        assert!(row.base_url.starts_with(scheme) && !row.base_url.ends_with('/'), "{row:?}");
        assert_eq!(row.quirks.text, local, "{row:?}");
    }
}

#[test]
fn a_base_url_says_what_it_still_needs() {
    let azure = provider("azure").unwrap();
    assert_eq!(azure.url(|_| None), Err("AZURE_RESOURCE_NAME"));
    let url = azure.url(|name| (name == "AZURE_RESOURCE_NAME").then(|| "mine".into()));
    assert_eq!(url.unwrap(), "https://mine.openai.azure.com/openai/v1");
    let groq = provider("groq").unwrap();
    assert_eq!(groq.url(|_| None).unwrap(), groq.base_url);
}

#[test]
fn a_host_inherits_what_a_model_insists_on() {
    let quirks = |id: &str, model: &str| provider(id).unwrap().quirks_of(model);
    assert_eq!(quirks("openrouter", "anthropic/claude-opus-4.7").ids, CallIds::Word64);
    assert_eq!(quirks("openrouter", "google/gemini-2.5-pro").schema, Subset::Gemini);
    assert_eq!(quirks("vllm", "mistralai/Devstral-Small").ids, CallIds::Nine);
    assert_eq!(quirks("fireworks", "accounts/fireworks/models/kimi-k2p6").ids, CallIds::Any);
    assert!(quirks("github", "openai/gpt-5").max_completion_tokens);
    assert!(!quirks("github", "meta/llama-3.3-70b-instruct").max_completion_tokens);
    assert_eq!(quirks("mistral", "mistral-large-latest"), provider("mistral").unwrap().quirks);
}

#[test]
fn the_whole_table_is_read() {
    let mut read = 0;
    for section in TABLE.split("\n[").skip(1) {
        let (id, rows) = section.split_once("]\n").unwrap();
        assert!(provider(id).is_some(), "{id}");
        let ids: BTreeSet<String> = models(id).map(|model| model.id).collect();
        let written: Vec<&str> = rows.lines().filter(|row| !row.is_empty()).collect();
        assert!(!written.is_empty(), "{id}");
        assert_eq!(ids.len(), written.len(), "{id}: a row nobody can read, or one twice");
        for row in written {
            assert_eq!(row.split('\t').count(), 11, "{row}");
        }
        read += ids.len();
    }
    let rows = TABLE.lines().filter(|row| row.contains('\t')).count();
    assert_eq!(read, rows);
}

#[test]
fn a_model_is_found_under_every_name_of_its_provider() {
    let opus = model("anthropic", "claude-opus-4-5").unwrap();
    assert_eq!((opus.context, opus.output), (Some(200_000), Some(64_000)));
    assert_eq!(opus.efforts, [Effort::Low, Effort::Medium, Effort::High]);
    assert_eq!(opus.budget, Some(Budget { least: Some(1_024), most: None }));
    assert!(opus.images && opus.pdfs && opus.calls && opus.reasons);
    let kimi = model("moonshot", "kimi-k2.5").unwrap();
    assert!(kimi.toggles && !kimi.temperature && kimi.efforts.is_empty());
    assert_eq!(model("anthropic", "kimi-k2.5"), None);
    assert_eq!(model("nobody", "kimi-k2.5"), None);
    assert_eq!(models("ollama").count(), 0);
}

#[test]
fn a_model_nobody_knows_is_assumed_to_be_little() {
    let model = Model::assumed("mine");
    assert!(model.calls && !model.images && !model.reasons && model.output.is_none());
    assert_eq!(model.most_output(), 8_192);
}

#[test]
fn providers_agree_with_the_facts() {
    let Some(facts) = facts() else { return };
    let mut compared = 0;
    for row in PROVIDERS {
        let Some(fact) = facts.get(row.id) else { continue };
        if let Some(api) = fact["api"].as_str() {
            assert_eq!(row.base_url, api.trim_end_matches('/'), "{}", row.id);
        }
        for name in fact["env"].as_array().unwrap() {
            let name = name.as_str().unwrap();
            let part = row.base_url.contains(&format!("{{{name}}}"));
            assert!(row.env.contains(&name) || part, "{}: {name}", row.id);
        }
        assert!(models(row.id).next().is_some(), "{} has no section", row.id);
        compared += 1;
    }
    assert_eq!(compared, 22);
}

#[test]
fn models_agree_with_the_facts() {
    let Some(facts) = facts() else { return };
    for row in PROVIDERS {
        let known: BTreeSet<String> = models(row.id).map(|model| model.id).collect();
        for model in models(row.id) {
            let fact = &facts[row.id]["models"][&model.id];
            assert_eq!(model, expected(&model.id, fact), "{}", row.id);
            assert_ne!(fact["status"], "deprecated", "{}/{}", row.id, model.id);
        }
        for (id, fact) in facts[row.id]["models"].as_object().into_iter().flatten() {
            let both = ["input", "output"].map(|way| has(&fact["modalities"][way], "text"));
            let elsewhere = row.id == "azure" && fact.get("provider").is_some();
            let useful = both == [true, true] && fact["tool_call"] == true && !elsewhere;
            if useful && fact["status"] != "deprecated" && !id.contains("realtime") {
                assert!(known.contains(id), "{}/{id} is missing", row.id);
            }
        }
    }
}

fn has(list: &Value, word: &str) -> bool {
    list.as_array().is_some_and(|list| list.iter().any(|found| found == word))
}

fn expected(id: &str, fact: &Value) -> Model {
    let limit = |key: &str| fact["limit"][key].as_u64().filter(|tokens| *tokens > 0);
    let cost = |key: &str, other: &str| {
        let found = fact["cost"][key].as_f64();
        found.or_else(|| fact["cost"][other].as_f64())
    };
    let options = fact["reasoning_options"].as_array().cloned().unwrap_or_default();
    let option = |kind: &str| options.iter().find(|option| option["type"] == kind);
    let efforts = option("effort").map(|option| option["values"].as_array().unwrap().clone());
    let efforts = efforts.unwrap_or_default();
    let efforts: Vec<Effort> =
        efforts.iter().filter_map(|effort| Effort::named(effort.as_str()?)).collect();
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
        images: has(&fact["modalities"]["input"], "image"),
        pdfs: has(&fact["modalities"]["input"], "pdf"),
        calls: fact["tool_call"] == true,
        reasons: fact["reasoning"] == true,
        toggles: option("toggle").is_some() || efforts.contains(&Effort::None),
        structured: fact["structured_output"] == true,
        temperature: fact["temperature"] != false,
        efforts,
        budget: option("budget_tokens")
            .map(|option| Budget { least: option["min"].as_u64(), most: option["max"].as_u64() }),
    }
}
