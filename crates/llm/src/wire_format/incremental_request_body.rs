//! A request body that grows with its conversation, so that each request serializes only the new
//! messages.
//!
//! The bytes always equal those of [`WireFormat::body`]. A conversation grows only at its end, except
//! for the last two user turns, which carry the provider's cache marks. So everything before them
//! is settled in the buffer, and the cost of a request is proportional to its new content. Any
//! other change (another model, an edited message, a file that is no longer sent) restarts the body
//! from scratch.

use super::WireFormat;
use crate::ModelRequest;
use crate::adapt::{AdaptedMessage, AdaptedTurn, UsedCallIds, adapt_messages};
use crate::catalog::Model;
use crate::quirks::Quirks;
use bytes::{BufMut, Bytes, BytesMut};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use windlass_protocol::{BlobRef, CallOutcome, Message, MessagePart, Messages};

/// The number of user turns at the end that carry cache marks.
const CACHE_MARKED_TURNS: usize = 2;

/// The reusable request body of a conversation; see [`IncrementalRequestBody::write_body`].
#[derive(Debug, Default)]
pub struct IncrementalRequestBody(Mutex<RequestBodyCache>);

#[derive(Debug, Default)]
struct RequestBodyCache {
    basis: Option<RequestBodyCacheKey>,
    /// The conversation that was written. Keeping it here guarantees that none of its messages can
    /// change.
    messages: Messages,
    /// The number of messages whose bytes are settled.
    settled_messages: usize,
    /// The call IDs assigned in the first `settled_messages` messages.
    call_ids: UsedCallIds,
    /// The files in the settled messages, and whether each was sent.
    shown_files: BTreeMap<BlobRef, bool>,
    /// The side of the last turn before `settled_end`.
    last_side: Option<TurnSide>,
    text: Bytes,
    /// Offset in `text` of the first message; `settled_end` is the offset after the last settled
    /// one.
    messages_start: usize,
    settled_end: usize,
}

/// Inputs other than the message itself that determine how it is written. If they change,
/// `RequestBodyCache` restarts.
#[derive(Debug, PartialEq)]
struct RequestBodyCacheKey {
    format: WireFormat,
    quirks: Quirks,
    model: Arc<Model>,
    model_name: Arc<str>,
    has_system_message: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnSide {
    User,
    Model,
}

impl TurnSide {
    fn of_turn(turn: &AdaptedTurn<'_>) -> TurnSide {
        match turn {
            AdaptedTurn::User(_) => TurnSide::User,
            AdaptedTurn::Model(_) => TurnSide::Model,
        }
    }
}

impl IncrementalRequestBody {
    /// Writes the body of a request and returns its bytes.
    pub fn write_body(&self, format: WireFormat, request: &ModelRequest, quirks: &Quirks) -> Bytes {
        let envelope = format.envelope(request, quirks);
        if format.body_overrides_messages(request) {
            return envelope.to_string().into();
        }
        let system_message = format.system_message(request, quirks);
        let (model, model_name) = (Arc::clone(&request.model), Arc::clone(&request.model_name));
        let basis = RequestBodyCacheKey {
            format,
            quirks: *quirks,
            model,
            model_name,
            has_system_message: system_message.is_some(),
        };
        let (prefix, suffix) =
            split_envelope(&envelope, format.messages_key(), system_message.as_ref());
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !body.is_prefix_of(&basis, request) {
            *body = RequestBodyCache { basis: Some(basis), ..RequestBodyCache::default() };
        }
        let settled = body.settled_messages;
        let mut adapted = adapt_messages(request, quirks, settled, &mut body.call_ids);
        if settled > 0 && !body.can_append(&adapted) {
            *body = RequestBodyCache { basis: body.basis.take(), ..RequestBodyCache::default() };
            adapted = adapt_messages(request, quirks, 0, &mut body.call_ids);
        }
        body.append_messages(adapted, request, (&prefix, &suffix))
    }
}

impl RequestBodyCache {
    /// Returns true if the settled bytes are a prefix of this request's conversation.
    fn is_prefix_of(&self, basis: &RequestBodyCacheKey, request: &ModelRequest) -> bool {
        let is_unchanged = |(blob, was_shown): (&BlobRef, &bool)| {
            request.file_bytes.contains_key(blob) == *was_shown
        };
        self.basis.as_ref() == Some(basis)
            && self.messages.shared_prefix_len(&request.messages) >= self.settled_messages
            && self.shown_files.iter().all(is_unchanged)
    }

    /// Returns true if the new messages do not affect settled ones: they start with the other side,
    /// and they contain all cache marks.
    fn can_append(&self, adapted: &[AdaptedMessage<'_>]) -> bool {
        let sides: Vec<TurnSide> =
            adapted.iter().flat_map(|adapted| &adapted.turns).map(TurnSide::of_turn).collect();
        let user_runs = sides
            .chunk_by(|one, next| one == next)
            .filter(|run| run.first() == Some(&TurnSide::User));
        sides.first().copied() != self.last_side && user_runs.count() >= CACHE_MARKED_TURNS
    }

    /// Writes the messages after the settled ones and decides how many of them become settled.
    fn append_messages(
        &mut self,
        adapted: Vec<AdaptedMessage<'_>>,
        request: &ModelRequest,
        envelope: (&[u8], &[u8]),
    ) -> Bytes {
        let Some(RequestBodyCacheKey { format, quirks, has_system_message, .. }) = &self.basis
        else {
            return Bytes::new();
        };
        let (format, quirks, has_system_message) = (*format, *quirks, *has_system_message);
        let (prefix, suffix) = envelope;
        let mut text = reclaim_buffer(std::mem::take(&mut self.text));
        text.truncate(self.settled_end);
        if text.get(..self.messages_start) != Some(prefix) {
            let list = text.split_off(self.messages_start.min(text.len()));
            text = BytesMut::with_capacity(prefix.len() + list.len() + suffix.len());
            text.extend_from_slice(prefix);
            text.extend_from_slice(&list);
            self.messages_start = prefix.len();
        }
        let mut is_first = !has_system_message && text.len() == self.messages_start;
        let settled = count_settled(&adapted);
        let mut settled_turns = Vec::new();
        let mut open_turns = Vec::new();
        for (index, adapted) in adapted.into_iter().enumerate() {
            if index < settled {
                self.last_side = adapted.turns.last().map(TurnSide::of_turn).or(self.last_side);
                self.call_ids.commit(adapted.call_ids);
                settled_turns.extend(adapted.turns);
            } else {
                open_turns.extend(adapted.turns);
            }
        }
        for message in request.messages.iter().skip(self.settled_messages).take(settled) {
            let blobs = message_blobs(message);
            self.shown_files.extend(blobs.map(|b| (b.clone(), request.file_bytes.contains_key(b))));
        }
        self.settled_messages += settled;
        self.messages = request.messages.clone();
        append_list(&mut text, &format.messages(settled_turns, request, &quirks), &mut is_first);
        self.settled_end = text.len();
        let mut open_messages = format.messages(open_turns, request, &quirks);
        format.set_cache_marks(&mut open_messages, request, &quirks);
        append_list(&mut text, &open_messages, &mut is_first);
        text.extend_from_slice(suffix);
        self.text = text.freeze();
        self.text.clone()
    }
}

/// Returns how many of these messages no later message can change: those before the last cache
/// marks, up to a change of side.
fn count_settled(adapted: &[AdaptedMessage<'_>]) -> usize {
    let mut turns = Vec::new();
    for (index, adapted) in adapted.iter().enumerate() {
        turns.extend(
            adapted.turns.iter().zip(0..).map(|(turn, nth)| (index, nth, TurnSide::of_turn(turn))),
        );
    }
    let mut user_runs = 0;
    let mut following: Option<(usize, i32, TurnSide)> = None;
    for (index, nth, side) in turns.into_iter().rev() {
        if let Some((start, 0, next)) = following
            && next != side
            && user_runs >= CACHE_MARKED_TURNS
        {
            return start;
        }
        let starts_run = following.is_none_or(|(.., next)| next != side);
        user_runs += usize::from(starts_run && side == TurnSide::User);
        following = Some((index, nth, side));
    }
    0
}

/// Returns the blobs of the files in a message.
fn message_blobs(message: &Message) -> impl Iterator<Item = &BlobRef> {
    let files = message.parts.iter().flat_map(|part| match part {
        MessagePart::File(file) => std::slice::from_ref(file),
        MessagePart::Call(call) => call.outcome.as_ref().map_or(&[][..], CallOutcome::attachments),
        MessagePart::Text { .. } | MessagePart::Reasoning { .. } => &[],
    });
    files.map(|file| &file.blob)
}

/// Returns a writable buffer: the same allocation if the last request no longer uses it, else a
/// copy.
fn reclaim_buffer(text: Bytes) -> BytesMut {
    text.try_into_mut().unwrap_or_else(|text| BytesMut::from(&*text))
}

/// Returns the bytes of the body before and after the `key` field's list.
fn split_envelope(
    envelope: &Value,
    key: &str,
    system_message: Option<&Value>,
) -> (Vec<u8>, Vec<u8>) {
    let mut prefix = Vec::from(b"{");
    let mut suffix = Vec::new();
    let mut is_after_list = false;
    for (name, value) in envelope.as_object().into_iter().flatten() {
        let half = if is_after_list { &mut suffix } else { &mut prefix };
        if *half != b"{" {
            half.push(b',');
        }
        half.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
        half.push(b':');
        if name == key {
            half.push(b'[');
            half.extend(system_message.map(Value::to_string).unwrap_or_default().bytes());
            suffix.push(b']');
            is_after_list = true;
        } else {
            half.extend_from_slice(value.to_string().as_bytes());
        }
    }
    suffix.push(b'}');
    (prefix, suffix)
}

fn append_list(text: &mut BytesMut, list: &[Value], is_first: &mut bool) {
    for value in list {
        if !std::mem::take(is_first) {
            text.put_u8(b',');
        }
        // This cannot fail: the keys of a `Value` are strings, and the buffer grows as needed.
        let _ = serde_json::to_writer(text.writer(), value);
    }
}
