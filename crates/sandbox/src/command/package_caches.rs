//! The package caches of the user, by tool.

#![allow(clippy::disallowed_methods, reason = "lists manifests, which the caller may see")]

use crate::confine::{PackageCache, PackageCaches};
use crate::restricted_paths::SKIPPED_FOLDERS;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use windlass_protocol::BlobRef;
use windlass_protocol::mutex_lock::lock;

/// Limits the files that are looked at to find manifests.
const MAX_SCANNED_ENTRIES: usize = 5_000;

/// The cache of a tool: where the user has it, the variable that moves it, and what tells that a
/// command may use it.
struct CacheRow {
    name: &'static str,
    /// The variable that names the base folder, if there is one, and its default below the home
    /// folder.
    base: (&'static str, &'static str),
    /// Path below the base folder.
    path: &'static str,
    subfolders: &'static [&'static str],
    variable: (&'static str, &'static str),
    is_needed_offline: bool,
    /// Programs that use the cache.
    programs: &'static [&'static str],
    /// Files of projects whose builds use the cache.
    manifests: &'static [&'static str],
}

const HOME: (&str, &str) = ("", "");
const CACHE_HOME: (&str, &str) = ("XDG_CACHE_HOME", ".cache");
const DATA_HOME: (&str, &str) = ("XDG_DATA_HOME", ".local/share");

const fn row(
    name: &'static str,
    base: (&'static str, &'static str),
    path: &'static str,
    variable: &'static str,
    programs: &'static [&'static str],
    manifests: &'static [&'static str],
) -> CacheRow {
    CacheRow {
        name,
        base,
        path,
        subfolders: &[],
        variable: (variable, ""),
        is_needed_offline: false,
        programs,
        manifests,
    }
}

const PNPM: (&[&str], &[&str]) = (&["pnpm", "pnpx"], &["pnpm-lock.yaml"]);
const GO: (&[&str], &[&str]) = (&["go", "go-build"], &["go.mod", "go.work"]);
const COREPACK_MANIFESTS: &[&str] = &["pnpm-lock.yaml", "yarn.lock"];
const PYTHON_PROGRAMS: &[&str] = &["pip", "pip3", "python", "python3", "tox", "nox", "pipenv"];
const PYTHON_MANIFESTS: &[&str] = &["pyproject.toml", "requirements.txt", "setup.py"];
const GRADLE_MANIFESTS: &[&str] =
    &["build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"];
const DOTNET_MANIFESTS: &[&str] = &["global.json", "nuget.config", "Directory.Build.props"];
const C_MANIFESTS: &[&str] = &["CMakeLists.txt", "configure", "meson.build"];

#[rustfmt::skip]
const CACHE_ROWS: &[CacheRow] = &[
    // The programs and settings beside these folders stay protected.
    CacheRow {
        subfolders: &["registry", "git"],
        ..row("cargo", ("CARGO_HOME", ".cargo"), "", "CARGO_HOME", &["cargo"], &["Cargo.toml"])
    },
    row("npm", HOME, ".npm", "npm_config_cache", &["npm", "npx"], &["package.json"]),
    // npm would warn about settings of these tools that begin with `npm_config`.
    row("pnpm", CACHE_HOME, "pnpm", "pnpm_config_cache_dir", PNPM.0, PNPM.1),
    row("pnpm-store", DATA_HOME, "pnpm/store", "pnpm_config_store_dir", PNPM.0, PNPM.1),
    row("yarn", CACHE_HOME, "yarn", "YARN_CACHE_FOLDER", &["yarn"], &["yarn.lock"]),
    row("yarn-berry", HOME, ".yarn/berry", "YARN_GLOBAL_FOLDER", &["yarn"], &["yarn.lock"]),
    row(
        "bun", ("BUN_INSTALL", ".bun"), "install/cache", "BUN_INSTALL_CACHE_DIR",
        &["bun", "bunx"], &["bun.lock", "bun.lockb"],
    ),
    row("deno", CACHE_HOME, "deno", "DENO_DIR", &["deno"], &["deno.json", "deno.jsonc"]),
    row(
        "corepack", CACHE_HOME, "node/corepack", "COREPACK_HOME",
        &["corepack", "pnpm", "yarn"], COREPACK_MANIFESTS,
    ),
    row("pip", CACHE_HOME, "pip", "PIP_CACHE_DIR", PYTHON_PROGRAMS, PYTHON_MANIFESTS),
    row("uv", CACHE_HOME, "uv", "UV_CACHE_DIR", &["uv", "uvx"], &["uv.lock"]),
    row("poetry", CACHE_HOME, "pypoetry", "POETRY_CACHE_DIR", &["poetry"], &["poetry.lock"]),
    row(
        "pre-commit", CACHE_HOME, "pre-commit", "PRE_COMMIT_HOME",
        &["pre-commit"], &[".pre-commit-config.yaml"],
    ),
    CacheRow {
        is_needed_offline: true,
        ..row("go-build", CACHE_HOME, "go-build", "GOCACHE", GO.0, GO.1)
    },
    row("go-mod", ("GOPATH", "go"), "pkg/mod", "GOMODCACHE", GO.0, GO.1),
    CacheRow {
        is_needed_offline: true,
        ..row(
            "gradle", ("GRADLE_USER_HOME", ".gradle"), "", "GRADLE_USER_HOME",
            &["gradle", "gradlew"], GRADLE_MANIFESTS,
        )
    },
    CacheRow {
        variable: ("MAVEN_ARGS", "-Dmaven.repo.local="),
        ..row("maven", HOME, ".m2/repository", "", &["mvn", "mvnw"], &["pom.xml"])
    },
    row("nuget", HOME, ".nuget/packages", "NUGET_PACKAGES", &["dotnet", "nuget"], DOTNET_MANIFESTS),
    row(
        "composer", CACHE_HOME, "composer", "COMPOSER_CACHE_DIR",
        &["composer"], &["composer.json"],
    ),
    row("bundler", HOME, ".bundle/cache", "BUNDLE_USER_CACHE", &["bundle", "gem"], &["Gemfile"]),
    CacheRow {
        is_needed_offline: true,
        ..row(
            "ccache", CACHE_HOME, "ccache", "CCACHE_DIR",
            &["ccache", "cmake", "make", "ninja"], C_MANIFESTS,
        )
    },
];

/// The package caches of the user as the commands of one project see them.
///
/// Each mount makes the start of a command slower, so a command gets only the caches that it may
/// use: those of the project's manifests, those of tools that this or an earlier command named, and
/// all of them if its network access was approved.
pub(crate) struct ProjectCaches {
    /// The folder with manifests.
    root: PathBuf,
    storage: PathBuf,
    /// In the order of `CACHE_ROWS`.
    caches: Vec<PackageCache>,
    /// For each of `CACHE_ROWS`, whether commands use it. Filled by the first command.
    used: Mutex<Option<Vec<bool>>>,
}

impl ProjectCaches {
    /// Each project has its own storage in `cache_folder`, so that a command of one cannot change
    /// what the commands of another will run.
    pub(crate) fn new(
        cache_folder: &Path,
        root: &Path,
        home: &Path,
        environment: &[(OsString, OsString)],
    ) -> ProjectCaches {
        let to_cache = |row: &CacheRow| {
            let (variable, default) = row.base;
            let value = environment.iter().find(|(name, _)| name == variable);
            let value = value.map(|(_, value)| PathBuf::from(value));
            let value = value.filter(|path| path.is_absolute());
            let base = value.unwrap_or_else(|| join_path(home, default));
            PackageCache {
                name: row.name.to_owned(),
                folder: join_path(&base, row.path),
                subfolders: row.subfolders.iter().map(|&name| name.to_owned()).collect(),
                variable: (row.variable.0.to_owned(), row.variable.1.to_owned()),
                is_needed_offline: row.is_needed_offline,
            }
        };
        ProjectCaches {
            root: root.to_owned(),
            storage: cache_folder.join("packages").join(project_folder_name(root)),
            caches: CACHE_ROWS.iter().map(to_cache).collect(),
            used: Mutex::default(),
        }
    }

    /// Returns the caches that a command may use, if there are any.
    pub(crate) fn for_command(&self, command: &str, may_download: bool) -> Option<PackageCaches> {
        let mut used = lock(&self.used);
        let used = used.get_or_insert_with(|| {
            let names = manifest_names(&self.root);
            let has_manifest =
                |row: &CacheRow| row.manifests.iter().any(|name| names.contains(OsStr::new(name)));
            CACHE_ROWS.iter().map(has_manifest).collect()
        });
        let is_separator = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_');
        for word in command.split(is_separator).filter(|word| !word.is_empty()) {
            for (row, used) in CACHE_ROWS.iter().zip(&mut *used) {
                *used |= row.programs.contains(&word) || row.variable.0 == word;
            }
        }
        let caches = self.caches.iter().zip(used).filter(|(_, used)| may_download || **used);
        let caches: Vec<PackageCache> = caches.map(|(cache, _)| cache.clone()).collect();
        (!caches.is_empty()).then(|| PackageCaches { storage: self.storage.clone(), caches })
    }
}

/// Returns the names of the files in the root of the project and in the folders there.
fn manifest_names(root: &Path) -> HashSet<OsString> {
    let mut names = HashSet::new();
    let mut folders = vec![root.to_owned()];
    let mut remaining = MAX_SCANNED_ENTRIES;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten().take(remaining) {
            remaining = remaining.saturating_sub(1);
            let is_folder = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
            let name = entry.file_name();
            let is_skipped = SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped);
            if !is_folder {
                names.insert(name);
            } else if folder == root && !is_skipped {
                folders.push(entry.path());
            }
        }
    }
    names
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

    fn caches(environment: &[(&str, &str)]) -> ProjectCaches {
        let environment: Vec<(OsString, OsString)> =
            environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        ProjectCaches::new(Path::new("/c"), Path::new("/w/app"), Path::new("/h"), &environment)
    }

    fn folder(caches: &ProjectCaches, name: &str) -> PathBuf {
        caches.caches.iter().find(|cache| cache.name == name).unwrap().folder.clone()
    }

    fn names(caches: Option<PackageCaches>) -> Vec<String> {
        let caches = caches.map(|caches| caches.caches).unwrap_or_default();
        caches.into_iter().map(|cache| cache.name).collect()
    }

    #[test]
    fn commands_get_the_caches_that_they_may_use() {
        let root = tempfile::tempdir().unwrap();
        let open = || ProjectCaches::new(Path::new("/c"), root.path(), Path::new("/h"), &[]);
        let caches = open();
        assert_eq!(caches.for_command("echo gopher; ls cargo2", false), None);
        assert_eq!(names(caches.for_command("./gradlew test", false)), ["gradle"]);
        assert_eq!(names(caches.for_command("ls ~/.cargo", false)), ["cargo", "gradle"]);
        assert_eq!(
            names(caches.for_command("echo $UV_CACHE_DIR", false)),
            ["cargo", "uv", "gradle"]
        );
        assert_eq!(names(caches.for_command("./setup.sh", true)).len(), CACHE_ROWS.len());
        assert_eq!(names(caches.for_command("./setup.sh", false)), ["cargo", "uv", "gradle"]);

        for (path, expected) in [
            ("Cargo.toml", &["cargo"][..]),
            ("api/go.mod", &["cargo", "go-build", "go-mod"]),
            ("node_modules/package.json", &["cargo", "go-build", "go-mod"]),
            ("a/b/uv.lock", &["cargo", "go-build", "go-mod"]),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
            assert_eq!(names(open().for_command("./test.sh", false)), expected);
        }
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
