//! The features of a terminal that the UI uses, from its environment variables and the user's
//! settings. Pure: the caller reads both.

use crate::theme::TerminalEnvVars;

/// The way in which the user is notified while the terminal is not focused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NotificationMethod {
    /// No notification, no title and no progress.
    #[default]
    Off,
    /// The terminal bell.
    Bell,
    /// The sequence of iTerm2, WezTerm and Ghostty.
    Osc9,
    /// The sequence of kitty.
    Osc99,
    /// The sequence of foot and urxvt.
    Osc777,
}

/// The features that the UI switches on. By default none; see [`TerminalFeatures::detect`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TerminalFeatures {
    /// Reports of clicks and of the wheel.
    pub mouse: bool,
    /// Reports of focus, and of keys such as Shift+Enter by the kitty protocol.
    pub reports: bool,
    /// Reports of keys such as Shift+Enter by `modifyOtherKeys`.
    pub modify_other_keys: bool,
    pub notification: NotificationMethod,
    /// The progress state of the tab or the task bar (OSC 9;4).
    pub progress: bool,
}

impl TerminalFeatures {
    /// Returns the features of a terminal. `notification` is the user's choice, if any.
    pub fn detect(
        info: &TerminalEnvVars,
        mouse: bool,
        notification: Option<NotificationMethod>,
    ) -> TerminalFeatures {
        let term = info.term.as_deref().unwrap_or_default();
        let program = info.term_program.as_deref().unwrap_or_default();
        // The Linux console takes some of these sequences for others.
        let has_reports = cfg!(unix) && !matches!(term, "" | "dumb" | "linux");
        let is_multiplexed = info.in_tmux || term.starts_with("screen");
        let detected = match program {
            // A multiplexer passes on the bell, but no other notification.
            _ if is_multiplexed => NotificationMethod::Bell,
            "iTerm.app" | "WezTerm" | "ghostty" => NotificationMethod::Osc9,
            _ if term.contains("kitty") => NotificationMethod::Osc99,
            _ if term.starts_with("foot") || term.starts_with("rxvt") => NotificationMethod::Osc777,
            _ => NotificationMethod::Bell,
        };
        let notification = notification.unwrap_or(detected);
        TerminalFeatures {
            mouse: mouse && has_reports,
            reports: has_reports,
            // Terminal.app takes the sequence for an underline.
            modify_other_keys: has_reports && program != "Apple_Terminal",
            notification,
            // Other terminals show the sequence as a notification.
            progress: notification != NotificationMethod::Off
                && !is_multiplexed
                && (program == "ghostty" || info.in_windows_terminal),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn features(term: &str, program: &str, in_tmux: bool) -> TerminalFeatures {
        let info = TerminalEnvVars {
            term: Some(term.to_owned()),
            term_program: Some(program.to_owned()),
            in_tmux,
            ..TerminalEnvVars::default()
        };
        TerminalFeatures::detect(&info, true, None)
    }

    #[test]
    fn each_terminal_gets_the_notification_it_knows() {
        let method =
            |term: &str, program: &str, in_tmux| features(term, program, in_tmux).notification;
        assert_eq!(method("xterm-kitty", "", false), NotificationMethod::Osc99);
        assert_eq!(method("xterm-256color", "iTerm.app", false), NotificationMethod::Osc9);
        assert_eq!(method("xterm-ghostty", "ghostty", false), NotificationMethod::Osc9);
        assert_eq!(method("foot", "", false), NotificationMethod::Osc777);
        assert_eq!(method("xterm-256color", "", false), NotificationMethod::Bell);
        assert_eq!(method("tmux-256color", "tmux", true), NotificationMethod::Bell);
        assert!(features("xterm-ghostty", "ghostty", false).progress);
        assert!(!features("xterm-ghostty", "ghostty", true).progress);
        assert!(!features("xterm-256color", "iTerm.app", false).progress);
    }

    #[test]
    fn terminals_that_misread_a_sequence_do_not_get_it() {
        assert!(features("xterm-256color", "", false).modify_other_keys);
        assert!(!features("xterm-256color", "Apple_Terminal", false).modify_other_keys);
        assert!(features("xterm-256color", "Apple_Terminal", false).mouse);
        for term in ["linux", "dumb", ""] {
            let features = features(term, "", false);
            assert!(!features.mouse && !features.reports && !features.modify_other_keys, "{term}");
        }
    }

    #[test]
    fn the_user_can_opt_out() {
        let info = TerminalEnvVars {
            term: Some("xterm-ghostty".to_owned()),
            term_program: Some("ghostty".to_owned()),
            ..TerminalEnvVars::default()
        };
        let features = TerminalFeatures::detect(&info, false, Some(NotificationMethod::Off));
        assert!(!features.mouse && !features.progress);
        assert_eq!(features.notification, NotificationMethod::Off);
    }
}
