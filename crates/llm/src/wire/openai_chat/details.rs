//! Thoughts in pieces of their own, as a host of many makers' models sends them: they go back to
//! it as they came, put together.

use crate::ModelEvent;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A piece of a thought. What is not known is kept as it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Detail {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl Detail {
    /// What it counts.
    pub(super) fn size(&self) -> usize {
        let texts = [&self.text, &self.summary, &self.data, &self.signature];
        let rest: usize = self.rest.values().map(|value| value.to_string().len()).sum();
        64 + rest + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }

    fn append(&mut self, more: Detail) {
        let join = |text: &mut Option<String>, more: Option<String>| match (text.as_mut(), more) {
            (Some(text), Some(more)) => text.push_str(&more),
            (None, more) => *text = more,
            (Some(_), None) => {}
        };
        join(&mut self.text, more.text);
        join(&mut self.summary, more.summary);
        join(&mut self.data, more.data);
        self.signature = more.signature.or(self.signature.take());
        self.rest.extend(more.rest.into_iter().filter(|(_, value)| !value.is_null()));
    }
}

/// The pieces so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Details {
    pieces: Vec<Detail>,
    /// How many of them have been sealed.
    sealed: usize,
}

impl Details {
    pub(super) fn add(&mut self, piece: Detail) {
        let other = |last: &Detail| match (last.rest.get("id"), piece.rest.get("id")) {
            (Some(one), Some(two)) => one != two,
            (Some(_), None) | (None, Some(_)) | (None, None) => false,
        };
        let same = |last: &&mut Detail| {
            last.kind == piece.kind && last.index == piece.index && !other(last)
        };
        match self.pieces.get_mut(self.sealed..).and_then(|open| open.last_mut()).filter(same) {
            Some(last) => last.append(piece),
            None => self.pieces.push(piece),
        }
    }

    /// What came since the last time, to go back with the thought under way; `late` if something
    /// else may have come in between.
    pub(super) fn seal(&mut self, late: bool) -> Vec<ModelEvent> {
        let open = self.pieces.get(self.sealed..).unwrap_or_default();
        if open.is_empty() {
            return Vec::new();
        }
        let seal = serde_json::to_string(open).unwrap_or_default();
        // A thought of which nothing was shown still has to have a place.
        let silent = open.iter().all(|piece| piece.text.is_none() && piece.summary.is_none());
        let place = (late || silent).then(|| ModelEvent::Reasoning(String::new()));
        self.sealed = self.pieces.len();
        place.into_iter().chain([ModelEvent::Sealed(seal)]).collect()
    }
}
