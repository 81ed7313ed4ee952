//! The user's permanent approvals for a project. Clones share the list, so that a revoked approval
//! ends in every session at once, also in one with a turn or a background job under way.

use std::sync::{Arc, Mutex};
use windlass_protocol::ProjectApproval;
use windlass_protocol::mutex_lock::lock;

/// The permanent approvals that all clones of a `Policy` use.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedApprovals(Arc<Mutex<Vec<ProjectApproval>>>);

impl SharedApprovals {
    pub(crate) fn new(approvals: Vec<ProjectApproval>) -> SharedApprovals {
        SharedApprovals(Arc::new(Mutex::new(approvals)))
    }

    pub(crate) fn contains(&self, approval: &ProjectApproval) -> bool {
        lock(&self.0).contains(approval)
    }

    pub(crate) fn remove(&self, approval: &ProjectApproval) {
        lock(&self.0).retain(|it| it != approval);
    }
}
