//! Simple commands, their words and where they read and write, from the grammar of brush.

use super::super::doubt::Doubt;
use super::super::finding::survives_expansion;
use super::super::spelling::{Mark, Role, Spelling};
use super::super::{Place, Redirect, RedirectKind, Segment, Word};
use super::{Walk, affords, options, shielded};
use brush_parser::ast::{
    AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem, IoFileRedirectKind,
    IoFileRedirectTarget, IoHereDocument, IoRedirect, SimpleCommand, SubshellCommand,
};
use brush_parser::word::{self, WordPiece, WordPieceWithSource};

impl Walk {
    pub(super) fn simple(&mut self, command: &SimpleCommand, place: Place) {
        let text = command.to_string();
        let mut segment = Segment { text, piped: place.piped, ..Segment::default() };
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, written) => {
                    if assignment.append {
                        self.finding.doubt(Doubt::Append);
                    }
                    let name = match &assignment.name {
                        AssignmentName::VariableName(name) => name.clone(),
                        AssignmentName::ArrayElementName(name, index) => {
                            self.finding.doubt(Doubt::Array);
                            self.look(index, place);
                            name.clone()
                        }
                    };
                    let value = match &assignment.value {
                        AssignmentValue::Scalar(value) => {
                            self.word(&value.value, Role::Value, place)
                        }
                        AssignmentValue::Array(_) => self.array(&written.value, place),
                    };
                    segment.assignments.push((name, value));
                }
                other => self.part(other, &mut segment, place),
            }
        }
        if let Some(name) = &command.word_or_name {
            let name = self.word(&name.value, Role::Argument, place);
            segment.words.push(name);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.part(item, &mut segment, place);
        }
        self.finding.push(segment);
    }

    fn part(&mut self, item: &CommandPrefixOrSuffixItem, segment: &mut Segment, place: Place) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                segment.redirects.extend(self.redirect(redirect, place));
            }
            CommandPrefixOrSuffixItem::Word(word) => {
                let word = self.word(&word.value, Role::Argument, place);
                segment.words.push(word);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                let word = match &assignment.value {
                    AssignmentValue::Scalar(_) => self.word(&word.value, Role::Argument, place),
                    AssignmentValue::Array(_) => self.array(&word.value, place),
                };
                segment.words.push(word);
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.process(subshell, place);
                segment.words.push(Word::Opaque(subshell.to_string()));
            }
        }
    }

    fn array(&mut self, written: &str, place: Place) -> Word {
        self.finding.doubt(Doubt::Array);
        self.look(written, place);
        Word::Opaque(written.to_owned())
    }

    fn process(&mut self, subshell: &SubshellCommand, place: Place) {
        self.finding.doubt(Doubt::Process);
        self.finding.items.push(super::Item::Enter);
        self.compound_list(&subshell.list, Place { piped: false, ..place }.deeper());
        self.finding.items.push(super::Item::Leave);
    }

    pub(super) fn redirect(&mut self, redirect: &IoRedirect, place: Place) -> Option<Redirect> {
        let (kind, target) = match redirect {
            IoRedirect::File(_, kind, target) => return self.file(kind, target, place),
            IoRedirect::OutputAndError(target, _) => {
                (RedirectKind::Write, self.word(&target.value, Role::Argument, place))
            }
            IoRedirect::HereString(_, text) => {
                (RedirectKind::Text, self.word(&text.value, Role::Text, place))
            }
            IoRedirect::HereDocument(_, document) => return Some(self.document(document, place)),
        };
        Some(Redirect { kind, target })
    }

    fn file(
        &mut self,
        kind: &IoFileRedirectKind,
        target: &IoFileRedirectTarget,
        place: Place,
    ) -> Option<Redirect> {
        let target = match target {
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                self.word(&word.value, Role::Argument, place)
            }
            IoFileRedirectTarget::Fd(_) => return None,
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.process(subshell, place);
                Word::Opaque(subshell.to_string())
            }
        };
        let kind = match kind {
            IoFileRedirectKind::Read => RedirectKind::Read,
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::ReadAndWrite
            | IoFileRedirectKind::Clobber => RedirectKind::Write,
            IoFileRedirectKind::DuplicateInput | IoFileRedirectKind::DuplicateOutput => {
                let input = matches!(kind, IoFileRedirectKind::DuplicateInput);
                match &target {
                    Word::Plain(text) if is_descriptor(text) => return None,
                    Word::Plain(text) if !input && survives_expansion(text) => {}
                    _ => self.finding.doubt(Doubt::Descriptor),
                }
                RedirectKind::Write
            }
        };
        Some(Redirect { kind, target })
    }

    fn document(&mut self, document: &IoHereDocument, place: Place) -> Redirect {
        let body = document.doc.value.clone();
        let quoted = !document.requires_expansion;
        if !quoted && body.contains(['$', '`', '\\']) {
            self.finding.doubt(Doubt::Document);
            let pieces = affordable(&body)
                .then(|| shielded(|| word::parse_heredoc(&body, &options()).ok()))
                .flatten();
            match pieces {
                Some(pieces) => {
                    self.spell(&body, &pieces, Mark::Doubled, &mut Spelling::default(), place);
                }
                None => self.finding.doubt(Doubt::Depth),
            }
        }
        let mark = brush_parser::unquote_str(&document.here_end.value);
        Redirect { kind: RedirectKind::Document { body, quoted }, target: Word::Plain(mark) }
    }

    /// Looks for commands in a word that is not passed to any.
    pub(super) fn look(&mut self, written: &str, place: Place) {
        self.word(written, Role::Text, place);
    }

    pub(super) fn word(&mut self, written: &str, role: Role, place: Place) -> Word {
        let mut spelling = Spelling::default();
        let pieces = affordable(written)
            .then(|| shielded(|| word::parse(written, &options()).ok()))
            .flatten();
        match pieces {
            Some(pieces) => {
                self.spell(written, &pieces, Mark::Bare, &mut spelling, place);
            }
            None => {
                self.finding.doubt(Doubt::Depth);
                spelling.obscure();
            }
        }
        spelling.settle(written, role, &mut self.finding)
    }

    /// Takes the quotes off the pieces of a word.
    fn spell(
        &mut self,
        written: &str,
        pieces: &[WordPieceWithSource],
        mark: Mark,
        spelling: &mut Spelling,
        place: Place,
    ) {
        for WordPieceWithSource { piece, start_index, end_index } in pieces {
            let doubt = match piece {
                WordPiece::Text(text) if mark == Mark::Bare => {
                    spelling.push(text, Mark::Bare);
                    continue;
                }
                // A line that goes on within double quotes is not taken together before.
                WordPiece::Text(text) => {
                    spelling.push(&text.replace("\\\n", ""), mark);
                    continue;
                }
                WordPiece::SingleQuotedText(text) => {
                    spelling.push(text, Mark::Quoted);
                    continue;
                }
                WordPiece::EscapeSequence(sequence) => {
                    spelling.push(sequence.strip_prefix('\\').unwrap_or(sequence), Mark::Quoted);
                    continue;
                }
                WordPiece::DoubleQuotedSequence(inner) => {
                    if inner.is_empty() {
                        spelling.push("", Mark::Doubled);
                    }
                    self.spell(written, inner, Mark::Doubled, spelling, place);
                    continue;
                }
                WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.spell(written, inner, Mark::Doubled, spelling, place);
                    Doubt::Escapes
                }
                WordPiece::AnsiCQuotedText(_) => Doubt::Escapes,
                WordPiece::TildeExpansion(_) => Doubt::Tilde,
                WordPiece::CommandSubstitution(text)
                | WordPiece::BackquotedCommandSubstitution(text) => {
                    self.substituted(text, place);
                    Doubt::Substitution
                }
                WordPiece::ArithmeticExpression(expression) => {
                    self.within(&expression.value, place);
                    Doubt::Arithmetic
                }
                WordPiece::ParameterExpansion(_) => {
                    let source = written.get(*start_index..*end_index).unwrap_or_default();
                    let inner = source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                    self.within(inner.unwrap_or_default(), place);
                    Doubt::Variable
                }
            };
            self.finding.doubt(doubt);
            spelling.obscure();
        }
    }

    /// Looks for substitutions in what stands within an expansion.
    fn within(&mut self, text: &str, place: Place) {
        let first = text.find(['$', '`']).and_then(|at| text.get(at..));
        if let Some(rest) = first {
            if place.depth > super::DEEPEST {
                return self.finding.doubt(Doubt::Depth);
            }
            self.look(rest, place.deeper());
        }
    }
}

/// True if a word cannot take long to parse, though every choice in it be taken twice.
fn affordable(word: &str) -> bool {
    if !word.contains(['$', '`']) {
        return true;
    }
    let openers = ["$(", "${", "$["].iter().map(|opener| 2 * word.matches(opener).count());
    affords(word.matches(['(', '[', '`']).count() + openers.sum::<usize>(), word.len())
}

/// A number, a dash, or both: a descriptor is copied, moved or closed, and no file is written.
fn is_descriptor(text: &str) -> bool {
    let mut digits = text.trim_end_matches('-').chars();
    !text.is_empty() && !text.ends_with("--") && digits.all(|each| each.is_ascii_digit())
}
