//! The Anthropic Messages API.

mod decoder;
mod request;

pub use decoder::AnthropicDecoder;
pub(super) use request::{envelope, mark_last_messages, turn_message};

#[cfg(test)]
mod tests;
