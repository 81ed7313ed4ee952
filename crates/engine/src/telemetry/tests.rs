//! What a run tells its collector.

use super::{MOST_SPANS, Report, Telemetry};
use serde_json::Value;
use uuid::Uuid;
use windlass_protocol::{
    Author, CallId, Fact, Fault, Finish, Millis, Outcome, Point, Record, SessionId, TurnEnd, Usage,
    Verdict,
};

/// A fact each 100 ms.
fn tell(telemetry: &mut Telemetry, from: u64, facts: Vec<Fact>) {
    for (seq, fact) in (from..).zip(facts) {
        let session = SessionId(Uuid::from_u128(0xa0));
        telemetry.push(&Record { session, seq, at: Millis(seq * 100), fact });
    }
}

fn step(step: u32) -> Fact {
    let (model, purpose) = ("p/m".into(), Default::default());
    Fact::StepStarted { turn: 1, step, model, purpose }
}

fn ended(step: u32, finish: Finish, input: u64) -> Fact {
    let usage = Usage { input, output: 20, ..Usage::default() };
    Fact::StepEnded { turn: 1, step, finish, usage, cost: None }
}

fn called(number: u128) -> Fact {
    Fact::Called {
        call: CallId(Uuid::from_u128(number)),
        reference: "r".into(),
        tool: "read".into(),
        arguments: "{\"path\": \"private\"}".into(),
        by: Author::Model,
        repaired: Vec::new(),
        seal: None,
    }
}

fn settled(number: u128, outcome: Outcome) -> Fact {
    Fact::Settled { call: CallId(Uuid::from_u128(number)), outcome, seen: Vec::new() }
}

fn spans(report: &Report) -> Vec<Value> {
    report.traces["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
}

fn attribute<'a>(of: &'a Value, key: &str) -> &'a Value {
    let attributes = of["attributes"].as_array().unwrap();
    attributes.iter().find(|one| one["key"] == key).map_or(&Value::Null, |one| &one["value"])
}

#[test]
fn a_turn_is_a_trace_and_what_was_said_is_not_in_it() {
    let mut telemetry = Telemetry::new(vec![("service.name".into(), "w".into())]);
    let fault = Fault::Network { message: "private".into() };
    tell(
        &mut telemetry,
        1,
        vec![
            Fact::opened("/private", "0"),
            Fact::TurnStarted { turn: 1, prompt: None },
            step(1),
            called(7),
            ended(1, Finish::Calls, 100),
            settled(7, Outcome::Failed { text: "private".into() }),
            step(2),
            ended(2, Finish::Failed { fault }, 0),
            step(3),
            Fact::Said { text: "private".into(), seal: None },
            ended(3, Finish::Stop, 5_000),
            Fact::TurnEnded { turn: 1, end: TurnEnd::Done },
        ],
    );
    let report = telemetry.take().unwrap();
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
    assert_eq!(*attribute(&spans[2], "gen_ai.usage.input_tokens"), Value::Null, "not known");
    assert_eq!((&spans[1]["status"]["code"], &spans[3]["status"]["code"]), (&2.into(), &1.into()));
    assert!(!format!("{report:?}").contains("private"));

    let metrics = &report.metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let tokens = &metrics[0]["histogram"]["dataPoints"];
    assert_eq!(metrics[0]["name"], "gen_ai.client.token.usage");
    assert_eq!((&tokens[0]["count"], &tokens[0]["sum"]), (&"2".into(), &5_100.0.into()));
    let counts = tokens[0]["bucketCounts"].as_array().unwrap();
    let bounds = tokens[0]["explicitBounds"].as_array().unwrap();
    assert_eq!(counts.len(), bounds.len() + 1);
    assert_eq!(metrics[1]["histogram"]["dataPoints"][0]["count"], "3", "failed ones take time too");
}

#[test]
fn what_was_told_is_not_told_again() {
    let mut telemetry = Telemetry::new(Vec::new());
    assert_eq!(telemetry.take(), None);
    tell(&mut telemetry, 1, vec![step(1), ended(1, Finish::Stop, 1)]);
    assert_eq!(spans(&telemetry.take().unwrap()).len(), 1);
    assert_eq!(telemetry.take(), None);
    tell(&mut telemetry, 3, vec![step(2), ended(2, Finish::Stop, 1)]);
    let report = telemetry.take().unwrap();
    let metrics = &report.metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert_eq!(metrics[0]["histogram"]["dataPoints"][0]["count"], "1");
}

#[test]
fn ends_without_beginnings_and_floods_do_no_harm() {
    let mut telemetry = Telemetry::new(Vec::new());
    let lone = vec![
        ended(1, Finish::Stop, 1),
        settled(1, Outcome::Unknown),
        Fact::TurnEnded { turn: 1, end: TurnEnd::Done },
    ];
    tell(&mut telemetry, 1, lone);
    assert_eq!(telemetry.take(), None);
    for round in 0..MOST_SPANS as u64 + 10 {
        tell(&mut telemetry, 4 + 2 * round, vec![step(1), ended(1, Finish::Stop, u64::MAX)]);
    }
    assert_eq!(spans(&telemetry.take().unwrap()).len(), MOST_SPANS);
}

#[test]
fn hooks_are_told_by_name_point_and_verdict_but_not_why() {
    let mut telemetry = Telemetry::new(Vec::new());
    let hooked = |took_ms, verdict| Fact::Hooked {
        call: None,
        hook: "guard".into(),
        point: Point::Prompt,
        took_ms,
        verdict,
    };
    let refused = Verdict::Refused { reason: "private".into() };
    let facts = vec![step(1), hooked(30, Verdict::Passed), hooked(50, Verdict::Passed)];
    tell(&mut telemetry, 1, facts);
    tell(&mut telemetry, 4, vec![hooked(0, refused), ended(1, Finish::Stop, 1)]);
    let report = telemetry.take().unwrap();
    let metrics = &report.metrics["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    assert_eq!(metrics[2]["name"], "windlass.hook.duration");
    let points = metrics[2]["histogram"]["dataPoints"].as_array().unwrap();
    assert_eq!(points.len(), 2);
    assert_eq!((&points[0]["count"], &points[0]["sum"]), (&"2".into(), &0.08.into()));
    assert_eq!(attribute(&points[1], "windlass.hook.verdict")["stringValue"], "refused");
    assert_eq!(attribute(&points[1], "windlass.hook.point")["stringValue"], "prompt");
    assert!(!format!("{report:?}").contains("private"));
    tell(&mut telemetry, 6, vec![step(2), ended(2, Finish::Stop, 1)]);
    let metrics = telemetry.take().unwrap().metrics;
    assert!(!metrics.to_string().contains("windlass.hook"), "nothing is told twice");
}
