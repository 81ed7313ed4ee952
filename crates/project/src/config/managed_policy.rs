//! The managed policy: limits that the administrator of this machine sets.
//!
//! It takes precedence over everything, so only the administrator may control it: a file that
//! another user owns or can write prevents the start, and so does a file that cannot be read.
#![allow(
    clippy::disallowed_methods,
    reason = "the project crate is the only one that accesses config files"
)]

use crate::Dirs;
use crate::ProjectError;
use crate::config::file_parser::ParsedConfig;
use crate::config::{Config, ConfigEnv, ConfigLayer};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

const MAX_POLICY_BYTES: u64 = 1 << 20;

/// The keys that a policy may set.
const ALLOWED_KEYS: &[&str] = &["$schema", "permission", "mode", "sandbox", "lsp", "formatter"];

/// The name of the policy of a tenant in messages, in place of a file.
const TENANT_POLICY: &str = "policy of the tenant";

impl Config {
    /// Returns a config that has only the policy of a tenant, to check it.
    pub fn of_tenant_policy(text: &str, dirs: &Dirs, config_env: &dyn ConfigEnv) -> Config {
        Config::preview(vec![tenant_policy(text)], config_env, (dirs, &dirs.home))
    }
}

/// Reads the policy of the machine, and adds that of the tenant.
pub(super) fn read_policies(
    dirs: &Dirs,
) -> Result<Vec<(ConfigLayer, PathBuf, String)>, ProjectError> {
    let mut texts = Vec::new();
    if let Some(path) = &dirs.managed_policy
        && let Some(text) = read_policy(path)?
    {
        texts.push((ConfigLayer::Managed, path.clone(), text));
    }
    texts.extend(dirs.tenant_policy.as_deref().map(tenant_policy));
    Ok(texts)
}

fn tenant_policy(text: &str) -> (ConfigLayer, PathBuf, String) {
    (ConfigLayer::Managed, PathBuf::from(TENANT_POLICY), text.to_owned())
}

/// Reads the text of the policy; `None` if there is none.
pub(super) fn read_policy(path: &Path) -> Result<Option<String>, ProjectError> {
    let to_error = |source| ProjectError::File { path: path.to_owned(), source };
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = match options.open(path) {
        Ok(file) => file,
        // A dangling link is a lost policy, not a missing one.
        Err(error) if is_not_found(&error) && path.symlink_metadata().is_err() => return Ok(None),
        Err(error) => return Err(to_error(error)),
    };
    let metadata = file.metadata().map_err(to_error)?;
    if !metadata.is_file() {
        return Err(insecure_policy(path, "it is not a regular file"));
    }
    check_ownership(path, &metadata)?;
    if let Some(folder) = path.parent() {
        check_ownership(path, &folder.metadata().map_err(to_error)?)?;
    }
    let mut text = String::new();
    if file.take(MAX_POLICY_BYTES + 1).read_to_string(&mut text).map_err(to_error)? as u64
        > MAX_POLICY_BYTES
    {
        return Err(insecure_policy(path, "it is too large"));
    }
    Ok(Some(text))
}

fn is_not_found(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(unix)]
fn check_ownership(path: &Path, metadata: &std::fs::Metadata) -> Result<(), ProjectError> {
    use std::os::unix::fs::MetadataExt;
    ownership_problem(metadata.uid(), metadata.mode())
        .map_or(Ok(()), |reason| Err(insecure_policy(path, reason)))
}

/// On other systems, the system keeps ordinary users out of this folder.
#[cfg(not(unix))]
fn check_ownership(_: &Path, _: &std::fs::Metadata) -> Result<(), ProjectError> {
    Ok(())
}

/// Returns the problem with the `owner` or the `mode` of the policy file or its folder.
#[cfg(unix)]
pub(super) fn ownership_problem(owner: u32, mode: u32) -> Option<&'static str> {
    if owner != 0 {
        return Some("it or its folder is not owned by root");
    }
    (mode & 0o022 != 0).then_some("it or its folder is writable by users other than root")
}

fn insecure_policy(path: &Path, reason: &'static str) -> ProjectError {
    ProjectError::InsecureManagedPolicy { path: path.to_owned(), reason }
}

/// Removes keys that are not in `ALLOWED_KEYS` and reports them.
pub(super) fn remove_disallowed_keys(file: &mut ParsedConfig) {
    let keys: Vec<String> =
        file.value.keys().filter(|key| !ALLOWED_KEYS.contains(&key.as_str())).cloned().collect();
    for key in keys {
        let pointer = crate::config::json_pointer::join("", &key);
        file.add_fault(
            &pointer,
            "the managed policy can only set `permission`, `mode`, `sandbox`, `lsp` and \
             `formatter`",
        );
        file.remove_value(&pointer);
    }
}
