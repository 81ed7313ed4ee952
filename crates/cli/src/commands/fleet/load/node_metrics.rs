//! The metrics of a node, as a load test needs them.

use std::collections::BTreeMap;

/// Numbers of a node, or of several.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeMetrics {
    pub(super) memory_bytes: f64,
    /// Appends whose commit was flushed, by the upper bound of their time in microseconds. Not
    /// cumulative.
    pub(super) flushed: BTreeMap<u64, f64>,
    pub(super) others: BTreeMap<u64, f64>,
    pub(super) lost_answers: f64,
    pub(super) fenced: f64,
    pub(super) opened: f64,
}

impl NodeMetrics {
    /// Reads metrics in the OpenMetrics format.
    pub(super) fn parse(text: &str) -> NodeMetrics {
        let mut metrics = NodeMetrics::default();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let Some((key, value)) = line.rsplit_once(' ') else { continue };
            let Ok(value) = value.parse::<f64>() else { continue };
            let (name, labels) = key.split_once('{').unwrap_or((key, ""));
            match name {
                "process_resident_memory_bytes" => metrics.memory_bytes = value,
                "windlass_fleet_lost_answers_total" => metrics.lost_answers += value,
                "windlass_fleet_fenced_appends_total" => metrics.fenced = value,
                "windlass_fleet_opened_claims_total" => metrics.opened = value,
                "windlass_fleet_append_seconds_bucket" => {
                    let is_flushed = label(labels, "flushed") == Some("true");
                    let bound = label(labels, "le").and_then(|bound| bound.parse::<f64>().ok());
                    // The last bucket has no bound.
                    let bound = bound.map_or(u64::MAX, |seconds| (seconds * 1e6) as u64);
                    let times = if is_flushed { &mut metrics.flushed } else { &mut metrics.others };
                    times.insert(bound, value);
                }
                _ => {}
            }
        }
        for times in [&mut metrics.flushed, &mut metrics.others] {
            let mut before = 0.0;
            for count in times.values_mut() {
                (*count, before) = (*count - before, *count);
            }
        }
        metrics
    }

    /// Adds what another node has done since a moment.
    pub(super) fn add_since(&mut self, before: &NodeMetrics, now: &NodeMetrics) {
        self.memory_bytes += now.memory_bytes - before.memory_bytes;
        self.lost_answers += now.lost_answers - before.lost_answers;
        self.fenced += now.fenced - before.fenced;
        self.opened += now.opened - before.opened;
        for (all, before, now) in [
            (&mut self.flushed, &before.flushed, &now.flushed),
            (&mut self.others, &before.others, &now.others),
        ] {
            for (bound, count) in now {
                let new = count - before.get(bound).copied().unwrap_or_default();
                *all.entry(*bound).or_default() += new;
            }
        }
    }
}

/// Returns the bound in milliseconds that a part of the times does not exceed.
pub(super) fn quantile_millis(times: &BTreeMap<u64, f64>, part: f64) -> Option<f64> {
    let all: f64 = times.values().sum();
    let mut seen = 0.0;
    let bound = times.iter().find_map(|(bound, count)| {
        seen += count;
        (seen >= all * part && all > 0.0).then_some(*bound)
    });
    bound.map(|micros| micros as f64 / 1e3)
}

fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    labels.trim_end_matches('}').split(',').find_map(|label| {
        let (own, value) = label.split_once('=')?;
        (own == name).then_some(value.trim_matches('"'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_two_moments_are_subtracted() {
        let text = |fast: u32, all: u32| {
            format!(
                "# HELP x y\nprocess_resident_memory_bytes 2000\n\
                 windlass_fleet_append_seconds_bucket{{le=\"0.001\",flushed=\"true\"}} {fast}\n\
                 windlass_fleet_append_seconds_bucket{{le=\"0.005\",flushed=\"true\"}} {all}\n\
                 windlass_fleet_append_seconds_bucket{{le=\"+Inf\",flushed=\"true\"}} {all}\n"
            )
        };
        let mut sum = NodeMetrics::default();
        sum.add_since(&NodeMetrics::parse(&text(10, 10)), &NodeMetrics::parse(&text(108, 110)));
        assert_eq!(sum.flushed, BTreeMap::from([(1_000, 98.0), (5_000, 2.0), (u64::MAX, 0.0)]));
        assert_eq!(quantile_millis(&sum.flushed, 0.5), Some(1.0));
        assert_eq!(quantile_millis(&sum.flushed, 0.99), Some(5.0));
        assert_eq!(quantile_millis(&sum.others, 0.99), None);
    }
}
