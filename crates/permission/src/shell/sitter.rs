//! Reduces what tree-sitter-bash makes of a text.
//!
//! Its tree keeps every token with its place, but it was made for colouring: some texts lose
//! commands in it without an error. So a node that is not known here by its kind is a doubt, and
//! the other parser has to agree.

mod words;

use super::doubt::Doubt;
use super::finding::Finding;
use super::spelling::Role;
use super::{Place, Redirect, RedirectKind, Segment, Word};
use std::cell::Cell;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, ParseState, Parser};

/// So many hundred steps are enough for any text that is not made to be slow.
const MOST_STEPS: usize = 3_000;
/// The text is handed out in pieces of this size, so that what is read again and again is counted.
const PIECE: usize = 512;
/// So many pieces are enough, too.
const MOST_PIECES: usize = 40_000;
/// Every pipe makes the parser look back at all before.
const MOST_PIPES: usize = 2_000;
/// The tree is walked by recursion, lists aside.
const DEEPEST: usize = 100;

pub(super) fn find(text: &str) -> Result<Finding, Doubt> {
    if text.matches('|').count() - 2 * text.matches("||").count() > MOST_PIPES {
        return Err(Doubt::Depth);
    }
    let mut parser = Parser::new();
    let language = tree_sitter_bash::LANGUAGE.into();
    parser.set_language(&language).map_err(|_| Doubt::Unknown)?;
    let plain = plain(text);
    let pieces = Cell::new(0);
    let mut steps = 0;
    let mut progress = |_: &ParseState| {
        steps += 1;
        match steps < MOST_STEPS && pieces.get() < MOST_PIECES {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut bytes = |at: usize, _| {
        pieces.set(pieces.get() + 1);
        let end = if pieces.get() < MOST_PIECES { plain.len().min(at + PIECE) } else { at };
        plain.get(at..end).unwrap_or_default()
    };
    let tree = parser.parse_with_options(&mut bytes, None, Some(options)).ok_or(Doubt::Depth)?;
    if pieces.get() >= MOST_PIECES {
        return Err(Doubt::Depth);
    }
    let root = tree.root_node();
    let mut walk = Walk { text, finding: Finding::default() };
    if root.has_error() {
        walk.finding.doubt(Doubt::Broken);
    }
    walk.body(root, Place::default());
    Ok(walk.finding)
}

/// The text as the parser is given it, byte for byte in the same places. Its scanner looks
/// characters up in a table that ends with ASCII, and reads beyond it. To bash they are all parts
/// of words and of no name, as `%` is.
fn plain(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'%' }).collect()
}

struct Walk<'t> {
    text: &'t str,
    finding: Finding,
}

/// A statement of a chain, with what belongs to it though the tree has it outside.
#[derive(Default)]
struct Link<'n> {
    node: Option<Node<'n>>,
    /// True if a pipe stands before it.
    piped: bool,
    words: Vec<Word>,
    redirects: Vec<Redirect>,
    /// Where they begin and end.
    start: usize,
    end: usize,
}

impl<'t> Walk<'t> {
    fn source(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// The statements of a program, a group or a branch, one behind the other.
    fn body(&mut self, node: Node<'_>, place: Place) {
        let mut cursor = node.walk();
        let mut children = node.children(&mut cursor).peekable();
        while let Some(child) = children.next() {
            if child.is_named() {
                match children.peek().is_some_and(|next| next.kind() == "&") {
                    true => {
                        self.finding.doubt(Doubt::Background);
                        self.scoped(child, place);
                    }
                    false => self.statement(child, place),
                }
            } else if !matches!(child.kind(), ";" | "\n" | "&" | "(" | ")" | "{" | "}") {
                self.finding.doubt(Doubt::Unknown);
            }
        }
    }

    fn scoped(&mut self, node: Node<'_>, place: Place) {
        self.finding.items.push(super::Item::Enter);
        self.statement(node, place);
        self.finding.items.push(super::Item::Leave);
    }

    /// The tree mixes up what binds closer, `|` or `&&` or a redirection, so a statement is laid
    /// out flat and put together anew.
    fn statement(&mut self, node: Node<'_>, place: Place) {
        if place.depth > DEEPEST {
            return self.finding.doubt(Doubt::Depth);
        }
        let place = place.deeper();
        let mut links = Vec::new();
        self.flatten(node, &mut links, place);
        let mut links = links.into_iter().peekable();
        while let Some(link) = links.next() {
            let piped = link.piped;
            let place = if piped { place.behind_a_pipe() } else { place };
            if piped || links.peek().is_some_and(|next| next.piped) {
                self.finding.items.push(super::Item::Enter);
                self.link(link, place);
                self.finding.items.push(super::Item::Leave);
            } else {
                self.link(link, place);
            }
        }
    }

    /// Lists lean to the left, as deep as they are long, so going left is no recursion.
    fn flatten<'n>(&mut self, node: Node<'n>, links: &mut Vec<Link<'n>>, place: Place) {
        if place.depth > DEEPEST {
            return self.finding.doubt(Doubt::Depth);
        }
        let mut rights = Vec::new();
        let mut left = Some(node);
        while let Some(node) = left.filter(|node| is_chain(*node)) {
            let mut cursor = node.walk();
            let children: Vec<_> = node.children(&mut cursor).collect();
            left = children.first().copied().filter(|first| !is_redirect(*first));
            rights.extend(children.into_iter().skip(usize::from(left.is_some())).rev());
        }
        links.push(Link { node: left, ..Link::default() });
        let mut piped = false;
        for right in rights.into_iter().rev() {
            match right.kind() {
                "&&" | "||" => piped = false,
                "|" => piped = true,
                "comment" => self.finding.doubt(Doubt::Comment),
                "file_redirect" | "herestring_redirect" => {
                    let mut link = links.pop().unwrap_or_default();
                    if link.end == 0 {
                        link.start = right.start_byte();
                    }
                    self.redirect(right, &mut link.words, &mut link.redirects, place);
                    link.end = right.end_byte();
                    links.push(link);
                }
                "heredoc_redirect" => self.document(right, links, place),
                _ if right.is_named() => {
                    let link = Link { node: Some(right), piped, ..Link::default() };
                    self.open(right, link, links, place);
                }
                _ => {
                    piped = true;
                    self.finding.doubt(Doubt::Descriptor);
                }
            }
        }
    }

    /// A statement that may itself be a chain; then its first link takes its place.
    fn open<'n>(
        &mut self,
        node: Node<'n>,
        link: Link<'n>,
        links: &mut Vec<Link<'n>>,
        place: Place,
    ) {
        if is_chain(node) {
            let mut inner = Vec::new();
            self.flatten(node, &mut inner, place.deeper());
            if let Some(first) = inner.first_mut() {
                first.piped = link.piped;
            }
            links.extend(inner);
        } else {
            links.push(link);
        }
    }

    fn link(&mut self, link: Link<'_>, place: Place) {
        let Some(node) = link.node else {
            let Link { words, redirects, start, end, .. } = link;
            let text = self.text.get(start..end).unwrap_or_default().to_owned();
            let piped = place.piped;
            return self.finding.push(Segment {
                text,
                words,
                redirects,
                piped,
                ..Segment::default()
            });
        };
        match node.kind() {
            "command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments" => self.simple(node, link, place),
            "test_command" if !self.source(node).starts_with("[[") => {
                self.simple(node, link, place);
            }
            "negated_command" => {
                let mut cursor = node.walk();
                let inner: Vec<_> = node.named_children(&mut cursor).collect();
                match inner.as_slice() {
                    [inner] => self.link(Link { node: Some(*inner), ..link }, place.deeper()),
                    _ => {
                        self.finding.doubt(Doubt::Unknown);
                        self.group(node, link, place);
                    }
                }
            }
            _ => self.group(node, link, place),
        }
    }

    /// Anything that has statements within. Its redirections stand before it.
    fn group(&mut self, node: Node<'_>, link: Link<'_>, place: Place) {
        let Link { words, redirects, end, .. } = link;
        if !words.is_empty() {
            self.finding.doubt(Doubt::Unknown);
        }
        let end = end.max(node.end_byte());
        let text = self.text.get(node.start_byte()..end).unwrap_or_default().to_owned();
        let piped = place.piped;
        self.finding.push(Segment { text, words, redirects, piped, ..Segment::default() });
        match node.kind() {
            "subshell" => {
                self.finding.items.push(super::Item::Enter);
                self.body(node, place);
                self.finding.items.push(super::Item::Leave);
            }
            "compound_statement" if self.source(node).starts_with('{') => self.body(node, place),
            "function_definition" => {
                self.finding.doubt(Doubt::Function);
                self.finding.items.push(super::Item::Enter);
                self.descend(node, Place { piped: false, ..place });
                self.finding.items.push(super::Item::Leave);
            }
            _ => {
                self.finding.doubt(kind(node));
                self.descend(node, place);
            }
        }
    }

    /// A here-document, with everything else that stands on its line.
    fn document<'n>(&mut self, node: Node<'n>, links: &mut Vec<Link<'n>>, place: Place) {
        let (mut mark, mut body, mut tabs) = ("", "", false);
        let mut link = links.pop().unwrap_or_default();
        let at = link.redirects.len();
        if link.end == 0 {
            link.start = node.start_byte();
        }
        let mut followers = Vec::new();
        let mut piped = false;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "<<" | "\n" | "heredoc_end" | "file_descriptor" => {}
                "&&" | "||" => piped = false,
                "<<-" => tabs = true,
                "heredoc_start" => {
                    mark = self.source(child);
                    link.end = child.end_byte();
                }
                "heredoc_body" => {
                    body = self.source(child);
                    self.descend(child, place);
                }
                "file_redirect" | "herestring_redirect" if followers.is_empty() => {
                    self.redirect(child, &mut link.words, &mut link.redirects, place);
                    link.end = child.end_byte();
                }
                "pipeline" => {
                    let mut cursor = child.walk();
                    for part in child.children(&mut cursor) {
                        match part.kind() {
                            "|" => piped = true,
                            _ if part.is_named() => followers.push((part, piped)),
                            _ => self.finding.doubt(Doubt::Descriptor),
                        }
                    }
                }
                _ if is_literal(child) && followers.is_empty() => {
                    let word = self.word(child, Role::Argument, place);
                    link.words.push(word);
                    link.end = child.end_byte();
                }
                _ if child.is_named() => followers.push((child, piped)),
                _ => self.finding.doubt(Doubt::Unknown),
            }
        }
        let quoted = mark.contains(['\'', '"', '\\']);
        if !quoted && body.contains(['$', '`', '\\']) {
            self.finding.doubt(Doubt::Document);
        }
        let body = match tabs {
            true => body.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect(),
            false => body.to_owned(),
        };
        let target = Word::Plain(mark.replace(['\'', '"', '\\'], ""));
        let kind = RedirectKind::Document { body, quoted };
        link.redirects.insert(at, Redirect { kind, target });
        links.push(link);
        for (node, piped) in followers {
            let link = Link { node: Some(node), piped, ..Link::default() };
            self.open(node, link, links, place);
        }
    }

    /// Looks for statements in anything at all.
    fn descend(&mut self, node: Node<'_>, place: Place) {
        if place.depth > DEEPEST {
            return self.finding.doubt(Doubt::Depth);
        }
        let place = place.deeper();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "command_substitution" | "process_substitution" | "function_definition" => {
                    self.finding.doubt(kind(child));
                    self.finding.items.push(super::Item::Enter);
                    self.descend(child, Place { piped: false, ..place });
                    self.finding.items.push(super::Item::Leave);
                }
                "command"
                | "declaration_command"
                | "unset_command"
                | "variable_assignment"
                | "variable_assignments"
                | "test_command"
                | "redirected_statement"
                | "list"
                | "pipeline"
                | "negated_command"
                | "subshell"
                | "compound_statement" => {
                    self.statement(child, place);
                }
                _ => {
                    if let Some(doubt) = odd(child) {
                        self.finding.doubt(doubt);
                    }
                    self.descend(child, place);
                }
            }
        }
    }
}

fn is_chain(node: Node<'_>) -> bool {
    matches!(node.kind(), "list" | "pipeline" | "redirected_statement")
}

fn is_redirect(node: Node<'_>) -> bool {
    matches!(node.kind(), "file_redirect" | "herestring_redirect" | "heredoc_redirect")
}

/// A word, or a part of one.
fn is_literal(node: Node<'_>) -> bool {
    matches!(
        node.kind(),
        "word"
            | "number"
            | "string"
            | "raw_string"
            | "concatenation"
            | "ansi_c_string"
            | "translated_string"
            | "expansion"
            | "simple_expansion"
            | "command_substitution"
            | "process_substitution"
            | "arithmetic_expansion"
            | "brace_expression"
    )
}

/// What a node that is no plain statement is called.
fn kind(node: Node<'_>) -> Doubt {
    odd(node).unwrap_or(Doubt::Unknown)
}

fn odd(node: Node<'_>) -> Option<Doubt> {
    Some(match node.kind() {
        "comment" => Doubt::Comment,
        "ERROR" => Doubt::Broken,
        "for_statement" | "c_style_for_statement" | "while_statement" => Doubt::Loop,
        "if_statement" => Doubt::Condition,
        "case_statement" => Doubt::Case,
        "function_definition" => Doubt::Function,
        "compound_statement" | "arithmetic_expansion" => Doubt::Arithmetic,
        "command_substitution" => Doubt::Substitution,
        "process_substitution" => Doubt::Process,
        "expansion" | "simple_expansion" => Doubt::Variable,
        "ansi_c_string" | "translated_string" => Doubt::Escapes,
        "brace_expression" => Doubt::Braces,
        "array" | "subscript" => Doubt::Array,
        _ => return None,
    })
}
