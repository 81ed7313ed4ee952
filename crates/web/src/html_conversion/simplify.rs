//! Rewrites a page with a few plain elements that every converter reads the same way.
//!
//! Every written element is opened and closed here, so nesting is always correct. Links lead to
//! other pages or become text, code becomes one block with its language, and only tables of data
//! stay tables. This module performs no I/O. Start reading at [`write_simplified`].

use super::boilerplate::{BoilerplateFilter, PageHeadline};
use super::code_language::code_language;
use super::tree::{HtmlNode, NodeKind};
use std::collections::HashMap;
use std::ops::Range;

/// Elements that are kept as they are.
const KEPT_ELEMENTS: [&str; 34] = [
    "p",
    "div",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "em",
    "i",
    "b",
    "strong",
    "code",
    "br",
    "hr",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "sup",
    "sub",
    "del",
    "s",
    "kbd",
    "samp",
    "q",
    "caption",
    "a",
];
/// Elements that become a `div`.
const CONTAINER_ELEMENTS: [&str; 20] = [
    "section", "article", "main", "header", "footer", "aside", "figure", "details", "summary",
    "form", "fieldset", "center", "address", "menu", "hgroup", "dir", "tfoot", "body", "search",
    "picture",
];

/// Writes the nodes that a `BoilerplateFilter` keeps as simplified HTML.
pub(super) fn write_simplified(filter: &BoilerplateFilter<'_, '_>) -> String {
    let mut page = PageSimplifier {
        filter,
        out: String::new(),
        open_tags: Vec::new(),
        layout_tables: HashMap::new(),
        section_lists: HashMap::new(),
    };
    match filter.headline() {
        PageHeadline::InContent | PageHeadline::None => {}
        PageHeadline::OutsideContent(text) => page.write_headline(&text),
        PageHeadline::Title(text) => page.write_headline(text),
    }
    page.write_range(filter.main_content.clone());
    page.out
}

struct PageSimplifier<'s, 't, 'a> {
    filter: &'s BoilerplateFilter<'t, 'a>,
    out: String,
    /// Open elements: the index of their end, and the end tag.
    open_tags: Vec<(usize, String)>,
    /// Layout of tables by node; `None` for tables of data.
    layout_tables: HashMap<usize, Option<LayoutTableRows>>,
    /// Cache by node: true for lists that contain sections.
    section_lists: HashMap<usize, bool>,
}

/// Treatment of an element.
enum ElementAction {
    /// Drops the tags and keeps the content.
    Unwrap,
    /// Writes an element with these attributes.
    WriteElement(&'static str, String),
    /// Writes an element, with additional text after its end tag.
    WriteWithTrailer(&'static str, &'static str),
    /// The element is written or dropped with all its content.
    AlreadyWritten,
}

impl PageSimplifier<'_, '_, '_> {
    fn write_headline(&mut self, text: &str) {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if !text.is_empty() {
            self.out.push_str(&format!("<h1>{}</h1>", text.replace('<', "&lt;")));
        }
    }

    fn write_range(&mut self, part: Range<usize>) {
        let mut at = part.start;
        while at < part.end {
            self.close_tags(at);
            let Some(node) = self.filter.tree.nodes.get(at) else { break };
            let subtree = self.filter.tree.subtree(at);
            if self.filter.is_dropped(at) {
                at = subtree.end.max(at + 1);
                continue;
            }
            at = match &node.kind {
                NodeKind::Text(text) => {
                    self.out.push_str(&text.replace(['\u{200b}', '\u{feff}'], ""));
                    at + 1
                }
                NodeKind::Element { .. } => match self.element_action(at, node) {
                    ElementAction::Unwrap => at + 1,
                    ElementAction::WriteElement(name, attributes) => {
                        self.out.push_str(&format!("<{name}{attributes}>"));
                        if !matches!(name, "br" | "hr" | "img" | "input") {
                            self.open_tags.push((subtree.end, format!("</{name}>")));
                        }
                        at + 1
                    }
                    ElementAction::WriteWithTrailer(name, trailer) => {
                        self.out.push_str(&format!("<{name}>"));
                        self.open_tags.push((subtree.end, format!("</{name}>{trailer}")));
                        at + 1
                    }
                    ElementAction::AlreadyWritten => subtree.end,
                },
            };
        }
        self.close_tags(usize::MAX);
    }

    /// Writes the end tags of elements that end at or before `at`.
    fn close_tags(&mut self, at: usize) {
        while let Some((_, end)) = self.open_tags.pop_if(|(end, _)| *end <= at) {
            self.out.push_str(&end);
        }
    }

    fn element_action(&mut self, at: usize, node: &HtmlNode<'_>) -> ElementAction {
        let plain = |name| ElementAction::WriteElement(name, String::new());
        match node.name() {
            "pre" => self.code_block_action(at, node),
            "a" => self.link_action(at, node),
            "img" => self.image_action(node),
            "input" => {
                let checkbox = node.attribute("type") == Some("checkbox");
                match checkbox && self.is_under(at, "li") {
                    true if node.attribute("checked").is_some() => ElementAction::WriteElement(
                        "input",
                        " type=\"checkbox\" checked".to_owned(),
                    ),
                    true => ElementAction::WriteElement("input", " type=\"checkbox\"".to_owned()),
                    false => ElementAction::Unwrap,
                }
            }
            "dl" => plain("ul"),
            "dt" => ElementAction::WriteWithTrailer("li", ""),
            "dd" => self.definition_action(at),
            "var" | "dfn" => plain("i"),
            // Only its style separates a time from the name before it.
            "time" => {
                self.out.push(' ');
                ElementAction::Unwrap
            }
            "span" | "div" if self.is_set_apart(node) => {
                ElementAction::WriteWithTrailer("span", " ")
            }
            "tt" => plain("code"),
            "figcaption" => plain("p"),
            "table" | "thead" | "tbody" | "tr" | "th" | "td" | "caption" => {
                self.table_action(at, node)
            }
            "li" if self.is_empty_item(at) => ElementAction::AlreadyWritten,
            "ul" | "ol" | "li" if self.is_section_list(at) => plain("div"),
            "ol" => {
                let start = node.attribute("start").filter(|start| start.parse::<u32>().is_ok());
                let start = start.map(|start| format!(" start=\"{start}\"")).unwrap_or_default();
                ElementAction::WriteElement("ol", start)
            }
            // A paragraph that is alone in an item would separate the item from the next.
            "p" | "div" if self.is_alone_in_item(at) => ElementAction::Unwrap,
            "p" | "div" if self.is_in_heading(at) => ElementAction::Unwrap,
            name if CONTAINER_ELEMENTS.contains(&name) => plain("div"),
            name => match KEPT_ELEMENTS.iter().find(|kept| **kept == name) {
                Some(kept) => plain(kept),
                None => ElementAction::Unwrap,
            },
        }
    }

    /// Iterates over the elements around a node, innermost first.
    fn ancestors(&self, at: usize) -> impl Iterator<Item = &HtmlNode<'_>> {
        let parent_of = |at: &usize| self.filter.tree.nodes.get(*at).and_then(|node| node.parent);
        let parents = std::iter::successors(parent_of(&at), parent_of);
        parents.filter_map(|parent| self.filter.tree.nodes.get(parent))
    }

    fn is_under(&self, at: usize, name: &str) -> bool {
        self.ancestors(at).take(3).any(|node| node.name() == name)
    }

    /// Returns true for screen-reader text (`sr-only`), and for columns of a list laid out as a
    /// table.
    fn is_set_apart(&self, node: &HtmlNode<'_>) -> bool {
        let classes = node.attribute("class").unwrap_or_default();
        classes.split_ascii_whitespace().any(|class| {
            matches!(class, "visually-hidden" | "sr-only" | "col-first" | "col-second")
        })
    }

    /// Returns true for an item without readable content.
    fn is_empty_item(&self, at: usize) -> bool {
        let part = self.filter.tree.subtree(at);
        let has_alt_text = |node: &HtmlNode<'_>| match node.name() {
            "img" => node.attribute("alt").is_some_and(|alt| !alt.trim().is_empty()),
            _ => false,
        };
        self.filter.tree.text_length(part.clone()) == 0
            && !self.filter.tree.nodes_in(part).any(|(_, node)| has_alt_text(node))
    }

    fn is_in_heading(&self, at: usize) -> bool {
        self.ancestors(at).take(3).any(HtmlNode::is_heading)
    }

    fn is_alone_in_item(&self, at: usize) -> bool {
        let Some(parent) = self.filter.tree.nodes.get(at).and_then(|node| node.parent) else {
            return false;
        };
        let part = self.filter.tree.subtree(parent);
        let item = self.filter.tree.nodes.get(parent);
        item.is_some_and(|item| item.name() == "li") && {
            let subtree = self.filter.tree.subtree(at);
            // No text precedes it in the item; at most a list follows.
            self.filter.tree.text_length(part.start..subtree.start) == 0
        }
    }

    /// Returns true for a list that lays out sections.
    fn is_section_list(&mut self, at: usize) -> bool {
        let tree = self.filter.tree;
        let node = tree.nodes.get(at);
        let list = match node.map(HtmlNode::name) {
            Some("li") => node.and_then(|node| node.parent),
            _ => Some(at),
        };
        let Some(list) = list else { return false };
        *self
            .section_lists
            .entry(list)
            .or_insert_with(|| tree.nodes_in(tree.subtree(list)).any(|(_, node)| node.is_heading()))
    }

    /// Writes a `dd` into the same item as its term.
    fn definition_action(&mut self, at: usize) -> ElementAction {
        let item_end = "</li>";
        let parent = self.filter.tree.nodes.get(at).and_then(|node| node.parent);
        let list = parent.and_then(|parent| self.filter.tree.nodes.get(parent));
        if list.is_some_and(|node| node.name() == "dl") && self.out.ends_with(item_end) {
            self.out.truncate(self.out.len() - item_end.len());
            return ElementAction::WriteWithTrailer("div", item_end);
        }
        if self.out.trim_end().ends_with(item_end) {
            self.out.truncate(self.out.trim_end().len() - item_end.len());
            return ElementAction::WriteWithTrailer("div", item_end);
        }
        ElementAction::WriteWithTrailer("div", "")
    }

    /// Writes a `pre` as a code block: its verbatim text and its language.
    fn code_block_action(&mut self, at: usize, node: &HtmlNode<'_>) -> ElementAction {
        let tree = self.filter.tree;
        let part = tree.subtree(at);
        let mut text = String::new();
        let mut index = part.start + 1;
        while index < part.end {
            if self.filter.is_dropped(index) {
                index = tree.subtree(index).end.max(index + 1);
                continue;
            }
            match tree.nodes.get(index).map(|node| &node.kind) {
                Some(NodeKind::Text(piece)) => text.push_str(piece),
                Some(NodeKind::Element { name, .. })
                    if matches!(name.as_str(), "br" | "div" | "p" | "tr" | "li")
                        && (name == "br" || !text.ends_with('\n') && !text.is_empty()) =>
                {
                    text.push('\n');
                }
                Some(NodeKind::Element { .. }) | None => {}
            }
            index += 1;
        }
        // A column of numbers contains the line numbers of the code next to it.
        let is_numeric = text.chars().all(|c| c.is_ascii_digit() || c.is_whitespace());
        if text.trim().is_empty()
            || (is_numeric && self.ancestors(at).any(|node| node.name() == "td"))
        {
            return ElementAction::AlreadyWritten;
        }
        let code_element =
            tree.nodes_in(part).find(|(_, node)| node.name() == "code").map(|(_, node)| node);
        let own = [Some(node), code_element].into_iter().flatten();
        let candidates = own.chain(self.ancestors(at).take(3));
        let language = candidates.filter_map(code_language).next();
        let class = language.map(|name| format!(" class=\"language-{name}\"")).unwrap_or_default();
        let text = text.trim_matches('\n').trim_end();
        self.out.push_str(&format!("<pre><code{class}>{text}\n</code></pre>"));
        ElementAction::AlreadyWritten
    }

    /// Keeps a link to another page. Links within the page and in headings become text.
    fn link_action(&self, at: usize, node: &HtmlNode<'_>) -> ElementAction {
        let href = node.attribute("href").unwrap_or_default().trim();
        let scheme = href.split_once(':').map(|(scheme, _)| scheme.to_ascii_lowercase());
        let is_external = !href.is_empty()
            && !href.starts_with('#')
            && scheme.is_none_or(|scheme| {
                matches!(scheme.as_str(), "http" | "https" | "mailto") || scheme.contains('/')
            });
        let is_nested = self
            .ancestors(at)
            .take(4)
            .any(|node| node.is_heading() || matches!(node.name(), "a" | "code"));
        let has_text = self.filter.tree.text_length(self.filter.tree.subtree(at)) > 0;
        match is_external && !is_nested && has_text {
            true => {
                ElementAction::WriteElement("a", format!(" href=\"{}\"", escape_attribute(href)))
            }
            false => ElementAction::Unwrap,
        }
    }

    /// Keeps an image that has an `alt` text.
    fn image_action(&self, node: &HtmlNode<'_>) -> ElementAction {
        let alt = node.attribute("alt").unwrap_or_default().trim();
        let source_attributes = ["src", "data-src", "data-original"];
        let mut sources = source_attributes.iter().filter_map(|name| node.attribute(name));
        let source = sources.find(|source| !source.trim_start().starts_with("data:"));
        match (alt, source) {
            ("", _) => ElementAction::Unwrap,
            (alt, Some(source)) if node.name_words().all(|word| word != "emoji") => {
                let (source, alt) = (escape_attribute(source), escape_attribute(alt));
                ElementAction::WriteElement("img", format!(" src=\"{source}\" alt=\"{alt}\""))
            }
            _ => ElementAction::Unwrap,
        }
    }

    /// Keeps a part of a data table; parts of a layout table become boxes.
    fn table_action(&mut self, at: usize, node: &HtmlNode<'_>) -> ElementAction {
        let tree = self.filter.tree;
        let parent_of = |at: &usize| tree.nodes.get(*at).and_then(|node| node.parent);
        let mut path = std::iter::successors(Some(at), parent_of);
        let table = path.find(|at| tree.nodes.get(*at).is_some_and(|node| node.name() == "table"));
        let layout = match table {
            Some(table) => match self.layout_tables.get(&table) {
                Some(known) => *known,
                None => {
                    let found = self.layout_rows(table);
                    self.layout_tables.insert(table, found);
                    found
                }
            },
            None => Some(LayoutTableRows::Many),
        };
        let name = node.name();
        match layout {
            Some(LayoutTableRows::One) if matches!(name, "td" | "th") => {
                ElementAction::WriteWithTrailer("span", " ")
            }
            Some(LayoutTableRows::One) if name == "table" => {
                ElementAction::WriteElement("p", String::new())
            }
            Some(LayoutTableRows::One) => ElementAction::Unwrap,
            Some(LayoutTableRows::Many) if name == "caption" => {
                ElementAction::WriteElement("p", String::new())
            }
            Some(LayoutTableRows::Many)
                if matches!(name, "td" | "th") && self.is_inline_cell(at) =>
            {
                ElementAction::WriteWithTrailer("span", " ")
            }
            Some(LayoutTableRows::Many) => ElementAction::WriteElement("div", String::new()),
            None => {
                let span = |name: &str| {
                    let value = node.attribute(name).filter(|value| value.parse::<u8>().is_ok());
                    value.map(|value| format!(" {name}=\"{value}\"")).unwrap_or_default()
                };
                let kept = KEPT_ELEMENTS.iter().find(|kept| **kept == name);
                let spans = format!("{}{}", span("colspan"), span("rowspan"));
                kept.map_or(ElementAction::Unwrap, |kept| ElementAction::WriteElement(kept, spans))
            }
        }
    }

    /// Returns true for a `td` or `th` without block elements.
    fn is_inline_cell(&self, at: usize) -> bool {
        let part = at + 1..self.filter.tree.subtree(at).end;
        self.filter.tree.nodes_in(part).all(|(_, node)| {
            let name = node.name();
            !CONTAINER_ELEMENTS.contains(&name)
                && !matches!(
                    name,
                    "p" | "div" | "table" | "ul" | "ol" | "dl" | "pre" | "blockquote"
                )
                && !node.is_heading()
        })
    }

    /// Returns the rows of a layout table; `None` for a table of data.
    fn layout_rows(&self, table: usize) -> Option<LayoutTableRows> {
        let tree = self.filter.tree;
        let node = tree.nodes.get(table)?;
        let part = table + 1..tree.subtree(table).end;
        let count = |names: &[&str]| {
            let found = tree.nodes_in(part.clone());
            found.filter(|(_, node)| names.contains(&node.name())).count()
        };
        let rows = if count(&["tr"]) == 1 { LayoutTableRows::One } else { LayoutTableRows::Many };
        if count(&["pre", "table", "ul", "ol", "dl", "blockquote", "h1", "h2", "h3"]) > 0 {
            return Some(LayoutTableRows::Many);
        }
        let is_presentation = matches!(node.attribute("role"), Some("presentation" | "none"));
        let is_legacy =
            node.attribute("border") == Some("0") || node.attribute("cellpadding").is_some();
        let is_bare = count(&["th"]) == 0 && (is_legacy || matches!(rows, LayoutTableRows::One));
        (is_presentation || is_bare).then_some(rows)
    }
}

/// Number of rows of a layout table.
#[derive(Clone, Copy)]
enum LayoutTableRows {
    One,
    Many,
}

fn escape_attribute(value: &str) -> String {
    value.replace('"', "&quot;").replace(['<', '>', '\n', '\r'], "")
}
