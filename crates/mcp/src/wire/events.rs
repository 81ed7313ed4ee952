//! A stream of server-sent events in which no event is longer than it may be. It is checked on the bytes,
//! before a decoder collects them.

use super::client::Fault;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How much of the event that is being read has come.
struct Gauge {
    most: usize,
    seen: usize,
    line_is_empty: bool,
    after_return: bool,
}

impl Gauge {
    /// Takes more bytes in; false if an event is too long.
    fn fits(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            self.seen += 1;
            let ends = match byte {
                b'\n' if std::mem::take(&mut self.after_return) => continue,
                b'\r' | b'\n' => true,
                _ => false,
            };
            self.after_return = *byte == b'\r';
            if ends && self.line_is_empty {
                self.seen = 0;
            }
            self.line_is_empty = ends;
            if self.seen > self.most {
                return false;
            }
        }
        true
    }
}

/// Ends a stream with an error at an event that is too long, and says so in `spoiled`: such a stream is
/// not to be resumed, for the event would come again.
pub(super) fn bounded<E>(
    stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    most: usize,
    spoiled: Arc<AtomicBool>,
) -> impl Stream<Item = Result<Bytes, Fault>> + Send + 'static
where
    Fault: From<E>,
{
    let gauge = Gauge { most, seen: 0, line_is_empty: true, after_return: false };
    stream.scan((gauge, true), move |(gauge, going), chunk| {
        let next = match chunk {
            _ if !*going => None,
            Ok(chunk) if gauge.fits(&chunk) => Some(Ok(chunk)),
            Ok(_) => {
                spoiled.store(true, Ordering::Relaxed);
                *going = false;
                Some(Err(Fault::TooLong { most }))
            }
            Err(error) => {
                *going = false;
                Some(Err(error.into()))
            }
        };
        std::future::ready(next)
    })
}

#[cfg(test)]
mod tests {
    use super::Gauge;
    use proptest::prelude::{prop_assert_eq, proptest};

    /// Events are told apart at blank lines, whichever of the three ends of a line is used.
    fn longest(text: &str) -> usize {
        let plain = text.replace("\r\n", "\n").replace('\r', "\n");
        plain.split("\n\n").map(str::len).max().unwrap_or_default()
    }

    #[test]
    fn an_event_is_measured_by_itself() {
        for end in ["\n", "\r", "\r\n"] {
            let event = format!("data: {}{end}{end}", "x".repeat(40));
            let mut gauge = Gauge { most: 60, seen: 0, line_is_empty: true, after_return: false };
            assert!(gauge.fits(event.repeat(100).as_bytes()), "{end:?}");
            let mut gauge = Gauge { most: 40, seen: 0, line_is_empty: true, after_return: false };
            assert!(!gauge.fits(event.as_bytes()), "{end:?}");
        }
    }

    proptest! {
        #[test]
        fn how_a_stream_is_cut_makes_no_difference(text in "(data|:|x|\n|\r|\r\n){0,60}", cut in 1_usize..9) {
            let most = 12;
            let mut whole = Gauge { most, seen: 0, line_is_empty: true, after_return: false };
            let mut parts = Gauge { most, seen: 0, line_is_empty: true, after_return: false };
            let in_parts = text.as_bytes().chunks(cut).all(|chunk| parts.fits(chunk));
            prop_assert_eq!(whole.fits(text.as_bytes()), in_parts);
        }

        #[test]
        fn an_event_far_too_long_never_passes(text in "(data|:|x|\n|\r\n){0,60}", many in 20_usize..40) {
            let text = format!("{text}{}", "y".repeat(many));
            let mut gauge = Gauge { most: 12, seen: 0, line_is_empty: true, after_return: false };
            assert!(longest(&text) > 12);
            assert!(!gauge.fits(text.as_bytes()));
        }
    }
}
