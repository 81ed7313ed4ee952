//! Adaptation: one conversation, told so that any provider takes it.
//!
//! What all wire formats have in common is done here, once: every call has a result and every
//! result a call, ids and names hold only what providers allow, nothing is empty, what the model
//! cannot see is described in words, and what one model sealed is not shown to another.

mod files;
pub mod schema;

pub(crate) use files::{File, Sight};

use crate::Request;
use crate::catalog::{CallIds, Quirks};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol::{Author, CallPart, Message, Outcome, Part, Role};

/// A turn of the conversation, as a provider sees it.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// What the model is told: text, files, and the results of its calls, which come first.
    User(Vec<Item<'a>>),
    /// What it did itself.
    Model(Vec<Item<'a>>),
}

/// A piece of a turn.
#[derive(Debug)]
pub(crate) enum Item<'a> {
    Text { text: Cow<'a, str>, seal: Option<&'a str> },
    Thought { text: &'a str, seal: Option<&'a str> },
    File(File<'a>),
    Call { id: String, name: String, arguments: &'a str, seal: Option<&'a str> },
    Result { id: String, name: String, text: &'a str, failed: bool, files: Vec<Sight<'a>> },
}

impl Item<'_> {
    fn is_thought(&self) -> bool {
        match self {
            Item::Thought { .. } => true,
            Item::Text { .. } | Item::File(_) | Item::Call { .. } | Item::Result { .. } => false,
        }
    }
}

fn text<'a>(text: impl Into<Cow<'a, str>>) -> Item<'a> {
    Item::Text { text: text.into(), seal: None }
}

/// The conversation of a request.
pub(crate) fn conversation<'a>(request: &'a Request, quirks: &Quirks) -> Vec<Turn<'a>> {
    let told = tell(request, quirks, 0, &mut Ids::default());
    told.into_iter().flat_map(|told| told.turns).collect()
}

/// What became of one message.
#[derive(Debug)]
pub(crate) struct Told<'a> {
    pub(crate) turns: Vec<Turn<'a>>,
    /// The ids its calls were given.
    pub(crate) ids: Vec<String>,
}

/// The conversation of a request from a message on, message by message. The ids that the messages
/// before were given are taken.
pub(crate) fn tell<'a>(
    request: &'a Request,
    quirks: &Quirks,
    from: usize,
    given: &mut Ids,
) -> Vec<Told<'a>> {
    let (ids, pdfs) = (quirks.ids, quirks.pdfs);
    given.fresh.clear();
    let messages = request.messages.iter().skip(from);
    let told = messages.map(|message| {
        let told = Told { turns: Vec::new(), ids: Vec::new() };
        let mut teller = Teller { request, ids, pdfs, given: &mut *given, told };
        match message.role {
            Role::User | Role::Context => teller.user(message),
            Role::Assistant => teller.model(message),
        }
        teller.told
    });
    told.collect()
}

/// Turns of the same side that follow each other, made one.
pub(crate) fn merged(turns: Vec<Turn<'_>>) -> Vec<Turn<'_>> {
    let mut merged: Vec<Turn<'_>> = Vec::new();
    for turn in turns {
        match (merged.last_mut(), turn) {
            (Some(Turn::User(items)), Turn::User(more)) => items.extend(more),
            (Some(Turn::Model(items)), Turn::Model(more)) => items.extend(more),
            (_, turn) => merged.push(turn),
        }
    }
    merged
}

/// The ids that are in use.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// For good.
    taken: BTreeSet<String>,
    /// By the messages that are being told.
    fresh: BTreeSet<String>,
    /// Up to which number what was asked for is taken, so that a model that names all its calls
    /// alike is not counted through again and again.
    counted: BTreeMap<String, u32>,
}

impl Ids {
    /// An id no other call has, as much like what is asked for as can be.
    fn give(&mut self, base: &str, longest: usize) -> String {
        let form = |count: u32| {
            let tail = if count > 1 { count.to_string() } else { String::new() };
            let head = longest.min(base.len() + tail.len()).saturating_sub(tail.len());
            base.chars().take(head).collect::<String>() + &tail
        };
        let first = self.counted.get(base).copied().unwrap_or(1);
        let mut count = first;
        while self.taken.contains(&form(count)) {
            count += 1;
        }
        if count > first {
            self.counted.insert(base.to_owned(), count);
        }
        while self.taken.contains(&form(count)) || self.fresh.contains(&form(count)) {
            count += 1;
        }
        let id = form(count);
        self.fresh.insert(id.clone());
        id
    }

    /// From now on these are taken for good.
    pub(crate) fn keep(&mut self, ids: Vec<String>) {
        self.taken.extend(ids);
    }
}

struct Teller<'a, 't> {
    request: &'a Request,
    ids: CallIds,
    pdfs: bool,
    given: &'t mut Ids,
    told: Told<'a>,
}

impl<'a> Teller<'a, '_> {
    fn user(&mut self, message: &'a Message) {
        let items: Vec<Item<'a>> = message
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text: told, .. } => {
                    (!told.trim().is_empty()).then(|| text(told.as_str()))
                }
                Part::File(file) => Some(match files::look(self.request, self.pdfs, file) {
                    Sight::File(file) => Item::File(file),
                    Sight::Words(words) => text(words),
                }),
                Part::Reasoning { .. } | Part::Call(_) => None,
            })
            .collect();
        if !items.is_empty() {
            self.told.turns.push(Turn::User(items));
        }
    }

    fn model(&mut self, message: &'a Message) {
        // What one model sealed means nothing to another, and some refuse it.
        let own = message.model.as_deref() == Some(&*self.request.name);
        let sealed = |seal: &'a Option<String>| seal.as_deref().filter(|_| own);
        let (mut done, mut results) = (Vec::new(), Vec::new());
        for part in &message.parts {
            match part {
                Part::Text { text, seal } => {
                    let seal = sealed(seal);
                    if !text.trim().is_empty() || seal.is_some() {
                        done.push(Item::Text { text: text.into(), seal });
                    }
                }
                Part::Reasoning { text, seal } => {
                    done.push(Item::Thought { text, seal: sealed(seal) });
                }
                Part::File(_) => {}
                Part::Call(call) => match call.by {
                    Author::Model => {
                        let (call, result) = self.call(call, sealed(&call.seal));
                        done.push(call);
                        results.push(result);
                    }
                    Author::Person => results.push(told(call)),
                },
            }
        }
        // A thought that nothing follows is refused by some: what followed was cut off.
        while done.last().is_some_and(Item::is_thought) {
            done.pop();
        }
        if !done.is_empty() {
            self.told.turns.push(Turn::Model(done));
        }
        if !results.is_empty() {
            self.told.turns.push(Turn::User(results));
        }
    }

    fn call(&mut self, call: &'a CallPart, seal: Option<&'a str>) -> (Item<'a>, Item<'a>) {
        let (id, name) = (self.id(&call.reference), name(call));
        let files = call.outcome.as_ref().map_or(&[][..], Outcome::attachments);
        let files = if call.pruned {
            kept(call).map(Sight::Words).into_iter().collect()
        } else {
            files.iter().map(|file| files::look(self.request, self.pdfs, file)).collect()
        };
        let failed = match call.outcome {
            Some(Outcome::Completed { .. }) => false,
            Some(
                Outcome::Failed { .. }
                | Outcome::Denied { .. }
                | Outcome::Interrupted { .. }
                | Outcome::Unknown,
            )
            | None => true,
        };
        let text = result(call);
        let result = Item::Result { id: id.clone(), name: name.clone(), text, failed, files };
        (Item::Call { id, name, arguments: arguments(call), seal }, result)
    }

    /// An id the provider allows and no other call has.
    fn id(&mut self, reference: &str) -> String {
        let (plain, longest) = match self.ids {
            CallIds::Any => (reference.to_owned(), usize::MAX),
            CallIds::Word64 => (word(reference, "_-"), 64),
            CallIds::Nine => (word(reference, ""), 9),
        };
        let base = match self.ids {
            // Exactly nine: one that has another length is replaced by its digest.
            CallIds::Nine if plain.len() != 9 || plain != reference => digest(reference),
            CallIds::Any | CallIds::Word64 | CallIds::Nine => plain,
        };
        let base = if base.is_empty() { "call".to_owned() } else { base };
        let id = self.given.give(&base, longest);
        self.told.ids.push(id.clone());
        id
    }
}

fn word(text: &str, also: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || also.contains(*c)).collect()
}

/// Nine letters and digits that depend on a text alone.
fn digest(text: &str) -> String {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (0..9).fold(String::new(), |mut digest, place| {
        let digit = (hash >> (place * 5)) as u32 & 31;
        digest.extend(char::from_digit(digit, 32));
        digest
    })
}

/// A call a person made, in words: no model made it, so none is told that it did.
fn told(call: &CallPart) -> Item<'_> {
    text(format!(
        "I ran the tool {} myself, with {}. It gave:\n{}",
        call.tool,
        call.arguments,
        result(call)
    ))
}

/// Some servers refuse a conversation in which a call's arguments are not a JSON object, so what
/// the model wrote is replaced there; the result tells it what was wrong.
fn arguments(call: &CallPart) -> &str {
    let object = |text: &str| {
        text.trim_start().starts_with('{')
            && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
    };
    if object(&call.arguments) { &call.arguments } else { "{}" }
}

/// Nor may a name hold what a name cannot: one made-up name would have every later request of the
/// session refused.
fn name(call: &CallPart) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' };
    let name: String = call.tool.chars().take(64).map(plain).collect();
    if name.is_empty() { "invalid".into() } else { name }
}

/// What stands in place of an output that is no longer told.
const PRUNED: &str =
    "This output was left out to save room. Make the call again if it is still needed.";

/// Where an output that is no longer told can be read.
fn kept(call: &CallPart) -> Option<String> {
    let Some(Outcome::Completed { output }) = &call.outcome else { return None };
    output.full.as_ref().map(|blob| format!("It is kept whole as blob:{}.", blob.as_str()))
}

/// Something has to be said, unless a file says it.
fn result(call: &CallPart) -> &str {
    if call.pruned {
        return PRUNED;
    }
    let text = call.outcome.as_ref().map_or("This call was not run.", Outcome::text);
    let files = call.outcome.as_ref().map_or(&[][..], Outcome::attachments);
    if text.trim().is_empty() && files.is_empty() { "(nothing)" } else { text }
}

#[cfg(test)]
mod tests;
