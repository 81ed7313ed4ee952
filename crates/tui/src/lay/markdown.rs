//! One block of markdown as rows.
//!
//! Nothing is swallowed: what is no markup, or markup that shows nothing, stands there as it was
//! written.

use super::code::Painter;
use super::page::{CODE, indented};
use super::split::Kind;
use super::table::Table;
use crate::cx::Look;
use crate::ink::Row;
use crate::theme::Role;
use crate::wrap::{Break, wrap};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};

/// Lays out a block.
pub(super) fn block(text: &str, kind: &Kind, width: usize, look: &Look) -> Vec<Row> {
    let number = match kind {
        Kind::Item { number } => *number,
        Kind::Text => None,
    };
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::new(width, number, look);
    for event in Parser::new_ext(text, options) {
        writer.event(event);
    }
    writer.flush();
    if writer.rows.is_empty() {
        return super::plain(text, width, Role::Dim, look);
    }
    writer.rows
}

/// What stands before the rows of a quote or an item.
struct Margin {
    /// Before its first row, until that was written.
    first: Option<Row>,
    rest: Row,
}

struct Writer<'a> {
    look: &'a Look,
    width: usize,
    /// The number of the first item, if another one than was written.
    number: Option<u64>,
    rows: Vec<Row>,
    margins: Vec<Margin>,
    lists: Vec<Option<u64>>,
    inline: Row,
    styles: Vec<Style>,
    /// Where links lead, and where their texts begin.
    links: Vec<(String, usize)>,
    code: Option<(String, String)>,
    html: Option<String>,
    table: Option<Table>,
    /// True if the next block stands apart from what is above it.
    apart: bool,
}

impl<'a> Writer<'a> {
    fn new(width: usize, number: Option<u64>, look: &'a Look) -> Writer<'a> {
        Writer {
            look,
            width,
            number,
            rows: Vec::new(),
            margins: Vec::new(),
            lists: Vec::new(),
            inline: Row::default(),
            styles: vec![look.style(Role::Text)],
            links: Vec::new(),
            code: None,
            html: None,
            table: None,
            apart: false,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    /// Lays a style over the one under way.
    fn over(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match (&mut self.code, &mut self.html) {
                (Some((_, code)), _) => code.push_str(&text),
                (None, Some(html)) => html.push_str(&text),
                (None, None) => self.inline.push(self.style(), &text),
            },
            Event::Code(text) => {
                let literal = self.style().patch(self.look.style(Role::Literal));
                self.inline.push(literal, &text);
            }
            Event::Html(text) => match &mut self.html {
                Some(html) => html.push_str(&text),
                None => self.inline.push(self.look.style(Role::Dim), &text),
            },
            Event::InlineHtml(text) => {
                let broken = text.trim_end_matches([' ', '/', '>']).eq_ignore_ascii_case("<br");
                match broken {
                    true => self.flush(),
                    false => self.inline.push(self.look.style(Role::Dim), &text),
                }
            }
            Event::SoftBreak => self.inline.push(self.style(), " "),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.stand_apart();
                let sign = if self.look.ascii { "-" } else { "─" };
                let room = self.room();
                self.emit(vec![Row::of(self.look.style(Role::Border), &sign.repeat(room))]);
                self.apart = true;
            }
            Event::TaskListMarker(done) => {
                let mark = match (done, self.look.ascii) {
                    (true, false) => "☑ ",
                    (false, false) => "☐ ",
                    (true, true) => "[x] ",
                    (false, true) => "[ ] ",
                };
                self.inline.push(self.look.style(Role::Accent), mark);
            }
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.inline.push(self.style(), &text)
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.stand_apart(),
            Tag::Heading { level, .. } => {
                self.stand_apart();
                let role = match level {
                    HeadingLevel::H1 | HeadingLevel::H2 => Role::Heading,
                    HeadingLevel::H3 | HeadingLevel::H4 | HeadingLevel::H5 | HeadingLevel::H6 => {
                        Role::Strong
                    }
                };
                self.over(self.look.style(role));
            }
            Tag::BlockQuote(_) => {
                self.stand_apart();
                let bar = Row::of(
                    self.look.style(Role::Border),
                    if self.look.ascii { "> " } else { "▏ " },
                );
                self.margins.push(Margin { first: None, rest: bar });
                self.over(self.look.style(Role::Quote));
                self.apart = false;
            }
            Tag::CodeBlock(kind) => {
                self.stand_apart();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::HtmlBlock => {
                self.stand_apart();
                self.html = Some(String::new());
            }
            Tag::List(first) => {
                self.flush();
                if self.lists.is_empty() {
                    self.stand_apart();
                }
                let first = match self.number.take() {
                    Some(number) if first.is_some() => Some(number),
                    Some(_) | None => first,
                };
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Table(alignments) => {
                self.stand_apart();
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.begin();
                }
            }
            Tag::TableCell => self.inline = Row::default(),
            Tag::Emphasis => self.over(Style::default().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.over(self.look.style(Role::Strong)),
            Tag::Strikethrough => self.over(Style::default().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.inline.as_str().len()));
                self.over(self.look.style(Role::Link));
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

    fn item(&mut self) {
        self.flush();
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker
            }
            Some(None) | None => if self.look.ascii { "- " } else { "• " }.to_owned(),
        };
        let rest = Row::of(Style::default(), &" ".repeat(crate::ink::width(&marker)));
        self.stand_apart();
        let first = Some(Row::of(self.look.style(Role::Dim), &marker));
        self.margins.push(Margin { first, rest });
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => {
                self.flush();
                self.apart = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.apart = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.styles.pop();
                self.margins.pop();
                self.apart = true;
            }
            TagEnd::CodeBlock => {
                let (language, code) = self.code.take().unwrap_or_default();
                let mut painter = Painter::new(&language, self.look);
                let room = self.room().saturating_sub(CODE);
                let rows = code.lines().flat_map(|line| painter.rows(line, room));
                let rows = rows.map(|row| indented(&row, CODE)).collect();
                self.emit(rows);
                self.apart = true;
            }
            TagEnd::HtmlBlock => {
                let html = self.html.take().unwrap_or_default();
                let rows = super::plain(html.trim_end(), self.room(), Role::Dim, self.look);
                self.emit(rows);
                self.apart = true;
            }
            TagEnd::List(_) => {
                self.lists.pop();
                self.apart = self.lists.is_empty() || self.apart;
            }
            TagEnd::Item => {
                self.flush();
                // An item without a text still has its mark.
                if self.margins.last().is_some_and(|margin| margin.first.is_some()) {
                    self.emit(vec![Row::default()]);
                }
                self.margins.pop();
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    let rows = table.rows(self.room(), self.look);
                    self.emit(rows);
                }
                self.apart = true;
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.inline);
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Link | TagEnd::Image => self.link(),
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

    /// Says where a link leads, unless its text does.
    fn link(&mut self) {
        self.styles.pop();
        let Some((target, from)) = self.links.pop() else { return };
        let bare = |text: &str| {
            let text = text.trim_start_matches("mailto:").trim_start_matches("https://");
            text.trim_start_matches("http://").trim_end_matches('/').to_owned()
        };
        let shown = self.inline.as_str().get(from..).unwrap_or_default();
        if target.is_empty() || bare(shown) == bare(&target) {
            return;
        }
        let dim = self.look.style(Role::Dim);
        let before = if shown.is_empty() { "" } else { " " };
        self.inline.push(dim, &format!("{before}({target})"));
    }

    /// How wide the rows may be inside of all margins.
    fn room(&self) -> usize {
        self.width.saturating_sub(self.margin()).max(1)
    }

    fn margin(&self) -> usize {
        let margin: usize = self.margins.iter().map(|margin| margin.rest.width()).sum();
        // Where there is no room for margins, there are none.
        if margin * 2 > self.width { 0 } else { margin }
    }

    /// Ends the text under way, and leaves a blank row if there is to be one.
    fn stand_apart(&mut self) {
        self.flush();
        if std::mem::take(&mut self.apart) && !self.rows.is_empty() {
            let mut blank = Row::default();
            if self.margin() > 0 {
                self.margins.iter().for_each(|margin| blank.extend(&margin.rest));
            }
            let bare = blank.as_str().trim().is_empty();
            self.rows.push(if bare { Row::default() } else { blank });
        }
    }

    /// Writes the text under way.
    fn flush(&mut self) {
        if self.inline.is_empty() || self.table.is_some() {
            return;
        }
        let row = std::mem::take(&mut self.inline);
        // What a link's text begins with is gone.
        self.links.iter_mut().for_each(|(_, from)| *from = 0);
        let rows = wrap(&row, self.room(), Break::Words, 0);
        self.emit(rows);
    }

    /// Writes rows between their margins.
    fn emit(&mut self, rows: Vec<Row>) {
        let narrow = self.margin() == 0;
        for row in rows {
            let mut whole = Row::default();
            for margin in &mut self.margins {
                let first = margin.first.take();
                if !narrow {
                    whole.extend(first.as_ref().unwrap_or(&margin.rest));
                }
            }
            whole.extend(&row);
            let blank = row.is_empty() && whole.as_str().trim().is_empty();
            self.rows.push(if blank { Row::default() } else { whole });
        }
    }
}
