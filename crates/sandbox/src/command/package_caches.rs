//! The package caches of the user, by tool.

use crate::confine::{PackageCache, PackageCaches};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use windlass_protocol::BlobRef;

/// The cache of a tool: where the user has it, and the variable that moves it.
struct CacheRow {
    name: &'static str,
    /// The variable that names the base folder, and its default below the home folder.
    base: (&'static str, &'static str),
    /// Path below the base folder.
    path: &'static str,
    subfolders: &'static [&'static str],
    variable: (&'static str, &'static str),
    is_needed_offline: bool,
}

const HOME: (&str, &str) = ("HOME", "");
const CACHE_HOME: (&str, &str) = ("XDG_CACHE_HOME", ".cache");
const DATA_HOME: (&str, &str) = ("XDG_DATA_HOME", ".local/share");

const fn row(
    name: &'static str,
    base: (&'static str, &'static str),
    path: &'static str,
    variable: &'static str,
) -> CacheRow {
    let variable = (variable, "");
    CacheRow { name, base, path, subfolders: &[], variable, is_needed_offline: false }
}

#[rustfmt::skip]
const CACHE_ROWS: &[CacheRow] = &[
    // The programs and settings beside these folders stay protected.
    CacheRow {
        subfolders: &["registry", "git"],
        ..row("cargo", ("CARGO_HOME", ".cargo"), "", "CARGO_HOME")
    },
    row("npm", HOME, ".npm", "npm_config_cache"),
    // npm would warn about settings of these tools that begin with `npm_config`.
    row("pnpm", CACHE_HOME, "pnpm", "pnpm_config_cache_dir"),
    row("pnpm-store", DATA_HOME, "pnpm/store", "pnpm_config_store_dir"),
    row("yarn", CACHE_HOME, "yarn", "YARN_CACHE_FOLDER"),
    row("yarn-berry", HOME, ".yarn/berry", "YARN_GLOBAL_FOLDER"),
    row("bun", ("BUN_INSTALL", ".bun"), "install/cache", "BUN_INSTALL_CACHE_DIR"),
    row("deno", CACHE_HOME, "deno", "DENO_DIR"),
    row("corepack", CACHE_HOME, "node/corepack", "COREPACK_HOME"),
    row("pip", CACHE_HOME, "pip", "PIP_CACHE_DIR"),
    row("uv", CACHE_HOME, "uv", "UV_CACHE_DIR"),
    row("poetry", CACHE_HOME, "pypoetry", "POETRY_CACHE_DIR"),
    row("pre-commit", CACHE_HOME, "pre-commit", "PRE_COMMIT_HOME"),
    CacheRow {
        is_needed_offline: true,
        ..row("go-build", CACHE_HOME, "go-build", "GOCACHE")
    },
    row("go-mod", ("GOPATH", "go"), "pkg/mod", "GOMODCACHE"),
    CacheRow {
        is_needed_offline: true,
        ..row("gradle", ("GRADLE_USER_HOME", ".gradle"), "", "GRADLE_USER_HOME")
    },
    CacheRow {
        variable: ("MAVEN_ARGS", "-Dmaven.repo.local="),
        ..row("maven", HOME, ".m2/repository", "")
    },
    row("nuget", HOME, ".nuget/packages", "NUGET_PACKAGES"),
    row("composer", CACHE_HOME, "composer", "COMPOSER_CACHE_DIR"),
    row("bundler", HOME, ".bundle/cache", "BUNDLE_USER_CACHE"),
    CacheRow {
        is_needed_offline: true,
        ..row("ccache", CACHE_HOME, "ccache", "CCACHE_DIR")
    },
];

/// Returns the package caches for the commands of a project. Each project has its own storage, so
/// that a command of one cannot change what the commands of another will run.
pub(crate) fn package_caches(
    cache_folder: &Path,
    root: &Path,
    home: &Path,
    environment: &[(OsString, OsString)],
) -> PackageCaches {
    let to_cache = |row: &CacheRow| {
        let (variable, default) = row.base;
        let value = environment.iter().find(|(name, _)| name == variable && variable != "HOME");
        let value = value.map(|(_, value)| PathBuf::from(value)).filter(|path| path.is_absolute());
        let base = value.unwrap_or_else(|| join_path(home, default));
        PackageCache {
            name: row.name.to_owned(),
            folder: join_path(&base, row.path),
            subfolders: row.subfolders.iter().map(|&name| name.to_owned()).collect(),
            variable: (row.variable.0.to_owned(), row.variable.1.to_owned()),
            is_needed_offline: row.is_needed_offline,
        }
    };
    PackageCaches {
        storage: cache_folder.join("packages").join(project_folder_name(root)),
        caches: CACHE_ROWS.iter().map(to_cache).collect(),
    }
}

/// Joins without a slash at the end if `path` is empty.
fn join_path(base: &Path, path: &str) -> PathBuf {
    if path.is_empty() { base.to_owned() } else { base.join(path) }
}

/// Returns a folder name that no other project has, beginning with the name of the project.
fn project_folder_name(root: &Path) -> String {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = name.chars().filter(is_plain).take(40).collect();
    let digest = BlobRef::for_bytes(root.as_os_str().as_encoded_bytes());
    let digest = digest.as_str();
    let digest = digest.get(digest.len().saturating_sub(16)..).unwrap_or(digest);
    format!("{name}-{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_permission::HOME_SECRET_PATHS;

    fn caches(environment: &[(&str, &str)]) -> PackageCaches {
        let environment: Vec<(OsString, OsString)> =
            environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        package_caches(Path::new("/c"), Path::new("/w/app"), Path::new("/h"), &environment)
    }

    fn folder(caches: &PackageCaches, name: &str) -> PathBuf {
        caches.caches.iter().find(|cache| cache.name == name).unwrap().folder.clone()
    }

    #[test]
    fn folders_follow_the_variables_of_the_user() {
        let usual = caches(&[("HOME", "/elsewhere")]);
        assert_eq!(folder(&usual, "npm"), Path::new("/h/.npm"));
        assert_eq!(folder(&usual, "pip"), Path::new("/h/.cache/pip"));
        assert_eq!(folder(&usual, "cargo"), Path::new("/h/.cargo"));
        let moved = caches(&[("XDG_CACHE_HOME", "/x"), ("CARGO_HOME", "/y"), ("GOPATH", "rel")]);
        assert_eq!(folder(&moved, "pip"), Path::new("/x/pip"));
        assert_eq!(folder(&moved, "cargo"), Path::new("/y"));
        assert_eq!(folder(&moved, "go-mod"), Path::new("/h/go/pkg/mod"));
    }

    #[test]
    fn no_two_projects_or_tools_share_a_storage_folder() {
        let root = |root: &str| project_folder_name(Path::new(root));
        assert_ne!(root("/a/app"), root("/b/app"));
        assert!(root("/a/my app").starts_with("myapp-"), "{}", root("/a/my app"));
        let caches = caches(&[]).caches;
        let mut names: Vec<&str> = caches.iter().map(|cache| cache.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CACHE_ROWS.len());
    }

    #[test]
    fn no_cache_is_a_secret_path() {
        for cache in caches(&[]).caches {
            for secret in HOME_SECRET_PATHS {
                let secret = Path::new("/h").join(secret);
                assert!(!cache.folder.starts_with(&secret), "{}", cache.folder.display());
            }
        }
    }
}
