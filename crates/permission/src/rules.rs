//! Rules as they stand in a config file, and how they match.
//!
//! `"permission": "allow"` for everything, or a map from a key to a level or to patterns:
//! `{"edit": "ask", "bash": {"git status *": "allow", "*": "ask"}}`. Keys and patterns may hold
//! `*` (anything, also nothing, also `/`) and `?` (one character). A deny that matches wins;
//! otherwise the last rule that matches does. A deny and an ask also match what some file system
//! takes for the same name, such as another case; an allow is meant as it is written. What is kept
//! running (`servant`) and what a tool says of itself (`definition`) are allowed or asked about
//! only by rules that name the key.

use crate::glob::{Glob, overlap};
use crate::protected::fold;
use serde_json::Value;
use std::borrow::Cow;
use std::cell::OnceCell;
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
    /// The pattern folded, where a rule is not lax.
    folded: Option<Pattern>,
    level: Level,
    /// Its key is no wildcard.
    names_key: bool,
    written: String,
}

/// Keys that a wildcard only denies: "allow everything" is said of what is known, and "ask about
/// everything" of what somebody can be asked about.
const NAMED: [&str; 2] = ["servant", "definition"];

impl Rule {
    fn means(&self, key: &str) -> bool {
        self.key.matches(key)
            && (self.level == Level::Deny || self.names_key || !NAMED.contains(&key))
    }

    fn speaks(&self, key: &str, subject: &Subject<'_>) -> bool {
        let folded = |pattern: &Pattern| pattern.matches(subject.folded());
        self.means(key)
            && (self.pattern.matches(subject.plain) || self.folded.as_ref().is_some_and(folded))
    }
}

/// What rules are asked about. It is folded once, if at all: a search asks about every file.
pub(crate) struct Subject<'a> {
    plain: &'a str,
    folded: OnceCell<Cow<'a, str>>,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(plain: &'a str) -> Subject<'a> {
        Subject { plain, folded: OnceCell::new() }
    }

    fn folded(&self) -> &str {
        let same = |byte: u8| matches!(byte, b' '..=b'~') && !byte.is_ascii_uppercase();
        self.folded.get_or_init(|| match self.plain.bytes().all(same) {
            true => Cow::Borrowed(self.plain),
            false if self.plain.is_ascii() => Cow::Owned(self.plain.to_ascii_lowercase()),
            false => Cow::Owned(fold(self.plain)),
        })
    }
}

/// The rule that decides.
pub(crate) struct Deciding<'a> {
    pub(crate) level: Level,
    pub(crate) written: &'a str,
    /// It means a file of secrets, if it matches one.
    pub(crate) opens_secrets: bool,
    /// Its pattern is `*`.
    pub(crate) everything: bool,
}

impl Deciding<'_> {
    /// What it says, in words; `whose` is `your` or `the`.
    pub(crate) fn says(&self, whose: &str) -> String {
        format!("{whose} rule {} says {}", self.written, self.level)
    }
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
    text: String,
    /// The pattern itself, where it can mean one subject only.
    exact: Option<String>,
    /// It is exact, or its last part has the word that names of such files have.
    speaks_of_secrets: bool,
    /// `git status *` also means `git status`, and `private/*` the folder itself.
    without_tail: Option<WildMatch>,
}

impl Pattern {
    fn new(text: &str) -> Pattern {
        let exact = (!text.contains(['*', '?'])).then(|| text.to_owned());
        let last = text.rsplit('/').next().unwrap_or(text);
        Pattern {
            whole: WildMatch::new(text),
            text: text.to_owned(),
            speaks_of_secrets: exact.is_some() || last.to_ascii_lowercase().contains("env"),
            exact,
            without_tail: text
                .strip_suffix(" *")
                .or_else(|| text.strip_suffix("/*"))
                .map(WildMatch::new),
        }
    }

    /// True if it and another pattern can mean the same.
    fn meets(&self, other: &Glob) -> bool {
        let tail = self.text.strip_suffix(" *").or_else(|| self.text.strip_suffix("/*"));
        std::iter::once(self.text.as_str())
            .chain(tail)
            .any(|text| overlap(other, &Glob::rule(text)))
    }

    /// True if it surely means all that another pattern does: the same beginning, then anything.
    fn covers(&self, other: &Glob) -> bool {
        let start = self.text.strip_suffix('*').filter(|start| !start.contains(['*', '?']));
        start.is_some_and(|start| other.begins(start))
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
    pub(crate) fn level(&self, key: &str, subject: &Subject<'_>) -> Option<Deciding<'_>> {
        let speaks = |rule: &&Rule| rule.speaks(key, subject);
        let deny = self.0.iter().filter(|rule| rule.level == Level::Deny).find(speaks);
        let rule = deny.or_else(|| self.0.iter().rev().find(speaks))?;
        let opens_secrets = rule.pattern.speaks_of_secrets;
        let everything = rule.pattern.whole == WildMatch::new("*");
        Some(Deciding { level: rule.level, written: &rule.written, opens_secrets, everything })
    }

    /// The strictest rule that asks about or denies something that a pattern can mean. A later
    /// rule that allows all of it speaks louder than one that asks.
    pub(crate) fn could_speak(&self, key: &str, pattern: &Glob) -> Option<(Level, &str)> {
        let meets = |rule: &&Rule| {
            rule.key.matches(key) && rule.folded.as_ref().is_some_and(|it| it.meets(pattern))
        };
        let deny = self.0.iter().filter(|rule| rule.level == Level::Deny).find(meets);
        let all = |rule: &&Rule| rule.key.matches(key) && rule.pattern.covers(pattern);
        let last = self.0.iter().rposition(|rule| rule.level == Level::Allow && all(&rule));
        let after = last.map_or(0, |at| at + 1);
        let rule = deny.or_else(|| self.0.iter().skip(after).rev().find(meets))?;
        Some((rule.level, &rule.written))
    }

    /// True if a rule allows this very subject, without a wildcard.
    pub(crate) fn names(&self, key: &str, subject: &str) -> bool {
        self.0.iter().any(|rule| {
            rule.level == Level::Allow
                && rule.key.matches(key)
                && rule.pattern.exact.as_deref() == Some(subject)
        })
    }

    /// True if a rule denies some subjects under a key, but not all.
    pub(crate) fn denies_some(&self, key: &str) -> bool {
        let all = |rule: &Rule| rule.pattern.whole == WildMatch::new("*");
        self.0.iter().any(|rule| rule.level == Level::Deny && rule.key.matches(key) && !all(rule))
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
    if key == FETCHING && !names_host(pattern) {
        let message = format!(
            "{pattern:?} is no host: rules of {FETCHING} name hosts, such as docs.rs or \
             *.rust-lang.org"
        );
        return Err(RuleError { pointer: pointer.to_owned(), message });
    }
    let written = format!("\"{key}\": \"{pattern}\"");
    let folded = (level != Level::Allow).then(|| Pattern::new(&fold(pattern)));
    let names_key = !key.contains(['*', '?']);
    let (key, pattern) = (WildMatch::new(key), Pattern::new(pattern));
    Ok(Rule { key, pattern, folded, level, names_key, written })
}

/// The key whose subjects are hosts.
const FETCHING: &str = "webfetch";

/// True for a host, everything below one, or everything. A wildcard elsewhere would mean hosts of
/// somebody else: `docs.rs*` is also `docs.rs.example.com`.
fn names_host(pattern: &str) -> bool {
    let host = pattern.strip_prefix("*.").unwrap_or(pattern);
    let known =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    pattern == "*" || (!host.is_empty() && host.chars().all(known))
}

fn wrong(value: &Value, pointer: &str) -> RuleError {
    let message = format!("expected \"allow\", \"ask\" or \"deny\", found {value}");
    RuleError { pointer: pointer.to_owned(), message }
}

fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
