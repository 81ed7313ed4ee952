//! Metrics of the host for `/metrics`: its version, its open sessions and its memory.

use super::fleet_metrics::add_fleet_metrics;
use super::tenant_hubs::TenantHubs;
use crate::fleet_node::FleetNode;
use crate::setup::LoadedProject;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::{Arc, Weak};
use windlass_protocol::session_stream::OpenSessionActivity;

/// File of Linux with the memory of this process.
const STATUS_FILE: &str = "/proc/self/status";
const MAX_STATUS_BYTES: u64 = 64 << 10;

/// Reads the state of the hubs whenever metrics are requested.
struct HubMetrics(Weak<TenantHubs>);

impl fmt::Debug for HubMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HubMetrics")
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

/// All activities of a session, since one that no session has is reported as 0.
const ACTIVITIES: [OpenSessionActivity; 4] = [
    OpenSessionActivity::Waiting,
    OpenSessionActivity::Working,
    OpenSessionActivity::Background,
    OpenSessionActivity::Idle,
];

fn state_labels(activity: OpenSessionActivity) -> StateLabels {
    let state = match activity {
        OpenSessionActivity::Waiting => "waiting",
        OpenSessionActivity::Working => "working",
        OpenSessionActivity::Background => "background",
        OpenSessionActivity::Idle => "idle",
    };
    StateLabels { state }
}

impl Collector for HubMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let Some(hubs) = self.0.upgrade() else { return Ok(()) };
        let sessions = Family::<StateLabels, Gauge>::default();
        for activity in ACTIVITIES {
            drop(sessions.get_or_create(&state_labels(activity)));
        }
        let (mut questions, mut tasks, mut clients) = (0, 0, 0);
        for state in hubs.open_session_states() {
            sessions.get_or_create(&state_labels(state.activity())).inc();
            questions += state.open_questions.len() as u64;
            tasks += u64::from(state.background_count);
            clients += state.clients.len() as u64;
        }
        let name = "windlass_open_sessions";
        let help = "Open sessions by state; `waiting` ones wait for a user";
        sessions.encode(encoder.encode_descriptor(name, help, None, sessions.metric_type())?)?;
        let mut gauge = |name: &str, help: &str, value: u64| {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, gauge.metric_type())?)
        };
        gauge("windlass_open_questions", "Questions that wait for a user", questions)?;
        gauge("windlass_background_tasks", "Background jobs and subagents that run", tasks)?;
        gauge("windlass_session_clients", "Clients that watch a session", clients)?;
        match resident_bytes() {
            Some(bytes) => gauge("process_resident_memory_bytes", "Resident memory", bytes),
            None => Ok(()),
        }
    }
}

/// Returns the resident memory of this process, where the system tells.
fn resident_bytes() -> Option<u64> {
    let content = LoadedProject::read_file(STATUS_FILE, MAX_STATUS_BYTES).ok()?;
    let text = String::from_utf8(content).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

/// Returns the metrics of all hubs, and of the node of a fleet.
pub(super) fn hub_metrics(hubs: &Arc<TenantHubs>, fleet: Option<&Arc<FleetNode>>) -> Registry {
    let mut registry = Registry::default();
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("windlass_build", "Version of Windlass", version);
    registry.register_collector(Box::new(HubMetrics(Arc::downgrade(hubs))));
    if let Some(fleet) = fleet {
        add_fleet_metrics(&mut registry, fleet);
    }
    registry
}
