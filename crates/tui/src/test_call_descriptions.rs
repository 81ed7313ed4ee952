//! Descriptions of calls for tests, as the built-in tools write them.

use serde_json::Value;
use windlass_protocol::CallDescription;

/// Describes a call of a built-in tool by its main argument, and any other call by its name.
pub(crate) fn describe(tool: &str, arguments: &str) -> CallDescription {
    let value: Value = serde_json::from_str(arguments).unwrap_or_default();
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    match tool {
        "read" => {
            let description = CallDescription::new("Read", "reading", text("filePath"));
            let number = |name: &str| value.get(name).and_then(Value::as_u64);
            let note = match (number("offset"), number("limit")) {
                (Some(first), Some(count)) => format!("lines {first}–{}", first + count - 1),
                _ => String::new(),
            };
            description.with_note(note).covering_arguments()
        }
        "write" => CallDescription::new("Write", "writing", text("filePath")),
        "edit" => CallDescription::new("Edit", "editing", text("filePath")),
        "bash" => CallDescription::new("Run", "running", text("command")).covering_arguments(),
        "grep" => CallDescription::new("Search", "searching", text("pattern")).covering_arguments(),
        "glob" => CallDescription::new("Find", "finding", text("pattern")).covering_arguments(),
        "webfetch" => CallDescription::new("Fetch", "fetching", text("url")),
        "task" => {
            let object = format!("{}: {}", text("subagent_type"), text("description"));
            CallDescription::new("Task", "running subagent", object)
        }
        "question" => CallDescription::new("Ask", "asking", ""),
        "todowrite" => CallDescription::new("Todos", "updating todos", ""),
        "undo" => CallDescription::new("Undo", "undoing", ""),
        _ => CallDescription::default(),
    }
}
