//! Lines of JSON to and from a program that is kept running: requests by number, and whatever comes
//! back under that number.
//!
//! There is no task of its own: whoever waits for an answer reads, and puts what is for others into
//! their boxes. So nothing outlives the calls, and a program that nobody calls stops at a full pipe.
//! Everything is bounded: a line, what waits in a box, and how much may come that nobody asked for.
//! Whatever is dropped half-way leaves whole lines behind, because what is read or yet to be written
//! stays here. Start reading at [`Lines::request`].

use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use windlass_sandbox::{Engaged, Held, Inlet, Outlet};

/// How long a line may be, in bytes, in both directions.
pub const LONGEST: usize = 8 << 20;

/// How much of one call may wait to be looked at, and how much may wait to be written.
const WAITING: usize = 2 * LONGEST;

/// So many lines in a row may answer nothing that was asked.
const STRAYS: usize = 1_000;

/// How much is read at once.
const CHUNK: usize = 64 << 10;

/// How long the last words of one that closed its output are waited for.
const PARTING: Duration = Duration::from_secs(1);

/// How much is shown of what cannot be understood.
const SHOWN: usize = 120;

/// A conversation with a program.
#[derive(Debug)]
pub struct Lines {
    held: Arc<Held>,
    mouth: tokio::sync::Mutex<Mouth>,
    ear: tokio::sync::Mutex<Ear>,
    post: Mutex<Post>,
}

/// Why a program can no longer be talked to, for whoever called it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

#[derive(Debug)]
struct Mouth {
    input: Inlet,
    /// What is yet to be written, from `written` on.
    rest: Vec<u8>,
    written: usize,
}

#[derive(Debug)]
struct Ear {
    output: Outlet,
    /// What was read and has no end of a line yet.
    heard: Vec<u8>,
}

#[derive(Debug, Default)]
struct Post {
    last: u64,
    boxes: BTreeMap<u64, Letterbox>,
    /// What nobody waits for any more, and was not answered yet.
    left: BTreeSet<u64>,
    strays: usize,
    broken: Option<Broken>,
}

#[derive(Debug)]
struct Letterbox {
    sender: UnboundedSender<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
}

/// What every line has.
#[derive(Deserialize)]
struct Head {
    id: u64,
}

impl Lines {
    /// A conversation with a program that was just started.
    pub fn new(engaged: Engaged) -> Lines {
        let (input, output, held) = engaged.split();
        Lines {
            held,
            mouth: tokio::sync::Mutex::new(Mouth { input, rest: Vec::new(), written: 0 }),
            ear: tokio::sync::Mutex::new(Ear { output, heard: Vec::new() }),
            post: Mutex::default(),
        }
    }

    /// What keeps the program running.
    pub fn held(&self) -> &Arc<Held> {
        &self.held
    }

    /// True if nothing more comes of it.
    pub fn is_over(&self) -> bool {
        self.post().broken.is_some() || self.held.ending().is_some()
    }

    /// Asks something. `fields` become the request, with a number that its answers have, too.
    pub async fn request(&self, mut fields: Value) -> Result<Exchange<'_>, Broken> {
        let (sender, inbox) = unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let id = {
            let mut post = self.post();
            post.last += 1;
            let id = post.last;
            let letterbox = Letterbox { sender, waiting: Arc::clone(&waiting) };
            post.boxes.insert(id, letterbox);
            id
        };
        if let Value::Object(fields) = &mut fields {
            fields.insert("id".into(), id.into());
        }
        let exchange = Exchange { lines: self, id, inbox, waiting, done: false };
        self.send(&fields).await?;
        Ok(exchange)
    }

    /// Waits until what was given up before has been answered all the same.
    pub async fn settled(&self) -> Result<(), Broken> {
        while !self.post().left.is_empty() {
            self.hear().await?;
        }
        Ok(())
    }

    /// Writes one line, after all others that are yet to be written.
    async fn send(&self, line: &Value) -> Result<(), Broken> {
        let mut mouth = self.mouth.lock().await;
        if mouth.say(line).is_err() {
            return Err(self.fail(Broken(format!("{} reads nothing", self.held.name()))));
        }
        let written = mouth.flush().await;
        drop(mouth);
        match written {
            Ok(()) => Ok(()),
            Err(_) => Err(self.fail(Broken(self.last_words().await))),
        }
    }

    /// Reads once, and puts every whole line where it belongs.
    async fn hear(&self) -> Result<(), Broken> {
        let mut ear = self.ear.lock().await;
        if let Some(broken) = &self.post().broken {
            return Err(broken.clone());
        }
        let before = ear.heard.len();
        let Ear { output, heard } = &mut *ear;
        heard.reserve(CHUNK);
        if output.read_buf(heard).await.unwrap_or_default() == 0 {
            let words = self.last_words().await;
            return Err(self.fail(Broken(words)));
        }
        let fresh = ear.heard.get(before..).unwrap_or_default();
        let Some(end) = fresh.iter().rposition(|byte| *byte == b'\n').map(|at| before + at) else {
            if ear.heard.len() > LONGEST {
                let words = "wrote a line of more than 8 MiB without an end";
                return Err(self.fail(Broken(format!("{} {words}", self.held.name()))));
            }
            return Ok(());
        };
        let rest = ear.heard.split_off(end + 1);
        let whole = std::mem::replace(&mut ear.heard, rest);
        whole.split(|byte| *byte == b'\n').try_for_each(|line| self.deliver(line))
    }

    fn deliver(&self, line: &[u8]) -> Result<(), Broken> {
        let name = self.held.name();
        if line.is_empty() {
            return Ok(());
        }
        if line.len() > LONGEST {
            let words = format!("{name} wrote a line of more than 8 MiB");
            return Err(self.fail(Broken(words)));
        }
        let Ok(Head { id }) = serde_json::from_slice(line) else {
            return Err(self.fail(Broken(format!(
                "{name} wrote a line to its standard output that is no answer: `{}`. Answers are \
                 one JSON object a line with the `id` of the request; everything else it prints \
                 belongs on standard error",
                shown(line)
            ))));
        };
        let mut post = self.post();
        let flooded = match post.boxes.get(&id) {
            Some(letterbox) => {
                let waiting = letterbox.waiting.fetch_add(line.len(), Ordering::SeqCst);
                // Whoever waited may have gone this very moment; then nobody needs it.
                let _ = letterbox.sender.send(line.to_vec());
                post.strays = 0;
                waiting > WAITING
            }
            None => {
                if is_last(line) {
                    post.left.remove(&id);
                }
                post.strays += 1;
                post.strays > STRAYS
            }
        };
        drop(post);
        if flooded {
            let words = format!("{name} writes more than anybody asked for");
            return Err(self.fail(Broken(words)));
        }
        Ok(())
    }

    /// From now on nobody talks to it. The first reason is the one that counts.
    fn fail(&self, broken: Broken) -> Broken {
        self.post().broken.get_or_insert(broken).clone()
    }

    async fn last_words(&self) -> String {
        // Whether it ended or not, what is known by then is told.
        let _ = tokio::time::timeout(PARTING, self.held.ended()).await;
        let closed = || format!("{} closed its standard output", self.held.name());
        self.held.last_words().unwrap_or_else(closed)
    }

    fn post(&self) -> MutexGuard<'_, Post> {
        self.post.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mouth {
    /// Adds a line to what is yet to be written.
    fn say(&mut self, line: &Value) -> Result<(), ()> {
        if self.rest.len() > WAITING {
            return Err(());
        }
        self.rest.extend(line.to_string().into_bytes());
        self.rest.push(b'\n');
        Ok(())
    }

    /// Writes what is yet to be written. Dropped half-way, it goes on where it was.
    async fn flush(&mut self) -> std::io::Result<()> {
        while let Some(left) = self.rest.get(self.written..).filter(|left| !left.is_empty()) {
            match self.input.write(left).await? {
                0 => return Err(std::io::ErrorKind::WriteZero.into()),
                count => self.written += count,
            }
        }
        (self.rest, self.written) = (Vec::new(), 0);
        Ok(())
    }
}

/// True for a line after which nothing more comes under its number.
fn is_last(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct More {
        progress: Option<serde::de::IgnoredAny>,
        ask: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice(line)
        .is_ok_and(|More { progress, ask }| progress.is_none() && ask.is_none())
}

/// The beginning of a line, for a person.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(..4 * SHOWN).unwrap_or(line)).into_owned();
    let plain: String = text.chars().filter(|c| !c.is_control()).take(SHOWN).collect();
    if plain.len() < text.len() { format!("{plain}…") } else { plain }
}

/// One request and its answers.
#[derive(Debug)]
pub struct Exchange<'a> {
    lines: &'a Lines,
    id: u64,
    inbox: UnboundedReceiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    done: bool,
}

impl Exchange<'_> {
    /// The next line that came back. What is dropped while it waits loses nothing.
    pub async fn next(&mut self) -> Result<Vec<u8>, Broken> {
        loop {
            if let Ok(line) = self.inbox.try_recv() {
                self.waiting.fetch_sub(line.len(), Ordering::SeqCst);
                return Ok(line);
            }
            tokio::select! {
                biased;
                line = self.inbox.recv() => if let Some(line) = line {
                    self.waiting.fetch_sub(line.len(), Ordering::SeqCst);
                    return Ok(line);
                },
                heard = self.lines.hear() => heard?,
            }
        }
    }

    /// Says something more under the same number.
    pub async fn say(&mut self, mut fields: Value) -> Result<(), Broken> {
        if let Value::Object(fields) = &mut fields {
            fields.insert("id".into(), self.id.into());
        }
        self.lines.send(&fields).await
    }

    /// Nothing more is expected.
    pub fn close(mut self) {
        self.done = true;
    }
}

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        let mut post = self.lines.post();
        post.boxes.remove(&self.id);
        if self.done || post.broken.is_some() {
            return;
        }
        post.left.insert(self.id);
        drop(post);
        // It is told as far as that can be done at once; the rest goes with the next line.
        let Ok(mut mouth) = self.lines.mouth.try_lock() else { return };
        let cancel = serde_json::json!({"method": "cancel", "id": self.id});
        if mouth.say(&cancel).is_ok() {
            let rest = mouth.rest.get(mouth.written..).unwrap_or_default().to_vec();
            if let Ok(count) = try_write(&mouth.input, &rest) {
                mouth.written += count;
            }
        }
    }
}

#[cfg(unix)]
fn try_write(input: &Inlet, bytes: &[u8]) -> std::io::Result<usize> {
    input.try_write(bytes)
}

#[cfg(not(unix))]
fn try_write(_: &Inlet, _: &[u8]) -> std::io::Result<usize> {
    Ok(0)
}
