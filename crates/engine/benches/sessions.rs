//! Whether a long session stays as quick as a short one.
//!
//! Two thousand turns, each a prompt, a call and an answer, against a server in a process of its
//! own that only takes in what it is sent. What sending alone costs is measured beside it: the
//! same number of bytes, posted bare. Then how long a session of 100,000 facts takes to open.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark arranges the world, measures time and tells"
)]

#[path = "../tests/yard/mod.rs"]
mod yard;

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
use windlass_engine::{Engine, Settings, Watcher};
use windlass_llm::wire::Format;
use windlass_protocol::{
    Access, Author, CallId, Event, Fact, Finish, Millis, Op, Outcome, Output, PromptId, SessionId,
    TurnEnd, Usage,
};
use windlass_storage::{Log, Sqlite};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// What makes this program the server.
const SERVE: &str = "--serve-the-model";

/// How many turns are measured together.
const HUNDRED: usize = 100;

/// How often everything is measured; the least counts.
const ROUNDS: usize = 3;

fn turns() -> usize {
    std::env::var("TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(2_000)
}

/// Answers every other request with a call, and the others with text. `/size` tells how long the
/// last request was.
fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    for stream in listener.incoming() {
        let stream = stream.unwrap();
        std::thread::spawn(move || answer(stream));
    }
}

static ASKED: AtomicUsize = AtomicUsize::new(0);
static SIZE: AtomicUsize = AtomicUsize::new(0);

fn answer(stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut read = BufReader::with_capacity(256 << 10, stream.try_clone()?);
    let mut write = stream;
    let mut pit = vec![0; 256 << 10];
    loop {
        let (mut first, mut length) = (String::new(), 0_usize);
        if read.read_line(&mut first)? == 0 {
            return Ok(());
        }
        loop {
            let mut line = String::new();
            read.read_line(&mut line)?;
            if line.trim().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or_default();
            }
        }
        let mut left = length;
        while left > 0 {
            let most = left.min(pit.len());
            left -= read.read(&mut pit[..most])?;
        }
        let body = if first.starts_with("GET") {
            SIZE.load(Ordering::SeqCst).to_string()
        } else if first.contains("/bare") {
            reply(1)
        } else {
            SIZE.store(length, Ordering::SeqCst);
            reply(ASKED.fetch_add(1, Ordering::SeqCst) + 1)
        };
        let kind = "content-type: text/event-stream";
        let head = format!("HTTP/1.1 200 OK\r\n{kind}\r\ncontent-length: {}\r\n\r\n", body.len());
        write.write_all(format!("{head}{body}").as_bytes())?;
    }
}

fn reply(asked: usize) -> String {
    let said = "It was as it should be, and nothing else is worth telling of it. ".repeat(4);
    let delta = match asked % 2 {
        1 => {
            let function = serde_json::json!({"name": "note", "arguments": "{\"text\":\"so\"}"});
            let id = format!("call_{asked}");
            serde_json::json!({"tool_calls": [{"index": 0, "id": id, "function": function}]})
        }
        _ => serde_json::json!({"content": said}),
    };
    let finish = if asked % 2 == 1 { "tool_calls" } else { "stop" };
    let piece = serde_json::json!({"choices": [{"index": 0, "delta": delta}]});
    let end = serde_json::json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    format!("data: {piece}\n\ndata: {end}\n\ndata: [DONE]\n\n")
}

struct Server(Child, String);

impl Server {
    fn start() -> Server {
        let own = std::env::current_exe().unwrap();
        let mut child = Command::new(own).arg(SERVE).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Server(child, format!("http://{}", line.trim()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Note;

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[async_trait]
impl Tool for Note {
    type Input = Text;

    fn name(&self) -> &str {
        "note"
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Text>("Notes something.")
    }

    fn access(&self, _input: &Text) -> Vec<Access> {
        vec![Access::Use { tool: "note".into() }]
    }

    async fn run(&self, input: Text, _cx: &Cx<'_>) -> Result<Output, Failure> {
        let text = format!("{}: {}", input.text, "a line of what a tool gives. ".repeat(8));
        Ok(Output { text, ..Output::default() })
    }
}

/// Wall and processor seconds of this process.
#[derive(Clone, Copy)]
struct Clock(Instant, f64);

impl Clock {
    fn now() -> Clock {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Clock(Instant::now(), time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }

    /// Milliseconds a turn since then.
    fn since(self, turns: usize) -> (f64, f64) {
        let now = Clock::now();
        let each = |seconds: f64| seconds * 1e3 / turns as f64;
        (each(now.0.duration_since(self.0).as_secs_f64()), each(now.1 - self.1))
    }
}

fn memory(key: &str) -> f64 {
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
    let runtime = yard::runtime(folder, yard::policy("\"allow\""));
    runtime.registry.register(Note);
    let asked = yard::asked(url, Format::OpenaiChat);
    let settings = Settings::new("/w", Some(asked), "p/m");
    Engine::new(log, Arc::new(runtime), settings)
}

async fn to_the_end(watcher: &mut Watcher) {
    while let Some(event) = watcher.next().await.unwrap() {
        if let Event::Fact(record) = &*event
            && let Fact::TurnEnded { end, .. } = &record.fact
        {
            assert_eq!(*end, TurnEnd::Done);
            return;
        }
    }
    panic!("the session ended");
}

/// What posting a body of a size costs, and reading the same answer, without anything else.
async fn bare(url: &str, size: usize, times: usize) -> (f64, f64) {
    let http = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let body = bytes::Bytes::from("x".repeat(size));
    let post = || http.post(format!("{url}/bare")).body(body.clone());
    post().send().await.unwrap().bytes().await.unwrap();
    let clock = Clock::now();
    for _ in 0..times {
        post().send().await.unwrap().bytes().await.unwrap();
    }
    clock.since(times)
}

#[derive(Clone, Copy)]
struct Stretch {
    wall: f64,
    cpu: f64,
    request: usize,
}

impl Stretch {
    /// What it costs where nothing else happened on the machine.
    fn least(self, other: Stretch) -> Stretch {
        Stretch { wall: self.wall.min(other.wall), cpu: self.cpu.min(other.cpu), ..self }
    }
}

/// The same session several times, because whatever else a machine does only adds.
async fn long_sessions() {
    let server = Server::start();
    let mut least: Vec<Stretch> = Vec::new();
    for _ in 0..ROUNDS {
        let stretches = long_session(&server).await;
        least = match least.is_empty() {
            true => stretches,
            false => least.iter().zip(stretches).map(|(one, other)| one.least(other)).collect(),
        };
    }
    tell(&least, &server.1).await;
}

async fn long_session(server: &Server) -> Vec<Stretch> {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let log: Arc<dyn Log> = Arc::new(Sqlite::open(&data).await.unwrap());
    let engine = engine(folder.path(), Arc::clone(&log), &server.1);
    let (handle, mut watcher) = engine.create().await.unwrap();
    let (mut stretches, mut sizes) = (Vec::new(), Vec::new());
    for _ in 0..turns() / HUNDRED {
        let clock = Clock::now();
        for _ in 0..HUNDRED {
            assert!(handle.send(Op::prompt("Note it once more, and tell me how it was.")).await);
            to_the_end(&mut watcher).await;
        }
        let (wall, cpu) = clock.since(HUNDRED);
        stretches.push(Stretch { wall, cpu, request: 0 });
        sizes.push(size_of(&data));
    }
    let (resident, peak) = (memory("VmRSS"), memory("VmHWM"));
    handle.close().await.unwrap();
    drop(engine);
    let url = &server.1;
    let last: usize = {
        let size = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        size.get(format!("{url}/size")).send().await.unwrap().text().await.unwrap().parse().unwrap()
    };
    // A request grows by the same with each turn.
    let count = stretches.len();
    for (place, stretch) in stretches.iter_mut().enumerate() {
        stretch.request = last * (2 * place + 1) / (2 * count);
    }
    println!("RSS {resident:.1} MB, at most {peak:.1} MB");
    let (half, whole) = (sizes[count / 2 - 1] as f64 / 1e6, sizes[count - 1] as f64 / 1e6);
    println!("log {half:.1} MB at half, {whole:.1} MB at the end");
    assert!(whole < half * 2.3, "the log grows faster than the session");
    assert!(peak < 80.0, "it takes {peak:.1} MB");
    stretches
}

async fn tell(stretches: &[Stretch], url: &str) {
    println!("turns       wall ms  cpu ms   request kB  sending wall, cpu   without wall, cpu");
    let mut without = Vec::new();
    let count = stretches.len();
    for (place, stretch) in stretches.iter().enumerate() {
        if ![0, 1, count / 2, count - 2, count - 1].contains(&place) {
            continue;
        }
        let (mut wall, mut cpu) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            let once = bare(url, stretch.request, 2 * HUNDRED).await;
            // Two requests a turn.
            (wall, cpu) = (wall.min(2.0 * once.0), cpu.min(2.0 * once.1));
        }
        let rest = (stretch.wall - wall, stretch.cpu - cpu);
        let turns = format!("{}–{}", place * HUNDRED + 1, (place + 1) * HUNDRED);
        println!(
            "{turns:<11} {:>7.2} {:>7.2} {:>12.1} {wall:>9.2} {cpu:>6.2} {:>14.2} {:>6.2}",
            stretch.wall,
            stretch.cpu,
            stretch.request as f64 / 1e3,
            rest.0,
            rest.1
        );
        without.push(rest);
    }
    let (first, last) = (without[0], without[without.len() - 1]);
    let (wall, cpu) = (last.0 / first.0, last.1 / first.1);
    println!("last hundred / first hundred without sending: wall {wall:.2}, cpu {cpu:.2}");
    assert!(wall < 1.2 && cpu < 1.2, "turns become slower");
}

fn id(number: u128) -> uuid::Uuid {
    uuid::Uuid::from_u128(number)
}

/// The facts of one turn as they are in real sessions.
fn turn_of(number: u32) -> Vec<Fact> {
    let (prompt, call) = (PromptId(id(number.into())), CallId(id(number.into())));
    let usage = Usage { input: 1_000, output: 50, ..Usage::default() };
    let step = |step| Fact::StepStarted {
        turn: number,
        step,
        model: "p/m".into(),
        purpose: Default::default(),
    };
    let ended = |step, finish| Fact::StepEnded { turn: number, step, finish, usage, cost: None };
    let text = "a line of what a tool gives. ".repeat(16);
    vec![
        Fact::Prompted {
            prompt,
            text: "Note it once more, and tell me how it was.".into(),
            attachments: Vec::new(),
            when: Default::default(),
        },
        Fact::TurnStarted { turn: number, prompt: Some(prompt) },
        step(1),
        Fact::Called {
            call,
            reference: format!("call_{number}"),
            tool: "note".into(),
            arguments: "{\"text\":\"so\"}".into(),
            by: Author::Model,
            repaired: Vec::new(),
            seal: None,
        },
        ended(1, Finish::Calls),
        Fact::Started {
            call,
            attempt: 1,
            accesses: vec![Access::Use { tool: "note".into() }],
            read_only: false,
            repaired: None,
        },
        Fact::Settled {
            call,
            outcome: Outcome::Completed { output: Output { text, ..Output::default() } },
            seen: Vec::new(),
        },
        step(2),
        Fact::Said { text: "It was as it should be. ".repeat(10), seal: None },
        ended(2, Finish::Stop),
        Fact::TurnEnded { turn: number, end: TurnEnd::Done },
    ]
}

async fn opening() {
    let folder = tempfile::tempdir().unwrap();
    let log: Arc<dyn Log> = Arc::new(Sqlite::open(&folder.path().join("data")).await.unwrap());
    let engine = engine(folder.path(), Arc::clone(&log), "http://127.0.0.1:9");
    let session = SessionId(id(1));
    let workspace = folder.path().canonicalize().unwrap().display().to_string();
    let mut claim = log.claim(session).await.unwrap();
    let mut facts = vec![Fact::opened(workspace, "0")];
    for number in 1.. {
        facts.extend(turn_of(number));
        if facts.len() > 2_000 {
            let batch = std::mem::take(&mut facts);
            claim.head = log.append(&claim, claim.head, Millis(1), &batch).await.unwrap();
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
    println!("at most {:.1} MB", memory("VmHWM"));
    assert!(times[0] < 300.0, "opening takes too long");
}

fn main() {
    if std::env::args().any(|arg| arg == SERVE) {
        return serve();
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        long_sessions().await;
        opening().await;
    });
}
