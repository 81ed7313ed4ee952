//! Metrics of the server in the OpenMetrics format: requests, refusals, times and streams.
//!
//! Labels have few values: routes as they are in the table, never paths, names or texts of clients.

use crate::access_log::AccessLogEntry;
use crate::limits::ClientSlots;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

/// Media type of the metrics.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Upper bounds of the times until an answer, in seconds. Requests that run commands take longest.
const DURATION_BUCKETS: [f64; 8] = [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0];

/// Metrics of the server, with those of its host.
pub(crate) struct ServerMetrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    refusals: Family<RefusalLabels, Counter>,
    durations: Histogram,
    streams: Family<TransportLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: &'static str,
    route: &'static str,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RefusalLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TransportLabels {
    transport: &'static str,
}

impl ServerMetrics {
    /// Adds the metrics of the server to those of its host.
    pub(crate) fn new(mut registry: Registry) -> ServerMetrics {
        let (requests, refusals, streams) =
            (Family::default(), Family::default(), Family::default());
        let durations = Histogram::new(DURATION_BUCKETS);
        registry.register(
            "windlass_http_requests",
            "Requests by route and status",
            Family::clone(&requests),
        );
        registry.register(
            "windlass_http_refusals",
            "Requests that were refused or failed, by reason",
            Family::clone(&refusals),
        );
        registry.register(
            "windlass_http_request_duration_seconds",
            "Time until the answer, or until an event stream began",
            durations.clone(),
        );
        registry.register(
            "windlass_event_streams",
            "Event streams that are open",
            Family::clone(&streams),
        );
        ServerMetrics { registry, requests, refusals, durations, streams }
    }

    /// Counts an answered request.
    pub(crate) fn count_request(&self, entry: &AccessLogEntry) {
        let labels = RequestLabels {
            method: method_label(entry),
            route: entry.route.unwrap_or("none"),
            status: entry.status,
        };
        self.requests.get_or_create(&labels).inc();
        if let Some(reason) = entry.error {
            self.refusals.get_or_create(&RefusalLabels { reason }).inc();
        }
        self.durations.observe(Duration::from_millis(entry.duration_ms).as_secs_f64());
    }

    /// Returns all metrics as text.
    pub(crate) fn encode(&self, tcp_streams: &ClientSlots, socket_streams: &ClientSlots) -> String {
        for (transport, slots) in [("tcp", tcp_streams), ("socket", socket_streams)] {
            let count = i64::try_from(slots.count()).unwrap_or(i64::MAX);
            self.streams.get_or_create(&TransportLabels { transport }).set(count);
        }
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}

/// Returns the method as a label. Clients may invent methods, which have no route.
fn method_label(entry: &AccessLogEntry) -> &'static str {
    match entry.method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "DELETE" => "DELETE",
        _ => "other",
    }
}
