//! Background tasks of a workspace's servers.

use std::sync::Mutex;
use tokio::task::JoinSet;
use windlass_protocol::mutex_lock::lock;

/// Background tasks that stop when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct BackgroundTasks(Mutex<JoinSet<()>>);

impl BackgroundTasks {
    /// Spawns a task, and forgets those that have ended.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.0);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }

    /// Aborts all tasks.
    pub(crate) fn abort_all(&self) {
        lock(&self.0).abort_all();
    }
}
