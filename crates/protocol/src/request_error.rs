//! Failed requests of a front end, and the access rights that a request needs.

use crate::fault::Fault;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The access that a client has, or that a request needs. Each right includes the ones before it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AccessRight {
    /// Reads sessions and watches them.
    Read,
    /// Works in sessions: prompts, answers, interrupts, undo.
    Write,
    /// Does all that a user at the machine can: leave the sandbox, trust a folder, save keys.
    Admin,
}

impl fmt::Display for AccessRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AccessRight::Read => "read",
            AccessRight::Write => "write",
            AccessRight::Admin => "admin",
        })
    }
}

/// The reason why a host did not answer a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "error", rename_all = "snake_case")]
pub enum RequestError {
    /// The request failed.
    Failed {
        /// The failure.
        fault: Fault,
    },
    /// The request is not valid.
    Invalid {
        /// The mistake, and what to do.
        text: String,
    },
    /// Nothing of this name exists, or the client may not see it.
    NotFound {
        /// The missing thing.
        text: String,
    },
    /// The client has no valid token.
    Unauthorized,
    /// The client lacks a right.
    Forbidden {
        /// The right that the request needs.
        needs: AccessRight,
    },
    /// Something else is in the way, such as another process that runs the session.
    Conflict {
        /// The conflict, and what to do.
        text: String,
    },
    /// A limit is reached.
    TooMany {
        /// The limit.
        text: String,
        /// Time after which the request may work.
        retry_after_ms: u64,
    },
    /// The host does not answer: it is stopping, overloaded, or cannot be reached.
    Unavailable {
        /// The reason.
        text: String,
    },
}

impl From<Fault> for RequestError {
    fn from(fault: Fault) -> RequestError {
        RequestError::Failed { fault }
    }
}

impl From<RequestError> for Fault {
    fn from(error: RequestError) -> Fault {
        match error {
            RequestError::Failed { fault } => fault,
            other => Fault::Refused { message: other.to_string() },
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::Failed { fault } => write!(f, "{fault}"),
            RequestError::Invalid { text }
            | RequestError::NotFound { text }
            | RequestError::Conflict { text }
            | RequestError::TooMany { text, .. }
            | RequestError::Unavailable { text } => f.write_str(text),
            RequestError::Unauthorized => {
                f.write_str("the server requires a valid token: `windlass serve token add NAME`")
            }
            RequestError::Forbidden { needs } => {
                write!(f, "this token does not have the right `{needs}`")
            }
        }
    }
}

impl std::error::Error for RequestError {}
