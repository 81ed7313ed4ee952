//! The cache of completion entries: loaded when a list opens, and kept for `LIST_TTL_MS`.

use super::slash_command::command_name;
use crate::keys::{COMMAND_TABLE, KeyMap, UiCommand};
use crate::ui_context::UiContext;
use std::collections::BTreeMap;
use windlass_protocol::frontend_messages::{
    FrontendRequest, ListRow, ListedItemKind, MAX_LISTED_FILES,
};

const LIST_TTL_MS: u64 = 30_000;

/// The kind of a `CompletionEntry`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompletionKind {
    File,
    Agent,
    /// A built-in `UiCommand`.
    BuiltinCommand(UiCommand),
    /// A custom command of the user.
    CustomCommand,
    PastPrompt,
}

/// An entry of a `CompletionList`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CompletionEntry {
    pub(super) name: String,
    pub(super) note: String,
    /// The key that runs the same command.
    pub(super) key: String,
    pub(super) kind: CompletionKind,
}

impl CompletionEntry {
    fn new(kind: CompletionKind, row: &ListRow) -> CompletionEntry {
        let name = row.name.trim_start_matches(['/', '@']).to_owned();
        CompletionEntry { name, note: row.note.clone(), key: String::new(), kind }
    }

    pub(super) fn file(name: &str) -> CompletionEntry {
        CompletionEntry {
            name: name.to_owned(),
            note: String::new(),
            key: String::new(),
            kind: CompletionKind::File,
        }
    }

    pub(super) fn past_prompt(text: &str) -> CompletionEntry {
        CompletionEntry {
            name: text.to_owned(),
            note: String::new(),
            key: String::new(),
            kind: CompletionKind::PastPrompt,
        }
    }
}

/// The cached response to one `FrontendRequest::List`.
#[derive(Debug, Default)]
struct CachedListResponse {
    pending_request: Option<u64>,
    /// The time of the last response.
    loaded_at: Option<u64>,
    rows: Vec<ListRow>,
}

/// The cached files, agents and commands.
#[derive(Debug, Default)]
pub(super) struct CompletionCache {
    pub(super) files: Vec<Box<str>>,
    lists: BTreeMap<&'static str, CachedListResponse>,
}

fn list_name(list_kind: ListedItemKind) -> &'static str {
    match list_kind {
        ListedItemKind::Files => "files",
        ListedItemKind::Models => "models",
        ListedItemKind::Agents => "agents",
        ListedItemKind::Commands => "commands",
    }
}

impl CompletionCache {
    /// Requests a list, unless it is cached and fresh, or already requested.
    pub(super) fn request_list(&mut self, list_kind: ListedItemKind, cx: &mut UiContext<'_>) {
        let cached_list = self.lists.entry(list_name(list_kind)).or_default();
        let is_fresh = cached_list
            .loaded_at
            .is_some_and(|loaded_at| cx.now < loaded_at.saturating_add(LIST_TTL_MS));
        if !is_fresh && cached_list.pending_request.is_none() {
            cached_list.pending_request =
                Some(cx.send_request(FrontendRequest::List { list: list_kind }));
        }
    }

    /// Returns true if the list arrived at least once, even if it is out of date.
    pub(super) fn is_loaded(&self, list_kind: ListedItemKind) -> bool {
        self.lists
            .get(list_name(list_kind))
            .is_some_and(|cached_list| cached_list.loaded_at.is_some())
    }

    /// Stores the rows of a response; `None` means the list failed. Returns false if `id` is not
    /// its own.
    pub(super) fn on_response(&mut self, id: u64, rows: Option<&[ListRow]>, now: u64) -> bool {
        let requested =
            self.lists.iter_mut().find(|(_, cached_list)| cached_list.pending_request == Some(id));
        let Some((name, cached_list)) = requested else { return false };
        (cached_list.pending_request, cached_list.loaded_at) = (None, Some(now));
        let Some(rows) = rows else { return true };
        if *name == self::list_name(ListedItemKind::Files) {
            let names = rows.iter().take(MAX_LISTED_FILES).map(|row| row.name.as_str().into());
            self.files = names.collect();
        } else if *name == self::list_name(ListedItemKind::Commands) {
            // Another source may name a command in a way that cannot be typed after `/`; drop
            // those.
            let is_typable = |row: &&ListRow| {
                command_name(&format!("/{}", row.name.trim_start_matches('/'))).is_some()
            };
            cached_list.rows = rows.iter().filter(is_typable).cloned().collect();
        } else {
            cached_list.rows = rows.to_vec();
        }
        true
    }

    fn rows(&self, list_kind: ListedItemKind) -> &[ListRow] {
        self.lists.get(list_name(list_kind)).map_or(&[], |cached_list| &cached_list.rows)
    }

    pub(super) fn agents(&self) -> impl Iterator<Item = CompletionEntry> {
        self.rows(ListedItemKind::Agents)
            .iter()
            .map(|row| CompletionEntry::new(CompletionKind::Agent, row))
    }

    /// Returns the built-in commands, then the custom ones.
    pub(super) fn commands(&self, keys: &KeyMap) -> Vec<CompletionEntry> {
        let builtin = COMMAND_TABLE.iter().filter(|entry| entry.is_slash_command).map(|entry| {
            CompletionEntry {
                name: entry.name.to_owned(),
                note: entry.description.to_owned(),
                key: keys.keys_for(entry).into_iter().next().unwrap_or_default(),
                kind: CompletionKind::BuiltinCommand(entry.command),
            }
        });
        let custom = self
            .rows(ListedItemKind::Commands)
            .iter()
            .map(|row| CompletionEntry::new(CompletionKind::CustomCommand, row));
        let mut entries: Vec<CompletionEntry> = builtin.collect();
        for entry in custom {
            // A custom command cannot replace a built-in one, so that built-ins mean the same in
            // every project.
            if entries.iter().all(|other| other.name != entry.name) {
                entries.push(entry);
            }
        }
        entries
    }

    /// Looks up a command by its name.
    pub(super) fn command_kind(&self, name: &str) -> Option<CompletionKind> {
        self.command_names().find(|(entry_name, _)| *entry_name == name).map(|(_, kind)| kind)
    }

    /// Returns true if the name of some command starts with the text.
    pub(super) fn is_command_prefix(&self, prefix: &str) -> bool {
        self.command_names().any(|(name, _)| name.starts_with(prefix))
    }

    fn command_names(&self) -> impl Iterator<Item = (&str, CompletionKind)> {
        let builtin = COMMAND_TABLE.iter().filter(|entry| entry.is_slash_command);
        let custom = self.rows(ListedItemKind::Commands).iter();
        builtin.map(|entry| (entry.name, CompletionKind::BuiltinCommand(entry.command))).chain(
            custom.map(|row| (row.name.trim_start_matches('/'), CompletionKind::CustomCommand)),
        )
    }
}
