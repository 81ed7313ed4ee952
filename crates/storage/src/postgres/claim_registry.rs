//! The sessions that a process has claimed, and those whose claims were dropped and must be released
//! in the database.

use crate::ReleaseState;
use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;
use uuid::Uuid;
use windlass_protocol::SessionId;

/// A tenant of the database. A log belongs to one tenant and sees nothing of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub Uuid);

/// A session of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ClaimKey {
    pub(super) tenant: TenantId,
    pub(super) session: SessionId,
}

/// A claim that was dropped, and that the database may still have.
#[derive(Clone, Copy)]
pub(super) struct DroppedClaim {
    pub(super) key: ClaimKey,
    /// `None` if the answer to the claim is not known.
    pub(super) epoch: Option<i64>,
    /// `None` if it was not released.
    pub(super) state: Option<ReleaseState>,
    pub(super) dropped_at: Instant,
}

impl DroppedClaim {
    pub(super) fn new(
        key: ClaimKey,
        epoch: Option<i64>,
        state: Option<ReleaseState>,
    ) -> DroppedClaim {
        DroppedClaim { key, epoch, state, dropped_at: Instant::now() }
    }
}

/// The claims of one process. The database knows only the node: if the answer to a claim was lost,
/// the next attempt finds this node in the row, and the registry tells that it has no claim.
#[derive(Default)]
pub(super) struct ClaimRegistry {
    claims: Mutex<HashSet<ClaimKey>>,
    dropped: Mutex<Vec<DroppedClaim>>,
}

impl ClaimRegistry {
    /// Adds a claim. Returns false if there is one already.
    pub(super) fn insert(&self, key: ClaimKey) -> bool {
        lock(&self.claims).insert(key)
    }

    /// Removes a claim.
    pub(super) fn remove(&self, key: ClaimKey) {
        lock(&self.claims).remove(&key);
    }

    /// Adds a claim that was dropped, so that its session is released in the database.
    pub(super) fn add_dropped(&self, claim: DroppedClaim) {
        lock(&self.dropped).push(claim);
    }

    /// Takes the dropped claims, until the batch is dropped.
    pub(super) fn take_dropped(&self) -> DroppedBatch<'_> {
        let claims = std::mem::take(&mut *lock(&self.dropped));
        DroppedBatch { registry: self, claims, reserved: Vec::new() }
    }
}

/// Dropped claims that are being released. Those that are still in it when it is dropped, also because
/// the task was canceled, go back into the registry.
pub(super) struct DroppedBatch<'a> {
    registry: &'a ClaimRegistry,
    claims: Vec<DroppedClaim>,
    /// Claims whose epoch is not known. Their release must not meet a new claim of this process.
    reserved: Vec<ClaimKey>,
}

impl DroppedBatch<'_> {
    /// Returns the claims that can be released now. Other tasks of this process cannot claim those
    /// without an epoch until the batch is dropped.
    pub(super) fn releasable(&mut self) -> Vec<DroppedClaim> {
        let mut claims = Vec::new();
        for claim in &self.claims {
            let is_reserved = claim.epoch.is_none() && self.registry.insert(claim.key);
            if is_reserved {
                self.reserved.push(claim.key);
            }
            if is_reserved || claim.epoch.is_some() {
                claims.push(*claim);
            }
        }
        claims
    }

    /// Keeps only some of the claims for another release.
    pub(super) fn retain(&mut self, is_kept: impl FnMut(&DroppedClaim) -> bool) {
        self.claims.retain(is_kept);
    }
}

impl Drop for DroppedBatch<'_> {
    fn drop(&mut self) {
        for key in self.reserved.drain(..) {
            self.registry.remove(key);
        }
        lock(&self.registry.dropped).append(&mut self.claims);
    }
}

/// Locks a mutex; the data is consistent after every statement, so a panic elsewhere is no reason
/// to stop.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
