//! Appearance of the terminal UI, from the config and the capabilities of the terminal.

use crate::terminal::environment::{supports_unicode, terminal_info};
use windlass_project::{NotificationMode, SidePanelMode, StatusLineContent, TuiSettings};
use windlass_protocol::SessionId;
use windlass_tui::TuiOptions;
use windlass_tui::keys::KeyMap;
use windlass_tui::layout_settings::{LayoutSettings, SidePanelSetting, StatusLineSetting};
use windlass_tui::terminal::{NotificationMethod, TerminalFeatures};
use windlass_tui::theme::Theme;
use windlass_tui::ui_context::Appearance;

/// The first state of the screen.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScreenStart {
    /// The session to open.
    pub(crate) session: Option<SessionId>,
    /// The prompt to send.
    pub(crate) prompt: Option<String>,
    /// True for plain lines instead of a screen.
    pub(crate) linear: bool,
}

/// Returns the [`TuiOptions`], and true if the UI should run in linear mode.
pub(super) fn screen_options(
    settings: &TuiSettings,
    start: ScreenStart,
    env: impl Fn(&str) -> Option<String>,
) -> (TuiOptions, bool) {
    let (appearance, notes) = build_appearance(settings, &env);
    let is_dumb = env("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let linear = start.linear || settings.linear.unwrap_or(is_dumb);
    let ScreenStart { session, prompt, .. } = start;
    let notification = match settings.notifications {
        None | Some(NotificationMode::Auto) => None,
        Some(NotificationMode::Bell) => Some(NotificationMethod::Bell),
        Some(NotificationMode::Off) => Some(NotificationMethod::Off),
    };
    let mouse = settings.mouse.unwrap_or(true);
    let features = TerminalFeatures::detect(&terminal_info(&env), mouse, notification);
    (TuiOptions { appearance, session, prompt, notes, features }, linear)
}

/// Returns the layout, and a message for each name that cannot be used.
fn build_layout(settings: &TuiSettings) -> (LayoutSettings, Vec<String>) {
    let side_panel = match settings.side_panel {
        None | Some(SidePanelMode::Auto) => SidePanelSetting::Auto,
        Some(SidePanelMode::On) => SidePanelSetting::On,
        Some(SidePanelMode::Off) => SidePanelSetting::Off,
    };
    let (status_line, errors) = match &settings.status_line {
        None => (StatusLineSetting::Automatic, Vec::new()),
        Some(StatusLineContent::Items(names)) => StatusLineSetting::from_names(names),
        Some(StatusLineContent::Command(_)) => (StatusLineSetting::Command, Vec::new()),
    };
    (LayoutSettings { side_panel, status_line, vim: settings.vim.unwrap_or(false) }, errors)
}

fn build_appearance(
    settings: &TuiSettings,
    env: &impl Fn(&str) -> Option<String>,
) -> (Appearance, Vec<String>) {
    let mut notes = Vec::new();
    let mut theme = Theme::detect(&terminal_info(env));
    if let Some(name) = &settings.theme {
        match Theme::find(name, theme.background, theme.color_depth) {
            Some(found) => theme = found,
            None => notes.push(format!(
                "unknown theme `{name}` (tui.theme); available: {}",
                Theme::names().join(", ")
            )),
        }
    }
    let (theme, errors) = theme.with_overrides(&settings.colors);
    notes.extend(errors.into_iter().map(|error| format!("{error} (tui.colors)")));
    let (key_map, errors) = KeyMap::new(settings.keys.clone());
    notes.extend(errors.into_iter().map(|error| format!("{error} (tui.keys)")));
    let ascii = settings.ascii.unwrap_or_else(|| !supports_unicode(env));
    let (layout, errors) = build_layout(settings);
    notes.extend(errors.into_iter().map(|error| format!("{error} (tui.status_line)")));
    (Appearance { theme, key_map, ascii, layout }, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_tui::theme::ColorDepth;

    fn options_for(settings: &TuiSettings, variables: &[(&str, &str)]) -> (TuiOptions, bool) {
        let find = |name: &str| variables.iter().find(|(variable, _)| *variable == name);
        screen_options(settings, ScreenStart::default(), |name| {
            find(name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_terminal_decides_unless_configured() {
        let settings = TuiSettings::default();
        let (options, linear) =
            options_for(&settings, &[("TERM", "xterm-256color"), ("LANG", "de_DE.UTF-8")]);
        assert_eq!(
            (options.appearance.theme.color_depth, options.appearance.ascii, linear),
            (ColorDepth::Ansi256, false, false)
        );
        let (options, linear) =
            options_for(&settings, &[("TERM", "dumb"), ("LANG", "de_DE.ISO-8859-1")]);
        assert_eq!(
            (options.appearance.theme.color_depth, options.appearance.ascii, linear),
            (ColorDepth::Monochrome, true, true)
        );
        let (options, _) = options_for(&settings, &[("TERM", "xterm"), ("NO_COLOR", "1")]);
        assert_eq!(options.appearance.theme.color_depth, ColorDepth::Monochrome);
    }

    #[test]
    fn settings_override_the_terminal_and_invalid_ones_are_noted() {
        let pair = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
        let settings = TuiSettings {
            theme: Some("no-such".into()),
            colors: pair("accnt", "red"),
            keys: Default::default(),
            linear: Some(true),
            ascii: Some(true),
            favorite_models: Vec::new(),
            status_line: Some(StatusLineContent::Items(vec!["mod".into()])),
            mouse: Some(false),
            ..TuiSettings::default()
        };
        let (options, linear) = options_for(&settings, &[("TERM", "xterm")]);
        assert!(options.appearance.ascii && linear);
        assert!(options.notes.iter().any(|note| note.contains("no-such")), "{:?}", options.notes);
        assert!(options.notes.iter().any(|note| note.contains("accnt")), "{:?}", options.notes);
        assert!(options.notes.iter().any(|note| note.contains("\"mod\"")), "{:?}", options.notes);
        assert!(!options.features.mouse);
        let named_theme =
            TuiSettings { theme: Some(Theme::names()[1].into()), ..Default::default() };
        assert_eq!(options_for(&named_theme, &[]).0.appearance.theme.name, Theme::names()[1]);
    }
}
