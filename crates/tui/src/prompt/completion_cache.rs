//! The cache of completion entries. It is loaded again when a list opens and the entries are older
//! than `LIST_TTL_MS`, or files may have changed; until then the list shows the old entries.

use super::slash_command::{command_name, missing_command_tip};
use crate::keys::{COMMAND_TABLE, CommandEntry, KeyMap, UiCommand};
use crate::ui_context::UiContext;
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::frontend_messages::{
    FrontendRequest, ListRow, ListedItemKind, MAX_LISTED_FILES,
};

/// Short, because the user may change files elsewhere; a list of 100,000 files takes the host about
/// 100 ms.
const LIST_TTL_MS: u64 = 2_000;

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
    /// The command that `name` is an alias of. An alias is listed only if the user types it.
    pub(super) alias_of: Option<&'static str>,
    pub(super) kind: CompletionKind,
}

impl CompletionEntry {
    fn new(kind: CompletionKind, row: &ListRow) -> CompletionEntry {
        let name = row.name.trim_start_matches(['/', '@']).to_owned();
        CompletionEntry { name, note: row.note.clone(), key: String::new(), alias_of: None, kind }
    }

    pub(super) fn file(name: &str) -> CompletionEntry {
        CompletionEntry {
            name: name.to_owned(),
            note: String::new(),
            key: String::new(),
            alias_of: None,
            kind: CompletionKind::File,
        }
    }

    pub(super) fn past_prompt(text: &str) -> CompletionEntry {
        CompletionEntry {
            name: text.to_owned(),
            note: String::new(),
            key: String::new(),
            alias_of: None,
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
    /// True if the rows may have changed since.
    is_expired: bool,
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
        ListedItemKind::Subagents => "subagents",
        ListedItemKind::Skills => "skills",
        ListedItemKind::Hooks => "hooks",
        ListedItemKind::Config => "config",
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
        if (!is_fresh || cached_list.is_expired) && cached_list.pending_request.is_none() {
            cached_list.pending_request =
                Some(cx.send_request(FrontendRequest::List { list: list_kind }));
        }
    }

    /// Marks the files as out of date: the next list of them is loaded again.
    pub(super) fn expire_files(&mut self) {
        if let Some(files) = self.lists.get_mut(list_name(ListedItemKind::Files)) {
            files.is_expired = true;
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
        cached_list.is_expired = false;
        let Some(rows) = rows else { return true };
        if *name == self::list_name(ListedItemKind::Files) {
            self.files = with_folders(rows.iter().map(|row| row.name.as_str()));
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
        self.rows(ListedItemKind::Subagents)
            .iter()
            .map(|row| CompletionEntry::new(CompletionKind::Agent, row))
    }

    /// Returns the built-in commands, then the custom ones, then the aliases of built-in ones.
    pub(super) fn commands(&self, keys: &KeyMap) -> Vec<CompletionEntry> {
        let to_entry = |entry: &'static CommandEntry, alias: Option<&'static str>| {
            let description = entry.description;
            CompletionEntry {
                name: alias.unwrap_or(entry.name).to_owned(),
                note: match alias {
                    None => description.to_owned(),
                    Some(_) => format!("/{}: {description}", entry.name),
                },
                key: keys.keys_for(entry).into_iter().next().unwrap_or_default(),
                alias_of: alias.map(|_| entry.name),
                kind: CompletionKind::BuiltinCommand(entry.command),
            }
        };
        let mut entries: Vec<_> = slash_commands().map(|entry| to_entry(entry, None)).collect();
        let custom = self
            .rows(ListedItemKind::Commands)
            .iter()
            .map(|row| CompletionEntry::new(CompletionKind::CustomCommand, row));
        let aliases = slash_commands()
            .flat_map(|entry| entry.aliases.iter().map(move |alias| to_entry(entry, Some(*alias))));
        for entry in custom.chain(aliases) {
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
        let kind = |entry: &CommandEntry| CompletionKind::BuiltinCommand(entry.command);
        let builtin = slash_commands().map(move |entry| (entry.name, kind(entry)));
        let custom = self.rows(ListedItemKind::Commands).iter();
        let custom =
            custom.map(|row| (row.name.trim_start_matches('/'), CompletionKind::CustomCommand));
        let aliases = slash_commands()
            .flat_map(move |entry| entry.aliases.iter().map(move |alias| (*alias, kind(entry))));
        builtin.chain(custom).chain(aliases)
    }

    /// Returns what to do instead of an unknown command, if that is known.
    pub(super) fn unknown_command_tip(&self, name: &str) -> Option<String> {
        missing_command_tip(name).map(str::to_owned).or_else(|| {
            let similar = crate::closest_name(name, self.command_names().map(|(name, _)| name));
            similar.map(|name| format!("Did you mean /{name}?"))
        })
    }
}

fn slash_commands() -> impl Iterator<Item = &'static CommandEntry> {
    COMMAND_TABLE.iter().filter(|entry| entry.is_slash_command)
}

/// Returns the files and the folders that contain them, folders with a `/` at the end.
fn with_folders<'a>(files: impl Iterator<Item = &'a str>) -> Vec<Box<str>> {
    let mut folders = BTreeSet::new();
    let mut names: Vec<Box<str>> = Vec::new();
    for file in files.take(MAX_LISTED_FILES) {
        let mut path = file;
        while let Some((folder, _)) = path.trim_end_matches('/').rsplit_once('/') {
            path = file.get(..=folder.len()).unwrap_or_default();
            if !folders.insert(path) {
                break;
            }
        }
        names.push(file.into());
    }
    names.extend(folders.into_iter().map(Box::from));
    names.sort_unstable();
    names
}
