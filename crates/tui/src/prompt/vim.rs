//! The modes and keys of vi in the prompt (`tui.vim`).
//!
//! In insert mode only Esc differs. In normal mode each character is a command, with counts,
//! motions and the operators `d`, `c` and `y`; all other keys keep their usual meaning.

use super::buffer::PromptBuffer;
use super::cursor;
use super::vim_motion::{self, MotionSpan, VimMotion};
use super::{PromptAction, PromptEditor};
use crate::ui_context::{Appearance, UiContext};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Bounds a count; no prompt has more lines or words.
const MAX_COUNT: usize = 9_999;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum VimMode {
    #[default]
    Insert,
    Normal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VimOperator {
    Delete,
    Change,
    Yank,
}

/// A command that waits for its next character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingCommand {
    /// `g`
    GoTo,
    /// `r`
    ReplaceCharacter,
}

/// The state of the vi keys: mode, unfinished command, and the text deleted or yanked last.
#[derive(Debug, Default)]
pub(super) struct VimState {
    mode: VimMode,
    count: Option<usize>,
    /// The operator that waits for a motion, and the count before it.
    operator: Option<(VimOperator, usize)>,
    pending: Option<PendingCommand>,
    register: String,
    register_is_linewise: bool,
}

impl VimState {
    /// Returns to insert mode; the register is kept.
    pub(super) fn reset(&mut self) {
        self.mode = VimMode::Insert;
        self.clear_command();
    }

    /// Forgets an unfinished command; returns false if there was none.
    fn clear_command(&mut self) -> bool {
        let was_pending = self.count.is_some() || self.operator.is_some() || self.pending.is_some();
        (self.count, self.operator, self.pending) = (None, None, None);
        was_pending
    }

    /// Returns the count of a command, including that of its operator, and forgets it.
    fn take_count(&mut self) -> Option<usize> {
        let operator_count = self.operator.map(|(_, count)| count);
        match (self.count.take(), operator_count) {
            (None, None | Some(1)) => None,
            (count, operator_count) => {
                Some(count.unwrap_or(1).saturating_mul(operator_count.unwrap_or(1)).min(MAX_COUNT))
            }
        }
    }
}

impl PromptEditor {
    /// Returns the name of the editing mode, if the prompt has modes.
    pub fn editing_mode(&self, appearance: &Appearance) -> Option<&'static str> {
        appearance.layout.vim.then_some(match self.vim.mode {
            VimMode::Insert => "INSERT",
            VimMode::Normal => "NORMAL",
        })
    }

    /// Handles a key by the rules of vi; returns `None` if it has its usual meaning.
    pub(super) fn on_vim_key(
        &mut self,
        key: &KeyEvent,
        cx: &mut UiContext<'_>,
    ) -> Option<PromptAction> {
        if !cx.appearance.layout.vim
            || key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
        {
            return None;
        }
        match (self.vim.mode, key.code) {
            // Esc stops the model at once.
            (VimMode::Insert, KeyCode::Esc) if self.is_empty() && cx.state.is_busy() => {
                return None;
            }
            (VimMode::Insert, KeyCode::Esc) if !self.has_open_list() => {
                self.vim.mode = VimMode::Normal;
                let (text, cursor) = (self.buffer.raw_text(), self.buffer.cursor());
                if cursor::line_start(text, cursor) < cursor {
                    self.buffer.move_cursor(cursor::cluster_left(text, cursor));
                }
            }
            (VimMode::Normal, KeyCode::Esc) if self.vim.clear_command() => {}
            (VimMode::Normal, KeyCode::Backspace) => self.on_normal_character('h', cx),
            (VimMode::Normal, KeyCode::Char(character)) => self.on_normal_character(character, cx),
            (VimMode::Insert | VimMode::Normal, _) => return None,
        }
        Some(PromptAction::Handled)
    }

    fn on_normal_character(&mut self, character: char, cx: &mut UiContext<'_>) {
        match (self.vim.pending.take(), character) {
            (Some(PendingCommand::ReplaceCharacter), _) => self.replace_character(character),
            (Some(PendingCommand::GoTo), 'g') => self.apply_motion(VimMotion::FirstLine),
            (Some(PendingCommand::GoTo), _) => {
                self.vim.clear_command();
            }
            (None, '1'..='9') => self.push_digit(character),
            (None, '0') if self.vim.count.is_some() => self.push_digit(character),
            (None, 'g') => self.vim.pending = Some(PendingCommand::GoTo),
            (None, 'r') if self.vim.operator.is_none() => {
                self.vim.pending = Some(PendingCommand::ReplaceCharacter);
            }
            (None, 'd') => self.start_operator(VimOperator::Delete),
            (None, 'c') => self.start_operator(VimOperator::Change),
            (None, 'y') => self.start_operator(VimOperator::Yank),
            (None, _) => match VimMotion::from_character(character) {
                Some(motion) => self.apply_motion(motion),
                None if self.vim.operator.is_some() => {
                    self.vim.clear_command();
                }
                None => self.run_command(character, cx),
            },
        }
        if self.vim.mode == VimMode::Normal {
            clamp_to_line(&mut self.buffer);
        }
    }

    fn push_digit(&mut self, digit: char) {
        let digit = digit.to_digit(10).unwrap_or_default() as usize;
        self.vim.count = Some((self.vim.count.unwrap_or(0) * 10 + digit).min(MAX_COUNT));
    }

    /// Starts an operator; the same operator twice applies to whole lines.
    fn start_operator(&mut self, operator: VimOperator) {
        match self.vim.operator {
            None => {
                let count = self.vim.count.take().unwrap_or(1);
                self.vim.operator = Some((operator, count));
            }
            Some((started, _)) if started == operator => self.apply_motion(VimMotion::WholeLines),
            Some(_) => {
                self.vim.clear_command();
            }
        }
    }

    /// Moves the cursor, or applies the pending operator to the range of the motion.
    fn apply_motion(&mut self, motion: VimMotion) {
        let count = self.vim.take_count();
        let operator = self.vim.operator.take().map(|(operator, _)| operator);
        let (text, cursor) = (self.buffer.raw_text(), self.buffer.cursor());
        let Some(operator) = operator else {
            self.buffer.move_cursor(vim_motion::target(motion, count, text, cursor));
            return;
        };
        let motion = match (operator, motion) {
            // `cw` keeps the space after the word.
            (VimOperator::Change, VimMotion::WordStart)
                if !vim_motion::is_space_at(text, cursor) =>
            {
                VimMotion::WordEnd
            }
            (_, motion) => motion,
        };
        let span = vim_motion::operator_span(motion, count, text, cursor);
        self.apply_operator(operator, span);
    }

    fn apply_operator(&mut self, operator: VimOperator, span: MotionSpan) {
        let text = self.buffer.raw_text();
        let MotionSpan { start, end, is_linewise } = span;
        self.vim.register = text.get(start..end).unwrap_or_default().to_owned();
        self.vim.register_is_linewise = is_linewise;
        match operator {
            VimOperator::Yank => self.buffer.move_cursor(start),
            VimOperator::Change => {
                self.buffer.replace(start, end, "");
                self.vim.mode = VimMode::Insert;
            }
            VimOperator::Delete if is_linewise => {
                // The line break goes with the lines: the one after them, or, at the end, the one
                // before them.
                let has_next = end < text.len();
                let start = if has_next { start } else { start.saturating_sub(1) };
                let end = if has_next { end + 1 } else { end };
                self.buffer.replace(start, end, "");
                let line = cursor::line_start(self.buffer.raw_text(), self.buffer.cursor());
                self.buffer.move_cursor(line);
            }
            VimOperator::Delete => self.buffer.replace(start, end, ""),
        }
    }

    /// Runs a command of one character other than a motion or an operator.
    fn run_command(&mut self, character: char, cx: &mut UiContext<'_>) {
        let count = self.vim.count.take();
        let (text, cursor) = (self.buffer.raw_text(), self.buffer.cursor());
        let (line_start, line_end) =
            (cursor::line_start(text, cursor), cursor::line_end(text, cursor));
        let insert_at = match character {
            'i' => Some(cursor),
            'a' if cursor < line_end => Some(cursor::cluster_right(text, cursor)),
            'a' => Some(cursor),
            'I' => Some(vim_motion::target(VimMotion::FirstNonBlank, None, text, cursor)),
            'A' => Some(line_end),
            _ => None,
        };
        if let Some(offset) = insert_at {
            self.buffer.move_cursor(offset);
            self.vim.mode = VimMode::Insert;
            return;
        }
        match character {
            'o' => {
                self.buffer.move_cursor(line_end);
                self.buffer.insert("\n");
                self.vim.mode = VimMode::Insert;
            }
            'O' => {
                self.buffer.move_cursor(line_start);
                self.buffer.insert("\n");
                self.buffer.move_cursor(line_start);
                self.vim.mode = VimMode::Insert;
            }
            'x' | 's' => {
                let end = vim_motion::clusters_right(text, cursor, count.unwrap_or(1));
                let span = MotionSpan { start: cursor, end, is_linewise: false };
                let operator =
                    if character == 'x' { VimOperator::Delete } else { VimOperator::Change };
                self.apply_operator(operator, span);
            }
            'D' | 'C' => {
                let span = MotionSpan { start: cursor, end: line_end, is_linewise: false };
                let operator =
                    if character == 'D' { VimOperator::Delete } else { VimOperator::Change };
                self.apply_operator(operator, span);
            }
            'p' | 'P' => self.put(character == 'p', count.unwrap_or(1)),
            'u' => (0..count.unwrap_or(1)).for_each(|_| self.buffer.undo()),
            'j' => self.move_down(),
            'k' => self.move_up(cx),
            _ => {}
        }
    }

    /// Inserts the register after or before the cursor, or the line of the cursor.
    fn put(&mut self, is_after: bool, count: usize) {
        /// Bounds the inserted text.
        const MAX_PUT_BYTES: usize = 1 << 20;
        let register = &self.vim.register;
        if register.is_empty() && !self.vim.register_is_linewise {
            return;
        }
        let count = count.min(MAX_PUT_BYTES / register.len().max(1)).max(1);
        let (text, cursor) = (self.buffer.raw_text(), self.buffer.cursor());
        if self.vim.register_is_linewise {
            let lines = vec![register.as_str(); count].join("\n");
            let (offset, inserted, first) = match is_after {
                true => {
                    let end = cursor::line_end(text, cursor);
                    (end, format!("\n{lines}"), end + 1)
                }
                false => {
                    let start = cursor::line_start(text, cursor);
                    (start, format!("{lines}\n"), start)
                }
            };
            self.buffer.replace(offset, offset, &inserted);
            self.buffer.move_cursor(first);
            return;
        }
        let at_line_end = cursor == cursor::line_end(text, cursor);
        let offset =
            if is_after && !at_line_end { cursor::cluster_right(text, cursor) } else { cursor };
        let inserted = register.repeat(count);
        self.buffer.replace(offset, offset, &inserted);
        let end = self.buffer.cursor();
        self.buffer.move_cursor(cursor::cluster_left(self.buffer.raw_text(), end));
    }

    fn replace_character(&mut self, character: char) {
        let count = self.vim.count.take().unwrap_or(1);
        let (text, cursor) = (self.buffer.raw_text(), self.buffer.cursor());
        let end = vim_motion::clusters_right(text, cursor, count);
        let replaced = cursor::clusters(text.get(cursor..end).unwrap_or_default()).count();
        if replaced < count || cursor::chip_number(character).is_some() {
            return;
        }
        self.buffer.replace(cursor, end, &String::from(character).repeat(replaced));
        let end = self.buffer.cursor();
        self.buffer.move_cursor(cursor::cluster_left(self.buffer.raw_text(), end));
    }
}

/// In normal mode the cursor is on a character, not after the last one of a line.
fn clamp_to_line(buffer: &mut PromptBuffer) {
    let (text, cursor) = (buffer.raw_text(), buffer.cursor());
    let start = cursor::line_start(text, cursor);
    if cursor == cursor::line_end(text, cursor) && cursor > start {
        buffer.move_cursor(cursor::cluster_left(text, cursor));
    }
}
