//! Shared test support: `.case` files, the grammar of event logs, and a scripted model.
//!
//! It is a dev-dependency only and knows no crate but `protocol`, so that every crate can use it.
//! Start reading at [`case`], the format that describes behavior as data, then [`model`].
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

pub mod archive_checks;
pub mod case_file;
#[cfg(unix)]
pub mod cutting_proxy;
pub mod log_grammar;
pub mod mock_http_server;
pub mod mock_oauth_server;
pub mod model_script;
#[cfg(unix)]
pub mod patroni_cluster;
pub mod peak_memory;
#[cfg(unix)]
pub mod postgres_server;
#[cfg(unix)]
pub mod screenshot;
pub mod scripted_model;
#[cfg(unix)]
pub mod tcp_proxy;
#[cfg(unix)]
pub mod terminal;
pub mod test_main;
pub mod time_limits;
mod wire_replies;

pub use case_file::Case;
pub use model_script::ModelScript;
pub use scripted_model::ScriptedModel;
