//! The data that blocks are rendered from.

use super::images::ImageCache;
use super::live_state::LiveSessionState;
use super::loaded_log_window::LoadedLogWindow;

/// The data that rows are rendered from: the `LoadedLogWindow` and what is not in it.
#[derive(Clone, Copy)]
pub(super) struct BlockRenderData<'a> {
    pub window: &'a LoadedLogWindow,
    pub live: &'a LiveSessionState,
    pub images: &'a ImageCache,
}
