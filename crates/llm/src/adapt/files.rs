//! Files in a conversation: sent to a model that can read them, described in text to one that
//! cannot.

use crate::ModelRequest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use windlass_protocol::Attachment;

/// A file in a format that the model can read.
#[derive(Debug)]
pub(crate) struct ModelReadableFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) mime: &'a str,
    bytes: &'a [u8],
}

impl ModelReadableFile<'_> {
    pub(crate) fn is_image(&self) -> bool {
        is_image_mime(self.mime)
    }

    pub(crate) fn to_base64(&self) -> String {
        STANDARD.encode(self.bytes)
    }

    pub(crate) fn to_data_url(&self) -> String {
        format!("data:{};base64,{}", self.mime, self.to_base64())
    }
}

/// The form in which a model receives a file: its bytes, or a description.
#[derive(Debug)]
pub(crate) enum FileOrDescription<'a> {
    File(ModelReadableFile<'a>),
    Description(String),
}

/// Media type of attached text, which every model can read. The host stores it with a heading, and a
/// fence around the content of the file.
const TEXT_MIME: &str = "text/plain";

fn is_image_mime(mime: &str) -> bool {
    matches!(mime, "image/png" | "image/jpeg" | "image/gif" | "image/webp")
}

/// Returns a `FileOrDescription` of a file: its bytes, or a description if the model of the request cannot
/// read it.
pub(crate) fn view_file<'a>(
    request: &'a ModelRequest,
    pdfs: bool,
    file: &'a Attachment,
) -> FileOrDescription<'a> {
    let (name, mime) = (file.name.as_str(), file.mime_type.as_str());
    let (kind, is_supported) = match mime {
        _ if is_image_mime(mime) => ("images", request.model.images),
        "application/pdf" => ("PDF files", request.model.pdfs && pdfs),
        TEXT_MIME => ("text", true),
        _ => ("files of this kind", false),
    };
    let omitted = |reason: &str| {
        FileOrDescription::Description(format!("[{name} ({mime}) was left out: {reason}]"))
    };
    match request.file_bytes.get(&file.blob) {
        _ if !is_supported => omitted(&format!("this model does not support {kind}")),
        None => omitted("the request would be too large, or the file is no longer stored"),
        Some(bytes) if mime == TEXT_MIME => {
            FileOrDescription::Description(String::from_utf8_lossy(bytes).into_owned())
        }
        Some(bytes) => FileOrDescription::File(ModelReadableFile { name, mime, bytes }),
    }
}
