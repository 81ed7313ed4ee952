//! Rules as they stand in a config file, and how they match.
//!
//! `"permission": "allow"` for everything, or a map from a key to a level or to patterns:
//! `{"edit": "ask", "bash": {"git status *": "allow", "*": "ask"}}`. Keys and patterns may hold
//! `*` (anything, also nothing, also `/`) and `?` (one character). A deny that matches wins;
//! otherwise the last rule that matches does.

use serde_json::Value;
use std::fmt;
use wildmatch::WildMatch;

/// What a rule says, from lax to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Go on.
    Allow,
    /// Ask somebody.
    Ask,
    /// No.
    Deny,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Level::Allow => "allow",
            Level::Ask => "ask",
            Level::Deny => "deny",
        })
    }
}

/// A list of rules, in the order they were written.
#[derive(Clone, Debug, Default)]
pub struct Rules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    key: WildMatch,
    pattern: Pattern,
    level: Level,
    written: String,
}

/// The rule that decides.
pub(crate) struct Deciding<'a> {
    pub(crate) level: Level,
    pub(crate) written: &'a str,
    /// It speaks of everything under its key.
    pub(crate) sweeping: bool,
}

/// Why rules cannot be understood, and where. Nothing starts with rules that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// The way to the value, as a JSON pointer below `permission`.
    pub pointer: String,
    /// What is wrong with it.
    pub message: String,
}

#[derive(Clone, Debug)]
struct Pattern {
    whole: WildMatch,
    /// The pattern itself, where it can mean one subject only.
    exact: Option<String>,
    /// `git status *` also means `git status`, and `private/*` the folder itself.
    without_tail: Option<WildMatch>,
}

impl Pattern {
    fn new(text: &str) -> Pattern {
        Pattern {
            whole: WildMatch::new(text),
            exact: (!text.contains(['*', '?'])).then(|| text.to_owned()),
            without_tail: text
                .strip_suffix(" *")
                .or_else(|| text.strip_suffix("/*"))
                .map(WildMatch::new),
        }
    }

    fn matches(&self, subject: &str) -> bool {
        self.whole.matches(subject)
            || self.without_tail.as_ref().is_some_and(|pattern| pattern.matches(subject))
    }
}

impl Rules {
    /// Reads the value of a config's `permission`.
    pub fn parse(value: &Value) -> Result<Rules, RuleError> {
        let mut rules = Vec::new();
        match value {
            Value::String(_) => rules.push(rule("*", "*", value, "")?),
            Value::Object(keys) => {
                for (key, value) in keys {
                    let pointer = format!("/{}", escape(key));
                    match value {
                        Value::Object(patterns) => {
                            for (pattern, value) in patterns {
                                let pointer = format!("{pointer}/{}", escape(pattern));
                                rules.push(rule(key, pattern, value, &pointer)?);
                            }
                        }
                        level => rules.push(rule(key, "*", level, &pointer)?),
                    }
                }
            }
            other => return Err(wrong(other, "")),
        }
        Ok(Rules(rules))
    }

    /// The rule that decides about a subject under a key.
    pub(crate) fn level(&self, key: &str, subject: &str) -> Option<Deciding<'_>> {
        let speaks = |rule: &&Rule| rule.key.matches(key) && rule.pattern.matches(subject);
        let deny = self.0.iter().find(|rule| rule.level == Level::Deny && speaks(rule));
        let rule = deny.or_else(|| self.0.iter().rev().find(speaks))?;
        let sweeping = rule.pattern.whole == WildMatch::new("*");
        Some(Deciding { level: rule.level, written: &rule.written, sweeping })
    }

    /// True if a rule allows this very subject, without a wildcard.
    pub(crate) fn names(&self, key: &str, subject: &str) -> bool {
        self.0.iter().any(|rule| {
            rule.level == Level::Allow
                && rule.key.matches(key)
                && rule.pattern.exact.as_deref() == Some(subject)
        })
    }

    pub(crate) fn denies_outright(&self, key: &str) -> bool {
        let all = |rule: &Rule| rule.pattern.whole == WildMatch::new("*");
        self.0.iter().any(|rule| rule.level == Level::Deny && rule.key.matches(key) && all(rule))
    }
}

fn rule(key: &str, pattern: &str, level: &Value, pointer: &str) -> Result<Rule, RuleError> {
    let level = match level.as_str() {
        Some("allow") => Level::Allow,
        Some("ask") => Level::Ask,
        Some("deny") => Level::Deny,
        Some(_) | None => return Err(wrong(level, pointer)),
    };
    let written = format!("\"{key}\": \"{pattern}\"");
    Ok(Rule { key: WildMatch::new(key), pattern: Pattern::new(pattern), level, written })
}

fn wrong(value: &Value, pointer: &str) -> RuleError {
    let message = format!("expected \"allow\", \"ask\" or \"deny\", found {value}");
    RuleError { pointer: pointer.to_owned(), message }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
