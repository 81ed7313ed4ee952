//! Files in a conversation: shown to a model that can see them, described to one that cannot.

use crate::Request;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use windlass_protocol::Attachment;

/// A file a model can be shown.
#[derive(Debug)]
pub(crate) struct File<'a> {
    pub(crate) name: &'a str,
    pub(crate) mime: &'a str,
    bytes: &'a [u8],
}

impl File<'_> {
    pub(crate) fn is_image(&self) -> bool {
        is_image(self.mime)
    }

    /// Its bytes as text.
    pub(crate) fn base64(&self) -> String {
        STANDARD.encode(self.bytes)
    }

    /// Its bytes as a URL.
    pub(crate) fn url(&self) -> String {
        format!("data:{};base64,{}", self.mime, self.base64())
    }
}

/// What a model gets of a file.
#[derive(Debug)]
pub(crate) enum Sight<'a> {
    File(File<'a>),
    Words(String),
}

fn is_image(mime: &str) -> bool {
    matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

/// What the model of a request gets of a file.
pub(crate) fn look<'a>(request: &'a Request, pdfs: bool, file: &'a Attachment) -> Sight<'a> {
    let (name, mime) = (file.name.as_str(), file.mime.as_str());
    let (kind, seen) = match mime {
        _ if is_image(mime) => ("images", request.model.images),
        "application/pdf" => ("PDF files", request.model.pdfs && pdfs),
        _ => ("files of this kind", false),
    };
    let left_out = |why: &str| Sight::Words(format!("[{name} ({mime}) was left out: {why}]"));
    match request.files.get(&file.blob) {
        _ if !seen => left_out(&format!("this model does not read {kind}")),
        None => left_out("the request would be too large, or its bytes are gone"),
        Some(bytes) => Sight::File(File { name, mime, bytes }),
    }
}
