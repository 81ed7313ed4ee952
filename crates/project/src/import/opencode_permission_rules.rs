//! Imports OpenCode's permission rules, in which the last match counts.

use super::plan_builder::ImportPlanBuilder;
use super::{ImportScope, OrderedPermissionRule};
use serde_json::{Map, Value};

/// Rules by key: a level for all patterns, or patterns with a level each.
type RulesByKey = Map<String, Value>;

/// Imports the `permission` setting.
pub(super) fn import_rules(builder: &mut ImportPlanBuilder<'_>, value: Value) {
    let Some(keys) = convert_rules(builder, "permission", &value) else { return };
    for (key, value) in keys {
        match value {
            Value::Object(patterns) => {
                for (pattern, level) in patterns {
                    set_rule(builder, &["permission", &key, &pattern], level);
                }
            }
            level => set_rule(builder, &["permission", &key], level),
        }
    }
}

fn set_rule(builder: &mut ImportPlanBuilder<'_>, path: &[&str], level: Value) {
    let description = match (level.as_str(), level.get("except")) {
        (Some(level), _) => level.to_owned(),
        (None, Some(except)) => format!("deny except {except}"),
        (None, None) => level.to_string(),
    };
    builder.set_key(path, level, &description);
}

/// Converts rules into ours and reports those that are left out, under the name of the setting.
/// Returns `None` if the value is not a set of rules. The rules of a project, and of its agents, can
/// only restrict.
pub(super) fn convert_rules(
    builder: &mut ImportPlanBuilder<'_>,
    setting: &str,
    value: &Value,
) -> Option<RulesByKey> {
    let is_restricting = builder.scope == ImportScope::Project;
    let keys = match value {
        Value::String(_) => Map::from_iter([("*".to_owned(), value.clone())]),
        Value::Object(keys) => keys.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            builder.skip(setting, "not an object");
            return None;
        }
    };
    let mut rules = Vec::new();
    for (key, value) in keys {
        let patterns = match value {
            Value::Object(patterns) => patterns,
            level => Map::from_iter([("*".to_owned(), level)]),
        };
        for (pattern, level) in patterns {
            let name = rule_name(setting, &key, &pattern);
            let Some(level @ ("allow" | "ask" | "deny")) = level.as_str() else {
                builder.skip(name, "not `allow`, `ask` or `deny`");
                continue;
            };
            match convert_rule(&key, &pattern, level) {
                Ok((new_key, new_pattern)) => {
                    if new_pattern == "*" && pattern != "*" {
                        builder.add_note(format!(
                            "{name} has no equivalent, so `{level}` applies to all of `{new_key}`"
                        ));
                    }
                    let (key, pattern) = (new_key, new_pattern);
                    let rule = OrderedPermissionRule { key, pattern, level: level.to_owned() };
                    // Two rules may become the same; the stricter one counts.
                    let strictness =
                        |level: &str| ["allow", "ask", "deny"].iter().position(|it| *it == level);
                    let same = rules.iter().position(|it: &OrderedPermissionRule| {
                        (&it.key, &it.pattern) == (&rule.key, &rule.pattern)
                    });
                    let old = same.map(|index| rules.remove(index));
                    let is_stricter = |old: &OrderedPermissionRule| {
                        strictness(&old.level) > strictness(&rule.level)
                    };
                    rules.push(old.filter(is_stricter).unwrap_or(rule));
                }
                Err(reason) => builder.skip(name, reason),
            }
        }
    }
    // The patterns of a key are together in the result, too.
    let mut grouped: Vec<OrderedPermissionRule> = Vec::new();
    for key in rules.iter().map(|rule| &rule.key) {
        if !grouped.iter().any(|rule| rule.key == *key) {
            grouped.extend(rules.iter().filter(|rule| rule.key == *key).cloned());
        }
    }
    let translated = builder.checks.translate_rules(&grouped, is_restricting);
    for (rule, reason) in translated.dropped {
        builder.skip(rule_name(setting, &rule.key, &rule.pattern), reason);
    }
    let mut result = RulesByKey::new();
    for (key, pattern, level) in translated.rules {
        let patterns = result.entry(key).or_insert_with(|| Map::new().into());
        if let Value::Object(patterns) = patterns {
            patterns.insert(pattern, level);
        }
    }
    for value in result.values_mut() {
        let only = value.as_object().filter(|patterns| patterns.len() == 1);
        let level = only.and_then(|patterns| patterns.get("*").filter(|level| level.is_string()));
        if let Some(level) = level.cloned() {
            *value = level;
        }
    }
    Some(result)
}

fn rule_name(setting: &str, key: &str, pattern: &str) -> String {
    match pattern {
        "*" => format!("{setting}.{key}"),
        pattern => format!("{setting}.{key} \"{pattern}\""),
    }
}

/// Converts a key and a pattern, or returns the reason why the rule is left out. Our rule matches
/// no less for `ask` and `deny`, and no more for `allow`.
fn convert_rule(key: &str, pattern: &str, level: &str) -> Result<(String, String), String> {
    let pattern = match pattern.strip_prefix("$HOME/") {
        Some(rest) => format!("~/{rest}"),
        None => pattern.strip_prefix("./").unwrap_or(pattern).to_owned(),
    };
    let is_whole = pattern == "*";
    match (key, level) {
        ("webfetch", _) => Ok((key.to_owned(), host_pattern(&pattern, level)?)),
        ("read" | "edit", "deny") if pattern.starts_with('~') => {
            Ok(("external_directory".to_owned(), pattern))
        }
        ("read" | "edit", "ask") if pattern.starts_with('~') => {
            Err("paths outside the project require approval anyway".to_owned())
        }
        ("read" | "edit", "allow") if pattern.starts_with(['~', '/']) => {
            Err("paths outside the project are opened by `external_directory` rules".to_owned())
        }
        ("write" | "patch" | "multiedit", "deny") if is_whole => {
            let key = if key == "write" { "write" } else { "edit" };
            Ok((key.to_owned(), pattern))
        }
        ("write" | "patch" | "multiedit", _) => Err("covered by `edit` rules".to_owned()),
        ("list", _) => Err("covered by `read` rules".to_owned()),
        // These patterns are about the text that is searched for.
        ("glob" | "grep" | "lsp" | "websearch" | "codesearch", "ask" | "deny") => {
            Ok((key.to_owned(), "*".to_owned()))
        }
        ("glob" | "grep" | "lsp", _) => Err("covered by `read` rules".to_owned()),
        ("websearch" | "codesearch", _) => Err("covered by `webfetch` rules".to_owned()),
        ("todowrite" | "todoread" | "question" | "batch", "allow") => {
            Err("allowed without a rule".to_owned())
        }
        (key, _) => Ok((key.to_owned(), pattern)),
    }
}

/// Converts a pattern for URLs into one for hosts.
fn host_pattern(pattern: &str, level: &str) -> Result<String, String> {
    if pattern == "*" {
        return Ok(pattern.to_owned());
    }
    let schemes = ["https://", "http://", "http*://", "*://"];
    let rest = schemes.iter().find_map(|scheme| pattern.strip_prefix(scheme)).unwrap_or(pattern);
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let name = host.strip_prefix("*.").unwrap_or(host);
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let is_host = !name.is_empty() && name.chars().all(is_host_char);
    match (is_host, level) {
        (true, "allow") if path != "*" => {
            Err("`webfetch` rules name hosts, and the whole host would be more".to_owned())
        }
        (true, _) => Ok(host.to_owned()),
        (false, "ask" | "deny") => Ok("*".to_owned()),
        (false, _) => {
            Err("`webfetch` rules name hosts, such as docs.rs or *.rust-lang.org".to_owned())
        }
    }
}

/// Imports disabled tools from OpenCode's old `tools` setting.
pub(super) fn import_tool_switches(builder: &mut ImportPlanBuilder<'_>, value: Value) {
    let Value::Object(map) = value else { return builder.skip("tools", "not an object") };
    for (tool, enabled) in map {
        match (&enabled, convert_rule(&tool, "*", "deny")) {
            (Value::Bool(false), Ok((key, _))) => {
                builder.set_key(&["permission", &key], "deny".into(), "deny");
            }
            (Value::Bool(false), Err(reason)) => builder.skip(format!("tools.{tool}"), reason),
            (Value::Bool(true), _) => {
                builder.skip(format!("tools.{tool}"), "available by default");
            }
            (_, _) => builder.skip(format!("tools.{tool}"), "not `true` or `false`"),
        }
    }
}
