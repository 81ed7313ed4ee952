//! The elements of a page as a flat list in document order.
//!
//! Each node knows where its content ends in the list, so every question about a part of the page
//! concerns a range and needs no recursion. Nesting is limited to [`MAX_DEPTH`] and elements to
//! [`MAX_NODES`]: beyond that, tags are dropped and their text stays. Parsing is linear in the
//! length of the page.

use super::tokenizer::{MarkupToken, MarkupTokenizer, is_void, parse_attributes};
use std::ops::Range;

/// Limit for nesting. Deeper text is attached at this depth.
const MAX_DEPTH: usize = 128;
/// Number of nodes beyond which tags are dropped.
const MAX_NODES: usize = 200_000;

/// An element or a text of an `HtmlTree`.
#[derive(Debug)]
pub(super) struct HtmlNode<'a> {
    pub(super) kind: NodeKind<'a>,
    /// Index after the last node of its content.
    pub(super) end: usize,
    /// Index of the enclosing element.
    pub(super) parent: Option<usize>,
}

#[derive(Debug)]
pub(super) enum NodeKind<'a> {
    Text(&'a str),
    Element { name: String, attributes: &'a str },
}

impl<'a> HtmlNode<'a> {
    /// Returns the name of an element in lower case; empty for text.
    pub(super) fn name(&self) -> &str {
        match &self.kind {
            NodeKind::Element { name, .. } => name,
            NodeKind::Text(_) => "",
        }
    }

    /// Returns the value of an attribute, undecoded.
    pub(super) fn attribute(&self, wanted: &str) -> Option<&'a str> {
        match self.kind {
            NodeKind::Element { attributes, .. } => parse_attributes(attributes)
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value),
            NodeKind::Text(_) => None,
        }
    }

    /// Iterates over the words of class and id: `js-share-box` has three.
    pub(super) fn name_words(&self) -> impl Iterator<Item = &'a str> {
        let values = [self.attribute("class"), self.attribute("id")];
        values.into_iter().flatten().flat_map(|value| {
            value.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
        })
    }

    pub(super) fn is_heading(&self) -> bool {
        matches!(self.name(), "h1" | "h2" | "h3" | "h4" | "h5" | "h6")
    }
}

/// A parsed page.
#[derive(Debug, Default)]
pub(super) struct HtmlTree<'a> {
    pub(super) nodes: Vec<HtmlNode<'a>>,
    /// Number of non-whitespace characters before each node.
    text_offsets: Vec<usize>,
    /// Content of the `title` element, undecoded.
    pub(super) title: Option<&'a str>,
    /// Content of the `description` meta tag, undecoded.
    pub(super) description: Option<&'a str>,
}

/// Elements that are open during parsing.
#[derive(Default)]
struct OpenElements {
    stack: Vec<usize>,
    /// Number of open elements that were dropped at the limits.
    skipped_depth: usize,
}

impl<'a> HtmlTree<'a> {
    pub(super) fn parse(markup: &'a str) -> HtmlTree<'a> {
        let mut tree = HtmlTree::default();
        let mut open = OpenElements::default();
        let mut hidden = None;
        for token in MarkupTokenizer::new(markup) {
            match token {
                MarkupToken::Text(text) => match hidden {
                    Some("title") if tree.title.is_none() => tree.title = Some(text),
                    Some(_) => {}
                    None => tree.add_node(NodeKind::Text(text), open.stack.last().copied()),
                },
                MarkupToken::StartTag { name, attributes } => {
                    let name = name.to_ascii_lowercase();
                    hidden = hidden_content_kind(&name);
                    if hidden.is_none() {
                        tree.open_element(name, attributes, &mut open);
                    }
                }
                MarkupToken::EndTag { name } => {
                    hidden = None;
                    tree.close_element(&name.to_ascii_lowercase(), &mut open);
                }
            }
        }
        while let Some(at) = open.stack.pop() {
            tree.close_node(at);
        }
        tree.measure_text();
        tree
    }

    fn add_node(&mut self, kind: NodeKind<'a>, parent: Option<usize>) {
        let end = self.nodes.len() + 1;
        self.nodes.push(HtmlNode { kind, end, parent });
    }

    fn close_node(&mut self, at: usize) {
        let end = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(at) {
            node.end = end;
        }
    }

    fn open_element(&mut self, name: String, attributes: &'a str, open: &mut OpenElements) {
        if name == "meta" {
            let attribute = |wanted: &str| {
                parse_attributes(attributes)
                    .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                    .map(|(_, value)| value)
            };
            if attribute("name").is_some_and(|name| name.eq_ignore_ascii_case("description")) {
                self.description = self.description.or(attribute("content"));
            }
            return;
        }
        let (closed, boundaries) = implied_end_tags(&name);
        self.close_innermost(closed, boundaries, open);
        let is_empty = is_void(&name);
        if open.stack.len() >= MAX_DEPTH || self.nodes.len() >= MAX_NODES {
            open.skipped_depth += usize::from(!is_empty);
            return;
        }
        let at = self.nodes.len();
        self.add_node(NodeKind::Element { name, attributes }, open.stack.last().copied());
        if !is_empty {
            open.stack.push(at);
        }
    }

    fn close_element(&mut self, name: &str, open: &mut OpenElements) {
        if open.skipped_depth > 0 {
            open.skipped_depth -= 1;
            return;
        }
        self.close_innermost(&[name], &[], open);
    }

    /// Closes the innermost element with one of these names and everything in it, unless an element
    /// of `boundaries` comes first.
    fn close_innermost(&mut self, names: &[&str], boundaries: &[&str], open: &mut OpenElements) {
        if names.is_empty() {
            return;
        }
        for depth in (0..open.stack.len()).rev() {
            let name = open.stack.get(depth).and_then(|at| self.nodes.get(*at)).map(HtmlNode::name);
            if name.is_some_and(|name| names.contains(&name)) {
                for at in open.stack.split_off(depth) {
                    self.close_node(at);
                }
                return;
            }
            if name.is_some_and(|name| boundaries.contains(&name)) {
                return;
            }
        }
    }

    fn measure_text(&mut self) {
        let mut total = 0;
        self.text_offsets.push(0);
        for node in &self.nodes {
            if let NodeKind::Text(text) = node.kind {
                total += text.chars().filter(|c| !c.is_whitespace()).count();
            }
            self.text_offsets.push(total);
        }
    }

    /// Returns the number of non-whitespace characters in a range.
    pub(super) fn text_length(&self, part: Range<usize>) -> usize {
        let offset = |index: usize| self.text_offsets.get(index).copied().unwrap_or_default();
        offset(part.end).saturating_sub(offset(part.start))
    }

    /// Returns the range of an element and its content.
    pub(super) fn subtree(&self, at: usize) -> Range<usize> {
        at..self.nodes.get(at).map_or(at, |node| node.end)
    }

    /// Iterates over the nodes of a range with their indices.
    pub(super) fn nodes_in(
        &self,
        part: Range<usize>,
    ) -> impl Iterator<Item = (usize, &HtmlNode<'a>)> {
        part.clone().zip(self.nodes.get(part).unwrap_or_default())
    }

    /// Returns the text of a range, undecoded.
    pub(super) fn text(&self, part: Range<usize>) -> String {
        let texts = self.nodes_in(part).filter_map(|(_, node)| match node.kind {
            NodeKind::Text(text) => Some(text),
            NodeKind::Element { .. } => None,
        });
        texts.collect()
    }
}

/// Returns the kind of an element whose content is not displayed, such as `script`.
fn hidden_content_kind(name: &str) -> Option<&'static str> {
    match name {
        "script" => Some("script"),
        "style" => Some("style"),
        "title" => Some("title"),
        "textarea" => Some("textarea"),
        "iframe" | "noembed" | "noframes" => Some("frame"),
        _ => None,
    }
}

/// Returns the elements that a start tag closes implicitly, as in `<li>`, and those that prevent
/// it.
fn implied_end_tags(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match name {
        "li" => (&["li"], &["ul", "ol", "menu"]),
        "dt" | "dd" => (&["dt", "dd"], &["dl"]),
        "tr" => (&["tr"], &["table"]),
        "td" | "th" => (&["td", "th"], &["table", "tr"]),
        "thead" | "tbody" | "tfoot" => (&["thead", "tbody", "tfoot"], &["table"]),
        "p" | "div" | "ul" | "ol" | "dl" | "table" | "pre" | "blockquote" | "section"
        | "article" | "aside" | "nav" | "header" | "footer" | "main" | "form" | "figure" | "hr"
        | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "details" => (
            &["p"],
            &[
                "div",
                "li",
                "td",
                "th",
                "dd",
                "dt",
                "blockquote",
                "section",
                "article",
                "aside",
                "body",
                "details",
                "summary",
                "button",
                "caption",
                "object",
            ],
        ),
        _ => (&[], &[]),
    }
}
