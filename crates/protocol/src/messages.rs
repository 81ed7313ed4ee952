//! A conversation that is handed on without being copied.
//!
//! It is kept in pages that are shared: a copy of a long conversation costs a few pointers, adding
//! to it copies one page at most, and two versions of it can be compared page by page. A message
//! that somebody else holds never changes under them.

use crate::event::Seq;
use crate::message::Message;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::sync::Arc;

/// How many messages a page has.
const PAGE: usize = 256;

type Page = Vec<Arc<Message>>;

/// The messages of a conversation, in order.
#[derive(Clone, Default)]
pub struct Messages {
    pages: Vec<Arc<Page>>,
}

/// Goes through messages from either end.
pub type Iter<'a> = std::iter::FlatMap<
    std::slice::Iter<'a, Arc<Page>>,
    std::slice::Iter<'a, Arc<Message>>,
    fn(&'a Arc<Page>) -> std::slice::Iter<'a, Arc<Message>>,
>;

impl Messages {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.pages.iter().map(|page| page.len()).sum()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.iter().all(|page| page.is_empty())
    }

    /// All of them.
    pub fn iter(&self) -> Iter<'_> {
        self.pages.iter().flat_map(|page| page.iter())
    }

    /// The one at a place.
    pub fn get(&self, place: usize) -> Option<&Arc<Message>> {
        self.iter().nth(place)
    }

    /// The last one.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.iter().next_back()
    }

    /// Adds one.
    pub fn push(&mut self, message: impl Into<Arc<Message>>) {
        match self.pages.last_mut().filter(|page| page.len() < PAGE) {
            Some(page) => Arc::make_mut(page).push(message.into()),
            None => {
                let mut page = Vec::with_capacity(PAGE);
                page.push(message.into());
                self.pages.push(Arc::new(page));
            }
        }
    }

    /// The last one that fits, to be changed. Whoever holds it as it was keeps it so.
    pub fn change_last(&mut self, fits: impl Fn(&Message) -> bool) -> Option<&mut Message> {
        let place = |page: &Page| page.iter().rposition(|message| fits(message));
        let (page, place) =
            self.pages.iter_mut().rev().find_map(|page| place(page).map(|at| (page, at)))?;
        Arc::make_mut(page).get_mut(place).map(Arc::make_mut)
    }

    /// Leaves out those that began after a position.
    pub fn keep_through(&mut self, last: Seq) {
        let kept = self.iter().filter(|message| message.seq <= last).cloned();
        *self = kept.collect();
    }

    /// Those that began after a position, behind one that stands for those before.
    pub fn after(&self, position: Seq, head: Arc<Message>) -> Messages {
        let mut pages = vec![Arc::new(vec![head])];
        for page in &self.pages {
            let late = |message: &&Arc<Message>| message.seq > position;
            if page.iter().all(|message| late(&message)) {
                pages.push(Arc::clone(page));
            } else if page.iter().any(|message| late(&message)) {
                pages.push(Arc::new(page.iter().filter(late).cloned().collect()));
            }
        }
        Messages { pages }
    }

    /// How many of the first messages are the very same in both.
    pub fn shared(&self, other: &Messages) -> usize {
        let mut shared = 0;
        for (own, their) in self.pages.iter().zip(&other.pages) {
            if !Arc::ptr_eq(own, their) {
                let pairs = own.iter().zip(their.iter());
                let same = pairs.take_while(|(own, their)| Arc::ptr_eq(own, their)).count();
                shared += same;
                if same < own.len() || same < their.len() {
                    break;
                }
            } else {
                shared += own.len();
            }
        }
        shared
    }
}

impl<M: Into<Arc<Message>>> FromIterator<M> for Messages {
    fn from_iter<I: IntoIterator<Item = M>>(messages: I) -> Messages {
        let mut all = Messages::default();
        for message in messages {
            all.push(message);
        }
        all
    }
}

impl<M: Into<Arc<Message>>> From<Vec<M>> for Messages {
    fn from(messages: Vec<M>) -> Messages {
        messages.into_iter().collect()
    }
}

impl<'a> IntoIterator for &'a Messages {
    type Item = &'a Arc<Message>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
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
