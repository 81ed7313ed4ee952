//! Generates the book's pages about tools from the tools: description, arguments and every case.
//! `UPDATE_EXPECT=1` writes them.
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

/// Tools that no model is offered.
const INTERNAL_TOOLS: [&str; 2] = ["invalid", "undo"];

/// Returns the tools: every folder with a description, sorted by name.
fn tools() -> Vec<String> {
    let entries = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    let described = folders.filter(|folder| folder.join("description.md").exists());
    let name = |folder: PathBuf| folder.file_name().unwrap().to_str().unwrap().to_owned();
    let mut tools: Vec<String> = described.map(name).collect();
    tools.retain(|tool| !INTERNAL_TOOLS.contains(&tool.as_str()));
    tools.sort_unstable();
    tools
}

fn tool_dir(tool: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(tool)
}

fn page(tool: &str) -> String {
    let folder = tool_dir(tool);
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
        (true, "lsp") => "\nTested with real servers in `crates/lsp/tests/real`.\n",
        (true, "webfetch") => "\nTested with a hostile site in `crates/tools/tests/web`.\n",
        (true, "websearch" | "codesearch") => {
            "\nTested with a server that answers like the search engines in `crates/web/tests/search.rs`.\n"
        }
        (true, _) => "\nTested with real processes in `crates/cli/tests/shell.rs`.\n",
        (false, _) => "\nEach of the following examples is also a test.\n",
    });
    for path in cases {
        page.push_str(&example(&Case::load(path)));
    }
    page
}

fn kind(property: &Value) -> String {
    if let Some(options) = property["oneOf"].as_array() {
        let values = options.iter().filter_map(|option| option["const"].as_str());
        return values.map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(values) = property["enum"].as_array() {
        let values = values.iter().filter_map(Value::as_str);
        return values.map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ");
    }
    let type_name = match &property["type"] {
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        kind => kind.as_str(),
    };
    type_name.unwrap_or("any").to_owned()
}

fn cases(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder.join("cases")) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Renders a case: the files before, the call, and the result.
fn example(case: &Case) -> String {
    let mut text = format!("\n## {}\n", case.sentence.trim().trim_end_matches('.'));
    for section in &case.sections {
        let argument = &section.argument;
        let head = match section.name.as_str() {
            "file" | "file-no-newline" => format!("`{argument}` contains"),
            "files" => {
                let (number, pattern) = argument.split_once(' ').unwrap();
                format!("{number} files of one age: `{pattern}`, numbered from 001")
            }
            "file-crlf" => format!("`{argument}` contains, with CRLF line ends"),
            "bytes" => format!("`{argument}` contains these bytes"),
            "outside" => format!("`{argument}`, outside the workspace, contains"),
            "link" => format!("A link: `{}`", argument.replace(' ', "` to `")),
            "modified" => {
                let (path, seconds) = argument.split_once(' ').unwrap();
                format!("`{path}` was last changed {seconds} seconds ago")
            }
            "read" => format!("The model has read `{argument}`"),
            "read-earlier" => format!("The model has read `{argument}` when it contained"),
            "concurrent-write" => {
                format!("After the approval, another program writes to `{argument}`")
            }
            "concurrent-remove" => {
                format!("After the approval, another program removes `{argument}`")
            }
            "concurrent-touch" => {
                format!("After the approval, another program touches `{argument}`")
            }
            "agent" => format!("The agent `{argument}` replies"),
            "model" => format!("The model is `{argument}`"),
            "mode" => format!("The mode is {argument}"),
            "todos" => "The to-do list".to_owned(),
            "skill" => {
                let (name, description) = argument.split_once(' ').unwrap();
                format!("The skill `{name}` ({description}) contains")
            }
            "external-tool" => {
                let (name, description) = argument.split_once(' ').unwrap();
                format!("The searchable tool `{name}` ({description}) takes")
            }
            "unavailable-source" => {
                let (name, reason) = argument.split_once(' ').unwrap();
                format!("The tools of `{name}` are not available: {reason}")
            }
            "replies" if section.body.trim() == "[]" => "The user does not answer".to_owned(),
            "replies" => "The user answers".to_owned(),
            "question" => format!("The user is asked: {argument}"),
            "trusted" => "The user trusts the project".to_owned(),
            "permission" => "The user's rules".to_owned(),
            "answer" => format!("The user answers {argument}"),
            "call" => format!("The call of `{argument}`"),
            "repairs" => "Repairs".to_owned(),
            "approval" => format!("The user is asked for approval, because {argument}"),
            "outcome" => match argument.as_str() {
                "completed" => "Result".to_owned(),
                "failed" => "The call fails".to_owned(),
                other => format!("The call is {other}"),
            },
            "attachment" => format!("The model receives {argument}"),
            "after" => format!("`{argument}` then contains"),
            "after-crlf" => format!("`{argument}` then contains, with CRLF line ends"),
            "after-bytes" => format!("`{argument}` then contains these bytes"),
            "removed" => format!("`{argument}` no longer exists"),
            // Accesses follow from the call, and the diff from the files.
            "access" | "display" => continue,
            other => panic!("unknown section of a case: {other}"),
        };
        match section.body.as_str() {
            "" => match head.strip_suffix(" contains") {
                Some(subject) => writeln!(text, "\n{subject} is empty.").unwrap(),
                None => writeln!(text, "\n{head}.").unwrap(),
            },
            body => writeln!(text, "\n{head}:\n\n~~~~text\n{}\n~~~~", truncate_body(body)).unwrap(),
        }
    }
    text
}

/// Returns the beginning of a body.
fn truncate_body(body: &str) -> String {
    const LINES: usize = 24;
    const CHARS: usize = 240;
    let lines = body.lines().take(LINES).map(|line| match line.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{} …", line.split_at(end).0),
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
    let book = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src");
    let read = |name: &str| std::fs::read_to_string(book.join(name)).unwrap();
    let (summary, overview) = (read("SUMMARY.md"), read("tools.md"));
    for tool in tools() {
        let path = format!("../../../docs/book/src/tools/{tool}.md");
        expect_test::ExpectFile { path: PathBuf::from(path), position: file!() }
            .assert_eq(&page(&tool));
        let link = format!("[{tool}](tools/{tool}.md)");
        assert!(summary.contains(&link), "add {link} to docs/book/src/SUMMARY.md");
        assert!(overview.contains(&link), "add {link} to docs/book/src/tools.md");
    }
}

#[test]
fn the_benchmarks_page_has_the_figures_of_the_corpus() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let corpus = std::fs::read_to_string(root.join("src/edit/replace/corpus.md")).unwrap();
    let page = std::fs::read_to_string(root.join("../../docs/book/src/benchmarks.md")).unwrap();
    assert!(page.contains(corpus.trim()), "copy corpus.md into docs/book/src/benchmarks.md");
}
