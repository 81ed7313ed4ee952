//! Reduces what brush-parser makes of a text.
//!
//! It follows the grammar of bash closely, but it recurses and backtracks without a limit, and
//! gives up on some numbers. So its tokens are counted before they are parsed: what could go deep
//! or take long is left to the other parser, with a doubt.

mod words;

use super::doubt::Doubt;
use super::finding::Finding;
use super::{Item, Place, Redirect, Segment};
use brush_parser::ast::{
    AndOr, AndOrList, Command, CompoundCommand, CompoundList, ElseClause, ExtendedTestExpr,
    FunctionBody, IoRedirect, Pipeline, Program, RedirectList, SeparatorOperator,
};
use brush_parser::{ParserImpl, ParserOptions, Token};
use std::panic::catch_unwind;

/// So many `$(` and `${` may stand in a text, each within the other.
const MOST_OPENERS: usize = 40;
/// So many here-documents are read; each costs as much as all before.
const MOST_DOCUMENTS: usize = 64;
/// How many steps a text may take if every choice of the parser is taken twice.
const MOST_STEPS: usize = 1 << 22;
/// How often a substitution is looked for within another one.
const DEEPEST: usize = 24;

pub(super) fn find(text: &str) -> Result<Finding, Doubt> {
    let mut walk = Walk::default();
    walk.read(text, Place::default())?;
    Ok(walk.finding)
}

/// As in a `bash -c`. It looks for no `~`, because it cannot tell whether that is quoted.
fn options() -> ParserOptions {
    ParserOptions {
        enable_extended_globbing: false,
        posix_mode: false,
        sh_mode: false,
        tilde_expansion_at_word_start: false,
        tilde_expansion_after_colon: false,
        parser_impl: ParserImpl::Peg,
    }
}

/// What a parser gives, or nothing if it gave up in any way.
fn shielded<T>(parse: impl FnOnce() -> Option<T> + std::panic::UnwindSafe) -> Option<T> {
    catch_unwind(parse).ok().flatten()
}

fn parse(text: &str) -> Result<Program, Doubt> {
    let openers = ["$(", "${", "$["].iter().map(|opener| text.matches(opener).count());
    if openers.sum::<usize>() > MOST_OPENERS || text.matches("<<").count() > MOST_DOCUMENTS {
        return Err(Doubt::Depth);
    }
    // At the end of a text, the mark of a here-document that is the empty word is found again and
    // again. Behind two more lines, of which a `\` takes one, the document has begun.
    let ended = format!("{text}\n\n");
    let options = options();
    let tokens =
        shielded(|| brush_parser::uncached_tokenize_str(&ended, &options.tokenizer_options()).ok());
    let tokens = tokens.ok_or(Doubt::Broken)?;
    if has_unnamed_document(&tokens) {
        return Err(Doubt::Unknown);
    }
    weigh(&tokens)?;
    let options = self::options();
    shielded(|| brush_parser::parse_tokens(&tokens, &options).ok()).ok_or(Doubt::Broken)
}

/// True if a here-document ends at the empty word.
fn has_unnamed_document(tokens: &[Token]) -> bool {
    tokens.windows(2).any(|pair| match pair {
        [Token::Operator(arrows, _), Token::Word(mark, _)] => {
            matches!(arrows.as_str(), "<<" | "<<-") && brush_parser::unquote_str(mark).is_empty()
        }
        _ => false,
    })
}

/// Refuses tokens that could make the parser recurse too deep, try too often, or fail.
fn weigh(tokens: &[Token]) -> Result<(), Doubt> {
    let (mut openers, mut cases, mut parens, mut doubled) = (0, 0, 0, false);
    let mut indexes = 0;
    let mut before: Option<&Token> = None;
    for token in tokens {
        match token {
            Token::Operator(operator, _) if operator == "(" => {
                parens += 1;
                doubled |= matches!(before, Some(Token::Operator(last, _)) if last == "(");
            }
            Token::Operator(operator, _) => {
                if operator.starts_with(['<', '>'])
                    && matches!(before, Some(Token::Word(word, _)) if is_odd_descriptor(word))
                {
                    return Err(Doubt::Descriptor);
                }
            }
            Token::Word(word, _) => match word.as_str() {
                "case" => cases += 1,
                "{" | "if" | "while" | "until" | "for" | "select" | "function" | "coproc"
                | "[[" | "!" | "do" | "then" => openers += 1,
                word => indexes = indexes.max(nested_indexes(word)),
            },
        }
        before = Some(token);
    }
    let tries = cases + if doubled { parens } else { 0 };
    match affords(tries, tokens.len())
        && affords(indexes, 1 << 10)
        && openers + parens + cases <= MOST_OPENERS
    {
        true => Ok(()),
        false => Err(Doubt::Depth),
    }
}

/// A number that the parser fails at, or a `{name}` that is no word before an arrow: bash opens a
/// descriptor and puts its number into the variable.
fn is_odd_descriptor(word: &str) -> bool {
    let named = word.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    word.len() > 9 && word.chars().all(|each| each.is_ascii_digit())
        || named.is_some_and(|name| !name.is_empty())
}

/// How many indexes of arrays could stand within each other, as in `a[b[c`.
fn nested_indexes(word: &str) -> usize {
    let named = |each: char| each.is_ascii_alphanumeric() || each == '_';
    match word.trim_start_matches(named).starts_with('[') {
        true => word.matches(['[', '(', '$', '`']).count(),
        false => 0,
    }
}

/// True if so many choices, each made twice over so much text, take no long time.
fn affords(tries: usize, length: usize) -> bool {
    let steps = u32::try_from(tries).ok().and_then(|tries| 1_usize.checked_shl(tries));
    steps.and_then(|steps| steps.checked_mul(length)).is_some_and(|steps| steps <= MOST_STEPS)
}

#[derive(Default)]
struct Walk {
    finding: Finding,
}

impl Walk {
    /// A text, or what stands in a substitution.
    fn read(&mut self, text: &str, place: Place) -> Result<(), Doubt> {
        if place.depth > DEEPEST {
            return Err(Doubt::Depth);
        }
        let program = parse(text)?;
        for list in &program.complete_commands {
            self.compound_list(list, place.deeper());
        }
        Ok(())
    }

    /// What stands in a substitution. If it cannot be read, all of it is one unknown command.
    fn substituted(&mut self, text: &str, place: Place) {
        self.finding.items.push(Item::Enter);
        let inner = Place { piped: false, ..place };
        if let Err(doubt) = self.read(text, inner.deeper()) {
            self.finding.doubt(doubt);
            let words = vec![super::Word::Opaque(text.to_owned())];
            self.finding.push(Segment { text: text.to_owned(), words, ..Segment::default() });
        }
        self.finding.items.push(Item::Leave);
    }

    fn compound_list(&mut self, list: &CompoundList, place: Place) {
        for item in &list.0 {
            match item.1 {
                SeparatorOperator::Sequence => self.and_or(&item.0, place),
                SeparatorOperator::Async => {
                    self.finding.doubt(Doubt::Background);
                    self.finding.items.push(Item::Enter);
                    self.and_or(&item.0, place);
                    self.finding.items.push(Item::Leave);
                }
            }
        }
    }

    fn and_or(&mut self, list: &AndOrList, place: Place) {
        self.pipeline(&list.first, place);
        for next in &list.additional {
            match next {
                AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline, place),
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, place: Place) {
        if pipeline.timed.is_some() {
            self.finding.doubt(Doubt::Time);
        }
        match pipeline.seq.as_slice() {
            [] => self.finding.doubt(Doubt::Unknown),
            [command] => self.command(command, place),
            parts => {
                let mut place = place;
                for part in parts {
                    self.finding.items.push(Item::Enter);
                    self.command(part, place);
                    self.finding.items.push(Item::Leave);
                    place = place.behind_a_pipe();
                }
            }
        }
    }

    fn command(&mut self, command: &Command, place: Place) {
        match command {
            Command::Simple(command) => self.simple(command, place),
            Command::Compound(compound, redirects) => {
                self.redirected(redirects.as_ref(), &compound.to_string(), place);
                self.compound(compound, place);
            }
            Command::Function(function) => {
                self.finding.doubt(Doubt::Function);
                self.finding.items.push(Item::Enter);
                let FunctionBody(body, redirects) = &function.body;
                self.redirected(redirects.as_ref(), &body.to_string(), place);
                self.compound(body, Place { piped: false, ..place });
                self.finding.items.push(Item::Leave);
            }
            Command::ExtendedTest(test, redirects) => {
                self.finding.doubt(Doubt::Test);
                self.redirected(redirects.as_ref(), &test.to_string(), place);
                self.test(&test.expr, place);
            }
        }
    }

    /// The redirections of a group stand before it.
    fn redirected(&mut self, redirects: Option<&RedirectList>, text: &str, place: Place) {
        let Some(RedirectList(list)) = redirects else { return };
        let redirects = self.redirects(list, place);
        let text = text.to_owned();
        self.finding.push(Segment { text, redirects, piped: place.piped, ..Segment::default() });
    }

    fn redirects(&mut self, list: &[IoRedirect], place: Place) -> Vec<Redirect> {
        list.iter().filter_map(|redirect| self.redirect(redirect, place)).collect()
    }

    fn compound(&mut self, compound: &CompoundCommand, place: Place) {
        let place = place.deeper();
        match compound {
            CompoundCommand::BraceGroup(group) => self.compound_list(&group.list, place),
            CompoundCommand::Subshell(group) => {
                self.finding.items.push(Item::Enter);
                self.compound_list(&group.list, place);
                self.finding.items.push(Item::Leave);
            }
            CompoundCommand::Arithmetic(command) => self.arithmetic(&command.expr.value, place),
            CompoundCommand::ArithmeticForClause(clause) => {
                self.finding.doubt(Doubt::Loop);
                for expression in
                    [&clause.initializer, &clause.condition, &clause.updater].into_iter().flatten()
                {
                    self.arithmetic(&expression.value, place);
                }
                self.compound_list(&clause.body.list, place);
            }
            CompoundCommand::ForClause(clause) => {
                self.finding.doubt(Doubt::Loop);
                for word in clause.values.iter().flatten() {
                    self.look(&word.value, place);
                }
                self.compound_list(&clause.body.list, place);
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.finding.doubt(Doubt::Loop);
                self.compound_list(&clause.0, place);
                self.compound_list(&clause.1.list, place);
            }
            CompoundCommand::CaseClause(clause) => {
                self.finding.doubt(Doubt::Case);
                self.look(&clause.value.value, place);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.look(&pattern.value, place);
                    }
                    if let Some(list) = &case.cmd {
                        self.compound_list(list, place);
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.finding.doubt(Doubt::Condition);
                self.compound_list(&clause.condition, place);
                self.compound_list(&clause.then, place);
                for ElseClause { condition, body } in clause.elses.iter().flatten() {
                    for list in condition.iter().chain([body]) {
                        self.compound_list(list, place);
                    }
                }
            }
            CompoundCommand::Coprocess(coprocess) => {
                self.finding.doubt(Doubt::Coprocess);
                self.finding.items.push(Item::Enter);
                self.command(&coprocess.body, place.behind_a_pipe());
                self.finding.items.push(Item::Leave);
            }
        }
    }

    fn arithmetic(&mut self, expression: &str, place: Place) {
        self.finding.doubt(Doubt::Arithmetic);
        self.look(expression, place);
    }

    fn test(&mut self, expression: &ExtendedTestExpr, place: Place) {
        match expression {
            ExtendedTestExpr::And(one, other) | ExtendedTestExpr::Or(one, other) => {
                self.test(one, place);
                self.test(other, place);
            }
            ExtendedTestExpr::Not(inner) | ExtendedTestExpr::Parenthesized(inner) => {
                self.test(inner, place);
            }
            ExtendedTestExpr::UnaryTest(_, word) => self.look(&word.value, place),
            ExtendedTestExpr::BinaryTest(_, one, other) => {
                self.look(&one.value, place);
                self.look(&other.value, place);
            }
        }
    }
}
