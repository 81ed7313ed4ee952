//! How the screen looks: what the config says of it, and what the terminal can.

use crate::args;
use windlass_project::ScreenSettings;
use windlass_protocol::SessionId;
use windlass_tui::Options;
use windlass_tui::cx::Look;
use windlass_tui::keys::Keys;
use windlass_tui::theme::{Facts, Theme};

/// What is known of the terminal by its environment.
pub(crate) fn facts(env: impl Fn(&str) -> Option<String>) -> Facts {
    Facts {
        no_color: env("NO_COLOR"),
        colorterm: env("COLORTERM"),
        term: env("TERM"),
        colorfgbg: env("COLORFGBG"),
    }
}

/// True if the terminal takes more than ASCII, going by the usual variables.
pub(crate) fn takes_unicode(env: impl Fn(&str) -> Option<String>) -> bool {
    let set = |name: &&str| env(name).filter(|value| !value.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(set);
    // Where nobody says anything it is a container more often than an old terminal.
    locale.is_none_or(|locale| {
        let locale = locale.to_lowercase();
        locale.contains("utf-8") || locale.contains("utf8") || locale == "c" || locale == "posix"
    })
}

/// How the screen begins, and whether it is one of plain lines.
pub(super) fn options(
    said: &ScreenSettings,
    args: &args::Screen,
    session: Option<SessionId>,
    env: impl Fn(&str) -> Option<String>,
) -> (Options, bool) {
    let (look, notes) = look(said, &env);
    let dumb = env("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    let linear = args.linear || said.linear.unwrap_or(dumb);
    let prompt = args.prompt.clone();
    (Options { look, session, prompt, notes }, linear)
}

fn look(said: &ScreenSettings, env: &impl Fn(&str) -> Option<String>) -> (Look, Vec<String>) {
    let mut notes = Vec::new();
    let mut theme = Theme::detect(&facts(env));
    if let Some(name) = &said.theme {
        match Theme::find(name, theme.ground, theme.depth) {
            Some(found) => theme = found,
            None => notes.push(format!(
                "there is no theme `{name}` (tui.theme). There is: {}",
                Theme::names().join(", ")
            )),
        }
    }
    let (theme, wrong) = theme.with(&said.colors);
    notes.extend(wrong.into_iter().map(|wrong| format!("{wrong} (tui.colors)")));
    let (keys, wrong) = Keys::new(said.keys.clone());
    notes.extend(wrong.into_iter().map(|wrong| format!("{wrong} (tui.keys)")));
    let ascii = said.ascii.unwrap_or_else(|| !takes_unicode(env));
    (Look { theme, keys, ascii }, notes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use windlass_tui::theme::Depth;

    fn begun(said: &ScreenSettings, variables: &[(&str, &str)]) -> (Options, bool) {
        let args = crate::args::Args::parse_from(["windlass"]).screen;
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
        options(said, &args, None, |name| find(name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_terminal_decides_where_nobody_else_does() {
        let said = ScreenSettings::default();
        let (options, linear) =
            begun(&said, &[("TERM", "xterm-256color"), ("LANG", "de_DE.UTF-8")]);
        assert_eq!(
            (options.look.theme.depth, options.look.ascii, linear),
            (Depth::Many, false, false)
        );
        let (options, linear) = begun(&said, &[("TERM", "dumb"), ("LANG", "de_DE.ISO-8859-1")]);
        assert_eq!(
            (options.look.theme.depth, options.look.ascii, linear),
            (Depth::None, true, true)
        );
        let (options, _) = begun(&said, &[("TERM", "xterm"), ("NO_COLOR", "1")]);
        assert_eq!(options.look.theme.depth, Depth::None);
    }

    #[test]
    fn what_a_person_says_counts_and_what_cannot_be_is_told() {
        let pair = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
        let said = ScreenSettings {
            theme: Some("no-such".into()),
            colors: pair("accnt", "red"),
            keys: Default::default(),
            linear: Some(true),
            ascii: Some(true),
        };
        let (options, linear) = begun(&said, &[("TERM", "xterm")]);
        assert!(options.look.ascii && linear);
        assert!(options.notes.iter().any(|note| note.contains("no-such")), "{:?}", options.notes);
        assert!(options.notes.iter().any(|note| note.contains("accnt")), "{:?}", options.notes);
        let named = ScreenSettings { theme: Some(Theme::names()[1].into()), ..Default::default() };
        assert_eq!(begun(&named, &[]).0.look.theme.name, Theme::names()[1]);
    }
}
