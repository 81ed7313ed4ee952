//! Cost per turn in short and long sessions.
//!
//! Runs two thousand turns, each with a prompt, a call and an answer, against a server in another
//! process. The cost of sending alone is measured separately, with requests of the same size. Then
//! it measures the time to open a session of 100,000 facts.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark prepares files and processes, measures time and prints"
)]

#[path = "../tests/support/mod.rs"]
mod support;

use async_trait::async_trait;
use rustix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::Deserialize;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use windlass_engine::{Engine, EngineSettings, SessionWatcher};
use windlass_llm::wire_format::WireFormat;
use windlass_protocol::{
    CallAuthor, CallId, CallOutcome, Event, Fact, FinishReason, PromptId, SessionId, SessionOp,
    TokenUsage, ToolAccess, ToolOutput, TurnEndReason, UnixMillis,
};
use windlass_storage::{Log, SqliteLog};
use windlass_toolkit::{CallContext, CallFailure, StepContext, Tool, ToolDefinition};

/// Argument with which this program runs as the server.
const SERVE_ARG: &str = "--serve-the-model";

/// Turns per measurement.
const TURNS_PER_SAMPLE: usize = 100;

/// Number of measurements; the minimum counts, because other load only adds time.
const ROUNDS: usize = 3;

fn turns() -> usize {
    std::env::var("TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(2_000)
}

/// Answers every other request with a call, and the others with text. `/size` returns the length of
/// the last request.
fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        std::thread::spawn(move || handle_connection(stream));
    }
}

static REQUEST_COUNT: AtomicUsize = AtomicUsize::new(0);
static REQUEST_BYTES: AtomicUsize = AtomicUsize::new(0);

fn handle_connection(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(256 << 10, stream.try_clone()?);
    let mut writer = stream;
    let mut buffer = vec![0; 256 << 10];
    loop {
        let (mut request_line, mut length) = (String::new(), 0_usize);
        if reader.read_line(&mut request_line)? == 0 {
            return Ok(());
        }
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        let mut remaining = length;
        while remaining > 0 {
            let max = remaining.min(buffer.len());
            remaining -= reader.read(&mut buffer[..max])?;
        }
        let body = if request_line.starts_with("GET") {
            REQUEST_BYTES.load(Ordering::SeqCst).to_string()
        } else if request_line.contains("/bare") {
            reply(1)
        } else {
            REQUEST_BYTES.store(length, Ordering::SeqCst);
            reply(REQUEST_COUNT.fetch_add(1, Ordering::SeqCst) + 1)
        };
        let content_type = "content-type: text/event-stream";
        let head =
            format!("HTTP/1.1 200 OK\r\n{content_type}\r\ncontent-length: {}\r\n\r\n", body.len());
        writer.write_all(format!("{head}{body}").as_bytes())?;
    }
}

fn reply(number: usize) -> String {
    let text = "It was as it should be, and nothing else is worth telling of it. ".repeat(4);
    let delta = match number % 2 {
        1 => {
            let function = serde_json::json!({"name": "note", "arguments": "{\"text\":\"so\"}"});
            let id = format!("call_{number}");
            serde_json::json!({"tool_calls": [{"index": 0, "id": id, "function": function}]})
        }
        _ => serde_json::json!({"content": text}),
    };
    let finish = if number % 2 == 1 { "tool_calls" } else { "stop" };
    let chunk = serde_json::json!({"choices": [{"index": 0, "delta": delta}]});
    let end = serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n")
}

/// The server process and its URL.
struct ModelServerProcess(Child, String);

impl ModelServerProcess {
    fn start() -> ModelServerProcess {
        let own = std::env::current_exe().unwrap();
        let mut child = Command::new(own).arg(SERVE_ARG).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        ModelServerProcess(child, format!("http://{}", line.trim()))
    }
}

impl Drop for ModelServerProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct BenchTool;

#[derive(Deserialize, JsonSchema)]
struct BenchToolInput {
    text: String,
}

#[async_trait]
impl Tool for BenchTool {
    type Input = BenchToolInput;

    fn name(&self) -> &str {
        "note"
    }

    async fn describe(&self, _step: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<BenchToolInput>("Stores a note.")
    }

    fn access(&self, _input: &BenchToolInput) -> Vec<ToolAccess> {
        vec![ToolAccess::UseTool { tool: "note".into() }]
    }

    async fn run(
        &self,
        input: BenchToolInput,
        _cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        let text = format!("{}: {}", input.text, "a line of the tool's output. ".repeat(8));
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

/// Wall time and CPU seconds of this process.
#[derive(Clone, Copy)]
struct WallAndCpuTime(Instant, f64);

impl WallAndCpuTime {
    fn now() -> WallAndCpuTime {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        WallAndCpuTime(Instant::now(), time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }

    /// Returns the wall and CPU milliseconds per turn since this time.
    fn since(self, turns: usize) -> (f64, f64) {
        let now = WallAndCpuTime::now();
        let per_turn = |seconds: f64| seconds * 1e3 / turns as f64;
        (per_turn(now.0.duration_since(self.0).as_secs_f64()), per_turn(now.1 - self.1))
    }
}

fn memory_mb(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    let kilobytes: f64 = line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap();
    kilobytes / 1024.0
}

fn size_of(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata().unwrap() {
            kind if kind.is_dir() => size_of(&entry.path()),
            file => file.len(),
        })
        .sum()
}

fn engine(folder: &Path, log: Arc<dyn Log>, url: &str) -> Engine {
    let runtime = support::runtime(folder, support::policy("\"allow\""));
    runtime.registry.register(BenchTool);
    let handle = support::model_handle(url, WireFormat::OpenaiChat);
    let settings = EngineSettings::new("/w", Some(handle), "p/m");
    Engine::new(log, Arc::new(runtime), settings)
}

async fn wait_for_turn_end(watcher: &mut SessionWatcher) {
    while let Some(event) = watcher.next().await.unwrap() {
        if let Event::Fact(record) = &*event
            && let Fact::TurnEnded { end, .. } = &record.fact
        {
            assert_eq!(*end, TurnEndReason::Completed);
            return;
        }
    }
    panic!("the session ended");
}

/// Measures posting a body of this size and reading the reply, without an engine.
async fn measure_sending(url: &str, size: usize, times: usize) -> (f64, f64) {
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let body = bytes::Bytes::from("x".repeat(size));
    let post = || http.post(format!("{url}/bare")).body(body.clone());
    post().send().await.unwrap().bytes().await.unwrap();
    let clock = WallAndCpuTime::now();
    for _ in 0..times {
        post().send().await.unwrap().bytes().await.unwrap();
    }
    clock.since(times)
}

/// Milliseconds per turn over `TURNS_PER_SAMPLE` turns.
#[derive(Clone, Copy)]
struct Sample {
    wall: f64,
    cpu: f64,
    request_bytes: usize,
}

impl Sample {
    /// Returns the minimum of both, without the effect of other load.
    fn minimum(self, other: Sample) -> Sample {
        Sample { wall: self.wall.min(other.wall), cpu: self.cpu.min(other.cpu), ..self }
    }
}

/// Measures the same session several times.
async fn measure_long_sessions() {
    let server = ModelServerProcess::start();
    let mut minimum: Vec<Sample> = Vec::new();
    for _ in 0..ROUNDS {
        let samples = long_session(&server).await;
        minimum = match minimum.is_empty() {
            true => samples,
            false => minimum.iter().zip(samples).map(|(one, other)| one.minimum(other)).collect(),
        };
    }
    print_samples(&minimum, &server.1).await;
}

async fn long_session(server: &ModelServerProcess) -> Vec<Sample> {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let log: Arc<dyn Log> = Arc::new(SqliteLog::open(&data).await.unwrap());
    let engine = engine(folder.path(), Arc::clone(&log), &server.1);
    let (handle, mut watcher) = engine.start_default_session().await.unwrap();
    let (mut samples, mut sizes) = (Vec::new(), Vec::new());
    for _ in 0..turns() / TURNS_PER_SAMPLE {
        let clock = WallAndCpuTime::now();
        for _ in 0..TURNS_PER_SAMPLE {
            assert!(
                handle.send(SessionOp::prompt("Note it once more, and tell me how it was.")).await
            );
            wait_for_turn_end(&mut watcher).await;
        }
        let (wall, cpu) = clock.since(TURNS_PER_SAMPLE);
        samples.push(Sample { wall, cpu, request_bytes: 0 });
        sizes.push(size_of(&data));
    }
    let (resident, peak) = (memory_mb("VmRSS"), memory_mb("VmHWM"));
    handle.close().await.unwrap();
    drop(engine);
    let url = &server.1;
    let last: usize = {
        let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        http.get(format!("{url}/size")).send().await.unwrap().text().await.unwrap().parse().unwrap()
    };
    // A request grows by the same number of bytes with each turn.
    let count = samples.len();
    for (index, sample) in samples.iter_mut().enumerate() {
        sample.request_bytes = last * (2 * index + 1) / (2 * count);
    }
    println!("RSS {resident:.1} MB, peak {peak:.1} MB");
    let (half, whole) = (sizes[count / 2 - 1] as f64 / 1e6, sizes[count - 1] as f64 / 1e6);
    println!("log {half:.1} MB at half, {whole:.1} MB at the end");
    assert!(whole < half * 2.3, "the log grows faster than the session");
    assert!(peak < 80.0, "the peak memory is {peak:.1} MB");
    samples
}

async fn print_samples(samples: &[Sample], url: &str) {
    println!("turns       wall ms  cpu ms   request kB  sending wall, cpu   without wall, cpu");
    let mut without = Vec::new();
    let count = samples.len();
    for (index, sample) in samples.iter().enumerate() {
        if ![0, 1, count / 2, count - 2, count - 1].contains(&index) {
            continue;
        }
        let (mut wall, mut cpu) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            let once = measure_sending(url, sample.request_bytes, 2 * TURNS_PER_SAMPLE).await;
            // A turn makes two requests.
            (wall, cpu) = (wall.min(2.0 * once.0), cpu.min(2.0 * once.1));
        }
        let engine_only = (sample.wall - wall, sample.cpu - cpu);
        let turns = format!("{}–{}", index * TURNS_PER_SAMPLE + 1, (index + 1) * TURNS_PER_SAMPLE);
        println!(
            "{turns:<11} {:>7.2} {:>7.2} {:>12.1} {wall:>9.2} {cpu:>6.2} {:>14.2} {:>6.2}",
            sample.wall,
            sample.cpu,
            sample.request_bytes as f64 / 1e3,
            engine_only.0,
            engine_only.1
        );
        without.push(engine_only);
    }
    let (first, last) = (without[0], without[without.len() - 1]);
    let (wall, cpu) = (last.0 / first.0, last.1 / first.1);
    println!("last hundred / first hundred without sending: wall {wall:.2}, cpu {cpu:.2}");
    assert!(wall < 1.2 && cpu < 1.2, "later turns are slower");
}

fn id(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

/// Returns the facts of a typical turn.
fn turn_facts(number: u32) -> Vec<Fact> {
    let (prompt, call) = (PromptId(id(number.into())), CallId(id(number.into())));
    let usage = TokenUsage { input: 1_000, output: 50, ..TokenUsage::default() };
    let step = |step| Fact::StepStarted {
        turn: number,
        step,
        model: "p/m".into(),
        purpose: Default::default(),
    };
    let ended = |step, finish| Fact::StepEnded {
        turn: number,
        step,
        finish_reason: finish,
        usage,
        cost: None,
    };
    let text = "a line of the tool's output. ".repeat(16);
    vec![
        Fact::PromptSubmitted {
            prompt,
            text: "Note it once more, and tell me how it was.".into(),
            attachments: Vec::new(),
            delivery: Default::default(),
            settings: Default::default(),
        },
        Fact::TurnStarted { turn: number, prompt: Some(prompt) },
        step(1),
        Fact::ToolCalled {
            description: windlass_protocol::CallDescription::default(),
            call,
            provider_call_id: format!("call_{number}"),
            tool: "note".into(),
            arguments: "{\"text\":\"so\"}".into(),
            author: CallAuthor::Model,
            repair: Vec::new(),
            provider_signature: None,
        },
        ended(1, FinishReason::ToolCalls),
        Fact::CallStarted {
            call,
            attempt: 1,
            accesses: vec![ToolAccess::UseTool { tool: "note".into() }],
            read_only: false,
            repair: None,
        },
        Fact::CallSettled {
            call,
            outcome: CallOutcome::Completed {
                output: ToolOutput { text, ..ToolOutput::default() },
            },
            seen_files: Vec::new(),
        },
        step(2),
        Fact::ModelText { text: "It was as it should be. ".repeat(10), provider_signature: None },
        ended(2, FinishReason::Stop),
        Fact::TurnEnded { turn: number, end: TurnEndReason::Completed },
    ]
}

async fn measure_opening() {
    let folder = tempfile::tempdir().unwrap();
    let log: Arc<dyn Log> = Arc::new(SqliteLog::open(&folder.path().join("data")).await.unwrap());
    let engine = engine(folder.path(), Arc::clone(&log), "http://127.0.0.1:9");
    let session = SessionId(id(1));
    let workspace = folder.path().canonicalize().unwrap().display().to_string();
    let mut claim = log.claim(session).await.unwrap();
    let mut facts = vec![Fact::session_opened(workspace, "0")];
    for number in 1.. {
        facts.extend(turn_facts(number));
        if facts.len() > 2_000 {
            let batch = std::mem::take(&mut facts);
            claim.head = log.append(&claim, claim.head, UnixMillis(1), &batch).await.unwrap();
        }
        if claim.head > 100_000 {
            break;
        }
    }
    let length = claim.head;
    drop(claim);
    let mut times = Vec::new();
    for _ in 0..7 {
        let before = Instant::now();
        let (handle, _) = engine.open(session).await.unwrap();
        times.push(before.elapsed().as_secs_f64() * 1e3);
        handle.close().await.unwrap();
    }
    times.sort_by(f64::total_cmp);
    println!("a session of {length} facts opens in {:.0} ms (best {:.0})", times[3], times[0]);
    println!("peak {:.1} MB", memory_mb("VmHWM"));
    assert!(times[0] < 300.0, "opening takes too long");
}

fn main() {
    if std::env::args().any(|arg| arg == SERVE_ARG) {
        return serve();
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        measure_long_sessions().await;
        measure_opening().await;
    });
}
