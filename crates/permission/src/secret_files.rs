//! Names of secret files: keys, logins and sessions in the home folder, and files like `.env`.
//!
//! This is the only table of such names: the command evaluation denies commands that name them, and
//! the sandbox hides them from every process. It is a list of known names, not a guarantee that
//! nothing else is secret.

use crate::pattern_overlap::{GlobPattern, globs_overlap};
use crate::protected_paths;
use std::path::Path;
use std::sync::LazyLock;

/// Paths below the home folder that only the user may read. `*` matches within one path component.
/// Everything beneath a path is included.
#[rustfmt::skip]
pub const HOME_SECRET_PATHS: &[&str] = &[
    // Keys and logins.
    ".ssh", ".gnupg", ".aws", ".azure", ".oci", ".config/gcloud", ".kube", ".docker/config.json",
    ".config/containers/auth.json", ".config/gh", ".config/hub", ".config/glab-cli", ".netrc",
    "_netrc", ".git-credentials", ".config/git/credentials", ".pgpass", ".my.cnf",
    ".password-store", ".vault-token", ".local/share/keyrings", ".local/share/kwalletd",
    ".config/op", ".config/rclone", ".config/doctl", ".config/hcloud", ".fly", ".s3cfg", ".boto",
    ".databrickscfg", ".snowflake", ".terraform.d", ".npmrc", ".yarnrc.yml", ".pypirc",
    ".cargo/credentials*", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".m2/settings-security.xml", ".gradle/gradle.properties", ".composer/auth.json",
    ".config/composer/auth.json", ".config/age", ".config/sops", ".huggingface",
    ".cache/huggingface/token", ".kaggle", ".config/Bitwarden",
    // Browsers and mail.
    ".mozilla", ".librewolf", ".thunderbird", ".config/google-chrome*", ".config/chromium",
    ".config/BraveSoftware", ".config/microsoft-edge*", ".config/vivaldi", ".config/opera",
    ".var/app", "snap/firefox", "snap/chromium", "Library/Keychains", "Library/Cookies",
    "Library/Safari", "Library/Application Support/Firefox",
    "Library/Application Support/Google/Chrome", "Library/Application Support/BraveSoftware",
    "Library/Application Support/Microsoft Edge",
    // Chats.
    ".config/Slack", ".config/discord", ".config/Signal", ".local/share/TelegramDesktop",
    // Coding agents, including Windlass.
    ".claude", ".claude.json", ".codex", ".config/codex", ".gemini", ".cursor", ".config/Cursor",
    ".continue", ".cline", ".qwen", ".config/opencode", ".local/share/opencode", ".config/goose",
    ".local/share/goose", ".config/crush", ".local/share/crush", ".config/github-copilot",
    ".config/amp", ".local/share/amp", ".factory", ".aider*", ".aider.conf.yml", ".windlass",
    ".config/windlass", ".local/share/windlass", ".local/state/windlass",
    // Shell and REPL history.
    ".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".psql_history",
    ".mysql_history", ".python_history", ".node_repl_history", ".sqlite_history",
];

/// `HOME_SECRET_PATHS` after `fold_name`, split into components.
static FOLDED_SECRET_PATHS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let parts =
        |name: &&str| protected_paths::fold_name(name).split('/').map(str::to_owned).collect();
    HOME_SECRET_PATHS.iter().map(parts).collect()
});

/// The position in a path at which a secret name may begin.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SecretPathAnchor {
    /// At the start: the path is relative to the home folder.
    Home,
    /// At any component: a machine has more than one home folder.
    Anywhere,
}

/// Returns true if the path contains the components of a secret name in sequence.
pub(crate) fn is_secret_path(path: &Path, anchor: SecretPathAnchor) -> bool {
    let folded = protected_paths::fold_name(&path.to_string_lossy());
    let parts: Vec<&str> = folded.split('/').filter(|part| !part.is_empty()).collect();
    let matches_part = |part: &str, expected: &str| match expected.strip_suffix('*') {
        Some(prefix) => part.starts_with(prefix),
        None => part == expected,
    };
    let matches_at = |pattern: &[String], index: usize| {
        let mut rest = parts.iter().skip(index);
        pattern.iter().all(|expected| rest.next().is_some_and(|part| matches_part(part, expected)))
    };
    let start_count = match anchor {
        SecretPathAnchor::Home => parts.len().min(1),
        SecretPathAnchor::Anywhere => parts.len(),
    };
    FOLDED_SECRET_PATHS
        .iter()
        .any(|pattern| (0..start_count).any(|index| matches_at(pattern, index)))
}

/// Name patterns of files that store secrets. `EXAMPLE_FILE_SUFFIXES` lists the exceptions.
const SECRET_FILE_PATTERNS: [&str; 2] = [".env*", "*.env"];
const EXAMPLE_FILE_SUFFIXES: [&str; 3] = [".example", ".sample", ".template"];

/// Returns true for `.env`, `.envrc`, `prod.env` and similar names, but not for their examples.
pub(crate) fn is_secret_file(path: &str) -> bool {
    // Nearly all paths are ASCII, and a search checks every file.
    let folded =
        (!path.is_ascii() || path.contains('\\')).then(|| protected_paths::fold_path(path));
    let path = folded.as_deref().unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    // The part after a colon may name an NTFS stream of the file before it.
    let file = name.split_once(':').map(|(file, _)| file);
    std::iter::once(name).chain(file).any(|name| {
        let name = name.trim_end_matches(['.', ' ']).as_bytes();
        let has_prefix = |prefix: &str| {
            let head = name.get(..prefix.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(prefix.as_bytes()))
        };
        let has_suffix = |suffix: &str| {
            let tail = name.len().checked_sub(suffix.len()).and_then(|start| name.get(start..));
            tail.is_some_and(|tail| tail.eq_ignore_ascii_case(suffix.as_bytes()))
        };
        let is_secret =
            SECRET_FILE_PATTERNS.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) => has_prefix(prefix),
                None => has_suffix(pattern.trim_start_matches('*')),
            });
        is_secret && !EXAMPLE_FILE_SUFFIXES.into_iter().any(has_suffix)
    })
}

/// Returns true if a shell pattern for one path component explicitly covers names that
/// [`is_secret_file`] accepts. For a pattern such as `*`, the caller must look at the actual files.
pub(crate) fn could_match_secret_file(part: &str) -> bool {
    let part = protected_paths::fold_name(part);
    let [prefix_pattern, suffix_pattern] = SECRET_FILE_PATTERNS;
    let matches_prefix = part.starts_with('.')
        && globs_overlap(&GlobPattern::from_shell(&part), &GlobPattern::from_rule(prefix_pattern));
    let is_example = EXAMPLE_FILE_SUFFIXES.iter().any(|suffix| part.ends_with(suffix));
    (matches_prefix && !is_example) || part.ends_with(suffix_pattern.trim_start_matches('*'))
}

/// Returns true if a shell pattern can match the first component of a secret path in the home
/// folder.
pub(crate) fn could_match_secret_path(part: &str) -> bool {
    let pattern = GlobPattern::from_shell(&protected_paths::fold_name(part));
    FOLDED_SECRET_PATHS.iter().any(|parts| {
        parts.first().is_some_and(|first| globs_overlap(&pattern, &GlobPattern::from_rule(first)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listed_name_matches_in_any_case_and_with_subpaths() {
        for name in HOME_SECRET_PATHS {
            let full = name.replace('*', "-x");
            for path in [full.clone(), full.to_uppercase(), format!("{full}/a/b")] {
                assert!(is_secret_path(Path::new(&path), SecretPathAnchor::Home), "{path}");
                let deep = format!("/home/u/{path}");
                assert!(is_secret_path(Path::new(&deep), SecretPathAnchor::Anywhere), "{deep}");
                let inner = format!("project/{path}");
                assert!(!is_secret_path(Path::new(&inner), SecretPathAnchor::Home), "{inner}");
            }
        }
        assert!(!is_secret_path(Path::new("/home/u/.sshd"), SecretPathAnchor::Anywhere));
        assert!(!is_secret_path(Path::new(""), SecretPathAnchor::Home));
    }

    #[test]
    fn a_wildcard_matches_if_it_could_expand_to_a_secret() {
        for part in [".e*", ".*", ".en?", ".[e]nv", "*.env", "p*.env", ".ENV*", ".e[nv"] {
            assert!(could_match_secret_file(part), "{part}");
        }
        for part in ["*", "*.rs", ".git*", ".s*", "e*", ".env*.example", "[a-z]*"] {
            assert!(!could_match_secret_file(part), "{part}");
        }
        for (part, names) in [(".s*", true), (".a?s", true), (".git-*", true), ("src*", false)] {
            assert_eq!(could_match_secret_path(part), names, "{part}");
        }
    }
}
