//! The `allowed-tools` of skills and custom commands, as permission rules.

use crate::claude_permission_rules::{ClaudeRuleLevel, convert_rule};
use serde_json::{Map, Value};
use windlass_protocol::{AllowedCalls, AllowedCallsSource};

const MAX_ALLOWED_TOOLS: usize = 64;

/// Our names of tools that have another permission key or another case in Claude's rules.
const CLAUDE_NAMES: [(&str, &str); 9] = [
    ("bash", "Bash"),
    ("read", "Read"),
    ("edit", "Edit"),
    ("write", "Write"),
    ("apply_patch", "Edit"),
    ("task", "Task"),
    ("skill", "Skill"),
    ("webfetch", "WebFetch"),
    ("notebookedit", "Edit"),
];

/// Parses the value of `allowed-tools`: a list, or a text with commas or spaces. The error is a
/// message.
pub(crate) fn parse_allowed_tools(value: Option<&Value>) -> Result<Vec<String>, String> {
    let tools = match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::String(names)) => split_tools(names),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Some(Value::Bool(_) | Value::Number(_) | Value::Object(_)) => {
            return Err("`allowed-tools` must be a list of tools".to_owned());
        }
    };
    Ok(tools.into_iter().filter(|name| !name.is_empty()).take(MAX_ALLOWED_TOOLS).collect())
}

/// Converts the tools that a skill or command names into the calls that it may make; `None` if it
/// names none. A tool that cannot be converted is left out, so that its calls require approval.
///
/// Starting a subagent needs no name: the same limit applies to it.
pub fn allowed_calls(
    (source, name): (AllowedCallsSource, &str),
    tools: &[String],
) -> Option<AllowedCalls> {
    let mut rules = Map::new();
    for tool in tools {
        let (tool_name, pattern) = tool.split_once('(').unwrap_or((tool, ""));
        let known = CLAUDE_NAMES.iter().find(|(own, _)| tool_name.eq_ignore_ascii_case(own));
        let text = match known {
            Some((_, claude)) if pattern.is_empty() => (*claude).to_owned(),
            Some((_, claude)) => format!("{claude}({pattern}"),
            None => tool.clone(),
        };
        let converted = convert_rule(&text, ClaudeRuleLevel::Allow, true);
        match converted {
            Ok(patterns) => {
                for (key, pattern) in patterns {
                    add_rule(&mut rules, &key, &pattern);
                }
            }
            // The tool of a server or a custom tool, by its own name.
            Err(_) if known.is_none() && pattern.is_empty() => {
                add_rule(&mut rules, &tool_name.to_ascii_lowercase(), "*");
            }
            Err(_) => {}
        }
    }
    let (name, tools) = (name.to_owned(), tools.to_vec());
    (!tools.is_empty()).then_some(AllowedCalls { source, name, tools, rules })
}

fn add_rule(rules: &mut Map<String, Value>, key: &str, pattern: &str) {
    let entry = rules.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if pattern == "*" {
        *entry = Value::from("allow");
    } else if let Value::Object(patterns) = entry {
        patterns.insert(pattern.to_owned(), Value::from("allow"));
    }
}

/// Splits a list of tools at spaces and commas, except in parentheses: `Bash(git add *), Read`.
fn split_tools(names: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let is_separator = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(c, ' ' | ',')
    };
    names.split(is_separator).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tools_become_rules() {
        let rows = [
            ("Read, Grep", json!({"read": "allow", "grep": "allow"})),
            (
                "Bash(git add:*) Bash(git commit -m:*)",
                json!({"bash": {"git add *": "allow", "git commit -m *": "allow"}}),
            ),
            ("Bash(git:*), Bash", json!({"bash": "allow"})),
            ("bash,edit", json!({"bash": "allow", "edit": "allow"})),
            ("Task", json!({"task": "allow"})),
            ("mcp__docs__search", json!({"docs_search": "allow"})),
            ("weather", json!({"weather": "allow"})),
            // A pattern that would allow more here is left out.
            ("Bash(a | b)", json!({})),
        ];
        for (text, expected) in rows {
            let tools = parse_allowed_tools(Some(&text.into())).unwrap();
            let calls = allowed_calls((AllowedCallsSource::Skill, "x"), &tools).unwrap();
            assert_eq!(Value::Object(calls.rules), expected, "{text}");
        }
        assert_eq!(allowed_calls((AllowedCallsSource::Skill, "x"), &[]), None);
        assert!(parse_allowed_tools(Some(&json!(7))).is_err());
    }
}
