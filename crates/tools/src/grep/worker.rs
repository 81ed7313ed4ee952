//! What one thread does: it searches batches of files, with buffers that it keeps.

use super::Mode;
use super::lines::Lines;
use super::search::{Across, Gap, Halt, Hits, Search};
use grep_regex::RegexMatcher;
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use std::fs::File;
use std::io::{Error, Read, Result};
use windlass_sandbox::Found;

/// What a line, or a file that is searched across lines, may cost in memory.
const HEAP: usize = 16 << 20;

/// After how many bytes it is asked whether to go on.
const POLL: usize = 256 * 1024;

/// What a batch of files yields.
#[derive(Default)]
pub(super) struct Haul {
    pub(super) files: Vec<Hits>,
    /// How many results that is.
    pub(super) found: usize,
    pub(super) searched: usize,
    pub(super) binary: usize,
    pub(super) gaps: Vec<Gap>,
}

/// One thread's tools.
pub(super) struct Worker<'s> {
    search: &'s Search,
    halt: &'s Halt<'s>,
    /// Its own, because threads that share one wait for each other.
    matcher: RegexMatcher,
    searcher: Searcher,
    unpolled: usize,
}

impl<'s> Worker<'s> {
    pub(super) fn new(search: &'s Search, halt: &'s Halt<'s>) -> Worker<'s> {
        let searcher = SearcherBuilder::new()
            .line_number(search.mode == Mode::Content)
            .multi_line(search.across == Across::Lines)
            .before_context(search.context)
            .after_context(search.context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP))
            .build();
        Worker { search, halt, matcher: search.matcher.clone(), searcher, unpolled: 0 }
    }

    /// Searches files in their order, as far as that is needed.
    pub(super) fn search(&mut self, batch: Vec<Found<'_>>) -> Haul {
        let mut haul = Haul::default();
        for found in batch {
            if self.halt.is_set() || haul.found >= self.search.extent.goal() {
                break;
            }
            self.search_file(found, &mut haul);
        }
        haul
    }

    fn search_file(&mut self, found: Found<'_>, haul: &mut Haul) {
        let file = match found.open() {
            Ok(file) => file,
            Err(windlass_sandbox::Error::System { source, .. }) => {
                let reason = format!("not searched: {source}");
                haul.gaps.push(Gap { path: found.into_path(), reason });
                return;
            }
            // It is gone, or not what it was.
            Err(_) => return,
        };
        haul.searched += 1;
        let mut tally = Tally {
            search: self.search,
            matcher: &self.matcher,
            halt: self.halt,
            matches: 0,
            lines: Lines::default(),
            binary: None,
        };
        let source = Polled { file: &file, halt: self.halt, unpolled: &mut self.unpolled };
        let searched = self.searcher.search_reader(&self.matcher, source, &mut tally);
        let Tally { mut matches, lines, binary, .. } = tally;
        if self.halt.is_set() {
            return;
        }
        haul.binary += usize::from(binary.is_some());
        if binary.is_some() && self.search.mode == Mode::Count {
            // A count of a part would pass for the count of the file.
            matches = 0;
        }
        let reason = match (searched, binary) {
            (Err(error), _) => Some(unfinished(&error)),
            (Ok(()), Some(_)) if matches > 0 && self.search.mode == Mode::Content => {
                Some("searched up to the first zero byte, as it is a binary file".to_owned())
            }
            (Ok(()), _) => None,
        };
        if reason.is_none() && matches == 0 {
            return;
        }
        let path = found.into_path();
        if let Some(reason) = reason {
            haul.gaps.push(Gap { path: path.clone(), reason });
        }
        if matches > 0 {
            let hits = Hits { path, matches, lines };
            haul.found += hits.results(self.search.mode);
            haul.files.push(hits);
        }
    }
}

/// Why a file was not searched to its end.
fn unfinished(error: &Error) -> String {
    // The searcher has no other word for its limit.
    match error.raw_os_error() {
        Some(_) => format!("not searched to its end: {error}"),
        None => format!(
            "not searched to its end, as what it holds is too large to search at once (more than \
             {} MB)",
            HEAP >> 20
        ),
    }
}

/// Collects the matches of one file.
struct Tally<'t> {
    search: &'t Search,
    matcher: &'t RegexMatcher,
    halt: &'t Halt<'t>,
    matches: usize,
    lines: Lines,
    binary: Option<u64>,
}

impl Sink for Tally<'_> {
    type Error = Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool> {
        self.matches += 1;
        let extent = self.search.extent;
        match self.search.mode {
            Mode::Files => return Ok(false),
            Mode::Count => return Ok(!self.halt.is_set()),
            Mode::Content => {}
        }
        if self.matches <= extent.kept() {
            let number = found.line_number().unwrap_or(0);
            self.lines.add_match(self.matcher, number, found.bytes());
        }
        Ok(self.matches < extent.goal() && !self.halt.is_set())
    }

    fn context(&mut self, _searcher: &Searcher, line: &SinkContext<'_>) -> Result<bool> {
        if self.matches <= self.search.extent.kept() {
            self.lines.add_around(line.line_number().unwrap_or(0), line.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _searcher: &Searcher) -> Result<bool> {
        if self.matches < self.search.extent.kept() {
            self.lines.add_break();
        }
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, finish: &SinkFinish) -> Result<()> {
        self.binary = finish.binary_byte_offset();
        Ok(())
    }
}

/// A file that stops being read when the search is to stop, however large it is.
struct Polled<'p> {
    file: &'p File,
    halt: &'p Halt<'p>,
    unpolled: &'p mut usize,
}

impl Read for Polled<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if *self.unpolled > POLL {
            *self.unpolled = 0;
            self.halt.poll();
        }
        if self.halt.is_set() {
            return Err(Error::other("stopped"));
        }
        let read = (&mut &*self.file).read(buffer)?;
        *self.unpolled += read;
        Ok(read)
    }
}
