//! Against a tape that keeps everything.

use super::*;
use proptest::collection::vec;
use proptest::prelude::{any, proptest};

fn pieces() -> impl proptest::strategy::Strategy<Value = Vec<(u8, usize)>> {
    vec((any::<u8>(), 0usize..200_000), 0..8)
}

proptest! {
    #[test]
    fn the_ends_and_the_counts_are_exact(pieces in pieces()) {
        let (mut tape, mut whole) = (Tape::default(), Vec::new());
        for (byte, count) in pieces {
            let said: Vec<u8> = (0..count).map(|at| byte.wrapping_mul(at as u8 ^ 11)).collect();
            tape.push(&said);
            whole.extend_from_slice(&said);
            let heard = tape.heard();
            assert_eq!(heard.bytes, whole.len() as u64);
            assert!(whole.starts_with(&heard.head) && whole.ends_with(&heard.tail));
            assert!(heard.head.len() == whole.len().min(HEAD));
            assert!(heard.tail.len() == (whole.len() - heard.head.len()).min(TAIL));
            let lines = whole.split_inclusive(|byte| *byte == b'\n').count();
            assert_eq!(heard.lines, lines as u64);
            assert!(tape.tail.capacity() <= 2 * TAIL);
        }
    }

    /// Whoever reads on often enough gets every byte once; whoever does not is told what is lost.
    #[test]
    fn reading_on_loses_nothing_unsaid(pieces in pieces(), often in vec(any::<bool>(), 8)) {
        let (mut tape, mut place, mut accounted) = (Tape::default(), 0, 0);
        let mut whole = String::new();
        let mut got = String::new();
        for ((byte, count), read) in pieces.into_iter().zip(often) {
            let said = char::from(byte).to_string().repeat(count);
            whole += &said;
            // Cut anywhere, also within a character.
            let (one, two) = said.as_bytes().split_at(said.len() / 3);
            for part in [one, two] {
                tape.push(part);
                if read {
                    let piece = tape.since(place, false);
                    accounted += piece.missed + piece.text.len() as u64;
                    got += &piece.text;
                    place = piece.next;
                }
            }
        }
        while place < whole.len() as u64 {
            let piece = tape.since(place, true);
            assert!(piece.next > place);
            accounted += piece.missed + (piece.next - place - piece.missed);
            got += &piece.text;
            place = piece.next;
        }
        if whole.len() <= HEAD + TAIL {
            assert_eq!(got, whole);
            assert_eq!(accounted, whole.len() as u64);
        }
        assert_eq!(tape.since(place, true), Piece { text: String::new(), missed: 0, next: place });
    }
}

#[test]
fn a_gap_is_told_once_and_at_its_place() {
    let mut tape = Tape::default();
    tape.push(&[b'a'; HEAD]);
    tape.push(&[b'b'; 1000]);
    tape.push(&[b'c'; TAIL]);
    let head = tape.since(10, true);
    assert_eq!((head.text.len(), head.missed, head.next), (HEAD - 10, 0, HEAD as u64));
    let tail = tape.since(head.next, true);
    assert_eq!((tail.missed, tail.text.len()), (1000, TAIL));
    assert!(tail.text.bytes().all(|byte| byte == b'c'));
    let later = tape.since(tape.bytes() - 5, true);
    assert_eq!((later.text.as_str(), later.missed), ("ccccc", 0));
    assert_eq!(tape.since(u64::MAX, true).next, tape.bytes());
}

#[test]
fn half_a_character_waits_for_the_other_half() {
    let mut tape = Tape::default();
    tape.push(b"caf\xc3");
    let first = tape.since(0, false);
    assert_eq!((first.text.as_str(), first.next), ("caf", 3));
    assert_eq!(tape.since(3, true).text, "\u{fffd}");
    tape.push(b"\xa9 \xf0\x9f\xa6");
    let second = tape.since(first.next, false);
    assert_eq!(second.text, "é ");
    tape.push(b"\x80!");
    assert_eq!(tape.since(second.next, false).text, "🦀!");
    // What can never be completed is not waited for.
    tape.push(b"\xff");
    assert_eq!(tape.since(tape.bytes() - 1, false).text, "\u{fffd}");
}

#[test]
fn the_last_lines_are_found() {
    let mut tape = Tape::default();
    assert_eq!(tape.ending(2, 100), "");
    tape.push(b"one\ntwo\nthree");
    assert_eq!(tape.ending(2, 100), "two\nthree");
    tape.push(b"\n");
    assert_eq!(tape.ending(2, 100), "two\nthree");
    assert_eq!(tape.ending(9, 100), "one\ntwo\nthree");
    assert_eq!(tape.ending(2, 4), "ree");
}
