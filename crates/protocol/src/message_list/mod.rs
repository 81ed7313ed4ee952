//! A conversation that can be shared without copying it.
//!
//! Its messages are in shared pages: a clone of a long conversation costs a few pointers, `push`
//! copies one page at most, and two versions can be compared page by page. A message that another
//! owner shares never changes for that owner.

use crate::ids_and_timestamps::LogSeq;
use crate::message::Message;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::sync::Arc;

const MESSAGES_PER_PAGE: usize = 256;

type MessagePage = Vec<Arc<Message>>;

/// The messages of a conversation, in order.
#[derive(Clone, Default)]
pub struct Messages {
    pages: Vec<Arc<MessagePage>>,
}

/// A double-ended iterator over messages.
pub type MessageIter<'a> = std::iter::FlatMap<
    std::slice::Iter<'a, Arc<MessagePage>>,
    std::slice::Iter<'a, Arc<Message>>,
    fn(&'a Arc<MessagePage>) -> std::slice::Iter<'a, Arc<Message>>,
>;

impl Messages {
    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.pages.iter().map(|page| page.len()).sum()
    }

    /// Returns true if there are no messages.
    pub fn is_empty(&self) -> bool {
        self.pages.iter().all(|page| page.is_empty())
    }

    /// Iterates over all messages.
    pub fn iter(&self) -> MessageIter<'_> {
        self.pages.iter().flat_map(|page| page.iter())
    }

    /// Returns the message at `index`.
    pub fn get(&self, index: usize) -> Option<&Arc<Message>> {
        self.iter().nth(index)
    }

    /// Returns the last message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.iter().next_back()
    }

    /// Appends a message.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        match self.pages.last_mut().filter(|page| page.len() < MESSAGES_PER_PAGE) {
            Some(page) => Arc::make_mut(page).push(message.into()),
            None => {
                let mut page = Vec::with_capacity(MESSAGES_PER_PAGE);
                page.push(message.into());
                self.pages.push(Arc::new(page));
            }
        }
    }

    /// Returns the last message for which `is_match` is true, for changing it. Other owners of the
    /// message keep the old version.
    pub fn last_matching_mut(
        &mut self,
        is_match: impl Fn(&Message) -> bool,
    ) -> Option<&mut Message> {
        let last_index = |page: &MessagePage| page.iter().rposition(|message| is_match(message));
        let (page, index) = self
            .pages
            .iter_mut()
            .rev()
            .find_map(|page| last_index(page).map(|index| (page, index)))?;
        Arc::make_mut(page).get_mut(index).map(Arc::make_mut)
    }

    /// Removes the messages that started after the position `last`.
    pub fn truncate_after(&mut self, last: LogSeq) {
        let remaining = self.iter().filter(|message| message.seq <= last).cloned();
        *self = remaining.collect();
    }

    /// Returns `head` followed by the messages that started after `position`; `head` represents the
    /// earlier ones.
    pub fn after_with_head(&self, position: LogSeq, head: Arc<Message>) -> Messages {
        let mut pages = vec![Arc::new(vec![head])];
        for page in &self.pages {
            let is_after = |message: &&Arc<Message>| message.seq > position;
            if page.iter().all(|message| is_after(&message)) {
                pages.push(Arc::clone(page));
            } else if page.iter().any(|message| is_after(&message)) {
                pages.push(Arc::new(page.iter().filter(is_after).cloned().collect()));
            }
        }
        Messages { pages }
    }

    /// Returns the number of leading messages that both conversations share (by `Arc::ptr_eq`).
    pub fn shared_prefix_len(&self, other: &Messages) -> usize {
        let mut shared = 0;
        for (page, other_page) in self.pages.iter().zip(&other.pages) {
            if !Arc::ptr_eq(page, other_page) {
                let pairs = page.iter().zip(other_page.iter());
                let same_count = pairs
                    .take_while(|(message, other_message)| Arc::ptr_eq(message, other_message))
                    .count();
                shared += same_count;
                if same_count < page.len() || same_count < other_page.len() {
                    break;
                }
            } else {
                shared += page.len();
            }
        }
        shared
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for Messages {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Messages {
        let mut result = Messages::default();
        for message in messages {
            result.push(message);
        }
        result
    }
}

impl<M: Into<Arc<Message>>> From<Vec<M>> for Messages {
    fn from(messages: Vec<M>) -> Messages {
        messages.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Arc<Message>;
    type IntoIter = MessageIter<'a>;

    fn into_iter(self) -> MessageIter<'a> {
        self.iter()
    }
}

impl PartialEq for Messages {
    fn eq(&self, other: &Messages) -> bool {
        self.iter().eq(other.iter())
    }
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for Messages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Messages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Messages, D::Error> {
        Vec::<Message>::deserialize(deserializer).map(Messages::from)
    }
}

impl JsonSchema for Messages {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        Vec::<Message>::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Vec::<Message>::json_schema(generator)
    }
}

#[cfg(test)]
mod tests;
