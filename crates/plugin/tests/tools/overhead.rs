//! What a call of a tool that is kept running costs beside the tool itself.

use crate::yard::{Yard, python, run};
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CALLS: usize = 500;
/// Rounds alternate, and what else the machine does only adds to one: the least counts.
const ROUNDS: usize = 4;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

pub fn a_kept_tool_costs_less_than_a_millisecond() {
    run(async {
        let definition = json!({"name": "echo", "description": "x", "access": {"read": []},
            "schema": {"type": "object", "properties": {"text": {"type": "string"}}}});
        let text = python(&definition, "say(result=ask['arguments']['text'])");
        let yard = Yard::new("echo", &text).await;
        let mut child = Command::new(yard.path(".windlass/tools/echo"))
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
            let (mut bare, mut ours) = (Vec::new(), Vec::new());
            for _ in 0..CALLS {
                let since = Instant::now();
                writeln!(input, "{request}").unwrap();
                line.clear();
                output.read_line(&mut line).unwrap();
                bare.push(since.elapsed());
            }
            for _ in 0..CALLS {
                let since = Instant::now();
                let said = yard.text("echo", json!({"text": "hello"})).await;
                ours.push(since.elapsed());
                assert_eq!(said, "hello");
            }
            let (bare, ours) = (median(bare), median(ours));
            println!("a bare pipe {bare:?}, over the road {ours:?}, {CALLS} calls each");
            rounds.push(ours.saturating_sub(bare));
        }
        drop(input);
        child.wait().unwrap();
        let least = rounds.iter().min().unwrap();
        assert!(*least < Duration::from_millis(1), "{rounds:?}");
    });
}
