//! The parts of a sandbox that the commands of a session share: namespaces and package caches.

use super::super::messages::SpawnRequest;
use super::super::spawn::SpawnSandbox;
use crate::confine::{
    CacheStorage, LoopbackScope, SandboxBackend, SessionNamespaces, prepare_storage,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Shared parts, each created when the first command needs it. An inner `None` means that it could
/// not be created.
#[derive(Debug, Default)]
pub(super) struct SessionSandbox {
    namespaces: Option<Option<Arc<SessionNamespaces>>>,
    cache_storage: Option<Option<CacheStorage>>,
}

impl SessionSandbox {
    /// Adds the shared parts to the sandbox of a command.
    pub(super) fn complete(&mut self, request: &SpawnRequest) -> SpawnSandbox {
        let mut profile = request.sandbox.clone();
        if profile.backend == SandboxBackend::Off {
            return SpawnSandbox { profile, namespaces: None, variables: Vec::new() };
        }
        if let (None, Some(caches)) = (&self.cache_storage, &request.package_caches) {
            self.cache_storage = Some(prepare_storage(&caches.storage).ok());
        }
        let namespaces = self.namespaces(request);
        let variables = match (&request.package_caches, &self.cache_storage) {
            (Some(caches), Some(Some(storage))) => {
                let is_overlaid = |folder: &Path| {
                    namespaces.as_ref().is_some_and(|namespaces| namespaces.is_overlaid(folder))
                };
                storage.open_to_command(&caches.caches, is_overlaid, &mut profile)
            }
            _ => Vec::new(),
        };
        SpawnSandbox { profile, namespaces, variables }
    }

    /// Returns a folder to remove when the session ends.
    pub(super) fn session_folder(&self) -> Option<PathBuf> {
        self.cache_storage
            .iter()
            .flatten()
            .find_map(CacheStorage::session_folder)
            .map(Path::to_owned)
    }

    /// Returns the namespaces, if the command uses them. Where this program may not create them,
    /// each command gets its own from bubblewrap.
    fn namespaces(&mut self, request: &SpawnRequest) -> Option<Arc<SessionNamespaces>> {
        let profile = &request.sandbox;
        if profile.loopback != LoopbackScope::Session || !profile.backend.has_namespaces() {
            return None;
        }
        let storage = self.cache_storage.iter().flatten().next();
        let create = || {
            let overlays = match (&request.package_caches, storage) {
                (Some(caches), Some(storage)) => storage.overlays(&caches.caches, &profile.root),
                _ => Vec::new(),
            };
            SessionNamespaces::create(&overlays).ok().map(Arc::new)
        };
        self.namespaces.get_or_insert_with(create).clone()
    }
}
