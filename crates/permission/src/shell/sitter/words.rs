//! Simple commands, their words and where they read and write, from the tree.

use super::super::doubt::Doubt;
use super::super::finding::survives_expansion;
use super::super::spelling::{Mark, Role, Spelling};
use super::super::{Place, Redirect, RedirectKind, Segment, Word};
use super::{DEEPEST, Link, Walk, is_literal, kind};
use tree_sitter::Node;

impl Walk<'_> {
    /// A command that has no commands within, except in its words.
    pub(super) fn simple(&mut self, node: Node<'_>, link: Link<'_>, place: Place) {
        let mut segment = Segment { piped: place.piped, ..Segment::default() };
        let end = match node.kind() {
            "variable_assignment" => {
                self.assign(node, &mut segment, place);
                node.end_byte()
            }
            "test_command" => {
                self.test(node, &mut segment.words, place);
                node.end_byte()
            }
            _ => self.gather(node, &mut segment, place),
        };
        segment.words.extend(link.words);
        segment.redirects.extend(link.redirects);
        let end = end.max(link.end);
        segment.text = self.text.get(node.start_byte()..end).unwrap_or_default().to_owned();
        let timed = |word: &Word| matches!(word, Word::Plain(word) if word == "time");
        if segment.assignments.is_empty() && segment.words.first().is_some_and(timed) {
            self.finding.doubt(Doubt::Time);
            segment.words.remove(0);
        }
        self.finding.push(segment);
    }

    /// The parts of a command in their order. Tells where it ends.
    fn gather(&mut self, node: Node<'_>, segment: &mut Segment, place: Place) -> usize {
        let mut end = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            // Two words that touch are one word, whatever the tree says.
            if child.start_byte() == end && end > node.start_byte() {
                self.finding.doubt(Doubt::Unknown);
            }
            end = child.end_byte();
            match child.kind() {
                "variable_assignment" if node.kind() == "declaration_command" => {
                    let word = self.declared(child, place);
                    segment.words.push(word);
                }
                "variable_assignment" => self.assign(child, segment, place),
                "file_redirect" | "herestring_redirect" => {
                    self.redirect(child, &mut segment.words, &mut segment.redirects, place);
                }
                "command_name" => {
                    let inner = child.child(0).unwrap_or(child);
                    let word = self.word(inner, Role::Argument, place);
                    segment.words.push(word);
                }
                "variable_name" => segment.words.push(self.leaf(child)),
                "comment" => self.finding.doubt(Doubt::Comment),
                _ if is_literal(child) => {
                    let word = self.word(child, Role::Argument, place);
                    segment.words.push(word);
                }
                _ if child.is_named() => {
                    self.finding.doubt(kind(child));
                    segment.words.push(Word::Opaque(self.source(child).to_owned()));
                    self.descend(child, place);
                }
                _ => segment.words.push(self.leaf(child)),
            }
        }
        end
    }

    /// A token that is itself: an operator of a test, a keyword, a lone dollar.
    fn leaf(&mut self, node: Node<'_>) -> Word {
        let mut spelling = Spelling::default();
        spelling.push(self.source(node), Mark::Bare);
        spelling.settle(self.source(node), Role::Argument, &mut self.finding)
    }

    /// `[ … ]`, which the tree takes apart though it is a command like any other.
    fn test(&mut self, node: Node<'_>, words: &mut Vec<Word>, place: Place) {
        if place.depth > DEEPEST {
            return self.finding.doubt(Doubt::Depth);
        }
        let mut end = None;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if end == Some(child.start_byte()) {
                self.finding.doubt(Doubt::Unknown);
            }
            end = Some(child.end_byte());
            match child.kind() {
                "comment" => self.finding.doubt(Doubt::Comment),
                _ if is_literal(child) => {
                    let word = self.word(child, Role::Argument, place);
                    words.push(word);
                }
                "unary_expression" | "binary_expression" => self.test(child, words, place.deeper()),
                "test_operator" | "[" | "]" | "!" | "=" | "==" | "!=" | "-a" | "-o" => {
                    words.push(self.leaf(child));
                }
                _ => {
                    self.finding.doubt(Doubt::Unknown);
                    words.push(Word::Opaque(self.source(child).to_owned()));
                    self.descend(child, place);
                }
            }
        }
    }

    fn assign(&mut self, node: Node<'_>, segment: &mut Segment, place: Place) {
        let mut name = String::new();
        let mut value = Word::Plain(String::new());
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_name" if name.is_empty() => name = self.source(child).to_owned(),
                "=" => {}
                "+=" => self.finding.doubt(Doubt::Append),
                _ if is_literal(child) => value = self.word(child, Role::Value, place),
                _ => {
                    self.finding.doubt(kind(child));
                    value = Word::Opaque(self.source(child).to_owned());
                    self.descend(child, place);
                }
            }
        }
        segment.assignments.push((name, value));
    }

    /// An assignment that is an argument of `export` and the like.
    fn declared(&mut self, node: Node<'_>, place: Place) -> Word {
        let mut spelling = Spelling::default();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "variable_name" | "=" => spelling.push(self.source(child), Mark::Bare),
                _ => self.spell(child, &mut spelling, place),
            }
        }
        spelling.settle(self.source(node), Role::Argument, &mut self.finding)
    }

    /// The tree takes arguments that stand behind a redirection for more files.
    pub(super) fn redirect(
        &mut self,
        node: Node<'_>,
        words: &mut Vec<Word>,
        redirects: &mut Vec<Redirect>,
        place: Place,
    ) {
        let (mut operator, mut target, mut end) = ("", None, None);
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if is_literal(child) {
                let text = operator == "<<<";
                let role = if text && target.is_none() { Role::Text } else { Role::Argument };
                if target.is_some() && end == Some(child.start_byte()) {
                    self.finding.doubt(Doubt::Unknown);
                }
                let word = self.word(child, role, place);
                match target {
                    None => target = Some(word),
                    Some(_) => words.push(word),
                }
            } else if child.kind() == "comment" {
                self.finding.doubt(Doubt::Comment);
            } else if child.is_named() {
                if child.kind() != "file_descriptor" {
                    self.finding.doubt(Doubt::Unknown);
                }
            } else {
                operator = self.source(child);
            }
            end = Some(child.end_byte());
        }
        match (operator, target) {
            ("<&-" | ">&-", None) => {}
            // What stands behind it is a word.
            ("<&-" | ">&-", Some(word)) => words.push(word),
            (_, None) => self.finding.doubt(Doubt::Broken),
            ("<", Some(target)) => redirects.push(Redirect { kind: RedirectKind::Read, target }),
            (">" | ">>" | ">|" | "&>" | "&>>", Some(target)) => {
                redirects.push(Redirect { kind: RedirectKind::Write, target });
            }
            ("<<<", Some(target)) => redirects.push(Redirect { kind: RedirectKind::Text, target }),
            ("<&" | ">&", Some(target)) => match &target {
                Word::Plain(word) if copies(word) => {}
                Word::Plain(word) if operator == ">&" && survives_expansion(word) => {
                    redirects.push(Redirect { kind: RedirectKind::Write, target });
                }
                _ => {
                    self.finding.doubt(Doubt::Descriptor);
                    redirects.push(Redirect { kind: RedirectKind::Write, target });
                }
            },
            (_, Some(target)) => {
                self.finding.doubt(Doubt::Unknown);
                redirects.push(Redirect { kind: RedirectKind::Write, target });
            }
        }
    }

    pub(super) fn word(&mut self, node: Node<'_>, role: Role, place: Place) -> Word {
        let mut spelling = Spelling::default();
        self.spell(node, &mut spelling, place);
        spelling.settle(self.source(node), role, &mut self.finding)
    }

    /// Takes the quotes off one piece of a word.
    fn spell(&mut self, node: Node<'_>, spelling: &mut Spelling, place: Place) {
        let source = self.source(node);
        match node.kind() {
            "word" | "number" if node.named_child_count() == 0 => unescape(source, spelling),
            "raw_string" => {
                let inner = source.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                match inner {
                    Some(inner) => spelling.push(inner, Mark::Quoted),
                    None => self.obscure(node, spelling, place),
                }
            }
            "string" => {
                let mut cursor = node.walk();
                let plain = node
                    .children(&mut cursor)
                    .all(|child| matches!(child.kind(), "\"" | "string_content" | "$"));
                let inner = source.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                match inner {
                    Some(inner) if plain => unescape_doubled(inner, spelling),
                    _ => self.obscure(node, spelling, place),
                }
            }
            "concatenation" => {
                let mut end = node.start_byte();
                let mut cursor = node.walk();
                for child in node.children(&mut cursor) {
                    if child.start_byte() != end {
                        self.finding.doubt(Doubt::Unknown);
                    }
                    end = child.end_byte();
                    match is_literal(child) {
                        true => self.spell(child, spelling, place),
                        false if child.is_named() => self.obscure(child, spelling, place),
                        false => spelling.push(self.source(child), Mark::Bare),
                    }
                }
            }
            _ => self.obscure(node, spelling, place),
        }
    }

    /// Its value is not known, but commands may stand in it.
    fn obscure(&mut self, node: Node<'_>, spelling: &mut Spelling, place: Place) {
        spelling.obscure();
        let substitutes = matches!(node.kind(), "command_substitution" | "process_substitution");
        if substitutes {
            self.finding.items.push(super::super::Item::Enter);
        }
        match kind(node) {
            // What is odd about it stands within.
            Doubt::Unknown if matches!(node.kind(), "string") => {}
            doubt => self.finding.doubt(doubt),
        }
        self.descend(node, Place { piped: false, ..place }.deeper());
        if substitutes {
            self.finding.items.push(super::super::Item::Leave);
        }
    }
}

/// `2>&1`, `>&-` and `3>&1-` write no file.
fn copies(target: &str) -> bool {
    let digits = target.strip_suffix('-').unwrap_or(target);
    digits.chars().all(|each| each.is_ascii_digit()) && !target.is_empty()
}

/// Outside of quotes a backslash quotes whatever follows.
fn unescape(source: &str, spelling: &mut Spelling) {
    let mut characters = source.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('\n') => {}
                Some(escaped) => spelling.push(escaped.encode_utf8(&mut [0; 4]), Mark::Quoted),
                None => spelling.push("\\", Mark::Bare),
            },
            plain => spelling.push(plain.encode_utf8(&mut [0; 4]), Mark::Bare),
        }
    }
}

/// Within double quotes a backslash quotes only what would mean something there.
fn unescape_doubled(source: &str, spelling: &mut Spelling) {
    spelling.push("", if source.is_empty() { Mark::Doubled } else { Mark::Bare });
    let mut characters = source.chars().peekable();
    while let Some(character) = characters.next() {
        let escaped = match character {
            '\\' => characters.next_if(|next| matches!(next, '$' | '`' | '"' | '\\' | '\n')),
            _ => None,
        };
        match escaped {
            Some('\n') => {}
            Some(escaped) => spelling.push(escaped.encode_utf8(&mut [0; 4]), Mark::Quoted),
            None => spelling.push(character.encode_utf8(&mut [0; 4]), Mark::Doubled),
        }
    }
}
