//! Finds permission rules that never decide anything, so that the user learns of a rule that does
//! not do what it says.
//!
//! A rule is reported only if it is certain: a pattern counts as covered if the other pattern
//! matches its text, wildcards included. Start reading at [`PermissionRules::dead_rules`].

use crate::pattern_overlap::{GlobPattern, globs_overlap};
use crate::protected_paths::path_protection;
use crate::rules::{
    EXPLICIT_ONLY_KEYS, OUTSIDE_KEY, PermissionLevel, PermissionRule, PermissionRules, RulePattern,
    WEBFETCH_KEY,
};
use std::fmt;

/// The permission keys that accesses have. Every other key is the name of a tool.
pub const PERMISSION_KEYS: [&str; 12] = [
    "read",
    "edit",
    "bash",
    WEBFETCH_KEY,
    "skill",
    "task",
    OUTSIDE_KEY,
    "process",
    "tool_definition",
    "network",
    "sandbox",
    "doom_loop",
];

/// The kinds of programs that `process` rules name: `mcp/git`.
const PROCESS_KINDS: [&str; 5] = ["mcp/", "tool/", "hook/", "lsp/", "format/"];

/// A rule that never decides anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadRule {
    /// JSON pointer to the rule, relative to `permission`.
    pub pointer: String,
    /// The rule as in the config: `"bash": "git push *"`.
    pub rule: String,
    pub level: PermissionLevel,
    /// The reason, a clause.
    pub reason: String,
    /// The advice, an imperative.
    pub advice: String,
}

impl fmt::Display for DeadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DeadRule { rule, level, reason, advice, .. } = self;
        write!(f, "the rule {rule} = {level} has no effect, because {reason}. {advice}")
    }
}

/// The surroundings of the rules of one file, for [`PermissionRules::dead_rules`].
pub struct RuleSurroundings<'a> {
    /// Rules of other files, each with the name of its file. Their denies win, too.
    pub other_rules: Vec<(String, &'a PermissionRules)>,
    /// True for rules that can only make a decision stricter, such as those of a repository.
    pub is_restricting: bool,
    /// Returns the permission key of a built-in tool.
    pub built_in_tool_key: &'a dyn Fn(&str) -> Option<String>,
    /// Returns advice about a key that no access and no tool has.
    pub unknown_key_advice: &'a dyn Fn(&str) -> Option<String>,
}

/// The reason and the advice about a rule.
type RuleProblem = (String, String);

impl PermissionRules {
    /// Returns the rules that never decide anything, in config order.
    pub fn dead_rules(&self, surroundings: &RuleSurroundings<'_>) -> Vec<DeadRule> {
        let rules = self.0.iter().enumerate();
        rules
            .filter_map(|(index, rule)| {
                let problem = key_problem(rule, surroundings)
                    .or_else(|| pattern_problem(rule))
                    .or_else(|| self.deny_problem(rule, surroundings))
                    .or_else(|| self.later_rule_problem(rule, index))
                    .or_else(|| self.restriction_problem(rule, index, surroundings));
                let (reason, advice) = problem?;
                let PermissionRule { level, pointer, source_text, .. } = rule;
                let (pointer, rule, level) = (pointer.clone(), source_text.clone(), *level);
                Some(DeadRule { pointer, rule, level, reason, advice })
            })
            .collect()
    }

    /// Finds a deny rule that matches everything that a rule matches.
    fn deny_problem(
        &self,
        rule: &PermissionRule,
        surroundings: &RuleSurroundings<'_>,
    ) -> Option<RuleProblem> {
        if rule.level == PermissionLevel::Deny {
            return None;
        }
        let covers = |other: &&PermissionRule| {
            other.level == PermissionLevel::Deny && covers_rule(other, rule)
        };
        let own = self.0.iter().find(covers).map(|deny| (deny, String::new()));
        let others = surroundings.other_rules.iter().filter(|_| !surroundings.is_restricting);
        let found = own.or_else(|| {
            let mut others = others.filter_map(|(name, rules)| {
                rules.0.iter().find(covers).map(|deny| (deny, format!(" in {name}")))
            });
            others.next()
        });
        let (deny, place) = found?;
        let source_text = &deny.source_text;
        Some((
            format!(
                "{source_text}{place} denies everything that it matches, and a deny always wins"
            ),
            match deny.names_key && place.is_empty() {
                true => format!(
                    "Write {source_text} as {{\"level\": \"deny\", \"except\": [\"{}\"]}}, or \
                     remove this rule",
                    rule.pattern.text
                ),
                false => format!(
                    "Write \"ask\" instead of \"deny\" at {source_text}, or remove this rule"
                ),
            },
        ))
    }

    /// Finds a later rule with another effect that matches everything that a rule matches.
    fn later_rule_problem(&self, rule: &PermissionRule, index: usize) -> Option<RuleProblem> {
        let lifts_protection = rule.level == PermissionLevel::Allow
            && rule.key.matches("edit")
            && path_protection(&[], &rule.pattern.text).is_some();
        if rule.level == PermissionLevel::Deny || lifts_protection {
            return None;
        }
        let has_other_effect = |later: &PermissionRule| {
            let opens_secrets = rule.pattern.text.contains("env") && !later.pattern.names_secrets;
            let is_file_rule = ["read", "edit"].iter().any(|key| rule.key.matches(key));
            later.level != rule.level
                || rule.level == PermissionLevel::Allow && opens_secrets && is_file_rule
        };
        // An ask rule also matches other spellings of a name, which an allow rule does not.
        let is_covered = |later: &PermissionRule| {
            let is_exact =
                later.level == PermissionLevel::Allow && rule.level == PermissionLevel::Ask;
            covers_rule(later, rule) && (!is_exact || later.pattern.matches_all())
        };
        let mut later_rules = self.0.iter().skip(index + 1);
        let later = later_rules.find(|later| {
            later.level != PermissionLevel::Deny && is_covered(later) && has_other_effect(later)
        })?;
        let source_text = &later.source_text;
        Some((
            format!(
                "the later rule {source_text} matches everything that it matches, and the last \
                 match counts"
            ),
            format!("Move this rule below {source_text}"),
        ))
    }

    /// Finds an allow rule in rules that can only restrict. It counts only as an exception from an
    /// ask rule above it.
    fn restriction_problem(
        &self,
        rule: &PermissionRule,
        index: usize,
        surroundings: &RuleSurroundings<'_>,
    ) -> Option<RuleProblem> {
        let is_exception = || {
            let key = GlobPattern::from_rule(&rule.key_text);
            self.0.iter().take(index).any(|earlier| {
                earlier.level == PermissionLevel::Ask
                    && globs_overlap(&key, &GlobPattern::from_rule(&earlier.key_text))
                    && earlier.pattern.overlaps_pattern(&rule.pattern.text)
            })
        };
        let is_dead =
            surroundings.is_restricting && rule.level == PermissionLevel::Allow && !is_exception();
        is_dead.then(|| {
            (
                "these rules can only make decisions stricter".to_owned(),
                "Remove it, or write it in your own config".to_owned(),
            )
        })
    }
}

/// Returns true if one rule certainly matches everything that another matches, under every key.
fn covers_rule(one: &PermissionRule, other: &PermissionRule) -> bool {
    let is_key_covered = RulePattern::new(&one.key_text).covers_pattern(&other.key_text);
    // A wildcard key cannot allow or ask about these keys.
    let applies = one.level == PermissionLevel::Deny
        || one.names_key
        || !other.names_key
        || !EXPLICIT_ONLY_KEYS.contains(&other.key_text.as_str());
    if !one.exceptions.is_empty() {
        return false;
    }
    let covers = |one: &str, other: &str| RulePattern::new(one).covers_pattern(other);
    let (pattern, other_pattern) = (&one.pattern.text, &other.pattern.text);
    let covers_other_case = || {
        one.level > PermissionLevel::Allow
            && covers(&pattern.to_ascii_lowercase(), &other_pattern.to_ascii_lowercase())
    };
    is_key_covered && applies && (covers(pattern, other_pattern) || covers_other_case())
}

/// Finds a key that nothing has, or that does not decide what the rule says.
fn key_problem(rule: &PermissionRule, surroundings: &RuleSurroundings<'_>) -> Option<RuleProblem> {
    let key = rule.key_text.as_str();
    if !rule.names_key {
        return None;
    }
    let level = rule.level;
    match key {
        "network" if level == PermissionLevel::Allow => {
            return Some((
                "no rule opens the network".to_owned(),
                "List hosts in `sandbox.network`, or approve a command when asked".to_owned(),
            ));
        }
        "sandbox" if level != PermissionLevel::Deny => {
            return Some((
                "leaving the sandbox always requires approval".to_owned(),
                "Remove it; a rule here can only deny".to_owned(),
            ));
        }
        key if PERMISSION_KEYS.contains(&key) => return None,
        _ => {}
    }
    let Some(tool_key) = (surroundings.built_in_tool_key)(key) else {
        let advice = (surroundings.unknown_key_advice)(key)?;
        return Some((format!("no access and no tool is named `{key}`"), advice));
    };
    let pattern = &rule.pattern.text;
    let file_key = matches!(key, "glob" | "grep" | "lsp").then_some("read");
    let own_key = file_key.or((tool_key != key).then_some(tool_key.as_str()));
    match own_key {
        Some(own_key) if !rule.pattern.matches("*") => Some((
            format!("a rule under `{key}` applies to all of its calls and matches no pattern"),
            format!("Write \"{own_key}\": {{\"{pattern}\": \"{level}\"}}"),
        )),
        None if !rule.pattern.matches("*") => Some((
            format!("a rule under `{key}` applies to all of its calls and matches no pattern"),
            format!("Write \"{key}\": \"{level}\""),
        )),
        Some(own_key) if level == PermissionLevel::Allow && tool_key != key => Some((
            format!("`{key}` is allowed by rules under `{own_key}`"),
            format!("Write \"{own_key}\": \"allow\""),
        )),
        Some(_) | None => None,
    }
}

/// Finds a pattern that no subject of its key matches.
fn pattern_problem(rule: &PermissionRule) -> Option<RuleProblem> {
    let pattern = rule.pattern.text.as_str();
    if !rule.names_key || pattern.starts_with(['*', '?']) {
        return None;
    }
    let key = rule.key_text.as_str();
    let level = rule.level;
    match key {
        "read" | "edit" => {
            let home = ["~/", "$HOME/", "${HOME}/"];
            if let Some(rest) = home.iter().find_map(|start| pattern.strip_prefix(start)) {
                return Some((
                    format!("`{key}` rules match paths relative to the project"),
                    format!("Write \"{OUTSIDE_KEY}\": {{\"~/{rest}\": \"{level}\"}}"),
                ));
            }
            let is_dot = |part: &str| matches!(part, "." | "..");
            let relative: Vec<&str> = pattern.split('/').filter(|part| *part != ".").collect();
            (pattern != "." && pattern.split('/').any(is_dot)).then(|| {
                let relative = relative.join("/");
                let advice = match relative.split('/').any(|part| part == "..") {
                    true => format!("Write an absolute path under \"{OUTSIDE_KEY}\""),
                    false => format!("Write \"{key}\": {{\"{relative}\": \"{level}\"}}"),
                };
                ("paths contain no `.` and `..` when they are matched".to_owned(), advice)
            })
        }
        "bash" if pattern.trim() != pattern || pattern.contains("  ") => {
            let words: Vec<&str> = pattern.split_whitespace().collect();
            let words = words.join(" ");
            (level == PermissionLevel::Allow).then(|| {
                (
                    "commands are matched as words with one space between them".to_owned(),
                    format!("Write \"bash\": {{\"{words}\": \"{level}\"}}"),
                )
            })
        }
        "bash" if level == PermissionLevel::Allow => {
            let operators = [" && ", " || ", " | ", "; "];
            operators.iter().any(|operator| pattern.contains(operator)).then(|| {
                (
                    "an allow rule matches one simple command at a time".to_owned(),
                    "Write one rule for each command of the line".to_owned(),
                )
            })
        }
        OUTSIDE_KEY if !pattern.starts_with(['/', '~']) => {
            let is_drive = pattern.get(1..2) == Some(":") || pattern.starts_with('\\');
            let rest = ["$HOME/", "${HOME}/"].iter().find_map(|start| pattern.strip_prefix(start));
            let advice = match rest {
                Some(rest) => format!("Write \"{OUTSIDE_KEY}\": {{\"~/{rest}\": \"{level}\"}}"),
                None => "Write an absolute path, or one that begins with `~/`".to_owned(),
            };
            (!is_drive).then(|| ("paths outside the project are absolute".to_owned(), advice))
        }
        "process" if !PROCESS_KINDS.iter().any(|kind| may_begin_with(pattern, kind)) => Some((
            "no program that Windlass starts has such a name".to_owned(),
            format!("Write \"process\": {{\"mcp/{pattern}\": \"{level}\"}} or the like"),
        )),
        _ => None,
    }
}

/// Returns true if a match of the pattern may begin with this text.
fn may_begin_with(pattern: &str, start: &str) -> bool {
    let beginnings = GlobPattern::from_rule(&format!("{start}*"));
    globs_overlap(&beginnings, &GlobPattern::from_rule(pattern))
}
