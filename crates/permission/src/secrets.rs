//! Names of what is secret: keys, logins and sessions in a home folder, and files like `.env`.
//!
//! The one table of them: the judge refuses commands that name these, and the sandbox hides them
//! from whatever runs. A list of names, not a promise that nothing else is secret.

use crate::glob::{Glob, overlap};
use crate::protected;
use std::path::Path;
use std::sync::LazyLock;

/// What nobody but the person reads, as paths below the home folder; `*` is anything within a
/// part. Everything beneath is meant, too.
#[rustfmt::skip]
pub const HOME_SECRETS: &[&str] = &[
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
    // Agents, ours among them.
    ".claude", ".claude.json", ".codex", ".config/codex", ".gemini", ".cursor", ".config/Cursor",
    ".continue", ".cline", ".qwen", ".config/opencode", ".local/share/opencode", ".config/goose",
    ".local/share/goose", ".config/crush", ".local/share/crush", ".config/github-copilot",
    ".config/amp", ".local/share/amp", ".factory", ".aider*", ".aider.conf.yml", ".windlass",
    ".config/windlass", ".local/share/windlass", ".local/state/windlass",
    // What was typed.
    ".bash_history", ".zsh_history", ".local/share/fish/fish_history", ".psql_history",
    ".mysql_history", ".python_history", ".node_repl_history", ".sqlite_history",
];

/// The table as paths are compared.
static FOLDED: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let parts = |name: &&str| protected::fold(name).split('/').map(str::to_owned).collect();
    HOME_SECRETS.iter().map(parts).collect()
});

/// Where in a path the parts of a secret may stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Anchor {
    /// At its beginning: the path is relative to the home.
    Home,
    /// Anywhere: there are more homes than one.
    Anywhere,
}

/// True if the parts of one of the secrets stand in the path, one after the other.
pub(crate) fn names_secret(path: &Path, anchor: Anchor) -> bool {
    let folded = protected::fold(&path.to_string_lossy());
    let parts: Vec<&str> = folded.split('/').filter(|part| !part.is_empty()).collect();
    let is = |part: &str, wanted: &str| match wanted.strip_suffix('*') {
        Some(start) => part.starts_with(start),
        None => part == wanted,
    };
    let stands = |pattern: &[String], at: usize| {
        let mut rest = parts.iter().skip(at);
        pattern.iter().all(|wanted| rest.next().is_some_and(|part| is(part, wanted)))
    };
    let places = match anchor {
        Anchor::Home => parts.len().min(1),
        Anchor::Anywhere => parts.len(),
    };
    FOLDED.iter().any(|pattern| (0..places).any(|at| stands(pattern, at)))
}

/// What files are called that are made to hold secrets, but for their examples.
const PRIVATE: [&str; 2] = [".env*", "*.env"];
const EXAMPLES: [&str; 3] = [".example", ".sample", ".template"];

/// True for `.env`, `.envrc`, `prod.env` and the like, but not their examples.
pub(crate) fn holds_secrets(path: &str) -> bool {
    // Nearly all paths are plain, and a search asks this of every file.
    let folded = (!path.is_ascii()).then(|| protected::fold(path));
    let path = folded.as_deref().unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    // What stands behind a colon may be a stream of NTFS, and the file is what stands before it.
    let file = name.split_once(':').map(|(file, _)| file);
    std::iter::once(name).chain(file).any(|name| {
        let name = name.trim_end_matches(['.', ' ']).as_bytes();
        let begins = |start: &str| {
            let head = name.get(..start.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
        };
        let ends = |end: &str| {
            let tail = name.len().checked_sub(end.len()).and_then(|from| name.get(from..));
            tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end.as_bytes()))
        };
        let private = PRIVATE.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => begins(start),
            None => ends(pattern.trim_start_matches('*')),
        });
        private && !EXAMPLES.into_iter().any(ends)
    })
}

/// True if a pattern of a shell, one part of a path, speaks of what [`holds_secrets`] means.
/// Whether one that shows nothing of such a name matches a file is for whoever can look.
pub(crate) fn could_hold_secrets(part: &str) -> bool {
    let part = protected::fold(part);
    let [begins, ends] = PRIVATE;
    let hidden = part.starts_with('.') && overlap(&Glob::shell(&part), &Glob::rule(begins));
    let example = EXAMPLES.iter().any(|end| part.ends_with(end));
    (hidden && !example) || part.ends_with(ends.trim_start_matches('*'))
}

/// True if a pattern of a shell matches the first part of a secret in a home folder.
pub(crate) fn could_name_secret(part: &str) -> bool {
    let pattern = Glob::shell(&protected::fold(part));
    FOLDED
        .iter()
        .any(|parts| parts.first().is_some_and(|first| overlap(&pattern, &Glob::rule(first))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_table_is_known_in_any_case_and_beneath() {
        for name in HOME_SECRETS {
            let full = name.replace('*', "-x");
            for path in [full.clone(), full.to_uppercase(), format!("{full}/a/b")] {
                assert!(names_secret(Path::new(&path), Anchor::Home), "{path}");
                let deep = format!("/home/u/{path}");
                assert!(names_secret(Path::new(&deep), Anchor::Anywhere), "{deep}");
                let inner = format!("project/{path}");
                assert!(!names_secret(Path::new(&inner), Anchor::Home), "{inner}");
            }
        }
        assert!(!names_secret(Path::new("/home/u/.sshd"), Anchor::Anywhere));
        assert!(!names_secret(Path::new(""), Anchor::Home));
    }

    #[test]
    fn a_pattern_means_what_a_name_means() {
        for part in [".e*", ".*", ".en?", ".[e]nv", "*.env", "p*.env", ".ENV*", ".e[nv"] {
            assert!(could_hold_secrets(part), "{part}");
        }
        for part in ["*", "*.rs", ".git*", ".s*", "e*", ".env*.example", "[a-z]*"] {
            assert!(!could_hold_secrets(part), "{part}");
        }
        for (part, names) in [(".s*", true), (".a?s", true), (".git-*", true), ("src*", false)] {
            assert_eq!(could_name_secret(part), names, "{part}");
        }
    }
}
