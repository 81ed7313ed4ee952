//! Tests of themes: contrast, distinguishable styles, overrides and detection.

use super::palette::PackedRgb;
use super::*;

fn rgb(color: Color) -> PackedRgb {
    match color {
        Color::Rgb(red, green, blue) => PackedRgb::from_be_bytes([0, red, green, blue]),
        Color::Indexed(index) => color::rgb_of_index(index),
        other => panic!("{other} is defined by the terminal"),
    }
}

/// Returns the WCAG contrast ratio of two colors.
fn contrast(first: PackedRgb, second: PackedRgb) -> f64 {
    let luminance = |rgb: PackedRgb| {
        let (red, green, blue) = color::unpack_rgb(rgb);
        let linear = |channel: u8| {
            let channel = f64::from(channel) / 255.0;
            if channel <= 0.03928 { channel / 12.92 } else { ((channel + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    };
    let (first, second) = (luminance(first), luminance(second));
    (first.max(second) + 0.05) / (first.min(second) + 0.05)
}

fn all_themes(depth: ColorDepth) -> Vec<Theme> {
    let backgrounds = [TerminalBackground::Dark, TerminalBackground::Light];
    let find =
        |name: &str| backgrounds.map(|background| Theme::find(name, background, depth).unwrap());
    Theme::names().into_iter().flat_map(find).collect()
}

#[test]
fn every_text_is_readable_on_common_backgrounds() {
    for theme in [all_themes(ColorDepth::TrueColor), all_themes(ColorDepth::Ansi256)].concat() {
        for (role, name) in STYLE_ROLES {
            let style = theme.style(role);
            let Some(foreground) = style.fg.filter(|_| role != StyleRole::Border) else { continue };
            let backgrounds = match (style.bg, theme.background) {
                (Some(color), _) => vec![rgb(color)],
                (None, TerminalBackground::Dark) => vec![0x000000, 0x1e1e1e],
                (None, TerminalBackground::Light) => vec![0xffffff],
            };
            for background in backgrounds {
                let contrast = contrast(rgb(foreground), background);
                let (theme, on) = (&theme.name, theme.background);
                assert!(
                    contrast >= 4.5,
                    "{theme} {on:?} {name}: {contrast:.2} on {background:06x}"
                );
            }
        }
    }
}

#[test]
fn colors_stay_colors_with_256() {
    let colored = [StyleRole::Success, StyleRole::Error, StyleRole::Warning];
    for theme in all_themes(ColorDepth::Ansi256).iter().filter(|theme| theme.name != "mono") {
        for role in colored {
            let rgb = rgb(theme.style(role).fg.unwrap());
            let (name, on) = (&theme.name, theme.background);
            assert!(color::chroma(rgb) >= 40, "{name} {on:?} {role:?}: {rgb:06x} is a gray");
        }
        let green = color::unpack_rgb(rgb(theme.style(StyleRole::Success).fg.unwrap()));
        let red = color::unpack_rgb(rgb(theme.style(StyleRole::Error).fg.unwrap()));
        assert!(green.1 >= green.0 && red.0 > red.1, "{}: {green:?} {red:?}", theme.name);
    }
}

#[test]
fn backgrounds_are_distinct() {
    let roles = [
        StyleRole::Added,
        StyleRole::Removed,
        StyleRole::AddedWord,
        StyleRole::RemovedWord,
        StyleRole::Selected,
        StyleRole::User,
    ];
    for depth in [ColorDepth::Ansi256, ColorDepth::TrueColor] {
        for theme in all_themes(depth) {
            // There are too few grays for the last two as well, which are never in a diff.
            let roles = if theme.name == "mono" { &roles[..4] } else { &roles[..] };
            let colors: std::collections::BTreeSet<PackedRgb> =
                roles.iter().filter_map(|role| theme.style(*role).bg).map(rgb).collect();
            assert_eq!(colors.len(), roles.len(), "{} {depth:?}", theme.name);
        }
    }
}

#[test]
fn syntax_colors_are_readable_in_a_diff() {
    let roles = [
        StyleRole::Keyword,
        StyleRole::String,
        StyleRole::Number,
        StyleRole::Comment,
        StyleRole::Function,
        StyleRole::Type,
    ];
    for theme in all_themes(ColorDepth::TrueColor) {
        for (line, role) in [StyleRole::Added, StyleRole::Removed]
            .into_iter()
            .flat_map(|line| roles.map(|role| (line, role)))
        {
            let colors = (theme.style(role).fg.unwrap(), theme.style(line).bg.unwrap());
            let contrast = contrast(rgb(colors.0), rgb(colors.1));
            let (theme, on) = (&theme.name, theme.background);
            assert!(contrast >= 4.0, "{theme} {on:?} {role:?} on {line:?}: {contrast:.2}");
        }
    }
}

#[test]
fn a_prompt_stands_out_from_common_backgrounds() {
    for theme in [all_themes(ColorDepth::TrueColor), all_themes(ColorDepth::Ansi256)].concat() {
        let background = rgb(theme.style(StyleRole::User).bg.unwrap());
        let terminal = match theme.background {
            TerminalBackground::Dark => 0x1e1e1e,
            TerminalBackground::Light => 0xffffff,
        };
        let contrast = contrast(background, terminal);
        assert!((1.05..2.0).contains(&contrast), "{} {contrast:.2}", theme.name);
    }
}

#[test]
fn no_style_uses_more_colors_than_the_terminal_has() {
    for depth in [ColorDepth::Monochrome, ColorDepth::Ansi16, ColorDepth::Ansi256] {
        for theme in all_themes(depth) {
            let overrides = BTreeMap::from([("accent".to_owned(), "#d08770 on 200".to_owned())]);
            let (theme, problems) = theme.with_overrides(&overrides);
            assert_eq!(problems, Vec::<String>::new());
            for (role, name) in STYLE_ROLES {
                let style = theme.style(role);
                for color in [style.fg, style.bg].into_iter().flatten() {
                    let fits = match depth {
                        ColorDepth::Monochrome => false,
                        ColorDepth::Ansi16 => !matches!(color, Color::Rgb(..) | Color::Indexed(_)),
                        ColorDepth::Ansi256 | ColorDepth::TrueColor => {
                            !matches!(color, Color::Rgb(..))
                        }
                    };
                    assert!(fits, "{} {depth:?} {name}: {color}", theme.name);
                }
            }
        }
    }
}

#[test]
fn important_roles_stand_out_without_color() {
    for theme in all_themes(ColorDepth::Monochrome) {
        let plain = theme.style(StyleRole::Text);
        for role in [
            StyleRole::Selected,
            StyleRole::Strong,
            StyleRole::Accent,
            StyleRole::Error,
            StyleRole::AddedWord,
            StyleRole::Link,
        ] {
            assert_ne!(theme.style(role), plain, "{role:?}");
        }
    }
}

#[test]
fn changed_words_stand_out_in_changed_lines() {
    for depth in
        [ColorDepth::Monochrome, ColorDepth::Ansi16, ColorDepth::Ansi256, ColorDepth::TrueColor]
    {
        for theme in all_themes(depth) {
            assert_ne!(theme.style(StyleRole::Added), theme.style(StyleRole::AddedWord));
            assert_ne!(theme.style(StyleRole::Removed), theme.style(StyleRole::RemovedWord));
        }
    }
}

#[test]
fn user_styles_override_a_theme() {
    let overrides = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, style)| ((*name).to_owned(), (*style).to_owned())).collect()
    };
    let base = Theme::find("harbour", TerminalBackground::Dark, ColorDepth::TrueColor).unwrap();
    let valid =
        overrides(&[("accent", "bold #d08770 on black"), ("dim", "dim default"), ("link", "33")]);
    let (theme, problems) = base.clone().with_overrides(&valid);
    assert_eq!(problems, Vec::<String>::new());
    let accent = Style::default().fg(Color::Rgb(0xd0, 0x87, 0x70)).bg(Color::Black);
    assert_eq!(theme.style(StyleRole::Accent), accent.add_modifier(Modifier::BOLD));
    assert_eq!(theme.style(StyleRole::Link), Style::default().fg(Color::Indexed(33)));
    assert_eq!(theme.style(StyleRole::Success), base.style(StyleRole::Success));
    let invalid =
        overrides(&[("accent", "#12345"), ("acent", "red"), ("error", "red on"), ("success", "")]);
    let (theme, problems) = base.clone().with_overrides(&invalid);
    assert_eq!(theme, base);
    assert_eq!(problems.len(), 4);
    assert!(problems[0].contains("invalid style \"#12345\" for \"accent\""), "{problems:?}");
    assert!(problems[1].contains("unknown theme style \"acent\""), "{problems:?}");
}

#[test]
fn the_color_depth_is_detected_from_the_environment() {
    let some = |text: &str| Some(text.to_owned());
    let depth = |term: &str, colorterm: &str, no_color: Option<&str>| {
        let info = TerminalEnvVars {
            term: some(term),
            colorterm: some(colorterm),
            no_color: no_color.map(str::to_owned),
            ..TerminalEnvVars::default()
        };
        Theme::detect(&info).color_depth
    };
    assert_eq!(depth("xterm-256color", "truecolor", None), ColorDepth::TrueColor);
    assert_eq!(depth("xterm-256color", "", None), ColorDepth::Ansi256);
    assert_eq!(depth("xterm", "", None), ColorDepth::Ansi16);
    assert_eq!(depth("linux", "", None), ColorDepth::Ansi16);
    assert_eq!(depth("tmux-256color", "truecolor", None), ColorDepth::TrueColor);
    assert_eq!(depth("screen-256color", "truecolor", None), ColorDepth::Ansi256);
    assert_eq!(depth("xterm-kitty", "", None), ColorDepth::TrueColor);
    assert_eq!(depth("xterm-256color", "truecolor", Some("1")), ColorDepth::Monochrome);
    assert_eq!(depth("xterm-256color", "", Some("")), ColorDepth::Ansi256);
    assert_eq!(depth("dumb", "truecolor", None), ColorDepth::Monochrome);
    assert_eq!(Theme::detect(&TerminalEnvVars::default()).color_depth, ColorDepth::Monochrome);
}

#[test]
fn the_background_is_detected_from_the_environment() {
    let background = |colorfgbg: Option<&str>| {
        let colorfgbg = colorfgbg.map(str::to_owned);
        Theme::detect(&TerminalEnvVars { colorfgbg, ..TerminalEnvVars::default() }).background
    };
    assert_eq!(background(Some("0;15")), TerminalBackground::Light);
    assert_eq!(background(Some("0;default;15")), TerminalBackground::Light);
    assert_eq!(background(Some("15;0")), TerminalBackground::Dark);
    assert_eq!(background(Some("nonsense")), TerminalBackground::Dark);
    assert_eq!(background(None), TerminalBackground::Dark);
}

#[test]
fn a_background_is_light_if_dark_text_is_more_readable() {
    for (color, background) in [
        ((255, 255, 255), TerminalBackground::Light),
        ((0xfd, 0xf6, 0xe3), TerminalBackground::Light),
        ((0, 255, 0), TerminalBackground::Light),
        ((0, 0, 255), TerminalBackground::Dark),
        ((0x00, 0x2b, 0x36), TerminalBackground::Dark),
        ((30, 30, 30), TerminalBackground::Dark),
    ] {
        assert_eq!(TerminalBackground::from_rgb(color), background, "{color:?}");
    }
}

#[test]
fn every_role_has_one_unique_name() {
    let names: std::collections::BTreeSet<&str> =
        STYLE_ROLES.iter().map(|(_, name)| *name).collect();
    let roles: std::collections::BTreeSet<StyleRole> =
        STYLE_ROLES.iter().map(|(role, _)| *role).collect();
    assert_eq!((names.len(), roles.len()), (STYLE_ROLES.len(), STYLE_ROLES.len()));
}
