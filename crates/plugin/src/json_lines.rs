//! Exchanges JSON lines with a long-running program: each request has an ID, and each response line
//! repeats it.
//!
//! There is no background task. A caller that waits for a response reads the output and puts the
//! lines of other requests into their mailboxes. So nothing outlives the calls, and a program that
//! is not being called blocks on a full pipe. All buffers are bounded: a line, the lines waiting in
//! a mailbox, and the number of unrequested lines. A future that is dropped midway never leaves a
//! partial line, because the read and write buffers belong to the peer. Start reading at
//! [`JsonLinesPeer::request`].

use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use windlass_protocol::display_text::truncate_chars;
use windlass_sandbox::{ProcessHandle, ProcessIo, ProcessStdin, ProcessStdout};
use windlass_toolkit::truncate_output;

/// The maximum length of a line in bytes, in both directions.
pub const MAX_LINE_BYTES: usize = 8 << 20;

/// Bounds the unread bytes of one call, and the bytes waiting to be written.
const MAX_PENDING_BYTES: usize = 2 * MAX_LINE_BYTES;

/// Bounds the consecutive lines whose `id` belongs to no open request.
const MAX_STRAY_LINES: usize = 1_000;

const READ_CHUNK_BYTES: usize = 64 << 10;

/// Time to wait for the exit status of a program that closed its output.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// Bounds the lines of stderr that are logged after a request, and the characters of each.
const MAX_LOGGED_LINES: usize = 100;
const MAX_LOGGED_CHARS: usize = 1_000;

/// Bounds the preview of a malformed line in an error message.
const MAX_SHOWN_CHARS: usize = 120;

/// A connection to a program over JSON lines.
#[derive(Debug)]
pub struct JsonLinesPeer {
    process: Arc<ProcessHandle>,
    writer: tokio::sync::Mutex<LineWriter>,
    reader: tokio::sync::Mutex<LineReader>,
    mailboxes: Mutex<ResponseChannels>,
    /// Offset in the program's stderr up to which it is logged.
    logged_stderr: Mutex<u64>,
}

/// The reason a connection is broken, worded for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerError(pub String);

#[derive(Debug)]
struct LineWriter {
    stdin: ProcessStdin,
    /// Bytes not yet written, starting at offset `written`.
    unsent: Vec<u8>,
    written: usize,
}

#[derive(Debug)]
struct LineReader {
    stdout: ProcessStdout,
    /// Bytes read after the last newline.
    unparsed: Vec<u8>,
}

#[derive(Debug, Default)]
struct ResponseChannels {
    last_id: u64,
    open: BTreeMap<u64, ResponseChannel>,
    /// Requests that the caller dropped and the program has not yet answered.
    abandoned: BTreeSet<u64>,
    stray_lines: usize,
    error: Option<PeerError>,
}

#[derive(Debug)]
struct ResponseChannel {
    sender: UnboundedSender<Vec<u8>>,
    pending_bytes: Arc<AtomicUsize>,
}

/// The `id` that every line must have.
#[derive(Deserialize)]
struct ResponseLineId {
    id: u64,
}

impl JsonLinesPeer {
    /// Creates a connection to a program that was just started.
    pub fn new(process_io: ProcessIo) -> JsonLinesPeer {
        let (stdin, stdout, process) = process_io.split();
        JsonLinesPeer {
            process,
            writer: tokio::sync::Mutex::new(LineWriter { stdin, unsent: Vec::new(), written: 0 }),
            reader: tokio::sync::Mutex::new(LineReader { stdout, unparsed: Vec::new() }),
            mailboxes: Mutex::default(),
            logged_stderr: Mutex::default(),
        }
    }

    /// Logs what the program has written to stderr since the last call, up to `MAX_LOGGED_LINES`.
    pub fn log_stderr(&self, program: &str) {
        if !tracing::enabled!(tracing::Level::INFO) {
            return;
        }
        let mut offset = self.logged_stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let output = self.process.stderr_since(*offset);
        *offset = output.next_offset;
        let lines = output.text.lines().filter(|line| !line.trim().is_empty());
        for line in lines.take(MAX_LOGGED_LINES) {
            let line = truncate_chars(&truncate_output::strip_controls(line), MAX_LOGGED_CHARS);
            tracing::info!(program, "{line}");
        }
    }

    /// Returns the handle that keeps the program running.
    pub fn process(&self) -> &Arc<ProcessHandle> {
        &self.process
    }

    /// Returns true if the connection failed or the program exited.
    pub fn is_over(&self) -> bool {
        self.lock_mailboxes().error.is_some() || self.process.exit_report().is_some()
    }

    /// Sends a request with `fields` and a new ID, which the response lines repeat.
    pub async fn request(&self, mut fields: Value) -> Result<RequestExchange<'_>, PeerError> {
        let (sender, inbox) = unbounded_channel();
        let pending_bytes = Arc::new(AtomicUsize::new(0));
        let id = {
            let mut mailboxes = self.lock_mailboxes();
            mailboxes.last_id += 1;
            let id = mailboxes.last_id;
            let mailbox = ResponseChannel { sender, pending_bytes: Arc::clone(&pending_bytes) };
            mailboxes.open.insert(id, mailbox);
            id
        };
        if let Value::Object(fields) = &mut fields {
            fields.insert("id".into(), id.into());
        }
        let exchange = RequestExchange { peer: self, id, inbox, pending_bytes, is_done: false };
        self.send_line(&fields).await?;
        Ok(exchange)
    }

    /// Sends a request that is answered with one line, and returns the line.
    pub(crate) async fn request_line(&self, fields: Value) -> Result<Vec<u8>, PeerError> {
        let mut exchange = self.request(fields).await?;
        let line = exchange.next_line().await?;
        exchange.finish();
        Ok(line)
    }

    /// Waits until the program has answered all `abandoned` requests.
    pub async fn wait_for_abandoned(&self) -> Result<(), PeerError> {
        while !self.lock_mailboxes().abandoned.is_empty() {
            self.read_lines().await?;
        }
        Ok(())
    }

    /// Writes one line, after all lines still in the buffer.
    async fn send_line(&self, line: &Value) -> Result<(), PeerError> {
        let mut writer = self.writer.lock().await;
        if writer.queue_line(line).is_err() {
            return Err(self
                .set_error(PeerError(format!("{} does not read its input", self.process.name()))));
        }
        let result = writer.flush().await;
        drop(writer);
        match result {
            Ok(()) => Ok(()),
            Err(_) => Err(self.set_error(PeerError(self.exit_message().await))),
        }
    }

    /// Reads once and delivers every complete line.
    async fn read_lines(&self) -> Result<(), PeerError> {
        let mut reader = self.reader.lock().await;
        if let Some(error) = &self.lock_mailboxes().error {
            return Err(error.clone());
        }
        let before = reader.unparsed.len();
        let LineReader { stdout, unparsed } = &mut *reader;
        unparsed.reserve(READ_CHUNK_BYTES);
        if stdout.read_buf(unparsed).await.unwrap_or_default() == 0 {
            let message = self.exit_message().await;
            return Err(self.set_error(PeerError(message)));
        }
        let new_bytes = reader.unparsed.get(before..).unwrap_or_default();
        let Some(end) =
            new_bytes.iter().rposition(|byte| *byte == b'\n').map(|offset| before + offset)
        else {
            if reader.unparsed.len() > MAX_LINE_BYTES {
                let message = "wrote more than 8 MiB without a line break";
                return Err(self.set_error(PeerError(format!("{} {message}", self.process.name()))));
            }
            return Ok(());
        };
        let rest = reader.unparsed.split_off(end + 1);
        let lines = std::mem::replace(&mut reader.unparsed, rest);
        lines.split(|byte| *byte == b'\n').try_for_each(|line| self.deliver_line(line))
    }

    fn deliver_line(&self, line: &[u8]) -> Result<(), PeerError> {
        let name = self.process.name();
        if line.is_empty() {
            return Ok(());
        }
        if line.len() > MAX_LINE_BYTES {
            let message = format!("{name} wrote a line of more than 8 MiB");
            return Err(self.set_error(PeerError(message)));
        }
        let Ok(ResponseLineId { id }) = serde_json::from_slice(line) else {
            return Err(self.set_error(PeerError(format!(
                "{name} wrote a line to its standard output that is not a valid response: `{}`. \
                 A response is one JSON object per line with the `id` of the request; print \
                 everything else to standard error",
                preview_line(line)
            ))));
        };
        let mut mailboxes = self.lock_mailboxes();
        let is_flood = match mailboxes.open.get(&id) {
            Some(mailbox) => {
                let pending_bytes = mailbox.pending_bytes.fetch_add(line.len(), Ordering::SeqCst);
                // A send error means that the caller is gone and does not need the line.
                let _ = mailbox.sender.send(line.to_vec());
                mailboxes.stray_lines = 0;
                pending_bytes > MAX_PENDING_BYTES
            }
            None => {
                if is_final_line(line) {
                    mailboxes.abandoned.remove(&id);
                }
                mailboxes.stray_lines += 1;
                mailboxes.stray_lines > MAX_STRAY_LINES
            }
        };
        drop(mailboxes);
        if is_flood {
            let message = format!("{name} wrote too much output that was not requested");
            return Err(self.set_error(PeerError(message)));
        }
        Ok(())
    }

    /// Marks the connection as broken and returns the error. The first error is kept.
    fn set_error(&self, error: PeerError) -> PeerError {
        self.lock_mailboxes().error.get_or_insert(error).clone()
    }

    async fn exit_message(&self) -> String {
        // Report what is known after the timeout, even if the program is still running.
        let _ = tokio::time::timeout(EXIT_TIMEOUT, self.process.wait_for_exit()).await;
        let closed = || format!("{} closed its standard output", self.process.name());
        self.process.exit_summary().unwrap_or_else(closed)
    }

    fn lock_mailboxes(&self) -> MutexGuard<'_, ResponseChannels> {
        self.mailboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LineWriter {
    /// Appends a line to the write buffer.
    fn queue_line(&mut self, line: &Value) -> Result<(), ()> {
        if self.unsent.len() > MAX_PENDING_BYTES {
            return Err(());
        }
        self.unsent.extend(line.to_string().into_bytes());
        self.unsent.push(b'\n');
        Ok(())
    }

    /// Writes the buffer. If the future is dropped midway, the next flush continues from there.
    async fn flush(&mut self) -> std::io::Result<()> {
        while let Some(unwritten) =
            self.unsent.get(self.written..).filter(|unwritten| !unwritten.is_empty())
        {
            match self.stdin.write(unwritten).await? {
                0 => return Err(std::io::ErrorKind::WriteZero.into()),
                count => self.written += count,
            }
        }
        (self.unsent, self.written) = (Vec::new(), 0);
        Ok(())
    }
}

/// Returns true for the last line of a response: neither `progress` nor `ask`.
fn is_final_line(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct InterimResponseFields {
        progress: Option<serde::de::IgnoredAny>,
        ask: Option<serde::de::IgnoredAny>,
    }
    serde_json::from_slice(line)
        .is_ok_and(|InterimResponseFields { progress, ask }| progress.is_none() && ask.is_none())
}

/// Returns the beginning of a line for display to the user.
fn preview_line(line: &[u8]) -> String {
    let text =
        String::from_utf8_lossy(line.get(..4 * MAX_SHOWN_CHARS).unwrap_or(line)).into_owned();
    let plain: String = text.chars().filter(|c| !c.is_control()).take(MAX_SHOWN_CHARS).collect();
    if plain.len() < text.len() { format!("{plain}…") } else { plain }
}

/// A request and the stream of its response lines.
#[derive(Debug)]
pub struct RequestExchange<'a> {
    peer: &'a JsonLinesPeer,
    id: u64,
    inbox: UnboundedReceiver<Vec<u8>>,
    pending_bytes: Arc<AtomicUsize>,
    is_done: bool,
}

impl RequestExchange<'_> {
    /// Waits for the next response line. Dropping the future loses no data.
    pub async fn next_line(&mut self) -> Result<Vec<u8>, PeerError> {
        loop {
            if let Ok(line) = self.inbox.try_recv() {
                self.pending_bytes.fetch_sub(line.len(), Ordering::SeqCst);
                return Ok(line);
            }
            tokio::select! {
                biased;
                line = self.inbox.recv() => if let Some(line) = line {
                    self.pending_bytes.fetch_sub(line.len(), Ordering::SeqCst);
                    return Ok(line);
                },
                result = self.peer.read_lines() => result?,
            }
        }
    }

    /// Sends another line with the `id` of this request.
    pub async fn send_more(&mut self, mut fields: Value) -> Result<(), PeerError> {
        if let Value::Object(fields) = &mut fields {
            fields.insert("id".into(), self.id.into());
        }
        self.peer.send_line(&fields).await
    }

    /// Ends the exchange: no further lines are expected.
    pub fn finish(mut self) {
        self.is_done = true;
    }
}

impl Drop for RequestExchange<'_> {
    fn drop(&mut self) {
        let mut mailboxes = self.peer.lock_mailboxes();
        mailboxes.open.remove(&self.id);
        if self.is_done || mailboxes.error.is_some() {
            return;
        }
        mailboxes.abandoned.insert(self.id);
        drop(mailboxes);
        // Write as much of the cancel message as possible without blocking; the rest goes out with
        // the next line.
        let Ok(mut writer) = self.peer.writer.try_lock() else { return };
        let cancel = serde_json::json!({"method": "cancel", "id": self.id});
        if writer.queue_line(&cancel).is_ok() {
            let rest = writer.unsent.get(writer.written..).unwrap_or_default().to_vec();
            if let Ok(count) = try_write(&writer.stdin, &rest) {
                writer.written += count;
            }
        }
    }
}

#[cfg(unix)]
fn try_write(input: &ProcessStdin, bytes: &[u8]) -> std::io::Result<usize> {
    input.try_write(bytes)
}

#[cfg(not(unix))]
fn try_write(_: &ProcessStdin, _: &[u8]) -> std::io::Result<usize> {
    Ok(0)
}
