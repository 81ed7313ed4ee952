//! OpenTelemetry export of a session: one trace per turn, and usage metrics of its steps.
//!
//! It is a fold of the log, so no session code knows about it. All attribute names of the GenAI
//! semantic conventions are in this module. It exports names, times, numbers and outcomes, but no
//! text of prompts, answers, files or commands.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use windlass_protocol::{
    CallId, CallOutcome, Fact, FactRecord, FinishReason, HookPoint, SessionId, TokenUsage,
    TurnEndReason, UnixMillis,
};

const GEN_AI_OPERATION_NAME: &str = "gen_ai.operation.name";
const GEN_AI_PROVIDER_NAME: &str = "gen_ai.provider.name";
const GEN_AI_CONVERSATION_ID: &str = "gen_ai.conversation.id";
const GEN_AI_AGENT_NAME: &str = "gen_ai.agent.name";
const GEN_AI_REQUEST_MODEL: &str = "gen_ai.request.model";
const GEN_AI_USAGE_INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const GEN_AI_USAGE_OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
const GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
const GEN_AI_RESPONSE_FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
const GEN_AI_TOOL_NAME: &str = "gen_ai.tool.name";
const GEN_AI_TOOL_CALL_ID: &str = "gen_ai.tool.call.id";
const GEN_AI_TOKEN_TYPE: &str = "gen_ai.token.type";
const ERROR_TYPE: &str = "error.type";
const GEN_AI_CLIENT_TOKEN_USAGE: &str = "gen_ai.client.token.usage";
const GEN_AI_CLIENT_OPERATION_DURATION: &str = "gen_ai.client.operation.duration";
const HOOK_NAME: &str = "windlass.hook.name";
const HOOK_POINT: &str = "windlass.hook.point";
const HOOK_VERDICT: &str = "windlass.hook.verdict";
const HOOK_DURATION: &str = "windlass.hook.duration";

/// Bucket bounds recommended by the semantic conventions.
const TOKEN_BUCKET_BOUNDS: &[f64] = &[
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
const DURATION_BUCKET_BOUNDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// Maximum number of spans kept until the next report; further ones are dropped.
const MAX_PENDING_SPANS: usize = 10_000;

/// Open and finished spans and metrics of a session that have not been reported yet.
#[derive(Debug)]
pub struct SessionTelemetry {
    /// Resource attributes of the reports.
    resource: Vec<(String, String)>,
    agent: String,
    open_turn: Option<(u32, SpanStart)>,
    open_step: Option<(String, SpanStart)>,
    open_calls: HashMap<CallId, (String, SpanStart)>,
    spans: Vec<Value>,
    window_start: Option<UnixMillis>,
    window_end: UnixMillis,
    token_histograms: BTreeMap<(String, &'static str), Histogram>,
    duration_histograms: BTreeMap<String, Histogram>,
    hook_histograms: BTreeMap<(String, HookPoint, &'static str), Histogram>,
}

/// Start of a span; the `seq` of its fact is the span id.
#[derive(Clone, Copy, Debug)]
struct SpanStart {
    seq: u64,
    at: UnixMillis,
}

/// Request bodies for the two endpoints of a collector.
#[derive(Clone, Debug, PartialEq)]
pub struct TelemetryReport {
    /// Body for `/v1/traces`.
    pub traces: Value,
    /// Body for `/v1/metrics`.
    pub metrics: Value,
}

/// A histogram with explicit bounds.
#[derive(Debug)]
struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Histogram {
        Histogram { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    fn record(&mut self, number: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < number);
        if let Some(count) = self.counts.get_mut(bucket) {
            *count += 1;
        }
        self.sum += number;
    }
}

fn string_attribute(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

fn int_attribute(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": value.to_string()}})
}

fn unix_nanos(at: UnixMillis) -> String {
    format!("{}000000", at.0)
}

impl SessionTelemetry {
    /// Creates an empty collector with these resource attributes.
    pub fn new(resource: Vec<(String, String)>) -> SessionTelemetry {
        SessionTelemetry {
            resource,
            agent: String::new(),
            open_turn: None,
            open_step: None,
            open_calls: HashMap::new(),
            spans: Vec::new(),
            window_start: None,
            window_end: UnixMillis(0),
            token_histograms: BTreeMap::new(),
            duration_histograms: BTreeMap::new(),
            hook_histograms: BTreeMap::new(),
        }
    }

    /// Applies the next fact.
    pub fn push(&mut self, record: &FactRecord) {
        let start = SpanStart { seq: record.seq, at: record.at };
        self.window_start.get_or_insert(record.at);
        self.window_end = record.at;
        match &record.fact {
            Fact::SessionOpened { agent, .. } => self.agent.clone_from(agent),
            Fact::TurnStarted { turn, .. } => self.open_turn = Some((*turn, start)),
            Fact::StepStarted { model, .. } => self.open_step = Some((model.clone(), start)),
            Fact::StepEnded { finish_reason, usage, .. } => {
                self.end_step(record, finish_reason, usage)
            }
            Fact::SideRequestEnded { model, usage, .. } => self.record_tokens(model, usage),
            Fact::ToolCalled { call, tool, .. } => {
                self.open_calls.insert(*call, (tool.clone(), start));
            }
            Fact::CallStarted { call, .. } => {
                if let Some((_, call_start)) = self.open_calls.get_mut(call) {
                    *call_start = start;
                }
            }
            Fact::CallSettled { call, outcome, .. } => self.end_call(record, *call, outcome),
            Fact::TurnEnded { end, .. } => self.end_turn(record, end),
            Fact::SystemPromptSet { .. }
            | Fact::ModeChanged { .. }
            | Fact::AgentChanged { .. }
            | Fact::ModelChanged { .. }
            | Fact::OutputsPruned { .. }
            | Fact::ApprovalsRevoked
            | Fact::PromptSteered { .. }
            | Fact::QuestionAsked { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::SubagentStarted { .. }
            | Fact::SessionRenamed { .. }
            | Fact::SessionForked { .. }
            | Fact::ContextCompacted { .. }
            | Fact::Rewound { .. }
            | Fact::PromptWithdrawn { .. }
            | Fact::PromptSubmitted { .. }
            | Fact::StepRetrying { .. }
            | Fact::TurnInterrupted { .. }
            | Fact::ModelText { .. }
            | Fact::ModelReasoning { .. }
            | Fact::PermissionAsked { .. }
            | Fact::PermissionAnswered { .. }
            | Fact::FilesChanging { .. }
            | Fact::FilesUnchanged { .. }
            | Fact::ContextChanged { .. }
            | Fact::FactsLost { .. } => {}
            Fact::HookRan { hook, point, duration_ms, verdict, .. } => {
                let entry = self.hook_histograms.entry((hook.clone(), *point, verdict.name()));
                let seconds = *duration_ms as f64 / 1e3;
                entry.or_insert_with(|| Histogram::new(DURATION_BUCKET_BOUNDS)).record(seconds);
            }
        }
    }

    fn end_step(&mut self, record: &FactRecord, finish: &FinishReason, usage: &TokenUsage) {
        let Some((model, start)) = self.open_step.take() else { return };
        let (provider, id) = model.split_once('/').unwrap_or(("", &model));
        let (reason, error) = match finish {
            FinishReason::Stop => ("stop", None),
            FinishReason::ToolCalls => ("tool_calls", None),
            FinishReason::Length => ("length", None),
            FinishReason::ContentFiltered => ("content_filter", None),
            FinishReason::Interrupted => ("interrupted", Some("interrupted".to_owned())),
            FinishReason::Failed { fault } => ("error", Some(variant_tag(fault, "fault"))),
            FinishReason::ProcessDied => ("error", Some("lost".to_owned())),
        };
        let mut attributes = vec![
            string_attribute(GEN_AI_OPERATION_NAME, "chat"),
            string_attribute(GEN_AI_PROVIDER_NAME, provider),
            string_attribute(GEN_AI_REQUEST_MODEL, id),
            json!({"key": GEN_AI_RESPONSE_FINISH_REASONS, "value": {"arrayValue": {"values": [{"stringValue": reason}]}}}),
        ];
        if error.is_none() {
            attributes.push(int_attribute(GEN_AI_USAGE_INPUT_TOKENS, usage.input));
            attributes.push(int_attribute(GEN_AI_USAGE_OUTPUT_TOKENS, usage.output));
            attributes.push(int_attribute(GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS, usage.cache_reads));
            attributes
                .push(int_attribute(GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS, usage.cache_writes));
            self.record_tokens(&model, usage);
        }
        let seconds = record.at.0.saturating_sub(start.at.0) as f64 / 1e3;
        let entry = self.duration_histograms.entry(model.clone());
        entry.or_insert_with(|| Histogram::new(DURATION_BUCKET_BOUNDS)).record(seconds);
        let name = format!("chat {id}");
        self.add_span(record, start, &name, 3, (attributes, error));
    }

    fn record_tokens(&mut self, model: &str, usage: &TokenUsage) {
        for (kind, count) in [("input", usage.input), ("output", usage.output)] {
            let entry = self.token_histograms.entry((model.to_owned(), kind));
            entry.or_insert_with(|| Histogram::new(TOKEN_BUCKET_BOUNDS)).record(count as f64);
        }
    }

    fn end_call(&mut self, record: &FactRecord, call: CallId, outcome: &CallOutcome) {
        let Some((tool, start)) = self.open_calls.remove(&call) else { return };
        let attributes = vec![
            string_attribute(GEN_AI_OPERATION_NAME, "execute_tool"),
            string_attribute(GEN_AI_TOOL_NAME, &tool),
            string_attribute(GEN_AI_TOOL_CALL_ID, &call.0.to_string()),
        ];
        let error = match outcome {
            CallOutcome::Completed { .. } => None,
            CallOutcome::Failed { .. } => Some("failed"),
            CallOutcome::Denied { .. } => Some("denied"),
            CallOutcome::Interrupted { .. } => Some("interrupted"),
            CallOutcome::ResultUnknown => Some("unknown"),
        };
        let name = format!("execute_tool {tool}");
        self.add_span(record, start, &name, 1, (attributes, error.map(str::to_owned)));
    }

    fn end_turn(&mut self, record: &FactRecord, end: &TurnEndReason) {
        let Some((_, start)) = &self.open_turn else { return };
        let start = *start;
        let error = match end {
            TurnEndReason::Completed => None,
            TurnEndReason::Failed { fault } => Some(variant_tag(fault, "fault")),
            TurnEndReason::Interrupted => Some("interrupted".into()),
            TurnEndReason::Denied => Some("denied".into()),
            TurnEndReason::LimitReached { .. } => Some("limit".into()),
            TurnEndReason::LoopDetected { .. } => Some("looped".into()),
        };
        let attributes = vec![
            string_attribute(GEN_AI_OPERATION_NAME, "invoke_agent"),
            string_attribute(GEN_AI_AGENT_NAME, &self.agent),
        ];
        let name = format!("invoke_agent {}", self.agent);
        self.add_span(record, start, name.trim_end(), 1, (attributes, error));
        self.open_turn = None;
    }

    /// Adds a span that ends with this record.
    fn add_span(
        &mut self,
        record: &FactRecord,
        start: SpanStart,
        name: &str,
        kind: u8,
        (mut attributes, error): (Vec<Value>, Option<String>),
    ) {
        if self.spans.len() >= MAX_PENDING_SPANS {
            return;
        }
        let (turn, root) = self.open_turn.map_or((0, None), |(turn, root)| (turn, Some(root.seq)));
        attributes.push(string_attribute(GEN_AI_CONVERSATION_ID, &record.session.to_string()));
        attributes.extend(error.as_deref().map(|error| string_attribute(ERROR_TYPE, error)));
        let mut span = Map::new();
        span.insert("traceId".into(), trace_id(record.session, turn).into());
        span.insert("spanId".into(), format!("{:016x}", start.seq).into());
        if let Some(parent) = root.filter(|root| *root != start.seq) {
            span.insert("parentSpanId".into(), format!("{parent:016x}").into());
        }
        span.insert("name".into(), name.into());
        span.insert("kind".into(), kind.into());
        span.insert("startTimeUnixNano".into(), unix_nanos(start.at).into());
        span.insert("endTimeUnixNano".into(), unix_nanos(record.at).into());
        span.insert("attributes".into(), attributes.into());
        span.insert("status".into(), json!({"code": if error.is_some() { 2 } else { 1 }}));
        self.spans.push(span.into());
    }

    /// Returns the spans and metrics since the last `TelemetryReport`, or `None` if no span has
    /// ended.
    pub fn take_report(&mut self) -> Option<TelemetryReport> {
        if self.spans.is_empty() {
            return None;
        }
        let attributes = self.resource.iter().map(|(key, value)| string_attribute(key, value));
        let resource = json!({"attributes": attributes.collect::<Vec<_>>()});
        let scope = json!({"name": "windlass", "version": env!("CARGO_PKG_VERSION")});
        let spans = std::mem::take(&mut self.spans);
        let metrics = self.take_metrics();
        self.window_start = None;
        Some(TelemetryReport {
            traces: json!({"resourceSpans": [
                {"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}
            ]}),
            metrics: json!({"resourceMetrics": [
                {"resource": resource, "scopeMetrics": [{"scope": scope, "metrics": metrics}]}
            ]}),
        })
    }

    fn take_metrics(&mut self) -> Value {
        let (since, until) =
            (unix_nanos(self.window_start.unwrap_or(self.window_end)), unix_nanos(self.window_end));
        let data_point = |histogram: Histogram, attributes: Vec<Value>| {
            let counts: Vec<String> = histogram.counts.iter().map(u64::to_string).collect();
            json!({
                "startTimeUnixNano": since,
                "timeUnixNano": until,
                "count": histogram.counts.iter().sum::<u64>().to_string(),
                "sum": histogram.sum,
                "bucketCounts": counts,
                "explicitBounds": histogram.bounds,
                "attributes": attributes,
            })
        };
        let model_attributes = |model: &str, extra: Option<Value>| {
            let (provider, id) = model.split_once('/').unwrap_or(("", model));
            let mut attributes = vec![
                string_attribute(GEN_AI_OPERATION_NAME, "chat"),
                string_attribute(GEN_AI_PROVIDER_NAME, provider),
            ];
            attributes.push(string_attribute(GEN_AI_REQUEST_MODEL, id));
            attributes.extend(extra);
            attributes
        };
        let tokens: Vec<Value> = std::mem::take(&mut self.token_histograms)
            .into_iter()
            .map(|((model, kind), histogram)| {
                let token_type = string_attribute(GEN_AI_TOKEN_TYPE, kind);
                data_point(histogram, model_attributes(&model, Some(token_type)))
            })
            .collect();
        let seconds: Vec<Value> = std::mem::take(&mut self.duration_histograms)
            .into_iter()
            .map(|(model, histogram)| data_point(histogram, model_attributes(&model, None)))
            .collect();
        // Delta temporality (1): values count from the last report on.
        let histogram = |points| json!({"aggregationTemporality": 1, "dataPoints": points});
        let mut metrics = vec![
            json!({"name": GEN_AI_CLIENT_TOKEN_USAGE, "unit": "{token}", "histogram": histogram(tokens)}),
            json!({"name": GEN_AI_CLIENT_OPERATION_DURATION, "unit": "s", "histogram": histogram(seconds)}),
        ];
        let hook_data_point =
            |((hook, hook_point, verdict), histogram): ((String, HookPoint, &str), Histogram)| {
                let attributes = vec![
                    string_attribute(HOOK_NAME, &hook),
                    string_attribute(HOOK_POINT, hook_point.name()),
                    string_attribute(HOOK_VERDICT, verdict),
                ];
                data_point(histogram, attributes)
            };
        let hooks: Vec<Value> =
            std::mem::take(&mut self.hook_histograms).into_iter().map(hook_data_point).collect();
        if !hooks.is_empty() {
            let histogram = histogram(hooks);
            metrics.push(json!({"name": HOOK_DURATION, "unit": "s", "histogram": histogram}));
        }
        metrics.into()
    }
}

/// Returns the serialized `tag` of one of our enums, which are closed sets; `_OTHER` if it has
/// none.
fn variant_tag(value: &impl serde::Serialize, tag: &str) -> String {
    let json = serde_json::to_value(value).unwrap_or_default();
    json.get(tag).and_then(Value::as_str).unwrap_or("_OTHER").to_owned()
}

/// Returns the trace id: the session id XOR the turn number, which affects its last digits.
fn trace_id(session: SessionId, turn: u32) -> String {
    format!("{:032x}", session.0.as_u128() ^ u128::from(turn))
}

#[cfg(test)]
mod tests;
