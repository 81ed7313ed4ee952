//! The completion list above the prompt: files and agents after `@`, commands after `/`, and
//! earlier prompts.
//!
//! The list follows the typed text. A query that grows is matched only against its previous
//! matches, so that a key stays cheap in a project of any size.

use super::buffer::PromptBuffer;
use super::completion_cache::{CompletionCache, CompletionEntry};
use super::history::PromptHistory;
use super::slash_command::command_name;
use crate::ui_context::UiContext;
use nucleo_matcher::pattern::{Atom, AtomKind, CaseMatching, Normalization};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use windlass_protocol::frontend_messages::{ListedItemKind, MAX_LISTED_FILES};

const MAX_MATCHES: usize = 64;

/// The kind of a completion list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompletionListKind {
    /// Files and agents, after `@`.
    Mention,
    /// Commands, after `/`.
    SlashCommand,
    History,
}

/// A row of a `CompletionList`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CompletionChoice {
    pub(super) entry: CompletionEntry,
    /// The indices of the matched clusters in the name.
    pub(super) matched_clusters: Vec<u32>,
}

/// An open completion list.
#[derive(Debug)]
pub(super) struct CompletionList {
    pub(super) kind: CompletionListKind,
    /// The offset of the `@` or `/` that opened the list.
    start: usize,
    pub(super) query: String,
    pub(super) rows: Vec<CompletionChoice>,
    pub(super) selected: usize,
    /// True if the user moved the selection.
    selection_moved: bool,
    /// True while the entries have not arrived yet.
    pub(super) is_loading: bool,
    /// True if the project has more files than are listed.
    pub(super) is_incomplete: bool,
    /// The indices of the matching files, reused while the query only grows.
    matched_files: Option<Vec<u32>>,
}

/// Permission for an input to open a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CompletionOpenPolicy {
    /// The user typed or deleted text.
    Allowed,
    /// The cursor only moved, or text was pasted.
    Suppressed,
}

/// The open `CompletionList`, if any, and the cached entries.
#[derive(Debug, Default)]
pub(super) struct CompletionState {
    pub(super) list: Option<CompletionList>,
    pub(super) cache: CompletionCache,
    matcher: Option<Matcher>,
    /// The offset of the `@` or `/` whose list the user closed.
    closed_start: Option<usize>,
    /// The number of names matched for the last key.
    #[cfg(test)]
    pub(super) examined_names: usize,
}

/// Finds the `@` or `/` token at the cursor; returns its kind, its offset and the query typed after
/// it.
fn completion_token(buffer: &PromptBuffer) -> Option<(CompletionListKind, usize, &str)> {
    let (raw, before) = (buffer.raw_text(), buffer.text_before_cursor());
    if raw.starts_with('!') {
        return None;
    }
    if let Some(query) = before.strip_prefix('/')
        && !query.contains(char::is_whitespace)
    {
        return command_name(raw).map(|_| (CompletionListKind::SlashCommand, 0, query));
    }
    let at_offset = before.rfind('@')?;
    let (text_before, query) = (before.get(..at_offset)?, before.get(at_offset + 1..)?);
    let starts_word = text_before.is_empty()
        || text_before.ends_with(|last: char| last.is_whitespace() || "([{\"'`,".contains(last));
    (starts_word && !query.contains(char::is_whitespace)).then_some((
        CompletionListKind::Mention,
        at_offset,
        query,
    ))
}

impl CompletionState {
    /// Updates the list after a change of the buffer.
    pub(super) fn update(
        &mut self,
        buffer: &PromptBuffer,
        opening: CompletionOpenPolicy,
        cx: &mut UiContext<'_>,
    ) {
        let Some((kind, start, query)) = completion_token(buffer) else {
            (self.list, self.closed_start) = (None, None);
            return;
        };
        if self.closed_start.is_some_and(|closed_start| closed_start != start) {
            self.closed_start = None;
        }
        let is_same_list =
            self.list.as_ref().is_some_and(|list| (list.kind, list.start) == (kind, start));
        if kind == CompletionListKind::SlashCommand {
            self.cache.request_list(ListedItemKind::Commands, cx);
        }
        if self.closed_start.is_some()
            || (opening == CompletionOpenPolicy::Suppressed && !is_same_list)
        {
            self.list = None;
            return;
        }
        if !is_same_list {
            if kind == CompletionListKind::Mention {
                self.cache.request_list(ListedItemKind::Files, cx);
                self.cache.request_list(ListedItemKind::Subagents, cx);
            }
            self.list = Some(CompletionList::new(kind, start));
        }
        let query = query.to_owned();
        self.refill(&query, &cx.appearance.key_map);
    }

    /// Opens the list of earlier prompts (`CompletionListKind::History`).
    pub(super) fn open_history(&mut self, history: &PromptHistory) {
        self.list = Some(CompletionList::new(CompletionListKind::History, 0));
        self.search_history(String::new(), history);
    }

    /// Filters the earlier prompts by new words.
    pub(super) fn search_history(&mut self, query: String, history: &PromptHistory) {
        let Some(list) = self.list.as_mut().filter(|list| list.kind == CompletionListKind::History)
        else {
            return;
        };
        list.rows = history
            .search(&query)
            .into_iter()
            .take(MAX_MATCHES)
            .map(|text| CompletionChoice {
                matched_clusters: word_clusters(text, &query),
                entry: CompletionEntry::past_prompt(text),
            })
            .collect();
        (list.selected, list.query) = (0, query);
    }

    /// Closes the list; returns false if none is open.
    pub(super) fn close(&mut self) -> bool {
        let list = self.list.take();
        if let Some(list) = &list
            && list.kind != CompletionListKind::History
        {
            self.closed_start = Some(list.start);
        }
        list.is_some()
    }

    /// Moves the selection by a number of rows, and wraps around at the ends.
    pub(super) fn move_selection(&mut self, rows_down: isize) {
        if let Some(list) = &mut self.list {
            let rows = list.rows.len().max(1);
            let rows_down = rows_down.rem_euclid(isize::try_from(rows).unwrap_or(1)).unsigned_abs();
            list.selected = (list.selected + rows_down) % rows;
            list.selection_moved = true;
        }
    }

    pub(super) fn selected(&self) -> Option<&CompletionChoice> {
        self.list.as_ref().and_then(|list| list.rows.get(list.selected))
    }

    /// Returns the start of the text that a choice replaces; the range ends at the cursor.
    pub(super) fn replacement_start(&self) -> usize {
        self.list.as_ref().map_or(0, |list| list.start)
    }

    /// Returns true if Enter accepts the selected row instead of submitting the text.
    pub(super) fn enter_accepts(&self) -> bool {
        let (Some(list), Some(choice)) = (&self.list, self.selected()) else { return false };
        let name = choice.entry.name.as_str();
        match list.kind {
            CompletionListKind::History => true,
            CompletionListKind::Mention => name != list.query,
            // A lone `/` selects nothing yet.
            CompletionListKind::SlashCommand => {
                list.selection_moved || (!list.query.is_empty() && name.starts_with(&list.query))
            }
        }
    }

    /// Handles the response to a list request; returns false if `id` is not its own.
    pub(super) fn on_response(
        &mut self,
        id: u64,
        rows: Option<&[windlass_protocol::frontend_messages::ListRow]>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        if !self.cache.on_response(id, rows, cx.now) {
            return false;
        }
        if let Some(list) = &mut self.list {
            list.matched_files = None;
            let query = list.query.clone();
            self.refill(&query, &cx.appearance.key_map);
        }
        true
    }

    fn refill(&mut self, query: &str, keys: &crate::keys::KeyMap) {
        let Some(list) = self.list.as_mut() else { return };
        let query_grew = query.starts_with(&list.query) && !list.query.is_empty();
        if list.query != query {
            (list.selected, list.selection_moved) = (0, false);
        }
        query.clone_into(&mut list.query);
        let matcher =
            self.matcher.get_or_insert_with(|| Matcher::new(Config::DEFAULT.match_paths()));
        let mut search = FuzzySearch::new(query, matcher);
        let mut matches: Vec<(u32, CompletionEntry)> = Vec::new();
        match list.kind {
            CompletionListKind::History => return,
            CompletionListKind::SlashCommand => {
                list.is_loading = !self.cache.is_loaded(ListedItemKind::Commands);
                let is_listed = |entry: &CompletionEntry| {
                    let is_typed = |name: &str| {
                        !query.is_empty()
                            && entry.name.starts_with(query)
                            && !name.starts_with(query)
                    };
                    entry.alias_of.is_none_or(is_typed)
                };
                for entry in self.cache.commands(keys).into_iter().filter(is_listed) {
                    // Names that start with the query come first, in the order of `COMMAND_TABLE`.
                    let score = search.score(&entry.name).map(|score| match entry.name.as_str() {
                        name if name == query => u32::MAX,
                        name if name.starts_with(query) && entry.alias_of.is_none() => u32::MAX - 1,
                        name if name.starts_with(query) => u32::MAX - 2,
                        _ => score,
                    });
                    matches.extend(score.map(|score| (score, entry)));
                }
            }
            CompletionListKind::Mention => {
                list.is_loading = !self.cache.is_loaded(ListedItemKind::Files);
                list.is_incomplete = self.cache.files.len() >= MAX_LISTED_FILES;
                for entry in self.cache.agents() {
                    matches.extend(search.score(&entry.name).map(|score| (score, entry)));
                }
                let previous_matches = list.matched_files.take().filter(|_| query_grew);
                let (best, matched) = search.match_files(&self.cache.files, previous_matches);
                list.matched_files = matched;
                matches.extend(
                    best.into_iter().map(|(score, name)| (score, CompletionEntry::file(name))),
                );
            }
        }
        matches.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        matches.truncate(MAX_MATCHES);
        list.rows = matches
            .into_iter()
            .map(|(_, entry)| CompletionChoice {
                matched_clusters: search.matched_clusters(&entry.name),
                entry,
            })
            .collect();
        list.selected = list.selected.min(list.rows.len().saturating_sub(1));
        #[cfg(test)]
        {
            self.examined_names = search.examined_names;
        }
    }
}

impl CompletionList {
    fn new(kind: CompletionListKind, start: usize) -> CompletionList {
        CompletionList {
            kind,
            start,
            query: String::new(),
            rows: Vec::new(),
            selected: 0,
            selection_moved: false,
            is_loading: false,
            is_incomplete: false,
            matched_files: None,
        }
    }
}

/// A fuzzy query with its matcher.
struct FuzzySearch<'a> {
    atom: Option<Atom>,
    matcher: &'a mut Matcher,
    char_buffer: Vec<char>,
    examined_names: usize,
}

impl<'a> FuzzySearch<'a> {
    fn new(query: &str, matcher: &'a mut Matcher) -> FuzzySearch<'a> {
        let atom = (!query.is_empty()).then(|| {
            let (case, normalization) = (CaseMatching::Smart, Normalization::Smart);
            Atom::new(query, case, normalization, AtomKind::Fuzzy, false)
        });
        FuzzySearch { atom, matcher, char_buffer: Vec::new(), examined_names: 0 }
    }

    /// Returns the match score of a name; an empty query matches everything.
    fn score(&mut self, name: &str) -> Option<u32> {
        let Some(atom) = &self.atom else { return Some(0) };
        self.examined_names += 1;
        let name = Utf32Str::new(name, &mut self.char_buffer);
        atom.score(name, self.matcher).map(u32::from)
    }

    fn matched_clusters(&mut self, name: &str) -> Vec<u32> {
        let mut matched_clusters = Vec::new();
        if let Some(atom) = &self.atom {
            let name = Utf32Str::new(name, &mut self.char_buffer);
            atom.indices(name, self.matcher, &mut matched_clusters);
            matched_clusters.sort_unstable();
            matched_clusters.dedup();
        }
        matched_clusters
    }

    /// Returns the best matching files, at most `MAX_MATCHES`, and the indices of all matches.
    fn match_files<'f>(
        &mut self,
        files: &'f [Box<str>],
        previous: Option<Vec<u32>>,
    ) -> (Vec<(u32, &'f str)>, Option<Vec<u32>>) {
        if self.atom.is_none() {
            return (files.iter().take(MAX_MATCHES).map(|file| (0, file.as_ref())).collect(), None);
        }
        let all_indices = || 0..u32::try_from(files.len()).unwrap_or(u32::MAX);
        let indices: Box<dyn Iterator<Item = u32>> = match previous {
            Some(previous) => Box::new(previous.into_iter()),
            None => Box::new(all_indices()),
        };
        let mut matched: Vec<(u32, u32)> = Vec::new();
        for index in indices {
            let Some(file) = usize::try_from(index).ok().and_then(|index| files.get(index)) else {
                continue;
            };
            matched.extend(self.score(file).map(|score| (score, index)));
        }
        let indices: Vec<u32> = matched.iter().map(|(_, index)| *index).collect();
        let file_at = |index: u32| usize::try_from(index).ok().and_then(|index| files.get(index));
        // Among equal scores, a shorter name is the more likely choice.
        let order = |(score, index): &(u32, u32)| {
            (std::cmp::Reverse(*score), file_at(*index).map_or(0, |file| file.len()), *index)
        };
        if matched.len() > MAX_MATCHES {
            matched.select_nth_unstable_by_key(MAX_MATCHES, order);
            matched.truncate(MAX_MATCHES);
        }
        matched.sort_by_key(order);
        let best = matched.into_iter().filter_map(|(score, index)| Some((score, file_at(index)?)));
        (best.map(|(score, file)| (score, file.as_ref())).collect(), Some(indices))
    }
}

/// Returns the indices of the clusters in a text that belong to one of the words.
fn word_clusters(text: &str, words: &str) -> Vec<u32> {
    use unicode_segmentation::UnicodeSegmentation;
    let lowercase: Vec<String> = text.graphemes(true).map(str::to_lowercase).collect();
    let mut matched = Vec::new();
    for word in words.split_whitespace().map(str::to_lowercase) {
        let word: Vec<String> = word.graphemes(true).map(str::to_owned).collect();
        for (index, window) in lowercase.windows(word.len().max(1)).enumerate() {
            if window == word.as_slice() {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                let length = u32::try_from(word.len()).unwrap_or(0);
                matched.extend((0..length).map(|offset| index.saturating_add(offset)));
            }
        }
    }
    matched.sort_unstable();
    matched.dedup();
    matched
}
