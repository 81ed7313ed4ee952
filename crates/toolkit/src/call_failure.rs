//! The failure of a call, as the model reads it.

/// The reason why a call failed. The model reads it and may try another way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CallFailure {
    /// The message: what happened, then what to do instead.
    pub text: String,
}

impl CallFailure {
    /// Creates a failure with this message.
    pub fn new(text: impl Into<String>) -> CallFailure {
        CallFailure { text: text.into() }
    }
}

impl From<windlass_sandbox::Error> for CallFailure {
    fn from(error: windlass_sandbox::Error) -> CallFailure {
        CallFailure::new(error.to_string())
    }
}
