//! The failure of a call, as the model reads it.

/// The reason why a call failed. The model reads it and may try another way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct CallFailure {
    /// The message: what happened, then what to do instead.
    pub text: String,
    /// True if the call may have run, and nothing is known of its result
    /// (`CallOutcome::ResultUnknown`).
    pub is_result_unknown: bool,
}

impl CallFailure {
    /// Creates a failure with this message.
    pub fn new(text: impl Into<String>) -> CallFailure {
        CallFailure { text: text.into(), is_result_unknown: false }
    }

    /// Creates the failure of a call that may have run.
    pub fn result_unknown(text: impl Into<String>) -> CallFailure {
        CallFailure { text: text.into(), is_result_unknown: true }
    }
}

impl From<windlass_sandbox::Error> for CallFailure {
    fn from(error: windlass_sandbox::Error) -> CallFailure {
        match error {
            windlass_sandbox::Error::SupervisorLost => {
                CallFailure::result_unknown(error.to_string())
            }
            error => CallFailure::new(error.to_string()),
        }
    }
}
