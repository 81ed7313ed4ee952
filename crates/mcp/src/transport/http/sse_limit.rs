//! A size limit for server-sent events. It is checked on the bytes, before a decoder buffers them.

use super::error::HttpTransportError;
use bytes::Bytes;
use futures_util::{Stream, StreamExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Counts the bytes of the current event.
struct EventSizeLimit {
    max_bytes: usize,
    event_bytes: usize,
    line_is_empty: bool,
    after_carriage_return: bool,
}

impl EventSizeLimit {
    /// Counts more bytes; returns false if an event exceeds `max_bytes`.
    fn add_bytes(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            self.event_bytes += 1;
            let ends_line = match byte {
                b'\n' if std::mem::take(&mut self.after_carriage_return) => continue,
                b'\r' | b'\n' => true,
                _ => false,
            };
            self.after_carriage_return = *byte == b'\r';
            if ends_line && self.line_is_empty {
                self.event_bytes = 0;
            }
            self.line_is_empty = ends_line;
            if self.event_bytes > self.max_bytes {
                return false;
            }
        }
        true
    }
}

/// Ends a stream with an error at an event that is too long, and sets `corrupted`: such a stream
/// must not be resumed, because the event would come again.
pub(super) fn limit_event_size<E>(
    stream: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    max_bytes: usize,
    corrupted: Arc<AtomicBool>,
) -> impl Stream<Item = Result<Bytes, HttpTransportError>> + Send + 'static
where
    HttpTransportError: From<E>,
{
    let limit = EventSizeLimit {
        max_bytes,
        event_bytes: 0,
        line_is_empty: true,
        after_carriage_return: false,
    };
    stream.scan((limit, true), move |(limit, is_open), chunk| {
        let next = match chunk {
            _ if !*is_open => None,
            Ok(chunk) if limit.add_bytes(&chunk) => Some(Ok(chunk)),
            Ok(_) => {
                corrupted.store(true, Ordering::Relaxed);
                *is_open = false;
                Some(Err(HttpTransportError::BodyTooLong { max_bytes }))
            }
            Err(error) => {
                *is_open = false;
                Some(Err(error.into()))
            }
        };
        std::future::ready(next)
    })
}

#[cfg(test)]
mod tests {
    use super::EventSizeLimit;
    use proptest::prelude::{prop_assert_eq, proptest};

    /// Returns the size of the longest event. Events end at blank lines with any line ending.
    fn longest_event_bytes(text: &str) -> usize {
        let plain = text.replace("\r\n", "\n").replace('\r', "\n");
        plain.split("\n\n").map(str::len).max().unwrap_or_default()
    }

    #[test]
    fn the_limit_applies_to_each_event() {
        for end in ["\n", "\r", "\r\n"] {
            let event = format!("data: {}{end}{end}", "x".repeat(40));
            let mut limit = EventSizeLimit {
                max_bytes: 60,
                event_bytes: 0,
                line_is_empty: true,
                after_carriage_return: false,
            };
            assert!(limit.add_bytes(event.repeat(100).as_bytes()), "{end:?}");
            let mut limit = EventSizeLimit {
                max_bytes: 40,
                event_bytes: 0,
                line_is_empty: true,
                after_carriage_return: false,
            };
            assert!(!limit.add_bytes(event.as_bytes()), "{end:?}");
        }
    }

    proptest! {
        #[test]
        fn the_limit_does_not_depend_on_chunk_boundaries(text in "(data|:|x|\n|\r|\r\n){0,60}", cut in 1_usize..9) {
            let limit = || EventSizeLimit {
                max_bytes: 12, event_bytes: 0, line_is_empty: true, after_carriage_return: false
            };
            let (mut whole, mut parts) = (limit(), limit());
            let in_parts = text.as_bytes().chunks(cut).all(|chunk| parts.add_bytes(chunk));
            prop_assert_eq!(whole.add_bytes(text.as_bytes()), in_parts);
        }

        #[test]
        fn an_event_that_is_too_long_never_passes(text in "(data|:|x|\n|\r\n){0,60}", many in 20_usize..40) {
            let text = format!("{text}{}", "y".repeat(many));
            let mut limit = EventSizeLimit { max_bytes: 12, event_bytes: 0, line_is_empty: true, after_carriage_return: false };
            assert!(longest_event_bytes(&text) > 12);
            assert!(!limit.add_bytes(text.as_bytes()));
        }
    }
}
