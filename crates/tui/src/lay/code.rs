//! Code, line by line, so that it can be painted while it is still being written.
//!
//! What would take long is not painted: very long lines, and whatever comes after very many.

use crate::cx::Look;
use crate::ink::{Row, TAB};
use crate::theme::{ROLES, Role};
use crate::wrap::{Break, wrap};
use ratatui::style::Style;
use std::borrow::Cow;
use std::sync::OnceLock;
use syntect::parsing::{BasicScopeStackOp, ParseState, Scope, ScopeStack, SyntaxSet};

/// The longest line that is painted, in bytes.
const LONGEST: usize = 600;
/// How many lines are painted.
const MOST: usize = 2_000;

static SYNTAXES: OnceLock<SyntaxSet> = OnceLock::new();
static KINDS: OnceLock<Vec<(Scope, Option<Role>)>> = OnceLock::new();

fn syntaxes() -> &'static SyntaxSet {
    SYNTAXES.get_or_init(two_face::syntax::extra_newlines)
}

/// What the parts of a language are for, the most special first.
fn kinds() -> &'static [(Scope, Option<Role>)] {
    const KINDS_BY_NAME: [(&str, Option<Role>); 42] = [
        ("comment", Some(Role::Comment)),
        ("string.quoted.docstring", Some(Role::Comment)),
        ("string.unquoted", None),
        ("meta.interpolation", Some(Role::Variable)),
        ("meta.template.expression", Some(Role::Variable)),
        ("constant.character.escape", Some(Role::Number)),
        ("punctuation.section.interpolation", Some(Role::Operator)),
        ("string", Some(Role::String)),
        ("constant.numeric", Some(Role::Number)),
        ("constant.language", Some(Role::Number)),
        ("constant.other", Some(Role::Number)),
        ("constant.character", Some(Role::String)),
        ("keyword.operator.word", Some(Role::Keyword)),
        ("keyword.operator", Some(Role::Operator)),
        ("keyword", Some(Role::Keyword)),
        ("storage", Some(Role::Keyword)),
        ("entity.name.function", Some(Role::Function)),
        ("entity.name.macro", Some(Role::Function)),
        ("support.function", Some(Role::Function)),
        ("support.macro", Some(Role::Function)),
        ("variable.function", Some(Role::Function)),
        ("entity.name.tag", Some(Role::Keyword)),
        ("entity.other.attribute-name", Some(Role::Function)),
        ("entity.name.type", Some(Role::Type)),
        ("entity.name.class", Some(Role::Type)),
        ("entity.name.struct", Some(Role::Type)),
        ("entity.name.enum", Some(Role::Type)),
        ("entity.name.trait", Some(Role::Type)),
        ("entity.name.namespace", Some(Role::Type)),
        ("entity.other.inherited-class", Some(Role::Type)),
        ("support.type", Some(Role::Type)),
        ("support.class", Some(Role::Type)),
        ("support.constant", Some(Role::Number)),
        ("meta.mapping.key", Some(Role::Function)),
        ("entity.name.section", Some(Role::Heading)),
        ("markup.heading", Some(Role::Heading)),
        ("markup.bold", Some(Role::Strong)),
        ("markup.inserted", Some(Role::Good)),
        ("markup.deleted", Some(Role::Bad)),
        ("markup.raw", Some(Role::Literal)),
        ("variable.language", Some(Role::Keyword)),
        ("variable.parameter", Some(Role::Variable)),
    ];
    KINDS.get_or_init(|| {
        let scope = |(name, role): (&str, Option<Role>)| Some((Scope::new(name).ok()?, role));
        KINDS_BY_NAME.into_iter().filter_map(scope).collect()
    })
}

/// Loads what highlighting needs.
pub(super) fn warm() {
    kinds();
    // A language is made ready when its first line is read.
    let mut painter = Painter::new("rust", &Look::default());
    painter.line("fn main() {}");
}

/// Where in a language the last line ended.
type State = (ParseState, ScopeStack, Vec<Option<Role>>);

/// Paints the lines of one piece of code, one after another.
#[derive(Clone, Debug)]
pub(super) struct Painter {
    state: Option<Box<State>>,
    lines: usize,
    styles: Vec<(Role, Style)>,
    text: Style,
}

impl Painter {
    /// For a language, by its name or the ending of its files; unknown ones are not painted.
    pub(super) fn new(language: &str, look: &Look) -> Painter {
        let name = language.trim().trim_start_matches('{').trim_start_matches('.');
        let name = name.split([' ', ',', '{', '}', ':', '\t']).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let name = match name.as_str() {
            "shell" | "console" | "sh" | "zsh" | "shellsession" => "bash",
            "jsonc" | "json5" => "json",
            "" | "text" | "txt" | "plain" | "plaintext" | "output" => "",
            other => other,
        };
        let known = Some(name).filter(|name| !name.is_empty());
        let syntax = known.and_then(|name| syntaxes().find_syntax_by_token(name));
        let state =
            syntax.map(|syntax| Box::new((ParseState::new(syntax), ScopeStack::new(), Vec::new())));
        let styles = ROLES.iter().map(|(role, _)| (*role, look.style(*role))).collect();
        Painter { state, lines: 0, styles, text: look.style(Role::Text) }
    }

    /// True if it knows the language.
    #[cfg(test)]
    pub(super) fn knows(&self) -> bool {
        self.state.is_some()
    }

    fn style(&self, role: Option<Role>) -> Style {
        let known = self.styles.iter().find(|(known, _)| Some(*known) == role);
        known.map_or(self.text, |(_, style)| *style)
    }

    /// A line, without what ends it.
    pub(super) fn line(&mut self, line: &str) -> Row {
        let line = untabbed(line, TAB);
        self.lines += 1;
        if self.lines > MOST || line.len() > LONGEST {
            return Row::of(self.text, &line);
        }
        let Some(mut state) = self.state.take() else { return Row::of(self.text, &line) };
        let (parse, stack, roles) = state.as_mut();
        let ended = format!("{line}\n");
        let Ok(steps) = parse.parse_line(&ended, syntaxes()) else {
            return Row::of(self.text, &line);
        };
        let mut row = Row::default();
        let mut painted = 0;
        for (at, step) in steps {
            let at = at.min(line.len());
            if at > painted {
                let role = roles.iter().rev().find_map(|role| *role);
                row.push(self.style(role), line.get(painted..at).unwrap_or_default());
                painted = at;
            }
            let followed = stack.apply_with_hook(&step, |step, _| match step {
                BasicScopeStackOp::Push(scope) => roles.push(role(scope)),
                BasicScopeStackOp::Pop => {
                    roles.pop();
                }
            });
            if followed.is_err() {
                return Row::of(self.text, &line);
            }
        }
        let role = roles.iter().rev().find_map(|role| *role);
        row.push(self.style(role), line.get(painted..).unwrap_or_default());
        self.state = Some(state);
        row
    }

    /// A line in as many rows as it takes.
    pub(super) fn rows(&mut self, line: &str, width: usize) -> Vec<Row> {
        let indent = line.len() - line.trim_start_matches(' ').len();
        wrap(&self.line(line), width, Break::Words, (indent + 2).min(width / 2))
    }
}

fn role(scope: Scope) -> Option<Role> {
    kinds().iter().find(|(kind, _)| kind.is_prefix_of(scope)).and_then(|(_, role)| *role)
}

/// A line whose tabs lead to multiples of so many columns.
pub(super) fn untabbed(line: &str, tab: usize) -> Cow<'_, str> {
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut plain = String::with_capacity(line.len() + 3 * tab);
    let mut column = 0;
    for (at, part) in line.split('\t').enumerate() {
        if at > 0 {
            let blank = tab - column % tab;
            plain.extend(std::iter::repeat_n(' ', blank));
            column += blank;
        }
        plain.push_str(part);
        column += crate::ink::width(part);
    }
    Cow::Owned(plain)
}
