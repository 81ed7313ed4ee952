//! Tasks of the hub: each follows one open session or one folder until it is closed.

use super::{OpenSession, SessionHub, SessionPhase};
use crate::setup::LoadedProject;
use crate::telemetry::TelemetryExport;
use crate::workspace_host::WorkspaceHost;
use std::sync::Arc;
use tokio::time::Instant;
use windlass_engine::{SessionHandle, SessionWatcher};
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::session_stream::HostStreamItem;
use windlass_protocol::{Event, Fact, Fault};

impl SessionHub {
    /// Reports the states of a session, removes it when it stops by itself, and closes it when it is
    /// idle.
    pub(super) fn follow_session(&self, open: &Arc<OpenSession>, watcher: SessionWatcher) {
        let (Some(hub), open) = (self.own.upgrade(), Arc::clone(open)) else { return };
        self.follow_telemetry(watcher);
        self.tasks.spawn(async move {
            while let Some(handle) = open.running_handle().await {
                let keep_saved = Arc::clone(&hub).keep_checkout_saved(Arc::clone(&open), &handle);
                let follow = hub.follow_loop(&open, &handle);
                tokio::select! {
                    () = follow => {}
                    () = async { keep_saved.await; std::future::pending().await } => {}
                }
            }
        });
    }

    /// Follows the loop of a session until it ends or the session is closed.
    async fn follow_loop(&self, open: &OpenSession, handle: &SessionHandle) {
        let (mut activity, mut questions) = (handle.activity(), handle.open_questions());
        let (mut clients, mut phase) = (open.subscribe_to_clients(), open.phase.subscribe());
        let mut was_idle = false;
        loop {
            activity.mark_unchanged();
            questions.mark_unchanged();
            clients.mark_unchanged();
            if !matches!(*phase.borrow_and_update(), SessionPhase::Running(_)) {
                return;
            }
            if let Some(state) = open.state() {
                self.events.send(HostStreamItem::Session { state: Box::new(state) });
            }
            let is_idle = open.is_idle();
            if !is_idle || !was_idle {
                *lock(&open.idle_since) = Instant::now();
            }
            was_idle = is_idle;
            let idle_timeout = self.options.idle_timeout.filter(|_| is_idle);
            let idle = async {
                match idle_timeout {
                    Some(timeout) => tokio::time::sleep(timeout).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = phase.changed() => return,
                ended = handle.wait_until_ended() => {
                    let stopped = || {
                        let message = "the session stopped unexpectedly".to_owned();
                        Fault::Internal { message }
                    };
                    let lock = self.session_lock(open.session);
                    let _removing = lock.lock().await;
                    // Unless it was closed on purpose, or opened again.
                    if open.is_running(handle) {
                        self.remove(open, Some(ended.err().unwrap_or_else(stopped)));
                    }
                    return;
                }
                Ok(()) = activity.changed() => {}
                Ok(()) = questions.changed() => {}
                Ok(()) = clients.changed() => {}
                () = idle => self.close_if_idle(open.session).await,
            }
        }
    }

    /// Exports telemetry of a session, if the environment asks for it.
    pub(super) fn follow_telemetry(&self, mut watcher: SessionWatcher) {
        let Some(mut export) = TelemetryExport::from_env(LoadedProject::env_variable) else {
            return;
        };
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            let session = watcher.session();
            loop {
                let event = tokio::select! {
                    // Facts that are there already are exported even when the hub shuts down.
                    biased;
                    event = watcher.next() => event,
                    () = stop.cancelled() => break,
                };
                let Ok(Some(event)) = event else { break };
                let Event::Fact(record) = &*event else { continue };
                if record.session != session {
                    continue;
                }
                export.telemetry.push(record);
                if let Fact::TurnEnded { .. } = &record.fact {
                    export.export().await;
                }
            }
            export.export().await;
        });
    }

    /// Reports the states of the servers of a folder.
    pub(super) fn follow_servers(&self, workspace: &Arc<WorkspaceHost>) {
        let (mut states, workspace) = (workspace.subscribe(), workspace.name());
        let (events, stop) = (Arc::clone(&self.events), self.stop.clone());
        self.tasks.spawn(async move {
            let mut known = Vec::new();
            loop {
                let state = Arc::clone(&states.borrow_and_update());
                let mut changes = state.setup.server_changes().subscribe();
                let servers = state.server_status();
                drop(state);
                if servers != known {
                    known.clone_from(&servers);
                    let workspace = workspace.clone();
                    events.send(HostStreamItem::Servers { workspace, servers });
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    changed = states.changed() => {
                        if changed.is_err() {
                            return;
                        }
                    }
                    Ok(()) = changes.changed() => {}
                }
            }
        });
    }
}
