//! Paths that no tool changes, because something else runs or believes what they say.
//!
//! A file such as `.git/hooks/pre-commit` is run later by another program, with all the rights of
//! the person and without a question. So it is protected by its name: also where it does not exist
//! yet, at any depth, and in every spelling that some file system takes for the same name. The
//! price is that a repository of dotfiles is protected too; a person opens a file of it by naming
//! it in their own rules.
//!
//! Left open on purpose: `.gitattributes`, because a filter it names runs only if a git config
//! defines it, and those are protected; build files and CI workflows, because changing them is the
//! work itself and people look before they run them; `AGENTS.md` and its kin, which advise a model
//! but run nothing. Protected on purpose: `.husky` and the like, though people do edit them. They
//! are what `.git/hooks` is, under a name that git was told of.
//!
//! It is pure. Start reading at [`RULES`].

use std::collections::HashSet;
use std::path::{Component, Path};
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;
use wildmatch::WildMatch;
use windlass_protocol::text::hides;

/// Names with one reason, and examples of what they mean and what they do not.
struct Rule {
    why: &'static str,
    /// Consecutive parts of a path, wherever they stand in it; `*` is anything within a part.
    /// Everything beneath is meant, too.
    patterns: &'static [&'static str],
    #[cfg_attr(not(test), allow(dead_code, reason = "a test reads them"))]
    matches: &'static [&'static str],
    #[cfg_attr(not(test), allow(dead_code, reason = "a test reads them"))]
    passes: &'static [&'static str],
}

/// Everything that is protected. In lower case, as paths are compared.
#[rustfmt::skip]
const RULES: &[Rule] = &[
    Rule {
        why: "git runs or believes what it says",
        patterns: &[
            ".git", "*.git/hooks", "*.git/config", ".gitmodules", ".gitconfig", ".config/git",
            ".git-credentials",
        ],
        matches: &[
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
        passes: &[
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
    Rule {
        why: "git runs it at the next commit",
        patterns: &[
            ".githooks", ".git-hooks", ".husky", ".huskyrc*", "lefthook.yml", "lefthook.yaml",
            "lefthook.toml", "lefthook.json*", "lefthook-local.yml", "lefthook-local.yaml",
            "lefthook-local.toml", "lefthook-local.json*", ".lefthook", ".lefthook.*",
            ".lefthook-local", ".lefthook-local.*", ".pre-commit-config.yaml", ".overcommit.yml",
            ".local-overcommit.yml", ".simple-git-hooks.*", "simple-git-hooks.*js*",
        ],
        matches: &[
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
        passes: &[
            "husky/pre-commit",
            "githooks.md",
            "src/lefthook.rs",
            "lefthook.md",
            "lefthook-local.md",
            "docs/overcommit.yml",
            "simple-git-hooks.md",
        ],
    },
    Rule {
        why: "Windlass obeys it",
        patterns: &[
            "windlass.jsonc", ".windlass", ".config/windlass", ".local/share/windlass",
            "appdata/roaming/windlass",
        ],
        matches: &[
            "windlass.jsonc",
            ".windlass/windlass.jsonc",
            "packages/a/.windlass",
            ".local/share/windlass/trust.json",
            "AppData/Roaming/windlass/windlass.jsonc",
        ],
        passes: &["windlass.json", "src/windlass/mod.rs", ".windlass-1-2.draft", "AGENTS.md"],
    },
    Rule {
        why: "another agent runs or obeys it",
        patterns: &[
            ".agent", ".claude", ".claude.json", ".mcp.json", ".codex", ".config/codex", ".opencode",
            "opencode.json", "opencode.jsonc", ".config/opencode", ".cursor", ".gemini", ".goose*",
            ".config/goose", ".aider*.yml", ".aider*.yaml", ".cline", ".clinerules*", ".roo",
            ".roomodes", ".roorules*", ".kiro", ".windsurf*", ".continue", ".continuerc.json",
            ".junie", ".kilocode*", ".qwen", ".trae", ".amazonq", ".augment", ".factory", ".crush*",
            "crush.json", ".config/crush", ".github/hooks", ".github/copilot",
        ],
        matches: &[
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
        passes: &[
            "AGENTS.md",
            "CLAUDE.md",
            "mcp.json",
            "src/codex/mod.rs",
            ".root",
            ".github/copilot-instructions.md",
            ".aiderignore",
        ],
    },
    Rule {
        why: "an editor runs or obeys it",
        patterns: &[
            ".vscode", ".vscode-server", "*.code-workspace", ".config/code",
            "application support/code", "appdata/roaming/code", ".idea", ".zed", ".config/zed",
            ".fleet", ".vs", ".helix", ".config/helix", "*.sublime-project", ".devcontainer",
            ".devcontainer.json", ".nvim.lua", ".nvimrc", ".exrc", ".vimrc", ".gvimrc", ".lvimrc",
            ".vim", ".config/nvim", ".config/vim", ".dir-locals*.el", ".emacs", ".emacs.d",
            ".config/emacs", ".gdbinit", ".lldbinit",
        ],
        matches: &[
            ".vscode/settings.json",
            ".vscode",
            "web/.vscode/tasks.json",
            "my app.code-workspace",
            "a:b.code-workspace",
            ".devcontainer/devcontainer.json",
            ".dir-locals.el",
        ],
        passes: &[".editorconfig", "vscode/extension.ts", ".vscodeignore", "src/idea.rs", "exrc"],
    },
    Rule {
        why: "a shell or a program runs it when somebody enters the folder or starts it there",
        patterns: &[
            ".envrc", ".direnvrc", ".config/direnv", ".mise.toml", ".mise.*.toml", "mise.toml",
            "mise.*.toml", ".mise",
            ".config/mise", ".rprofile", ".irbrc", ".pryrc", ".pythonrc*", ".sqliterc", ".psqlrc",
        ],
        matches: &[".envrc", "deep/down/.envrc", ".mise.toml", "mise.local.toml", ".Rprofile"],
        passes: &["envrc", ".env", ".env.example", ".tool-versions", "promise.toml", "misery.toml"],
    },
    Rule {
        why: "a package manager runs it, or sends keys and asks for packages where it says",
        patterns: &[
            ".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases", ".yarn/plugins", ".pnpmfile.*js",
            ".pypirc", ".pip", ".config/pip", ".condarc", ".cargo/config", ".cargo/config.toml",
            ".cargo/credentials*", ".cargo/env*", ".cargo/bin", ".gem/credentials",
            ".bundle/config", ".m2/settings*.xml", ".gradle/init*", ".gradle/gradle.properties",
            ".nuget/nuget", ".composer/auth.json",
        ],
        matches: &[
            ".npmrc",
            "web/.yarnrc.yml",
            ".yarn/releases/yarn-4.cjs",
            ".pnpmfile.cjs",
            ".pypirc",
            ".cargo/config.toml",
        ],
        passes: &[
            "package.json",
            "Cargo.toml",
            "pyproject.toml",
            ".yarn/versions/a.yml",
            "gradle.properties",
            "pnpm-workspace.yaml",
        ],
    },
    Rule {
        why: "a shell runs it when it starts or ends",
        patterns: &[
            ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
            ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc",
            ".tcshrc", ".login", ".logout", ".config/fish", ".config/nushell", ".inputrc",
            ".config/powershell", "documents/powershell", "documents/windowspowershell",
            "profile.ps1", "*_profile.ps1", ".tmux.conf", ".config/tmux", ".screenrc",
        ],
        matches: &[
            ".bashrc",
            "dotfiles/.zshrc",
            "~/.profile",
            ".config/fish/conf.d/a.fish",
            "Documents/PowerShell/Microsoft.PowerShell_profile.ps1",
        ],
        passes: &["bashrc", ".config/app.toml", "scripts/build.ps1", "profile.rs", ".zsh_history"],
    },
    Rule {
        why: "it holds keys, or says whom to trust with them",
        patterns: &[
            ".ssh", ".gnupg", ".aws", ".kube/config", ".docker/config.json", ".config/gcloud",
            ".config/gh", ".config/hub", ".netrc", "_netrc", ".pgpass", ".password-store",
            ".vault-token", ".local/share/keyrings",
        ],
        matches: &[".ssh/authorized_keys", ".aws/credentials", ".netrc", "home/.gnupg/gpg.conf"],
        passes: &["ssh/config", "docs/aws.md", ".docker/Dockerfile", ".kube/dashboard.yml"],
    },
    Rule {
        why: "the system starts what it names",
        patterns: &[
            ".config/autostart", ".config/systemd", ".config/environment.d",
            ".local/share/systemd", ".local/share/applications", ".local/bin", ".xprofile",
            ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment", "library/launchagents",
            "library/launchdaemons", "start menu/programs/startup",
        ],
        matches: &[
            ".config/systemd/user/a.service",
            ".config/autostart/a.desktop",
            "Library/LaunchAgents/a.plist",
            "AppData/Roaming/Microsoft/Windows/Start Menu/Programs/Startup/a.lnk",
        ],
        passes: &["systemd/a.service", "library/agents.py", "src/programs/startup/mod.rs"],
    },
];

/// How many parts of a pattern may stand before a path: one less than the longest has.
const ABOVE: usize = 2;

/// The last parts of the folder that paths are relative to, folded: what stands in `.config` is
/// protected by that name too.
pub(crate) fn above(root: &Path) -> Vec<String> {
    let names = root.components().filter_map(|part| match part {
        Component::Normal(name) => Some(fold(&name.to_string_lossy())),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            None
        }
    });
    let mut names: Vec<String> = names.collect();
    names.split_off(names.len().saturating_sub(ABOVE))
}

/// Why no tool may change this, if so. The path is relative to the workspace, or absolute; it is
/// resolved, with `/` between its parts. The parts above it help to know a name, but a name that
/// they hold alone says nothing: whoever works in such a folder means it.
pub(crate) fn protected(above: &[String], path: &str) -> Option<&'static str> {
    let path = fold(path);
    let own = path
        .split(['/', '\\'])
        .map(|part| part.trim_end_matches(['.', ' ']))
        .filter(|part| !part.is_empty());
    let parts: Vec<&str> = above.iter().map(String::as_str).chain(own).collect();
    let stands = |pattern: &str| {
        let first = above.len().saturating_sub(pattern.matches('/').count());
        (first..parts.len()).any(|at| begins(parts.iter().skip(at), pattern))
    };
    let rule = RULES.iter().find(|rule| rule.patterns.iter().any(|pattern| stands(pattern)))?;
    Some(rule.why)
}

/// Why no tool may change this path of a workspace, if so; for those who ask about every name that
/// a command makes. Most names share nothing with a protected one, and are known by that.
pub fn closed(path: &str) -> Option<&'static str> {
    let plain = path.bytes().all(|byte| matches!(byte, b' '..=b'}') && byte != b':');
    match plain && !path.split(['/', '\\']).any(could_begin) {
        true => None,
        false => protected(&[], path),
    }
}

/// False if no pattern can begin with this part, which is ASCII and no short name.
fn could_begin(part: &str) -> bool {
    static EXACT: LazyLock<HashSet<&str>> =
        LazyLock::new(|| firsts().filter(|first| !first.contains('*')).collect());
    static OPEN: LazyLock<Vec<(&str, &str)>> =
        LazyLock::new(|| firsts().filter_map(|first| first.split_once('*')).collect());
    let part = part.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    let open = |(head, tail): &(&str, &str)| match head.is_empty() {
        true => tail.split('*').any(|tail| part.ends_with(tail)),
        false => part.starts_with(head),
    };
    EXACT.contains(part.as_str()) || OPEN.iter().any(open)
}

/// The first part of every pattern.
fn firsts() -> impl Iterator<Item = &'static str> {
    let patterns = RULES.iter().flat_map(|rule| rule.patterns);
    patterns.filter_map(|pattern| pattern.split('/').next())
}

/// True if the parts begin with those of the pattern.
fn begins<'a>(mut parts: impl Iterator<Item = &'a &'a str>, pattern: &str) -> bool {
    pattern.split('/').all(|wanted| parts.next().is_some_and(|part| is(part, wanted)))
}

/// True if a part, folded, is what the pattern names: as it stands, with a stream of NTFS behind
/// it, or by its short name.
fn is(part: &str, wanted: &str) -> bool {
    let without_stream = part.split(':').next().unwrap_or(part).trim_end_matches(['.', ' ']);
    [part, without_stream].iter().any(|part| matches(part, wanted) || abbreviates(part, wanted))
}

fn matches(text: &str, pattern: &str) -> bool {
    match pattern.contains('*') {
        true => WildMatch::new(pattern).matches(text),
        false => text == pattern,
    }
}

/// True if this could be what Windows calls the file where names have eight letters and three:
/// `GIT~1` for `.git`, `GITMOD~1` or `GI7EBA~1` for `.gitmodules`, `MCP~1.JSO` for `.mcp.json`.
fn abbreviates(short: &str, long: &str) -> bool {
    let Some((stem, rest)) = short.split_once('~') else { return false };
    let (number, ending) = rest.split_once('.').unwrap_or((rest, ""));
    if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let long = long.trim_start_matches('.');
    let (name, long_ending) = long.rsplit_once('.').unwrap_or((long, ""));
    let long_ending: String = long_ending.chars().take(3).collect();
    // A pattern that is open at its end says nothing about the ending.
    if ending != long_ending && !long.ends_with('*') {
        return false;
    }
    let name: String = name.chars().filter(|c| !matches!(c, '.' | ' ')).collect();
    let (kept, open) =
        name.split_once('*').map_or((name.as_str(), false), |(kept, _)| (kept, true));
    let length = stem.chars().count();
    let full = length + 1 + number.len() == 8;
    let cut: String = kept.chars().take(length).collect();
    let plain = stem.starts_with(&cut) && (open || cut == stem && (full || cut == kept));
    // After a few files of the same beginning it is two letters and four digits of a hash.
    let two: String = kept.chars().take(2).collect();
    let hashed = stem.strip_prefix(&two).is_some_and(|digits| {
        digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    plain || hashed
}

/// A text as the laxest file system compares it: without what cannot be seen, without difference
/// of case, of width or of how accents are put together.
pub(crate) fn fold(text: &str) -> String {
    let seen: String = text.chars().filter(|c| !ignored(*c)).collect();
    // Compatible forms first: some of them have a case only then. Up and down again, because some
    // letters meet only in upper case.
    let folded = seen.nfkc().collect::<String>().to_uppercase().to_lowercase();
    folded.nfkc().filter(|c| !ignored(*c)).collect()
}

/// Characters that HFS+ does not compare, or that show nothing at all.
fn ignored(character: char) -> bool {
    hides(character)
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
