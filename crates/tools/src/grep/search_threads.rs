//! The threads of a search, which run on all cores and return the results in path order.
//!
//! One thread walks the tree in order and queues batches of files. The other threads take them in
//! that order, and so does the walking thread whenever enough are queued. Invariant: every file not
//! yet taken comes after all files that were taken, so no more are taken as soon as the taken ones
//! contain enough results. The results of a batch wait until those of all earlier batches are in.
//! Start reading at [`GrepSearch::run`].

use super::search::{GrepBatchResults, GrepResults, GrepSearch};
use super::stop_signal::GrepStopSignal;
use super::worker::GrepWorker;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::{FileWalk, FoundFile};
use windlass_toolkit::CallFailure;

/// Files per batch at most. The first batches are smaller, so that all threads share a small search
/// and the first page is ready soon.
const MAX_BATCH_FILES: usize = 32;

/// Batches per thread that are queued before the walking thread helps with searching.
const QUEUED_BATCHES_PER_THREAD: usize = 4;

impl GrepSearch {
    /// Searches until enough results are found, or `is_canceled` returns true.
    pub fn run(
        &self,
        walk: &FileWalk<'_>,
        is_canceled: &(dyn Fn() -> bool + Sync),
    ) -> Result<GrepResults, CallFailure> {
        let mut files = walk.files(&self.file_filter)?;
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get());
        let pool = GrepSharedState::new(self, GrepStopSignal::new(is_canceled));
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| {
                    let mut worker = GrepWorker::new(self, &pool.stop_signal);
                    while let Some((number, batch)) = pool.wait_for_batch() {
                        pool.submit_results(number, worker.search_batch(batch));
                    }
                });
            }
            let mut worker = GrepWorker::new(self, &pool.stop_signal);
            for number in 0.. {
                let size = MAX_BATCH_FILES.min(1 + number / 8);
                let batch: Vec<FoundFile<'_>> = files.by_ref().take(size).collect();
                if batch.is_empty() || pool.has_enough() || pool.stop_signal.poll() {
                    break;
                }
                if pool.enqueue(number, batch) > QUEUED_BATCHES_PER_THREAD * threads
                    && let Some((number, batch)) = pool.try_next_batch()
                {
                    pool.submit_results(number, worker.search_batch(batch));
                }
            }
            pool.close_queue();
            while let Some((number, batch)) = pool.try_next_batch() {
                pool.submit_results(number, worker.search_batch(batch));
            }
        });
        Ok(pool.into_results())
    }

    /// Searches a text that is not a file.
    pub(super) fn run_on_text(&self, name: &str, text: &[u8]) -> GrepResults {
        let stop_signal = GrepStopSignal::new(&|| false);
        let mut results = GrepResults::default();
        results.add_batch(GrepWorker::new(self, &stop_signal).search_text(name, text), self);
        results
    }
}

type FileBatch<'f> = (usize, Vec<FoundFile<'f>>);

/// State that the threads of one search share.
struct GrepSharedState<'s, 'f> {
    search: &'s GrepSearch,
    stop_signal: GrepStopSignal<'s>,
    queue: Mutex<GrepBatchQueue<'f>>,
    batch_ready: Condvar,
    results: Mutex<OrderedGrepResults>,
    /// Results in all searched batches, including those that wait for earlier batches.
    result_count: AtomicUsize,
}

#[derive(Default)]
struct GrepBatchQueue<'f> {
    batches: VecDeque<FileBatch<'f>>,
    closed: bool,
}

/// Results that wait for those of earlier batches.
#[derive(Default)]
struct OrderedGrepResults {
    next_batch: usize,
    pending_batches: BTreeMap<usize, GrepBatchResults>,
    results: GrepResults,
}

impl<'s, 'f> GrepSharedState<'s, 'f> {
    fn new(search: &'s GrepSearch, stop_signal: GrepStopSignal<'s>) -> GrepSharedState<'s, 'f> {
        GrepSharedState {
            search,
            stop_signal,
            queue: Mutex::default(),
            batch_ready: Condvar::new(),
            results: Mutex::default(),
            result_count: AtomicUsize::new(0),
        }
    }

    /// Returns true if the batches taken so far contain all wanted results.
    fn has_enough(&self) -> bool {
        self.result_count.load(Ordering::Relaxed) >= self.search.range.results_to_find()
    }

    fn enqueue(&self, number: usize, batch: Vec<FoundFile<'f>>) -> usize {
        let mut queue = lock(&self.queue);
        queue.batches.push_back((number, batch));
        self.batch_ready.notify_one();
        queue.batches.len()
    }

    fn close_queue(&self) {
        lock(&self.queue).closed = true;
        self.batch_ready.notify_all();
    }

    /// Returns the next batch, if one is queued.
    fn try_next_batch(&self) -> Option<FileBatch<'f>> {
        self.pop_batch(&mut lock(&self.queue))
    }

    /// Waits for the next batch; `None` if there will be no more.
    fn wait_for_batch(&self) -> Option<FileBatch<'f>> {
        let mut queue = lock(&self.queue);
        loop {
            let batch = self.pop_batch(&mut queue);
            if batch.is_some() || queue.closed {
                return batch;
            }
            queue = self.batch_ready.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn pop_batch(&self, queue: &mut GrepBatchQueue<'f>) -> Option<FileBatch<'f>> {
        if self.has_enough() || self.stop_signal.is_set() {
            return None;
        }
        queue.batches.pop_front()
    }

    /// Stores the results of a batch, and appends all whose earlier batches are in.
    fn submit_results(&self, number: usize, batch_results: GrepBatchResults) {
        self.result_count.fetch_add(batch_results.result_count, Ordering::Relaxed);
        let mut results = lock(&self.results);
        results.pending_batches.insert(number, batch_results);
        let OrderedGrepResults { next_batch, pending_batches, results: search_results } =
            &mut *results;
        while let Some(batch_results) = pending_batches.remove(next_batch) {
            *next_batch += 1;
            search_results.add_batch(batch_results, self.search);
        }
        if search_results.result_count >= self.search.range.results_to_find() {
            self.stop_signal.set();
        }
        drop(results);
        if self.has_enough() {
            // Wakes threads that wait for a batch, since none will come.
            self.close_queue();
        }
    }

    fn into_results(self) -> GrepResults {
        let results = self.results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.results
    }
}
