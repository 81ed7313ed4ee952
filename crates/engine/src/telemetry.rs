//! A session as OpenTelemetry tells it: a trace a turn, and what its steps used.
//!
//! It is a fold of the log like everything else, so that nothing in a session knows it is watched.
//! All attribute names of the GenAI conventions are in this module. Nothing that was said, read or
//! written is told: names, times, numbers and how things ended are.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use windlass_protocol::{
    CallId, Fact, Finish, Millis, Outcome, Point, Record, SessionId, TurnEnd, Usage,
};

const OPERATION: &str = "gen_ai.operation.name";
const PROVIDER: &str = "gen_ai.provider.name";
const CONVERSATION: &str = "gen_ai.conversation.id";
const AGENT: &str = "gen_ai.agent.name";
const MODEL: &str = "gen_ai.request.model";
const INPUT: &str = "gen_ai.usage.input_tokens";
const OUTPUT: &str = "gen_ai.usage.output_tokens";
const CACHED: &str = "gen_ai.usage.cache_read.input_tokens";
const CACHE_WRITES: &str = "gen_ai.usage.cache_creation.input_tokens";
const FINISH: &str = "gen_ai.response.finish_reasons";
const TOOL: &str = "gen_ai.tool.name";
const CALL: &str = "gen_ai.tool.call.id";
const TOKEN_KIND: &str = "gen_ai.token.type";
const ERROR: &str = "error.type";
const TOKENS: &str = "gen_ai.client.token.usage";
const DURATION: &str = "gen_ai.client.operation.duration";
const HOOK: &str = "windlass.hook.name";
const HOOK_POINT: &str = "windlass.hook.point";
const HOOK_VERDICT: &str = "windlass.hook.verdict";
const HOOK_DURATION: &str = "windlass.hook.duration";

/// The bounds the conventions advise.
const TOKEN_BOUNDS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const SECOND_BOUNDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// So many spans are kept until they are taken; what comes after is not told.
const MOST_SPANS: usize = 10_000;

/// What has been seen of a session, and what of it has not been told yet.
#[derive(Debug)]
pub struct Telemetry {
    /// Who tells, as attributes of the resource.
    resource: Vec<(String, String)>,
    agent: String,
    turn: Option<(u32, Begun)>,
    step: Option<(String, Begun)>,
    calls: HashMap<CallId, (String, Begun)>,
    spans: Vec<Value>,
    since: Option<Millis>,
    until: Millis,
    tokens: BTreeMap<(String, &'static str), Spread>,
    seconds: BTreeMap<String, Spread>,
    hooks: BTreeMap<(String, Point, &'static str), Spread>,
}

/// Where something began: the fact's position names its span.
#[derive(Clone, Copy, Debug)]
struct Begun {
    seq: u64,
    at: Millis,
}

/// What is told: bodies for the two addresses of a collector.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// For `/v1/traces`.
    pub traces: Value,
    /// For `/v1/metrics`.
    pub metrics: Value,
}

/// Numbers, as a histogram tells them.
#[derive(Debug)]
struct Spread {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl Spread {
    fn new(bounds: &'static [f64]) -> Spread {
        Spread { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    fn add(&mut self, number: f64) {
        let place = self.bounds.partition_point(|bound| *bound < number);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.sum += number;
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn nanos(at: Millis) -> String {
    format!("{}000000", at.0)
}

impl Telemetry {
    /// Nothing seen yet. The resource says who tells.
    pub fn new(resource: Vec<(String, String)>) -> Telemetry {
        Telemetry {
            resource,
            agent: String::new(),
            turn: None,
            step: None,
            calls: HashMap::new(),
            spans: Vec::new(),
            since: None,
            until: Millis(0),
            tokens: BTreeMap::new(),
            seconds: BTreeMap::new(),
            hooks: BTreeMap::new(),
        }
    }

    /// Takes in the next fact.
    pub fn push(&mut self, record: &Record) {
        let begun = Begun { seq: record.seq, at: record.at };
        self.since.get_or_insert(record.at);
        self.until = record.at;
        match &record.fact {
            Fact::Opened { agent, .. } => self.agent.clone_from(agent),
            Fact::TurnStarted { turn, .. } => self.turn = Some((*turn, begun)),
            Fact::StepStarted { model, .. } => self.step = Some((model.clone(), begun)),
            Fact::StepEnded { finish, usage, .. } => self.step_ended(record, finish, usage),
            Fact::Called { call, tool, .. } => {
                self.calls.insert(*call, (tool.clone(), begun));
            }
            Fact::Started { call, .. } => {
                if let Some((_, since)) = self.calls.get_mut(call) {
                    *since = begun;
                }
            }
            Fact::Settled { call, outcome, .. } => self.settled(record, *call, outcome),
            Fact::TurnEnded { end, .. } => self.turn_ended(record, end),
            Fact::Briefed { .. }
            | Fact::ModeChanged { .. }
            | Fact::Pruned { .. }
            | Fact::Steered { .. }
            | Fact::Inquired { .. }
            | Fact::Replied { .. }
            | Fact::Spawned { .. }
            | Fact::Renamed { .. }
            | Fact::Forked { .. }
            | Fact::Compacted { .. }
            | Fact::Reverted { .. }
            | Fact::Withdrawn { .. }
            | Fact::Prompted { .. }
            | Fact::Retrying { .. }
            | Fact::Interrupted { .. }
            | Fact::Said { .. }
            | Fact::Reasoned { .. }
            | Fact::Asked { .. }
            | Fact::Answered { .. }
            | Fact::Changing { .. }
            | Fact::Unchanged { .. }
            | Fact::ContextChanged { .. } => {}
            Fact::Hooked { hook, point, took_ms, verdict, .. } => {
                let spread = self.hooks.entry((hook.clone(), *point, verdict.word()));
                let seconds = *took_ms as f64 / 1e3;
                spread.or_insert_with(|| Spread::new(SECOND_BOUNDS)).add(seconds);
            }
        }
    }

    fn step_ended(&mut self, record: &Record, finish: &Finish, usage: &Usage) {
        let Some((model, begun)) = self.step.take() else { return };
        let (provider, id) = model.split_once('/').unwrap_or(("", &model));
        let (reason, error) = match finish {
            Finish::Stop => ("stop", None),
            Finish::Calls => ("tool_calls", None),
            Finish::Length => ("length", None),
            Finish::Filtered => ("content_filter", None),
            Finish::Interrupted => ("interrupted", Some("interrupted".to_owned())),
            Finish::Failed { fault } => ("error", Some(kind(fault, "fault"))),
            Finish::Lost => ("error", Some("lost".to_owned())),
        };
        let mut attributes = vec![
            text(OPERATION, "chat"),
            text(PROVIDER, provider),
            text(MODEL, id),
            json!({"key": FINISH, "value": {"arrayValue": {"values": [{"stringValue": reason}]}}}),
        ];
        if error.is_none() {
            attributes.push(number(INPUT, usage.input));
            attributes.push(number(OUTPUT, usage.output));
            attributes.push(number(CACHED, usage.cached));
            attributes.push(number(CACHE_WRITES, usage.cache_writes));
            for (kind, count) in [("input", usage.input), ("output", usage.output)] {
                let spread = self.tokens.entry((model.clone(), kind));
                spread.or_insert_with(|| Spread::new(TOKEN_BOUNDS)).add(count as f64);
            }
        }
        let seconds = record.at.0.saturating_sub(begun.at.0) as f64 / 1e3;
        let spread = self.seconds.entry(model.clone());
        spread.or_insert_with(|| Spread::new(SECOND_BOUNDS)).add(seconds);
        let name = format!("chat {id}");
        self.span(record, begun, &name, 3, (attributes, error));
    }

    fn settled(&mut self, record: &Record, call: CallId, outcome: &Outcome) {
        let Some((tool, begun)) = self.calls.remove(&call) else { return };
        let attributes = vec![
            text(OPERATION, "execute_tool"),
            text(TOOL, &tool),
            text(CALL, &call.0.to_string()),
        ];
        let error = match outcome {
            Outcome::Completed { .. } => None,
            Outcome::Failed { .. } => Some("failed"),
            Outcome::Denied { .. } => Some("denied"),
            Outcome::Interrupted { .. } => Some("interrupted"),
            Outcome::Unknown => Some("unknown"),
        };
        let name = format!("execute_tool {tool}");
        self.span(record, begun, &name, 1, (attributes, error.map(str::to_owned)));
    }

    fn turn_ended(&mut self, record: &Record, end: &TurnEnd) {
        let Some((_, begun)) = &self.turn else { return };
        let begun = *begun;
        let error = match end {
            TurnEnd::Done => None,
            TurnEnd::Failed { fault } => Some(kind(fault, "fault")),
            TurnEnd::Interrupted => Some("interrupted".into()),
            TurnEnd::Denied => Some("denied".into()),
            TurnEnd::Limit { .. } => Some("limit".into()),
            TurnEnd::Looped { .. } => Some("looped".into()),
        };
        let attributes = vec![text(OPERATION, "invoke_agent"), text(AGENT, &self.agent)];
        let name = format!("invoke_agent {}", self.agent);
        self.span(record, begun, name.trim_end(), 1, (attributes, error));
        self.turn = None;
    }

    /// Something has ended with this record.
    fn span(
        &mut self,
        record: &Record,
        begun: Begun,
        name: &str,
        kind: u8,
        (mut attributes, error): (Vec<Value>, Option<String>),
    ) {
        if self.spans.len() >= MOST_SPANS {
            return;
        }
        let (turn, top) = self.turn.map_or((0, None), |(turn, top)| (turn, Some(top.seq)));
        attributes.push(text(CONVERSATION, &record.session.to_string()));
        attributes.extend(error.as_deref().map(|error| text(ERROR, error)));
        let mut span = Map::new();
        span.insert("traceId".into(), trace(record.session, turn).into());
        span.insert("spanId".into(), format!("{:016x}", begun.seq).into());
        if let Some(parent) = top.filter(|top| *top != begun.seq) {
            span.insert("parentSpanId".into(), format!("{parent:016x}").into());
        }
        span.insert("name".into(), name.into());
        span.insert("kind".into(), kind.into());
        span.insert("startTimeUnixNano".into(), nanos(begun.at).into());
        span.insert("endTimeUnixNano".into(), nanos(record.at).into());
        span.insert("attributes".into(), attributes.into());
        span.insert("status".into(), json!({"code": if error.is_some() { 2 } else { 1 }}));
        self.spans.push(span.into());
    }

    /// What there is to tell since it was last taken; `None` if there is nothing.
    pub fn take(&mut self) -> Option<Report> {
        if self.spans.is_empty() {
            return None;
        }
        let attributes = self.resource.iter().map(|(key, value)| text(key, value));
        let resource = json!({"attributes": attributes.collect::<Vec<_>>()});
        let scope = json!({"name": "windlass", "version": env!("CARGO_PKG_VERSION")});
        let spans = std::mem::take(&mut self.spans);
        let metrics = self.metrics();
        self.since = None;
        Some(Report {
            traces: json!({"resourceSpans": [
                {"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}
            ]}),
            metrics: json!({"resourceMetrics": [
                {"resource": resource, "scopeMetrics": [{"scope": scope, "metrics": metrics}]}
            ]}),
        })
    }

    fn metrics(&mut self) -> Value {
        let (since, until) = (nanos(self.since.unwrap_or(self.until)), nanos(self.until));
        let point = |spread: Spread, attributes: Vec<Value>| {
            let counts: Vec<String> = spread.counts.iter().map(u64::to_string).collect();
            json!({
                "startTimeUnixNano": since,
                "timeUnixNano": until,
                "count": spread.counts.iter().sum::<u64>().to_string(),
                "sum": spread.sum,
                "bucketCounts": counts,
                "explicitBounds": spread.bounds,
                "attributes": attributes,
            })
        };
        let asked = |model: &str, more: Option<Value>| {
            let (provider, id) = model.split_once('/').unwrap_or(("", model));
            let mut attributes = vec![text(OPERATION, "chat"), text(PROVIDER, provider)];
            attributes.push(text(MODEL, id));
            attributes.extend(more);
            attributes
        };
        let tokens: Vec<Value> = std::mem::take(&mut self.tokens)
            .into_iter()
            .map(|((model, kind), spread)| {
                point(spread, asked(&model, Some(text(TOKEN_KIND, kind))))
            })
            .collect();
        let seconds: Vec<Value> = std::mem::take(&mut self.seconds)
            .into_iter()
            .map(|(model, spread)| point(spread, asked(&model, None)))
            .collect();
        // What is told counts from the last time on.
        let histogram = |points| json!({"aggregationTemporality": 1, "dataPoints": points});
        let mut metrics = vec![
            json!({"name": TOKENS, "unit": "{token}", "histogram": histogram(tokens)}),
            json!({"name": DURATION, "unit": "s", "histogram": histogram(seconds)}),
        ];
        let fired = |((hook, at, verdict), spread): ((String, Point, &str), Spread)| {
            let at = text(HOOK_POINT, at.name());
            point(spread, vec![text(HOOK, &hook), at, text(HOOK_VERDICT, verdict)])
        };
        let hooks: Vec<Value> = std::mem::take(&mut self.hooks).into_iter().map(fired).collect();
        if !hooks.is_empty() {
            let histogram = histogram(hooks);
            metrics.push(json!({"name": HOOK_DURATION, "unit": "s", "histogram": histogram}));
        }
        metrics.into()
    }
}

/// The name a closed set of ours has for something.
fn kind(value: &impl serde::Serialize, tag: &str) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.get(tag).and_then(Value::as_str).unwrap_or("_OTHER").to_owned()
}

/// A trace's name: the session's, and the turn's number in its last digits.
fn trace(session: SessionId, turn: u32) -> String {
    format!("{:032x}", session.0.as_u128() ^ u128::from(turn))
}

#[cfg(test)]
mod tests;
