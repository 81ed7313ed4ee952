//! Walks a command line: evaluates one simple command after the other, tracks the folder each runs
//! in, and removes wrappers.

use super::path_evaluator::{PathEvaluator, PossibleWorkingFolders, ProgramTableMembership};
use super::path_use::PathUse;
use super::program_evaluation;
use super::program_run_context::ProgramRunContext;
use super::risk::{NetworkNeed, Risk, RiskFinding};
use super::rule_match::{CommandComplexity, CommandRuleMatch, CommandRuleQuery};
use super::wrappers::{self, CommandStdin, UnwrappedCommand};
use super::{
    CommandEvaluationContext, SimpleShellCommandVerdict, commands_in_arguments, rule_match,
    variables, word_expansion,
};
use crate::PermissionLevel;
use crate::shell::{
    self, CommandOrScopeBoundary, ParsedCommandLine, RedirectKind, ShellAmbiguity, ShellWord,
    SimpleShellCommand,
};
use std::path::Path;
use windlass_protocol::PermissionMode;

/// Limits the wrappers around a program.
const MAX_WRAPPER_DEPTH: usize = 8;

/// Limits the words and redirections of a command.
const MAX_SEGMENT_WORDS: usize = 4_000;

/// The state of a walk over a command line.
pub(super) struct CommandLineWalk<'a> {
    path_context: &'a PathEvaluator<'a>,
    context: &'a CommandEvaluationContext<'a>,
    /// The possible working folders of each open scope.
    scopes: Vec<PossibleWorkingFolders>,
    pub(super) verdicts: Vec<SimpleShellCommandVerdict>,
    pub(super) ambiguities: Vec<ShellAmbiguity>,
    pub(super) network: NetworkNeed,
    pub(super) registries_suffice: bool,
    /// True if some simple command may do more than read, or is allowed by a rule.
    pub(super) may_write: bool,
    /// True if the command line has more than the walk reads.
    pub(super) exceeds_limits: bool,
}

fn changes_folder(program: &str) -> bool {
    matches!(program, "cd" | "pushd" | "popd" | "chdir")
}

/// Returns true for a quoted text that the shell runs if it evaluates it as an index, as in
/// `a='x[$(id)]'; echo $((a))`.
fn contains_hidden_command(word: &ShellWord) -> bool {
    let text = word.as_plain().unwrap_or_default();
    text.contains("[$(") || text.contains("[`")
}

/// The state while one simple command is evaluated.
struct SimpleShellCommandState {
    finding: RiskFinding,
    /// The words with all wrappers, and with each wrapper removed.
    unwrapped_forms: Vec<Vec<String>>,
    /// The commands that really run, without wrappers.
    effective_commands: Vec<String>,
    here_documents: Vec<ShellWord>,
    has_piped_input: bool,
}

impl<'a> CommandLineWalk<'a> {
    pub(super) fn new(
        path_context: &'a PathEvaluator<'a>,
        context: &'a CommandEvaluationContext<'a>,
        folder: &Path,
    ) -> CommandLineWalk<'a> {
        let start = path_context.path_lookup().resolve_path(folder);
        let scopes = vec![PossibleWorkingFolders(vec![start])];
        CommandLineWalk {
            path_context,
            context,
            scopes,
            verdicts: Vec::new(),
            ambiguities: Vec::new(),
            network: NetworkNeed::None,
            registries_suffice: true,
            may_write: false,
            exceeds_limits: false,
        }
    }

    fn working_folders(&self) -> PossibleWorkingFolders {
        self.scopes.last().cloned().unwrap_or(PossibleWorkingFolders(Vec::new()))
    }

    /// Walks a parsed command line that is nested `depth` levels deep.
    pub(super) fn walk(&mut self, command_line: ParsedCommandLine, depth: usize) {
        self.exceeds_limits |= command_line.exceeds_limits;
        for ambiguity in command_line.ambiguities {
            if !self.ambiguities.contains(&ambiguity) {
                self.ambiguities.push(ambiguity);
            }
        }
        let outer_scopes = self.scopes.len();
        for item in command_line.items {
            match item {
                CommandOrScopeBoundary::EnterScope => {
                    let folders = self.working_folders();
                    self.scopes.push(folders);
                }
                CommandOrScopeBoundary::LeaveScope => {
                    if self.scopes.len() > outer_scopes {
                        self.scopes.pop();
                    }
                }
                CommandOrScopeBoundary::Command(segment) => self.evaluate_segment(&segment, depth),
            }
        }
        self.scopes.truncate(outer_scopes);
    }

    fn evaluate_segment(&mut self, segment: &SimpleShellCommand, depth: usize) {
        let words = segment.words.len().saturating_add(segment.assignments.len());
        if words.saturating_add(segment.redirects.len()) > MAX_SEGMENT_WORDS {
            self.exceeds_limits = true;
            return;
        }
        let mut state = SimpleShellCommandState {
            finding: RiskFinding::harmless(),
            unwrapped_forms: Vec::new(),
            effective_commands: Vec::new(),
            here_documents: Vec::new(),
            has_piped_input: segment.has_piped_input,
        };
        let has_no_words = segment.words.is_empty();
        // A program that is run by its path can run anything itself.
        let is_path = |word: &ShellWord| word.as_plain().is_some_and(|path| path.contains('/'));
        for (name, value) in &segment.assignments {
            state.finding.merge(match segment.words.first().is_some_and(is_path) {
                true => RiskFinding::new(Risk::WorkspaceWrite, "it sets a variable"),
                false => variables::evaluate_assignment(name, value),
            });
            if has_no_words {
                state.finding.merge(self.record_variable(name, value));
            }
        }
        let values = segment.assignments.iter().map(|(_, value)| value);
        if values.chain(&segment.words).any(contains_hidden_command) {
            let reason = "it contains a quoted command that the shell may run later";
            state.finding.merge(RiskFinding::new(Risk::Unknown, reason));
        }
        for redirect in &segment.redirects {
            let path_use = match &redirect.kind {
                RedirectKind::Read => PathUse::Read,
                RedirectKind::Write => PathUse::Write,
                RedirectKind::HereDocument { body, .. } => {
                    state.here_documents.push(ShellWord::Plain(body.clone()));
                    continue;
                }
                RedirectKind::HereString => {
                    state.here_documents.push(redirect.target.clone());
                    continue;
                }
            };
            state.finding.merge(self.path_context.evaluate_word(
                &self.working_folders(),
                &word_expansion::decode_dollar_quotes(&redirect.target),
                path_use,
            ));
        }
        if has_no_words && segment.assignments.is_empty() && segment.redirects.is_empty() {
            state.finding.merge(RiskFinding::new(Risk::Unknown, "it cannot be parsed"));
        }
        // Nested commands come after the one that contains them.
        let index = self.verdicts.len();
        if !has_no_words {
            let words: Vec<ShellWord> =
                segment.words.iter().map(word_expansion::decode_dollar_quotes).collect();
            self.evaluate_words(&words, &mut state, depth);
            let expanded: Vec<ShellWord> = words
                .iter()
                .map(|word| self.path_context.variables.expand(word))
                .flat_map(|word| word_expansion::expand_braces(&word))
                .collect();
            // The variables may have other values, too, so both forms count.
            if expanded != words && !words.first().is_some_and(|word| changes_folder(word.text())) {
                self.evaluate_words(&expanded, &mut state, depth);
            }
        }
        let is_plain = segment.assignments.is_empty()
            && segment.redirects.is_empty()
            && !segment.words.iter().any(|word| matches!(word, ShellWord::Opaque(_)));
        let command_form =
            if is_plain { CommandComplexity::PlainWords } else { CommandComplexity::Complex };
        self.finish_segment(segment, state, command_form, index);
    }

    /// Records an assignment. Values that later commands are not checked with, such as those of a
    /// loop, are checked here.
    fn record_variable(&self, name: &str, value: &ShellWord) -> RiskFinding {
        let has_private_tmp = self.path_context.path_lookup().has_private_tmp();
        let expanded = match value {
            ShellWord::Pattern(text) if !text.contains(['*', '?', '[']) => {
                self.path_context.expand_tilde(text).map(ShellWord::Plain)
            }
            ShellWord::Plain(_) | ShellWord::Pattern(_) | ShellWord::Opaque(_) => None,
        };
        let value = expanded.as_ref().unwrap_or(value);
        match self.path_context.variables.record(name, value, has_private_tmp) {
            true => RiskFinding::harmless(),
            false => self.path_context.evaluate_mention(
                &self.working_folders(),
                value,
                ProgramTableMembership::Known,
            ),
        }
    }

    /// Evaluates the words of a command, and the commands that they run in turn.
    fn evaluate_words(
        &mut self,
        words: &[ShellWord],
        state: &mut SimpleShellCommandState,
        depth: usize,
    ) {
        state.unwrapped_forms.push(words.iter().map(|word| word.text().to_owned()).collect());
        let Some((first, arguments)) = words.split_first() else { return };
        if depth > MAX_WRAPPER_DEPTH {
            state
                .finding
                .merge(RiskFinding::new(Risk::Unknown, "its commands are nested too deeply"));
            return;
        }
        let ShellWord::Plain(path) = first else {
            let reason = format!("it is unknown which program `{}` runs", first.text());
            state.finding.merge(RiskFinding::new(Risk::Unknown, reason));
            return;
        };
        if variables::may_assign(path, arguments) {
            self.path_context.variables.forget_values();
        }
        if variables::may_evaluate_variable(path, arguments) {
            let reason = format!("the first argument of `{path}` is unknown");
            state.finding.merge(RiskFinding::new(Risk::WorkspaceWrite, reason));
        }
        if let Some(name) = variables::printf_variable(path, arguments) {
            let value = ShellWord::Opaque(String::new());
            state.finding.merge(variables::evaluate_assignment(name, &value));
        }
        state.finding.merge(self.evaluate_program_origin(path));
        let program = path.rsplit('/').next().unwrap_or(path);
        let input = CommandStdin {
            has_piped_input: state.has_piped_input,
            here_documents: &state.here_documents,
        };
        let command_text = || words.iter().map(ShellWord::text).collect::<Vec<_>>().join(" ");
        match wrappers::unwrap_command(program, arguments, &input) {
            UnwrappedCommand::NotWrapper => {
                state.effective_commands.push(command_text());
                let finding = self.evaluate_program(program, arguments, state);
                state.finding.merge(finding);
                if commands_in_arguments::may_run_arguments(program, arguments) {
                    self.evaluate_trailing_commands(arguments, state);
                }
            }
            UnwrappedCommand::Command { words: inner, assignments, writes, floor } => {
                // A rule about the inner command does not cover a wrapper that does more than run
                // it.
                if floor.risk > Risk::ReadOnly || !assignments.is_empty() {
                    state.effective_commands.push(command_text());
                }
                state.finding.merge(floor);
                for (name, value) in &assignments {
                    state.finding.merge(variables::evaluate_assignment(name, value));
                }
                let wrapper_word_count = arguments.len().saturating_sub(inner.len()) + 1;
                for word in arguments.iter().take(wrapper_word_count) {
                    state.finding.merge(self.path_context.evaluate_mention(
                        &self.working_folders(),
                        word,
                        ProgramTableMembership::Unknown,
                    ));
                }
                self.evaluate_writes(&writes, state);
                self.evaluate_words(&inner, state, depth + 1);
            }
            UnwrappedCommand::Script { text, writes, floor } => {
                state.finding.merge(floor);
                state.effective_commands.push(command_text());
                self.evaluate_writes(&writes, state);
                if program == "parallel" {
                    self.evaluate_trailing_commands(arguments, state);
                }
                self.walk_script(&text, state, depth + 1);
            }
            UnwrappedCommand::FindCommands { rest, commands } => {
                state
                    .finding
                    .merge(RiskFinding::new(Risk::ConfinedRead, "find runs another program"));
                state.effective_commands.push(command_text());
                let finding = self.evaluate_program(program, &rest, state);
                state.finding.merge(finding);
                for command in commands {
                    self.evaluate_words(&command, state, depth + 1);
                }
            }
            UnwrappedCommand::NoCommand { reads, assignments, floor } => {
                state.effective_commands.push(command_text());
                state.finding.merge(floor);
                for word in &reads {
                    state.finding.merge(self.path_context.evaluate_word(
                        &self.working_folders(),
                        word,
                        PathUse::Read,
                    ));
                }
                for (name, value) in &assignments {
                    state.finding.merge(variables::evaluate_assignment(name, value));
                }
            }
        }
    }

    /// Evaluates the commands that an unknown program may run: every suffix of its words.
    fn evaluate_trailing_commands(
        &self,
        arguments: &[ShellWord],
        state: &mut SimpleShellCommandState,
    ) {
        let folders = self.working_folders();
        let run_context = ProgramRunContext {
            path_context: self.path_context,
            folders: &folders,
            has_piped_input: state.has_piped_input,
        };
        for tail in commands_in_arguments::trailing_commands(arguments) {
            let Some((first, rest)) = tail.split_first() else { continue };
            let name = first.text().rsplit('/').next().unwrap_or_default();
            if commands_in_arguments::is_dangerous_program(name) {
                let finding = program_evaluation::evaluate_program(&run_context, name, rest);
                if finding.risk >= Risk::Destructive {
                    state.finding.merge(finding);
                }
            }
            state.unwrapped_forms.push(tail.iter().map(|word| word.text().to_owned()).collect());
        }
    }

    fn evaluate_writes(&self, paths: &[ShellWord], state: &mut SimpleShellCommandState) {
        for path in paths {
            state.finding.merge(self.path_context.evaluate_word(
                &self.working_folders(),
                path,
                PathUse::Write,
            ));
        }
    }

    /// Parses a text as a script and walks it in a scope of its own, so that its `cd` does not
    /// last.
    fn walk_script(&mut self, text: &ShellWord, state: &mut SimpleShellCommandState, depth: usize) {
        let ShellWord::Plain(text) = text else {
            let reason = format!("it is unknown what `{}` runs", text.text());
            state.finding.merge(RiskFinding::new(Risk::UnseenScript, reason));
            return;
        };
        if depth > MAX_WRAPPER_DEPTH {
            state
                .finding
                .merge(RiskFinding::new(Risk::Unknown, "its commands are nested too deeply"));
            return;
        }
        let folders = self.working_folders();
        self.scopes.push(folders);
        self.walk(shell::parse_command_line(text), depth);
        self.scopes.pop();
    }

    fn evaluate_program(
        &mut self,
        program: &str,
        arguments: &[ShellWord],
        state: &SimpleShellCommandState,
    ) -> RiskFinding {
        let folders = self.working_folders();
        let run_context = ProgramRunContext {
            path_context: self.path_context,
            folders: &folders,
            has_piped_input: state.has_piped_input,
        };
        let finding = program_evaluation::evaluate_program(&run_context, program, arguments);
        if let Some(last) = self.scopes.last_mut().filter(|_| changes_folder(program)) {
            let target = arguments.iter().find(|word| !matches!(word.text(), "-L" | "-P" | "--"));
            let home = ShellWord::Pattern("~".to_owned());
            *last = match program {
                "popd" => PossibleWorkingFolders(Vec::new()),
                _ => self.path_context.change_folder(&folders, target.unwrap_or(&home)),
            };
        }
        finding
    }

    /// Evaluates the origin of a program. A program from the workspace may differ from what its
    /// name suggests.
    fn evaluate_program_origin(&self, program: &str) -> RiskFinding {
        if program.contains('/') {
            return self.path_context.evaluate_program_path(&self.working_folders(), program);
        }
        if program.is_empty() {
            return RiskFinding::new(Risk::Unknown, "the program name is empty");
        }
        let program_path = self.path_context.path_lookup().find_program(program);
        match program_path.is_some_and(|path| self.path_context.is_in_workspace(&path)) {
            true => RiskFinding::new(
                Risk::WorkspaceWrite,
                format!("`{program}` is a program in the workspace"),
            ),
            false => RiskFinding::harmless(),
        }
    }

    fn finish_segment(
        &mut self,
        segment: &SimpleShellCommand,
        state: SimpleShellCommandState,
        command_form: CommandComplexity,
        index: usize,
    ) {
        self.network = self.network.max(state.finding.network);
        self.registries_suffice &=
            state.finding.needs_only_registries(self.context.mode, self.context.sandbox_status);
        let default =
            state.finding.risk.default_level(self.context.mode, self.context.sandbox_status);
        // What unknown words mean could evade rules.
        let is_unknown_read =
            state.finding.risk == Risk::ConfinedRead && rule_match::rules_restrict(self.context);
        let is_strict_mode =
            matches!(self.context.mode, PermissionMode::Plan | PermissionMode::Ask);
        let default = match is_unknown_read && is_strict_mode {
            true => default.max(PermissionLevel::Ask),
            false => default,
        };
        let query = CommandRuleQuery {
            text: &segment.text,
            unwrapped_forms: &state.unwrapped_forms,
            effective_commands: &state.effective_commands,
            command_form,
        };
        // A wildcard that does not name secret files does not allow them.
        let exposes_secrets = state.finding.exposes_secrets;
        let overlaps_file_rule = state.finding.overlaps_file_rule;
        let is_applicable = |matched: &CommandRuleMatch| {
            matched.level != PermissionLevel::Allow
                || (!overlaps_file_rule && (!exposes_secrets || matched.opens_secrets))
        };
        let risk = state.finding.risk;
        let violates_plan = risk.violates_plan_mode(self.context.mode, self.context.sandbox_status);
        // If rules deny some commands, an allow for `*` does not cover one that hides what it runs.
        let may_evade_deny = risk.hides_command() && rule_match::rules_deny_some(self.context);
        let matched = rule_match::match_rules(self.context, &query)
            .filter(is_applicable)
            .filter(|matched| !may_evade_deny || matched.level != PermissionLevel::Allow);
        let (level, reason, rule) = match matched {
            _ if risk == Risk::Forbidden || violates_plan => {
                (PermissionLevel::Deny, state.finding.reason, None)
            }
            None if may_evade_deny && self.context.mode == PermissionMode::Full => {
                let reason = format!(
                    "{}, and the permission rules deny some commands",
                    state.finding.reason
                );
                (PermissionLevel::Deny, reason, None)
            }
            Some(matched) if matched.level == PermissionLevel::Allow || matched.level > default => {
                (matched.level, matched.reason(), Some(matched.source_text))
            }
            Some(matched) if matched.level == default => {
                (default, matched.reason(), Some(matched.source_text))
            }
            Some(_) | None => (default, state.finding.reason, None),
        };
        self.may_write |= risk > Risk::ConfinedRead || rule.is_some();
        let verdict = SimpleShellCommandVerdict::new(segment, (level, reason, rule), risk);
        self.verdicts.insert(index.min(self.verdicts.len()), verdict);
    }
}
