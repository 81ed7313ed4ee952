//! Tests of I-ANSWER: typed keys arrive unchanged, and the terminal's reply is never typed.

use super::*;
use proptest::prelude::*;

/// Returns the key events that crossterm reports for bytes that arrive in pieces.
fn key_events(pieces: &[&str]) -> Vec<Event> {
    let mut events = Vec::new();
    for piece in pieces {
        let mut characters = piece.chars().peekable();
        while let Some(character) = characters.next() {
            let key = match (character, characters.peek()) {
                ('\x1b', None | Some('\x1b')) => KeyEvent::from(KeyCode::Esc),
                ('\x1b', Some(next)) => {
                    let key = KeyEvent::new(KeyCode::Char(*next), KeyModifiers::ALT);
                    characters.next();
                    key
                }
                ('\x07', _) => KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL),
                ('\x03', _) => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
                ('\r', _) => KeyEvent::from(KeyCode::Enter),
                (character, _) if character.is_uppercase() => {
                    KeyEvent::new(KeyCode::Char(character), KeyModifiers::SHIFT)
                }
                (character, _) => KeyEvent::from(KeyCode::Char(character)),
            };
            events.push(Event::Key(key));
        }
    }
    events
}

/// Returns the typed events and the background color for pieces that arrive together.
fn filter_pieces(pieces: &[&str]) -> (Vec<Event>, Option<RgbColor>) {
    BackgroundColorQuery::Waiting.filter_events(key_events(pieces), 0)
}

#[test]
fn colors_are_parsed_in_the_formats_of_terminals() {
    for (spec, expected) in [
        ("rgb:ffff/8080/0000", Some((255, 128, 0))),
        ("rgb:FAFA/Fafa/f8f8", Some((0xfa, 0xfa, 0xf8))),
        ("rgb:1e/1E/2e", Some((0x1e, 0x1e, 0x2e))),
        ("rgb:f/0/8", Some((255, 0, 136))),
        ("rgb:fff/000/800", Some((255, 0, 127))),
        ("rgba:ffff/ffff/ffff/c0c0", Some((255, 255, 255))),
        ("rgb:ffff/ffff", None),
        ("rgb:ffff/ffff/ffff/ffff", None),
        ("rgba:ffff/ffff/ffff", None),
        ("rgb:fffff/ffff/ffff", None),
        ("rgb:+fff/ffff/ffff", None),
        ("rgb://", None),
        ("rgb:gg/gg/gg", None),
        ("#ffffff", None),
        ("white", None),
        ("?", None),
        ("", None),
    ] {
        for end in ["\x1b\\", "\x07"] {
            let result = filter_pieces(&[&format!("\x1b]11;{spec}{end}")]);
            assert_eq!(result, (Vec::new(), expected), "{spec:?}");
        }
    }
}

proptest! {
    #[test]
    fn a_reply_in_pieces_among_keys_is_parsed_and_not_typed(
        before in "[a-zA-Z0-9;:/ \\]]{0,12}",
        after in "[a-zA-Z0-9;:/ \\]]{0,12}",
        bell: bool,
        cuts in proptest::collection::vec(0..24_usize, 0..6),
    ) {
        let reply = format!("\x1b]11;rgb:1a2b/fafa/FFFF{}", if bell { "\x07" } else { "\x1b\\" });
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % reply.len()).collect();
        cuts.sort_unstable();
        let (mut pieces, mut start) = (vec![before.as_str()], 0);
        for cut in cuts {
            pieces.push(&reply[start..cut]);
            start = cut;
        }
        pieces.extend([&reply[start..], &after]);
        let (typed, background) = filter_pieces(&pieces);
        prop_assert_eq!(typed, key_events(&[&before, &after]));
        prop_assert_eq!(background, Some((0x1a, 0xfa, 0xff)));
    }

    #[test]
    fn all_keys_arrive_when_there_is_no_reply(
        pieces in proptest::collection::vec("[a-z0-9\\]\\\\;\x1b\x07]{0,4}", 0..8),
    ) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let typed = key_events(&pieces);
        // Alt+] or Esc ] followed by a digit starts a reply and is not typed by users.
        let starts_reply = |event: &[Event]| match event {
            [.., Event::Key(first), Event::Key(second)] => {
                is_alt(first, ']') && matches!(plain_char(second), Some('0'..='9'))
            }
            _ => false,
        };
        prop_assume!(!typed.windows(2).any(starts_reply));
        let starts_reply_after_esc = |event: &[Event]| match event {
            [Event::Key(first), Event::Key(second), Event::Key(third)] => {
                is_escape(first)
                    && plain_char(second) == Some(']')
                    && matches!(plain_char(third), Some('0'..='9'))
            }
            _ => false,
        };
        prop_assume!(!typed.windows(3).any(starts_reply_after_esc));
        let mut query = BackgroundColorQuery::Waiting;
        let (mut arrived, background) = query.filter_events(typed.clone(), 0);
        arrived.extend(query.release_held_keys(ESCAPE_HOLD_MS));
        prop_assert_eq!((arrived, background), (typed, None));
        prop_assert!(query.is_active());
    }
}

#[test]
fn a_key_that_may_start_a_reply_is_held_briefly() {
    for typed in ["\x1b", "\x1b]"] {
        let mut query = BackgroundColorQuery::Waiting;
        assert_eq!(query.filter_events(key_events(&[typed]), 100), (Vec::new(), None));
        assert_eq!(
            (query.next_wakeup(), query.release_held_keys(100 + ESCAPE_HOLD_MS - 1)),
            (Some(100 + ESCAPE_HOLD_MS), Vec::new())
        );
        assert_eq!(query.release_held_keys(100 + ESCAPE_HOLD_MS), key_events(&[typed]));
        assert_eq!(query.next_wakeup(), None);
    }
    assert_eq!(
        BackgroundColorQuery::Inactive.filter_events(key_events(&["\x1b"]), 0),
        (key_events(&["\x1b"]), None)
    );
}

#[test]
fn an_invalid_reply_is_not_typed() {
    let long = "a".repeat(5000);
    for reply in [
        "\x1b]11;y\ry\x03\x1b\\",
        "\x1b]11;\x1b]11;rgb:0/0/0\x1b\\",
        "\x1b]11;\x1b\x1bx\x07",
        &format!("\x1b]11;{long}\x1b\\"),
    ] {
        assert_eq!(filter_pieces(&[reply, "ok"]), (key_events(&["ok"]), None), "{reply:?}");
    }
    // The last byte of a long reply may arrive alone.
    assert_eq!(filter_pieces(&["\x1b]11;", &long, "\x1b", "\\ok"]), (key_events(&["ok"]), None));
}

#[test]
fn a_reply_without_an_end_times_out() {
    let mut query = BackgroundColorQuery::Waiting;
    assert_eq!(query.filter_events(key_events(&["\x1b]11;rgb:12"]), 100), (Vec::new(), None));
    assert_eq!(query.release_held_keys(100 + REPLY_TIMEOUT_MS - 1), Vec::new());
    assert!(query.is_active());
    assert_eq!(query.release_held_keys(100 + REPLY_TIMEOUT_MS), Vec::new());
    assert_eq!(
        query.filter_events(key_events(&["ok"]), 100 + REPLY_TIMEOUT_MS),
        (key_events(&["ok"]), None)
    );
}

#[test]
fn a_reply_to_another_query_leaves_the_query_open() {
    let replies = ["\x1b]10;rgb:0/0/0\x07", "\x1b]11;rgb:f/f/f\x07"];
    assert_eq!(filter_pieces(&replies), (Vec::new(), Some((255, 255, 255))));
}

#[test]
fn events_other_than_keys_pass_through() {
    let mut events = key_events(&["\x1b]11;rgb:f/"]);
    events.extend([Event::Resize(40, 12), Event::Paste("x".into())]);
    events.extend(key_events(&["f/f\x07"]));
    let passed = vec![Event::Resize(40, 12), Event::Paste("x".into())];
    assert_eq!(
        BackgroundColorQuery::Waiting.filter_events(events, 0),
        (passed, Some((255, 255, 255)))
    );
}
