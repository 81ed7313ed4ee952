//! Changes of files, and digests of files that a call has seen.

use crate::call_approval_and_outcome::BlobRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Content of a file at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileVersion {
    /// Content of the file, stored so that a change can be undone.
    pub blob: BlobRef,
    /// Unix permission bits, on systems that have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_mode: Option<u32>,
}

/// Change of one file; an absent version means that the file does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileChange {
    /// Path relative to the workspace, with `/` as separator.
    pub path: String,
    /// Version before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileVersion>,
    /// Version after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileVersion>,
}

/// Digest of a file that a call read or wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenFileDigest {
    /// Path relative to the workspace, with `/` as separator.
    pub path: String,
    /// Digest of the content.
    pub digest: BlobRef,
}
