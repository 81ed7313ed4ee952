//! `catalog`: writes the table of models from the JSON file that models.dev publishes. The same
//! file always gives the same table.

use anyhow::Context;
use serde_json::Value;
use std::path::Path;

/// The providers that are both in our catalog and on models.dev, in the order of the table.
const PROVIDERS: &str = "alibaba anthropic azure cerebras cohere deepseek fireworks-ai \
    github-models google groq huggingface lmstudio minimax mistral moonshotai nvidia openai \
    openrouter perplexity togetherai xai zai";

const TABLE_PATH: &str = "crates/llm/src/catalog/models.tsv";

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

/// Parts of the ids of models that do not chat, unless they call tools.
const NON_CHAT_WORDS: &str = "embed rerank guard retriever safety translate studiovoice gliner \
    paligemma bge- esm2 esmfold usdcode qwen-mt -ocr turbo-instruct";

/// The URL of a single model that is also the URL of its provider in our catalog. Models with
/// another URL of their own are skipped.
const CATALOG_URL: &str = "https://api.cohere.ai/compatibility/v1";

/// Reads the JSON file of models.dev and writes the table.
pub(crate) fn write_table(root: &Path, file: &Path) -> anyhow::Result<Vec<String>> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let data: Value = serde_json::from_str(&text).context("the file is not JSON")?;
    std::fs::write(root.join(TABLE_PATH), render_table(&data))?;
    Ok(PROVIDERS
        .split_whitespace()
        .filter(|provider| data.get(provider).is_none())
        .map(|provider| format!("models.dev does not list {provider}"))
        .collect())
}

fn render_table(data: &Value) -> String {
    let mut table = HEADER.to_owned();
    for provider in PROVIDERS.split_whitespace() {
        let models = data.pointer(&format!("/{provider}/models")).and_then(Value::as_object);
        let mut rows: Vec<String> = models
            .into_iter()
            .flatten()
            .filter(|(id, model)| is_chat_model(id, model))
            .map(|(id, model)| render_row(id, model))
            .collect();
        rows.sort();
        table.push_str(&format!("\n[{provider}]\n{}", rows.concat()));
    }
    table
}

/// Returns true if a model chats and is available at its provider's URL.
fn is_chat_model(id: &str, model: &Value) -> bool {
    let outputs = strings(model, "/modalities/output");
    let uses_text =
        strings(model, "/modalities/input").contains(&"text") && outputs.contains(&"text");
    let is_deprecated = model.get("status").and_then(Value::as_str) == Some("deprecated");
    let url = model.pointer("/provider/api").and_then(Value::as_str);
    let has_own_url = url.is_some_and(|url| url != CATALOG_URL);
    let id = id.to_lowercase();
    let has_other_use =
        outputs.len() > 1 || NON_CHAT_WORDS.split_whitespace().any(|word| id.contains(word));
    let is_suitable = flag(model, "tool_call") || !has_other_use;
    let has_context = token_limit(model, "/limit/context") != "-";
    uses_text
        && is_suitable
        && has_context
        && !is_deprecated
        && !has_own_url
        && !id.contains("realtime")
}

fn render_row(id: &str, model: &Value) -> String {
    let mut columns = vec![id.to_owned()];
    columns.extend(["/limit/context", "/limit/output"].map(|limit| token_limit(model, limit)));
    columns.push(format_price(model, &["/cost/input"]));
    columns.push(format_price(model, &["/cost/output"]));
    columns.push(format_price(model, &["/cost/cache_read", "/cost/cached_input"]));
    columns.push(format_price(model, &["/cost/cache_write", "/cost/cached_write"]));
    let inputs = strings(model, "/modalities/input");
    let kinds = ["text", "image", "pdf", "audio", "video"].into_iter();
    columns.push(
        kinds.filter(|kind| inputs.contains(kind)).filter_map(|k| k.chars().next()).collect(),
    );
    let efforts = reasoning_option(model, "effort")
        .map(|option| strings(option, "/values"))
        .unwrap_or_default();
    let abilities = [
        ('c', flag(model, "tool_call")),
        ('r', flag(model, "reasoning")),
        ('o', reasoning_option(model, "toggle").is_some() || efforts.contains(&"none")),
        ('s', flag(model, "structured_output")),
        ('f', model.get("temperature").and_then(Value::as_bool) == Some(false)),
    ];
    columns.push(or_dash(abilities.into_iter().filter(|(_, has)| *has).map(|(c, _)| c).collect()));
    columns.push(or_dash(efforts.join(",")));
    let budget = reasoning_option(model, "budget_tokens").map(|option| {
        let bound = |key| option.get(key).and_then(Value::as_u64);
        let bound = |key| bound(key).map_or_else(String::new, |tokens| tokens.to_string());
        format!("{}..{}", bound("min"), bound("max"))
    });
    columns.push(or_dash(budget.unwrap_or_default()));
    columns.join("\t") + "\n"
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".into() } else { text }
}

fn flag(model: &Value, key: &str) -> bool {
    model.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn strings<'a>(model: &'a Value, pointer: &str) -> Vec<&'a str> {
    let list = model.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Formats a token limit; zero means unknown.
fn token_limit(model: &Value, pointer: &str) -> String {
    let tokens = model.pointer(pointer).and_then(Value::as_u64).filter(|tokens| *tokens > 0);
    or_dash(tokens.map_or_else(String::new, |tokens| tokens.to_string()))
}

fn format_price(model: &Value, pointers: &[&str]) -> String {
    let found = pointers.iter().find_map(|pointer| model.pointer(pointer)?.as_f64());
    or_dash(found.map_or_else(String::new, |price| price.to_string()))
}

fn reasoning_option<'a>(model: &'a Value, kind: &str) -> Option<&'a Value> {
    let options = model.get("reasoning_options")?.as_array()?;
    options.iter().find(|option| option.get("type").and_then(Value::as_str) == Some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_chat_model_is_one_row() {
        let text = json!({"input": ["image", "text"], "output": ["text"]});
        let limit = json!({"context": 1000, "output": 0});
        let data = json!({"groq": {"models": {
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
        let table = render_table(&data);
        let rows = "[groq]\n\
            a\t1000\t-\t-\t-\t-\t-\tti\t-\t-\t-\n\
            b\t1000\t-\t0.075\t3\t0\t-\tti\tcrof\tnone,high\t..512\n\n";
        assert!(table.contains(rows), "{table}");
    }
}
