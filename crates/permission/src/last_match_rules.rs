//! Translates rules in which the last match counts, as in other agents, into ours, in which a deny
//! always wins.
//!
//! A deny rule with later rules that allow or ask about a part of it becomes a deny with
//! exceptions. The translation has the same effect for every subject.

use crate::pattern_overlap::{GlobPattern, globs_overlap};
use crate::rules::{PermissionLevel, RulePattern};
use serde_json::{Map, Value, json};

/// A rule of a list in which the last match counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastMatchRule {
    pub key: String,
    pub pattern: String,
    pub level: PermissionLevel,
}

/// The result of [`translate_last_match`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TranslatedRules {
    /// Our rules: key, pattern and level, or a deny with exceptions.
    pub rules: Vec<(String, String, Value)>,
    /// Rules that are left out, each with the reason.
    pub dropped: Vec<(LastMatchRule, String)>,
}

/// Translates rules in which the last match counts. Rules that `is_restricting` can only make
/// decisions stricter, so their `allow` is an exception from an `ask` or from a `deny`, or nothing.
pub fn translate_last_match(rules: &[LastMatchRule], is_restricting: bool) -> TranslatedRules {
    let mut translated = TranslatedRules::default();
    for (index, rule) in rules.iter().enumerate() {
        let later = rules.get(index + 1..).unwrap_or_default();
        if let Some(cover) = later.iter().find(|later| covers(later, rule)) {
            let reason = format!(
                "the later rule {:?}: {:?} overrides it there, too",
                cover.key, cover.pattern
            );
            translated.dropped.push((rule.clone(), reason));
            continue;
        }
        let mut earlier = rules.iter().take(index);
        let is_exception = |earlier: &LastMatchRule| {
            earlier.level == PermissionLevel::Ask && overlaps(earlier, rule)
        };
        if is_restricting && rule.level == PermissionLevel::Allow && !earlier.any(is_exception) {
            let is_denied = |earlier: &LastMatchRule| {
                earlier.level == PermissionLevel::Deny && overlaps(earlier, rule)
            };
            if !rules.iter().take(index).any(is_denied) {
                let reason = "these rules can only restrict, so the `allow` is left out".to_owned();
                translated.dropped.push((rule.clone(), reason));
            }
            continue;
        }
        let level = match rule.level {
            PermissionLevel::Deny => deny_with_exceptions(rule, later),
            level => level.to_string().into(),
        };
        translated.rules.push((rule.key.clone(), rule.pattern.clone(), level));
    }
    translated
}

/// Returns a deny without what later rules allow or ask about.
fn deny_with_exceptions(deny: &LastMatchRule, later: &[LastMatchRule]) -> Value {
    let is_exception =
        |rule: &&LastMatchRule| rule.level != PermissionLevel::Deny && overlaps(deny, rule);
    let exceptions: Vec<&LastMatchRule> = later.iter().filter(is_exception).collect();
    if exceptions.is_empty() {
        return "deny".into();
    }
    if exceptions.iter().all(|rule| rule.key == deny.key) {
        let patterns: Vec<&str> = exceptions.iter().map(|rule| rule.pattern.as_str()).collect();
        return json!({"level": "deny", "except": patterns});
    }
    let mut keys: Map<String, Value> = Map::new();
    for rule in exceptions {
        let list = keys.entry(rule.key.clone()).or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(rule.pattern.clone().into());
        }
    }
    json!({"level": "deny", "except": keys})
}

/// Returns true if one rule matches everything that another matches.
fn covers(one: &LastMatchRule, other: &LastMatchRule) -> bool {
    RulePattern::new(&one.key).covers_pattern(&other.key)
        && RulePattern::new(&one.pattern).covers_pattern(&other.pattern)
}

/// Returns true if some subject matches both rules.
fn overlaps(one: &LastMatchRule, other: &LastMatchRule) -> bool {
    let key = GlobPattern::from_rule(&other.key);
    globs_overlap(&key, &GlobPattern::from_rule(&one.key))
        && RulePattern::new(&one.pattern).overlaps_pattern(&other.pattern)
}
