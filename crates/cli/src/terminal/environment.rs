//! The environment variables that describe the terminal.

use windlass_tui::theme::TerminalEnvVars;

/// Collects the environment variables that describe the terminal.
pub(crate) fn terminal_info(env: impl Fn(&str) -> Option<String>) -> TerminalEnvVars {
    TerminalEnvVars {
        no_color: env("NO_COLOR"),
        colorterm: env("COLORTERM"),
        term: env("TERM"),
        colorfgbg: env("COLORFGBG"),
        term_program: env("TERM_PROGRAM"),
        in_tmux: env("TMUX").is_some_and(|value| !value.is_empty()),
        in_windows_terminal: env("WT_SESSION").is_some_and(|value| !value.is_empty()),
    }
}

/// Returns true if the locale (`LC_ALL`, `LC_CTYPE`, `LANG`) allows more than ASCII.
pub(crate) fn supports_unicode(env: impl Fn(&str) -> Option<String>) -> bool {
    let non_empty = |name: &&str| env(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(non_empty);
    // Without locale variables this is more often a container than an old terminal.
    locale.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8") || locale == "c" || locale == "posix"
    })
}
