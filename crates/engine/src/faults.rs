//! Conversions of errors to the [`Fault`]s that front ends show.

use windlass_protocol::Fault;
use windlass_storage::StorageError;

/// Creates a `Fault::Config` for a user request that cannot be fulfilled.
pub(crate) fn config_fault(message: impl Into<String>) -> Fault {
    Fault::Config { message: message.into() }
}

pub(crate) fn storage_fault(error: StorageError) -> Fault {
    let message = error.to_string();
    match error {
        StorageError::SessionNotFound { .. } => Fault::Config { message },
        StorageError::Busy { .. } => Fault::SessionBusy { message },
        StorageError::Fenced { .. }
        | StorageError::FactsGone { .. }
        | StorageError::SessionTooNew { .. }
        | StorageError::LeaseLost => Fault::SessionMoved { message },
        _ => Fault::Storage { message },
    }
}
