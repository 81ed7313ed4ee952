//! Paths of the home folder that a command may read without approval. The rest of the home is
//! hidden from it.
//!
//! A home folder contains letters, photos and the keys of programs that no list can name
//! completely. So this module lists what commands need: toolchains, package caches, and settings
//! without secrets. It adds the folders in `PATH` and the repository that contains the workspace.
#![allow(clippy::disallowed_methods, reason = "checks which paths of the home exist")]

use super::protected_names::read_short_file;
use std::fs;
use std::path::{Path, PathBuf};

/// Paths below the home folder that commands need. Secrets inside them stay hidden.
#[rustfmt::skip]
const TOOL_PATHS: &[&str] = &[
    // Several languages.
    ".asdf", ".local/share/mise", ".config/mise", ".tool-versions", ".local/share/rtx",
    ".nix-profile", ".nix-defexpr", ".local/state/nix", ".local/bin", ".local/lib", ".local/opt",
    ".linuxbrew", ".cache/bazel", ".cache/bazelisk", ".cache/ccache", ".cache/sccache", ".ccache",
    ".cache/pre-commit", ".cache/buf", ".cache/treefmt",
    // Rust, C, C++ and Zig.
    ".cargo", ".rustup", ".cache/zig", ".zvm", ".zig", ".vcpkg", ".conan2", ".platformio",
    ".espressif", ".elan",
    // JavaScript.
    ".nvm", ".volta", ".fnm", ".local/share/fnm", ".n", ".npm", ".npm-global", ".node-gyp",
    ".cache/node-gyp", ".cache/node", ".cache/typescript", ".yarn", ".cache/yarn", ".pnpm-store",
    ".local/share/pnpm", ".cache/pnpm", ".bun", ".deno", ".cache/deno", ".cache/ms-playwright",
    ".cache/puppeteer", ".cache/Cypress", ".cache/electron", ".cache/electron-builder",
    ".cache/turbo", ".corepack", ".cache/corepack",
    // Python.
    ".pyenv", ".virtualenvs", ".local/share/virtualenvs", ".local/share/uv", ".cache/uv",
    ".cache/pip", ".cache/pypoetry", ".cache/pdm", ".local/share/pipx", ".local/pipx", ".rye",
    ".local/share/hatch", ".cache/hatch", ".conda", "miniconda3", "anaconda3", "miniforge3",
    "mambaforge", "micromamba", ".cache/huggingface", ".cache/torch", ".cache/matplotlib",
    // Go, the JVM and .NET.
    "go", ".goenv", ".gvm", "sdk", ".cache/go-build", ".cache/golangci-lint", ".sdkman", ".jenv",
    ".jabba", ".m2", ".gradle", ".ivy2", ".sbt", ".cache/coursier", ".coursier", ".konan",
    ".jbang", ".dotnet", ".nuget/packages", ".local/share/NuGet",
    // Mobile.
    "Android/Sdk", "flutter", ".pub-cache", ".fvm", ".swiftpm", ".cache/org.swift.swiftpm",
    // Other languages.
    ".rbenv", ".rvm", ".gem", ".bundle/cache", ".cache/composer", ".ghcup", ".cabal", ".stack",
    ".opam", ".julia", ".mix", ".cache/rebar3", ".kerl", ".cpan", "perl5", ".luarocks", ".roswell",
    "quicklisp", ".wasmtime", ".wasmer", ".krew",
    // Settings without secrets.
    ".gitconfig", ".config/git", ".gitignore", ".gitignore_global", ".gitattributes",
    ".editorconfig", ".clang-format", ".rustfmt.toml", ".config/rustfmt", ".cache/fontconfig",
    ".config/fontconfig", ".fonts", ".local/share/fonts", ".local/share/terminfo", ".terminfo",
];

/// Names of folders with programs, whose parent contains what the programs need.
const PROGRAM_FOLDERS: [&str; 3] = ["bin", "sbin", "shims"];

/// Returns the existing paths of the home folder that a command in this workspace may read.
pub(crate) fn readable_home_paths(
    home: &Path,
    root: &Path,
    program_folders: &[PathBuf],
) -> Vec<PathBuf> {
    let tools = TOOL_PATHS.iter().map(|name| home.join(name));
    let programs = program_folders.iter().filter_map(|folder| toolchain_of(home, folder));
    let repository = enclosing_repository(home, root);
    let worktree = main_repository(root).filter(|folder| folder.starts_with(home));
    let paths = tools.chain(programs).chain(repository).chain(worktree);
    let mut existing: Vec<PathBuf> = paths.filter(|path| path.exists()).collect();
    existing.sort();
    existing.dedup();
    existing
}

/// Returns the folder to show for a folder in `PATH`: its parent if that is a toolchain, such as
/// `~/opt/x` for `~/opt/x/bin`.
fn toolchain_of(home: &Path, folder: &Path) -> Option<PathBuf> {
    let inside = folder.strip_prefix(home).ok()?;
    let is_program_folder = PROGRAM_FOLDERS.iter().any(|name| inside.ends_with(name));
    let depth = inside.components().count();
    let is_shared = inside.starts_with(".local") && depth == 2;
    match folder.parent() {
        _ if depth == 0 => None,
        Some(parent) if is_program_folder && depth > 1 && !is_shared => Some(parent.to_owned()),
        Some(_) | None => Some(folder.to_owned()),
    }
}

/// Returns the top of the git repository that contains the workspace, if it lies below the home.
fn enclosing_repository(home: &Path, root: &Path) -> Option<PathBuf> {
    let inside_home = |folder: &&Path| folder.starts_with(home) && *folder != home;
    let mut folders = root.ancestors().skip(1).take_while(inside_home);
    folders.find(|folder| folder.join(".git").exists()).map(Path::to_owned)
}

/// Returns the git folder of the repository that the workspace is a worktree of. The repository
/// must name the workspace as well: a `.git` file alone could point to any folder.
fn main_repository(root: &Path) -> Option<PathBuf> {
    let read_path = |path: PathBuf| -> Option<PathBuf> {
        let text = read_short_file(&path)?;
        let text = text.strip_prefix("gitdir:").unwrap_or(&text).trim();
        Some(path.parent()?.join(text))
    };
    let git_folder = fs::canonicalize(read_path(root.join(".git"))?).ok()?;
    let back_link = fs::canonicalize(read_path(git_folder.join("gitdir"))?).ok()?;
    let worktrees = git_folder.parent().filter(|folder| folder.ends_with(".git/worktrees"))?;
    let is_own = back_link == root.join(".git") && !git_folder.starts_with(root);
    worktrees.parent().filter(|_| is_own).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toolchains_program_folders_and_the_repository_are_readable() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        for name in [".cargo/bin", "opt/x/bin", "bin", ".local/bin", "src/repo/.git", "src/repo/a"]
        {
            fs::create_dir_all(home.join(name)).unwrap();
        }
        fs::create_dir_all(home.join("Documents")).unwrap();
        fs::create_dir_all(home.join(".git")).unwrap();
        let programs =
            ["opt/x/bin", "bin", ".local/bin", "Documents/absent", ""].map(|name| home.join(name));
        let programs = [&programs[..], &[PathBuf::from("/usr/bin")]].concat();
        let readable = |root: &str| -> Vec<String> {
            let paths = readable_home_paths(&home, &home.join(root), &programs).into_iter();
            paths.map(|path| path.strip_prefix(&home).unwrap().display().to_string()).collect()
        };
        assert_eq!(readable("src/repo/a"), [".cargo", ".local/bin", "bin", "opt/x", "src/repo"]);
        assert_eq!(
            readable("src/repo"),
            [".cargo", ".local/bin", "bin", "opt/x"],
            "home is no repository"
        );
    }

    #[test]
    fn a_worktree_shows_its_repository_only_if_the_repository_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let admin = home.join("main/.git/worktrees/w");
        let root = home.join("w");
        fs::create_dir_all(&admin).unwrap();
        fs::create_dir_all(&root).unwrap();
        fs::write(root.join(".git"), format!("gitdir: {}\n", admin.display())).unwrap();
        assert_eq!(main_repository(&root), None);
        fs::write(admin.join("gitdir"), format!("{}\n", root.join(".git").display())).unwrap();
        assert_eq!(main_repository(&root), Some(home.join("main/.git")));
        // A workspace cannot make up a repository of its own.
        let made_up = root.join(".git-x/.git/worktrees/w");
        fs::create_dir_all(&made_up).unwrap();
        fs::write(made_up.join("gitdir"), format!("{}\n", root.join(".git").display())).unwrap();
        fs::write(root.join(".git"), format!("gitdir: {}\n", made_up.display())).unwrap();
        assert_eq!(main_repository(&root), None);
    }
}
