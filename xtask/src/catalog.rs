//! `catalog`: the table of models, written anew from the facts that models.dev publishes as one
//! JSON file. The same facts give the same bytes.

use anyhow::Context;
use serde_json::Value;
use std::path::Path;

/// The providers of our own rows that the facts know, in the order of the table.
const PROVIDERS: &str = "alibaba anthropic azure cerebras cohere deepseek fireworks-ai \
    github-models google groq huggingface lmstudio minimax mistral moonshotai nvidia openai \
    openrouter perplexity togetherai xai zai";

const TABLE: &str = "crates/llm/src/catalog/models.tsv";

const HEADER: &str = "\
# Models by provider. Written by `cargo xtask catalog`; facts from models.dev.
# A section begins with [PROVIDER]. Columns, separated by tabs, `-` where nothing is known:
#   id, context, output: tokens
#   in, out, cache read, cache write: USD per million tokens
#   takes: t text, i image, p PDF, a audio, v video
#   abilities: c calls tools, r reasons, o reasoning can be turned on and off,
#     s structured output, f fixed temperature
#   efforts: the efforts of reasoning it knows
#   budget: tokens it may be given for reasoning, LEAST..MOST
";

/// Words in the name of a model that does not chat, unless it calls tools.
const NOT_CHAT: &str = "embed rerank guard retriever safety translate studiovoice gliner paligemma \
    bge- esm2 esmfold usdcode qwen-mt -ocr turbo-instruct";

/// Where a model lives that is not at its provider's own address, but at the one of our row.
const AT_HOME: &str = "https://api.cohere.ai/compatibility/v1";

/// Reads the facts and writes the table.
pub(crate) fn write(root: &Path, facts: &Path) -> anyhow::Result<Vec<String>> {
    let text = std::fs::read_to_string(facts)
        .with_context(|| format!("{} could not be read", facts.display()))?;
    let facts: Value = serde_json::from_str(&text).context("the facts are not JSON")?;
    std::fs::write(root.join(TABLE), table(&facts))?;
    Ok(PROVIDERS
        .split_whitespace()
        .filter(|provider| facts.get(provider).is_none())
        .map(|provider| format!("the facts do not know {provider}"))
        .collect())
}

fn table(facts: &Value) -> String {
    let mut table = HEADER.to_owned();
    for provider in PROVIDERS.split_whitespace() {
        let models = facts.pointer(&format!("/{provider}/models")).and_then(Value::as_object);
        let mut rows: Vec<String> = models
            .into_iter()
            .flatten()
            .filter(|(id, model)| chats(id, model))
            .map(|(id, model)| row(id, model))
            .collect();
        rows.sort();
        table.push_str(&format!("\n[{provider}]\n{}", rows.concat()));
    }
    table
}

/// Whether somebody can talk with a model at its provider's address.
fn chats(id: &str, model: &Value) -> bool {
    let outputs = words(model, "/modalities/output");
    let text = words(model, "/modalities/input").contains(&"text") && outputs.contains(&"text");
    let retired = model.get("status").and_then(Value::as_str) == Some("deprecated");
    let address = model.pointer("/provider/api").and_then(Value::as_str);
    let elsewhere = address.is_some_and(|address| address != AT_HOME);
    let id = id.to_lowercase();
    let other = outputs.len() > 1 || NOT_CHAT.split_whitespace().any(|word| id.contains(word));
    let fit = is(model, "tool_call") || !other;
    let room = count(model, "/limit/context") != "-";
    text && fit && room && !retired && !elsewhere && !id.contains("realtime")
}

fn row(id: &str, model: &Value) -> String {
    let mut columns = vec![id.to_owned()];
    columns.extend(["/limit/context", "/limit/output"].map(|limit| count(model, limit)));
    columns.push(price(model, &["/cost/input"]));
    columns.push(price(model, &["/cost/output"]));
    columns.push(price(model, &["/cost/cache_read", "/cost/cached_input"]));
    columns.push(price(model, &["/cost/cache_write", "/cost/cached_write"]));
    let inputs = words(model, "/modalities/input");
    let takes = ["text", "image", "pdf", "audio", "video"].into_iter();
    columns.push(
        takes.filter(|kind| inputs.contains(kind)).filter_map(|k| k.chars().next()).collect(),
    );
    let efforts =
        option(model, "effort").map(|option| words(option, "/values")).unwrap_or_default();
    let abilities = [
        ('c', is(model, "tool_call")),
        ('r', is(model, "reasoning")),
        ('o', option(model, "toggle").is_some() || efforts.contains(&"none")),
        ('s', is(model, "structured_output")),
        ('f', model.get("temperature").and_then(Value::as_bool) == Some(false)),
    ];
    columns.push(dash(abilities.into_iter().filter(|(_, has)| *has).map(|(c, _)| c).collect()));
    columns.push(dash(efforts.join(",")));
    let budget = option(model, "budget_tokens").map(|option| {
        let end = |key| option.get(key).and_then(Value::as_u64);
        let end = |key| end(key).map_or_else(String::new, |tokens| tokens.to_string());
        format!("{}..{}", end("min"), end("max"))
    });
    columns.push(dash(budget.unwrap_or_default()));
    columns.join("\t") + "\n"
}

fn dash(text: String) -> String {
    if text.is_empty() { "-".into() } else { text }
}

fn is(model: &Value, key: &str) -> bool {
    model.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn words<'a>(model: &'a Value, pointer: &str) -> Vec<&'a str> {
    let list = model.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A limit; zero stands for unknown.
fn count(model: &Value, pointer: &str) -> String {
    let tokens = model.pointer(pointer).and_then(Value::as_u64).filter(|tokens| *tokens > 0);
    dash(tokens.map_or_else(String::new, |tokens| tokens.to_string()))
}

fn price(model: &Value, pointers: &[&str]) -> String {
    let found = pointers.iter().find_map(|pointer| model.pointer(pointer)?.as_f64());
    dash(found.map_or_else(String::new, |price| price.to_string()))
}

fn option<'a>(model: &'a Value, kind: &str) -> Option<&'a Value> {
    let options = model.get("reasoning_options")?.as_array()?;
    options.iter().find(|option| option.get("type").and_then(Value::as_str) == Some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_model_is_one_row_and_what_does_not_chat_is_none() {
        let text = json!({"input": ["image", "text"], "output": ["text"]});
        let limit = json!({"context": 1000, "output": 0});
        let facts = json!({"groq": {"models": {
            "b": {
                "modalities": text, "limit": limit, "tool_call": true, "reasoning": true,
                "temperature": false, "cost": {"input": 0.075, "output": 3.0, "cached_input": 0},
                "reasoning_options": [
                    {"type": "effort", "values": ["none", "high"]},
                    {"type": "budget_tokens", "min": -1, "max": 512},
                ],
            },
            "a": {"modalities": text, "limit": limit},
            "old": {"modalities": text, "limit": limit, "status": "deprecated"},
            "text-embedding": {"modalities": text, "limit": limit},
            "painter": {"modalities": {"input": ["text"], "output": ["image"]}, "limit": limit},
        }}});
        let table = table(&facts);
        let rows = "[groq]\n\
            a\t1000\t-\t-\t-\t-\t-\tti\t-\t-\t-\n\
            b\t1000\t-\t0.075\t3\t0\t-\tti\tcrof\tnone,high\t..512\n\n";
        assert!(table.contains(rows), "{table}");
    }
}
