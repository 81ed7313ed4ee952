//! The help panel: `COMMAND_TABLE` with the current key bindings, in one column.

use super::PanelResult;
use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::{COMMAND_TABLE, CommandEntry, KeyMap, KeyScope, UiCommand};
use crate::ui_context::UiContext;

/// The `/` commands by subject, in the order of the help.
pub(super) const COMMAND_GROUPS: [(&str, &[UiCommand]); 5] = [
    (
        "Session",
        &[
            UiCommand::NewSession,
            UiCommand::Sessions,
            UiCommand::Fork,
            UiCommand::Rewind,
            UiCommand::Rename,
            UiCommand::Compact,
            UiCommand::Export,
            UiCommand::Detach,
            UiCommand::Quit,
        ],
    ),
    ("Model", &[UiCommand::Model, UiCommand::Effort, UiCommand::Agent, UiCommand::Mode]),
    (
        "Work",
        &[
            UiCommand::Undo,
            UiCommand::Redo,
            UiCommand::Diff,
            UiCommand::Review,
            UiCommand::Goal,
            UiCommand::Init,
            UiCommand::OpenEditor,
        ],
    ),
    (
        "View",
        &[
            UiCommand::Todos,
            UiCommand::Jobs,
            UiCommand::Subagents,
            UiCommand::Context,
            UiCommand::Cost,
            UiCommand::FindText,
            UiCommand::CopyAnswer,
            UiCommand::ToggleDetails,
            UiCommand::ToggleAllDetails,
            UiCommand::ScrollToTop,
            UiCommand::ScrollToEnd,
            UiCommand::PreviousPrompt,
            UiCommand::NextPrompt,
        ],
    ),
    ("Setup", OTHER_COMMANDS),
];

/// Commands that no other group names are in the last one.
const OTHER_COMMANDS: &[UiCommand] = &[];

/// Returns the name of a command's group.
pub(super) fn group_of(command: UiCommand) -> &'static str {
    let [.., (last, _)] = COMMAND_GROUPS;
    let group = COMMAND_GROUPS.iter().find(|(_, commands)| commands.contains(&command));
    group.map_or(last, |(name, _)| *name)
}

/// `ListController` of the help panel.
#[derive(Debug)]
pub struct HelpList;

impl HelpList {
    /// Opens the help with all commands and an initial `filter`.
    pub fn open(filter: &str, keys: &KeyMap) -> ListPanel<HelpList> {
        let mut list = FilterList::with_items(help_items(keys), "");
        (list.full_screen, list.wraps_notes) = (true, true);
        list.set_filter(filter.trim().trim_start_matches('/'));
        ListPanel::new(list, HelpList)
    }
}

/// Builds the help entries: `/` commands first, then the keys of each `KeyScope`.
fn help_items(keys: &KeyMap) -> Vec<(ListItem, Option<UiCommand>)> {
    let item = |entry: &CommandEntry, group| {
        let keys = keys.keys_for(entry).join(", ");
        let name = match (entry.is_slash_command, keys.is_empty()) {
            (true, _) => format!("/{}", entry.name),
            (false, true) => format!("({})", entry.name),
            (false, false) => keys.clone(),
        };
        let key = if entry.is_slash_command { keys } else { String::new() };
        let item =
            ListItem::new(name).with_note(entry.description).in_group(group).with_column(key);
        (ListItem { searches_note: true, ..item }, entry.is_slash_command.then_some(entry.command))
    };
    let commands = COMMAND_GROUPS.into_iter().flat_map(|(group, _)| {
        let entries = COMMAND_TABLE
            .iter()
            .filter(move |entry| entry.is_slash_command && group_of(entry.command) == group);
        entries.map(move |entry| item(entry, group))
    });
    let scopes = [
        (KeyScope::Global, "Keys everywhere"),
        (KeyScope::Prompt, "Keys in the prompt"),
        (KeyScope::Question, "Keys for questions"),
        (KeyScope::Panel, "Keys in lists"),
    ];
    let keys_by_scope = scopes.into_iter().flat_map(|(scope, group)| {
        let entries = COMMAND_TABLE
            .iter()
            .filter(move |entry| entry.scope == scope && !entry.is_slash_command);
        entries.map(move |entry| item(entry, group))
    });
    let prefixes = [
        ("@", "Attach a file or folder, or mention a subagent"),
        ("/", "Run a command; // sends a text that begins with /"),
        ("!", "Run a shell command"),
        ("?", "Show this help, on an empty prompt"),
    ];
    let prefixes = prefixes.into_iter().map(|(prefix, description)| {
        let item = ListItem::new(prefix)
            .with_note(description)
            .in_group("At the start of a word or a prompt");
        (ListItem { searches_note: true, ..item }, None)
    });
    commands.chain(prefixes).chain(keys_by_scope).collect()
}

impl ListController for HelpList {
    type RowValue = Option<UiCommand>;

    fn title(&self) -> &'static str {
        "Help"
    }

    fn key_hints(&self, list: &FilterList<Option<UiCommand>>) -> Vec<(UiCommand, &'static str)> {
        let is_command = list.selected().is_some_and(|(_, command)| command.is_some());
        let run_hint = is_command.then_some((UiCommand::ChooseRow, "run"));
        run_hint.into_iter().chain([(UiCommand::Escape, "close")]).collect()
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<Option<UiCommand>>,
        cx: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        match (action, list.selected()) {
            (ListKeyOutcome::RowChosen, Some((_, Some(command)))) => {
                cx.push_command(*command);
                ListControllerDecision::Close(PanelResult::Nothing)
            }
            _ => ListControllerDecision::Stay,
        }
    }
}
