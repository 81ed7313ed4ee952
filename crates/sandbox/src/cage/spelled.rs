//! Paths in messages, byte for byte: almost always text, but nothing makes a name so.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Spelled {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&Path> for Spelled {
    fn from(path: &Path) -> Spelled {
        match path.to_str() {
            Some(text) => Spelled::Text(text.to_owned()),
            None => Spelled::Bytes(path.as_os_str().as_encoded_bytes().to_vec()),
        }
    }
}

impl From<Spelled> for PathBuf {
    fn from(spelled: Spelled) -> PathBuf {
        match spelled {
            Spelled::Text(text) => text.into(),
            Spelled::Bytes(bytes) => whole(bytes).into(),
        }
    }
}

#[cfg(unix)]
fn whole(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn whole(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

/// For `serde(with)`.
pub(super) mod one {
    use super::{Deserialize, Deserializer, Path, PathBuf, Serialize, Serializer, Spelled};

    pub(in super::super) fn serialize<S: Serializer>(
        path: &Path,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        Spelled::from(path).serialize(to)
    }

    pub(in super::super) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<PathBuf, D::Error> {
        Spelled::deserialize(from).map(PathBuf::from)
    }
}

/// For `serde(with)`.
pub(super) mod all {
    use super::{Deserialize, Deserializer, PathBuf, Serializer, Spelled};

    pub(in super::super) fn serialize<S: Serializer>(
        paths: &[PathBuf],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| Spelled::from(path.as_path())))
    }

    pub(in super::super) fn deserialize<'a, D: Deserializer<'a>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        let paths = Vec::<Spelled>::deserialize(from)?;
        Ok(paths.into_iter().map(PathBuf::from).collect())
    }
}
