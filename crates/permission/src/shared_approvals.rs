//! The user's permanent approvals for a project. Clones share the list, so that a revoked approval
//! ends in every session at once, also in one with a turn or a background job under way.

use std::sync::{Arc, Mutex};
use windlass_protocol::ProjectApproval;
use windlass_protocol::mutex_lock::lock;

/// The permanent approvals for a project, which all policies of the project use.
#[derive(Clone, Debug, Default)]
pub struct SharedApprovals(Arc<Mutex<Vec<ProjectApproval>>>);

impl From<Vec<ProjectApproval>> for SharedApprovals {
    fn from(approvals: Vec<ProjectApproval>) -> SharedApprovals {
        SharedApprovals(Arc::new(Mutex::new(approvals)))
    }
}

impl SharedApprovals {
    /// Replaces the list with the saved one. `remove` waits until `read` returns, so an approval
    /// that is removed from the saved list first and then from this one cannot come back.
    pub fn reload<E>(
        &self,
        read: impl FnOnce() -> Result<Vec<ProjectApproval>, E>,
    ) -> Result<(), E> {
        let mut approvals = lock(&self.0);
        *approvals = read()?;
        Ok(())
    }

    pub(crate) fn contains(&self, approval: &ProjectApproval) -> bool {
        lock(&self.0).contains(approval)
    }

    /// Ends a permanent approval, in all policies that use this list.
    pub fn remove(&self, approval: &ProjectApproval) {
        lock(&self.0).retain(|it| it != approval);
    }
}
