//! OpenCode's permission rules, in which the last match counts, as ours. Its config has them, and
//! the agents that its plugins add.

use serde_json::{Map, Value};

/// A rule of a list in which the last match counts, with its level as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderedPermissionRule {
    pub key: String,
    pub pattern: String,
    pub level: String,
}

/// Ordered rules after their translation into our `permission` rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConvertedPermissionRules {
    /// Key, pattern and level, or a deny with exceptions.
    pub rules: Vec<(String, String, Value)>,
    /// Rules that are left out, each with the reason.
    pub dropped: Vec<(OrderedPermissionRule, String)>,
}

/// Rules by key: a level for all patterns, or patterns with a level each.
pub(crate) type RulesByKey = Map<String, Value>;

/// The key and the pattern of a rule.
pub(crate) type OpenCodeRuleName = (String, String);

/// OpenCode's rules as ours.
#[derive(Debug, Default)]
pub(crate) struct TranslatedOpenCodeRules {
    pub(crate) rules: RulesByKey,
    /// Rules whose level is none.
    pub(crate) invalid: Vec<OpenCodeRuleName>,
    /// Rules that apply to more here, each with the effect.
    pub(crate) widened: Vec<(OpenCodeRuleName, String)>,
    /// Rules without an equivalent, each with its level and the reason.
    pub(crate) unsupported: Vec<(OpenCodeRuleName, String, String)>,
    /// Rules that decide nothing, because of later ones or because rules can only restrict here, each
    /// with the reason.
    pub(crate) overridden: Vec<(OpenCodeRuleName, String)>,
}

/// Translates OpenCode's rules with a translation of rules in which the last match counts. Returns
/// `None` if the value is not a set of rules.
pub(crate) fn translate_rules(
    value: &Value,
    translate: &dyn Fn(&[OrderedPermissionRule]) -> ConvertedPermissionRules,
) -> Option<TranslatedOpenCodeRules> {
    let keys = match value {
        Value::String(_) => Map::from_iter([("*".to_owned(), value.clone())]),
        Value::Object(keys) => keys.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    let mut result = TranslatedOpenCodeRules::default();
    let mut rules = Vec::new();
    for (key, value) in keys {
        let patterns = match value {
            Value::Object(patterns) => patterns,
            level => Map::from_iter([("*".to_owned(), level)]),
        };
        for (pattern, level) in patterns {
            let subject = (key.clone(), pattern.clone());
            let Some(level @ ("allow" | "ask" | "deny")) = level.as_str() else {
                result.invalid.push(subject);
                continue;
            };
            match convert_rule(&key, &pattern, level) {
                Ok((new_key, new_pattern)) => {
                    if new_pattern == "*" && pattern != "*" {
                        let text = format!("`{level}` applies to all of `{new_key}`");
                        result.widened.push((subject, text));
                    }
                    let (key, pattern) = (new_key, new_pattern);
                    add_rule(
                        &mut rules,
                        OrderedPermissionRule { key, pattern, level: level.to_owned() },
                    );
                }
                Err(reason) => result.unsupported.push((subject, level.to_owned(), reason)),
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
    let translated = translate(&grouped);
    for (OrderedPermissionRule { key, pattern, .. }, reason) in translated.dropped {
        result.overridden.push(((key, pattern), reason));
    }
    for (key, pattern, level) in translated.rules {
        let patterns = result.rules.entry(key).or_insert_with(|| Map::new().into());
        if let Value::Object(patterns) = patterns {
            patterns.insert(pattern, level);
        }
    }
    for value in result.rules.values_mut() {
        let only = value.as_object().filter(|patterns| patterns.len() == 1);
        let level = only.and_then(|patterns| patterns.get("*").filter(|level| level.is_string()));
        if let Some(level) = level.cloned() {
            *value = level;
        }
    }
    Some(result)
}

/// Adds a rule. Two rules of OpenCode may become the same; the stricter one counts.
fn add_rule(rules: &mut Vec<OrderedPermissionRule>, rule: OrderedPermissionRule) {
    let strictness = |level: &str| ["allow", "ask", "deny"].iter().position(|it| *it == level);
    let same = rules.iter().position(|it| (&it.key, &it.pattern) == (&rule.key, &rule.pattern));
    let old = same.map(|index| rules.remove(index));
    let is_stricter =
        |old: &OrderedPermissionRule| strictness(&old.level) > strictness(&rule.level);
    rules.push(old.filter(is_stricter).unwrap_or(rule));
}

/// Converts a key and a pattern, or returns the reason why the rule is left out. Our rule matches
/// no less for `ask` and `deny`, and no more for `allow`.
pub(crate) fn convert_rule(
    key: &str,
    pattern: &str,
    level: &str,
) -> Result<OpenCodeRuleName, String> {
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
