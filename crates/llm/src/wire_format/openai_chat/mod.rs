//! The OpenAI Chat Completions API. Most servers speak a dialect of it.

mod decoder;
mod reasoning_details;
mod request;

pub use decoder::ChatDecoder;
pub(super) use request::{envelope, mark_last_messages, system_message, write_turn};

#[cfg(test)]
mod tests;
