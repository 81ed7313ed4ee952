//! Events of a server that the connection passes on.

use serde_json::Value;

/// Receiver for the events of a server that concern its open documents. Must not block.
pub(crate) trait ServerEventHandler: Send + Sync + 'static {
    /// Handles the parameters of a `textDocument/publishDiagnostics` notification.
    fn on_publish_diagnostics(&self, params: Value);

    /// Handles a `workspace/diagnostic/refresh` request: pulled diagnostics are stale.
    fn on_refresh(&self);

    /// Handles the end of the connection.
    fn on_close(&self);
}
