//! Serializes paths byte for byte: as text if they are UTF-8, which is usual but not guaranteed,
//! otherwise as bytes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum SerializedPath {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&Path> for SerializedPath {
    fn from(path: &Path) -> SerializedPath {
        match path.to_str() {
            Some(text) => SerializedPath::Text(text.to_owned()),
            None => SerializedPath::Bytes(path.as_os_str().as_encoded_bytes().to_vec()),
        }
    }
}

impl From<SerializedPath> for PathBuf {
    fn from(path: SerializedPath) -> PathBuf {
        match path {
            SerializedPath::Text(text) => text.into(),
            SerializedPath::Bytes(bytes) => os_string_from_bytes(bytes).into(),
        }
    }
}

#[cfg(unix)]
fn os_string_from_bytes(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn os_string_from_bytes(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// Functions for `#[serde(with = "path_serde::one")]` on a single path.
pub(super) mod one {
    use super::{Deserialize, Deserializer, Path, PathBuf, Serialize, SerializedPath, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        path: &Path,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        SerializedPath::from(path).serialize(serializer)
    }

    pub(in super::super) fn deserialize<'a, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<PathBuf, D::Error> {
        SerializedPath::deserialize(deserializer).map(PathBuf::from)
    }
}

/// Functions for `#[serde(with = "path_serde::all")]` on a list of paths.
pub(super) mod all {
    use super::{Deserialize, Deserializer, PathBuf, SerializedPath, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(paths.iter().map(|path| SerializedPath::from(path.as_path())))
    }

    pub(in super::super) fn deserialize<'a, D: Deserializer<'a>>(
        deserializer: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<SerializedPath>::deserialize(deserializer)?;
        Ok(paths.into_iter().map(PathBuf::from).collect())
    }
}
