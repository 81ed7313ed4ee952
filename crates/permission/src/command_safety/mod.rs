//! Safety evaluation of shell command lines: parses the text, evaluates each simple command and
//! applies the rules.
//!
//! The module is pure: [`PathLookup`] answers questions about the file system. It keeps two
//! invariants: [`PermissionMode::Ask`] allows without a rule only commands that provably only read or that a
//! sandbox without write access confines, and the strictest simple command decides. Start reading at [`evaluate_command`].

mod approval_template;
mod command_line_walk;
mod commands_in_arguments;
mod find_filters;
mod indirect_reads;
mod network_addresses;
mod operands;
mod option_grammar;
mod path_evaluator;
mod path_use;
mod program_evaluation;
mod program_path;
mod program_row;
mod program_run_context;
mod programs;
mod risk;
mod rule_match;
mod sed_awk;
mod system_paths;
mod untrusted_config;
mod variables;
mod word_expansion;
mod wrapper_table;
mod wrappers;

use crate::rules::{PermissionLevel, PermissionRules, RuleSubject};
use crate::shell::{self, ShellAmbiguity, SimpleShellCommand};
use crate::{PathLookup, SandboxStatus};
pub(crate) use path_use::PathUse;
pub(crate) use system_paths::{is_public_path, is_system_path};

use command_line_walk::CommandLineWalk;
use path_evaluator::PathEvaluator;
pub(crate) use risk::{NETWORK_DANGER, UNSEEN_SCRIPT_DANGER};
use risk::{NetworkNeed, Risk};
use std::sync::Arc;
use windlass_protocol::PermissionMode;

/// Everything that a `CommandVerdict` depends on besides the command.
pub(crate) struct CommandEvaluationContext<'a> {
    pub(crate) user_rules: &'a PermissionRules,
    /// Rules that can only make the verdict stricter.
    pub(crate) restricting_rules: &'a [Arc<PermissionRules>],
    pub(crate) path_lookup: &'a dyn PathLookup,
    pub(crate) mode: PermissionMode,
    pub(crate) sandbox_status: SandboxStatus,
}

/// The verdict on a command line.
#[derive(Clone, Debug)]
pub struct CommandVerdict {
    /// The level of the strictest segment, rule or ambiguity.
    pub level: PermissionLevel,
    /// Verdicts on the simple commands; outer commands precede the ones they run.
    pub segments: Vec<SimpleShellCommandVerdict>,
    /// The hosts that the simple commands need.
    pub(crate) wants_network: bool,
    /// True if access to package registries is all that requires approval.
    pub(crate) registries_suffice: bool,
    /// Reasons that the command line may do more than the parsers saw.
    pub ambiguities: Vec<String>,
    /// The kind of the command, if a permanent approval may cover all commands of that kind.
    pub approval_template: Option<String>,
}

impl CommandVerdict {
    /// Describes a script that one simple command downloads and another one runs, with its host.
    pub(crate) fn downloaded_script(&self) -> Option<String> {
        let runs_script = self.segments.iter().any(|it| it.danger == UNSEEN_SCRIPT_DANGER);
        if !runs_script || !self.wants_network {
            return None;
        }
        let host = |word: &String| {
            let rest = word.split_once("://").filter(|(scheme, _)| scheme.starts_with("http"))?.1;
            let host = rest.split(['/', '?', '#']).next()?;
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':');
            (!host.is_empty() && host.chars().all(is_plain)).then(|| host.to_owned())
        };
        let origin = self.segments.iter().flat_map(|segment| &segment.words).find_map(host);
        Some(match origin {
            Some(host) => format!("it downloads a script from {host} and runs it"),
            None => "it downloads a script and runs it".to_owned(),
        })
    }
}

/// The verdict on one simple command.
#[derive(Clone, Debug)]
pub struct SimpleShellCommandVerdict {
    /// The command as written.
    pub text: String,
    pub words: Vec<String>,
    pub level: PermissionLevel,
    pub reason: String,
    /// The rule that set the level, if any.
    pub rule: Option<String>,
    /// Ranks the verdicts of equal level: the reason of the highest one is shown.
    pub(crate) danger: u8,
}

impl SimpleShellCommandVerdict {
    fn new(
        segment: &SimpleShellCommand,
        (level, reason, rule): (PermissionLevel, String, Option<String>),
        risk: Risk,
    ) -> SimpleShellCommandVerdict {
        let words = segment.words.iter().map(|word| word.text().to_owned()).collect();
        let text = segment.text.clone();
        SimpleShellCommandVerdict { text, words, level, reason, rule, danger: risk.danger() }
    }
}

/// Evaluates a command line that runs in `folder`, a path relative to the workspace.
pub(crate) fn evaluate_command(
    text: &str,
    folder: &str,
    context: &CommandEvaluationContext<'_>,
) -> CommandVerdict {
    let path_context =
        PathEvaluator::new(context.path_lookup, context.user_rules, context.restricting_rules);
    let start = context.path_lookup.workspace_root().join(folder);
    let mut walk = CommandLineWalk::new(&path_context, context, &start);
    walk.walk(shell::parse_command_line(text), 0);
    let CommandLineWalk {
        verdicts: mut segments,
        mut ambiguities,
        network,
        registries_suffice,
        may_write,
        exceeds_limits,
        ..
    } = walk;
    if ambiguities == [ShellAmbiguity::Comment] && has_only_options(&segments) {
        ambiguities.clear();
    }
    if exceeds_limits {
        // A weaker level would offer a way around deny rules.
        let reason = "it is too long or too deeply nested to check. Split it, or write a script \
                      with the write tool and run that";
        segments.push(whole_command_verdict(text, PermissionLevel::Deny, reason.to_owned()));
    }
    if segments.is_empty() {
        let reason = ambiguities.first().map_or("it is empty", |ambiguity| ambiguity.message());
        let reason = reason.to_owned();
        segments.push(whole_command_verdict(text, PermissionLevel::Ask, reason));
    }
    if !path_context.is_in_workspace(&start) {
        let reason = format!("`{folder}` is outside the workspace");
        segments.push(whole_command_verdict(text, PermissionLevel::Ask, reason));
    }
    let mut level =
        segments.iter().map(|segment| segment.level).max().unwrap_or(PermissionLevel::Ask);
    let whole_rule = context.user_rules.deciding_rule("bash", &RuleSubject::new(text));
    let allows_everything = whole_rule
        .as_ref()
        .is_some_and(|rule| rule.matches_all && rule.level == PermissionLevel::Allow);
    let is_certain = match (context.mode, context.sandbox_status) {
        (PermissionMode::Plan | PermissionMode::Ask, SandboxStatus::Active) => {
            let is_visible = ambiguities.iter().all(|ambiguity| ambiguity.hides_no_command());
            ambiguities.is_empty()
                || is_visible && !may_write && !rule_match::rules_restrict(context)
        }
        (
            PermissionMode::Plan | PermissionMode::Ask,
            SandboxStatus::Off | SandboxStatus::Unavailable,
        )
        | (PermissionMode::Auto, SandboxStatus::Off)
        | (PermissionMode::Auto | PermissionMode::Full, SandboxStatus::Unavailable) => {
            ambiguities.is_empty()
        }
        (PermissionMode::Auto, SandboxStatus::Active)
        | (PermissionMode::Full, SandboxStatus::Active | SandboxStatus::Off) => true,
    };
    if !ambiguities.is_empty()
        && Risk::WorkspaceWrite.violates_plan_mode(context.mode, context.sandbox_status)
    {
        level = PermissionLevel::Deny;
    }
    if !is_certain && !allows_everything {
        level = level.max(PermissionLevel::Ask);
    }
    // A rule may match the text as a whole. `*` was already applied to every segment. Exceptions are
    // for single commands, each of which was checked, so rules with some do not decide here.
    let restricting_rules = context.restricting_rules.iter().map(AsRef::as_ref);
    let whole_rules = std::iter::once(context.user_rules).chain(restricting_rules);
    let subject = RuleSubject::new(text);
    let whole_rules = whole_rules.filter_map(|rules| match ambiguities.is_empty() {
        true => rules.deciding_rule_without_exceptions("bash", &subject),
        false => rules.deciding_rule("bash", &subject),
    });
    for rule in whole_rules {
        let is_reported =
            |segment: &SimpleShellCommandVerdict| segment.rule.as_deref() == Some(rule.source_text);
        let is_new_restriction =
            rule.level > PermissionLevel::Allow && !segments.iter().any(is_reported);
        if is_new_restriction
            && rule.level >= level
            && (!rule.matches_all || rule.level == PermissionLevel::Deny)
        {
            level = rule.level;
            let segment = whole_command_verdict(text, level, rule.describe("the"));
            segments.push(SimpleShellCommandVerdict {
                rule: Some(rule.source_text.to_owned()),
                ..segment
            });
        }
    }
    let registries_suffice = registries_suffice
        && network == NetworkNeed::Registries
        && level == PermissionLevel::Ask
        && is_certain;
    let ambiguities = ambiguities.iter().map(|ambiguity| ambiguity.message().to_owned()).collect();
    let mut verdict = CommandVerdict {
        level,
        segments,
        wants_network: network != NetworkNeed::None,
        registries_suffice,
        ambiguities,
        approval_template: None,
    };
    verdict.approval_template =
        approval_template::approval_template(text, &verdict, context.path_lookup);
    verdict
}

/// Creates a verdict on the command line as a whole.
fn whole_command_verdict(
    text: &str,
    level: PermissionLevel,
    reason: String,
) -> SimpleShellCommandVerdict {
    let text = text.chars().take(80).collect();
    SimpleShellCommandVerdict { text, words: Vec::new(), level, reason, rule: None, danger: 0 }
}

/// Returns true if the commands contain only options and no names. Then a comment cannot mislead
/// the user; a comment about a name could be false.
fn has_only_options(segments: &[SimpleShellCommandVerdict]) -> bool {
    segments.iter().all(|segment| {
        let is_git = segment.words.first().is_some_and(|program| program == "git");
        let mut rest = segment.words.iter().skip(1 + usize::from(is_git));
        rest.all(|word| word.starts_with('-')) && !segment.text.contains(['<', '>'])
    })
}

/// Checks the analysis of scripts on any text. For the fuzzer.
pub(crate) fn script_invariants_hold(text: &str) -> bool {
    sed_awk::invariants_hold(text)
}

#[cfg(test)]
mod tests;
