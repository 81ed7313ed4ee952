//! Operations on their way to a session: [`OpRequest`] and its answer.

use crate::client_info::ClientInfo;
use crate::ids_and_timestamps::{LogSeq, OpId};
use crate::ops_and_queries::SessionOp;
use crate::request_error::AccessRight;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A [`SessionOp`] with its id. A session that receives the same id again repeats its first answer,
/// so a client that lost the answer can send the request again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OpRequest {
    /// ID that the sender chooses, a UUIDv7. It becomes the id of the prompt or call that the
    /// operation records.
    pub id: OpId,
    /// The operation itself.
    #[serde(flatten)]
    pub op: SessionOp,
}

/// The answer to an [`OpRequest`]: the last position of the log with all facts of the operation, or
/// the reason why it changed nothing.
pub type OpResult = Result<LogSeq, OpError>;

/// The reason why a session did not carry out an operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op_error", rename_all = "snake_case")]
pub enum OpError {
    /// Somebody answered the question before.
    AlreadyAnswered {
        /// Client that answered, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<ClientInfo>,
        /// Position of the answer in the log of the session that asked.
        seq: LogSeq,
    },
    /// The call has no open question, or asked another one since.
    NoQuestion,
    /// It works only between turns.
    TurnRunning {
        /// The operation that was refused, and what to do.
        text: String,
    },
    /// The turn that it is about is not running.
    NoTurn,
    /// The session does not permit it in this form.
    Invalid {
        /// The mistake, and what to do.
        text: String,
    },
    /// It refers to something that is no longer there.
    Gone {
        /// The missing thing, and what to do.
        text: String,
    },
    /// The client lacks a right, such as to let a command leave the sandbox.
    Forbidden {
        /// The right that the operation needs.
        needs: AccessRight,
    },
    /// The session has stopped; open it again.
    Stopped,
}

impl fmt::Display for OpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpError::AlreadyAnswered { by: Some(client), .. } => {
                write!(f, "{client} has already answered this question.")
            }
            OpError::AlreadyAnswered { by: None, .. } => {
                f.write_str("This question was already answered.")
            }
            OpError::NoQuestion => f.write_str("This question is no longer open."),
            OpError::TurnRunning { text } | OpError::Invalid { text } | OpError::Gone { text } => {
                f.write_str(text)
            }
            OpError::Forbidden { needs } => write!(
                f,
                "This client may not do that: it needs the right `{needs}`. Answer at the machine of \
                 the session."
            ),
            OpError::NoTurn => f.write_str("This turn is no longer running."),
            OpError::Stopped => {
                f.write_str("This session is no longer open. Open it again to continue.")
            }
        }
    }
}

impl std::error::Error for OpError {}
