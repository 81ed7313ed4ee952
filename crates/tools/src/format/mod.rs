//! Formatters: what the project's own makes of a file before it is written.
//!
//! A formatter reads a file and writes it to us, never to the disk: what goes on record, what is
//! swapped in, what the model has seen and what an undo takes back are the same bytes. It keeps the
//! invariant that a file which was not kept formatted keeps every byte outside of an edit, and that
//! whatever a formatter does, the model's own bytes can be written. Start reading at
//! [`Formats::groomed`]; which formatter is for which file is in `rows`, one run of it in `run`.

mod groom;
mod rows;
mod run;

pub(crate) use groom::{Draft, groom};
pub use rows::{Row, known};

use rows::{Order, Program};
use run::{Fault, Run, servant};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_protocol::BlobRef;
use windlass_sandbox::World;
use windlass_toolkit::Berth;

/// The largest file that is formatted.
const LARGEST: usize = 1 << 20;

/// How many contents are remembered of which it is known that their files are kept formatted.
const REMEMBERED: usize = 256;

/// How often in a row a formatter may do what no formatter does before it is left out.
const CHANCES: u32 = 3;

const MARK: &str = "\u{feff}";

/// The formatters of a workspace.
#[derive(Debug)]
pub struct Formats {
    rows: Arc<[Row]>,
    berth: Berth,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// Contents of files that are kept formatted, by path, the latest last. One that a formatter
    /// could not read counts if the one before it did: what is wrong with it is the model's.
    kept: VecDeque<(String, BlobRef)>,
    /// How often in a row a row has failed.
    failures: BTreeMap<usize, u32>,
    /// The rows that are left out, with what is to be said about it until that was heard.
    out: BTreeMap<usize, Option<String>>,
}

/// What a formatter makes of a content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// Nothing is to be done or said.
    Nothing,
    /// Other bytes.
    Other {
        /// The formatter's name.
        by: String,
        /// What is written in place of what was wanted.
        bytes: Arc<[u8]>,
    },
    /// It is written as it was wanted, and why.
    Left(String),
}

impl Formats {
    /// The formatters of a workspace, preferred ones first. Nothing is started.
    pub fn open(rows: Vec<Row>, berth: Berth) -> Formats {
        Formats { rows: rows.into(), berth, memory: Mutex::default() }
    }

    /// What the formatter of a file makes of what is to be written, if the file comes from one that
    /// it would have left alone, or is new.
    pub(crate) async fn groomed(
        &self,
        world: &Arc<World>,
        path: &str,
        origin: Option<&[u8]>,
        after: &[u8],
    ) -> Made {
        let Some((mark, body)) = readable(after) else { return Made::Nothing };
        if !self.rows.iter().any(|row| row.knows(path)) {
            return Made::Nothing;
        }
        let Some((index, order)) = self.pick(world, path).await else { return Made::Nothing };
        let Some(row) = self.rows.get(index) else { return Made::Nothing };
        if let Some(said) = self.memory().out.get(&index) {
            return said.clone().map_or(Made::Nothing, Made::Left);
        }
        let was = async {
            let Some(origin) = origin else { return Ok(true) };
            if self.keeps(path, origin) {
                return Ok(true);
            }
            let Some((_, body)) = readable(origin) else { return Ok(false) };
            let same = self.run(row, &order, body).await? == body;
            if same {
                self.keep(path, origin);
            }
            Ok(same)
        };
        let (was, is) = tokio::join!(was, self.run(row, &order, body));
        let kept = matches!(was, Ok(true));
        match (was, is) {
            (Ok(false), _) => Made::Nothing,
            (Ok(true), Ok(text)) => {
                self.memory().failures.remove(&index);
                let bytes = [mark.as_bytes(), text.as_bytes()].concat();
                self.keep(path, &bytes);
                match bytes == after {
                    true => Made::Nothing,
                    false => Made::Other { by: row.name.clone(), bytes: bytes.into() },
                }
            }
            // It could not read what stood there, so nobody knows whether it kept it.
            (Err(fault), Ok(_)) => {
                if !matches!(fault, Fault::Refused(_)) {
                    self.blame(index, row, path, fault);
                }
                Made::Nothing
            }
            (Ok(true) | Err(_), Err(fault)) => {
                if kept {
                    self.keep(path, after);
                }
                Made::Left(self.blame(index, row, path, fault))
            }
        }
    }

    /// What was to be said about formatters that are left out has been heard.
    pub(crate) fn heard(&self) {
        self.memory().out.values_mut().for_each(|said| *said = None);
    }

    /// The first formatter that is set up for a file.
    async fn pick(&self, world: &Arc<World>, path: &str) -> Option<(usize, Order)> {
        let (rows, world, path) = (Arc::clone(&self.rows), Arc::clone(world), path.to_owned());
        let picked = tokio::task::spawn_blocking(move || {
            let mut rows = rows.iter().enumerate().filter(|(_, row)| row.knows(&path));
            rows.find_map(|(index, row)| Some((index, row.order(&world, &path)?)))
        });
        picked.await.ok().flatten()
    }

    async fn run(&self, row: &Row, order: &Order, input: &str) -> Result<String, Fault> {
        let root = self.berth.workspace().root();
        let program = match &order.program {
            Program::Local(path) => root.join(path),
            Program::Named(name) => name.into(),
        };
        let mut servant = servant(&row.name, program, root.join(&order.folder));
        servant.arguments = order.arguments.iter().map(Into::into).collect();
        servant.env = row.env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Run { berth: &self.berth, servant, limit: row.timeout() }.over(input).await
    }

    /// What is said of a formatter that failed. One that goes on doing so is left out.
    fn blame(&self, index: usize, row: &Row, path: &str, fault: Fault) -> String {
        let name = &row.name;
        let mut memory = self.memory();
        let (said, out) = match fault {
            Fault::Refused(why) => return format!("{name} did not format {path}: {why}"),
            Fault::Odd(how) => {
                let failures = memory.failures.entry(index).or_default();
                *failures = failures.saturating_add(1);
                (format!("{name} {how}; {path} is not formatted."), *failures >= CHANCES)
            }
            Fault::Absent(why) => {
                let hint = match row.install.as_str() {
                    "" => String::new(),
                    install => format!(" To install it: {install}."),
                };
                (format!("{path} is not formatted: {}.{hint}", why.trim_end_matches('.')), true)
            }
        };
        if !out {
            return said;
        }
        let said = format!("{said} From now on nothing is formatted by {name}.");
        memory.out.insert(index, Some(said.clone()));
        said
    }

    fn keeps(&self, path: &str, bytes: &[u8]) -> bool {
        let digest = BlobRef::of(bytes);
        self.memory().kept.iter().any(|(name, kept)| name == path && *kept == digest)
    }

    fn keep(&self, path: &str, bytes: &[u8]) {
        let entry = (path.to_owned(), BlobRef::of(bytes));
        let mut memory = self.memory();
        memory.kept.retain(|kept| *kept != entry);
        if memory.kept.len() >= REMEMBERED {
            memory.kept.pop_front();
        }
        memory.kept.push_back(entry);
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A content as a formatter can be given it: its byte-order mark, and its text.
fn readable(bytes: &[u8]) -> Option<(&'static str, &str)> {
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.len() <= LARGEST)?;
    Some(match text.strip_prefix(MARK) {
        Some(body) => (MARK, body),
        None => ("", text),
    })
}

#[cfg(test)]
mod tests;
