//! Protected paths that no tool may change unasked, because another program runs or trusts their
//! contents.
//!
//! Another program later runs a file such as `.git/hooks/pre-commit`, with all rights of the user
//! and without asking. It is therefore protected by name: even if it does not exist yet, at any
//! depth, and in every spelling that some file system treats as the same name. The price is that a
//! repository of dotfiles is protected too; the user opens a file in it by naming the file in their
//! own rules. Settings of a project, such as `.vscode`, can also be edited after the user has seen
//! the change and approved it.
//!
//! Deliberately not protected: `.gitattributes`, because a filter it names runs only if a git
//! config defines it, and git configs are protected; build files and CI workflows, because changing
//! them is the work itself and users look before they run them; `AGENTS.md` and similar files,
//! which advise a model but run nothing. Deliberately protected: `.husky` and similar folders,
//! although users do edit them. They are equivalent to `.git/hooks` under a name configured in git.
//!
//! The module is pure. Start reading at [`PROTECTED_RULES`].

use std::collections::HashSet;
use std::path::{Component, Path};
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;
use wildmatch::WildMatch;
use windlass_protocol::display_text::is_hidden_or_bidi;
use windlass_protocol::path_escapes::unescape_path;

/// Path patterns with a common reason, plus examples that match and counterexamples that do not.
struct ProtectedPathRule {
    reason: &'static str,
    is_project_setting: bool,
    /// Consecutive path components, at any position in a path. `*` matches within one component.
    /// Everything beneath a match is included.
    patterns: &'static [&'static str],
    #[cfg_attr(not(test), allow(dead_code, reason = "only tests read them"))]
    examples: &'static [&'static str],
    #[cfg_attr(not(test), allow(dead_code, reason = "only tests read them"))]
    counterexamples: &'static [&'static str],
}

/// All protected paths, in lower case because paths are compared after `fold_name`.
#[rustfmt::skip]
const PROTECTED_RULES: &[ProtectedPathRule] = &[
    ProtectedPathRule {
        reason: "git runs or trusts its contents",
        is_project_setting: false,
        patterns: &[
            ".git", "*.git/hooks", "*.git/config", ".gitmodules", ".gitconfig", ".config/git",
            ".git-credentials",
        ],
        examples: &[
            ".git",
            ".git/hooks/pre-commit",
            ".git/config.worktree",
            ".git/info/attributes",
            ".git/modules/sub/config",
            ".git/worktrees/one/gitdir",
            ".git/commondir",
            "vendor/sub/.git/HEAD",
            "sub/.git",
            "mirror.git/hooks/update",
            ".gitmodules",
            "home/ada/.config/git/config",
        ],
        counterexamples: &[
            ".github/workflows/ci.yml",
            ".gitignore",
            ".gitattributes",
            ".gitlab-ci.yml",
            ".git-blame-ignore-revs",
            "git/config",
            "src/.gitkeep",
            "hooks/pre-commit",
            "mirror.git/README.md",
            "docs/.config/gitignore",
        ],
    },
    ProtectedPathRule {
        reason: "git runs it at the next commit",
        is_project_setting: true,
        patterns: &[
            ".githooks", ".git-hooks", ".husky", ".huskyrc*", "lefthook.yml", "lefthook.yaml",
            "lefthook.toml", "lefthook.json*", "lefthook-local.yml", "lefthook-local.yaml",
            "lefthook-local.toml", "lefthook-local.json*", ".lefthook", ".lefthook.*",
            ".lefthook-local", ".lefthook-local.*", ".pre-commit-config.yaml", ".overcommit.yml",
            ".local-overcommit.yml", ".simple-git-hooks.*", "simple-git-hooks.*js*",
        ],
        examples: &[
            ".husky/pre-commit",
            ".githooks/commit-msg",
            ".pre-commit-config.yaml",
            "lefthook.toml",
            "lefthook-local.yml",
            ".lefthook-local.json",
            ".config/lefthook.yaml",
            ".overcommit.yml",
            ".simple-git-hooks.cjs",
            "simple-git-hooks.json",
        ],
        counterexamples: &[
            "husky/pre-commit",
            "githooks.md",
            "src/lefthook.rs",
            "lefthook.md",
            "lefthook-local.md",
            "docs/overcommit.yml",
            "simple-git-hooks.md",
        ],
    },
    ProtectedPathRule {
        reason: "Windlass runs or follows it",
        is_project_setting: false,
        patterns: &[
            "windlass.jsonc", ".windlass", ".config/windlass", ".local/share/windlass",
            "appdata/roaming/windlass",
        ],
        examples: &[
            "windlass.jsonc",
            ".windlass/windlass.jsonc",
            "packages/a/.windlass",
            ".local/share/windlass/trust.json",
            "AppData/Roaming/windlass/windlass.jsonc",
        ],
        counterexamples: &["windlass.json", "src/windlass/mod.rs", ".windlass-1-2.draft", "AGENTS.md"],
    },
    ProtectedPathRule {
        reason: "another agent runs or follows it",
        is_project_setting: true,
        patterns: &[
            ".agent", ".claude", ".claude.json", ".mcp.json", ".codex", ".config/codex", ".opencode",
            "opencode.json", "opencode.jsonc", ".config/opencode", ".cursor", ".gemini", ".goose*",
            ".config/goose", ".aider*.yml", ".aider*.yaml", ".cline", ".clinerules*", ".roo",
            ".roomodes", ".roorules*", ".kiro", ".windsurf*", ".continue", ".continuerc.json",
            ".junie", ".kilocode*", ".qwen", ".trae", ".amazonq", ".augment", ".factory", ".crush*",
            "crush.json", ".config/crush", ".github/hooks", ".github/copilot",
        ],
        examples: &[
            ".claude/settings.local.json",
            ".mcp.json",
            "packages/a/.mcp.json",
            ".cursor/mcp.json",
            "opencode.json",
            "opencode.jsonc",
            ".goosehints",
            ".aider.conf.yml",
            ".clinerules",
        ],
        counterexamples: &[
            "AGENTS.md",
            "CLAUDE.md",
            "mcp.json",
            "src/codex/mod.rs",
            ".root",
            ".github/copilot-instructions.md",
            ".aiderignore",
        ],
    },
    ProtectedPathRule {
        reason: "an editor runs or follows it",
        is_project_setting: true,
        patterns: &[
            ".vscode", ".vscode-server", "*.code-workspace", ".config/code",
            "application support/code", "appdata/roaming/code", ".idea", ".zed", ".config/zed",
            ".fleet", ".vs", ".helix", ".config/helix", "*.sublime-project", ".devcontainer",
            ".devcontainer.json", ".nvim.lua", ".nvimrc", ".exrc", ".vimrc", ".gvimrc", ".lvimrc",
            ".vim", ".config/nvim", ".config/vim", ".dir-locals*.el", ".emacs", ".emacs.d",
            ".config/emacs", ".gdbinit", ".lldbinit",
        ],
        examples: &[
            ".vscode/settings.json",
            ".vscode",
            "web/.vscode/tasks.json",
            "my app.code-workspace",
            "a:b.code-workspace",
            ".devcontainer/devcontainer.json",
            ".dir-locals.el",
        ],
        counterexamples: &[".editorconfig", "vscode/extension.ts", ".vscodeignore", "src/idea.rs", "exrc"],
    },
    ProtectedPathRule {
        reason: "a shell or another program runs it when entering the folder or starting there",
        is_project_setting: true,
        patterns: &[
            ".envrc", ".direnvrc", ".config/direnv", ".mise.toml", ".mise.*.toml", "mise.toml",
            "mise.*.toml", ".mise",
            ".config/mise", ".rprofile", ".irbrc", ".pryrc", ".pythonrc*", ".sqliterc", ".psqlrc",
        ],
        examples: &[".envrc", "deep/down/.envrc", ".mise.toml", "mise.local.toml", ".Rprofile"],
        counterexamples: &["envrc", ".env", ".env.example", ".tool-versions", "promise.toml", "misery.toml"],
    },
    ProtectedPathRule {
        reason: "a package manager runs it, or uses it to choose where to send keys and download \
                 packages",
        is_project_setting: true,
        patterns: &[
            ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases", ".yarn/plugins", ".pnpmfile.*js",
            ".pypirc", ".pip", ".config/pip", ".condarc", ".cargo/config", ".cargo/config.toml",
            ".cargo/credentials*", ".cargo/env*", ".cargo/bin", ".gem/credentials",
            ".bundle/config", ".m2/settings*.xml", ".gradle/init*", ".gradle/gradle.properties",
            ".nuget/nuget", ".composer/auth.json",
        ],
        examples: &[
            ".npmrc",
            "web/.yarnrc.yml",
            ".yarn/releases/yarn-4.cjs",
            ".pnpmfile.cjs",
            ".pypirc",
            ".cargo/config.toml",
        ],
        counterexamples: &[
            "package.json",
            "Cargo.toml",
            "pyproject.toml",
            ".yarn/versions/a.yml",
            "gradle.properties",
            "pnpm-workspace.yaml",
        ],
    },
    ProtectedPathRule {
        reason: "shells run it when they start or exit",
        is_project_setting: false,
        patterns: &[
            ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
            ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc",
            ".tcshrc", ".login", ".logout", ".config/fish", ".config/nushell", ".inputrc",
            ".config/powershell", "documents/powershell", "documents/windowspowershell",
            "profile.ps1", "*_profile.ps1", ".tmux.conf", ".config/tmux", ".screenrc",
        ],
        examples: &[
            ".bashrc",
            "dotfiles/.zshrc",
            "~/.profile",
            ".config/fish/conf.d/a.fish",
            "Documents/PowerShell/Microsoft.PowerShell_profile.ps1",
        ],
        counterexamples: &["bashrc", ".config/app.toml", "scripts/build.ps1", "profile.rs", ".zsh_history"],
    },
    ProtectedPathRule {
        reason: "it contains keys, or defines which hosts and keys to trust",
        is_project_setting: false,
        patterns: &[
            ".ssh", ".gnupg", ".aws", ".kube/config", ".docker/config.json", ".config/gcloud",
            ".config/gh", ".config/hub", ".netrc", "_netrc", ".pgpass", ".password-store",
            ".vault-token", ".local/share/keyrings",
        ],
        examples: &[".ssh/authorized_keys", ".aws/credentials", ".netrc", "home/.gnupg/gpg.conf"],
        counterexamples: &["ssh/config", "docs/aws.md", ".docker/Dockerfile", ".kube/dashboard.yml"],
    },
    ProtectedPathRule {
        reason: "the system starts the programs that it names",
        is_project_setting: false,
        patterns: &[
            ".config/autostart", ".config/systemd", ".config/environment.d",
            ".local/share/systemd", ".local/share/applications", ".local/bin", ".xprofile",
            ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment", "library/launchagents",
            "library/launchdaemons", "start menu/programs/startup",
        ],
        examples: &[
            ".config/systemd/user/a.service",
            ".config/autostart/a.desktop",
            "Library/LaunchAgents/a.plist",
            "AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Startup/a.lnk",
        ],
        counterexamples: &["systemd/a.service", "library/agents.py", "src/programs/startup/mod.rs"],
    },
];

/// The number of pattern components that may lie in the workspace's own path: one less than the
/// longest pattern has.
const MAX_ROOT_TAIL_PARTS: usize = 2;

/// Returns the last components of the workspace path, folded. They let `git/config` in a workspace
/// `.config` match the pattern `.config/git`.
pub(crate) fn root_tail(root: &Path) -> Vec<String> {
    let names = root.components().filter_map(|part| match part {
        Component::Normal(name) => Some(fold_name(&name.to_string_lossy())),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    });
    let mut names: Vec<String> = names.collect();
    names.split_off(names.len().saturating_sub(MAX_ROOT_TAIL_PARTS))
}

/// The protection of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathProtection {
    pub(crate) reason: &'static str,
    /// True if the user can approve an edit when asked, because the file belongs to the project.
    pub(crate) is_project_setting: bool,
}

/// Returns the reason that no tool may change this path, see [`path_protection`].
pub(crate) fn protection_reason(parent_parts: &[String], path: &str) -> Option<&'static str> {
    path_protection(parent_parts, path).map(|protection| protection.reason)
}

/// Returns the protection of a path, if it is protected. The path is resolved, relative to the
/// workspace or absolute, with `/` as separator. `parent_parts` are the components above the
/// workspace. They can complete a match, but a match within them alone does not count: a user who
/// works in such a folder intends to change it.
pub(crate) fn path_protection(parent_parts: &[String], path: &str) -> Option<PathProtection> {
    let path = fold_path(path);
    let path_parts = path
        .split(['/', '\\'])
        .map(|part| part.trim_end_matches(['.', ' ']))
        .filter(|part| !part.is_empty());
    let parts: Vec<&str> = parent_parts.iter().map(String::as_str).chain(path_parts).collect();
    let matches_pattern = |pattern: &str| {
        let start = parent_parts.len().saturating_sub(pattern.matches('/').count());
        (start..parts.len()).any(|index| parts_start_with(parts.iter().skip(index), pattern))
    };
    let mut rules = PROTECTED_RULES
        .iter()
        .filter(|rule| rule.patterns.iter().any(|pattern| matches_pattern(pattern)));
    let reason = rules.clone().next()?.reason;
    // A path such as `.vscode/.git/config` matches several rules.
    Some(PathProtection { reason, is_project_setting: rules.all(|rule| rule.is_project_setting) })
}

/// Returns the reason that no tool may change this path of a workspace, if it is protected. Fast
/// enough for every file that a command creates: most names share no component with a pattern and
/// are dismissed by that.
pub fn workspace_protection_reason(path: &str) -> Option<&'static str> {
    let is_plain =
        path.bytes().all(|byte| matches!(byte, b' '..=b'}') && !matches!(byte, b':' | b'\\'));
    match is_plain && !path.split(['/', '\\']).any(could_start_pattern) {
        true => None,
        false => protection_reason(&[], path),
    }
}

/// Returns false if no pattern can begin with this component, which must be ASCII and not a short
/// name.
fn could_start_pattern(part: &str) -> bool {
    static EXACT_FIRST_PARTS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| first_parts().filter(|first| !first.contains('*')).collect());
    static WILDCARD_FIRST_PARTS: LazyLock<Vec<(&str, &str)>> =
        LazyLock::new(|| first_parts().filter_map(|first| first.split_once('*')).collect());
    let part = part.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    let could_match = |(head, tail): &(&str, &str)| match head.is_empty() {
        true => tail.split('*').any(|tail| part.ends_with(tail)),
        false => part.starts_with(head),
    };
    EXACT_FIRST_PARTS.contains(part.as_str()) || WILDCARD_FIRST_PARTS.iter().any(could_match)
}

/// Returns the first component of every pattern.
fn first_parts() -> impl Iterator<Item = &'static str> {
    let patterns = PROTECTED_RULES.iter().flat_map(|rule| rule.patterns);
    patterns.filter_map(|pattern| pattern.split('/').next())
}

/// Returns true if the path components begin with those of the pattern.
fn parts_start_with<'a>(mut parts: impl Iterator<Item = &'a &'a str>, pattern: &str) -> bool {
    pattern
        .split('/')
        .all(|pattern_part| parts.next().is_some_and(|part| part_matches(part, pattern_part)))
}

/// Returns true if a folded component matches one pattern component: literally, with an NTFS stream
/// suffix, or as an 8.3 short name.
fn part_matches(part: &str, pattern_part: &str) -> bool {
    let without_stream = part.split(':').next().unwrap_or(part).trim_end_matches(['.', ' ']);
    [part, without_stream]
        .iter()
        .any(|part| matches_wildcard(part, pattern_part) || is_short_name_of(part, pattern_part))
}

fn matches_wildcard(text: &str, pattern: &str) -> bool {
    match pattern.contains('*') {
        true => WildMatch::new(pattern).matches(text),
        false => text == pattern,
    }
}

/// Returns true if `short` could be the 8.3 short name that Windows gives a file: `GIT~1` for
/// `.git`, `GITMOD~1` or `GI7EBA~1` for `.gitmodules`, `MCP~1.JSO` for `.mcp.json`.
fn is_short_name_of(short: &str, long: &str) -> bool {
    let Some((stem, rest)) = short.split_once('~') else { return false };
    let (number, extension) = rest.split_once('.').unwrap_or((rest, ""));
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let long = long.trim_start_matches('.');
    let (name, long_extension) = long.rsplit_once('.').unwrap_or((long, ""));
    let long_extension: String = long_extension.chars().take(3).collect();
    // A pattern that ends in `*` does not determine the extension.
    if extension != long_extension && !long.ends_with('*') {
        return false;
    }
    let name: String = name.chars().filter(|c| !matches!(c, '.' | ' ')).collect();
    let (base, has_wildcard) =
        name.split_once('*').map_or((name.as_str(), false), |(base, _)| (base, true));
    let length = stem.chars().count();
    let is_full_length = length + 1 + number.len() == 8;
    let prefix: String = base.chars().take(length).collect();
    let is_truncated = stem.starts_with(&prefix)
        && (has_wildcard || prefix == stem && (is_full_length || prefix == base));
    // After several files with the same prefix, Windows uses two letters and four hash digits.
    let first_two: String = base.chars().take(2).collect();
    let is_hashed = stem.strip_prefix(&first_two).is_some_and(|digits| {
        digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    is_truncated || is_hashed
}

/// Normalizes a text the way the most permissive file system compares names: without invisible
/// characters, and without differences in case, width or composition of accents.
pub(crate) fn fold_name(text: &str) -> String {
    let visible: String = text.chars().filter(|c| !is_ignorable_char(*c)).collect();
    // NFKC comes first, because some characters have a case only in their compatible form. Upper
    // then lower case, because some letters are equal only in upper case.
    let folded = visible.nfkc().collect::<String>().to_uppercase().to_lowercase();
    folded.nfkc().filter(|c| !is_ignorable_char(*c)).collect()
}

/// Normalizes a path like `fold_name`, after replacing its escapes by what they stand for.
pub(crate) fn fold_path(path: &str) -> String {
    fold_name(&unescape_path(path).to_string_lossy())
}

/// Returns true for characters that HFS+ ignores in comparisons, or that are invisible.
fn is_ignorable_char(character: char) -> bool {
    is_hidden_or_bidi(character)
        || character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests;
