//! Finding a tool by what it says of itself: BM25 over its name, its description and the names of
//! its parameters. The whole name, as it is spelled, comes first.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::ToolSummary;

/// How soon a word that is said again counts less.
const SATURATION: f64 = 1.2;
/// How much a long text counts less than a short one.
const LENGTH: f64 = 0.75;
/// A word in the name counts as often as this.
const NAMED: usize = 3;
/// How many words of a query, and of a tool, are looked at.
const WORDS: usize = 2_000;

/// The tools that have anything to do with a query, best first; those that fit alike in the order
/// they came in.
pub(crate) fn rank<'a>(query: &str, tools: &'a [ToolSummary]) -> Vec<&'a ToolSummary> {
    let wanted: BTreeSet<String> = words(query).take(WORDS).collect();
    let texts: Vec<BTreeMap<String, usize>> = tools.iter().map(counted).collect();
    let length = |text: &BTreeMap<String, usize>| text.values().sum::<usize>() as f64;
    let mean = texts.iter().map(length).sum::<f64>() / (texts.len().max(1) as f64);
    let mut scored: Vec<(f64, &ToolSummary)> = Vec::new();
    for (tool, text) in tools.iter().zip(&texts) {
        let mut score = 0.0;
        for word in &wanted {
            let Some(count) = text.get(word) else { continue };
            let having = texts.iter().filter(|text| text.contains_key(word)).count() as f64;
            let rare = (1.0 + (texts.len() as f64 - having + 0.5) / (having + 0.5)).ln();
            let count = *count as f64;
            let long = 1.0 - LENGTH + LENGTH * length(text) / mean.max(1.0);
            score += rare * count * (SATURATION + 1.0) / (count + SATURATION * long);
        }
        if tool.name.eq_ignore_ascii_case(query.trim()) {
            score = f64::MAX;
        }
        if score > 0.0 {
            scored.push((score, tool));
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().map(|(_, tool)| tool).collect()
}

/// How often a tool says each word.
fn counted(tool: &ToolSummary) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for word in words(&tool.name) {
        *counts.entry(word).or_default() += NAMED;
    }
    let parameters = tool.schema.get("properties").and_then(Value::as_object);
    let parameters = parameters.into_iter().flat_map(|fields| fields.keys());
    let parameters = parameters.flat_map(|name| words(name));
    for word in words(&tool.description).chain(parameters).take(WORDS) {
        *counts.entry(word).or_default() += 1;
    }
    counts
}

/// The words of a text, also those that stand together in a name: `listOpenIssues`, `list_issues`.
fn words(text: &str) -> impl Iterator<Item = String> {
    let apart = text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    apart.flat_map(humps).map(|word| stem(&word.to_lowercase()).to_owned())
}

/// The parts of a word that begin with a capital letter.
fn humps(word: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut before) = (0, None);
    for (at, letter) in word.char_indices() {
        if letter.is_uppercase() && before.is_some_and(|before: char| before.is_lowercase()) {
            parts.extend(word.get(start..at));
            start = at;
        }
        before = Some(letter);
    }
    parts.extend(word.get(start..));
    parts
}

/// A plural is found by its singular.
fn stem(word: &str) -> &str {
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

    fn tool(name: &str, description: &str, fields: &[&str]) -> ToolSummary {
        let fields = fields.iter().map(|name| ((*name).to_owned(), json!({"type": "string"})));
        let schema = json!({"properties": fields.collect::<serde_json::Map<_, _>>()});
        ToolSummary { name: name.into(), description: description.into(), schema }
    }

    fn shelf() -> Vec<ToolSummary> {
        vec![
            tool("git_commit", "Records changes to the repository.", &["repo_path", "message"]),
            tool("git_status", "Shows the state of the working tree.", &["repo_path"]),
            tool("hub_createPullRequest", "Opens a pull request.", &["base", "title"]),
            tool("hub_list_issues", "Lists issues of a repository.", &["labels"]),
            tool("time_convert", "Converts a time between zones.", &["source_timezone"]),
        ]
    }

    fn first(query: &str) -> String {
        let shelf = shelf();
        rank(query, &shelf).first().map(|tool| tool.name.clone()).unwrap_or_default()
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
    fn the_exact_name_comes_first_whatever_others_say() {
        let mut shelf = shelf();
        shelf.push(tool("git_stash", "git status git status git status", &["status", "git"]));
        assert_eq!(rank("git_status", &shelf)[0].name, "git_status");
    }

    #[test]
    fn repeating_itself_does_not_make_a_tool_fit_better_than_one_that_fits() {
        let mut shelf = shelf();
        shelf.push(tool("spam", &"commit ".repeat(5_000), &[]));
        assert_eq!(rank("git commit message", &shelf)[0].name, "git_commit");
    }

    proptest! {
        #[test]
        fn any_query_over_anything_gives_each_tool_at_most_once(
            query in ".{0,60}", names in proptest::collection::vec("[a-zA-Z_é日-]{0,12}", 0..12),
            text in ".{0,80}",
        ) {
            let shelf: Vec<ToolSummary> = names.iter().map(|name| tool(name, &text, &[name])).collect();
            let ranked = rank(&query, &shelf);
            prop_assert!(ranked.len() <= shelf.len());
            for (at, one) in ranked.iter().enumerate() {
                prop_assert!(!ranked[..at].iter().any(|other| std::ptr::eq(*other, *one)));
            }
        }
    }
}
