//! A filterable list: a filter input, rows and key hints.
//!
//! The panel supplies the items; filtering, navigation and drawing are the same for all lists.

mod draw;

use super::fuzzy::FuzzyQuery;
use crate::keys::{KeyMap, KeyScope, UiCommand};
use crate::text_input::TextInput;
use crate::theme::StyleRole;
use crossterm::event::{KeyCode, KeyEvent};
use unicode_segmentation::UnicodeSegmentation as _;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{self, HostResponse};

/// The maximum rows of a list; more are no easier to read.
const MAX_PANEL_LIST_ROWS: usize = 22;

/// A row of a `FilterList`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListItem {
    /// The name, which the filter matches.
    pub name: String,
    /// A short description.
    pub note: String,
    /// Columns at the right edge, the most important one last.
    pub columns: Vec<String>,
    /// The heading above the row.
    pub group: &'static str,
    /// True for the item in use, for example the current model.
    pub is_current: bool,
    /// The mark of the row's state and its style, instead of the one for `is_current`.
    pub mark: Option<(&'static str, StyleRole)>,
    /// Text before the name that the filter does not match, such as the indentation in a tree.
    pub prefix: String,
    /// True if the filter never hides the row.
    pub always_shown: bool,
    /// True if the filter also matches the `note` and the last column.
    pub searches_note: bool,
}

impl ListItem {
    /// Creates a row with a name.
    pub fn new(name: impl Into<String>) -> ListItem {
        ListItem { name: name.into(), ..ListItem::default() }
    }

    /// Sets the note.
    #[must_use]
    pub fn with_note(self, note: impl Into<String>) -> ListItem {
        ListItem { note: note.into(), ..self }
    }

    /// Appends a column at the right edge.
    #[must_use]
    pub fn with_column(mut self, text: impl Into<String>) -> ListItem {
        self.columns.push(text.into());
        self
    }

    /// Sets the heading (`group`).
    #[must_use]
    pub fn in_group(self, group: &'static str) -> ListItem {
        ListItem { group, ..self }
    }
}

/// Load state of a `FilterList`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ListLoadState {
    #[default]
    Ready,
    /// A request is pending; the text says so.
    Loading(&'static str),
    Failed(Fault),
}

/// The effect of a key on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKeyOutcome {
    /// The key has no meaning here.
    Ignored,
    SelectionMoved,
    FilterChanged,
    RowChosen,
    /// The user ran another command on the selected row, such as `DeleteRow`.
    RowCommand(UiCommand),
    /// The user confirmed the question in `FilterList::confirmation`.
    Confirmed,
    /// The user pressed Enter in `FilterList::text_input`; the list returns the text with
    /// `take_entered_text`.
    TextEntered,
}

/// An item that passes the filter: its index, and the matched clusters of its name.
#[derive(Clone, Debug)]
struct FilteredListItem {
    item_index: usize,
    matched_clusters: Vec<u32>,
}

/// A list of `ListItem`s with a filter and a selection.
#[derive(Debug)]
pub struct FilterList<T> {
    items: Vec<(ListItem, T)>,
    shown: Vec<FilteredListItem>,
    filter: String,
    selected: usize,
    top_row: usize,
    pub state: ListLoadState,
    /// The text shown if there are no items.
    pub empty_text: &'static str,
    /// A question about the selected row, shown in place of the key hints.
    pub confirmation: Option<String>,
    /// A text input about the selected row with its label, shown in place of the key hints. It gets
    /// the keys while it is open.
    pub text_input: Option<(&'static str, TextInput)>,
    /// True if the list uses the whole screen.
    pub full_screen: bool,
    /// True if notes that do not fit are wrapped instead of cut.
    pub wraps_notes: bool,
}

impl<T> FilterList<T> {
    /// Creates a list that waits for its items, in `ListLoadState::Loading`.
    pub fn loading(loading_text: &'static str, empty_text: &'static str) -> FilterList<T> {
        FilterList {
            state: ListLoadState::Loading(loading_text),
            ..FilterList::with_items(Vec::new(), empty_text)
        }
    }

    /// Creates a list with items.
    pub fn with_items(items: Vec<(ListItem, T)>, empty_text: &'static str) -> FilterList<T> {
        let mut list = FilterList {
            items,
            shown: Vec::new(),
            filter: String::new(),
            selected: 0,
            top_row: 0,
            state: ListLoadState::Ready,
            empty_text,
            confirmation: None,
            text_input: None,
            full_screen: false,
            wraps_notes: false,
        };
        list.apply_filter();
        list
    }

    /// Replaces the items. The filter stays, and so does the selected position, if it still exists.
    pub fn set_items(&mut self, items: Vec<(ListItem, T)>) {
        (self.items, self.state) = (items, ListLoadState::Ready);
        let selected = self.selected;
        self.apply_filter();
        self.selected = selected.min(self.shown.len().saturating_sub(1));
    }

    /// Shows a `Fault` instead of the items.
    pub fn set_failed(&mut self, fault: &Fault) {
        self.state = ListLoadState::Failed(fault.clone());
    }

    /// Returns the filter text.
    pub fn filter(&self) -> &str {
        &self.filter
    }

    /// Sets the filter text and applies it.
    pub fn set_filter(&mut self, text: &str) {
        self.filter = text.to_owned();
        self.apply_filter();
    }

    /// Returns the selected row.
    pub fn selected(&self) -> Option<&(ListItem, T)> {
        self.items.get(self.shown.get(self.selected)?.item_index)
    }

    /// Selects the first shown row that satisfies the predicate.
    pub fn select(&mut self, predicate: impl Fn(&ListItem, &T) -> bool) {
        let matches = |shown: &FilteredListItem| {
            self.items.get(shown.item_index).is_some_and(|(item, value)| predicate(item, value))
        };
        if let Some(index) = self.shown.iter().position(matches) {
            self.selected = index;
        }
    }

    /// Moves the selection down by a number of rows, up if negative.
    pub fn move_selection(&mut self, rows: i32) {
        let last = self.shown.len().saturating_sub(1);
        let step = rows.unsigned_abs() as usize;
        self.selected = match rows {
            0.. => (self.selected + step).min(last),
            _ => self.selected.saturating_sub(step),
        };
    }

    /// Appends the first line of pasted text to the filter.
    pub fn on_paste(&mut self, text: &str) {
        self.filter.push_str(text.lines().next().unwrap_or_default());
        self.apply_filter();
    }

    /// Closes the text input and returns its text.
    pub fn take_entered_text(&mut self) -> Option<String> {
        self.text_input.take().map(|(_, input)| input.text().trim().to_owned())
    }

    /// Handles a key and returns its effect as a `ListKeyOutcome`.
    pub fn on_key(&mut self, key: &KeyEvent, keys: &KeyMap) -> ListKeyOutcome {
        // The user has read the fault, and the items are still valid.
        if !self.items.is_empty() && matches!(self.state, ListLoadState::Failed(_)) {
            self.state = ListLoadState::Ready;
        }
        const PAGE_ROWS: i32 = 10;
        let has_selection = self.selected().is_some();
        let rows = match (keys.command_for(KeyScope::Panel, key), key.code) {
            (Some(UiCommand::ChooseRow), _) if has_selection => return ListKeyOutcome::RowChosen,
            (
                Some(
                    command @ (UiCommand::ChooseAndSave
                    | UiCommand::ForkRow
                    | UiCommand::DeleteRow
                    | UiCommand::RenameRow
                    | UiCommand::RestartRow
                    | UiCommand::ExpandRow
                    | UiCommand::CollapseRow
                    | UiCommand::ToggleFavorite),
                ),
                _,
            ) if has_selection => {
                return ListKeyOutcome::RowCommand(command);
            }
            (Some(UiCommand::RowUp), _) => -1,
            (Some(UiCommand::RowDown), _) => 1,
            (Some(UiCommand::PageUp), _) => -PAGE_ROWS,
            (Some(UiCommand::PageDown), _) => PAGE_ROWS,
            (Some(UiCommand::ScrollToTop), _) | (None, KeyCode::Home) => i32::MIN,
            (Some(UiCommand::ScrollToEnd), _) | (None, KeyCode::End) => i32::MAX,
            _ => 0,
        };
        if rows != 0 {
            self.move_selection(rows);
            return ListKeyOutcome::SelectionMoved;
        }
        if !edit_filter(&mut self.filter, key, keys) {
            return ListKeyOutcome::Ignored;
        }
        self.apply_filter();
        ListKeyOutcome::FilterChanged
    }

    /// Applies the filter: groups keep their order, and the best matches come first in each group.
    fn apply_filter(&mut self) {
        self.selected = 0;
        self.top_row = 0;
        if self.filter.trim().is_empty() {
            let shown = (0..self.items.len())
                .map(|index| FilteredListItem { item_index: index, matched_clusters: Vec::new() });
            self.shown = shown.collect();
            return;
        }
        let mut query = FuzzyQuery::new(&self.filter);
        let mut groups: Vec<&'static str> = Vec::new();
        let mut matches = Vec::new();
        for (index, (item, _)) in self.items.iter().enumerate() {
            let description = if item.searches_note { item.note.as_str() } else { "" };
            let description = match item.columns.last() {
                Some(column) if item.searches_note => format!("{description} {column}"),
                Some(_) | None => description.to_owned(),
            };
            let item_match = query.match_item(&item.name, &description);
            let Some(item_match) = item_match.or_else(|| item.always_shown.then(Default::default))
            else {
                continue;
            };
            let group = groups.iter().position(|group| *group == item.group);
            let group = group.unwrap_or_else(|| {
                groups.push(item.group);
                groups.len() - 1
            });
            matches.push((
                group,
                std::cmp::Reverse(item_match.score),
                index,
                item_match.matched_clusters,
            ));
        }
        matches.sort();
        self.shown = matches
            .into_iter()
            .map(|(_, _, index, matched_clusters)| FilteredListItem {
                item_index: index,
                matched_clusters,
            })
            .collect();
    }

    /// Returns the preferred height, which does not depend on the filter.
    pub fn height(&self) -> u16 {
        if self.full_screen {
            return u16::MAX;
        }
        let mut groups = 0;
        let mut last_group = "";
        for (item, _) in &self.items {
            if item.group != last_group {
                (groups, last_group) = (groups + 2, item.group);
            }
        }
        let rows = (self.items.len() + groups).clamp(3, MAX_PANEL_LIST_ROWS);
        u16::try_from(rows + 3).unwrap_or(u16::MAX)
    }
}

impl FilterList<()> {
    /// Fills the list from the rows or the fault in the host's response, and marks the item named
    /// `current_name`.
    pub fn fill_from_response(
        &mut self,
        response: &Result<HostResponse, Fault>,
        current_name: &str,
    ) {
        match response {
            Err(fault) => self.set_failed(fault),
            Ok(HostResponse::Rows { rows }) => {
                let item = |row: &frontend_messages::ListRow| {
                    let current_name = row.name == current_name;
                    (
                        ListItem {
                            is_current: current_name,
                            ..ListItem::new(&row.name).with_note(&row.note)
                        },
                        (),
                    )
                };
                self.set_items(rows.iter().map(item).collect());
                if self.filter.is_empty() {
                    self.select(|item, ()| item.is_current);
                }
            }
            Ok(_) => {}
        }
    }
}

/// Applies an editing key to a filter line; returns false for other keys.
pub fn edit_filter(line: &mut String, key: &KeyEvent, keys: &KeyMap) -> bool {
    match (keys.command_for(KeyScope::Prompt, key), key.code) {
        (Some(UiCommand::DeleteLeft), _) => {
            let new_len = line.grapheme_indices(true).next_back().map_or(0, |(offset, _)| offset);
            line.truncate(new_len);
        }
        (Some(UiCommand::DeleteWordLeft), _) => {
            let trimmed = line.trim_end();
            let new_len = trimmed.rfind(char::is_whitespace).map_or(0, |offset| offset + 1);
            line.truncate(new_len.min(trimmed.floor_char_boundary(new_len)));
        }
        (Some(UiCommand::DeleteToStart), _) => line.clear(),
        (_, KeyCode::Char(character)) if crate::keys::is_text_key(key) => line.push(character),
        _ => return false,
    }
    true
}
