//! Syntax highlighting line by line, so that it works while the code is still streaming.
//!
//! To bound the time, very long lines and all lines after `MAX_HIGHLIGHTED_LINES` are not
//! highlighted.

use crate::safe_line::{SafeLine, TAB_WIDTH};
use crate::theme::{STYLE_ROLES, StyleRole};
use crate::ui_context::Appearance;
use crate::wrap::{WrapMode, wrap};
use ratatui::style::Style;
use std::borrow::Cow;
use std::sync::OnceLock;
use syntect::parsing::{BasicScopeStackOp, ParseState, Scope, ScopeStack, SyntaxSet};

/// The longest line that is highlighted, in bytes.
const MAX_HIGHLIGHTED_LINE_BYTES: usize = 600;
/// The number of lines of a code block that are highlighted.
const MAX_HIGHLIGHTED_LINES: usize = 2_000;

static SYNTAX_SET: OnceLock<SyntaxSet> = OnceLock::new();
static SCOPE_ROLES: OnceLock<Vec<(Scope, Option<StyleRole>)>> = OnceLock::new();

fn syntax_set() -> &'static SyntaxSet {
    SYNTAX_SET.get_or_init(two_face::syntax::extra_newlines)
}

/// Maps syntect `Scope`s to style roles, the most specific first.
fn scope_roles() -> &'static [(Scope, Option<StyleRole>)] {
    const SCOPE_ROLES_BY_NAME: [(&str, Option<StyleRole>); 42] = [
        ("comment", Some(StyleRole::Comment)),
        ("string.quoted.docstring", Some(StyleRole::Comment)),
        ("string.unquoted", None),
        ("meta.interpolation", Some(StyleRole::Variable)),
        ("meta.template.expression", Some(StyleRole::Variable)),
        ("constant.character.escape", Some(StyleRole::Number)),
        ("punctuation.section.interpolation", Some(StyleRole::Operator)),
        ("string", Some(StyleRole::String)),
        ("constant.numeric", Some(StyleRole::Number)),
        ("constant.language", Some(StyleRole::Number)),
        ("constant.other", Some(StyleRole::Number)),
        ("constant.character", Some(StyleRole::String)),
        ("keyword.operator.word", Some(StyleRole::Keyword)),
        ("keyword.operator", Some(StyleRole::Operator)),
        ("keyword", Some(StyleRole::Keyword)),
        ("storage", Some(StyleRole::Keyword)),
        ("entity.name.function", Some(StyleRole::Function)),
        ("entity.name.macro", Some(StyleRole::Function)),
        ("support.function", Some(StyleRole::Function)),
        ("support.macro", Some(StyleRole::Function)),
        ("variable.function", Some(StyleRole::Function)),
        ("entity.name.tag", Some(StyleRole::Keyword)),
        ("entity.other.attribute-name", Some(StyleRole::Function)),
        ("entity.name.type", Some(StyleRole::Type)),
        ("entity.name.class", Some(StyleRole::Type)),
        ("entity.name.struct", Some(StyleRole::Type)),
        ("entity.name.enum", Some(StyleRole::Type)),
        ("entity.name.trait", Some(StyleRole::Type)),
        ("entity.name.namespace", Some(StyleRole::Type)),
        ("entity.other.inherited-class", Some(StyleRole::Type)),
        ("support.type", Some(StyleRole::Type)),
        ("support.class", Some(StyleRole::Type)),
        ("support.constant", Some(StyleRole::Number)),
        ("meta.mapping.key", Some(StyleRole::Function)),
        ("entity.name.section", Some(StyleRole::Heading)),
        ("markup.heading", Some(StyleRole::Heading)),
        ("markup.bold", Some(StyleRole::Strong)),
        ("markup.inserted", Some(StyleRole::Success)),
        ("markup.deleted", Some(StyleRole::Error)),
        ("markup.raw", Some(StyleRole::Literal)),
        ("variable.language", Some(StyleRole::Keyword)),
        ("variable.parameter", Some(StyleRole::Variable)),
    ];
    SCOPE_ROLES.get_or_init(|| {
        let scope = |(name, role): (&str, Option<StyleRole>)| Some((Scope::new(name).ok()?, role));
        SCOPE_ROLES_BY_NAME.into_iter().filter_map(scope).collect()
    })
}

/// Loads the syntax definitions.
pub(super) fn preload_syntaxes() {
    scope_roles();
    // A syntax is prepared when its first line is parsed.
    let mut highlighter = Highlighter::new("rust", &Appearance::default());
    highlighter.highlight_line("fn main() {}");
}

/// The parser state at the end of the last line.
type HighlightState = (ParseState, ScopeStack, Vec<Option<StyleRole>>);

/// Highlights the lines of one code block, in order.
#[derive(Clone, Debug)]
pub(super) struct Highlighter {
    state: Option<Box<HighlightState>>,
    line_count: usize,
    styles: Vec<(StyleRole, Style)>,
    text_style: Style,
}

impl Highlighter {
    /// Creates a highlighter for a language name or file extension; an unknown language gets
    /// `StyleRole::Text`.
    pub(super) fn new(language: &str, appearance: &Appearance) -> Highlighter {
        let name = language.trim().trim_start_matches('{').trim_start_matches('.');
        let name = name.split([' ', ',', '{', '}', ':', '\t']).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        let name = match name.as_str() {
            "shell" | "console" | "sh" | "zsh" | "shellsession" => "bash",
            "jsonc" | "json5" => "json",
            "" | "text" | "txt" | "plain" | "plaintext" | "output" => "",
            other => other,
        };
        let language_name = Some(name).filter(|name| !name.is_empty());
        let syntax = language_name.and_then(|name| syntax_set().find_syntax_by_token(name));
        let state =
            syntax.map(|syntax| Box::new((ParseState::new(syntax), ScopeStack::new(), Vec::new())));
        let styles = STYLE_ROLES.iter().map(|(role, _)| (*role, appearance.style(*role))).collect();
        Highlighter { state, line_count: 0, styles, text_style: appearance.style(StyleRole::Text) }
    }

    #[cfg(test)]
    pub(super) fn knows_language(&self) -> bool {
        self.state.is_some()
    }

    fn style(&self, role: Option<StyleRole>) -> Style {
        let entry = self.styles.iter().find(|(entry_role, _)| Some(*entry_role) == role);
        entry.map_or(self.text_style, |(_, style)| *style)
    }

    /// Highlights one line, passed without its line ending.
    pub(super) fn highlight_line(&mut self, line: &str) -> SafeLine {
        let line = expand_tabs(line, TAB_WIDTH);
        self.line_count += 1;
        if self.line_count > MAX_HIGHLIGHTED_LINES || line.len() > MAX_HIGHLIGHTED_LINE_BYTES {
            return SafeLine::styled(self.text_style, &line);
        }
        let Some(mut state) = self.state.take() else {
            return SafeLine::styled(self.text_style, &line);
        };
        let (parse_state, stack, roles) = state.as_mut();
        let line_with_newline = format!("{line}\n");
        let Ok(steps) = parse_state.parse_line(&line_with_newline, syntax_set()) else {
            return SafeLine::styled(self.text_style, &line);
        };
        let mut row = SafeLine::default();
        let mut highlighted_end = 0;
        for (offset, step) in steps {
            let offset = offset.min(line.len());
            if offset > highlighted_end {
                let role = roles.iter().rev().find_map(|role| *role);
                row.push_text(
                    self.style(role),
                    line.get(highlighted_end..offset).unwrap_or_default(),
                );
                highlighted_end = offset;
            }
            let applied = stack.apply_with_hook(&step, |step, _| match step {
                BasicScopeStackOp::Push(scope) => roles.push(role_of_scope(scope)),
                BasicScopeStackOp::Pop => {
                    roles.pop();
                }
            });
            if applied.is_err() {
                return SafeLine::styled(self.text_style, &line);
            }
        }
        let role = roles.iter().rev().find_map(|role| *role);
        row.push_text(self.style(role), line.get(highlighted_end..).unwrap_or_default());
        self.state = Some(state);
        row
    }

    /// Highlights one line and wraps it to `width`, with a deeper indent for the continuation rows.
    pub(super) fn highlight_wrapped(&mut self, line: &str, width: usize) -> Vec<SafeLine> {
        let indent = line.len() - line.trim_start_matches(' ').len();
        wrap(&self.highlight_line(line), width, WrapMode::Words, (indent + 2).min(width / 2))
    }
}

fn role_of_scope(scope: Scope) -> Option<StyleRole> {
    scope_roles().iter().find(|(kind, _)| kind.is_prefix_of(scope)).and_then(|(_, role)| *role)
}

/// Expands tabs to multiples of `tab_width` columns.
pub(super) fn expand_tabs(line: &str, tab_width: usize) -> Cow<'_, str> {
    if !line.contains('\t') {
        return Cow::Borrowed(line);
    }
    let mut expanded = String::with_capacity(line.len() + 3 * tab_width);
    let mut column = 0;
    for (index, part) in line.split('\t').enumerate() {
        if index > 0 {
            let spaces = tab_width - column % tab_width;
            expanded.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        }
        expanded.push_str(part);
        column += crate::safe_line::display_width(part);
    }
    Cow::Owned(expanded)
}
