//! Tests of `SessionTelemetry`: spans, metrics and the absence of private text.

use super::{MAX_PENDING_SPANS, SessionTelemetry, TelemetryReport};
use serde_json::Value;
use uuid::Uuid;
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Fact, FactRecord, Fault, FinishReason, HookPoint, HookVerdict,
    SessionId, TokenUsage, TurnEndReason, UnixMillis,
};

/// Pushes facts, one every 100 ms.
fn push_facts(telemetry: &mut SessionTelemetry, from: u64, facts: Vec<Fact>) {
    for (seq, fact) in (from..).zip(facts) {
        let session = SessionId(Uuid::from_u128(0xa0));
        telemetry.push(&FactRecord::new(session, seq, UnixMillis(seq * 100), fact));
    }
}

fn step_started(step: u32) -> Fact {
    let (model, purpose) = ("p/m".into(), Default::default());
    Fact::StepStarted { turn: 1, step, model, purpose }
}

fn step_ended(step: u32, finish: FinishReason, input: u64) -> Fact {
    let usage = TokenUsage { input, output: 20, ..TokenUsage::default() };
    Fact::StepEnded { turn: 1, step, finish_reason: finish, usage, cost: None }
}

fn tool_called(number: u128) -> Fact {
    Fact::ToolCalled {
        description: windlass_protocol::CallDescription::default(),
        call: CallId(Uuid::from_u128(number)),
        provider_call_id: "r".into(),
        tool: "read".into(),
        arguments: "{\"path\": \"private\"}".into(),
        author: CallAuthor::Model,
        repair: Vec::new(),
        provider_signature: None,
    }
}

fn call_settled(number: u128, outcome: CallOutcome) -> Fact {
    Fact::CallSettled { call: CallId(Uuid::from_u128(number)), outcome, seen_files: Vec::new() }
}

fn spans(report: &TelemetryReport) -> Vec<Value> {
    report.traces["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

fn attribute<'a>(item: &'a Value, key: &str) -> &'a Value {
    let attributes = item["attributes"].as_array().unwrap();
    attributes.iter().find(|one| one["key"] == key).map_or(&Value::Null, |one| &one["value"])
}

#[test]
fn a_turn_is_a_trace_without_private_text() {
    let mut telemetry = SessionTelemetry::new(vec![("service.name".into(), "w".into())]);
    let fault = Fault::Network { message: "private".into() };
    push_facts(
        &mut telemetry,
        1,
        vec![
            Fact::session_opened("/private", "0"),
            Fact::TurnStarted { turn: 1, prompt: None },
            step_started(1),
            tool_called(7),
            step_ended(1, FinishReason::ToolCalls, 100),
            call_settled(7, CallOutcome::Failed { text: "private".into() }),
            step_started(2),
            step_ended(2, FinishReason::Failed { fault }, 0),
            step_started(3),
            Fact::ModelText { text: "private".into(), provider_signature: None },
            step_ended(3, FinishReason::Stop, 5_000),
            Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed },
        ],
    );
    let report = telemetry.take_report().unwrap();
    let spans = spans(&report);
    let names: Vec<&str> = spans.iter().map(|span| span["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["chat m", "execute_tool read", "chat m", "chat m", "invoke_agent build"]);
    let (top, children) = spans.split_last().unwrap();
    assert!(top.get("parentSpanId").is_none());
    for child in children {
        assert_eq!(child["parentSpanId"], top["spanId"]);
        assert_eq!(child["traceId"], top["traceId"]);
    }
    assert_eq!(
        (top["startTimeUnixNano"].as_str(), top["endTimeUnixNano"].as_str()),
        (Some("200000000"), Some("1200000000"))
    );
    assert_eq!(attribute(&spans[0], "gen_ai.usage.input_tokens")["intValue"], "100");
    assert_eq!(attribute(&spans[0], "gen_ai.provider.name")["stringValue"], "p");
    assert_eq!(attribute(&spans[1], "error.type")["stringValue"], "failed");
    assert_eq!(attribute(&spans[2], "error.type")["stringValue"], "network");
    assert_eq!(*attribute(&spans[2], "gen_ai.usage.input_tokens"), Value::Null, "usage is unknown");
    assert_eq!((&spans[1]["status"]["code"], &spans[3]["status"]["code"]), (&2.into(), &1.into()));
    assert!(!format!("{report:?}").contains("private"));

    let metrics = &report.metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let tokens = &metrics[0]["histogram"]["dataPoints"];
    assert_eq!(metrics[0]["name"], "gen_ai.client.token.usage");
    assert_eq!((&tokens[0]["count"], &tokens[0]["sum"]), (&"2".into(), &5_100.0.into()));
    let counts = tokens[0]["bucketCounts"].as_array().unwrap();
    let bounds = tokens[0]["explicitBounds"].as_array().unwrap();
    assert_eq!(counts.len(), bounds.len() + 1);
    assert_eq!(
        metrics[1]["histogram"]["dataPoints"][0]["count"], "3",
        "failed requests are counted"
    );
}

#[test]
fn a_report_contains_only_new_data() {
    let mut telemetry = SessionTelemetry::new(Vec::new());
    assert_eq!(telemetry.take_report(), None);
    push_facts(&mut telemetry, 1, vec![step_started(1), step_ended(1, FinishReason::Stop, 1)]);
    assert_eq!(spans(&telemetry.take_report().unwrap()).len(), 1);
    assert_eq!(telemetry.take_report(), None);
    push_facts(&mut telemetry, 3, vec![step_started(2), step_ended(2, FinishReason::Stop, 1)]);
    let report = telemetry.take_report().unwrap();
    let metrics = &report.metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert_eq!(metrics[0]["histogram"]["dataPoints"][0]["count"], "1");
}

#[test]
fn ends_without_a_start_are_ignored_and_pending_spans_are_limited() {
    let mut telemetry = SessionTelemetry::new(Vec::new());
    let facts = vec![
        step_ended(1, FinishReason::Stop, 1),
        call_settled(1, CallOutcome::ResultUnknown),
        Fact::TurnEnded { turn: 1, end: TurnEndReason::Completed },
    ];
    push_facts(&mut telemetry, 1, facts);
    assert_eq!(telemetry.take_report(), None);
    for round in 0..MAX_PENDING_SPANS as u64 + 10 {
        push_facts(
            &mut telemetry,
            4 + 2 * round,
            vec![step_started(1), step_ended(1, FinishReason::Stop, u64::MAX)],
        );
    }
    assert_eq!(spans(&telemetry.take_report().unwrap()).len(), MAX_PENDING_SPANS);
}

#[test]
fn hooks_are_reported_by_name_point_and_verdict_without_the_reason() {
    let mut telemetry = SessionTelemetry::new(Vec::new());
    let hook_ran = |duration_ms, verdict| Fact::HookRan {
        call: None,
        hook: "guard".into(),
        point: HookPoint::Prompt,
        duration_ms,
        verdict,
    };
    let refused = HookVerdict::Refused { reason: "private".into() };
    let facts =
        vec![step_started(1), hook_ran(30, HookVerdict::Passed), hook_ran(50, HookVerdict::Passed)];
    push_facts(&mut telemetry, 1, facts);
    push_facts(&mut telemetry, 4, vec![hook_ran(0, refused), step_ended(1, FinishReason::Stop, 1)]);
    let report = telemetry.take_report().unwrap();
    let metrics = &report.metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert_eq!(metrics[2]["name"], "windlass.hook.duration");
    let points = metrics[2]["histogram"]["dataPoints"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert_eq!((&points[0]["count"], &points[0]["sum"]), (&"2".into(), &0.08.into()));
    assert_eq!(attribute(&points[1], "windlass.hook.verdict")["stringValue"], "refused");
    assert_eq!(attribute(&points[1], "windlass.hook.point")["stringValue"], "prompt");
    assert!(!format!("{report:?}").contains("private"));
    push_facts(&mut telemetry, 6, vec![step_started(2), step_ended(2, FinishReason::Stop, 1)]);
    let metrics = telemetry.take_report().unwrap().metrics;
    assert!(!metrics.to_string().contains("windlass.hook"), "hooks are reported once");
}
