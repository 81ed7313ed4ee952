//! Log of the hosts that a command tried to reach, one entry per host and answer, with a count.
//!
//! A command must not be able to flush earlier attempts by making many more. Therefore repeated
//! answers increment a count, refused attempts never displace allowed ones, and attempts without
//! room are at least counted.

use crate::command::command_types::HostAttempt;
use std::collections::HashMap;

/// Limits the refused hosts in the log. It is low because a command can invent names.
const MAX_REFUSED_HOSTS: usize = 200;

/// Limits the allowed hosts in the log. No real command reaches that many; the limit bounds the
/// cost of a hostile list.
const MAX_ALLOWED_HOSTS: usize = 10_000;

/// The host decisions for one command, in the order they were first made.
#[derive(Debug, Default)]
pub(crate) struct HostAccessLog {
    attempts: Vec<HostAttempt>,
    positions: HashMap<(String, bool), usize>,
    refused_count: usize,
    dropped_count: u64,
}

impl HostAccessLog {
    pub(crate) fn record(&mut self, host: String, refusal: Option<String>) {
        let key = (host, refusal.is_some());
        let attempt = self.positions.get(&key).and_then(|index| self.attempts.get_mut(*index));
        if let Some(attempt) = attempt {
            attempt.count += 1;
            return;
        }
        let has_room = match refusal {
            Some(_) => self.refused_count < MAX_REFUSED_HOSTS,
            None => self.attempts.len() - self.refused_count < MAX_ALLOWED_HOSTS,
        };
        if !has_room {
            self.dropped_count += 1;
            return;
        }
        self.refused_count += usize::from(refusal.is_some());
        self.attempts.push(HostAttempt { host: key.0.clone(), refusal, count: 1 });
        self.positions.insert(key, self.attempts.len() - 1);
    }

    /// Returns the entries from index `start` on. Indexes never change.
    pub(crate) fn since(&self, start: usize) -> Vec<HostAttempt> {
        self.attempts.iter().skip(start).cloned().collect()
    }

    /// Returns the number of decisions that the log had no room for.
    pub(crate) fn dropped_count(&self) -> u64 {
        self.dropped_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_refusals_do_not_drop_reached_hosts() {
        let mut host_log = HostAccessLog::default();
        for number in 0..5_000 {
            host_log.record(format!("made-up-{number}.invalid:443"), Some("not listed".to_owned()));
            host_log.record("same.invalid:443".to_owned(), Some("not listed".to_owned()));
        }
        host_log.record("evil.example:443".to_owned(), None);
        host_log.record("evil.example:443".to_owned(), None);
        host_log.record("evil.example:443".to_owned(), Some("too many".to_owned()));
        let all = host_log.since(0);
        assert_eq!(all.len(), MAX_REFUSED_HOSTS + 1);
        let evil: Vec<_> = all.iter().filter(|one| one.host == "evil.example:443").collect();
        assert_eq!(evil.len(), 1, "{evil:?}");
        assert_eq!((evil[0].count, evil[0].refusal.as_deref()), (2, None));
        let same = all.iter().find(|one| one.host == "same.invalid:443").unwrap();
        assert_eq!(same.count, 5_000);
        // Of 5,000 names 199 are kept; the refusal of `evil.example` had no room.
        assert_eq!(host_log.dropped_count(), 5_000 - 199 + 1);
        assert_eq!(host_log.since(MAX_REFUSED_HOSTS), [evil[0].clone()]);
    }
}
