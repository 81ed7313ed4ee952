//! Tool search: BM25 over the name, the description and the parameter names of a tool. A tool whose
//! whole name equals the query comes first.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::ModelToolDefinition;

/// BM25 `k1`: how soon repeated words count less.
const BM25_K1: f64 = 1.2;
/// BM25 `b`: how much less a long text counts than a short one.
const BM25_B: f64 = 0.75;
/// A word in the name counts this many times.
const NAME_WEIGHT: usize = 3;
/// Limits the words of a query, and of a tool, that are considered.
const MAX_WORDS: usize = 2_000;

/// Returns the tools that match a query, best first; equal matches keep their order.
pub(crate) fn rank_tools<'a>(
    query: &str,
    tools: &'a [ModelToolDefinition],
) -> Vec<&'a ModelToolDefinition> {
    let query_words: BTreeSet<String> = split_words(query).take(MAX_WORDS).collect();
    let texts: Vec<BTreeMap<String, usize>> = tools.iter().map(count_words).collect();
    let length = |text: &BTreeMap<String, usize>| text.values().sum::<usize>() as f64;
    let mean_length = texts.iter().map(length).sum::<f64>() / (texts.len().max(1) as f64);
    let mut scored: Vec<(f64, &ModelToolDefinition)> = Vec::new();
    for (tool, text) in tools.iter().zip(&texts) {
        let mut score = 0.0;
        for word in &query_words {
            let Some(count) = text.get(word) else { continue };
            let document_count = texts.iter().filter(|text| text.contains_key(word)).count() as f64;
            let idf =
                (1.0 + (texts.len() as f64 - document_count + 0.5) / (document_count + 0.5)).ln();
            let count = *count as f64;
            let length_factor = 1.0 - BM25_B + BM25_B * length(text) / mean_length.max(1.0);
            score += idf * count * (BM25_K1 + 1.0) / (count + BM25_K1 * length_factor);
        }
        if is_name_of(query, tool) {
            score = f64::MAX;
        }
        if score > 0.0 {
            scored.push((score, tool));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().map(|(_, tool)| tool).collect()
}

/// Returns true if the query is the whole name of the tool.
pub(crate) fn is_name_of(query: &str, tool: &ModelToolDefinition) -> bool {
    tool.name.eq_ignore_ascii_case(query.trim())
}

/// Counts how often each word occurs in a `ModelToolDefinition`.
fn count_words(tool: &ModelToolDefinition) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in split_words(&tool.name) {
        *counts.entry(word).or_default() += NAME_WEIGHT;
    }
    let parameters = tool.schema.get("properties").and_then(Value::as_object);
    let parameters = parameters.into_iter().flat_map(|fields| fields.keys());
    let parameters = parameters.flat_map(|name| split_words(name));
    for word in split_words(&tool.description).chain(parameters).take(MAX_WORDS) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// Splits a text into words, including the parts of names such as `listOpenIssues` and
/// `list_issues`.
pub(crate) fn split_words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.flat_map(split_camel_case).map(|word| singular(&word.to_lowercase()).to_owned())
}

/// Splits a word before capital letters.
fn split_camel_case(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut previous) = (0, None);
    for (index, letter) in word.char_indices() {
        if letter.is_uppercase() && previous.is_some_and(|previous: char| previous.is_lowercase()) {
            parts.extend(word.get(start..index));
            start = index;
        }
        previous = Some(letter);
    }
    parts.extend(word.get(start..));
    parts
}

/// Removes a plural `s`, so that a plural matches its singular.
fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem,
        Some(_) | None => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn tool(name: &str, description: &str, fields: &[&str]) -> ModelToolDefinition {
        let fields = fields.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
        let schema = json!({"properties": fields.collect::<serde_json::Map<_, _>>()});
        ModelToolDefinition { name: name.into(), description: description.into(), schema }
    }

    fn tools() -> Vec<ModelToolDefinition> {
        vec![
            tool("git_commit", "Records changes to the repository.", &["repo_path", "message"]),
            tool("git_status", "Shows the state of the working tree.", &["repo_path"]),
            tool("hub_createPullRequest", "Opens a pull request.", &["base", "title"]),
            tool("hub_list_issues", "Lists issues of a repository.", &["labels"]),
            tool("time_convert", "Converts a time between zones.", &["source_timezone"]),
        ]
    }

    fn first(query: &str) -> String {
        let tools = tools();
        rank_tools(query, &tools).first().map(|tool| tool.name.clone()).unwrap_or_default()
    }

    #[test]
    fn a_tool_is_found_by_name_by_description_and_by_parameter() {
        for (query, name) in [
            ("commit", "git_commit"),
            ("record my changes", "git_commit"),
            ("PULL REQUESTS", "hub_createPullRequest"),
            ("issue", "hub_list_issues"),
            ("label", "hub_list_issues"),
            ("timezone source", "time_convert"),
            ("GIT_STATUS", "git_status"),
            ("weather in Oslo", ""),
            ("", ""),
        ] {
            assert_eq!(first(query), name, "{query}");
        }
    }

    #[test]
    fn an_exact_name_comes_first() {
        let mut tools = tools();
        tools.push(tool("git_stash", "git status git status git status", &["status", "git"]));
        assert_eq!(rank_tools("git_status", &tools)[0].name, "git_status");
    }

    #[test]
    fn a_repeated_word_does_not_outrank_a_better_match() {
        let mut tools = tools();
        tools.push(tool("spam", &"commit ".repeat(5_000), &[]));
        assert_eq!(rank_tools("git commit message", &tools)[0].name, "git_commit");
    }

    proptest! {
        #[test]
        fn any_query_returns_each_tool_at_most_once(
            query in ".{0,60}", names in proptest::collection::vec("[a-zA-Z_é日-]{0,12}", 0..12),
            text in ".{0,80}",
        ) {
            let tools: Vec<ModelToolDefinition> = names.iter().map(|name| tool(name, &text, &[name])).collect();
            let ranked = rank_tools(&query, &tools);
            prop_assert!(ranked.len() <= tools.len());
            for (index, found) in ranked.iter().enumerate() {
                prop_assert!(!ranked[..index].iter().any(|other| std::ptr::eq(*other, *found)));
            }
        }
    }
}
