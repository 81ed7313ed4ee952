//! The connection to a server, together with its open documents.

use crate::connection::LspConnection;
use crate::documents::documents_and_diagnostics::DocumentsAndDiagnostics;

/// A connection whose events go to its `DocumentsAndDiagnostics`.
pub(crate) type LspClient = LspConnection<DocumentsAndDiagnostics>;

impl LspClient {
    /// Returns the open documents and their diagnostics (`DocumentsAndDiagnostics`).
    pub(crate) fn documents(&self) -> &DocumentsAndDiagnostics {
        self.event_handler()
    }
}
