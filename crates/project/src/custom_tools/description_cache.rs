//! The cache of the descriptions that custom tools reported.

use crate::{Dirs, ProjectError, private_files};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Limits on the stored `ToolDescriptionCache`.
const MAX_CACHE_BYTES: u64 = 16 << 20;
const MAX_CACHED_TOOLS: usize = 500;

/// Cached descriptions that custom tools reported, so that listing tools starts no process.
#[derive(Default, Deserialize, Serialize)]
pub struct ToolDescriptionCache {
    /// By file: the digest of the content that was described, and the description.
    tools: BTreeMap<String, (String, Value)>,
}

impl ToolDescriptionCache {
    pub(super) fn cache_path(dirs: &Dirs) -> PathBuf {
        dirs.data.join("pins").join("tools.json")
    }

    /// Reads the cache; an unreadable cache counts as empty, because tools can be described again.
    pub fn read(dirs: &Dirs) -> ToolDescriptionCache {
        let text =
            private_files::read_private(&ToolDescriptionCache::cache_path(dirs), MAX_CACHE_BYTES)
                .ok()
                .flatten();
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
    }

    /// Returns the description of a file if its `digest` still matches.
    pub fn get(&self, file: &str, digest: &str) -> Option<&Value> {
        let (cached_digest, description) = self.tools.get(file)?;
        (cached_digest == digest).then_some(description)
    }

    /// Saves fresh descriptions, each as file, digest and description.
    pub fn save(
        dirs: &Dirs,
        descriptions: Vec<(String, String, Value)>,
    ) -> Result<(), ProjectError> {
        let path = ToolDescriptionCache::cache_path(dirs);
        let folder = path.parent().unwrap_or(&dirs.data);
        let lock = private_files::lock_file(folder, "tools")?;
        let mut cache = ToolDescriptionCache::read(dirs);
        if cache.tools.len() > MAX_CACHED_TOOLS {
            cache.tools.clear();
        }
        for (file, digest, description) in descriptions {
            cache.tools.insert(file, (digest, description));
        }
        let to_error = |source| ProjectError::File { path: path.clone(), source };
        let text = serde_json::to_string(&cache).map_err(|error| to_error(error.into()))?;
        private_files::replace_atomically(&path, text.as_bytes()).map_err(to_error)?;
        drop(lock);
        Ok(())
    }
}
