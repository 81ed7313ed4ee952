//! The place of the Unix socket on systems without one.

use super::ApiServer;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A Unix socket to serve. This system has none.
pub enum MissingSocket {}

impl MissingSocket {
    /// Fails.
    pub fn bind(_path: &Path) -> io::Result<MissingSocket> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

impl ApiServer {
    /// Serves clients of the Unix socket.
    pub async fn serve_socket(self: Arc<Self>, endpoint: MissingSocket, _stop: CancellationToken) {
        match endpoint {}
    }
}
