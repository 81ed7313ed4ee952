//! Checks that the graph in ARCHITECTURE.md lists exactly the dependencies between our crates, and
//! that it has no cycles.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Crates for tests and development tasks; they are not part of the graph.
const DEVELOPMENT_CRATES: &[&str] = &["testkit", "xtask"];

pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let document = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    Ok(compare(&documented_graph(&document), &actual_graph(&metadata)))
}

/// Parses the graph in a document.
pub(crate) fn documented_graph(document: &str) -> Graph {
    let block = document.split("```graph\n").nth(1).and_then(|rest| rest.split("```").next());
    let mut graph = Graph::new();
    for line in block.unwrap_or_default().lines() {
        if let Some((name, edges)) = line.split_once(':') {
            let edges = edges.split_whitespace().map(str::to_owned).collect();
            graph.insert(name.trim().to_owned(), edges);
        }
    }
    graph
}

/// Returns the normal and build dependencies between our crates. Dev-dependencies may be anything;
/// a normal dependency on one of the `DEVELOPMENT_CRATES` appears in the graph and is reported.
pub(crate) fn actual_graph(metadata: &Value) -> Graph {
    let short = |name: &str| name.strip_prefix("windlass-").unwrap_or(name).to_owned();
    let empty = Vec::new();
    let list = |value: &Value| value.as_array().unwrap_or(&empty).clone();
    let mut graph = Graph::new();
    for package in list(metadata.get("packages").unwrap_or(&Value::Null)) {
        let text = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let name = short(&text(&package, "name"));
        if DEVELOPMENT_CRATES.contains(&name.as_str()) {
            continue;
        }
        let edges = list(package.get("dependencies").unwrap_or(&Value::Null))
            .iter()
            .filter(|dependency| text(dependency, "kind") != "dev")
            .map(|dependency| text(dependency, "name"))
            .filter(|name| name.starts_with("windlass-"))
            .map(|name| short(&name))
            .collect();
        graph.insert(name, edges);
    }
    graph
}

/// Reports the differences between two graphs, and the cycles of the actual one.
pub(crate) fn compare(documented: &Graph, actual: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    let none = BTreeSet::new();
    let names: BTreeSet<&String> = documented.keys().chain(actual.keys()).collect();
    for name in names {
        match (documented.get(name), actual.get(name)) {
            (None, _) => faults.push(format!("ARCHITECTURE.md: the graph lacks the crate {name}")),
            (_, None) => faults.push(format!("ARCHITECTURE.md: there is no crate {name}")),
            (Some(documented), Some(actual)) => {
                for extra in actual.difference(documented) {
                    faults
                        .push(format!("{name} depends on {extra}, which the graph does not allow"));
                }
                for missing in documented.difference(actual) {
                    faults.push(format!("ARCHITECTURE.md: {name} does not depend on {missing}"));
                }
            }
        }
    }
    for name in actual.keys() {
        let mut reached: BTreeSet<&String> = BTreeSet::new();
        let mut todo: Vec<&String> = actual.get(name).unwrap_or(&none).iter().collect();
        while let Some(next) = todo.pop() {
            if reached.insert(next) {
                todo.extend(actual.get(next).unwrap_or(&none));
            }
        }
        if reached.contains(name) {
            faults.push(format!("{name} depends on itself through other crates"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const DOCUMENT: &str = "text\n```graph\nprotocol:\nllm:  protocol\ntools: llm protocol\n```\n";

    fn metadata(edges: &[(&str, &[(&str, &str)])]) -> Value {
        let packages: Vec<Value> = edges
            .iter()
            .map(|(name, dependencies)| {
                let dependencies: Vec<Value> = dependencies
                    .iter()
                    .map(|(name, kind)| {
                        let kind = if kind.is_empty() { Value::Null } else { (*kind).into() };
                        json!({"name": name, "kind": kind})
                    })
                    .collect();
                json!({"name": name, "dependencies": dependencies})
            })
            .collect();
        json!({"packages": packages})
    }

    fn faults(edges: &[(&str, &[(&str, &str)])]) -> Vec<String> {
        compare(&documented_graph(DOCUMENT), &actual_graph(&metadata(edges)))
    }

    const PROTOCOL: (&str, &[(&str, &str)]) = ("windlass-protocol", &[("serde", "")]);
    const LLM: (&str, &[(&str, &str)]) = ("windlass-llm", &[("windlass-protocol", "")]);
    const TOOLS: (&str, &[(&str, &str)]) = (
        "windlass-tools",
        &[("windlass-protocol", ""), ("windlass-llm", ""), ("windlass-testkit", "dev")],
    );

    #[test]
    fn the_documented_graph_is_accepted() {
        assert_eq!(faults(&[PROTOCOL, LLM, TOOLS]), Vec::<String>::new());
    }

    #[test]
    fn an_undocumented_dependency_is_reported() {
        let extra = ("windlass-llm", &[("windlass-protocol", ""), ("windlass-tools", "build")][..]);
        let found = faults(&[PROTOCOL, extra, TOOLS]);
        assert!(
            found.contains(&"llm depends on tools, which the graph does not allow".into()),
            "{found:?}"
        );
    }

    #[test]
    fn a_normal_dependency_on_testkit_is_reported() {
        let extra = ("windlass-llm", &[("windlass-protocol", ""), ("windlass-testkit", "")][..]);
        let found = faults(&[PROTOCOL, extra, TOOLS]);
        assert!(
            found.contains(&"llm depends on testkit, which the graph does not allow".into()),
            "{found:?}"
        );
    }

    #[test]
    fn a_cycle_is_reported_even_if_it_is_documented() {
        let document = "```graph\na: b\nb: a\n```";
        let metadata = metadata(&[
            ("windlass-a", &[("windlass-b", "")]),
            ("windlass-b", &[("windlass-a", "")]),
        ]);
        let found = compare(&documented_graph(document), &actual_graph(&metadata));
        assert_eq!(
            found,
            [
                "a depends on itself through other crates",
                "b depends on itself through other crates"
            ]
        );
    }

    #[test]
    fn a_missing_dependency_or_crate_is_reported() {
        let without = ("windlass-tools", &[("windlass-protocol", "")][..]);
        assert_eq!(
            faults(&[PROTOCOL, LLM, without]),
            ["ARCHITECTURE.md: tools does not depend on llm"]
        );
        assert_eq!(faults(&[PROTOCOL, LLM]), ["ARCHITECTURE.md: there is no crate tools"]);
        let new = ("windlass-new", &[][..]);
        assert_eq!(
            faults(&[PROTOCOL, LLM, TOOLS, new]),
            ["ARCHITECTURE.md: the graph lacks the crate new"]
        );
    }
}
