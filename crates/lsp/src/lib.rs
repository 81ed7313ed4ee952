//! Language servers: code queries, and diagnostics after a change.
//!
//! A server is only an [`LspServerConfig`] until a file of its language is read. Then it is
//! launched as a sandboxed process, which cannot reach the network and, unless `write` is set,
//! cannot change the project. It receives the texts of files and answers queries. It keeps the
//! invariant that no caller waits for a server longer than the limit of its request, whatever the
//! server does. Start reading at [`LanguageServers`].

mod background_tasks;
mod config;
mod connection;
mod diagnostics;
mod diagnostics_review;
mod documents;
mod language_servers;
mod pool;
mod positions;
pub mod project_markers;
mod query;
mod server_log;

pub use config::{LspConfig, LspServerConfig, LspTimeouts, built_in_servers};
#[doc(hidden)]
pub use connection::framing;
pub use diagnostics_review::{DiagnosticsReport, PreChangeDiagnostics};
pub use language_servers::LanguageServers;
pub use project_markers::ProjectMarker;
pub use query::code_query::{CodeLocation, CodeQuery, CodeQueryAnswer, PositionQuery};
pub use server_log::ServerLog;
