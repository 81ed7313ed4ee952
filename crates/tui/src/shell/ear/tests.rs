//! What was typed arrives as it was typed, and an answer never does, however the two come.

use super::*;
use proptest::prelude::*;

/// The keys that crossterm makes of bytes, of one piece after the other.
fn keys(pieces: &[&str]) -> Vec<Event> {
    let mut keys = Vec::new();
    for piece in pieces {
        let mut letters = piece.chars().peekable();
        while let Some(letter) = letters.next() {
            let key = match (letter, letters.peek()) {
                ('\x1b', None | Some('\x1b')) => KeyEvent::from(KeyCode::Esc),
                ('\x1b', Some(next)) => {
                    let key = KeyEvent::new(KeyCode::Char(*next), KeyModifiers::ALT);
                    letters.next();
                    key
                }
                ('\x07', _) => KeyEvent::new(KeyCode::Char('g'), KeyModifiers::CONTROL),
                ('\x03', _) => KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL),
                ('\r', _) => KeyEvent::from(KeyCode::Enter),
                (letter, _) if letter.is_uppercase() => {
                    KeyEvent::new(KeyCode::Char(letter), KeyModifiers::SHIFT)
                }
                (letter, _) => KeyEvent::from(KeyCode::Char(letter)),
            };
            keys.push(Event::Key(key));
        }
    }
    keys
}

/// What is typed and told if these pieces come within a moment.
fn heard(pieces: &[&str]) -> (Vec<Event>, Option<Rgb>) {
    Ear::Open.sift(keys(pieces), 0)
}

#[test]
fn colours_are_read_as_terminals_spell_them() {
    for (spelled, colour) in [
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
            let told = heard(&[&format!("\x1b]11;{spelled}{end}")]);
            assert_eq!(told, (Vec::new(), colour), "{spelled:?}");
        }
    }
}

proptest! {
    #[test]
    fn an_answer_in_pieces_among_keys_is_heard_and_not_typed(
        before in "[a-zA-Z0-9;:/ \\]]{0,12}",
        after in "[a-zA-Z0-9;:/ \\]]{0,12}",
        bell: bool,
        cuts in proptest::collection::vec(0..24_usize, 0..6),
    ) {
        let answer = format!("\x1b]11;rgb:1a2b/fafa/FFFF{}", if bell { "\x07" } else { "\x1b\\" });
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % answer.len()).collect();
        cuts.sort_unstable();
        let (mut pieces, mut from) = (vec![before.as_str()], 0);
        for cut in cuts {
            pieces.push(&answer[from..cut]);
            from = cut;
        }
        pieces.extend([&answer[from..], &after]);
        let (typed, ground) = heard(&pieces);
        prop_assert_eq!(typed, keys(&[&before, &after]));
        prop_assert_eq!(ground, Some((0x1a, 0xfa, 0xff)));
    }

    #[test]
    fn whatever_is_typed_without_an_answer_arrives(
        pieces in proptest::collection::vec("[a-z0-9\\]\\\\;\x1b\x07]{0,4}", 0..8),
    ) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let typed = keys(&pieces);
        // Alt+] or Esc ] with a digit behind it is what nobody types.
        let answers = |event: &[Event]| match event {
            [.., Event::Key(first), Event::Key(second)] => {
                is_alt(first, ']') && matches!(letter(second), Some('0'..='9'))
            }
            _ => false,
        };
        prop_assume!(!typed.windows(2).any(answers));
        let esc = |event: &[Event]| match event {
            [Event::Key(first), Event::Key(second), Event::Key(third)] => {
                is_escape(first)
                    && letter(second) == Some(']')
                    && matches!(letter(third), Some('0'..='9'))
            }
            _ => false,
        };
        prop_assume!(!typed.windows(3).any(esc));
        let mut ear = Ear::Open;
        let (mut arrived, ground) = ear.sift(typed.clone(), 0);
        arrived.extend(ear.give_up(DOUBT));
        prop_assert_eq!((arrived, ground), (typed, None));
        prop_assert!(ear.listens());
    }
}

#[test]
fn a_key_that_may_begin_an_answer_waits_a_moment() {
    for typed in ["\x1b", "\x1b]"] {
        let mut ear = Ear::Open;
        assert_eq!(ear.sift(keys(&[typed]), 100), (Vec::new(), None));
        assert_eq!((ear.wakes(), ear.give_up(100 + DOUBT - 1)), (Some(100 + DOUBT), Vec::new()));
        assert_eq!(ear.give_up(100 + DOUBT), keys(&[typed]));
        assert_eq!(ear.wakes(), None);
    }
    assert_eq!(Ear::Closed.sift(keys(&["\x1b"]), 0), (keys(&["\x1b"]), None));
}

#[test]
fn an_absurd_answer_is_no_key_either() {
    let long = "a".repeat(5000);
    for absurd in [
        "\x1b]11;y\ry\x03\x1b\\",
        "\x1b]11;\x1b]11;rgb:0/0/0\x1b\\",
        "\x1b]11;\x1b\x1bx\x07",
        &format!("\x1b]11;{long}\x1b\\"),
    ] {
        assert_eq!(heard(&[absurd, "ok"]), (keys(&["ok"]), None), "{absurd:?}");
    }
    // The last byte of a long one may come alone.
    assert_eq!(heard(&["\x1b]11;", &long, "\x1b", "\\ok"]), (keys(&["ok"]), None));
}

#[test]
fn an_answer_without_an_end_is_over_after_a_while() {
    let mut ear = Ear::Open;
    assert_eq!(ear.sift(keys(&["\x1b]11;rgb:12"]), 100), (Vec::new(), None));
    assert_eq!(ear.give_up(100 + WHOLE - 1), Vec::new());
    assert!(ear.listens());
    assert_eq!(ear.give_up(100 + WHOLE), Vec::new());
    assert_eq!(ear.sift(keys(&["ok"]), 100 + WHOLE), (keys(&["ok"]), None));
}

#[test]
fn the_answer_to_another_question_leaves_ours_open() {
    let answers = ["\x1b]10;rgb:0/0/0\x07", "\x1b]11;rgb:f/f/f\x07"];
    assert_eq!(heard(&answers), (Vec::new(), Some((255, 255, 255))));
}

#[test]
fn what_is_no_key_goes_past() {
    let mut events = keys(&["\x1b]11;rgb:f/"]);
    events.extend([Event::Resize(40, 12), Event::Paste("x".into())]);
    events.extend(keys(&["f/f\x07"]));
    let past = vec![Event::Resize(40, 12), Event::Paste("x".into())];
    assert_eq!(Ear::Open.sift(events, 0), (past, Some((255, 255, 255))));
}
