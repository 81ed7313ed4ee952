//! One search thread: searches batches of files and reuses its buffers.

use super::GrepMode;
use super::matched_lines::MatchedLines;
use super::search::{
    GrepBatchResults, GrepFileMatches, GrepSearch, GrepSkippedFile, MultilineMode,
};
use super::stop_signal::GrepStopSignal;
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use std::fs::File;
use std::io::{Error, Read, Result};
use windlass_sandbox::FoundFile;

/// Memory limit for one line, or for a whole file in a `MultiLine` search.
const MAX_SEARCH_HEAP_BYTES: usize = 16 << 20;

/// Bytes read between two calls of `GrepStopSignal::poll`.
const POLL_INTERVAL_BYTES: usize = 256 * 1024;

/// State of one search thread.
pub(super) struct GrepWorker<'s> {
    search: &'s GrepSearch,
    stop_signal: &'s GrepStopSignal<'s>,
    /// Cloned for each thread, because threads that share a matcher wait for each other.
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl<'s> GrepWorker<'s> {
    pub(super) fn new(
        search: &'s GrepSearch,
        stop_signal: &'s GrepStopSignal<'s>,
    ) -> GrepWorker<'s> {
        let searcher = SearcherBuilder::new()
            .line_number(search.mode == GrepMode::Content)
            .multi_line(search.match_span == MultilineMode::MultiLine)
            .before_context(search.context)
            .after_context(search.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MAX_SEARCH_HEAP_BYTES))
            .build();
        GrepWorker { search, stop_signal, matcher: search.matcher.clone(), searcher }
    }

    /// Searches files in order, until enough results are found or `stop_signal` is set.
    pub(super) fn search_batch(&mut self, batch: Vec<FoundFile<'_>>) -> GrepBatchResults {
        let mut batch_results = GrepBatchResults::default();
        for found in batch {
            if self.stop_signal.is_set()
                || batch_results.result_count >= self.search.range.results_to_find()
            {
                break;
            }
            self.search_file(found, &mut batch_results);
        }
        batch_results
    }

    fn search_file(&mut self, found: FoundFile<'_>, batch_results: &mut GrepBatchResults) {
        let file = match found.open() {
            Ok(file) => file,
            Err(windlass_sandbox::Error::Io { source, .. }) => {
                let reason = format!("not searched: {source}");
                batch_results
                    .skipped_files
                    .push(GrepSkippedFile { path: found.into_path(), reason });
                return;
            }
            // The file is gone, or no longer what it was.
            Err(_) => return,
        };
        let source =
            StoppableReader { source: &file, stop_signal: self.stop_signal, bytes_since_poll: 0 };
        self.search_source(|| found.into_path(), source, batch_results);
    }

    /// Searches a text that is not a file.
    pub(super) fn search_text(&mut self, name: &str, text: &[u8]) -> GrepBatchResults {
        let mut results = GrepBatchResults::default();
        self.search_source(|| name.to_owned(), text, &mut results);
        results
    }

    fn search_source(
        &mut self,
        path: impl FnOnce() -> String,
        source: impl Read,
        batch_results: &mut GrepBatchResults,
    ) {
        batch_results.searched_files += 1;
        let mut collector = MatchCollector {
            search: self.search,
            matcher: &self.matcher,
            stop_signal: self.stop_signal,
            match_count: 0,
            lines: MatchedLines::default(),
            binary_offset: None,
        };
        let result = self.searcher.search_reader(&self.matcher, source, &mut collector);
        let MatchCollector { mut match_count, lines, binary_offset, .. } = collector;
        if self.stop_signal.is_set() {
            return;
        }
        batch_results.binary_files += usize::from(binary_offset.is_some());
        if binary_offset.is_some() && self.search.mode == GrepMode::Count {
            // A partial count would look like the count of the whole file.
            match_count = 0;
        }
        let reason = match (result, binary_offset) {
            (Err(error), _) => Some(incomplete_reason(&error)),
            (Ok(()), Some(_)) if match_count > 0 && self.search.mode == GrepMode::Content => {
                Some("binary file, searched only up to the first zero byte".to_owned())
            }
            (Ok(()), _) => None,
        };
        if reason.is_none() && match_count == 0 {
            return;
        }
        let path = path();
        if let Some(reason) = reason {
            batch_results.skipped_files.push(GrepSkippedFile { path: path.clone(), reason });
        }
        if match_count > 0 {
            let file_matches = GrepFileMatches { path, match_count, lines };
            batch_results.result_count += file_matches.result_count(self.search.mode);
            batch_results.files.push(file_matches);
        }
    }
}

/// Returns the reason why a file was not searched to its end.
fn incomplete_reason(error: &Error) -> String {
    // The searcher reports its heap limit only as an error without an OS error code.
    match error.raw_os_error() {
        Some(_) => format!("not searched completely: {error}"),
        None => format!(
            "not searched completely, because its content is too large to search at once (more \
             than {} MB)",
            MAX_SEARCH_HEAP_BYTES >> 20
        ),
    }
}

/// A `Sink` that collects the matches of one file.
struct MatchCollector<'t> {
    search: &'t GrepSearch,
    matcher: &'t RegexMatcher,
    stop_signal: &'t GrepStopSignal<'t>,
    match_count: usize,
    lines: MatchedLines,
    binary_offset: Option<u64>,
}

impl Sink for MatchCollector<'_> {
    type Error = Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool> {
        self.match_count += 1;
        let range = self.search.range;
        match self.search.mode {
            GrepMode::Files => return Ok(false),
            GrepMode::Count => return Ok(!self.stop_signal.is_set()),
            GrepMode::Content => {}
        }
        if self.match_count <= range.results_to_keep() {
            let number = found.line_number().unwrap_or(0);
            self.lines.add_match(self.matcher, number, found.bytes());
        }
        Ok(self.match_count < range.results_to_find() && !self.stop_signal.is_set())
    }

    fn context(&mut self, _searcher: &Searcher, line: &SinkContext<'_>) -> Result<bool> {
        if self.match_count <= self.search.range.results_to_keep() {
            self.lines.add_context(line.line_number().unwrap_or(0), line.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _searcher: &Searcher) -> Result<bool> {
        if self.match_count < self.search.range.results_to_keep() {
            self.lines.add_break();
        }
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> Result<()> {
        self.binary_offset = finish.binary_byte_offset();
        Ok(())
    }
}

/// A reader that fails once `stop_signal` is set, so that a search stops however large the
/// file is.
struct StoppableReader<'p> {
    source: &'p File,
    stop_signal: &'p GrepStopSignal<'p>,
    bytes_since_poll: usize,
}

impl Read for StoppableReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.bytes_since_poll > POLL_INTERVAL_BYTES {
            self.bytes_since_poll = 0;
            self.stop_signal.poll();
        }
        if self.stop_signal.is_set() {
            return Err(Error::other("stopped"));
        }
        let read = (&mut &*self.source).read(buffer)?;
        self.bytes_since_poll += read;
        Ok(read)
    }
}
