//! Applies permission rules to a command.
//!
//! Deny and ask rules match a command in every form: with and without wrappers, by path and by
//! name, and as written. Allow rules match only the program that really runs, and only if the
//! command is plain words; `*` matches everything.

use super::{CommandEvaluationContext, programs};
use crate::PermissionLevel;
use crate::rules::{DecidingRule, OUTSIDE_KEY, PermissionRules, RuleSubject};

/// Tells plain words from commands with assignments, redirections or unknown words.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CommandComplexity {
    PlainWords,
    Complex,
}

/// A command to match against the `bash` rules.
pub(super) struct CommandRuleQuery<'a> {
    pub(super) text: &'a str,
    pub(super) unwrapped_forms: &'a [Vec<String>],
    /// The commands that really run, without wrappers.
    pub(super) effective_commands: &'a [String],
    pub(super) command_form: CommandComplexity,
}

/// The result of `match_rules`.
pub(super) struct CommandRuleMatch {
    pub(super) level: PermissionLevel,
    pub(super) source_text: String,
    /// True if the rule also allows secret files.
    pub(super) opens_secrets: bool,
    is_user_rule: bool,
}

impl CommandRuleMatch {
    pub(super) fn reason(&self) -> String {
        let owner = if self.is_user_rule { "your" } else { "the" };
        format!("{owner} rule {} {}", self.source_text, self.level.effect())
    }
}

/// Returns the strictest matching `bash` rule, if any.
pub(super) fn match_rules(
    context: &CommandEvaluationContext<'_>,
    query: &CommandRuleQuery<'_>,
) -> Option<CommandRuleMatch> {
    let mut strictest = matching_allow_rule(context, query);
    let mut tighten = |level: PermissionLevel, source_text: &str, is_user_rule: bool| {
        if level > PermissionLevel::Allow
            && strictest.as_ref().is_none_or(|strictest| level > strictest.level)
        {
            strictest = Some(CommandRuleMatch {
                level,
                source_text: source_text.to_owned(),
                opens_secrets: false,
                is_user_rule,
            });
        }
    };
    for subject in command_spellings(query) {
        let is_effective = query.effective_commands.contains(&subject);
        // Exceptions name commands as they are written, so a deny with exceptions is not meant for
        // words that an unknown program might run.
        let is_guessed = !is_effective && subject != query.text;
        let subject = RuleSubject::new(&subject);
        if let Some(rule) = deciding_rule(context.user_rules, &subject, is_guessed) {
            // A general `ask` of the user is not meant for alternative spellings.
            if is_effective || !rule.matches_all || rule.level == PermissionLevel::Deny {
                tighten(rule.level, rule.source_text, true);
            }
        }
        for rules in context.restricting_rules {
            if let Some(rule) = deciding_rule(rules, &subject, is_guessed) {
                tighten(rule.level, rule.source_text, false);
            }
        }
    }
    strictest
}

fn deciding_rule<'a>(
    rules: &'a PermissionRules,
    subject: &RuleSubject<'_>,
    is_guessed: bool,
) -> Option<DecidingRule<'a>> {
    match is_guessed {
        true => rules.deciding_rule_without_exceptions("bash", subject),
        false => rules.deciding_rule("bash", subject),
    }
}

/// Returns true if a rule of the user or a restricting rule denies some commands.
pub(super) fn rules_deny_some(context: &CommandEvaluationContext<'_>) -> bool {
    all_rules(context).any(|rules| rules.denies_some("bash"))
}

/// Returns true if rules restrict some commands or some paths outside the workspace.
pub(super) fn rules_restrict(context: &CommandEvaluationContext<'_>) -> bool {
    all_rules(context)
        .any(|rules| rules.restricts_some("bash") || rules.restricts_some(OUTSIDE_KEY))
}

fn all_rules<'a>(
    context: &CommandEvaluationContext<'a>,
) -> impl Iterator<Item = &'a PermissionRules> {
    std::iter::once(context.user_rules).chain(context.restricting_rules.iter().map(AsRef::as_ref))
}

/// Returns the user's rule that allows everything that really runs, if there is one.
fn matching_allow_rule(
    context: &CommandEvaluationContext<'_>,
    query: &CommandRuleQuery<'_>,
) -> Option<CommandRuleMatch> {
    let full_text = [query.text.to_owned()];
    let (subjects, command_form) = match query.effective_commands {
        [] => (full_text.as_slice(), CommandComplexity::Complex),
        effective => (effective, query.command_form),
    };
    let mut matched = None;
    for subject in subjects {
        let rule = context.user_rules.deciding_rule("bash", &RuleSubject::new(subject))?;
        if rule.level != PermissionLevel::Allow
            || (command_form == CommandComplexity::Complex && !rule.matches_all)
        {
            return None;
        }
        let opens_secrets = rule.opens_secrets || rule.matches_all;
        let source_text = rule.source_text.to_owned();
        matched = Some(CommandRuleMatch {
            level: PermissionLevel::Allow,
            source_text,
            opens_secrets,
            is_user_rule: true,
        });
    }
    matched
}

/// Returns every spelling of a command: as written, with each wrapper removed, with the program by
/// name only, and without the options before a subcommand.
fn command_spellings(query: &CommandRuleQuery<'_>) -> Vec<String> {
    let mut spellings = vec![query.text.to_owned()];
    for form in query.unwrapped_forms {
        let mut add = |spelling: String| {
            if !spellings.contains(&spelling) {
                spellings.push(spelling);
            }
        };
        add(form.join(" "));
        if let Some((first, rest)) = form.split_first() {
            let name = first.rsplit('/').next().unwrap_or(first);
            add(std::iter::once(name)
                .chain(rest.iter().map(String::as_str))
                .collect::<Vec<_>>()
                .join(" "));
            for start in programs::subcommand_starts(name, rest) {
                let rest = rest.get(start..).unwrap_or_default();
                add(format!("{name} {}", rest.join(" ")));
            }
        }
    }
    spellings
}
