//! Checksums of log records, each chained to the record before it.
//!
//! A check has two halves. The first is a digest of the record alone, so that a record can be
//! verified even if its neighbors are lost. The second also covers the check before it, so that a
//! record that is missing, doubled or out of place is found. Both are part of a SHA-256: long
//! enough to find every accident, and short, because each record has one.

use crate::ids_and_timestamps::SessionId;
use sha2::{Digest, Sha256};

const HALF: usize = 8;

/// The checksum of a record in a log or in an export file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordCheck([u8; 2 * HALF]);

impl RecordCheck {
    /// The number of characters of `to_hex`.
    pub const HEX_CHARS: usize = 4 * HALF;

    /// Returns the check that precedes the first record of a session.
    pub fn before_first(session: SessionId) -> RecordCheck {
        RecordCheck::combine(digest_parts(&[session.0.as_bytes()]), &[])
    }

    /// Returns the check of a record that follows the one with this check.
    #[must_use]
    pub fn next(&self, parts: &[&[u8]]) -> RecordCheck {
        RecordCheck::combine(digest_parts(parts), &self.0)
    }

    fn combine(digest: [u8; HALF], previous: &[u8]) -> RecordCheck {
        let link = digest_parts(&[previous, &digest]);
        let mut check = [0; 2 * HALF];
        let (first, second) = check.split_at_mut(HALF);
        first.copy_from_slice(&digest);
        second.copy_from_slice(&link);
        RecordCheck(check)
    }

    /// Returns true if a record with these contents can have this check. `previous` is the check of
    /// the record before it; without it, only the record's own digest is compared.
    pub fn matches(&self, previous: Option<&RecordCheck>, parts: &[&[u8]]) -> bool {
        match previous {
            Some(previous) => previous.next(parts) == *self,
            None => self.0.starts_with(&digest_parts(parts)),
        }
    }

    /// Returns the check with these bytes.
    pub fn from_bytes(bytes: &[u8]) -> Option<RecordCheck> {
        bytes.try_into().ok().map(RecordCheck)
    }

    /// Returns the bytes of the check.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the check as hexadecimal digits in lower case.
    pub fn to_hex(&self) -> String {
        use std::fmt::Write;
        let mut text = String::with_capacity(Self::HEX_CHARS);
        for byte in self.0 {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Parses what `to_hex` returns.
    pub fn parse(text: &str) -> Option<RecordCheck> {
        let number = u128::from_str_radix(text, 16).ok()?;
        let check = RecordCheck(number.to_be_bytes());
        // Refuses upper case, a sign, and other lengths.
        (check.to_hex() == text).then_some(check)
    }
}

/// Returns the first bytes of the SHA-256 of some parts, each preceded by its length.
pub fn digest_parts(parts: &[&[u8]]) -> [u8; HALF] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut digest = [0; HALF];
    for (to, from) in digest.iter_mut().zip(hasher.finalize()) {
        *to = from;
    }
    digest
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests fail by panicking")]
mod tests {
    use super::RecordCheck;
    use crate::ids_and_timestamps::SessionId;

    #[test]
    fn a_check_depends_on_the_session_the_record_and_all_records_before_it() {
        let start = RecordCheck::before_first(SessionId(uuid::Uuid::from_u128(1)));
        let other = RecordCheck::before_first(SessionId(uuid::Uuid::from_u128(2)));
        let (first, second) = (start.next(&[b"a", b"b"]), start.next(&[b"a"]).next(&[b"c"]));
        assert_ne!(first, start.next(&[b"ab"]), "the boundary between two parts counts");
        assert_ne!(first, other.next(&[b"a", b"b"]));
        assert_ne!(second, start.next(&[b"c"]));
        assert!(first.matches(Some(&start), &[b"a", b"b"]) && first.matches(None, &[b"a", b"b"]));
        assert!(!first.matches(Some(&other), &[b"a", b"b"]));
        assert!(!first.matches(Some(&start), &[b"a", b"x"]) && !first.matches(None, &[b"a"]));
    }

    #[test]
    fn hexadecimal_digits_are_parsed_strictly() {
        let check = RecordCheck::before_first(SessionId(uuid::Uuid::nil())).next(&[b"x"]);
        let text = check.to_hex();
        assert_eq!(text.len(), RecordCheck::HEX_CHARS);
        assert_eq!(RecordCheck::parse(&text), Some(check));
        for wrong in ["", "0", &text[1..], &format!("+{}", &text[1..]), &text.to_uppercase()] {
            assert_eq!(RecordCheck::parse(wrong), None, "{wrong}");
        }
    }
}
