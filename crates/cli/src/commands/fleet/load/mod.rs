//! Implements `windlass fleet load`: sessions that work on running nodes with a model that costs
//! nothing, and a report of what that took.

mod model;
mod node_metrics;

use crate::args::{LoadArgs, ServerAddressArgs};
use crate::commands::server_connection::connect;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::{Context, bail};
use futures_util::StreamExt;
use model::{LoadModel, PROMPT_PREFIX, SessionTimes};
use node_metrics::{NodeMetrics, quantile_millis};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;
use windlass_engine::new_op_id;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{
    AccessRight, ClientKind, Fact, LogPosition, SessionId, SessionOp, TurnEndReason,
};
use windlass_server::{Caller, FrontendService, RemoteHost, WatchOptions};

/// Number of files that may be open: those of all streams.
const MAX_OPEN_FILES: u64 = 65_536;
/// Time between two looks at the memory of the nodes.
const MEMORY_INTERVAL: Duration = Duration::from_secs(2);
/// Time beyond that of the answers after which a turn has failed.
const MAX_EXTRA_TIME: Duration = Duration::from_secs(300);

/// A node of the test.
struct LoadNode {
    host: RemoteHost,
    before: NodeMetrics,
}

/// The result of one session.
struct SessionResult {
    /// When its prompt was acknowledged.
    prompted_at: Instant,
    failure: Option<String>,
}

/// The result of a load test.
struct LoadReport {
    sessions: u32,
    steps: u32,
    duration: Duration,
    failures: Vec<String>,
    /// Times between a prompt and its first request, and between an answer and the next request.
    first_delays: Vec<Duration>,
    delays: Vec<Duration>,
    repeated_steps: u32,
    peak_memory_bytes: f64,
    metrics: NodeMetrics,
}

/// Runs `windlass fleet load`.
pub(super) async fn run_load(args: LoadArgs) -> anyhow::Result<bool> {
    LoadedProject::raise_open_file_limit(MAX_OPEN_FILES);
    let model = LoadModel::new(args.steps, Duration::from_secs_f64(args.answer_time));
    let (address, serving) = model.listen(&args.listen).await?;
    let config = json!({
        "model": "load/model", "titles": false, "permission": {"edit": "allow"},
        "provider": {"load": {
            "api": "openai-chat", "base_url": format!("http://{address}/v1"), "api_key": "none",
            "models": {"model": {}},
        }},
    });
    if args.node.is_empty() {
        output::print_line(&serde_json::to_string_pretty(&config)?);
        output::print_note(
            "start the nodes with this config, an empty database and a folder for the test; then \
             run this command again with `--node ADDRESS` for each of them",
        );
        return Ok(true);
    }
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = &mut serving => {
            served.context("the model has stopped")?;
            bail!("the model has stopped");
        }
        report = run_sessions(&args, &model) => {
            let report = report?;
            match args.json {
                true => output::print_json(&serde_json::to_string_pretty(&report.to_json())?),
                false => report.print(),
            }
            Ok(report.failures.is_empty())
        }
    }
}

async fn run_sessions(args: &LoadArgs, model: &Arc<LoadModel>) -> anyhow::Result<LoadReport> {
    let (dirs, _) = LoadedProject::find_dirs()?;
    let mut nodes: Vec<Arc<LoadNode>> = Vec::new();
    for address in &args.node {
        let address = ServerAddressArgs {
            address: Some(address.clone()),
            token_file: args.token_file.clone(),
            workspace: None,
        };
        let host = connect(&address, &dirs).await?;
        let before = NodeMetrics::parse(&host.metrics().await?);
        nodes.push(Arc::new(LoadNode { host, before }));
    }
    let start = Instant::now();
    // Sessions begin one after the other, as the first answers take.
    let pause = model.answer_time.max(Duration::from_secs(1)) / args.sessions;
    let mut running = JoinSet::new();
    for (number, node) in (0..args.sessions).zip(nodes.iter().cycle()) {
        let (node, model) = (Arc::clone(node), Arc::clone(model));
        running.spawn(async move {
            tokio::time::sleep_until(start + pause * number).await;
            (number, run_session(&node.host, number, &model).await)
        });
    }
    let memory_before: f64 = nodes.iter().map(|node| node.before.memory_bytes).sum();
    let (mut results, mut peak_memory_bytes) = (Vec::new(), 0.0_f64);
    let mut next_look = Instant::now() + MEMORY_INTERVAL;
    loop {
        tokio::select! {
            joined = running.join_next() => match joined {
                Some(result) => results.push(result?),
                None => break,
            },
            () = tokio::time::sleep_until(next_look) => {
                next_look = Instant::now() + MEMORY_INTERVAL;
                let mut now = 0.0;
                for node in &nodes {
                    now += NodeMetrics::parse(&node.host.metrics().await?).memory_bytes;
                }
                peak_memory_bytes = peak_memory_bytes.max(now - memory_before);
            }
        }
    }
    let mut report = LoadReport {
        sessions: args.sessions,
        steps: args.steps,
        duration: start.elapsed(),
        failures: Vec::new(),
        first_delays: Vec::new(),
        delays: Vec::new(),
        repeated_steps: 0,
        peak_memory_bytes,
        metrics: NodeMetrics::default(),
    };
    for node in &nodes {
        let now = NodeMetrics::parse(&node.host.metrics().await?);
        report.metrics.add_since(&node.before, &now);
    }
    for (number, SessionResult { prompted_at, failure }) in results {
        report.failures.extend(failure.map(|text| format!("session {number}: {text}")));
        let SessionTimes { first_request, delays, repeated, .. } = model.times(number);
        let first = first_request.map(|at| at.saturating_duration_since(prompted_at));
        report.first_delays.extend(first);
        report.delays.extend(delays);
        report.repeated_steps += repeated;
    }
    Ok(report)
}

/// Lets one session work until its turn ends.
async fn run_session(host: &RemoteHost, number: u32, model: &LoadModel) -> SessionResult {
    let limit = model.answer_time * model.steps + MAX_EXTRA_TIME;
    let mut prompted_at = Instant::now();
    let ended = tokio::time::timeout(limit, work(host, number, &mut prompted_at)).await;
    let failure = match ended {
        Ok(Ok(TurnEndReason::Completed)) => None,
        Ok(Ok(reason)) => Some(format!("{reason:?}")),
        Ok(Err(error)) => Some(format!("{error:#}")),
        Err(_) => Some("its turn has not ended in time".to_owned()),
    };
    SessionResult { prompted_at, failure }
}

async fn work(
    host: &RemoteHost,
    number: u32,
    prompted_at: &mut Instant,
) -> anyhow::Result<TurnEndReason> {
    let caller = Caller::new(crate::local_client(ClientKind::Program), AccessRight::Admin);
    let opened = host.request(&caller, FrontendRequest::new_session(None)).await?;
    let HostResponse::SessionOpened { session, .. } = opened else {
        bail!("the session was not opened");
    };
    let op = SessionOp::prompt(format!("{PROMPT_PREFIX}{number}"));
    let request = FrontendRequest::SessionOp { session, id: Some(new_op_id()), op };
    *prompted_at = Instant::now();
    match host.request(&caller, request).await? {
        HostResponse::OpAccepted { .. } => {}
        _ => bail!("the prompt was not accepted"),
    }
    wait_for_turn_end(host, &caller, session).await
}

async fn wait_for_turn_end(
    host: &RemoteHost,
    caller: &Caller,
    session: SessionId,
) -> anyhow::Result<TurnEndReason> {
    let options = WatchOptions { after: Some(LogPosition::START.into()), ..Default::default() };
    let mut items = host.watch_session(caller, session, options).await?;
    while let Some(item) = items.next().await {
        match item {
            SessionStreamItem::Fact(record, _) => {
                if let Fact::TurnEnded { end, .. } = record.fact {
                    return Ok(end);
                }
            }
            SessionStreamItem::Stopped(fault) => bail!("{fault}"),
            _ => {}
        }
    }
    bail!("the events have ended")
}

impl LoadReport {
    fn print(&self) {
        let millis = |times: &[Duration], part| format!("{:.0} ms", quantile(times, part) * 1e3);
        output::print_line(&format!(
            "{} sessions with {} steps in {:.0} s: {} turns failed, {} steps repeated",
            self.sessions,
            self.steps,
            self.duration.as_secs_f64(),
            self.failures.len(),
            self.repeated_steps
        ));
        for (name, times) in [
            ("from a prompt to its first request", &self.first_delays),
            ("from an answer to the next request", &self.delays),
        ] {
            output::print_line(&format!(
                "{name:<36} half {}, 99 % {}, all {}",
                millis(times, 0.5),
                millis(times, 0.99),
                millis(times, 1.0)
            ));
        }
        for (name, times) in
            [("flushed appends", &self.metrics.flushed), ("other appends", &self.metrics.others)]
        {
            let bound = |part| match quantile_millis(times, part) {
                Some(millis) => format!("at most {millis} ms"),
                None => "-".to_owned(),
            };
            output::print_line(&format!(
                "{name:<36} {:.0}/s; half {}, 99 % {}",
                self.per_second(times.values().sum()),
                bound(0.5),
                bound(0.99)
            ));
        }
        output::print_line(&format!(
            "{:<36} {:.2} MB a session",
            "memory of the nodes, at most",
            self.session_memory() / 1e6
        ));
        output::print_line(&format!(
            "{:<36} {:.0} answers lost, {:.0} appends fenced, {:.0} sessions claimed",
            "database", self.metrics.lost_answers, self.metrics.fenced, self.metrics.opened
        ));
        for failure in self.failures.iter().take(10) {
            output::print_error(failure);
        }
    }

    fn to_json(&self) -> serde_json::Value {
        let seconds = |times: &[Duration]| {
            json!({"p50": quantile(times, 0.5), "p99": quantile(times, 0.99),
                "max": quantile(times, 1.0)})
        };
        let appends = |times: &BTreeMap<u64, f64>| {
            json!({"per_second": self.per_second(times.values().sum()),
                "p50_ms": quantile_millis(times, 0.5), "p99_ms": quantile_millis(times, 0.99)})
        };
        json!({
            "sessions": self.sessions, "steps": self.steps,
            "seconds": self.duration.as_secs_f64(),
            "failed_turns": self.failures.len(), "repeated_steps": self.repeated_steps,
            "first_request_seconds": seconds(&self.first_delays),
            "next_request_seconds": seconds(&self.delays),
            "flushed_appends": appends(&self.metrics.flushed),
            "other_appends": appends(&self.metrics.others),
            "memory_bytes_per_session": self.session_memory(),
            "lost_answers": self.metrics.lost_answers,
            "fenced_appends": self.metrics.fenced,
            "failures": self.failures,
        })
    }

    fn per_second(&self, count: f64) -> f64 {
        count / self.duration.as_secs_f64()
    }

    fn session_memory(&self) -> f64 {
        self.peak_memory_bytes / f64::from(self.sessions)
    }
}

/// Returns the time in seconds that a part of the times does not exceed.
fn quantile(times: &[Duration], part: f64) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().saturating_sub(1);
    let at = (last as f64 * part).ceil() as usize;
    sorted.get(at).map_or(0.0, Duration::as_secs_f64)
}
