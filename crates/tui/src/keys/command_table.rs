//! The table of all UI commands with their default keys.
//!
//! Two kinds of keys are unbound on purpose: Ctrl+B, the tmux prefix, and keys that many terminals
//! cannot tell apart, such as Ctrl+I and Tab. Without Ctrl+B, its counterpart Ctrl+F for "one
//! character right" has little use, so Ctrl+F searches, as in most programs.

use super::command::CommandEntry;
use super::focus_commands::FOCUS_COMMANDS;
use super::global_commands::GLOBAL_COMMANDS;

/// All commands, in the order of the help.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, and there is a first entry")]
pub const COMMAND_TABLE: &[CommandEntry] = &{
    let mut table = [GLOBAL_COMMANDS[0]; GLOBAL_COMMANDS.len() + FOCUS_COMMANDS.len()];
    let (global_entries, focus_entries) = table.split_at_mut(GLOBAL_COMMANDS.len());
    global_entries.copy_from_slice(GLOBAL_COMMANDS);
    focus_entries.copy_from_slice(FOCUS_COMMANDS);
    table
};
