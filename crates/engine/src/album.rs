//! The files of a conversation, for the model to see: found once, read once.

use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_llm::catalog::Model;
use windlass_protocol::{Attachment, BlobRef, Messages, Outcome, Part};
use windlass_storage::Log;

/// How many bytes of files a request holds at most; the newest come first.
const MOST: usize = 24 << 20;

/// What was found in a conversation so far.
#[derive(Default)]
pub(crate) struct Album {
    messages: Messages,
    /// The files of a part, by the place of its message.
    found: Vec<(usize, Vec<Attachment>)>,
    sizes: BTreeMap<BlobRef, usize>,
    shown: BTreeMap<BlobRef, Arc<[u8]>>,
}

impl Album {
    /// The bytes of the files in a conversation, as far as the model can see them. What is left
    /// out it is told about.
    pub(crate) async fn of(
        &mut self,
        log: &dyn Log,
        messages: &Messages,
        model: &Model,
    ) -> BTreeMap<BlobRef, Arc<[u8]>> {
        self.look_through(messages);
        let mut shown = BTreeMap::new();
        let mut size = 0;
        for file in self.found.iter().rev().flat_map(|(_, files)| files) {
            let seen = if file.mime.starts_with("image/") { model.images } else { model.pdfs };
            if shown.contains_key(&file.blob) || !seen || size > MOST {
                continue;
            }
            let bytes = match (self.shown.get(&file.blob), self.sizes.get(&file.blob)) {
                (Some(bytes), _) => Arc::clone(bytes),
                (None, Some(known)) if size + known > MOST => {
                    size += known;
                    continue;
                }
                (None, _) => match log.get_blob(&file.blob).await {
                    Ok(bytes) => bytes.into(),
                    Err(_) => continue,
                },
            };
            self.sizes.insert(file.blob.clone(), bytes.len());
            size += bytes.len();
            if size <= MOST {
                shown.insert(file.blob.clone(), bytes);
            }
        }
        self.shown.clone_from(&shown);
        shown
    }

    /// Looks at the messages it has not looked at yet.
    fn look_through(&mut self, messages: &Messages) {
        let known = self.messages.shared(messages);
        self.found.retain(|(place, _)| *place < known);
        for (place, message) in messages.iter().enumerate().skip(known) {
            for part in &message.parts {
                let files = match part {
                    Part::File(file) => std::slice::from_ref(file),
                    Part::Call(call) if call.pruned => &[],
                    Part::Call(call) => call.outcome.as_ref().map_or(&[][..], Outcome::attachments),
                    Part::Text { .. } | Part::Reasoning { .. } => &[],
                };
                if !files.is_empty() {
                    self.found.push((place, files.to_vec()));
                }
            }
        }
        self.messages = messages.clone();
    }
}
