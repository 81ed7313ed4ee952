//! Images in the transcript: requested one at a time when they become visible, and cached until
//! enough newer ones replace them. If the terminal has too few colors, they are described instead.

use super::TranscriptView;
use super::blocks::{TranscriptBlock, TranscriptBlockKind};
use super::loaded_log_window::LoadedLogWindow;
use super::render_context::{LEFT_MARGIN, RenderContext, indent_rows};
use crate::render::image::{self, ImagePixels};
use crate::safe_line::SafeLine;
use crate::theme::StyleRole;
use crate::ui_context::{Appearance, UiContext};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::VecDeque;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse, ImageSize};
use windlass_protocol::{Attachment, BlobRef, Fact, Fault};

/// The number of cached images; more than fit on a screen.
const MAX_CACHED_IMAGES: usize = 48;
/// The rows of an image while its block is closed, and opened.
const CLOSED_IMAGE_ROWS: u16 = 10;
const OPENED_IMAGE_ROWS: u16 = 20;

/// An image and the pixel size that is required: the key of `ImageCache`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ImageCacheKey {
    blob: BlobRef,
    size: (u32, u32),
}

/// The result of an image request.
#[derive(Debug)]
enum ImageResult {
    Loaded { pixels: ImagePixels, original_size: ImageSize },
    Unavailable,
}

/// The images loaded last.
#[derive(Debug, Default)]
pub(super) struct ImageCache {
    images: VecDeque<(ImageCacheKey, ImageResult)>,
    /// Visible images that are not cached.
    visible_missing: Vec<ImageCacheKey>,
    pending_request: Option<(u64, ImageCacheKey)>,
}

impl ImageCache {
    fn get(&self, request: &ImageCacheKey) -> Option<&ImageResult> {
        self.images.iter().find(|(cached, _)| cached == request).map(|(_, result)| result)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.images.len()
    }

    fn insert(&mut self, request: ImageCacheKey, result: ImageResult) {
        if self.images.len() >= MAX_CACHED_IMAGES {
            self.images.pop_front();
        }
        self.images.push_back((request, result));
    }
}

/// Returns the request for an image at the displayed size. Without colors one pixel suffices: the
/// response includes the properties of the image.
fn image_request(
    file: &Attachment,
    open: bool,
    width: usize,
    appearance: &Appearance,
) -> ImageCacheKey {
    let columns = u16::try_from(width).unwrap_or(u16::MAX);
    let rows = if open { OPENED_IMAGE_ROWS } else { CLOSED_IMAGE_ROWS };
    let size = image::target_pixel_size((columns, rows), appearance).unwrap_or((1, 1));
    ImageCacheKey { blob: file.blob.clone(), size }
}

fn is_image(file: &&Attachment) -> bool {
    file.mime_type.starts_with("image/")
}

/// Returns the attachments that a prompt or call block shows.
fn block_files<'a>(block: &'a TranscriptBlock, window: &'a LoadedLogWindow) -> &'a [Attachment] {
    match &block.kind {
        TranscriptBlockKind::Prompt { content: Some(content), .. } => &content.attachments,
        TranscriptBlockKind::ToolCall(call) => match call.settled.and_then(|seq| window.get(seq)) {
            Some(record) => match &record.fact {
                Fact::CallSettled { outcome, .. } => outcome.attachments(),
                _ => &[],
            },
            None => &[],
        },
        _ => &[],
    }
}

/// Renders an attachment of a prompt or call: a line, and the image if it is one.
pub(super) fn render_attachment(
    file: &Attachment,
    open: bool,
    images: &ImageCache,
    render_cx: &RenderContext<'_>,
) -> Vec<SafeLine> {
    if !is_image(&file) {
        return render_cx
            .quiet_row(StyleRole::Dim, &format!("file · {} · {}", file.name, file.mime_type));
    }
    let request = image_request(file, open, render_cx.full_width(), render_cx.appearance);
    let Some(ImageResult::Loaded { pixels, original_size }) = images.get(&request) else {
        return render_cx.quiet_row(
            StyleRole::Dim,
            &format!("{} · image, {}", file.name, mime_label(&file.mime_type)),
        );
    };
    let ImageSize { width, height, bytes } = original_size;
    let size = bytes.div_ceil(1_000);
    let kind = mime_label(&file.mime_type);
    let label = format!("{} · image, {width}×{height} {kind}, {size} kB", file.name);
    let mut rows = render_cx.quiet_row(StyleRole::Dim, &label);
    if image::target_pixel_size((8, 1), render_cx.appearance).is_some() {
        rows.extend(indent_rows(
            image::render_image(pixels, render_cx.full_width(), render_cx.appearance),
            LEFT_MARGIN,
        ));
    }
    rows
}

/// Returns the label of an image type, such as `PNG`.
fn mime_label(mime: &str) -> String {
    mime.strip_prefix("image/").unwrap_or(mime).to_uppercase()
}

impl TranscriptView {
    /// Records the visible images of an item that is drawn. It sends no request itself;
    /// `fetch_image` does.
    pub(super) fn note_visible_images(&mut self, item: usize, render_cx: &RenderContext<'_>) {
        let Some(block) = self.blocks.blocks.get(item) else { return };
        let open = self.is_open(block.key);
        for file in block_files(block, &self.window).iter().filter(is_image) {
            let request = image_request(file, open, render_cx.full_width(), render_cx.appearance);
            if self.images.get(&request).is_none()
                && !self.images.visible_missing.contains(&request)
            {
                self.images.visible_missing.push(request);
            }
        }
    }

    /// Clears the list of visible images before a frame is drawn.
    pub(super) fn clear_visible_images(&mut self) {
        self.images.visible_missing.clear();
    }

    /// Returns true if a visible image should be requested now.
    pub fn needs_image(&self) -> bool {
        self.images.pending_request.is_none() && !self.images.visible_missing.is_empty()
    }

    /// Requests a visible image; only one at a time, because each may be expensive for the host.
    pub fn fetch_image(&mut self, cx: &mut UiContext<'_>) {
        let Some(session) = self.session.filter(|_| self.needs_image()) else { return };
        let request = self.images.visible_missing.remove(0);
        let (blob, (width, height)) = (request.blob.clone(), request.size);
        let id = cx.send_request(FrontendRequest::Thumbnail { session, blob, width, height });
        self.images.pending_request = Some((id, request));
    }

    /// Handles the response `Thumbnail`; returns false if it belongs to another request.
    pub(super) fn on_image(&mut self, id: u64, response: &Result<HostResponse, Fault>) -> bool {
        let Some((_, request)) =
            self.images.pending_request.take_if(|(request_id, _)| *request_id == id)
        else {
            return false;
        };
        let result = match response {
            Ok(HostResponse::Thumbnail { width, bytes, original_size }) => {
                let pixels = ImagePixels {
                    width: usize::try_from(*width).unwrap_or_default(),
                    bytes: STANDARD.decode(bytes).unwrap_or_default(),
                };
                ImageResult::Loaded { pixels, original_size: *original_size }
            }
            Ok(_) | Err(_) => ImageResult::Unavailable,
        };
        let shows_image = |block: &TranscriptBlock| {
            block_files(block, &self.window).iter().any(|file| file.blob == request.blob)
        };
        let keys =
            self.blocks.blocks.iter().filter(|block| shows_image(block)).map(|block| block.key);
        for key in keys {
            self.rendered_blocks.remove(&key);
        }
        self.count_rendered_rows();
        self.images.insert(request, result);
        true
    }
}
