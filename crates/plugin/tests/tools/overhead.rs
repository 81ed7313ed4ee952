//! Measures the overhead of a call to a running tool.

use crate::support::{TestEnv, python, run};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CALLS: usize = 500;
/// Other load only adds to the time of a round, so the minimum counts.
const ROUNDS: usize = 4;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub fn a_running_tool_adds_less_than_a_millisecond() {
    run(async {
        let definition = json!({"name": "echo", "description": "x", "access": {"read": []},
            "schema": {"type": "object", "properties": {"text": {"type": "string"}}}});
        let text = python(&definition, "say(result=ask['arguments']['text'])");
        let env = TestEnv::new("echo", &text).await;
        let mut child = Command::new(env.path(".windlass/tools/echo"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut output = BufReader::new(output);
        let request = json!({"id": 1, "method": "call", "tool": "echo",
            "arguments": {"text": "hello"}, "context": {"session": "s", "call": "c", "folder": "/w",
            "mode": "full"}});
        let mut line = String::new();
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let (mut direct, mut through_pipeline) = (Vec::new(), Vec::new());
            for _ in 0..CALLS {
                let started = Instant::now();
                writeln!(input, "{request}").unwrap();
                line.clear();
                output.read_line(&mut line).unwrap();
                direct.push(started.elapsed());
            }
            for _ in 0..CALLS {
                let started = Instant::now();
                let reply = env.text("echo", json!({"text": "hello"})).await;
                through_pipeline.push(started.elapsed());
                assert_eq!(reply, "hello");
            }
            let (direct, through_pipeline) = (median(direct), median(through_pipeline));
            println!(
                "direct {direct:?}, through the pipeline {through_pipeline:?}, {CALLS} calls each"
            );
            rounds.push(through_pipeline.saturating_sub(direct));
        }
        drop(input);
        child.wait().unwrap();
        let minimum = rounds.iter().min().unwrap();
        assert!(*minimum < Duration::from_millis(1), "{rounds:?}");
    });
}
