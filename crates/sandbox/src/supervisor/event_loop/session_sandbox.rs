//! The parts of a sandbox that the commands of a session share: namespaces and package caches.

use super::super::messages::SpawnRequest;
use super::super::spawn::SpawnSandbox;
use crate::confine::{
    CacheStorage, LoopbackScope, PackageCache, SandboxBackend, SessionNamespaces, prepare_storage,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Shared parts, each created when the first command needs it. An inner `None` means that it could
/// not be created.
#[derive(Debug, Default)]
pub(super) struct SessionSandbox {
    namespaces: Option<Option<Arc<SessionNamespaces>>>,
    cache_storage: Option<Option<CacheStorage>>,
    folder_to_remove: Option<PathBuf>,
    /// The caches for which an overlay was tried.
    tried_caches: Vec<PackageCache>,
}

impl SessionSandbox {
    /// Adds the shared parts to the sandbox of a command.
    pub(super) fn sandbox_for_command(&mut self, request: &SpawnRequest) -> SpawnSandbox {
        let mut profile = request.sandbox.clone();
        if profile.backend == SandboxBackend::Off {
            return SpawnSandbox { profile, namespaces: None, variables: Vec::new() };
        }
        if let (None, Some(caches)) = (&self.cache_storage, &request.package_caches) {
            let storage = prepare_storage(&caches.storage).ok();
            let session_folder = storage.as_ref().and_then(CacheStorage::session_folder);
            self.folder_to_remove = session_folder.map(Path::to_owned);
            self.cache_storage = Some(storage);
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

    /// Returns a folder to remove when the session ends, once.
    pub(super) fn take_folder_to_remove(&mut self) -> Option<PathBuf> {
        self.folder_to_remove.take()
    }

    /// Returns the namespaces, if the command uses them. Where this program may not create them,
    /// each command gets its own from bubblewrap.
    fn namespaces(&mut self, request: &SpawnRequest) -> Option<Arc<SessionNamespaces>> {
        let profile = &request.sandbox;
        if profile.loopback != LoopbackScope::Session || !profile.backend.has_namespaces() {
            return None;
        }
        let create = || SessionNamespaces::create().ok().map(Arc::new);
        let namespaces = self.namespaces.get_or_insert_with(create).as_mut()?;
        if let (Some(caches), Some(Some(storage))) = (&request.package_caches, &self.cache_storage)
        {
            let is_new = |cache: &&PackageCache| !self.tried_caches.contains(cache);
            let new: Vec<PackageCache> = caches.caches.iter().filter(is_new).cloned().collect();
            let overlays = storage.overlays(&new, &profile.root);
            if !overlays.is_empty()
                && let Ok(with_overlays) = namespaces.with_overlays(&overlays)
            {
                *namespaces = Arc::new(with_overlays);
            }
            self.tried_caches.extend(new);
        }
        Some(Arc::clone(namespaces))
    }
}
