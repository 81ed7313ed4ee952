//! Metrics of a node of a fleet: its lease, appends, claims and connections, and the sessions that
//! wait in the database.

use crate::fleet_node::FleetNode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::{Arc, Weak};
use windlass_storage::postgres::{TIME_BOUNDS, TimeCounts};

/// Reads the numbers of a node whenever metrics are requested.
struct FleetMetrics(Weak<FleetNode>);

impl fmt::Debug for FleetMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FleetMetrics")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FlushLabels {
    flushed: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ConnectionLabels {
    state: &'static str,
}

/// A metric with its labels and values.
struct FleetEncoder<'a, 'b>(&'a mut DescriptorEncoder<'b>);

impl FleetEncoder<'_, '_> {
    fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge)?.encode_gauge(&value)
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        encoder.encode_counter::<NoLabelSet, _, u64>(&value, None)
    }

    fn times(&mut self, name: &str, help: &str, times: &TimeCounts) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        let (buckets, count) = buckets(times);
        encoder.encode_histogram::<NoLabelSet>(times.seconds, count, &buckets, None)
    }
}

/// Returns the buckets with their bounds, and the number of all times.
fn buckets(times: &TimeCounts) -> (Vec<(f64, u64)>, u64) {
    let buckets = TIME_BOUNDS.iter().copied().zip(times.buckets).collect();
    (buckets, times.buckets.iter().sum())
}

impl Collector for FleetMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(fleet) = self.0.upgrade() else { return Ok(()) };
        let counts = fleet.node.counters().counts();
        let name = "windlass_fleet_append_seconds";
        let help = "Time of appends to the log, by whether the commit waits for the disk";
        let mut appends = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (flushed, times) in
            [("true", &counts.flushed_appends), ("false", &counts.other_appends)]
        {
            let (buckets, count) = buckets(times);
            appends.encode_family(&FlushLabels { flushed })?.encode_histogram::<NoLabelSet>(
                times.seconds,
                count,
                &buckets,
                None,
            )?;
        }
        let name = "windlass_fleet_lost_answers";
        let help = "Appends whose answer was lost, by whether they had been written";
        let mut lost = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (outcome, count) in
            [("written", counts.lost_answers_written), ("repeated", counts.lost_answers_repeated)]
        {
            let labels = OutcomeLabels { outcome };
            lost.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let pool = fleet.database.pool_state();
        let name = "windlass_fleet_connections";
        let help = "Connections to the database by state, besides the one for the lease";
        let mut connections = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (state, count) in [("used", pool.used), ("idle", pool.idle), ("limit", pool.max)] {
            connections
                .encode_family(&ConnectionLabels { state })?
                .encode_gauge(&(count as u64))?;
        }
        let mut encoder = FleetEncoder(&mut encoder);
        encoder.counter(
            "windlass_fleet_fenced_appends",
            "Appends that were refused because another node has the session",
            counts.fenced_appends,
        )?;
        encoder.counter(
            "windlass_fleet_shortened_logs",
            "Sessions of which the database has lost facts in a crash or a fail-over",
            counts.shortened_logs,
        )?;
        encoder.counter(
            "windlass_fleet_opened_claims",
            "Sessions that were claimed because a client opened them",
            counts.opened_claims,
        )?;
        encoder.times(
            "windlass_fleet_takeover_seconds",
            "Time for which sessions waited for a node before this one claimed them",
            &counts.due_claims,
        )?;
        encoder.gauge(
            "windlass_fleet_lease_seconds",
            "Time until the lease of this node runs out",
            fleet.lease_left().as_secs_f64(),
        )?;
        encoder.counter(
            "windlass_fleet_renewal_failures",
            "Attempts to renew the lease that have failed",
            fleet.renewal_failures(),
        )?;
        let backlog = fleet.backlog();
        for (name, help, value) in [
            ("due_sessions", "Sessions of all nodes that wait for a node", backlog.due as f64),
            ("due_seconds", "Time for which the oldest of them waits", backlog.due_seconds),
            (
                "queued_operations",
                "Operations of all nodes that wait for a session",
                backlog.queued_ops as f64,
            ),
            ("queued_seconds", "Time for which the oldest of them waits", backlog.queued_seconds),
            (
                "failed_sessions",
                "Sessions that failed three times and wait until a user opens them",
                backlog.failed as f64,
            ),
        ] {
            encoder.gauge(&format!("windlass_fleet_{name}"), help, value)?;
        }
        Ok(())
    }
}

/// Adds the metrics of a node.
pub(super) fn add_fleet_metrics(registry: &mut Registry, fleet: &Arc<FleetNode>) {
    registry.register_collector(Box::new(FleetMetrics(Arc::downgrade(fleet))));
}
