//! Converts simple commands, words and redirections from the syntax tree of brush-parser.

use super::super::ambiguity_reasons::ShellAmbiguity;
use super::super::parse_result::is_expansion_safe;
use super::super::unquoted_word::{CharQuoting, ShellWordRole, UnquotedWord};
use super::super::{Redirect, RedirectKind, ShellStatementContext, ShellWord, SimpleShellCommand};
use super::{BrushAstWalk, catch_parser_panic, is_affordable, parser_options};
use brush_parser::ast::{
    AssignmentName, AssignmentValue, CommandPrefixOrSuffixItem, IoFileRedirectKind,
    IoFileRedirectTarget, IoHereDocument, IoRedirect, SimpleCommand, SubshellCommand,
};
use brush_parser::word::{self, WordPiece, WordPieceWithSource};

impl BrushAstWalk {
    pub(super) fn walk_simple_command(
        &mut self,
        command: &SimpleCommand,
        context: ShellStatementContext,
    ) {
        let text = command.to_string();
        let mut segment = SimpleShellCommand {
            text,
            has_piped_input: context.has_piped_input,
            ..SimpleShellCommand::default()
        };
        for item in command.prefix.iter().flat_map(|prefix| &prefix.0) {
            match item {
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, source) => {
                    if assignment.append {
                        self.result.add_ambiguity(ShellAmbiguity::AppendAssignment);
                    }
                    let name = match &assignment.name {
                        AssignmentName::VariableName(name) => name.clone(),
                        AssignmentName::ArrayElementName(name, index) => {
                            self.result.add_ambiguity(ShellAmbiguity::Array);
                            self.scan_word(index, context);
                            name.clone()
                        }
                    };
                    let value = match &assignment.value {
                        AssignmentValue::Scalar(value) => {
                            self.parse_word(&value.value, ShellWordRole::AssignmentValue, context)
                        }
                        AssignmentValue::Array(_) => self.parse_array(&source.value, context),
                    };
                    segment.assignments.push((name, value));
                }
                other => self.add_command_part(other, &mut segment, context),
            }
        }
        if let Some(name) = &command.word_or_name {
            let name = self.parse_word(&name.value, ShellWordRole::Argument, context);
            segment.words.push(name);
        }
        for item in command.suffix.iter().flat_map(|suffix| &suffix.0) {
            self.add_command_part(item, &mut segment, context);
        }
        self.result.push_segment(segment);
    }

    fn add_command_part(
        &mut self,
        item: &CommandPrefixOrSuffixItem,
        segment: &mut SimpleShellCommand,
        context: ShellStatementContext,
    ) {
        match item {
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                segment.redirects.extend(self.parse_redirect(redirect, context));
            }
            CommandPrefixOrSuffixItem::Word(word) => {
                let word = self.parse_word(&word.value, ShellWordRole::Argument, context);
                segment.words.push(word);
            }
            CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                let word = match &assignment.value {
                    AssignmentValue::Scalar(_) => {
                        self.parse_word(&word.value, ShellWordRole::Argument, context)
                    }
                    AssignmentValue::Array(_) => self.parse_array(&word.value, context),
                };
                segment.words.push(word);
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.walk_process_substitution(subshell, context);
                segment.words.push(ShellWord::Opaque(subshell.to_string()));
            }
        }
    }

    fn parse_array(&mut self, source: &str, context: ShellStatementContext) -> ShellWord {
        self.result.add_ambiguity(ShellAmbiguity::Array);
        self.scan_word(source, context);
        ShellWord::Opaque(source.to_owned())
    }

    fn walk_process_substitution(
        &mut self,
        subshell: &SubshellCommand,
        context: ShellStatementContext,
    ) {
        self.result.add_ambiguity(ShellAmbiguity::ProcessSubstitution);
        self.result.items.push(super::CommandOrScopeBoundary::EnterScope);
        self.walk_compound_list(
            &subshell.list,
            ShellStatementContext { has_piped_input: false, ..context }.nested(),
        );
        self.result.items.push(super::CommandOrScopeBoundary::LeaveScope);
    }

    pub(super) fn parse_redirect(
        &mut self,
        redirect: &IoRedirect,
        context: ShellStatementContext,
    ) -> Option<Redirect> {
        let (kind, target) = match redirect {
            IoRedirect::File(_, kind, target) => {
                return self.parse_file_redirect(kind, target, context);
            }
            IoRedirect::OutputAndError(target, _) => (
                RedirectKind::Write,
                self.parse_word(&target.value, ShellWordRole::Argument, context),
            ),
            IoRedirect::HereString(_, text) => (
                RedirectKind::HereString,
                self.parse_word(&text.value, ShellWordRole::HereString, context),
            ),
            IoRedirect::HereDocument(_, document) => {
                return Some(self.parse_heredoc(document, context));
            }
        };
        Some(Redirect { kind, target })
    }

    fn parse_file_redirect(
        &mut self,
        kind: &IoFileRedirectKind,
        target: &IoFileRedirectTarget,
        context: ShellStatementContext,
    ) -> Option<Redirect> {
        let target = match target {
            IoFileRedirectTarget::Filename(word) | IoFileRedirectTarget::Duplicate(word) => {
                self.parse_word(&word.value, ShellWordRole::Argument, context)
            }
            IoFileRedirectTarget::Fd(_) => return None,
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                self.walk_process_substitution(subshell, context);
                ShellWord::Opaque(subshell.to_string())
            }
        };
        let kind = match kind {
            IoFileRedirectKind::Read => RedirectKind::Read,
            IoFileRedirectKind::Write
            | IoFileRedirectKind::Append
            | IoFileRedirectKind::ReadAndWrite
            | IoFileRedirectKind::Clobber => RedirectKind::Write,
            IoFileRedirectKind::DuplicateInput | IoFileRedirectKind::DuplicateOutput => {
                let is_input = matches!(kind, IoFileRedirectKind::DuplicateInput);
                match &target {
                    ShellWord::Plain(text) if is_descriptor(text) => return None,
                    ShellWord::Plain(text) if !is_input && is_expansion_safe(text) => {}
                    _ => self.result.add_ambiguity(ShellAmbiguity::UnusualDescriptor),
                }
                RedirectKind::Write
            }
        };
        Some(Redirect { kind, target })
    }

    fn parse_heredoc(
        &mut self,
        document: &IoHereDocument,
        context: ShellStatementContext,
    ) -> Redirect {
        let body = document.doc.value.clone();
        let quoted = !document.requires_expansion;
        if !quoted && body.contains(['$', '`', '\\']) {
            self.result.add_ambiguity(ShellAmbiguity::HeredocExpansion);
            let pieces = is_affordable_word(&body)
                .then(|| catch_parser_panic(|| word::parse_heredoc(&body, &parser_options()).ok()))
                .flatten();
            match pieces {
                Some(pieces) => {
                    self.unquote_pieces(
                        &body,
                        &pieces,
                        CharQuoting::DoubleQuoted,
                        &mut UnquotedWord::default(),
                        context,
                    );
                }
                None => self.result.add_ambiguity(ShellAmbiguity::TooDeep),
            }
        }
        let delimiter = brush_parser::unquote_str(&document.here_end.value);
        Redirect {
            kind: RedirectKind::HereDocument { body, quoted },
            target: ShellWord::Plain(delimiter),
        }
    }

    /// Searches a word that is not passed to a command for nested commands.
    pub(super) fn scan_word(&mut self, source: &str, context: ShellStatementContext) {
        self.parse_word(source, ShellWordRole::HereString, context);
    }

    pub(super) fn parse_word(
        &mut self,
        source: &str,
        role: ShellWordRole,
        context: ShellStatementContext,
    ) -> ShellWord {
        let mut unquoted = UnquotedWord::default();
        let pieces = is_affordable_word(source)
            .then(|| catch_parser_panic(|| word::parse(source, &parser_options()).ok()))
            .flatten();
        match pieces {
            Some(pieces) => {
                self.unquote_pieces(source, &pieces, CharQuoting::Unquoted, &mut unquoted, context);
            }
            None => {
                self.result.add_ambiguity(ShellAmbiguity::TooDeep);
                unquoted.mark_opaque();
            }
        }
        unquoted.to_shell_word(source, role, &mut self.result)
    }

    /// Removes the quotes from the pieces of a word.
    fn unquote_pieces(
        &mut self,
        source: &str,
        pieces: &[WordPieceWithSource],
        quoting: CharQuoting,
        unquoted: &mut UnquotedWord,
        context: ShellStatementContext,
    ) {
        for WordPieceWithSource { piece, start_index, end_index } in pieces {
            let ambiguity = match piece {
                WordPiece::Text(text) if quoting == CharQuoting::Unquoted => {
                    unquoted.push_text(text, CharQuoting::Unquoted);
                    continue;
                }
                // brush-parser does not join continued lines within double quotes.
                WordPiece::Text(text) => {
                    unquoted.push_text(&text.replace("\\\n", ""), quoting);
                    continue;
                }
                WordPiece::SingleQuotedText(text) => {
                    unquoted.push_text(text, CharQuoting::FullyQuoted);
                    continue;
                }
                WordPiece::EscapeSequence(sequence) => {
                    unquoted.push_text(
                        sequence.strip_prefix('\\').unwrap_or(sequence),
                        CharQuoting::FullyQuoted,
                    );
                    continue;
                }
                WordPiece::DoubleQuotedSequence(inner) => {
                    if inner.is_empty() {
                        unquoted.push_text("", CharQuoting::DoubleQuoted);
                    }
                    self.unquote_pieces(
                        source,
                        inner,
                        CharQuoting::DoubleQuoted,
                        unquoted,
                        context,
                    );
                    continue;
                }
                WordPiece::GettextDoubleQuotedSequence(inner) => {
                    self.unquote_pieces(
                        source,
                        inner,
                        CharQuoting::DoubleQuoted,
                        unquoted,
                        context,
                    );
                    ShellAmbiguity::DollarQuotes
                }
                WordPiece::AnsiCQuotedText(_) => ShellAmbiguity::DollarQuotes,
                WordPiece::TildeExpansion(_) => ShellAmbiguity::Tilde,
                WordPiece::CommandSubstitution(text)
                | WordPiece::BackquotedCommandSubstitution(text) => {
                    self.walk_substitution(text, context);
                    ShellAmbiguity::CommandSubstitution
                }
                WordPiece::ArithmeticExpression(expression) => {
                    self.scan_expansion(&expression.value, context);
                    ShellAmbiguity::Arithmetic
                }
                WordPiece::ParameterExpansion(_) => {
                    let piece_source = source.get(*start_index..*end_index).unwrap_or_default();
                    let inner =
                        piece_source.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
                    self.scan_expansion(inner.unwrap_or_default(), context);
                    ShellAmbiguity::Variable
                }
            };
            self.result.add_ambiguity(ambiguity);
            unquoted.mark_opaque();
        }
    }

    /// Searches the text of an expansion for substitutions.
    fn scan_expansion(&mut self, text: &str, context: ShellStatementContext) {
        let first = text.find(['$', '`']).and_then(|index| text.get(index..));
        if let Some(rest) = first {
            if context.depth > super::MAX_SUBSTITUTION_DEPTH {
                return self.result.add_ambiguity(ShellAmbiguity::TooDeep);
            }
            self.scan_word(rest, context.nested());
        }
    }
}

/// Returns true if the word parses quickly even if the parser takes every choice in it twice.
fn is_affordable_word(word: &str) -> bool {
    if !word.contains(['$', '`']) {
        return true;
    }
    let openers = ["$(", "${", "$["].iter().map(|opener| 2 * word.matches(opener).count());
    is_affordable(word.matches(['(', '[', '`']).count() + openers.sum::<usize>(), word.len())
}

/// Returns true for a number, a dash or both: bash copies, moves or closes a descriptor and writes
/// no file.
fn is_descriptor(text: &str) -> bool {
    let mut digits = text.trim_end_matches('-').chars();
    !text.is_empty() && !text.ends_with("--") && digits.all(|c| c.is_ascii_digit())
}
