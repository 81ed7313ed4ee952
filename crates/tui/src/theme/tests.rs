//! What can be read, and what can be told apart.

use super::palette::Rgb;
use super::*;

fn rgb(color: Color) -> Rgb {
    match color {
        Color::Rgb(red, green, blue) => Rgb::from_be_bytes([0, red, green, blue]),
        Color::Indexed(index) => colour::of_index(index),
        other => panic!("{other} is the terminal's own"),
    }
}

/// As WCAG reckons it.
fn contrast(one: Rgb, other: Rgb) -> f64 {
    let light = |rgb: Rgb| {
        let (red, green, blue) = colour::parts(rgb);
        let linear = |part: u8| {
            let part = f64::from(part) / 255.0;
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)
    };
    let (one, other) = (light(one), light(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

fn all(depth: Depth) -> Vec<Theme> {
    let grounds = [Ground::Dark, Ground::Light];
    let find = |name: &str| grounds.map(|ground| Theme::find(name, ground, depth).unwrap());
    Theme::names().into_iter().flat_map(find).collect()
}

#[test]
fn every_text_can_be_read_on_the_usual_grounds() {
    for theme in [all(Depth::True), all(Depth::Many)].concat() {
        for (role, name) in ROLES {
            let style = theme.style(role);
            let Some(ink) = style.fg.filter(|_| role != Role::Border) else { continue };
            let grounds = match (style.bg, theme.ground) {
                (Some(own), _) => vec![rgb(own)],
                (None, Ground::Dark) => vec![0x000000, 0x1e1e1e],
                (None, Ground::Light) => vec![0xffffff],
            };
            for ground in grounds {
                let contrast = contrast(rgb(ink), ground);
                let (theme, on) = (&theme.name, theme.ground);
                assert!(contrast >= 4.5, "{theme} {on:?} {name}: {contrast:.2} on {ground:06x}");
            }
        }
    }
}

#[test]
fn a_terminal_is_given_no_more_colours_than_it_has() {
    for depth in [Depth::None, Depth::Sixteen, Depth::Many] {
        for theme in all(depth) {
            let looks = BTreeMap::from([("accent".to_owned(), "#d08770 on 200".to_owned())]);
            let (theme, problems) = theme.with(&looks);
            assert_eq!(problems, Vec::<String>::new());
            for (role, name) in ROLES {
                let style = theme.style(role);
                for color in [style.fg, style.bg].into_iter().flatten() {
                    let fits = match depth {
                        Depth::None => false,
                        Depth::Sixteen => !matches!(color, Color::Rgb(..) | Color::Indexed(_)),
                        Depth::Many | Depth::True => !matches!(color, Color::Rgb(..)),
                    };
                    assert!(fits, "{} {depth:?} {name}: {color}", theme.name);
                }
            }
        }
    }
}

#[test]
fn what_matters_stands_out_without_colour() {
    for theme in all(Depth::None) {
        let plain = theme.style(Role::Text);
        for role in
            [Role::Selected, Role::Strong, Role::Accent, Role::Bad, Role::AddedWord, Role::Link]
        {
            assert_ne!(theme.style(role), plain, "{role:?}");
        }
    }
}

#[test]
fn words_that_changed_stand_out_of_lines_that_changed() {
    for depth in [Depth::None, Depth::Sixteen, Depth::Many, Depth::True] {
        for theme in all(depth) {
            assert_ne!(theme.style(Role::Added), theme.style(Role::AddedWord));
            assert_ne!(theme.style(Role::Removed), theme.style(Role::RemovedWord));
        }
    }
}

#[test]
fn a_look_of_ones_own_lies_over_a_theme() {
    let looks = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, look)| ((*name).to_owned(), (*look).to_owned())).collect()
    };
    let base = Theme::find("harbour", Ground::Dark, Depth::True).unwrap();
    let own = looks(&[("accent", "bold #d08770 on black"), ("dim", "dim default"), ("link", "33")]);
    let (theme, problems) = base.clone().with(&own);
    assert_eq!(problems, Vec::<String>::new());
    let accent = Style::default().fg(Color::Rgb(0xd0, 0x87, 0x70)).bg(Color::Black);
    assert_eq!(theme.style(Role::Accent), accent.add_modifier(Modifier::BOLD));
    assert_eq!(theme.style(Role::Link), Style::default().fg(Color::Indexed(33)));
    assert_eq!(theme.style(Role::Good), base.style(Role::Good));
    let wrong = looks(&[("accent", "#12345"), ("acent", "red"), ("bad", "red on"), ("good", "")]);
    let (theme, problems) = base.clone().with(&wrong);
    assert_eq!(theme, base);
    assert_eq!(problems.len(), 4);
    assert!(problems[0].contains("\"#12345\" is no look for \"accent\""), "{problems:?}");
    assert!(problems[1].contains("a theme has no \"acent\""), "{problems:?}");
}

#[test]
fn a_terminal_is_known_by_what_it_says_of_itself() {
    let some = |text: &str| Some(text.to_owned());
    let depth = |term: &str, colorterm: &str, no_color: Option<&str>| {
        let facts = Facts {
            term: some(term),
            colorterm: some(colorterm),
            no_color: no_color.map(str::to_owned),
            ..Facts::default()
        };
        Theme::detect(&facts).depth
    };
    assert_eq!(depth("xterm-256color", "truecolor", None), Depth::True);
    assert_eq!(depth("xterm-256color", "", None), Depth::Many);
    assert_eq!(depth("xterm", "", None), Depth::Sixteen);
    assert_eq!(depth("linux", "", None), Depth::Sixteen);
    assert_eq!(depth("tmux-256color", "truecolor", None), Depth::True);
    assert_eq!(depth("screen-256color", "truecolor", None), Depth::Many);
    assert_eq!(depth("xterm-kitty", "", None), Depth::True);
    assert_eq!(depth("xterm-256color", "truecolor", Some("1")), Depth::None);
    assert_eq!(depth("xterm-256color", "", Some("")), Depth::Many);
    assert_eq!(depth("dumb", "truecolor", None), Depth::None);
    assert_eq!(Theme::detect(&Facts::default()).depth, Depth::None);
}

#[test]
fn the_ground_is_what_the_environment_says() {
    let ground = |colorfgbg: Option<&str>| {
        let colorfgbg = colorfgbg.map(str::to_owned);
        Theme::detect(&Facts { colorfgbg, ..Facts::default() }).ground
    };
    assert_eq!(ground(Some("0;15")), Ground::Light);
    assert_eq!(ground(Some("0;default;15")), Ground::Light);
    assert_eq!(ground(Some("15;0")), Ground::Dark);
    assert_eq!(ground(Some("nonsense")), Ground::Dark);
    assert_eq!(ground(None), Ground::Dark);
}

#[test]
fn a_ground_is_light_where_dark_letters_are_read_better() {
    for (colour, ground) in [
        ((255, 255, 255), Ground::Light),
        ((0xfd, 0xf6, 0xe3), Ground::Light),
        ((0, 255, 0), Ground::Light),
        ((0, 0, 255), Ground::Dark),
        ((0x00, 0x2b, 0x36), Ground::Dark),
        ((30, 30, 30), Ground::Dark),
    ] {
        assert_eq!(Ground::of(colour), ground, "{colour:?}");
    }
}

#[test]
fn every_role_has_a_name_once() {
    let names: std::collections::BTreeSet<&str> = ROLES.iter().map(|(_, name)| *name).collect();
    let roles: std::collections::BTreeSet<Role> = ROLES.iter().map(|(role, _)| *role).collect();
    assert_eq!((names.len(), roles.len()), (ROLES.len(), ROLES.len()));
}
