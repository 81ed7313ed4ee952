//! The graph in ARCHITECTURE.md is the graph: every edge between our crates is written down, and
//! every one that is written down exists.

use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Crates that only tests and chores use.
const BESIDE: &[&str] = &["testkit", "xtask"];

pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let document = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(root)
        .output()
        .context("cargo metadata could not be started")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    Ok(compare(&written(&document), &real(&metadata)))
}

/// The graph a document writes down.
pub(crate) fn written(document: &str) -> Graph {
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

/// The graph there is: normal and build dependencies between our crates. What tests use is free,
/// except that nothing but tests may use what is beside the house.
pub(crate) fn real(metadata: &Value) -> Graph {
    let short = |name: &str| name.strip_prefix("windlass-").unwrap_or(name).to_owned();
    let empty = Vec::new();
    let list = |value: &Value| value.as_array().unwrap_or(&empty).clone();
    let mut graph = Graph::new();
    for package in list(metadata.get("packages").unwrap_or(&Value::Null)) {
        let text = |value: &Value, key: &str| {
            value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let name = short(&text(&package, "name"));
        if BESIDE.contains(&name.as_str()) {
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

/// Where two graphs differ, and where the real one goes round in a circle.
pub(crate) fn compare(written: &Graph, real: &Graph) -> Vec<String> {
    let mut faults = Vec::new();
    let none = BTreeSet::new();
    let names: BTreeSet<&String> = written.keys().chain(real.keys()).collect();
    for name in names {
        match (written.get(name), real.get(name)) {
            (None, _) => faults.push(format!("ARCHITECTURE.md: the graph lacks the crate {name}")),
            (_, None) => faults.push(format!("ARCHITECTURE.md: there is no crate {name}")),
            (Some(written), Some(real)) => {
                for extra in real.difference(written) {
                    faults
                        .push(format!("{name} depends on {extra}, which the graph does not allow"));
                }
                for missing in written.difference(real) {
                    faults.push(format!("ARCHITECTURE.md: {name} does not depend on {missing}"));
                }
            }
        }
    }
    for name in real.keys() {
        let mut reached: BTreeSet<&String> = BTreeSet::new();
        let mut todo: Vec<&String> = real.get(name).unwrap_or(&none).iter().collect();
        while let Some(next) = todo.pop() {
            if reached.insert(next) {
                todo.extend(real.get(next).unwrap_or(&none));
            }
        }
        if reached.contains(name) {
            faults.push(format!("{name} depends on itself, by way of others"));
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
        compare(&written(DOCUMENT), &real(&metadata(edges)))
    }

    const PROTOCOL: (&str, &[(&str, &str)]) = ("windlass-protocol", &[("serde", "")]);
    const LLM: (&str, &[(&str, &str)]) = ("windlass-llm", &[("windlass-protocol", "")]);
    const TOOLS: (&str, &[(&str, &str)]) = (
        "windlass-tools",
        &[("windlass-protocol", ""), ("windlass-llm", ""), ("windlass-testkit", "dev")],
    );

    #[test]
    fn the_written_graph_is_accepted() {
        assert_eq!(faults(&[PROTOCOL, LLM, TOOLS]), Vec::<String>::new());
    }

    #[test]
    fn an_extra_edge_is_stopped() {
        let extra = ("windlass-llm", &[("windlass-protocol", ""), ("windlass-tools", "build")][..]);
        let found = faults(&[PROTOCOL, extra, TOOLS]);
        assert!(
            found.contains(&"llm depends on tools, which the graph does not allow".into()),
            "{found:?}"
        );
    }

    #[test]
    fn a_test_helper_outside_tests_is_stopped() {
        let extra = ("windlass-llm", &[("windlass-protocol", ""), ("windlass-testkit", "")][..]);
        let found = faults(&[PROTOCOL, extra, TOOLS]);
        assert!(
            found.contains(&"llm depends on testkit, which the graph does not allow".into()),
            "{found:?}"
        );
    }

    #[test]
    fn a_cycle_is_stopped_even_if_it_is_written_down() {
        let document = "```graph\na: b\nb: a\n```";
        let metadata = metadata(&[
            ("windlass-a", &[("windlass-b", "")]),
            ("windlass-b", &[("windlass-a", "")]),
        ]);
        let found = compare(&written(document), &real(&metadata));
        assert_eq!(
            found,
            ["a depends on itself, by way of others", "b depends on itself, by way of others"]
        );
    }

    #[test]
    fn an_edge_or_crate_that_is_gone_is_noticed() {
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
