//! Searching a tree on all cores, with what is found in the order of paths.
//!
//! One thread walks the tree in order and lays out batches of files; the others take them in that
//! order, and so does the walking one whenever enough are laid out. It follows that whatever was
//! not taken yet comes behind all that was: as soon as enough has been found in what was taken,
//! nothing more is. A batch's results wait until those of all before it are in. Start reading at
//! [`Search::run`].

use super::Mode;
use super::lines::Lines;
use super::worker::{Haul, Worker};
use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use windlass_sandbox::{Found, Tree, Wanted};
use windlass_toolkit::Failure;

/// How many files a batch holds at most. The first ones hold fewer, so that few files are searched
/// by all and a first page is there soon.
const BATCH: usize = 32;

/// How many batches for each thread are laid out before the walking thread helps.
const LAID_OUT: usize = 4;

/// How large a regular expression may become, and what it may remember while it searches.
const REGEX_BYTES: usize = 16 << 20;

/// What to search for, and how much of it is wanted.
pub struct Search {
    pub(super) matcher: RegexMatcher,
    pub(super) across: Across,
    /// What is wanted of the matches.
    pub mode: Mode,
    /// How many lines around each match.
    pub context: usize,
    /// Which files.
    pub wanted: Wanted,
    /// How many results.
    pub extent: Extent,
}

/// What a match may span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Across {
    OneLine,
    Lines,
}

/// Which results are wanted: matches, or files where the mode is about files.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// How many come before.
    pub skipped: usize,
    /// How many are wanted.
    pub shown: usize,
    /// How many more are counted before the search ends.
    pub beyond: usize,
}

impl Extent {
    /// Everything there is.
    pub const ALL: Extent = Extent { skipped: 0, shown: usize::MAX / 2, beyond: 0 };

    /// How many results must be kept.
    pub(super) fn kept(self) -> usize {
        self.skipped.saturating_add(self.shown)
    }

    /// How many must be found to end the search: one more than are counted, so that it is known
    /// that there are more.
    pub(super) fn goal(self) -> usize {
        self.kept().saturating_add(self.beyond).saturating_add(1)
    }
}

/// What a search has found.
#[derive(Debug, Default)]
pub struct Harvest {
    /// The files with matches, in the order of paths, as far as they were wanted.
    pub files: Vec<Hits>,
    /// How many results there are, wanted or not, up to where the search ended.
    pub found: usize,
    /// How many files were searched.
    pub searched: usize,
    /// How many of them turned out to be binary.
    pub binary: usize,
    /// Files that could not be searched to their end.
    pub gaps: Vec<Gap>,
}

impl Harvest {
    /// Takes the results that come next.
    fn take(&mut self, haul: Haul, search: &Search) {
        for mut hits in haul.files {
            let results = hits.results(search.mode);
            if self.found + results <= search.extent.skipped {
                hits.lines = Lines::default();
            }
            if self.found < search.extent.kept() {
                self.files.push(hits);
            }
            self.found += results;
        }
        self.searched += haul.searched;
        self.binary += haul.binary;
        self.gaps.extend(haul.gaps);
    }
}

/// The matches in one file.
#[derive(Debug)]
pub struct Hits {
    /// The file.
    pub path: String,
    /// How many there are.
    pub matches: usize,
    /// Their lines, where the mode wants them.
    pub lines: Lines,
}

impl Hits {
    /// What the file counts for.
    pub(super) fn results(&self, mode: Mode) -> usize {
        match mode {
            Mode::Content => self.matches,
            Mode::Files | Mode::Count => 1,
        }
    }
}

/// A file that could not be searched to its end.
#[derive(Debug)]
pub struct Gap {
    /// The file.
    pub path: String,
    /// Why, as a person or a model reads it.
    pub reason: String,
}

impl Search {
    /// A search for all lines that match, everywhere. A pattern that can only match across lines
    /// is searched for across lines.
    pub fn new(pattern: &str) -> Result<Search, Failure> {
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).size_limit(REGEX_BYTES).dfa_size_limit(2 * REGEX_BYTES);
        let by_line = builder.line_terminator(Some(b'\n')).build(pattern);
        let (matcher, across) = match by_line {
            Ok(matcher) => (Ok(matcher), Across::OneLine),
            Err(error) if matches!(error.kind(), ErrorKind::NotAllowed(_)) => {
                (builder.line_terminator(None).build(pattern), Across::Lines)
            }
            Err(error) => (Err(error), Across::OneLine),
        };
        Ok(Search {
            matcher: matcher.map_err(|error| invalid(pattern, &error))?,
            across,
            mode: Mode::Content,
            context: 0,
            wanted: Wanted::default(),
            extent: Extent::ALL,
        })
    }

    /// Searches until enough is found, or `cancelled` says so.
    pub fn run(
        &self,
        tree: &Tree<'_>,
        cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Harvest, Failure> {
        let mut files = tree.files(&self.wanted)?;
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        let crew = Crew::new(self, Halt { flag: AtomicBool::new(false), cancelled });
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| {
                    let mut worker = Worker::new(self, &crew.halt);
                    while let Some((number, batch)) = crew.wait() {
                        crew.settle(number, worker.search(batch));
                    }
                });
            }
            let mut worker = Worker::new(self, &crew.halt);
            for number in 0.. {
                let size = BATCH.min(1 + number / 8);
                let batch: Vec<Found<'_>> = files.by_ref().take(size).collect();
                if batch.is_empty() || crew.has_enough() || crew.halt.poll() {
                    break;
                }
                if crew.lay_out(number, batch) > LAID_OUT * threads
                    && let Some((number, batch)) = crew.take()
                {
                    crew.settle(number, worker.search(batch));
                }
            }
            crew.close();
            while let Some((number, batch)) = crew.take() {
                crew.settle(number, worker.search(batch));
            }
        });
        Ok(crew.finish())
    }
}

/// A word on a pattern that is none, and how to search for it as it stands.
fn invalid(pattern: &str, error: &grep_regex::Error) -> Failure {
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default();
    let reason = reason.strip_prefix("error: ").unwrap_or(reason);
    let special = |c: char| r"\.+*?()|[]{}^$#&-~".contains(c);
    let mut literal = String::new();
    for character in pattern.chars() {
        if special(character) {
            literal.push('\\');
        }
        literal.push(character);
    }
    Failure::new(format!(
        "the pattern is not a regular expression: {reason}. To search for it literally: {literal}"
    ))
}

/// Tells every thread when to stop.
pub(super) struct Halt<'a> {
    flag: AtomicBool,
    cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Halt<'_> {
    /// Whether it was told. Costs nothing.
    pub(super) fn is_set(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Asks whoever started the search.
    pub(super) fn poll(&self) -> bool {
        if (self.cancelled)() {
            self.flag.store(true, Ordering::Relaxed);
        }
        self.is_set()
    }
}

type Batch<'f> = (usize, Vec<Found<'f>>);

/// What the threads of one search share.
struct Crew<'s, 'f> {
    search: &'s Search,
    halt: Halt<'s>,
    queue: Mutex<Queue<'f>>,
    news: Condvar,
    board: Mutex<Board>,
    /// Results in all that was searched, also where what comes before is still missing.
    found: AtomicUsize,
}

#[derive(Default)]
struct Queue<'f> {
    batches: VecDeque<Batch<'f>>,
    closed: bool,
}

/// Where results wait for those before them.
#[derive(Default)]
struct Board {
    next: usize,
    waiting: BTreeMap<usize, Haul>,
    harvest: Harvest,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'s, 'f> Crew<'s, 'f> {
    fn new(search: &'s Search, halt: Halt<'s>) -> Crew<'s, 'f> {
        Crew {
            search,
            halt,
            queue: Mutex::default(),
            news: Condvar::new(),
            board: Mutex::default(),
            found: AtomicUsize::new(0),
        }
    }

    /// Whether what was taken holds all that is wanted.
    fn has_enough(&self) -> bool {
        self.found.load(Ordering::Relaxed) >= self.search.extent.goal()
    }

    fn lay_out(&self, number: usize, batch: Vec<Found<'f>>) -> usize {
        let mut queue = lock(&self.queue);
        queue.batches.push_back((number, batch));
        self.news.notify_one();
        queue.batches.len()
    }

    fn close(&self) {
        lock(&self.queue).closed = true;
        self.news.notify_all();
    }

    /// The next batch, if there is one.
    fn take(&self) -> Option<Batch<'f>> {
        self.next(&mut lock(&self.queue))
    }

    /// The next batch, as soon as there is one.
    fn wait(&self) -> Option<Batch<'f>> {
        let mut queue = lock(&self.queue);
        loop {
            let batch = self.next(&mut queue);
            if batch.is_some() || queue.closed {
                return batch;
            }
            queue = self.news.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn next(&self, queue: &mut Queue<'f>) -> Option<Batch<'f>> {
        if self.has_enough() || self.halt.is_set() {
            return None;
        }
        queue.batches.pop_front()
    }

    /// Puts a batch's results where they belong.
    fn settle(&self, number: usize, haul: Haul) {
        self.found.fetch_add(haul.found, Ordering::Relaxed);
        let mut board = lock(&self.board);
        board.waiting.insert(number, haul);
        let Board { next, waiting, harvest } = &mut *board;
        while let Some(haul) = waiting.remove(next) {
            *next += 1;
            harvest.take(haul, self.search);
        }
        if harvest.found >= self.search.extent.goal() {
            self.halt.flag.store(true, Ordering::Relaxed);
        }
        drop(board);
        if self.has_enough() {
            // Whoever waits for a batch waits for nothing.
            self.close();
        }
    }

    fn finish(self) -> Harvest {
        let board = self.board.into_inner().unwrap_or_else(PoisonError::into_inner);
        board.harvest
    }
}
