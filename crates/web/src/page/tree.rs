//! The elements of a page, as a flat list in the order of the page.
//!
//! Each node knows where its content ends in the list, so whatever is asked of a part of the page is
//! asked of a range, without recursion. Nesting is cut at [`DEEPEST`] and elements are counted up to
//! [`MOST`]: beyond, tags are left out and their text stays. Building it is linear in the page.

use super::markup::{Token, Tokens, attributes, void};
use std::ops::Range;

/// How deep elements nest. What is deeper stands at this depth.
const DEEPEST: usize = 128;
/// How many elements there are.
const MOST: usize = 200_000;

/// An element or a text.
#[derive(Debug)]
pub(super) struct Node<'a> {
    pub(super) kind: Kind<'a>,
    /// Where its content ends.
    pub(super) end: usize,
    /// The element it stands in.
    pub(super) parent: Option<usize>,
}

#[derive(Debug)]
pub(super) enum Kind<'a> {
    Text(&'a str),
    Element { name: String, attributes: &'a str },
}

impl<'a> Node<'a> {
    /// The name of an element, in lower case; empty for text.
    pub(super) fn name(&self) -> &str {
        match &self.kind {
            Kind::Element { name, .. } => name,
            Kind::Text(_) => "",
        }
    }

    /// The value of an attribute, undecoded.
    pub(super) fn attribute(&self, wanted: &str) -> Option<&'a str> {
        match self.kind {
            Kind::Element { attributes: text, .. } => attributes(text)
                .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value),
            Kind::Text(_) => None,
        }
    }

    /// The words of its classes and its id: `js-share-box` is three.
    pub(super) fn words(&self) -> impl Iterator<Item = &'a str> {
        let named = [self.attribute("class"), self.attribute("id")];
        named.into_iter().flatten().flat_map(|value| {
            value.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty())
        })
    }

    pub(super) fn heading(&self) -> bool {
        matches!(self.name(), "h1" | "h2" | "h3" | "h4" | "h5" | "h6")
    }
}

/// A page.
#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    /// How much text there is before each node, in characters that are no space.
    weights: Vec<usize>,
    /// What it calls itself, undecoded.
    pub(super) title: Option<&'a str>,
    /// What it says of itself to machines, undecoded.
    pub(super) description: Option<&'a str>,
}

/// What stays open while a page is read.
#[derive(Default)]
struct Open {
    stack: Vec<usize>,
    /// How many elements were left out because they were too deep, and have not ended.
    over: usize,
}

impl<'a> Tree<'a> {
    pub(super) fn read(markup: &'a str) -> Tree<'a> {
        let mut tree = Tree::default();
        let mut open = Open::default();
        let mut unseen = None;
        for token in Tokens::new(markup) {
            match token {
                Token::Text(text) => match unseen {
                    Some("title") if tree.title.is_none() => tree.title = Some(text),
                    Some(_) => {}
                    None => tree.add(Kind::Text(text), open.stack.last().copied()),
                },
                Token::Open { name, attributes } => {
                    let name = name.to_ascii_lowercase();
                    unseen = unseen_content(&name);
                    if unseen.is_none() {
                        tree.enter(name, attributes, &mut open);
                    }
                }
                Token::Close { name } => {
                    unseen = None;
                    tree.leave(&name.to_ascii_lowercase(), &mut open);
                }
            }
        }
        while let Some(at) = open.stack.pop() {
            tree.end(at);
        }
        tree.weigh();
        tree
    }

    fn add(&mut self, kind: Kind<'a>, parent: Option<usize>) {
        let end = self.nodes.len() + 1;
        self.nodes.push(Node { kind, end, parent });
    }

    fn end(&mut self, at: usize) {
        let end = self.nodes.len();
        if let Some(node) = self.nodes.get_mut(at) {
            node.end = end;
        }
    }

    fn enter(&mut self, name: String, attributes: &'a str, open: &mut Open) {
        if name == "meta" {
            let about = |wanted: &str| {
                let mut found = super::markup::attributes(attributes);
                found.find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
            };
            if about("name").is_some_and(|name| name.eq_ignore_ascii_case("description")) {
                self.description = self.description.or(about("content"));
            }
            return;
        }
        let (ended, kept_by) = ends(&name);
        self.leave_first(ended, kept_by, open);
        let bare = void(&name);
        if open.stack.len() >= DEEPEST || self.nodes.len() >= MOST {
            open.over += usize::from(!bare);
            return;
        }
        let at = self.nodes.len();
        self.add(Kind::Element { name, attributes }, open.stack.last().copied());
        if !bare {
            open.stack.push(at);
        }
    }

    fn leave(&mut self, name: &str, open: &mut Open) {
        if open.over > 0 {
            open.over -= 1;
            return;
        }
        self.leave_first(&[name], &[], open);
    }

    /// Ends the innermost element of these names and all in it, unless one that keeps it open comes
    /// first.
    fn leave_first(&mut self, names: &[&str], kept_by: &[&str], open: &mut Open) {
        if names.is_empty() {
            return;
        }
        for depth in (0..open.stack.len()).rev() {
            let name = open.stack.get(depth).and_then(|at| self.nodes.get(*at)).map(Node::name);
            if name.is_some_and(|name| names.contains(&name)) {
                for at in open.stack.split_off(depth) {
                    self.end(at);
                }
                return;
            }
            if name.is_some_and(|name| kept_by.contains(&name)) {
                return;
            }
        }
    }

    fn weigh(&mut self) {
        let mut sum = 0;
        self.weights.push(0);
        for node in &self.nodes {
            if let Kind::Text(text) = node.kind {
                sum += text.chars().filter(|c| !c.is_whitespace()).count();
            }
            self.weights.push(sum);
        }
    }

    /// How much text a part holds.
    pub(super) fn weight(&self, part: Range<usize>) -> usize {
        let at = |index: usize| self.weights.get(index).copied().unwrap_or_default();
        at(part.end).saturating_sub(at(part.start))
    }

    /// An element and all in it.
    pub(super) fn part(&self, at: usize) -> Range<usize> {
        at..self.nodes.get(at).map_or(at, |node| node.end)
    }

    /// The nodes of a part, with where they are.
    pub(super) fn within(&self, part: Range<usize>) -> impl Iterator<Item = (usize, &Node<'a>)> {
        part.clone().zip(self.nodes.get(part).unwrap_or_default())
    }

    /// The text of a part, undecoded.
    pub(super) fn text(&self, part: Range<usize>) -> String {
        let texts = self.within(part).filter_map(|(_, node)| match node.kind {
            Kind::Text(text) => Some(text),
            Kind::Element { .. } => None,
        });
        texts.collect()
    }
}

/// Elements whose content nobody sees.
fn unseen_content(name: &str) -> Option<&'static str> {
    match name {
        "script" => Some("script"),
        "style" => Some("style"),
        "title" => Some("title"),
        "textarea" => Some("textarea"),
        "iframe" | "noembed" | "noframes" => Some("frame"),
        _ => None,
    }
}

/// What the start of an element ends, and within what it does not.
fn ends(name: &str) -> (&'static [&'static str], &'static [&'static str]) {
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
