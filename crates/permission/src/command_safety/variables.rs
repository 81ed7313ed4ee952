//! Evaluates environment variables that a command sets.
//!
//! Most variables are settings of the program that runs, such as `PORT` or `RUSTFLAGS`. Some make
//! the shell, the loader, git or an interpreter run another program than the one that is named, so
//! that no rule about the named program holds.

use super::risk::{Risk, RiskFinding};
use crate::shell::ShellWord;

/// Variables that can make a known program run another one, or read its settings elsewhere.
#[rustfmt::skip]
const DANGEROUS_VARIABLES: &[&str] = &[
    // The shell and the loader.
    "PATH", "ENV", "SHELL", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH", "PS0", "PS1", "PS2", "PS3",
    "PS4", "PROMPT_COMMAND", "GLOBIGNORE", "EXECIGNORE", "HISTFILE", "GCONV_PATH", "LOCPATH",
    "NLSPATH", "HOSTALIASES", "RESOLV_HOST_CONF", "TERMINFO", "TERMCAP", "GETCONF_DIR",
    // The home folder and its settings.
    "HOME", "ZDOTDIR", "CARGO_HOME", "RUSTUP_HOME", "GNUPGHOME", "DOCKER_CONFIG", "KUBECONFIG",
    // Editors, pagers and browsers.
    "EDITOR", "VISUAL", "PAGER", "MANPAGER", "SYSTEMD_PAGER", "BROWSER", "LESSOPEN", "LESSCLOSE",
    "LESSKEY", "MANOPT", "FCEDIT", "SUDO_EDITOR", "KUBE_EDITOR", "SUDO_ASKPASS", "SSH_ASKPASS",
    // Interpreters.
    "NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT",
    "PYTHONBREAKPOINT", "PYTHONWARNINGS", "PYTHONUSERBASE", "PERL5OPT", "PERL5DB", "PERL5LIB",
    "PERLLIB", "RUBYOPT", "RUBYLIB", "BUNDLE_GEMFILE", "LUA_INIT", "LUA_PATH", "LUA_CPATH",
    "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_OPTS", "MAVEN_OPTS",
    "GRADLE_OPTS", "CLASSPATH", "GEM_PATH", "GEM_HOME", "R_PROFILE", "R_ENVIRON", "PHPRC",
    "PHP_INI_SCAN_DIR", "AWKPATH", "AWKLIBPATH", "ERL_AFLAGS", "ERL_FLAGS", "ELIXIR_ERL_OPTIONS",
    "DOTNET_STARTUP_HOOKS", "CORECLR_PROFILER_PATH", "TCLLIBPATH",
    // Build tools that run the program in the variable.
    "RUSTC", "RUSTDOC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTUP_TOOLCHAIN",
    "CARGO_BUILD_RUSTC", "CARGO_BUILD_RUSTC_WRAPPER", "GOFLAGS", "GOROOT", "GOTOOLDIR", "GOENV",
    "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER", "GOCACHEPROG", "JAVACMD", "PKG_CONFIG_LOG",
    "DEBUGINFOD_URLS", "MAGIC", "MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "MFLAGS", "CMAKE_TOOLCHAIN_FILE",
    // Copies, archives and searches.
    "TAR_OPTIONS", "RSYNC_RSH", "RSYNC_CONNECT_PROG", "CVS_RSH", "SVN_SSH", "GREP_OPTIONS",
    "RIPGREP_CONFIG_PATH", "FZF_DEFAULT_COMMAND", "FZF_DEFAULT_OPTS", "BAT_PAGER",
    "BAT_CONFIG_PATH", "DELTA_PAGER", "WGETRC", "CURL_HOME", "INPUTRC", "SQLITE_HISTORY",
    // The network.
    "ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY", "SSL_CERT_FILE",
    "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "DOCKER_HOST", "SSLKEYLOGFILE",
    "NODE_TLS_REJECT_UNAUTHORIZED", "NODE_EXTRA_CA_CERTS",
];

/// Beginnings of names of such variables.
const DANGEROUS_PREFIXES: &[&str] = &[
    "LD_",
    "DYLD_",
    "BASH_",
    "GIT_",
    "XDG_",
    "SSH_",
    "NPM_CONFIG_",
    "YARN_",
    "PNPM_",
    "PIP_",
    "UV_",
    "POETRY_",
    "WINDLASS_",
    "SUDO_",
    "MALLOC_",
    "GLIBC_",
    "_RLD",
    "LIBPATH",
    "SHLIB_PATH",
    "CARGO_TARGET_",
    "CARGO_ALIAS_",
    "CARGO_REGISTR",
    "CARGO_SOURCE_",
    "CARGO_UNSTABLE_",
    "CORECLR_",
    "COMPlus_",
];

/// Variables below a dangerous prefix that are ordinary settings.
#[rustfmt::skip]
const HARMLESS_VARIABLES: &[&str] = &[
    "CARGO_TARGET_DIR", "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE", "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS", "GIT_TRACE", "GIT_MERGE_AUTOEDIT", "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_CEILING_DIRECTORIES", "PIP_NO_INPUT", "PIP_DISABLE_PIP_VERSION_CHECK", "PIP_QUIET",
    "PIP_NO_CACHE_DIR", "UV_OFFLINE", "UV_NO_PROGRESS", "NPM_CONFIG_LOGLEVEL", "NPM_CONFIG_FUND",
    "NPM_CONFIG_AUDIT", "YARN_SILENT", "MALLOC_ARENA_MAX", "MALLOC_PERTURB_", "MALLOC_CHECK_",
];

/// Programs that do nothing, as values of variables that name an editor or a pager.
const IDLE_PROGRAMS: &[&str] = &["", "cat", "true", ":"];

/// Options of interpreters that only limit memory, report more or choose a source, as values of
/// variables that contain options.
#[rustfmt::skip]
const HARMLESS_OPTIONS: &[(&str, &[&str])] = &[
    ("NODE_OPTIONS", &[
        "--max-old-space-size=", "--max_old_space_size=", "--experimental-vm-modules",
        "--no-warnings", "--enable-source-maps", "--trace-warnings", "--trace-deprecation",
        "--unhandled-rejections=", "--stack-trace-limit=", "--openssl-legacy-provider",
    ]),
    ("MAVEN_OPTS", &["-Xmx", "-Xms", "-Xss"]),
    ("GRADLE_OPTS", &["-Xmx", "-Xms", "-Xss", "-Dorg.gradle.daemon="]),
    ("JAVA_OPTS", &["-Xmx", "-Xms", "-Xss"]),
    ("JAVA_TOOL_OPTIONS", &["-Xmx", "-Xms", "-Xss"]),
    ("GOFLAGS", &["-mod=mod", "-mod=vendor", "-mod=readonly", "-count=", "-race", "-v", "-tags="]),
    ("MAKEFLAGS", &["-j", "-k", "-s", "--silent", "--no-print-directory"]),
];

/// Builtins that can give a variable another value than an assignment shows.
const ASSIGNING_BUILTINS: &[&str] = &[
    "read",
    "readarray",
    "mapfile",
    "getopts",
    "eval",
    "source",
    ".",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "let",
    "export",
];

/// Returns true if a command can change variables of the shell.
pub(super) fn may_assign(program: &str, arguments: &[ShellWord]) -> bool {
    ASSIGNING_BUILTINS.contains(&program)
        || program == "printf" && arguments.first().is_none_or(|word| word.text().starts_with("-v"))
}

/// Returns true if a builtin may take an unknown word for an option that sets or evaluates a
/// variable, as in `test $o "$x"` and `printf $o PATH x`.
pub(super) fn may_evaluate_variable(program: &str, arguments: &[ShellWord]) -> bool {
    let is_unquoted =
        |word: &ShellWord| matches!(word, ShellWord::Opaque(text) if !text.starts_with('"'));
    matches!(program, "printf" | "test" | "[") && arguments.first().is_some_and(is_unquoted)
}

/// Returns the variable that `printf -v` sets.
pub(super) fn printf_variable<'a>(program: &str, arguments: &'a [ShellWord]) -> Option<&'a str> {
    let first = arguments.first().filter(|_| program == "printf")?.text().strip_prefix("-v")?;
    if first.is_empty() { arguments.get(1).map(ShellWord::text) } else { Some(first) }
}

fn has_harmless_options(name: &str, value: &ShellWord) -> bool {
    let listed = HARMLESS_OPTIONS.iter().find(|(variable, _)| *variable == name);
    let is_harmless =
        |options: &[&str], word: &str| options.iter().any(|option| word.starts_with(option));
    listed.zip(value.as_plain()).is_some_and(|((_, options), value)| {
        value.split_whitespace().all(|word| is_harmless(options, word))
    })
}

/// Evaluates setting a variable.
pub(super) fn evaluate_assignment(name: &str, value: &ShellWord) -> RiskFinding {
    let is_idle = value.as_plain().is_some_and(|value| IDLE_PROGRAMS.contains(&value));
    let names_program =
        ["PAGER", "EDITOR", "VISUAL", "ASKPASS"].iter().any(|end| name.ends_with(end));
    let is_harmless = is_idle && names_program || has_harmless_options(name, value);
    match can_change_what_runs(name) && !is_harmless {
        true => {
            RiskFinding::new(Risk::Unknown, format!("the variable `{name}` can change what runs"))
        }
        false => RiskFinding::new(Risk::ConfinedRead, format!("it sets the variable `{name}`")),
    }
}

/// Returns true for a variable that can make a program run another one.
fn can_change_what_runs(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    // Programs also read these in lower case; all other lower-case names belong to the script.
    let is_read_in_any_case = upper.ends_with("_PROXY") || upper.starts_with("NPM_CONFIG_");
    let name = if is_read_in_any_case { upper.as_str() } else { name };
    let has_prefix = || DANGEROUS_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    !HARMLESS_VARIABLES.contains(&name)
        && (DANGEROUS_VARIABLES.contains(&name) || name.ends_with("_PROXY") || has_prefix())
}
