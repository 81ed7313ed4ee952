//! A body that grows with its conversation: what was written for one request is not written again
//! for the next.
//!
//! The bytes are those of [`Format::body`], always. A conversation only ever grows at its end, but
//! for its last two turns of ours, which carry the marks of a provider's cache. So what comes
//! before them stands in the buffer for good, and a request costs what is new in it. Whatever else
//! has changed (another model, a message told otherwise, a file that is no longer shown), the
//! draft begins anew.

use super::Format;
use crate::Request;
use crate::adapt::{Ids, Told, Turn, tell};
use crate::catalog::{Model, Quirks};
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_protocol::{BlobRef, Message, Messages, Outcome, Part};

/// So many turns of ours carry marks.
const MARKED: usize = 2;

/// What was written of a conversation.
#[derive(Debug, Default)]
pub struct Draft(Mutex<Written>);

#[derive(Debug, Default)]
struct Written {
    basis: Option<Basis>,
    /// The conversation it is of. While it is held here, none of its messages can change.
    messages: Messages,
    /// How many of its messages stand for good.
    standing: usize,
    /// The ids their calls were given.
    ids: Ids,
    /// Whether the files in them were shown.
    shown: BTreeMap<BlobRef, bool>,
    /// The side that spoke last in them.
    last: Option<Side>,
    text: Bytes,
    /// Where the conversation begins in the text, and where what stands for good ends.
    start: usize,
    end: usize,
}

/// What the form of a message depends on besides itself.
#[derive(Debug, PartialEq)]
struct Basis {
    format: Format,
    quirks: Quirks,
    model: Arc<Model>,
    name: Arc<str>,
    opens: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

impl Side {
    fn of(turn: &Turn<'_>) -> Side {
        match turn {
            Turn::User(_) => Side::Ours,
            Turn::Model(_) => Side::Theirs,
        }
    }
}

impl Draft {
    /// The bytes of a request's body.
    pub fn write(&self, format: Format, request: &Request, quirks: &Quirks) -> Bytes {
        let frame = format.frame(request, quirks);
        if format.replaced(request) {
            return frame.to_string().into();
        }
        let opening = format.opening(request, quirks);
        let (model, name) = (Arc::clone(&request.model), Arc::clone(&request.name));
        let basis = Basis { format, quirks: *quirks, model, name, opens: opening.is_some() };
        let (before, after) = halves(&frame, format.key(), opening.as_ref());
        let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !written.holds(&basis, request) {
            *written = Written { basis: Some(basis), ..Written::default() };
        }
        let standing = written.standing;
        let mut told = tell(request, quirks, standing, &mut written.ids);
        if standing > 0 && !written.follows(&told) {
            *written = Written { basis: written.basis.take(), ..Written::default() };
            told = tell(request, quirks, 0, &mut written.ids);
        }
        written.go_on(told, request, (&before, &after))
    }
}

impl Written {
    /// True if what stands is how this request begins.
    fn holds(&self, basis: &Basis, request: &Request) -> bool {
        let shown = |(blob, shown): (&BlobRef, &bool)| request.files.contains_key(blob) == *shown;
        self.basis.as_ref() == Some(basis)
            && self.messages.shared(&request.messages) >= self.standing
            && self.shown.iter().all(shown)
    }

    /// True if what follows what stands does not reach back into it: the other side speaks, and
    /// all marks are in what follows.
    fn follows(&self, told: &[Told<'_>]) -> bool {
        let sides: Vec<Side> = told.iter().flat_map(|told| &told.turns).map(Side::of).collect();
        let ours =
            sides.chunk_by(|one, next| one == next).filter(|run| run.first() == Some(&Side::Ours));
        sides.first().copied() != self.last && ours.count() >= MARKED
    }

    /// Writes what follows what stands, and decides how much of that stands from now on.
    fn go_on(&mut self, told: Vec<Told<'_>>, request: &Request, halves: (&[u8], &[u8])) -> Bytes {
        let Some(Basis { format, quirks, opens, .. }) = &self.basis else { return Bytes::new() };
        let (format, quirks, opens) = (*format, *quirks, *opens);
        let (before, after) = halves;
        let mut text = take_back(std::mem::take(&mut self.text));
        text.truncate(self.end);
        if text.get(..self.start) != Some(before) {
            let list = text.split_off(self.start.min(text.len()));
            text = BytesMut::with_capacity(before.len() + list.len() + after.len());
            text.extend_from_slice(before);
            text.extend_from_slice(&list);
            self.start = before.len();
        }
        let mut first = !opens && text.len() == self.start;
        let settled = settled(&told);
        let (mut for_good, mut open) = (Vec::new(), Vec::new());
        for (place, told) in told.into_iter().enumerate() {
            if place < settled {
                self.last = told.turns.last().map(Side::of).or(self.last);
                self.ids.keep(told.ids);
                for_good.extend(told.turns);
            } else {
                open.extend(told.turns);
            }
        }
        for message in request.messages.iter().skip(self.standing).take(settled) {
            let blobs = blobs(message);
            self.shown.extend(blobs.map(|b| (b.clone(), request.files.contains_key(b))));
        }
        self.standing += settled;
        self.messages = request.messages.clone();
        put(&mut text, &format.list(for_good, request, &quirks), &mut first);
        self.end = text.len();
        let mut open = format.list(open, request, &quirks);
        format.mark(&mut open, request, &quirks);
        put(&mut text, &open, &mut first);
        text.extend_from_slice(after);
        self.text = text.freeze();
        self.text.clone()
    }
}

/// How many of these messages will not be written otherwise, whatever follows them: those before
/// the last marks, up to where the other side begins to speak.
fn settled(told: &[Told<'_>]) -> usize {
    let mut turns = Vec::new();
    for (place, told) in told.iter().enumerate() {
        turns.extend(told.turns.iter().zip(0..).map(|(turn, nth)| (place, nth, Side::of(turn))));
    }
    let mut ours = 0;
    let mut after: Option<(usize, i32, Side)> = None;
    for (place, nth, side) in turns.into_iter().rev() {
        if let Some((begins, 0, next)) = after
            && next != side
            && ours >= MARKED
        {
            return begins;
        }
        let new = after.is_none_or(|(.., next)| next != side);
        ours += usize::from(new && side == Side::Ours);
        after = Some((place, nth, side));
    }
    0
}

/// The blobs of the files in a message.
fn blobs(message: &Message) -> impl Iterator<Item = &BlobRef> {
    let files = message.parts.iter().flat_map(|part| match part {
        Part::File(file) => std::slice::from_ref(file),
        Part::Call(call) => call.outcome.as_ref().map_or(&[][..], Outcome::attachments),
        Part::Text { .. } | Part::Reasoning { .. } => &[],
    });
    files.map(|file| &file.blob)
}

/// The buffer, to be written on: the very same if the last request is done with it.
fn take_back(text: Bytes) -> BytesMut {
    text.try_into_mut().unwrap_or_else(|text| BytesMut::from(&*text))
}

/// A body's bytes before the conversation and after it.
fn halves(frame: &Value, key: &str, opening: Option<&Value>) -> (Vec<u8>, Vec<u8>) {
    let (mut before, mut after) = (Vec::from(b"{"), Vec::new());
    let mut passed = false;
    for (name, value) in frame.as_object().into_iter().flatten() {
        let half = if passed { &mut after } else { &mut before };
        if *half != b"{" {
            half.push(b',');
        }
        half.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
        half.push(b':');
        if name == key {
            half.push(b'[');
            half.extend(opening.map(Value::to_string).unwrap_or_default().bytes());
            after.push(b']');
            passed = true;
        } else {
            half.extend_from_slice(value.to_string().as_bytes());
        }
    }
    after.push(b'}');
    (before, after)
}

fn put(text: &mut BytesMut, list: &[Value], first: &mut bool) {
    for value in list {
        if !std::mem::take(first) {
            text.put_u8(b',');
        }
        // A value is written without fail: its keys are text, and so is the buffer's growing.
        let _ = serde_json::to_writer(text.writer(), value);
    }
}
