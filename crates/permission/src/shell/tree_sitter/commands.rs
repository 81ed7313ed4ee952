//! Converts simple commands, words and redirections from the tree of tree-sitter-bash.

use super::super::ambiguity_reasons::ShellAmbiguity;
use super::super::parse_result::is_expansion_safe;
use super::super::unquoted_word::{CharQuoting, ShellWordRole, UnquotedWord};
use super::super::{Redirect, RedirectKind, ShellStatementContext, ShellWord, SimpleShellCommand};
use super::{ChainedStatement, MAX_TREE_DEPTH, TreeSitterWalk, ambiguity_or_unknown, is_literal};
use tree_sitter::Node;

impl TreeSitterWalk<'_> {
    /// Converts a command that contains no commands except in its words.
    pub(super) fn walk_simple_command(
        &mut self,
        node: Node<'_>,
        link: ChainedStatement<'_>,
        context: ShellStatementContext,
    ) {
        let mut segment = SimpleShellCommand {
            has_piped_input: context.has_piped_input,
            ..SimpleShellCommand::default()
        };
        let end = match node.kind() {
            "variable_assignment" => {
                self.parse_assignment(node, &mut segment, context);
                node.end_byte()
            }
            "test_command" => {
                self.collect_test_words(node, &mut segment.words, context);
                node.end_byte()
            }
            _ => self.collect_parts(node, &mut segment, context),
        };
        segment.words.extend(link.words);
        segment.redirects.extend(link.redirects);
        let end = end.max(link.end);
        segment.text = self.text.get(node.start_byte()..end).unwrap_or_default().to_owned();
        let is_time_keyword =
            |word: &ShellWord| matches!(word, ShellWord::Plain(word) if word == "time");
        if segment.assignments.is_empty() && segment.words.first().is_some_and(is_time_keyword) {
            self.result.add_ambiguity(ShellAmbiguity::TimeKeyword);
            segment.words.remove(0);
        }
        self.result.push_segment(segment);
    }

    /// Collects the parts of a command in order and returns the byte position of its end.
    fn collect_parts(
        &mut self,
        node: Node<'_>,
        segment: &mut SimpleShellCommand,
        context: ShellStatementContext,
    ) -> usize {
        let mut end = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            // Two adjacent words are one word, even if the tree has two nodes.
            if child.start_byte() == end && end > node.start_byte() {
                self.result.add_ambiguity(ShellAmbiguity::Unknown);
            }
            end = child.end_byte();
            match child.kind() {
                "variable_assignment" if node.kind() == "declaration_command" => {
                    let word = self.parse_declared_assignment(child, context);
                    segment.words.push(word);
                }
                "variable_assignment" => self.parse_assignment(child, segment, context),
                "file_redirect" | "herestring_redirect" => {
                    self.parse_redirect(child, &mut segment.words, &mut segment.redirects, context);
                }
                "command_name" => {
                    let inner = child.child(0).unwrap_or(child);
                    let word = self.parse_word(inner, ShellWordRole::Argument, context);
                    segment.words.push(word);
                }
                "variable_name" => segment.words.push(self.token_word(child)),
                "comment" => self.result.add_ambiguity(ShellAmbiguity::Comment),
                _ if is_literal(child) => {
                    let word = self.parse_word(child, ShellWordRole::Argument, context);
                    segment.words.push(word);
                }
                _ if child.is_named() => {
                    self.result.add_ambiguity(ambiguity_or_unknown(child));
                    segment.words.push(ShellWord::Opaque(self.node_text(child).to_owned()));
                    self.search_statements(child, context);
                }
                _ => segment.words.push(self.token_word(child)),
            }
        }
        end
    }

    /// Converts a literal token: an operator of a test, a keyword, a lone dollar.
    fn token_word(&mut self, node: Node<'_>) -> ShellWord {
        let mut unquoted = UnquotedWord::default();
        unquoted.push_text(self.node_text(node), CharQuoting::Unquoted);
        unquoted.to_shell_word(self.node_text(node), ShellWordRole::Argument, &mut self.result)
    }

    /// Collects the words of `[ … ]`, which the tree splits into expressions although it is an
    /// ordinary command.
    fn collect_test_words(
        &mut self,
        node: Node<'_>,
        words: &mut Vec<ShellWord>,
        context: ShellStatementContext,
    ) {
        if context.depth > MAX_TREE_DEPTH {
            return self.result.add_ambiguity(ShellAmbiguity::TooDeep);
        }
        let mut end = None;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if end == Some(child.start_byte()) {
                self.result.add_ambiguity(ShellAmbiguity::Unknown);
            }
            end = Some(child.end_byte());
            match child.kind() {
                "comment" => self.result.add_ambiguity(ShellAmbiguity::Comment),
                _ if is_literal(child) => {
                    let word = self.parse_word(child, ShellWordRole::Argument, context);
                    words.push(word);
                }
                "unary_expression" | "binary_expression" => {
                    self.collect_test_words(child, words, context.nested())
                }
                "test_operator" | "[" | "]" | "!" | "=" | "==" | "!=" | "-a" | "-o" => {
                    words.push(self.token_word(child));
                }
                _ => {
                    self.result.add_ambiguity(ShellAmbiguity::Unknown);
                    words.push(ShellWord::Opaque(self.node_text(child).to_owned()));
                    self.search_statements(child, context);
                }
            }
        }
    }

    fn parse_assignment(
        &mut self,
        node: Node<'_>,
        segment: &mut SimpleShellCommand,
        context: ShellStatementContext,
    ) {
        let mut name = String::new();
        let mut value = ShellWord::Plain(String::new());
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_name" if name.is_empty() => name = self.node_text(child).to_owned(),
                "=" => {}
                "+=" => self.result.add_ambiguity(ShellAmbiguity::AppendAssignment),
                _ if is_literal(child) => {
                    value = self.parse_word(child, ShellWordRole::AssignmentValue, context)
                }
                _ => {
                    self.result.add_ambiguity(ambiguity_or_unknown(child));
                    value = ShellWord::Opaque(self.node_text(child).to_owned());
                    self.search_statements(child, context);
                }
            }
        }
        segment.assignments.push((name, value));
    }

    /// Converts an assignment that is an argument of `export` and similar commands.
    fn parse_declared_assignment(
        &mut self,
        node: Node<'_>,
        context: ShellStatementContext,
    ) -> ShellWord {
        let mut unquoted = UnquotedWord::default();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_name" | "=" => {
                    unquoted.push_text(self.node_text(child), CharQuoting::Unquoted)
                }
                _ => self.unquote_node(child, &mut unquoted, context),
            }
        }
        unquoted.to_shell_word(self.node_text(node), ShellWordRole::Argument, &mut self.result)
    }

    /// Converts a redirection. The tree treats arguments after a redirection as further files, so
    /// they are added to `words`.
    pub(super) fn parse_redirect(
        &mut self,
        node: Node<'_>,
        words: &mut Vec<ShellWord>,
        redirects: &mut Vec<Redirect>,
        context: ShellStatementContext,
    ) {
        let (mut operator, mut target, mut end) = ("", None, None);
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if is_literal(child) {
                let is_here_string = operator == "<<<";
                let role = if is_here_string && target.is_none() {
                    ShellWordRole::HereString
                } else {
                    ShellWordRole::Argument
                };
                if target.is_some() && end == Some(child.start_byte()) {
                    self.result.add_ambiguity(ShellAmbiguity::Unknown);
                }
                let word = self.parse_word(child, role, context);
                match target {
                    None => target = Some(word),
                    Some(_) => words.push(word),
                }
            } else if child.kind() == "comment" {
                self.result.add_ambiguity(ShellAmbiguity::Comment);
            } else if child.is_named() {
                if child.kind() != "file_descriptor" {
                    self.result.add_ambiguity(ShellAmbiguity::Unknown);
                }
            } else {
                operator = self.node_text(child);
            }
            end = Some(child.end_byte());
        }
        match (operator, target) {
            ("<&-" | ">&-", None) => {}
            // A closing has no target, so the next word is an argument.
            ("<&-" | ">&-", Some(word)) => words.push(word),
            (_, None) => self.result.add_ambiguity(ShellAmbiguity::SyntaxError),
            ("<", Some(target)) => redirects.push(Redirect { kind: RedirectKind::Read, target }),
            (">" | ">>" | ">|" | "&>" | "&>>", Some(target)) => {
                redirects.push(Redirect { kind: RedirectKind::Write, target });
            }
            ("<<<", Some(target)) => {
                redirects.push(Redirect { kind: RedirectKind::HereString, target })
            }
            ("<&" | ">&", Some(target)) => match &target {
                ShellWord::Plain(word) if is_descriptor_copy(word) => {}
                ShellWord::Plain(word) if operator == ">&" && is_expansion_safe(word) => {
                    redirects.push(Redirect { kind: RedirectKind::Write, target });
                }
                _ => {
                    self.result.add_ambiguity(ShellAmbiguity::UnusualDescriptor);
                    redirects.push(Redirect { kind: RedirectKind::Write, target });
                }
            },
            (_, Some(target)) => {
                self.result.add_ambiguity(ShellAmbiguity::Unknown);
                redirects.push(Redirect { kind: RedirectKind::Write, target });
            }
        }
    }

    pub(super) fn parse_word(
        &mut self,
        node: Node<'_>,
        role: ShellWordRole,
        context: ShellStatementContext,
    ) -> ShellWord {
        let mut unquoted = UnquotedWord::default();
        self.unquote_node(node, &mut unquoted, context);
        unquoted.to_shell_word(self.node_text(node), role, &mut self.result)
    }

    /// Removes the quotes from one piece of a word.
    fn unquote_node(
        &mut self,
        node: Node<'_>,
        unquoted: &mut UnquotedWord,
        context: ShellStatementContext,
    ) {
        let source = self.node_text(node);
        match node.kind() {
            "word" | "number" if node.named_child_count() == 0 => unescape(source, unquoted),
            "raw_string" => {
                let inner = source.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                match inner {
                    Some(inner) => unquoted.push_text(inner, CharQuoting::FullyQuoted),
                    None => self.scan_opaque_node(node, unquoted, context),
                }
            }
            "string" => {
                let mut cursor = node.walk();
                let has_only_text = node
                    .children(&mut cursor)
                    .all(|child| matches!(child.kind(), "\"" | "string_content" | "$"));
                let inner = source.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                match inner {
                    Some(inner) if has_only_text => unescape_double_quoted(inner, unquoted),
                    _ => self.scan_opaque_node(node, unquoted, context),
                }
            }
            "concatenation" => {
                let mut end = node.start_byte();
                let mut cursor = node.walk();
                for child in node.children(&mut cursor) {
                    if child.start_byte() != end {
                        self.result.add_ambiguity(ShellAmbiguity::Unknown);
                    }
                    end = child.end_byte();
                    match is_literal(child) {
                        true => self.unquote_node(child, unquoted, context),
                        false if child.is_named() => {
                            self.scan_opaque_node(child, unquoted, context)
                        }
                        false => unquoted.push_text(self.node_text(child), CharQuoting::Unquoted),
                    }
                }
            }
            _ => self.scan_opaque_node(node, unquoted, context),
        }
    }

    /// Marks a node's value as unknown and searches the node for nested commands.
    fn scan_opaque_node(
        &mut self,
        node: Node<'_>,
        unquoted: &mut UnquotedWord,
        context: ShellStatementContext,
    ) {
        unquoted.mark_opaque();
        let is_substitution =
            matches!(node.kind(), "command_substitution" | "process_substitution");
        if is_substitution {
            self.result.items.push(super::super::CommandOrScopeBoundary::EnterScope);
        }
        match ambiguity_or_unknown(node) {
            // The cause lies within the string, and the search below reports it.
            ShellAmbiguity::Unknown if matches!(node.kind(), "string") => {}
            ambiguity => self.result.add_ambiguity(ambiguity),
        }
        self.search_statements(
            node,
            ShellStatementContext { has_piped_input: false, ..context }.nested(),
        );
        if is_substitution {
            self.result.items.push(super::super::CommandOrScopeBoundary::LeaveScope);
        }
    }
}

/// Returns true for a descriptor copy or closing: `2>&1`, `>&-` and `3>&1-` write no file.
fn is_descriptor_copy(target: &str) -> bool {
    let digits = target.strip_suffix('-').unwrap_or(target);
    digits.chars().all(|c| c.is_ascii_digit()) && !target.is_empty()
}

/// Removes backslashes outside quotes, where a backslash quotes any next character.
fn unescape(source: &str, unquoted: &mut UnquotedWord) {
    let mut characters = source.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('\n') => {}
                Some(escaped) => {
                    unquoted.push_text(escaped.encode_utf8(&mut [0; 4]), CharQuoting::FullyQuoted)
                }
                None => unquoted.push_text("\\", CharQuoting::Unquoted),
            },
            other => unquoted.push_text(other.encode_utf8(&mut [0; 4]), CharQuoting::Unquoted),
        }
    }
}

/// Removes backslashes within double quotes, where a backslash quotes only characters that are
/// special there.
fn unescape_double_quoted(source: &str, unquoted: &mut UnquotedWord) {
    unquoted.push_text(
        "",
        if source.is_empty() { CharQuoting::DoubleQuoted } else { CharQuoting::Unquoted },
    );
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = match character {
            '\\' => characters.next_if(|next| matches!(next, '$' | '`' | '"' | '\\' | '\n')),
            _ => None,
        };
        match escaped {
            Some('\n') => {}
            Some(escaped) => {
                unquoted.push_text(escaped.encode_utf8(&mut [0; 4]), CharQuoting::FullyQuoted)
            }
            None => {
                unquoted.push_text(character.encode_utf8(&mut [0; 4]), CharQuoting::DoubleQuoted)
            }
        }
    }
}
