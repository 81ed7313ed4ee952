//! The help panel: `COMMAND_TABLE` with the current key bindings.

use super::PanelResult;
use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::{COMMAND_TABLE, CommandEntry, KeyMap, KeyScope, UiCommand};
use crate::ui_context::UiContext;

/// `ListController` of the help panel.
#[derive(Debug)]
pub struct HelpList;

impl HelpList {
    /// Opens the help with all commands and an initial `filter`.
    pub fn open(filter: &str, keys: &KeyMap) -> ListPanel<HelpList> {
        let mut list = FilterList::with_items(help_items(keys), "");
        list.full_screen = true;
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
    let commands = COMMAND_TABLE
        .iter()
        .filter(|entry| entry.is_slash_command)
        .map(|entry| item(entry, "Commands"));
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
    let prefixes =
        [("@", "Mention a file or an agent"), ("/", "Run a command"), ("!", "Run a shell command")];
    let prefixes = prefixes.into_iter().map(|(prefix, description)| {
        let item = ListItem::new(prefix)
            .with_note(description)
            .in_group("At the start of a word or a prompt");
        (ListItem { searches_note: true, ..item }, None)
    });
    commands.chain(keys_by_scope).chain(prefixes).collect()
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
