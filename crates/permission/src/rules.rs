//! Permission rules of a config file, and how they match.
//!
//! The value is `"permission": "allow"` for everything, or a map from a key to a level or to
//! patterns: `{"edit": "ask", "bash": {"*": "ask", "git status *": "allow"}}`. Keys and patterns
//! may contain `*` (any text, possibly empty, including `/`) and `?` (one character). A matching
//! deny wins; otherwise the last matching rule wins. A deny may list what it does not match:
//! `{"bash": {"*": {"level": "deny", "except": ["git status *"]}}}`. Deny and ask also match names that some file
//! system treats as equal, such as another case; allow matches only as written. The keys `process`
//! (long-running processes), `tool_definition` (tool definitions) and `external_directory` (paths
//! outside the workspace) are allowed or asked only by rules that name the key.

use crate::pattern_overlap::{GlobPattern, globs_overlap};
use crate::protected_paths::{fold_name, fold_path};
use serde_json::Value;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt;
use wildmatch::WildMatch;

/// The level that a rule sets, from permissive to strict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PermissionLevel {
    /// The access needs no approval.
    Allow,
    /// The access requires the user's approval.
    Ask,
    /// The access is refused.
    Deny,
}

impl PermissionLevel {
    /// Describes the effect of a rule with this level: the rule "requires approval".
    pub(crate) fn effect(self) -> &'static str {
        match self {
            PermissionLevel::Allow => "allows it",
            PermissionLevel::Ask => "requires approval",
            PermissionLevel::Deny => "denies it",
        }
    }
}

impl fmt::Display for PermissionLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PermissionLevel::Allow => "allow",
            PermissionLevel::Ask => "ask",
            PermissionLevel::Deny => "deny",
        })
    }
}

/// A list of permission rules, in config order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PermissionRules(pub(crate) Vec<PermissionRule>);

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PermissionRule {
    pub(crate) key: WildMatch,
    pub(crate) key_text: String,
    pub(crate) pattern: RulePattern,
    /// The pattern after `fold_name`, for rules stricter than `allow`.
    folded_pattern: Option<RulePattern>,
    pub(crate) level: PermissionLevel,
    /// Keys and patterns that a deny rule does not match.
    pub(crate) exceptions: Vec<(WildMatch, RulePattern)>,
    /// True if the key contains no wildcard.
    pub(crate) names_key: bool,
    pub(crate) source_text: String,
    /// JSON pointer to the rule, relative to `permission`.
    pub(crate) pointer: String,
}

/// The permission key for paths outside the workspace.
pub(crate) const OUTSIDE_KEY: &str = "external_directory";

/// Keys that a wildcard key can only deny. "Allow everything" covers only what the user knows
/// about, and "ask about everything" only what a user can be asked about.
pub(crate) const EXPLICIT_ONLY_KEYS: [&str; 3] = ["process", "tool_definition", OUTSIDE_KEY];

impl PermissionRule {
    fn applies_to_key(&self, key: &str) -> bool {
        self.key.matches(key)
            && (self.level == PermissionLevel::Deny
                || self.names_key
                || !EXPLICIT_ONLY_KEYS.contains(&key))
    }

    fn has_exception(&self, key: &str, is_match: impl Fn(&RulePattern) -> bool) -> bool {
        self.exceptions.iter().any(|(except, pattern)| except.matches(key) && is_match(pattern))
    }

    /// Returns true for a rule about everything under its key.
    fn matches_all(&self) -> bool {
        self.pattern.matches_all() && self.exceptions.is_empty()
    }

    fn matches_subject(&self, key: &str, subject: &RuleSubject<'_>) -> bool {
        let matches_folded = |pattern: &RulePattern| pattern.matches(subject.folded_text());
        let matches_unescaped = |pattern: &RulePattern| {
            subject.unescaped_text().is_some_and(|text| pattern.matches(text))
        };
        self.applies_to_key(key)
            && (self.pattern.matches(subject.text)
                || self.folded_pattern.as_ref().is_some_and(matches_folded)
                || self.folded_pattern.as_ref().is_some_and(matches_unescaped))
            && !self.has_exception(key, |pattern| pattern.matches(subject.text))
    }
}

/// The subject that rules match against. It is folded at most once, because a search checks every
/// file.
pub(crate) struct RuleSubject<'a> {
    text: &'a str,
    folded_text: OnceCell<Cow<'a, str>>,
    unescaped_text: OnceCell<Option<String>>,
}

impl<'a> RuleSubject<'a> {
    pub(crate) fn new(text: &'a str) -> RuleSubject<'a> {
        RuleSubject { text, folded_text: OnceCell::new(), unescaped_text: OnceCell::new() }
    }

    fn folded_text(&self) -> &str {
        let is_unchanged = |byte: u8| matches!(byte, b' '..=b'~') && !byte.is_ascii_uppercase();
        self.folded_text.get_or_init(|| match self.text.bytes().all(is_unchanged) {
            true => Cow::Borrowed(self.text),
            false if self.text.is_ascii() => Cow::Owned(self.text.to_ascii_lowercase()),
            false => Cow::Owned(fold_name(self.text)),
        })
    }

    /// Returns the folded text without escapes, if it has any: a `?` matches an escaped character.
    fn unescaped_text(&self) -> Option<&str> {
        let unescape = || self.text.contains('\\').then(|| fold_path(self.text));
        self.unescaped_text.get_or_init(unescape).as_deref()
    }
}

/// The rule that decided about a subject, as `PermissionRules::deciding_rule` returns it.
pub(crate) struct DecidingRule<'a> {
    pub(crate) level: PermissionLevel,
    pub(crate) source_text: &'a str,
    /// True if the rule also allows a secret file that it matches.
    pub(crate) opens_secrets: bool,
    /// True if the pattern is `*`.
    pub(crate) matches_all: bool,
    /// True if the key contains no wildcard.
    pub(crate) names_key: bool,
}

impl DecidingRule<'_> {
    /// Describes the rule in words; `owner` is `your` or `the`.
    pub(crate) fn describe(&self, owner: &str) -> String {
        format!("{owner} rule {} {}", self.source_text, self.level.effect())
    }
}

/// A syntax error in permission rules. Windlass does not start with rules that do not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RuleError {
    /// JSON pointer to the value, relative to `permission`.
    pub pointer: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RulePattern {
    wildcard: WildMatch,
    pub(crate) text: String,
    /// The pattern, if it has no wildcard.
    exact: Option<String>,
    /// True if the pattern is exact, or if its last path component contains `env`.
    pub(crate) names_secrets: bool,
    /// The pattern without its last wildcard: `git status *` also matches `git status`, and
    /// `private/*` the folder itself.
    without_tail: Option<WildMatch>,
}

impl RulePattern {
    pub(crate) fn new(text: &str) -> RulePattern {
        let exact = (!text.contains(['*', '?'])).then(|| text.to_owned());
        let last = text.rsplit('/').next().unwrap_or(text);
        RulePattern {
            wildcard: WildMatch::new(text),
            text: text.to_owned(),
            names_secrets: exact.is_some() || last.to_ascii_lowercase().contains("env"),
            exact,
            without_tail: without_tail(text).map(WildMatch::new),
        }
    }

    /// Returns true if both patterns can match the same text.
    fn overlaps(&self, other: &GlobPattern) -> bool {
        std::iter::once(self.text.as_str())
            .chain(without_tail(&self.text))
            .any(|text| globs_overlap(other, &GlobPattern::from_rule(text)))
    }

    /// Returns true if this pattern and another rule's pattern can match the same text.
    pub(crate) fn overlaps_pattern(&self, other: &str) -> bool {
        let mut others = std::iter::once(other).chain(without_tail(other));
        others.any(|other| self.overlaps(&GlobPattern::from_rule(other)))
    }

    /// Returns true if this pattern certainly matches everything that the other matches: a common
    /// prefix, then `*`.
    fn covers(&self, other: &GlobPattern) -> bool {
        let start = self.text.strip_suffix('*').filter(|start| !start.contains(['*', '?']));
        start.is_some_and(|start| other.has_prefix(start))
    }

    /// Returns true if this pattern certainly matches everything that another rule's pattern
    /// matches: it matches the text of the other pattern, wildcards included.
    pub(crate) fn covers_pattern(&self, other: &str) -> bool {
        // A `?` would match a `*` of the other pattern, which stands for more than one character.
        let is_comparable = !self.text.contains('?') || !other.contains('*');
        is_comparable
            && self.matches(other)
            && without_tail(other).is_none_or(|other| self.matches(other))
    }

    /// Returns true for the pattern `*`.
    pub(crate) fn matches_all(&self) -> bool {
        self.text == "*"
    }

    pub(crate) fn matches(&self, subject: &str) -> bool {
        self.wildcard.matches(subject)
            || self.without_tail.as_ref().is_some_and(|pattern| pattern.matches(subject))
    }
}

/// Returns a pattern without its last wildcard, if it also matches without it.
fn without_tail(text: &str) -> Option<&str> {
    text.strip_suffix(" *").or_else(|| text.strip_suffix("/*"))
}

impl PermissionRules {
    /// Parses the value of `permission` in a config.
    pub fn parse(value: &Value) -> Result<PermissionRules, RuleError> {
        let mut rules = Vec::new();
        match value {
            Value::String(_) => rules.push(parse_rule("*", "*", value, "")?),
            Value::Object(keys) => {
                for (key, value) in keys {
                    let pointer = format!("/{}", escape_pointer_part(key));
                    match value {
                        Value::Object(patterns) => {
                            for (pattern, value) in patterns {
                                let pointer = format!("{pointer}/{}", escape_pointer_part(pattern));
                                rules.push(parse_rule(key, pattern, value, &pointer)?);
                            }
                        }
                        level => rules.push(parse_rule(key, "*", level, &pointer)?),
                    }
                }
            }
            other => return Err(invalid_level_error(other, "")),
        }
        Ok(PermissionRules(rules))
    }

    /// Adds rules behind these, as if they stood at the end of the same config.
    pub(crate) fn append(&mut self, later: PermissionRules) {
        self.0.extend(later.0);
    }

    /// Returns the rule that decides about a subject under a key.
    pub(crate) fn deciding_rule(
        &self,
        key: &str,
        subject: &RuleSubject<'_>,
    ) -> Option<DecidingRule<'_>> {
        self.decide(key, subject, |_| true)
    }

    fn decide(
        &self,
        key: &str,
        subject: &RuleSubject<'_>,
        is_considered: impl Fn(&PermissionRule) -> bool,
    ) -> Option<DecidingRule<'_>> {
        let applies =
            |rule: &&PermissionRule| is_considered(rule) && rule.matches_subject(key, subject);
        let deny = self.0.iter().filter(|rule| rule.level == PermissionLevel::Deny).find(applies);
        let rule = deny.or_else(|| self.0.iter().rev().find(applies))?;
        let opens_secrets = rule.pattern.names_secrets;
        Some(DecidingRule {
            level: rule.level,
            source_text: &rule.source_text,
            opens_secrets,
            matches_all: rule.pattern.matches_all(),
            names_key: rule.names_key,
        })
    }

    /// Like `deciding_rule`, among the rules without exceptions.
    pub(crate) fn deciding_rule_without_exceptions(
        &self,
        key: &str,
        subject: &RuleSubject<'_>,
    ) -> Option<DecidingRule<'_>> {
        self.decide(key, subject, |rule| rule.exceptions.is_empty())
    }

    /// Returns true if an ask or deny rule that is not for all paths matches a path.
    pub(crate) fn restricts_path(&self, key: &str, path: &RuleSubject<'_>) -> bool {
        self.0.iter().any(|rule| {
            rule.level != PermissionLevel::Allow
                && !rule.pattern.matches_all()
                && rule.matches_subject(key, path)
        })
    }

    /// Returns the strictest ask or deny rule that can match something the pattern matches. A later
    /// allow rule that covers the whole pattern overrides an ask rule.
    pub(crate) fn strictest_overlapping_rule(
        &self,
        key: &str,
        pattern: &GlobPattern,
    ) -> Option<(PermissionLevel, &str)> {
        let overlaps = |rule: &&PermissionRule| {
            rule.key.matches(key)
                && rule.folded_pattern.as_ref().is_some_and(|it| it.overlaps(pattern))
                && !rule.has_exception(key, |except| except.covers(pattern))
        };
        let deny = self.0.iter().filter(|rule| rule.level == PermissionLevel::Deny).find(overlaps);
        let covers_pattern =
            |rule: &&PermissionRule| rule.key.matches(key) && rule.pattern.covers(pattern);
        let last_allow = self
            .0
            .iter()
            .rposition(|rule| rule.level == PermissionLevel::Allow && covers_pattern(&rule));
        let start = last_allow.map_or(0, |index| index + 1);
        let rule = deny.or_else(|| self.0.iter().skip(start).rev().find(overlaps))?;
        Some((rule.level, &rule.source_text))
    }

    /// Returns true if an `allow` rule without wildcards names exactly this subject.
    pub(crate) fn allows_exactly(&self, key: &str, subject: &str) -> bool {
        self.0.iter().any(|rule| {
            rule.level == PermissionLevel::Allow
                && rule.key.matches(key)
                && rule.pattern.exact.as_deref() == Some(subject)
        })
    }

    /// Returns true if a `deny` rule matches some subjects under a key, but not all.
    pub(crate) fn denies_some(&self, key: &str) -> bool {
        self.has_partial_rule(key, |level| level == PermissionLevel::Deny)
    }

    /// Returns true if an `ask` or `deny` rule matches some subjects under a key, but not all.
    pub(crate) fn restricts_some(&self, key: &str) -> bool {
        self.has_partial_rule(key, |level| level > PermissionLevel::Allow)
    }

    fn has_partial_rule(&self, key: &str, is_wanted: impl Fn(PermissionLevel) -> bool) -> bool {
        self.0
            .iter()
            .any(|rule| is_wanted(rule.level) && rule.key.matches(key) && !rule.matches_all())
    }

    pub(crate) fn denies_outright(&self, key: &str) -> bool {
        self.0.iter().any(|rule| {
            rule.level == PermissionLevel::Deny && rule.key.matches(key) && rule.matches_all()
        })
    }
}

fn parse_rule(
    key: &str,
    pattern: &str,
    value: &Value,
    pointer: &str,
) -> Result<PermissionRule, RuleError> {
    let (level, except) = match value {
        Value::Object(map) => (map.get("level").unwrap_or(value), map.get("except")),
        level => (level, None),
    };
    let exceptions = parse_exceptions(key, value, except, pointer)?;
    let level = match level.as_str() {
        Some("allow") => PermissionLevel::Allow,
        Some("ask") => PermissionLevel::Ask,
        Some("deny") => PermissionLevel::Deny,
        Some(_) | None => return Err(invalid_level_error(level, pointer)),
    };
    if key == WEBFETCH_KEY && !is_host_pattern(pattern) {
        let message = format!(
            "invalid host {pattern:?}: {WEBFETCH_KEY} rules match hosts; write {}",
            host_in_url(pattern).unwrap_or("a host, such as docs.rs or *.rust-lang.org")
        );
        return Err(RuleError { pointer: pointer.to_owned(), message });
    }
    let source_text = format!("\"{key}\": \"{pattern}\"");
    let folded_pattern =
        (level != PermissionLevel::Allow).then(|| RulePattern::new(&fold_name(pattern)));
    let names_key = !key.contains(['*', '?']);
    Ok(PermissionRule {
        key: WildMatch::new(key),
        key_text: key.to_owned(),
        pattern: RulePattern::new(pattern),
        folded_pattern,
        level,
        exceptions,
        names_key,
        source_text,
        pointer: pointer.to_owned(),
    })
}

/// Parses the exceptions of a deny rule: a list of patterns under the same key, or a map from keys
/// to lists of patterns.
fn parse_exceptions(
    key: &str,
    rule: &Value,
    except: Option<&Value>,
    pointer: &str,
) -> Result<Vec<(WildMatch, RulePattern)>, RuleError> {
    let Value::Object(map) = rule else { return Ok(Vec::new()) };
    let invalid = || RuleError {
        pointer: pointer.to_owned(),
        message: format!(
            "expected a level, or {{\"level\": \"deny\", \"except\": [\"PATTERN\"]}}, found {rule}"
        ),
    };
    let is_deny = map.get("level").and_then(Value::as_str) == Some("deny");
    let lists: Vec<(&str, &Value)> = match except {
        Some(Value::Object(keys)) => keys.iter().map(|(key, list)| (key.as_str(), list)).collect(),
        Some(list @ Value::Array(_)) => vec![(key, list)],
        _ => return Err(invalid()),
    };
    let mut exceptions = Vec::new();
    for (key, list) in lists {
        for pattern in list.as_array().ok_or_else(invalid)? {
            let pattern = pattern.as_str().ok_or_else(invalid)?;
            if WildMatch::new(key).matches(WEBFETCH_KEY) && key != "*" && !is_host_pattern(pattern)
            {
                let message = format!("invalid host {pattern:?}: {WEBFETCH_KEY} rules match hosts");
                return Err(RuleError { pointer: pointer.to_owned(), message });
            }
            exceptions.push((WildMatch::new(key), RulePattern::new(pattern)));
        }
    }
    let is_valid = is_deny && map.len() == 2 && !exceptions.is_empty();
    if is_valid { Ok(exceptions) } else { Err(invalid()) }
}

/// Returns the host of a URL or of a host with a path, if that is a host pattern.
fn host_in_url(pattern: &str) -> Option<&str> {
    let rest = pattern.split_once("://").map_or(pattern, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    (host != "*" && is_host_pattern(host)).then_some(host)
}

/// The permission key whose patterns are hosts.
pub(crate) const WEBFETCH_KEY: &str = "webfetch";

/// Returns true for a host, `*.host` or `*`. A wildcard elsewhere would match hosts of other
/// owners: `docs.rs*` also matches `docs.rs.example.com`.
fn is_host_pattern(pattern: &str) -> bool {
    let host = pattern.strip_prefix("*.").unwrap_or(pattern);
    let is_host_char =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    pattern == "*" || (!host.is_empty() && host.chars().all(is_host_char))
}

fn invalid_level_error(value: &Value, pointer: &str) -> RuleError {
    let message = format!("expected \"allow\", \"ask\" or \"deny\", found {value}");
    RuleError { pointer: pointer.to_owned(), message }
}

fn escape_pointer_part(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
