//! Compares `HeadTailBuffer` with a buffer that keeps everything.

use super::*;
use proptest::collection::vec;
use proptest::prelude::{any, proptest};

fn pieces() -> impl proptest::strategy::Strategy<Value = Vec<(u8, usize)>> {
    vec((any::<u8>(), 0usize..200_000), 0..8)
}

proptest! {
    #[test]
    fn head_tail_and_counts_are_exact(pieces in pieces()) {
        let (mut buffer, mut whole) = (HeadTailBuffer::default(), Vec::new());
        for (byte, count) in pieces {
            let bytes: Vec<u8> = (0..count).map(|at| byte.wrapping_mul(at as u8 ^ 11)).collect();
            buffer.push(&bytes);
            whole.extend_from_slice(&bytes);
            let output = buffer.to_captured_output();
            assert_eq!(output.total_bytes, whole.len() as u64);
            assert!(whole.starts_with(&output.head) && whole.ends_with(&output.tail));
            assert!(output.head.len() == whole.len().min(MAX_HEAD_BYTES));
            assert!(output.tail.len() == (whole.len() - output.head.len()).min(MAX_TAIL_BYTES));
            let lines = whole.split_inclusive(|byte| *byte == b'\n').count();
            assert_eq!(output.total_lines, lines as u64);
            assert!(buffer.tail.capacity() <= 2 * MAX_TAIL_BYTES);
        }
    }

    /// A caller that reads often enough gets every byte once; otherwise `dropped_bytes` counts the
    /// gap.
    #[test]
    fn incremental_reads_account_for_every_byte(
        pieces in pieces(),
        often in vec(any::<bool>(), 8),
    ) {
        let (mut buffer, mut offset, mut accounted) = (HeadTailBuffer::default(), 0, 0);
        let mut whole = String::new();
        let mut got = String::new();
        for ((byte, count), read) in pieces.into_iter().zip(often) {
            let text = char::from(byte).to_string().repeat(count);
            whole += &text;
            // The cut may be within a character.
            let (one, two) = text.as_bytes().split_at(text.len() / 3);
            for part in [one, two] {
                buffer.push(part);
                if read {
                    let piece = buffer.chunk_since(offset, false);
                    accounted += piece.dropped_bytes + piece.text.len() as u64;
                    got += &piece.text;
                    offset = piece.next_offset;
                }
            }
        }
        while offset < whole.len() as u64 {
            let piece = buffer.chunk_since(offset, true);
            assert!(piece.next_offset > offset);
            accounted += piece.dropped_bytes + (piece.next_offset - offset - piece.dropped_bytes);
            got += &piece.text;
            offset = piece.next_offset;
        }
        if whole.len() <= MAX_HEAD_BYTES + MAX_TAIL_BYTES {
            assert_eq!(got, whole);
            assert_eq!(accounted, whole.len() as u64);
        }
        let end = OutputChunk { text: String::new(), dropped_bytes: 0, next_offset: offset };
        assert_eq!(buffer.chunk_since(offset, true), end);
    }
}

#[test]
fn a_gap_is_reported_once_at_its_offset() {
    let mut buffer = HeadTailBuffer::default();
    buffer.push(&[b'a'; MAX_HEAD_BYTES]);
    buffer.push(&[b'b'; 1000]);
    buffer.push(&[b'c'; MAX_TAIL_BYTES]);
    let head = buffer.chunk_since(10, true);
    assert_eq!(
        (head.text.len(), head.dropped_bytes, head.next_offset),
        (MAX_HEAD_BYTES - 10, 0, MAX_HEAD_BYTES as u64)
    );
    let tail = buffer.chunk_since(head.next_offset, true);
    assert_eq!((tail.dropped_bytes, tail.text.len()), (1000, MAX_TAIL_BYTES));
    assert!(tail.text.bytes().all(|byte| byte == b'c'));
    let later = buffer.chunk_since(buffer.total_bytes() - 5, true);
    assert_eq!((later.text.as_str(), later.dropped_bytes), ("ccccc", 0));
    assert_eq!(buffer.chunk_since(u64::MAX, true).next_offset, buffer.total_bytes());
}

#[test]
fn an_incomplete_character_waits_for_its_rest() {
    let mut buffer = HeadTailBuffer::default();
    buffer.push(b"caf\xc3");
    let first = buffer.chunk_since(0, false);
    assert_eq!((first.text.as_str(), first.next_offset), ("caf", 3));
    assert_eq!(buffer.chunk_since(3, true).text, "\u{fffd}");
    buffer.push(b"\xa9 \xf0\x9f\xa6");
    let second = buffer.chunk_since(first.next_offset, false);
    assert_eq!(second.text, "é ");
    buffer.push(b"\x80!");
    assert_eq!(buffer.chunk_since(second.next_offset, false).text, "🦀!");
    // An invalid byte, which no later byte can complete, is returned at once.
    buffer.push(b"\xff");
    assert_eq!(buffer.chunk_since(buffer.total_bytes() - 1, false).text, "\u{fffd}");
}

#[test]
fn the_last_lines_are_found() {
    let mut buffer = HeadTailBuffer::default();
    assert_eq!(buffer.last_lines(2, 100), "");
    buffer.push(b"one\ntwo\nthree");
    assert_eq!(buffer.last_lines(2, 100), "two\nthree");
    buffer.push(b"\n");
    assert_eq!(buffer.last_lines(2, 100), "two\nthree");
    assert_eq!(buffer.last_lines(9, 100), "one\ntwo\nthree");
    assert_eq!(buffer.last_lines(2, 4), "ree");
}
