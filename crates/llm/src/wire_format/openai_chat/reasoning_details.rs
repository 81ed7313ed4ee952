//! The `reasoning_details` field, which a host of many vendors' models uses for reasoning. The
//! pieces are merged and sent back otherwise unchanged.

use crate::ModelEvent;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A piece of reasoning. Unknown fields are kept as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ReasoningDetail {
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

impl ReasoningDetail {
    /// Returns the size that counts toward `CallBufferLimiter`.
    pub(super) fn text_bytes(&self) -> usize {
        let texts = [&self.text, &self.summary, &self.data, &self.signature];
        let rest: usize = self.rest.values().map(|value| value.to_string().len()).sum();
        64 + rest + texts.into_iter().flatten().map(String::len).sum::<usize>()
    }

    fn append(&mut self, more: ReasoningDetail) {
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

/// The pieces of reasoning received so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ReasoningDetails {
    pieces: Vec<ReasoningDetail>,
    /// The number of pieces already emitted in a `ProviderSignature`.
    emitted_count: usize,
}

impl ReasoningDetails {
    pub(super) fn add(&mut self, piece: ReasoningDetail) {
        let has_other_id =
            |last: &ReasoningDetail| match (last.rest.get("id"), piece.rest.get("id")) {
                (Some(one), Some(two)) => one != two,
                (Some(_), None) | (None, Some(_)) | (None, None) => false,
            };
        let is_same = |last: &&mut ReasoningDetail| {
            last.kind == piece.kind && last.index == piece.index && !has_other_id(last)
        };
        match self
            .pieces
            .get_mut(self.emitted_count..)
            .and_then(|pending| pending.last_mut())
            .filter(is_same)
        {
            Some(last) => last.append(piece),
            None => self.pieces.push(piece),
        }
    }

    /// Returns the pieces since the last call as a signature of the current reasoning block. With
    /// `late`, other content may have arrived in between, so a new reasoning block is opened.
    pub(super) fn take_signature_events(&mut self, late: bool) -> Vec<ModelEvent> {
        let pending = self.pieces.get(self.emitted_count..).unwrap_or_default();
        if pending.is_empty() {
            return Vec::new();
        }
        let provider_signature = serde_json::to_string(pending).unwrap_or_default();
        // Reasoning without visible text still needs a block for its signature.
        let has_no_text =
            pending.iter().all(|piece| piece.text.is_none() && piece.summary.is_none());
        let empty_block = (late || has_no_text).then(|| ModelEvent::Reasoning(String::new()));
        self.emitted_count = self.pieces.len();
        empty_block.into_iter().chain([ModelEvent::ProviderSignature(provider_signature)]).collect()
    }
}
