//! Parses a command line with tree-sitter-bash and reduces the result.
//!
//! Its tree keeps every token with its position, but the grammar is made for syntax highlighting:
//! some texts lose commands without an error. A node of an unknown kind is therefore an ambiguity,
//! and the other parser must agree.

mod commands;

use super::ambiguity_reasons::ShellAmbiguity;
use super::parse_result::ShellParseResult;
use super::unquoted_word::ShellWordRole;
use super::{Redirect, RedirectKind, ShellStatementContext, ShellWord, SimpleShellCommand};
use std::cell::Cell;
use std::ops::ControlFlow;
use tree_sitter::{Node, ParseOptions, ParseState, Parser};

/// Limits the progress callbacks, one per hundred parser steps. Enough for any text that is not
/// built to be slow.
const MAX_PARSER_STEPS: usize = 3_000;
/// The chunk size in which the parser receives the text, so that repeated reading is counted.
const INPUT_CHUNK_BYTES: usize = 512;
/// Limits the chunks handed to the parser. Enough for any text that is not built to be slow.
const MAX_INPUT_CHUNKS: usize = 40_000;
/// Limits pipes, because the parser looks back over the whole text at each one.
const MAX_PIPES: usize = 2_000;
/// Limits the recursive walk of the tree; lists are walked without recursion.
const MAX_TREE_DEPTH: usize = 100;

pub(super) fn parse_with_tree_sitter(text: &str) -> Result<ShellParseResult, ShellAmbiguity> {
    if text.matches('|').count() - 2 * text.matches("||").count() > MAX_PIPES {
        return Err(ShellAmbiguity::TooDeep);
    }
    let mut parser = Parser::new();
    let language = tree_sitter_bash::LANGUAGE.into();
    parser.set_language(&language).map_err(|_| ShellAmbiguity::Unknown)?;
    let ascii = to_ascii_bytes(text);
    let chunk_count = Cell::new(0);
    let mut steps = 0;
    let mut progress = |_: &ParseState| {
        steps += 1;
        match steps < MAX_PARSER_STEPS && chunk_count.get() < MAX_INPUT_CHUNKS {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    };
    let options = ParseOptions::new().progress_callback(&mut progress);
    let mut read_chunk = |offset: usize, _| {
        chunk_count.set(chunk_count.get() + 1);
        let end = if chunk_count.get() < MAX_INPUT_CHUNKS {
            ascii.len().min(offset + INPUT_CHUNK_BYTES)
        } else {
            offset
        };
        ascii.get(offset..end).unwrap_or_default()
    };
    let tree = parser
        .parse_with_options(&mut read_chunk, None, Some(options))
        .ok_or(ShellAmbiguity::TooDeep)?;
    if chunk_count.get() >= MAX_INPUT_CHUNKS {
        return Err(ShellAmbiguity::TooDeep);
    }
    let root = tree.root_node();
    let mut walk = TreeSitterWalk { text, result: ShellParseResult::default() };
    if root.has_error() {
        walk.result.add_ambiguity(ShellAmbiguity::SyntaxError);
    }
    walk.walk_body(root, ShellStatementContext::default());
    Ok(walk.result)
}

/// Replaces non-ASCII bytes with `%`, keeping all positions. The scanner of tree-sitter-bash looks
/// characters up in a table that ends with ASCII and reads beyond it. To bash, all these characters
/// are part of a word and of no name, like `%`.
fn to_ascii_bytes(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'%' }).collect()
}

struct TreeSitterWalk<'t> {
    text: &'t str,
    result: ShellParseResult,
}

/// A statement of a chain, with the words and redirections that the tree places outside it.
#[derive(Default)]
struct ChainedStatement<'n> {
    node: Option<Node<'n>>,
    has_piped_input: bool,
    words: Vec<ShellWord>,
    redirects: Vec<Redirect>,
    /// The byte range of these words and redirections.
    start: usize,
    end: usize,
}

impl<'t> TreeSitterWalk<'t> {
    fn node_text(&self, node: Node<'_>) -> &'t str {
        self.text.get(node.byte_range()).unwrap_or_default()
    }

    /// Walks the statements of a program, group or branch in order; one before `&` gets a scope of
    /// its own.
    fn walk_body(&mut self, node: Node<'_>, context: ShellStatementContext) {
        let mut cursor = node.walk();
        let mut children = node.children(&mut cursor).peekable();
        while let Some(child) = children.next() {
            if child.is_named() {
                match children.peek().is_some_and(|next| next.kind() == "&") {
                    true => {
                        self.result.add_ambiguity(ShellAmbiguity::Background);
                        self.walk_in_scope(child, context);
                    }
                    false => self.walk_statement(child, context),
                }
            } else if !matches!(child.kind(), ";" | "\n" | "&" | "(" | ")" | "{" | "}") {
                self.result.add_ambiguity(ShellAmbiguity::Unknown);
            }
        }
    }

    fn walk_in_scope(&mut self, node: Node<'_>, context: ShellStatementContext) {
        self.result.items.push(super::CommandOrScopeBoundary::EnterScope);
        self.walk_statement(node, context);
        self.result.items.push(super::CommandOrScopeBoundary::LeaveScope);
    }

    /// Walks a statement. The tree confuses the precedence of `|`, `&&` and redirections, so the
    /// statement is flattened and reassembled.
    fn walk_statement(&mut self, node: Node<'_>, context: ShellStatementContext) {
        if context.depth > MAX_TREE_DEPTH {
            return self.result.add_ambiguity(ShellAmbiguity::TooDeep);
        }
        let context = context.nested();
        let mut links = Vec::new();
        self.flatten_chain(node, &mut links, context);
        let mut links = links.into_iter().peekable();
        while let Some(link) = links.next() {
            let has_piped_input = link.has_piped_input;
            let context = if has_piped_input { context.after_pipe() } else { context };
            if has_piped_input || links.peek().is_some_and(|next| next.has_piped_input) {
                self.result.items.push(super::CommandOrScopeBoundary::EnterScope);
                self.walk_chained(link, context);
                self.result.items.push(super::CommandOrScopeBoundary::LeaveScope);
            } else {
                self.walk_chained(link, context);
            }
        }
    }

    /// Flattens a chain of statements. Lists nest to the left, as deep as they are long, so the
    /// left side is walked without recursion.
    fn flatten_chain<'n>(
        &mut self,
        node: Node<'n>,
        links: &mut Vec<ChainedStatement<'n>>,
        context: ShellStatementContext,
    ) {
        if context.depth > MAX_TREE_DEPTH {
            return self.result.add_ambiguity(ShellAmbiguity::TooDeep);
        }
        let mut right_nodes = Vec::new();
        let mut left = Some(node);
        while let Some(node) = left.filter(|node| is_chain(*node)) {
            let mut cursor = node.walk();
            let children: Vec<_> = node.children(&mut cursor).collect();
            left = children.first().copied().filter(|first| !is_redirect(*first));
            right_nodes.extend(children.into_iter().skip(usize::from(left.is_some())).rev());
        }
        links.push(ChainedStatement { node: left, ..ChainedStatement::default() });
        let mut has_piped_input = false;
        for right in right_nodes.into_iter().rev() {
            match right.kind() {
                "&&" | "||" => has_piped_input = false,
                "|" => has_piped_input = true,
                "comment" => self.result.add_ambiguity(ShellAmbiguity::Comment),
                "file_redirect" | "herestring_redirect" => {
                    let mut link = links.pop().unwrap_or_default();
                    if link.end == 0 {
                        link.start = right.start_byte();
                    }
                    self.parse_redirect(right, &mut link.words, &mut link.redirects, context);
                    link.end = right.end_byte();
                    links.push(link);
                }
                "heredoc_redirect" => self.walk_heredoc(right, links, context),
                _ if right.is_named() => {
                    let link = ChainedStatement {
                        node: Some(right),
                        has_piped_input,
                        ..ChainedStatement::default()
                    };
                    self.push_statement(right, link, links, context);
                }
                _ => {
                    has_piped_input = true;
                    self.result.add_ambiguity(ShellAmbiguity::UnusualDescriptor);
                }
            }
        }
    }

    /// Adds a statement. If it is itself a chain, its first link takes its place.
    fn push_statement<'n>(
        &mut self,
        node: Node<'n>,
        link: ChainedStatement<'n>,
        links: &mut Vec<ChainedStatement<'n>>,
        context: ShellStatementContext,
    ) {
        if is_chain(node) {
            let mut inner = Vec::new();
            self.flatten_chain(node, &mut inner, context.nested());
            if let Some(first) = inner.first_mut() {
                first.has_piped_input = link.has_piped_input;
            }
            links.extend(inner);
        } else {
            links.push(link);
        }
    }

    fn walk_chained(&mut self, link: ChainedStatement<'_>, context: ShellStatementContext) {
        let Some(node) = link.node else {
            let ChainedStatement { words, redirects, start, end, .. } = link;
            let text = self.text.get(start..end).unwrap_or_default().to_owned();
            let has_piped_input = context.has_piped_input;
            return self.result.push_segment(SimpleShellCommand {
                text,
                words,
                redirects,
                has_piped_input,
                ..SimpleShellCommand::default()
            });
        };
        match node.kind() {
            "command"
            | "declaration_command"
            | "unset_command"
            | "variable_assignment"
            | "variable_assignments" => self.walk_simple_command(node, link, context),
            "test_command" if !self.node_text(node).starts_with("[[") => {
                self.walk_simple_command(node, link, context);
            }
            "negated_command" => {
                let mut cursor = node.walk();
                let inner: Vec<_> = node.named_children(&mut cursor).collect();
                match inner.as_slice() {
                    [inner] => self.walk_chained(
                        ChainedStatement { node: Some(*inner), ..link },
                        context.nested(),
                    ),
                    _ => {
                        self.result.add_ambiguity(ShellAmbiguity::Unknown);
                        self.walk_group(node, link, context);
                    }
                }
            }
            _ => self.walk_group(node, link, context),
        }
    }

    /// Walks a node that contains statements. Its redirections become a segment before it.
    fn walk_group(
        &mut self,
        node: Node<'_>,
        link: ChainedStatement<'_>,
        context: ShellStatementContext,
    ) {
        let ChainedStatement { words, redirects, end, .. } = link;
        if !words.is_empty() {
            self.result.add_ambiguity(ShellAmbiguity::Unknown);
        }
        let end = end.max(node.end_byte());
        let text = self.text.get(node.start_byte()..end).unwrap_or_default().to_owned();
        let has_piped_input = context.has_piped_input;
        self.result.push_segment(SimpleShellCommand {
            text,
            words,
            redirects,
            has_piped_input,
            ..SimpleShellCommand::default()
        });
        match node.kind() {
            "subshell" => {
                self.result.items.push(super::CommandOrScopeBoundary::EnterScope);
                self.walk_body(node, context);
                self.result.items.push(super::CommandOrScopeBoundary::LeaveScope);
            }
            "compound_statement" if self.node_text(node).starts_with('{') => {
                self.walk_body(node, context)
            }
            "function_definition" => {
                self.result.add_ambiguity(ShellAmbiguity::FunctionDefinition);
                self.result.items.push(super::CommandOrScopeBoundary::EnterScope);
                self.search_statements(
                    node,
                    ShellStatementContext { has_piped_input: false, ..context },
                );
                self.result.items.push(super::CommandOrScopeBoundary::LeaveScope);
            }
            _ => {
                self.result.add_ambiguity(ambiguity_or_unknown(node));
                self.search_compound(node, context);
            }
        }
    }

    /// Converts a here-document, with everything else on its line.
    fn walk_heredoc<'n>(
        &mut self,
        node: Node<'n>,
        links: &mut Vec<ChainedStatement<'n>>,
        context: ShellStatementContext,
    ) {
        let (mut delimiter, mut body, mut strips_tabs) = ("", "", false);
        let mut link = links.pop().unwrap_or_default();
        let redirect_index = link.redirects.len();
        if link.end == 0 {
            link.start = node.start_byte();
        }
        let mut followers = Vec::new();
        let mut has_piped_input = false;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "<<" | "\n" | "heredoc_end" | "file_descriptor" => {}
                "&&" | "||" => has_piped_input = false,
                "<<-" => strips_tabs = true,
                "heredoc_start" => {
                    delimiter = self.node_text(child);
                    link.end = child.end_byte();
                }
                "heredoc_body" => {
                    body = self.node_text(child);
                    self.search_statements(child, context);
                }
                "file_redirect" | "herestring_redirect" if followers.is_empty() => {
                    self.parse_redirect(child, &mut link.words, &mut link.redirects, context);
                    link.end = child.end_byte();
                }
                "pipeline" => {
                    let mut cursor = child.walk();
                    for part in child.children(&mut cursor) {
                        match part.kind() {
                            "|" => has_piped_input = true,
                            _ if part.is_named() => followers.push((part, has_piped_input)),
                            _ => self.result.add_ambiguity(ShellAmbiguity::UnusualDescriptor),
                        }
                    }
                }
                _ if is_literal(child) && followers.is_empty() => {
                    let word = self.parse_word(child, ShellWordRole::Argument, context);
                    link.words.push(word);
                    link.end = child.end_byte();
                }
                _ if child.is_named() => followers.push((child, has_piped_input)),
                _ => self.result.add_ambiguity(ShellAmbiguity::Unknown),
            }
        }
        let quoted = delimiter.contains(['\'', '"', '\\']);
        if !quoted && body.contains(['$', '`', '\\']) {
            self.result.add_ambiguity(ShellAmbiguity::HeredocExpansion);
        }
        let body = match strips_tabs {
            true => body.split_inclusive('\n').map(|line| line.trim_start_matches('\t')).collect(),
            false => body.to_owned(),
        };
        let target = ShellWord::Plain(delimiter.replace(['\'', '"', '\\'], ""));
        let kind = RedirectKind::HereDocument { body, quoted };
        link.redirects.insert(redirect_index, Redirect { kind, target });
        links.push(link);
        for (node, has_piped_input) in followers {
            let link = ChainedStatement {
                node: Some(node),
                has_piped_input,
                ..ChainedStatement::default()
            };
            self.push_statement(node, link, links, context);
        }
    }

    /// Searches a node for statements. For a `for` loop, also adds its variable.
    fn search_compound(&mut self, node: Node<'_>, context: ShellStatementContext) {
        let variable = node.child_by_field_name("variable");
        let Some(variable) = variable.filter(|_| node.kind() == "for_statement") else {
            return self.search_statements(node, context);
        };
        let mut cursor = node.walk();
        let values: Vec<Node<'_>> = node.children_by_field_name("value", &mut cursor).collect();
        let values = values
            .into_iter()
            .map(|value| self.parse_word(value, ShellWordRole::Argument, context.nested()))
            .collect();
        let name = self.node_text(variable);
        self.result.push_loop_variable(name, values);
        if let Some(body) = node.child_by_field_name("body") {
            self.search_statements(body, context.nested());
        }
    }

    /// Searches any node for statements.
    fn search_statements(&mut self, node: Node<'_>, context: ShellStatementContext) {
        if context.depth > MAX_TREE_DEPTH {
            return self.result.add_ambiguity(ShellAmbiguity::TooDeep);
        }
        let context = context.nested();
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            match child.kind() {
                "command_substitution" | "process_substitution" | "function_definition" => {
                    self.result.add_ambiguity(ambiguity_or_unknown(child));
                    self.result.items.push(super::CommandOrScopeBoundary::EnterScope);
                    self.search_statements(
                        child,
                        ShellStatementContext { has_piped_input: false, ..context },
                    );
                    self.result.items.push(super::CommandOrScopeBoundary::LeaveScope);
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
                    self.walk_statement(child, context);
                }
                _ => {
                    if let Some(ambiguity) = node_ambiguity(child) {
                        self.result.add_ambiguity(ambiguity);
                    }
                    self.search_compound(child, context);
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

/// Returns true for a word or a part of one.
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

/// Returns the ambiguity for a node that is not a plain statement.
fn ambiguity_or_unknown(node: Node<'_>) -> ShellAmbiguity {
    node_ambiguity(node).unwrap_or(ShellAmbiguity::Unknown)
}

fn node_ambiguity(node: Node<'_>) -> Option<ShellAmbiguity> {
    Some(match node.kind() {
        "comment" => ShellAmbiguity::Comment,
        "ERROR" => ShellAmbiguity::SyntaxError,
        "for_statement" | "c_style_for_statement" | "while_statement" => ShellAmbiguity::Loop,
        "if_statement" => ShellAmbiguity::IfStatement,
        "test_command" => ShellAmbiguity::DoubleBracketTest,
        "case_statement" => ShellAmbiguity::CaseStatement,
        "function_definition" => ShellAmbiguity::FunctionDefinition,
        "compound_statement" | "arithmetic_expansion" => ShellAmbiguity::Arithmetic,
        "command_substitution" => ShellAmbiguity::CommandSubstitution,
        "process_substitution" => ShellAmbiguity::ProcessSubstitution,
        "expansion" | "simple_expansion" => ShellAmbiguity::Variable,
        "ansi_c_string" | "translated_string" => ShellAmbiguity::DollarQuotes,
        "brace_expression" => ShellAmbiguity::BraceExpansion,
        "array" | "subscript" => ShellAmbiguity::Array,
        _ => return None,
    })
}
