//! The command palette: every command with its key, found by name or description.

use super::PanelResult;
use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::help::{COMMAND_GROUPS, group_of};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::{COMMAND_TABLE, CommandEntry, KeyMap, UiCommand};
use crate::ui_context::UiContext;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse, ListedItemKind};

/// Commands without a `/` name that make sense from a list.
const KEY_COMMANDS: [UiCommand; 8] = [
    UiCommand::ToggleAllDetails,
    UiCommand::ScrollToTop,
    UiCommand::ScrollToEnd,
    UiCommand::PreviousPrompt,
    UiCommand::NextPrompt,
    UiCommand::PasteImage,
    UiCommand::Redraw,
    UiCommand::Suspend,
];

/// Commands that need an argument: the palette writes them into the prompt.
const COMMANDS_WITH_ARGUMENT: [UiCommand; 2] = [UiCommand::Rename, UiCommand::Goal];

/// The effect of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PaletteAction {
    Run(UiCommand),
    /// Writes this text into the prompt.
    Write(String),
}

/// `ListController` of the command palette.
#[derive(Debug)]
pub struct CommandPalette {
    list_request: u64,
}

impl CommandPalette {
    /// Opens the palette, and requests the custom commands from the host.
    pub fn open(filter: &str, cx: &mut UiContext<'_>) -> ListPanel<CommandPalette> {
        let list_request =
            cx.send_request(FrontendRequest::List { list: ListedItemKind::Commands });
        let mut list = FilterList::with_items(builtin_items(&cx.appearance.key_map), "");
        list.set_filter(filter.trim().trim_start_matches('/'));
        ListPanel::new(list, CommandPalette { list_request })
    }
}

fn builtin_items(keys: &KeyMap) -> Vec<(ListItem, PaletteAction)> {
    let is_listed = |entry: &&CommandEntry| {
        (entry.is_slash_command || KEY_COMMANDS.contains(&entry.command))
            && entry.command != UiCommand::CommandPalette
    };
    let to_item = |entry: &CommandEntry| {
        let name = match entry.is_slash_command {
            true => format!("/{}", entry.name),
            false => entry.name.to_owned(),
        };
        let action = match COMMANDS_WITH_ARGUMENT.contains(&entry.command) {
            true => PaletteAction::Write(format!("/{} ", entry.name)),
            false => PaletteAction::Run(entry.command),
        };
        let key = keys.keys_for(entry).into_iter().next().unwrap_or_default();
        let item = ListItem::new(name)
            .with_note(entry.description)
            .with_column(key)
            .in_group(group_of(entry.command));
        (ListItem { searches_note: true, ..item }, action)
    };
    let mut items: Vec<_> = COMMAND_TABLE.iter().filter(is_listed).map(to_item).collect();
    let rank = |group: &str| COMMAND_GROUPS.iter().position(|(name, _)| *name == group);
    items.sort_by_key(|(item, _)| rank(item.group).unwrap_or(COMMAND_GROUPS.len()));
    items
}

impl ListController for CommandPalette {
    type RowValue = PaletteAction;

    fn title(&self) -> &'static str {
        "Commands"
    }

    fn key_hints(&self, _: &FilterList<PaletteAction>) -> Vec<(UiCommand, &'static str)> {
        vec![(UiCommand::ChooseRow, "run"), (UiCommand::Escape, "close")]
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<PaletteAction>,
        cx: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        match (action, list.selected()) {
            (ListKeyOutcome::RowChosen, Some((_, PaletteAction::Run(command)))) => {
                cx.push_command(*command);
                ListControllerDecision::Close(PanelResult::Nothing)
            }
            (ListKeyOutcome::RowChosen, Some((_, PaletteAction::Write(text)))) => {
                let result = PanelResult::RestorePrompt(text.clone(), Vec::new());
                ListControllerDecision::Close(result)
            }
            _ => ListControllerDecision::Stay,
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        list: &mut FilterList<PaletteAction>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        if id != self.list_request {
            return false;
        }
        if let Ok(HostResponse::Rows { rows }) = response {
            let mut items = builtin_items(&cx.appearance.key_map);
            items.extend(rows.iter().map(|row| {
                let name = format!("/{}", row.name.trim_start_matches('/'));
                let action = PaletteAction::Write(format!("{name} "));
                let item = ListItem::new(name).with_note(&row.note).in_group("Custom commands");
                (ListItem { searches_note: true, ..item }, action)
            }));
            list.set_items(items);
        }
        true
    }
}
