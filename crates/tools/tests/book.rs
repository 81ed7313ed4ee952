//! The book's pages about tools are made from the tools themselves: what a model reads, what it is
//! sent, and every case. `UPDATE_EXPECT=1` writes them.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test reads the project's files, and fails by panicking"
)]

use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use windlass_testkit::Case;

const TOOLS: [&str; 21] = [
    "read",
    "write",
    "edit",
    "apply_patch",
    "glob",
    "grep",
    "bash",
    "job",
    "lsp",
    "todowrite",
    "todoread",
    "question",
    "plan_exit",
    "skill",
    "batch",
    "task",
    "tool_search",
    "call_tool",
    "webfetch",
    "websearch",
    "codesearch",
];

fn folder(tool: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(tool)
}

fn page(tool: &str) -> String {
    let folder = folder(tool);
    let description = std::fs::read_to_string(folder.join("description.md")).unwrap();
    let schema = std::fs::read_to_string(folder.join("schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut page = format!("# {tool}\n\n{}\n\n", description.trim());
    page.push_str("| argument | type | meaning |\n|---|---|---|\n");
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    for (name, property) in &properties {
        let optional = if required.contains(&name.as_str().into()) { "" } else { ", optional" };
        let meaning = property["description"].as_str().unwrap_or_default().replace('\n', " ");
        writeln!(page, "| `{name}` | {}{optional} | {meaning} |", kind(property)).unwrap();
    }
    let cases = cases(&folder);
    page.push_str(match (cases.is_empty(), tool) {
        (true, "lsp") => "\nWhat it does is tried with real servers: `crates/lsp/tests/real`.\n",
        (true, "webfetch") => "\nWhat it does is tried with a hostile site: `crates/tools/tests/web`.\n",
        (true, "websearch" | "codesearch") => {
            "\nWhat it does is tried with a server that answers as engines do: `crates/web/tests/search.rs`.\n"
        }
        (true, _) => "\nWhat it does is tried with real processes: `crates/cli/tests/shell.rs`.\n",
        (false, _) => "\nWhat it does is told by examples, each of which is a test.\n",
    });
    for path in cases {
        page.push_str(&example(&Case::load(path)));
    }
    page
}

fn kind(property: &Value) -> String {
    if let Some(options) = property["oneOf"].as_array() {
        let words = options.iter().filter_map(|option| option["const"].as_str());
        return words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(words) = property["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str);
        return words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    }
    let named = match &property["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    };
    named.unwrap_or("any").to_owned()
}

fn cases(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder.join("cases")) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A case as a reader wants it: what stands there, what is called, what comes of it.
fn example(case: &Case) -> String {
    let mut text = format!("\n## {}\n", case.sentence.trim().trim_end_matches('.'));
    for section in &case.sections {
        let argument = &section.argument;
        let head = match section.name.as_str() {
            "file" | "file-cut" => format!("`{argument}` holds"),
            "files" => {
                let (number, pattern) = argument.split_once(' ').unwrap();
                format!("{number} files of one age: `{pattern}`, numbered from 001")
            }
            "file-crlf" => format!("`{argument}` holds, with CRLF line ends"),
            "bytes" => format!("`{argument}` holds these bytes"),
            "outside" => format!("`{argument}`, outside of the workspace, holds"),
            "link" => format!("A link: `{}`", argument.replace(' ', "` to `")),
            "old" => {
                let (path, seconds) = argument.split_once(' ').unwrap();
                format!("`{path}` was last changed {seconds} seconds ago")
            }
            "read" => format!("The model has read `{argument}`"),
            "read-as" => format!("The model has read `{argument}` when it held"),
            "meanwhile" => format!("After the approval, somebody else writes to `{argument}`"),
            "meanwhile-gone" => format!("After the approval, somebody else removes `{argument}`"),
            "meanwhile-touch" => format!("After the approval, somebody else touches `{argument}`"),
            "agent" => format!("The agent `{argument}` says"),
            "model" => format!("The model is `{argument}`"),
            "mode" => format!("The mode is {argument}"),
            "todos" => "The list was last written as".to_owned(),
            "skill" => {
                let (name, description) = argument.split_once(' ').unwrap();
                format!("The skill `{name}` ({description}) says")
            }
            "stranger" => {
                let (name, description) = argument.split_once(' ').unwrap();
                format!("The model is not told of `{name}` ({description}), which takes")
            }
            "awaited" => {
                let (name, why) = argument.split_once(' ').unwrap();
                format!("The tools of `{name}` are still to come, and do not: {why}")
            }
            "replies" if section.body.trim() == "[]" => "Nobody answers".to_owned(),
            "replies" => "The person replies".to_owned(),
            "inquired" => format!("The person is asked about {argument}"),
            "trusted" => "The person trusts the project".to_owned(),
            "permission" => "The person's rules".to_owned(),
            "answer" => format!("The person answers {argument}"),
            "call" => format!("The call of `{argument}`"),
            "repaired" => "What was repaired".to_owned(),
            "asked" => format!("The person is asked, because {argument}"),
            "outcome" => match argument.as_str() {
                "completed" => "It is done".to_owned(),
                "failed" => "It fails".to_owned(),
                other => format!("It is {other}"),
            },
            "attachment" => format!("The model is shown {argument}"),
            "after" => format!("`{argument}` then holds"),
            "after-crlf" => format!("`{argument}` then holds, with CRLF line ends"),
            "after-bytes" => format!("`{argument}` then holds these bytes"),
            "gone" => format!("`{argument}` is gone"),
            // What it would touch follows from the call, and the diff from the files.
            "access" | "display" => continue,
            other => panic!("a section of cases that the book does not know: {other}"),
        };
        match section.body.as_str() {
            "" => writeln!(text, "\n{}.", head.replace(" holds", " is empty")).unwrap(),
            body => writeln!(text, "\n{head}:\n\n~~~~text\n{}\n~~~~", shown(body)).unwrap(),
        }
    }
    text
}

/// Enough of a body to see what it is.
fn shown(body: &str) -> String {
    const LINES: usize = 24;
    const CHARS: usize = 240;
    let lines = body.lines().take(LINES).map(|line| match line.char_indices().nth(CHARS) {
        Some((at, _)) => format!("{} …", line.split_at(at).0),
        None => line.to_owned(),
    });
    let mut lines: Vec<String> = lines.collect();
    if body.lines().count() > LINES {
        lines.push("…".to_owned());
    }
    lines.join("\n")
}

#[test]
fn the_pages_about_tools_are_current() {
    for tool in TOOLS {
        let path = format!("../../../docs/book/src/tools/{tool}.md");
        expect_test::ExpectFile { path: PathBuf::from(path), position: file!() }
            .assert_eq(&page(tool));
    }
}

#[test]
fn the_benchmarks_page_has_the_figures_of_the_corpus() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = std::fs::read_to_string(root.join("src/edit/replace/corpus.md")).unwrap();
    let page = std::fs::read_to_string(root.join("../../docs/book/src/benchmarks.md")).unwrap();
    assert!(page.contains(corpus.trim()), "copy corpus.md into docs/book/src/benchmarks.md");
}
