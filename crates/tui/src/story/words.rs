//! Calls in the words of a person: what a tool is asked to do, what it does, and what came of it.

use serde_json::Value;
use windlass_protocol::text::{beginning, counted};
use windlass_protocol::{Display, Outcome, Output};

/// A call in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// What is done: "Read".
    pub verb: String,
    /// What it is done to, on one line: "src/main.rs".
    pub object: String,
    /// What else is to be known, in a few words: "1–80".
    pub note: String,
}

impl Words {
    fn of(verb: &str, object: impl Into<String>) -> Words {
        Words { verb: verb.to_owned(), object: first_line(&object.into()), note: String::new() }
    }

    fn with(mut self, note: impl Into<String>) -> Words {
        self.note = first_line(&note.into());
        self
    }

    /// The same as something that goes on: "reading src/main.rs".
    pub fn doing(&self) -> String {
        let verb = match self.verb.as_str() {
            "Read" => "reading",
            "Write" => "writing",
            "Edit" => "editing",
            "Patch" => "patching",
            "Run" => "running",
            "Search" => "searching",
            "Search the web" => "searching the web:",
            "Search code" => "searching code:",
            "Find" => "looking for",
            "Fetch" => "fetching",
            "Task" => "working with",
            "Ask" => "asking",
            "Plan" => "planning",
            "Look up" => "looking up",
            "Skill" => "reading the skill",
            "Undo" => "undoing",
            other => return format!("calling {other}"),
        };
        format!("{verb} {}", self.object).trim_end().to_owned()
    }
}

/// What a call asks for. The arguments are JSON, or what a model took for it. Files in the folder of the
/// project are named from there.
pub fn words(tool: &str, arguments: &str, root: &str) -> Words {
    let value: Value = serde_json::from_str(arguments).unwrap_or_default();
    told(tool, &value, root).unwrap_or_else(|| {
        let brief = match value.as_object() {
            Some(fields) => brief(fields),
            None => arguments.to_owned(),
        };
        Words::of(tool, brief)
    })
}

fn told(tool: &str, value: &Value, root: &str) -> Option<Words> {
    let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let path = |name: &str| text(name).map(|path| near(path, root));
    let within = |object: &str| match path("path").filter(|path| *path != ".") {
        Some(path) => format!("{object} in {path}"),
        None => object.to_owned(),
    };
    Some(match tool {
        "read" => Words::of("Read", path("filePath")?).with(lines(value)),
        "write" => Words::of("Write", path("filePath")?),
        "edit" => Words::of("Edit", path("filePath")?),
        "apply_patch" => Words::of("Patch", patched(text("patchText")?, root)),
        "bash" => {
            let flag = |name: &str| value.get(name).and_then(Value::as_bool).unwrap_or_default();
            let note = match (flag("background"), flag("outside")) {
                (true, _) => "in the background",
                (false, true) => "outside the sandbox",
                (false, false) => "",
            };
            Words::of("Run", text("command")?).with(note)
        }
        "grep" => Words::of("Search", within(text("pattern")?)),
        "glob" => Words::of("Find", within(text("pattern")?)),
        "webfetch" => {
            let url = text("url")?;
            let bare = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            Words::of("Fetch", bare.unwrap_or(url).trim_end_matches('/'))
        }
        "websearch" => Words::of("Search the web", text("query")?),
        "codesearch" => Words::of("Search code", text("query")?),
        "tool_search" => Words::of("Search tools", text("query")?),
        "task" => {
            let agent = text("subagent_type").unwrap_or("an agent");
            Words::of("Task", format!("{agent}: {}", text("description").unwrap_or_default()))
        }
        "question" => Words::of("Ask", headers(value)?),
        "plan_exit" => Words::of("Plan", ""),
        "todowrite" | "todoread" => Words::of("Todos", ""),
        "skill" => Words::of("Skill", text("name")?),
        "undo" => Words::of("Undo", ""),
        "lsp" => {
            let about = match (path("filePath"), value.get("line").and_then(Value::as_u64)) {
                (Some(path), Some(line)) => format!("{path}:{line}"),
                (Some(path), None) => path.to_owned(),
                (None, _) => text("query").unwrap_or_default().to_owned(),
            };
            Words::of("Look up", format!("{} {about}", text("operation").unwrap_or_default()))
        }
        "job" => {
            let id = value.get("id").and_then(Value::as_u64)?;
            Words::of("Job", format!("{id} {}", text("action").unwrap_or_default()))
        }
        "batch" => {
            let calls = value.get("tool_calls").and_then(Value::as_array)?;
            Words::of("Batch", counted(calls.len(), "call"))
        }
        "call_tool" => {
            let inner = value.get("arguments").cloned().unwrap_or_default();
            let name = text("name")?;
            told(name, &inner, root).unwrap_or_else(|| {
                Words::of(name, inner.as_object().map(brief).unwrap_or_default())
            })
        }
        "invalid" => Words::of(text("tool")?, text("error").unwrap_or_default()),
        _ => return None,
    })
}

/// Which lines a call to `read` asks for.
fn lines(value: &Value) -> String {
    let number = |name: &str| value.get(name).and_then(Value::as_u64);
    match (number("offset"), number("limit")) {
        (None, None) => String::new(),
        (from, None) => format!("from line {}", from.unwrap_or(1).max(1)),
        (from, Some(count)) => {
            let from = from.unwrap_or(1).max(1);
            format!("{from}–{}", from.saturating_add(count).saturating_sub(1))
        }
    }
}

/// A file as it is named from the folder of the project, if it lies there.
fn near<'a>(path: &'a str, root: &str) -> &'a str {
    match path.strip_prefix(root).filter(|_| !root.is_empty()) {
        Some("" | "/") => ".",
        Some(rest) => rest.strip_prefix('/').unwrap_or(path),
        None => path,
    }
}

/// The files that a patch names.
fn patched(patch: &str, root: &str) -> String {
    let named = patch.lines().filter_map(|line| {
        let rest = line.strip_prefix("*** ")?;
        let (what, path) = rest.split_once(" File: ")?;
        matches!(what, "Add" | "Update" | "Delete").then_some(near(path.trim(), root))
    });
    let files: Vec<&str> = named.collect();
    match files.as_slice() {
        [] => String::new(),
        [first] => (*first).to_owned(),
        [first, second] => format!("{first}, {second}"),
        [first, second, others @ ..] => format!("{first}, {second} and {} more", others.len()),
    }
}

fn headers(value: &Value) -> Option<String> {
    let questions = value.get("questions").and_then(Value::as_array)?;
    let name = |question: &Value| {
        let named = |field: &str| question.get(field).and_then(Value::as_str).map(str::to_owned);
        named("header").or_else(|| named("question"))
    };
    Some(questions.iter().filter_map(name).collect::<Vec<_>>().join(", "))
}

/// Arguments of a tool that nobody knows, in a few words.
fn brief(fields: &serde_json::Map<String, Value>) -> String {
    let field = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => beginning(text, 60),
            other => beginning(&other.to_string(), 60),
        };
        format!("{name}: {value}")
    };
    beginning(&fields.iter().map(field).collect::<Vec<_>>().join(", "), 160)
}

/// What came of a call, in a few words; nothing if there is nothing to say.
pub(super) fn gist(tool: &str, output: &Output) -> String {
    match &output.display {
        Display::Diff { unified } => {
            let (added, removed) = changes(unified);
            return format!("+{added} −{removed}");
        }
        Display::Checklist { .. } => return output.title.clone(),
        Display::Text | Display::Terminal { .. } => {}
    }
    let text = output.text.as_str();
    let numbered = |line: &&str| {
        let digits = line.trim_start().split(':').next().unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match tool {
        "read" => match text.lines().filter(numbered).count() {
            0 => String::new(),
            count => counted(count, "line"),
        },
        "grep" => {
            let matches = text.lines().filter(|line| line.starts_with("  ")).filter(numbered);
            counted(total(text).unwrap_or_else(|| matches.count()), "match")
        }
        "glob" => {
            let files = text.lines().filter(|line| !line.starts_with(['[', '('])).count();
            counted(total(text).unwrap_or(files), "file")
        }
        "bash" => output.exit().map_or_else(String::new, |code| format!("exit {code}")),
        "question" => text.lines().filter_map(|line| line.rsplit_once(" → ")).fold(
            String::new(),
            |all, (_, answer)| {
                if all.is_empty() { answer.into() } else { all + "; " + answer }
            },
        ),
        _ => String::new(),
    }
}

/// How many there are in all, where a page says so: `[100 of 103 files; …]`.
fn total(text: &str) -> Option<usize> {
    let last = text.lines().rev().find(|line| line.starts_with('['))?;
    let (_, behind) = last.split_once(" of ")?;
    behind.split(' ').next()?.parse().ok()
}

/// How many lines a change adds and removes.
pub(super) fn changes(unified: &str) -> (usize, usize) {
    let (mut added, mut removed) = (0, 0);
    // How many lines of the two sides a hunk still has: a line that was removed may look like the
    // head of a file.
    let (mut old, mut new) = (0_usize, 0_usize);
    for line in unified.lines() {
        if old == 0 && new == 0 {
            (old, new) = hunk(line).unwrap_or_default();
            continue;
        }
        match line.as_bytes().first() {
            Some(b'+') => (added, new) = (added + 1, new.saturating_sub(1)),
            Some(b'-') => (removed, old) = (removed + 1, old.saturating_sub(1)),
            Some(b'\\') => {}
            _ => (old, new) = (old.saturating_sub(1), new.saturating_sub(1)),
        }
    }
    (added, removed)
}

/// How many lines a hunk has of each side: `@@ -1,3 +1,4 @@`.
fn hunk(line: &str) -> Option<(usize, usize)> {
    let (sides, _) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = sides.split_once(" +")?;
    let count = |side: &str| match side.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    };
    Some((count(old)?, count(new)?))
}

/// What a call that did not go well says first.
pub(super) fn reason(outcome: &Outcome) -> String {
    let said = outcome.text().lines().map(str::trim).find(|line| !line.is_empty());
    said.unwrap_or_default().to_owned()
}

/// The first line of a text, and a sign if there are others.
pub(super) fn first_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default().trim_end();
    match lines.next() {
        Some(_) => format!("{first} …"),
        None => first.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_of_the_project_are_named_from_there_and_no_others() {
        let read = |path: &str, root| words("read", &json!({"filePath": path}).to_string(), root);
        for (path, named) in [
            ("/w/one/src/a.rs", "src/a.rs"),
            ("/w/one/", "."),
            ("/w/one", "."),
            ("/w/one-two/a.rs", "/w/one-two/a.rs"),
            ("/etc/hosts", "/etc/hosts"),
            ("src/a.rs", "src/a.rs"),
        ] {
            assert_eq!(read(path, "/w/one").object, named);
        }
        assert_eq!(read("/a.rs", "").object, "/a.rs");
        let patch = json!({"patchText": "*** Begin Patch\n*** Update File: /w/one/b.rs\n"});
        assert_eq!(words("apply_patch", &patch.to_string(), "/w/one").object, "b.rs");
        let grep = json!({"pattern": "x", "path": "/w/one/src"}).to_string();
        assert_eq!(words("grep", &grep, "/w/one").object, "x in src");
        let grep = json!({"pattern": "x", "path": "/w/one"}).to_string();
        assert_eq!(words("grep", &grep, "/w/one").object, "x");
    }
}
