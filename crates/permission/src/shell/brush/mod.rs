//! Parses a command line with brush-parser and reduces the result.
//!
//! brush-parser follows the grammar of bash closely, but it recurses and backtracks without limit
//! and fails on some numbers. The tokens are therefore counted before parsing: a text that could
//! nest deeply or take long is left to the other parser, with an ambiguity.

mod commands;

use super::ambiguity_reasons::ShellAmbiguity;
use super::parse_result::ShellParseResult;
use super::unquoted_word::ShellWordRole;
use super::{CommandOrScopeBoundary, Redirect, ShellStatementContext, SimpleShellCommand};
use brush_parser::ast::{
    AndOr, AndOrList, BinaryPredicate, Command, CompoundCommand, CompoundList, ElseClause,
    ExtendedTestExpr, FunctionBody, IoRedirect, Pipeline, Program, RedirectList, SeparatorOperator,
    UnaryPredicate,
};
use brush_parser::{ParserImpl, ParserOptions, Token};
use std::panic::catch_unwind;

/// Limits `$(`, `${` and other openers in a text, because all of them may be nested.
const MAX_OPENERS: usize = 40;
/// Maximum number of `&&` and `||` after a `[[`.
const MAX_TEST_OPERATORS: usize = 200;
/// Limits here-documents; each costs as much as all before it.
const MAX_HEREDOCS: usize = 64;
/// Limits the parser steps of a text if the parser takes every choice twice.
const MAX_PARSER_STEPS: usize = 1 << 22;
/// Limits the nesting of substitutions.
const MAX_SUBSTITUTION_DEPTH: usize = 24;

pub(super) fn parse_with_brush(text: &str) -> Result<ShellParseResult, ShellAmbiguity> {
    let mut walk = BrushAstWalk::default();
    walk.walk_text(text, ShellStatementContext::default())?;
    Ok(walk.result)
}

/// Returns options that match `bash -c`. Tilde expansion is off, because brush-parser cannot tell
/// if a `~` is quoted.
fn parser_options() -> ParserOptions {
    ParserOptions {
        enable_extended_globbing: false,
        posix_mode: false,
        sh_mode: false,
        tilde_expansion_at_word_start: false,
        tilde_expansion_after_colon: false,
        parser_impl: ParserImpl::Peg,
    }
}

/// Runs a parser and returns `None` if it fails or panics.
fn catch_parser_panic<T>(parse: impl FnOnce() -> Option<T> + std::panic::UnwindSafe) -> Option<T> {
    catch_unwind(parse).ok().flatten()
}

fn parse_program(text: &str) -> Result<Program, ShellAmbiguity> {
    let openers = ["$(", "${", "$["].iter().map(|opener| text.matches(opener).count());
    if openers.sum::<usize>() > MAX_OPENERS || text.matches("<<").count() > MAX_HEREDOCS {
        return Err(ShellAmbiguity::TooDeep);
    }
    // At the end of the text, the tokenizer finds an empty here-document delimiter over and over.
    // With two more newlines, one of them possibly consumed by a `\`, the document has begun.
    let terminated_text = format!("{text}\n\n");
    let options = parser_options();
    let tokens = catch_parser_panic(|| {
        brush_parser::uncached_tokenize_str(&terminated_text, &options.tokenizer_options()).ok()
    });
    let tokens = tokens.ok_or(ShellAmbiguity::SyntaxError)?;
    if has_unnamed_heredoc(&tokens) {
        return Err(ShellAmbiguity::Unknown);
    }
    check_complexity(&tokens)?;
    let options = self::parser_options();
    catch_parser_panic(|| brush_parser::parse_tokens(&tokens, &options).ok())
        .ok_or(ShellAmbiguity::SyntaxError)
}

/// Returns true if the delimiter of a here-document is the empty word.
fn has_unnamed_heredoc(tokens: &[Token]) -> bool {
    tokens.windows(2).any(|pair| match pair {
        [Token::Operator(operator, _), Token::Word(delimiter, _)] => {
            matches!(operator.as_str(), "<<" | "<<-")
                && brush_parser::unquote_str(delimiter).is_empty()
        }
        _ => false,
    })
}

/// Rejects tokens that could make the parser recurse too deeply, backtrack too often or fail.
fn check_complexity(tokens: &[Token]) -> Result<(), ShellAmbiguity> {
    let mut openers = 0;
    let mut cases = 0;
    let mut parens = 0;
    let mut has_double_parens = false;
    let mut nested_indexes = 0;
    let (mut has_test, mut test_operators) = (false, 0);
    let mut previous: Option<&Token> = None;
    for token in tokens {
        match token {
            Token::Operator(operator, _) if operator == "(" => {
                parens += 1;
                has_double_parens |=
                    matches!(previous, Some(Token::Operator(last, _)) if last == "(");
            }
            // The parser nests each of these in the ones before it.
            Token::Operator(operator, _)
                if has_test && matches!(operator.as_str(), "&&" | "||") =>
            {
                test_operators += 1;
            }
            Token::Operator(operator, _) => {
                if operator.starts_with(['<', '>'])
                    && matches!(previous, Some(Token::Word(word, _)) if is_odd_descriptor(word))
                {
                    return Err(ShellAmbiguity::UnusualDescriptor);
                }
            }
            Token::Word(word, _) => match word.as_str() {
                "case" => cases += 1,
                "[[" => {
                    openers += 1;
                    has_test = true;
                }
                "{" | "if" | "while" | "until" | "for" | "select" | "function" | "coproc" | "!"
                | "do" | "then" => openers += 1,
                word => nested_indexes = nested_indexes.max(count_nested_indexes(word)),
            },
        }
        previous = Some(token);
    }
    let choices = cases + if has_double_parens { parens } else { 0 };
    match is_affordable(choices, tokens.len())
        && is_affordable(nested_indexes, 1 << 10)
        && openers + parens + cases <= MAX_OPENERS
        && test_operators <= MAX_TEST_OPERATORS
    {
        true => Ok(()),
        false => Err(ShellAmbiguity::TooDeep),
    }
}

/// Returns true for a number that the parser fails on, or for `{name}` before a redirection: bash
/// opens a descriptor there and stores its number in the variable.
fn is_odd_descriptor(word: &str) -> bool {
    let braced_name = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    word.len() > 9 && word.chars().all(|c| c.is_ascii_digit())
        || braced_name.is_some_and(|name| !name.is_empty())
}

/// Counts the array indexes that could be nested, as in `a[b[c`.
fn count_nested_indexes(word: &str) -> usize {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match word.trim_start_matches(is_name_char).starts_with('[') {
        true => word.matches(['[', '(', '$', '`']).count(),
        false => 0,
    }
}

/// Returns true if this many choices, each taken twice over a text of this length, stay within
/// `MAX_PARSER_STEPS`.
fn is_affordable(choices: usize, length: usize) -> bool {
    let steps = u32::try_from(choices).ok().and_then(|choices| 1_usize.checked_shl(choices));
    steps.and_then(|steps| steps.checked_mul(length)).is_some_and(|steps| steps <= MAX_PARSER_STEPS)
}

#[derive(Default)]
struct BrushAstWalk {
    result: ShellParseResult,
}

impl BrushAstWalk {
    /// Walks a text, or the text inside a substitution.
    fn walk_text(
        &mut self,
        text: &str,
        context: ShellStatementContext,
    ) -> Result<(), ShellAmbiguity> {
        if context.depth > MAX_SUBSTITUTION_DEPTH {
            return Err(ShellAmbiguity::TooDeep);
        }
        let program = parse_program(text)?;
        for list in &program.complete_commands {
            self.walk_compound_list(list, context.nested());
        }
        Ok(())
    }

    /// Walks the text inside a substitution. If it does not parse, it becomes one unknown command.
    fn walk_substitution(&mut self, text: &str, context: ShellStatementContext) {
        self.result.items.push(CommandOrScopeBoundary::EnterScope);
        let inner = ShellStatementContext { has_piped_input: false, ..context };
        if let Err(ambiguity) = self.walk_text(text, inner.nested()) {
            self.result.add_ambiguity(ambiguity);
            let words = vec![super::ShellWord::Opaque(text.to_owned())];
            self.result.push_segment(SimpleShellCommand {
                text: text.to_owned(),
                words,
                ..SimpleShellCommand::default()
            });
        }
        self.result.items.push(CommandOrScopeBoundary::LeaveScope);
    }

    fn walk_compound_list(&mut self, list: &CompoundList, context: ShellStatementContext) {
        for item in &list.0 {
            match item.1 {
                SeparatorOperator::Sequence => self.walk_and_or(&item.0, context),
                SeparatorOperator::Async => {
                    self.result.add_ambiguity(ShellAmbiguity::Background);
                    self.result.items.push(CommandOrScopeBoundary::EnterScope);
                    self.walk_and_or(&item.0, context);
                    self.result.items.push(CommandOrScopeBoundary::LeaveScope);
                }
            }
        }
    }

    fn walk_and_or(&mut self, list: &AndOrList, context: ShellStatementContext) {
        self.walk_pipeline(&list.first, context);
        for next in &list.additional {
            match next {
                AndOr::And(pipeline) | AndOr::Or(pipeline) => self.walk_pipeline(pipeline, context),
            }
        }
    }

    fn walk_pipeline(&mut self, pipeline: &Pipeline, context: ShellStatementContext) {
        if pipeline.timed.is_some() {
            self.result.add_ambiguity(ShellAmbiguity::TimeKeyword);
        }
        match pipeline.seq.as_slice() {
            [] => self.result.add_ambiguity(ShellAmbiguity::Unknown),
            [command] => self.walk_command(command, context),
            parts => {
                let mut context = context;
                for part in parts {
                    self.result.items.push(CommandOrScopeBoundary::EnterScope);
                    self.walk_command(part, context);
                    self.result.items.push(CommandOrScopeBoundary::LeaveScope);
                    context = context.after_pipe();
                }
            }
        }
    }

    fn walk_command(&mut self, command: &Command, context: ShellStatementContext) {
        match command {
            Command::Simple(command) => self.walk_simple_command(command, context),
            Command::Compound(compound, redirects) => {
                self.walk_group_redirects(redirects.as_ref(), &compound.to_string(), context);
                self.walk_compound(compound, context);
            }
            Command::Function(function) => {
                self.result.add_ambiguity(ShellAmbiguity::FunctionDefinition);
                self.result.items.push(CommandOrScopeBoundary::EnterScope);
                let FunctionBody(body, redirects) = &function.body;
                self.walk_group_redirects(redirects.as_ref(), &body.to_string(), context);
                self.walk_compound(
                    body,
                    ShellStatementContext { has_piped_input: false, ..context },
                );
                self.result.items.push(CommandOrScopeBoundary::LeaveScope);
            }
            Command::ExtendedTest(test, redirects) => {
                self.result.add_ambiguity(ShellAmbiguity::DoubleBracketTest);
                self.walk_group_redirects(redirects.as_ref(), &test.to_string(), context);
                self.walk_test(&test.expr, context);
            }
        }
    }

    /// Adds the redirections of a group as a segment before the group.
    fn walk_group_redirects(
        &mut self,
        redirects: Option<&RedirectList>,
        text: &str,
        context: ShellStatementContext,
    ) {
        let Some(RedirectList(list)) = redirects else { return };
        let redirects = self.parse_redirects(list, context);
        let text = text.to_owned();
        self.result.push_segment(SimpleShellCommand {
            text,
            redirects,
            has_piped_input: context.has_piped_input,
            ..SimpleShellCommand::default()
        });
    }

    fn parse_redirects(
        &mut self,
        list: &[IoRedirect],
        context: ShellStatementContext,
    ) -> Vec<Redirect> {
        list.iter().filter_map(|redirect| self.parse_redirect(redirect, context)).collect()
    }

    fn walk_compound(&mut self, compound: &CompoundCommand, context: ShellStatementContext) {
        let context = context.nested();
        match compound {
            CompoundCommand::BraceGroup(group) => self.walk_compound_list(&group.list, context),
            CompoundCommand::Subshell(group) => {
                self.result.items.push(CommandOrScopeBoundary::EnterScope);
                self.walk_compound_list(&group.list, context);
                self.result.items.push(CommandOrScopeBoundary::LeaveScope);
            }
            CompoundCommand::Arithmetic(command) => {
                self.walk_arithmetic(&command.expr.value, context)
            }
            CompoundCommand::ArithmeticForClause(clause) => {
                self.result.add_ambiguity(ShellAmbiguity::Loop);
                for expression in
                    [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten()
                {
                    self.walk_arithmetic(&expression.value, context);
                }
                self.walk_compound_list(&clause.body.list, context);
            }
            CompoundCommand::ForClause(clause) => {
                self.result.add_ambiguity(ShellAmbiguity::Loop);
                let words = clause.values.iter().flatten();
                let values = words
                    .map(|word| self.parse_word(&word.value, ShellWordRole::Argument, context))
                    .collect();
                self.result.push_loop_variable(&clause.variable_name, values);
                self.walk_compound_list(&clause.body.list, context);
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.result.add_ambiguity(ShellAmbiguity::Loop);
                self.walk_compound_list(&clause.0, context);
                self.walk_compound_list(&clause.1.list, context);
            }
            CompoundCommand::CaseClause(clause) => {
                self.result.add_ambiguity(ShellAmbiguity::CaseStatement);
                self.scan_word(&clause.value.value, context);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.scan_word(&pattern.value, context);
                    }
                    if let Some(list) = &case.cmd {
                        self.walk_compound_list(list, context);
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.result.add_ambiguity(ShellAmbiguity::IfStatement);
                self.walk_compound_list(&clause.condition, context);
                self.walk_compound_list(&clause.then, context);
                for ElseClause { condition, body } in clause.elses.iter().flatten() {
                    for list in condition.iter().chain([body]) {
                        self.walk_compound_list(list, context);
                    }
                }
            }
            CompoundCommand::Coprocess(coprocess) => {
                self.result.add_ambiguity(ShellAmbiguity::Coprocess);
                self.result.items.push(CommandOrScopeBoundary::EnterScope);
                self.walk_command(&coprocess.body, context.after_pipe());
                self.result.items.push(CommandOrScopeBoundary::LeaveScope);
            }
        }
    }

    fn walk_arithmetic(&mut self, expression: &str, context: ShellStatementContext) {
        self.result.add_ambiguity(ShellAmbiguity::Arithmetic);
        self.scan_word(expression, context);
    }

    fn walk_test(&mut self, expression: &ExtendedTestExpr, context: ShellStatementContext) {
        match expression {
            ExtendedTestExpr::And(one, other) | ExtendedTestExpr::Or(one, other) => {
                self.walk_test(one, context);
                self.walk_test(other, context);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.walk_test(inner, context);
            }
            ExtendedTestExpr::UnaryTest(predicate, word) => {
                if matches!(
                    predicate,
                    UnaryPredicate::ShellVariableIsSetAndAssigned
                        | UnaryPredicate::ShellVariableIsSetAndNameRef
                ) {
                    self.result.add_ambiguity(ShellAmbiguity::Arithmetic);
                }
                self.scan_word(&word.value, context);
            }
            ExtendedTestExpr::BinaryTest(predicate, one, other) => {
                if is_arithmetic(predicate) {
                    self.result.add_ambiguity(ShellAmbiguity::Arithmetic);
                }
                self.scan_word(&one.value, context);
                self.scan_word(&other.value, context);
            }
        }
    }
}

fn is_arithmetic(predicate: &BinaryPredicate) -> bool {
    matches!(
        predicate,
        BinaryPredicate::ArithmeticEqualTo
            | BinaryPredicate::ArithmeticNotEqualTo
            | BinaryPredicate::ArithmeticLessThan
            | BinaryPredicate::ArithmeticLessThanOrEqualTo
            | BinaryPredicate::ArithmeticGreaterThan
            | BinaryPredicate::ArithmeticGreaterThanOrEqualTo
    )
}
