//! The servers of a workspace that were started, and the limit for those that run.

use crate::pool::server::LspServer;
use std::sync::{Arc, Mutex, Weak};
use windlass_protocol::mutex_lock::lock;

/// Limit for servers that run at the same time.
const MAX_RUNNING_SERVERS: usize = 8;

/// Servers that were started; `add` drops those that no longer run.
#[derive(Default)]
pub(crate) struct StartedServers(Mutex<Vec<Weak<LspServer>>>);

impl StartedServers {
    /// Registers a server that starts. Suspends the least recently used ones beyond
    /// `MAX_RUNNING_SERVERS`.
    pub(super) fn add(&self, server: &Arc<LspServer>) {
        let mut started = lock(&self.0);
        started.retain(|other| {
            let other = other.upgrade();
            other
                .is_some_and(|other| other.is_running_or_starting() && !Arc::ptr_eq(&other, server))
        });
        let mut others: Vec<_> = started.iter().filter_map(Weak::upgrade).collect();
        if others.len() >= MAX_RUNNING_SERVERS {
            others.sort_by_key(|other| other.last_used());
            for other in others.iter().take(others.len() + 1 - MAX_RUNNING_SERVERS) {
                other.suspend();
            }
        }
        started.push(Arc::downgrade(server));
    }
}
