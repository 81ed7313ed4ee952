//! Descriptions of calls for front ends: from the tool, or from the name and the arguments.

use super::{Registry, tool_name_match};
use crate::argument_repair;
use serde_json::{Map, Value};
use windlass_protocol::CallDescription;
use windlass_protocol::display_text::truncate_chars;

/// Maximum characters of one argument, and of all of them.
const MAX_ARGUMENT_CHARS: usize = 60;
const MAX_ARGUMENTS_CHARS: usize = 160;

impl Registry {
    /// Describes a call to the user. `tool` and `arguments` are as the model wrote them; paths
    /// below `root`, the folder of the project, are relative to it.
    pub fn describe_call(&self, tool: &str, arguments: &str, root: &str) -> CallDescription {
        let value = match argument_repair::parse_arguments(arguments) {
            Ok(parsed) => parsed.value,
            Err(_) => return generic_description(tool, arguments),
        };
        let result = {
            let state = self.read();
            let tools = state.callable_tools();
            let names: Vec<&str> = tools.keys().copied().collect();
            let matched =
                tool_name_match::match_tool_name(tool, &names).and_then(|name| tools.get(name));
            matched.map(|matched| (matched.alias_of(&value), matched.describe_call(&value, root)))
        };
        match result {
            // An alias of an alias has no target, so this ends.
            Some((Some(target), _)) if target.tool != tool => {
                self.describe_call(&target.tool, &target.arguments, root)
            }
            Some((_, Some(description))) => description,
            Some((_, None)) | None => match value.as_object() {
                Some(fields) => generic_description(tool, &summarize_arguments(fields)),
                None => generic_description(tool, arguments),
            },
        }
    }
}

fn generic_description(tool: &str, arguments: &str) -> CallDescription {
    let arguments = truncate_chars(arguments, MAX_ARGUMENTS_CHARS);
    CallDescription::new(tool, &format!("calling {tool}"), arguments)
}

fn summarize_arguments(fields: &Map<String, Value>) -> String {
    let to_text = |(name, value): (&String, &Value)| {
        let value = match value {
            Value::String(text) => truncate_chars(text, MAX_ARGUMENT_CHARS),
            other => truncate_chars(&other.to_string(), MAX_ARGUMENT_CHARS),
        };
        format!("{name}: {value}")
    };
    fields.iter().map(to_text).collect::<Vec<_>>().join(", ")
}

/// Returns a path relative to the project folder `root`, if it lies inside.
pub fn relative_path<'a>(path: &'a str, root: &str) -> &'a str {
    match path.strip_prefix(root).filter(|_| !root.is_empty()) {
        Some("" | "/") => ".",
        Some(rest) => rest.strip_prefix('/').unwrap_or(path),
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_the_project_is_relative_to_it() {
        for (path, expected) in [
            ("/w/one/src/a.rs", "src/a.rs"),
            ("/w/one/", "."),
            ("/w/one", "."),
            ("/w/one-two/a.rs", "/w/one-two/a.rs"),
            ("/etc/hosts", "/etc/hosts"),
            ("src/a.rs", "src/a.rs"),
        ] {
            assert_eq!(relative_path(path, "/w/one"), expected);
        }
        assert_eq!(relative_path("/a.rs", ""), "/a.rs");
    }

    #[test]
    fn a_call_of_an_unknown_tool_is_described_by_its_arguments() {
        let description = Registry::default().describe_call("deploy", r#"{"to": "x", "n": 3}"#, "");
        assert_eq!(description.phrase(), "deploy to: x, n: 3");
        assert_eq!(description.progress_text(), "calling deploy to: x, n: 3");
        let description = Registry::default().describe_call("deploy", "not JSON at all", "");
        assert_eq!(description.phrase(), "deploy not JSON at all");
    }
}
