//! Where a command wanted to go: each host once for each answer, with how often.
//!
//! Whoever asks often enough must not be able to wash out what they asked before. So the same
//! answer is counted instead of kept again, what was let through is not pushed out by what was
//! refused, and what there is no room for is at least counted.

use crate::command::Reached;
use std::collections::HashMap;

/// How many hosts that were refused are kept. Names can be made up, so these are few.
const REFUSED: usize = 200;

/// How many that were let through are. Nobody has that many; it bounds what a hostile list costs.
const ALLOWED: usize = 10_000;

/// The decisions about one command, in the order in which they were first made.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    kept: Vec<Reached>,
    places: HashMap<(String, bool), usize>,
    refused: usize,
    dropped: u64,
}

impl Trail {
    pub(crate) fn add(&mut self, host: String, refused: Option<String>) {
        let key = (host, refused.is_some());
        let known = self.places.get(&key).and_then(|place| self.kept.get_mut(*place));
        if let Some(known) = known {
            known.times += 1;
            return;
        }
        let room = match refused {
            Some(_) => self.refused < REFUSED,
            None => self.kept.len() - self.refused < ALLOWED,
        };
        if !room {
            self.dropped += 1;
            return;
        }
        self.refused += usize::from(refused.is_some());
        self.kept.push(Reached { host: key.0.clone(), refused, times: 1 });
        self.places.insert(key, self.kept.len() - 1);
    }

    /// Everything from this place on; places never change.
    pub(crate) fn since(&self, place: usize) -> Vec<Reached> {
        self.kept.iter().skip(place).cloned().collect()
    }

    /// How many decisions there was no room for.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reached_cannot_be_washed_out() {
        let mut trail = Trail::default();
        for number in 0..5_000 {
            trail.add(format!("made-up-{number}.invalid:443"), Some("not listed".to_owned()));
            trail.add("same.invalid:443".to_owned(), Some("not listed".to_owned()));
        }
        trail.add("evil.example:443".to_owned(), None);
        trail.add("evil.example:443".to_owned(), None);
        trail.add("evil.example:443".to_owned(), Some("too many".to_owned()));
        let all = trail.since(0);
        assert_eq!(all.len(), REFUSED + 1);
        let evil: Vec<_> = all.iter().filter(|one| one.host == "evil.example:443").collect();
        assert_eq!(evil.len(), 1, "{evil:?}");
        assert_eq!((evil[0].times, evil[0].refused.as_deref()), (2, None));
        let same = all.iter().find(|one| one.host == "same.invalid:443").unwrap();
        assert_eq!(same.times, 5_000);
        // Of 5,000 names 199 are kept, and the last answer about the other one had no room.
        assert_eq!(trail.dropped(), 5_000 - 199 + 1);
        assert_eq!(trail.since(REFUSED), [evil[0].clone()]);
    }
}
