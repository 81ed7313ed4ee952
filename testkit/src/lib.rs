//! What tests share: `.case` files, the event grammar, and a model that does as it is told.
//!
//! It is a dev-dependency only and knows no crate but `protocol`, so that every crate can use it.
//! Start reading at [`case`], the form in which behaviour is written down, then [`model`].
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

pub mod case;
pub mod checks;
pub mod grammar;
pub mod memory;
pub mod model;
pub mod oauth;
#[cfg(unix)]
pub mod picture;
pub mod script;
pub mod site;
mod speech;
#[cfg(unix)]
pub mod terminal;

pub use case::Case;
pub use model::Model;
pub use script::Script;
