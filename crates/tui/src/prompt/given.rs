//! What the prompt is given besides keys: pastes, pictures, and answers to what it asked for.

use super::buffer::Chip;
use super::suggest::{Kind, Opens};
use super::{Keeping, Older, Prompt, motion, paste};
use crate::cx::Cx;
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Request};

impl Prompt {
    /// Takes in what was pasted.
    pub fn paste(&mut self, text: &str, cx: &mut Cx<'_>) {
        (self.notice, self.due) = (None, None);
        let text = paste::clean(text);
        if let Some(list) = self.suggest.list.as_ref().filter(|list| list.kind == Kind::Past) {
            let needle = list.needle.clone() + text.lines().next().unwrap_or_default();
            self.suggest.find_past(needle, &self.history);
            return;
        }
        self.stay();
        self.put(text, cx);
        self.suggest.follow(&self.buffer, Opens::No, cx);
        self.settle();
    }

    fn put(&mut self, text: String, cx: &mut Cx<'_>) {
        if let Some(path) = paste::file(&text) {
            let id = cx.ask(Request::KeepFile { path });
            self.buffer.insert(text.trim());
            self.keeping.insert(id, Keeping::File(text.trim().to_owned()));
            return;
        }
        let (raw, at) = (self.buffer.raw(), self.buffer.at());
        let left = motion::left(raw, at);
        let before = raw.get(left..at).and_then(|cluster| self.buffer.chip(cluster));
        let again = matches!(before, Some(Chip::Text(folded)) if *folded == text);
        if again && text.len() <= paste::OPENED {
            self.buffer.replace(left, at, &text);
        } else if !paste::is_long(&text) || !self.buffer.insert_chip(Chip::Text(text.clone())) {
            self.buffer.insert(&text);
        }
    }

    /// Takes in a picture from the clipboard.
    pub fn picture(&mut self, bytes: &[u8], cx: &mut Cx<'_>) {
        use base64::Engine as _;
        let bytes = base64::engine::general_purpose::STANDARD.encode(bytes);
        let id = cx.ask(Request::Keep { name: "clipboard.png".to_owned(), bytes });
        self.keeping.insert(id, Keeping::Picture);
    }

    /// Takes in an answer, if it is to a request of its own.
    pub fn answer(&mut self, id: u64, answer: &Result<Answered, Fault>, cx: &mut Cx<'_>) -> bool {
        let rows = match answer {
            Ok(Answered::Rows { rows }) => Some(rows.as_slice()),
            Ok(_) | Err(_) => None,
        };
        if let Older::Asked { id: asked, .. } = self.older
            && asked == id
        {
            self.take_older(answer);
            self.settle();
            return true;
        }
        if self.suggest.answer(id, rows, cx) {
            self.settle();
            return true;
        }
        let Some(keeping) = self.keeping.remove(&id) else { return false };
        match (keeping, answer) {
            (Keeping::Picture, Ok(Answered::Kept { attachment })) => {
                self.stay();
                self.buffer.insert_chip(Chip::File(attachment.clone()));
            }
            (Keeping::File(text), Ok(Answered::Kept { attachment })) => {
                if let Some(from) = self.buffer.raw().find(&text) {
                    self.stay();
                    let chip = Chip::File(attachment.clone());
                    self.buffer.replace_by_chip(from, from + text.len(), chip);
                }
            }
            (Keeping::Picture, Err(fault)) => {
                // It is not sent without what it was to be sent with.
                (self.notice, self.due) = (Some(fault.to_string()), None);
            }
            // It is no picture after all: the path stays a text.
            (Keeping::File(_), Err(_)) | (_, Ok(_)) => {}
        }
        self.settle();
        true
    }
}
