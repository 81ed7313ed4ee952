//! Renders one block of markdown as rows.
//!
//! No text is lost: markup that is invalid or that renders to nothing is shown as it was written.

use super::highlight::Highlighter;
use super::markdown_blocks::MarkdownBlockKind;
use super::table::MarkdownTable;
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::Appearance;
use crate::wrap::{WrapMode, wrap};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};

/// The left margin of code, in columns.
pub(super) const CODE_INDENT: usize = 2;

/// Renders one markdown block, parsed with `pulldown_cmark`.
pub(super) fn render_block(
    text: &str,
    kind: &MarkdownBlockKind,
    width: usize,
    appearance: &Appearance,
) -> Vec<SafeLine> {
    let number = match kind {
        MarkdownBlockKind::Item { number } => *number,
        MarkdownBlockKind::Text => None,
    };
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = MarkdownBlockRenderer::new(width, number, appearance);
    for event in Parser::new_ext(text, options) {
        writer.on_event(event);
    }
    writer.flush();
    if writer.rows.is_empty() {
        return super::render_plain(text, width, StyleRole::Dim, appearance);
    }
    writer.rows
}

/// Indents a row, unless it is empty.
pub(super) fn indent_row(row: &SafeLine, columns: usize) -> SafeLine {
    if row.is_empty() {
        return row.clone();
    }
    let mut indented = SafeLine::styled(Style::default(), &" ".repeat(columns));
    indented.append(row);
    indented
}

/// The margin before the rows of a quote or list item.
struct MarkdownBlockMargin {
    /// The margin of the first row, such as the bullet; `None` once it was emitted.
    first: Option<SafeLine>,
    rest: SafeLine,
}

struct MarkdownBlockRenderer<'a> {
    appearance: &'a Appearance,
    width: usize,
    /// The number of the first list item, if it differs from the number in the source.
    first_number: Option<u64>,
    rows: Vec<SafeLine>,
    margins: Vec<MarkdownBlockMargin>,
    lists: Vec<Option<u64>>,
    inline_text: SafeLine,
    styles: Vec<Style>,
    /// The target of each open link, and the byte offset in `inline_text` at which its text begins.
    links: Vec<(String, usize)>,
    code: Option<(String, String)>,
    html: Option<String>,
    table: Option<MarkdownTable>,
    /// True if a blank row must precede the next block.
    needs_blank_row: bool,
}

impl<'a> MarkdownBlockRenderer<'a> {
    fn new(
        width: usize,
        number: Option<u64>,
        appearance: &'a Appearance,
    ) -> MarkdownBlockRenderer<'a> {
        MarkdownBlockRenderer {
            appearance,
            width,
            first_number: number,
            rows: Vec::new(),
            margins: Vec::new(),
            lists: Vec::new(),
            inline_text: SafeLine::default(),
            styles: vec![appearance.style(StyleRole::Text)],
            links: Vec::new(),
            code: None,
            html: None,
            table: None,
            needs_blank_row: false,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// Pushes a style, patched over the current one.
    fn push_style(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn on_event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start_tag(tag),
            Event::End(tag) => self.end_tag(tag),
            Event::Text(text) => match (&mut self.code, &mut self.html) {
                (Some((_, code)), _) => code.push_str(&text),
                (None, Some(html)) => html.push_str(&text),
                (None, None) => self.inline_text.push_text(self.style(), &text),
            },
            Event::Code(text) => {
                let literal = self.style().patch(self.appearance.style(StyleRole::Literal));
                self.inline_text.push_text(literal, &text);
            }
            Event::Html(text) => match &mut self.html {
                Some(html) => html.push_str(&text),
                None => self.inline_text.push_text(self.appearance.style(StyleRole::Dim), &text),
            },
            Event::InlineHtml(text) => {
                let is_line_break =
                    text.trim_end_matches([' ', '/', '>']).eq_ignore_ascii_case("<br");
                match is_line_break {
                    true => self.flush(),
                    false => {
                        self.inline_text.push_text(self.appearance.style(StyleRole::Dim), &text)
                    }
                }
            }
            Event::SoftBreak => self.inline_text.push_text(self.style(), " "),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.separate_block();
                let rule_char = if self.appearance.ascii { "-" } else { "─" };
                let width = self.prose_width();
                self.emit(vec![SafeLine::styled(
                    self.appearance.style(StyleRole::Border),
                    &rule_char.repeat(width),
                )]);
                self.needs_blank_row = true;
            }
            Event::TaskListMarker(done) => {
                let mark = match (done, self.appearance.ascii) {
                    (true, false) => "☑ ",
                    (false, false) => "☐ ",
                    (true, true) => "[x] ",
                    (false, true) => "[ ] ",
                };
                let mark = SafeLine::styled(self.appearance.style(StyleRole::Accent), mark);
                let is_numbered = self.lists.last().is_some_and(Option::is_some);
                match self.margins.last_mut() {
                    // The box is the bullet of its item.
                    Some(margin) if !is_numbered && margin.first.is_some() => {
                        let indent = " ".repeat(mark.width());
                        margin.rest = SafeLine::styled(Style::default(), &indent);
                        margin.first = Some(mark);
                    }
                    Some(_) | None => self.inline_text.append(&mark),
                }
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.inline_text.push_text(self.style(), &text)
            }
        }
    }

    fn start_tag(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.separate_block(),
            Tag::Heading { level, .. } => {
                self.separate_block();
                let role = match level {
                    HeadingLevel::H1 | HeadingLevel::H2 => StyleRole::Heading,
                    HeadingLevel::H3 | HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => {
                        StyleRole::Strong
                    }
                };
                self.push_style(self.appearance.style(role));
            }
            Tag::BlockQuote(_) => {
                self.separate_block();
                let bar = SafeLine::styled(
                    self.appearance.style(StyleRole::Border),
                    if self.appearance.ascii { "> " } else { "▏ " },
                );
                self.margins.push(MarkdownBlockMargin { first: None, rest: bar });
                self.push_style(self.appearance.style(StyleRole::Quote));
                self.needs_blank_row = false;
            }
            Tag::CodeBlock(kind) => {
                self.separate_block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::HtmlBlock => {
                self.separate_block();
                self.html = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.separate_block();
                }
                let first = match self.first_number.take() {
                    Some(number) if first.is_some() => Some(number),
                    Some(_) | None => first,
                };
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Table(alignments) => {
                self.separate_block();
                self.table = Some(MarkdownTable::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin_record();
                }
            }
            Tag::TableCell => self.inline_text = SafeLine::default(),
            Tag::Emphasis => self.push_style(Style::default().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(self.appearance.style(StyleRole::Strong)),
            Tag::Strikethrough => {
                self.push_style(Style::default().add_modifier(Modifier::CROSSED_OUT))
            }
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.inline_text.as_str().len()));
                self.push_style(self.appearance.style(StyleRole::Link));
            }
            Tag::FootnoteDefinition(_)
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn start_item(&mut self) {
        self.flush();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            Some(None) | None => if self.appearance.ascii { "- " } else { "• " }.to_owned(),
        };
        let rest = SafeLine::styled(
            Style::default(),
            &" ".repeat(crate::safe_line::display_width(&marker)),
        );
        self.separate_block();
        let first = Some(SafeLine::styled(self.appearance.style(StyleRole::Dim), &marker));
        self.margins.push(MarkdownBlockMargin { first, rest });
    }

    fn end_tag(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                self.needs_blank_row = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.needs_blank_row = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.styles.pop();
                self.margins.pop();
                self.needs_blank_row = true;
            }
            TagEnd::CodeBlock => {
                let (language, code) = self.code.take().unwrap_or_default();
                let mut highlighter = Highlighter::new(&language, self.appearance);
                let width = self.inner_width().saturating_sub(CODE_INDENT);
                let rows = code.lines().flat_map(|line| highlighter.highlight_wrapped(line, width));
                let rows = rows.map(|row| indent_row(&row, CODE_INDENT)).collect();
                self.emit(rows);
                self.needs_blank_row = true;
            }
            TagEnd::HtmlBlock => {
                let html = self.html.take().unwrap_or_default();
                let rows = super::render_plain(
                    html.trim_end(),
                    self.inner_width(),
                    StyleRole::Dim,
                    self.appearance,
                );
                self.emit(rows);
                self.needs_blank_row = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.needs_blank_row = self.lists.is_empty() || self.needs_blank_row;
            }
            TagEnd::Item => {
                self.flush();
                // An item without text still shows its bullet.
                if self.margins.last().is_some_and(|margin| margin.first.is_some()) {
                    self.emit(vec![SafeLine::default()]);
                }
                self.margins.pop();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let rows = table.render(self.inner_width(), self.appearance);
                    self.emit(rows);
                }
                self.needs_blank_row = true;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline_text);
                if let Some(table) = &mut self.table {
                    table.push_cell(cell);
                }
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::FootnoteDefinition
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    /// Appends the target of a link, unless the link text already shows it.
    fn end_link(&mut self) {
        self.styles.pop();
        let Some((target, text_start)) = self.links.pop() else { return };
        let without_scheme = |text: &str| {
            let text = text.trim_start_matches("mailto:").trim_start_matches("https://");
            text.trim_start_matches("http://").trim_end_matches('/').to_owned()
        };
        let link_text = self.inline_text.as_str().get(text_start..).unwrap_or_default();
        if target.is_empty() || without_scheme(link_text) == without_scheme(&target) {
            return;
        }
        let dim = self.appearance.style(StyleRole::Dim);
        let space = if link_text.is_empty() { "" } else { " " };
        self.inline_text.push_text(dim, &format!("{space}({target})"));
    }

    /// Returns the width that is left inside all `margins`.
    fn inner_width(&self) -> usize {
        self.width.saturating_sub(self.margin_width()).max(1)
    }

    /// Returns the width of prose; code and tables use the `inner_width`.
    fn prose_width(&self) -> usize {
        let max_width = super::MAX_PROSE_WIDTH.saturating_sub(self.margin_width());
        self.inner_width().min(max_width.max(1))
    }

    fn margin_width(&self) -> usize {
        let margin: usize = self.margins.iter().map(|margin| margin.rest.width()).sum();
        // Margins are dropped if they would take more than half of the width.
        if margin * 2 > self.width { 0 } else { margin }
    }

    /// Flushes the pending text, and emits a blank row if one is due.
    fn separate_block(&mut self) {
        self.flush();
        if std::mem::take(&mut self.needs_blank_row) && !self.rows.is_empty() {
            let mut blank = SafeLine::default();
            if self.margin_width() > 0 {
                self.margins.iter().for_each(|margin| blank.append(&margin.rest));
            }
            let is_blank = blank.as_str().trim().is_empty();
            self.rows.push(if is_blank { SafeLine::default() } else { blank });
        }
    }

    /// Emits the pending `inline_text` as rows.
    fn flush(&mut self) {
        if self.inline_text.is_empty() || self.table.is_some() {
            return;
        }
        let row = std::mem::take(&mut self.inline_text);
        // The first part of an open link's text has been emitted; the rest begins at 0.
        self.links.iter_mut().for_each(|(_, text_start)| *text_start = 0);
        let rows = wrap(&row, self.prose_width(), WrapMode::Words, 0);
        self.emit(rows);
    }

    /// Emits rows with their margins.
    fn emit(&mut self, rows: Vec<SafeLine>) {
        let drops_margins = self.margin_width() == 0;
        for row in rows {
            let mut line = SafeLine::default();
            for margin in &mut self.margins {
                let first = margin.first.take();
                if !drops_margins {
                    line.append(first.as_ref().unwrap_or(&margin.rest));
                }
            }
            line.append(&row);
            let is_blank = row.is_empty() && line.as_str().trim().is_empty();
            self.rows.push(if is_blank { SafeLine::default() } else { line });
        }
    }
}
