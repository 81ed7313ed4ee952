//! Attachments of a conversation for model requests, with a cache: each message is scanned once and
//! each blob is read once.

use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_llm::catalog::Model;
use windlass_protocol::{Attachment, BlobRef, CallOutcome, MessagePart, Messages};
use windlass_storage::Log;

/// Maximum total bytes of files in one request; the newest files take precedence.
const MAX_REQUEST_FILE_BYTES: usize = 24 << 20;

/// Attachments found in the conversation so far, and the bytes that `load_files` returned last.
#[derive(Default)]
pub(crate) struct AttachmentCache {
    messages: Messages,
    /// Attachments of a `MessagePart`, by message index.
    attachments: Vec<(usize, Vec<Attachment>)>,
    sizes: BTreeMap<BlobRef, usize>,
    loaded_files: BTreeMap<BlobRef, Arc<[u8]>>,
}

impl AttachmentCache {
    /// Returns the bytes of the conversation's files that the model supports, up to
    /// `MAX_REQUEST_FILE_BYTES`. The request tells the model about files that are left out.
    pub(crate) async fn load_files(
        &mut self,
        log: &dyn Log,
        messages: &Messages,
        model: &Model,
    ) -> BTreeMap<BlobRef, Arc<[u8]>> {
        self.scan_messages(messages);
        let mut files = BTreeMap::new();
        let mut size = 0;
        for file in self.attachments.iter().rev().flat_map(|(_, attachments)| attachments) {
            let is_supported = match file.mime_type.split_once('/') {
                Some(("image", _)) => model.images,
                Some(("text", _)) => true,
                Some(_) | None => model.pdfs,
            };
            if files.contains_key(&file.blob) || !is_supported || size > MAX_REQUEST_FILE_BYTES {
                continue;
            }
            let bytes = match (self.loaded_files.get(&file.blob), self.sizes.get(&file.blob)) {
                (Some(bytes), _) => Arc::clone(bytes),
                (None, Some(known)) if size + known > MAX_REQUEST_FILE_BYTES => {
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
            if size <= MAX_REQUEST_FILE_BYTES {
                files.insert(file.blob.clone(), bytes);
            }
        }
        self.loaded_files.clone_from(&files);
        files
    }

    /// Scans the messages that differ from `self.messages`.
    fn scan_messages(&mut self, messages: &Messages) {
        let known = self.messages.shared_prefix_len(messages);
        self.attachments.retain(|(index, _)| *index < known);
        for (index, message) in messages.iter().enumerate().skip(known) {
            for part in &message.parts {
                let files = match part {
                    MessagePart::File(file) => std::slice::from_ref(file),
                    MessagePart::Call(call) if call.pruned => &[],
                    MessagePart::Call(call) => {
                        call.outcome.as_ref().map_or(&[][..], CallOutcome::attachments)
                    }
                    MessagePart::Text { .. } | MessagePart::Reasoning { .. } => &[],
                };
                if !files.is_empty() {
                    self.attachments.push((index, files.to_vec()));
                }
            }
        }
        self.messages = messages.clone();
    }
}
