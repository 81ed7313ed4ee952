//! Speed and memory of a server. The figures are in the benchmarks of the book.
//!
//! The limits are for release builds; a build without optimizations may take four times as long and
//! its memory is not limited.

use crate::session_client::SessionClient;
use crate::support::TestEnv;
use crate::support::server::{TestServer, caller, connect, socket_path};
use futures_util::StreamExt;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use windlass_protocol::session_stream::SessionStreamItem;
use windlass_protocol::{LogPosition, SessionId, SessionOp};
use windlass_server::{FrontendService, WatchOptions};

/// The factor by which a build without optimizations may be slower.
const BUILD_FACTOR: u32 = if cfg!(debug_assertions) { 4 } else { 1 };
/// Memory is limited only in a release build, whose executable is smaller.
const LIMITS_MEMORY: bool = !cfg!(debug_assertions);

fn print_figure(name: &str, figure: impl std::fmt::Debug) {
    println!("figure: {name}: {figure:?}");
}

/// Returns a percentile of `times`.
fn percentile(share: f64, times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[((times.len() - 1) as f64 * share) as usize]
}

/// Returns a field of `/proc/PID/status` in kilobytes.
fn status_kb(pid: u32, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_matches([':', ' ', '\t', 'k', 'B']).parse().unwrap()
}

/// Returns the resident memory of a process, without the pages of its executable, in kilobytes.
pub fn memory_kb(pid: u32) -> u64 {
    status_kb(pid, "RssAnon")
}

/// Returns the time that a process has used a core.
fn cpu_time(pid: u32) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Opens the event stream of a session without reading its answer.
async fn open_stream(path: &Path, session: SessionId, query: &str) -> UnixStream {
    let mut stream = UnixStream::connect(path).await.unwrap();
    let target = format!("/v1/sessions/{session}/events{query}");
    let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// Returns the time of a write that is flushed to the disk of a folder.
fn flush_time(folder: &Path) -> Duration {
    use std::io::Write;
    let mut file = std::fs::File::create(folder.join("flushed")).unwrap();
    let flush = |file: &mut std::fs::File| {
        let start = Instant::now();
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
        start.elapsed()
    };
    let mut times: Vec<Duration> = (0..100).map(|_| flush(&mut file)).collect();
    percentile(0.99, &mut times)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: `cargo xtask soak`"]
async fn speed_of_an_operation_until_it_is_acknowledged() {
    let env = TestEnv::new(&[], "");
    let _server = TestServer::start(&env, &[]);
    let client = SessionClient::start(&env).await;
    let mut times = Vec::new();
    for round in 0..1_000 {
        let start = Instant::now();
        client.submit(SessionOp::RenameSession { title: format!("title {round}") }).await.unwrap();
        times.push(start.elapsed());
    }
    let flush = flush_time(&env.home());
    let (median, most) = (percentile(0.5, &mut times), percentile(0.99, &mut times));
    print_figure("operation acknowledged, median and p99", (median, most));
    print_figure("a flush of this disk, p99", flush);
    assert!(most < Duration::from_millis(5) * BUILD_FACTOR + flush, "{most:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: `cargo xtask soak`"]
async fn speed_of_a_thousand_streams() {
    const STREAMS: usize = 1_000;
    let reply = "gate begin\n".to_owned() + &"say word \nstall 20\n".repeat(50 * 60);
    let env = TestEnv::new(&[&reply], r#""titles": false"#);
    let server = TestServer::start(&env, &[]);
    let client = SessionClient::start(&env).await;
    client.submit(SessionOp::prompt("go")).await.unwrap();
    let before = memory_kb(server.pid());
    let (path, mut readers) = (socket_path(&env), JoinSet::new());
    let (sender, counts) = tokio::sync::watch::channel(());
    for _ in 0..STREAMS {
        let mut stream = open_stream(&path, client.session, "").await;
        let mut counts = counts.clone();
        readers.spawn(async move {
            let (mut buffer, mut bytes) = (vec![0; 64 << 10], 0);
            loop {
                tokio::select! {
                    read = stream.read(&mut buffer) => match read.unwrap() {
                        0 => return bytes,
                        read => bytes += read,
                    },
                    _ = counts.changed() => return bytes,
                }
            }
        });
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    env.model.open_gate("begin");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (cpu, start) = (cpu_time(server.pid()), Instant::now());
    tokio::time::sleep(Duration::from_secs(20)).await;
    let share = (cpu_time(server.pid()) - cpu).as_secs_f64() / start.elapsed().as_secs_f64();
    let stream_kb = (memory_kb(server.pid()) - before) as f64 / STREAMS as f64;
    sender.send_replace(());
    let bytes: usize = readers.join_all().await.into_iter().sum();
    print_figure("1,000 streams, 50 events/s: share of a core", share);
    print_figure("1,000 streams: kB a stream", stream_kb);
    print_figure("1,000 streams: bytes read", bytes);
    assert!(bytes > STREAMS * 20 * 50 * 50, "{bytes}: the readers got too few events");
    assert!(share < 0.7 * f64::from(BUILD_FACTOR), "{share}");
    assert!(!LIMITS_MEMORY || stream_kb < 30.0, "{stream_kb}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: `cargo xtask soak`"]
async fn speed_of_the_resumption_of_a_thousand_facts() {
    let env = TestEnv::new(&[], "");
    let _server = TestServer::start(&env, &[]);
    let client = SessionClient::start(&env).await;
    for round in 0..999 {
        client.submit(SessionOp::RenameSession { title: format!("title {round}") }).await.unwrap();
    }
    let (host, me) = (connect(&env).await, caller(&env));
    let mut times = Vec::new();
    for _ in 0..20 {
        let start = Instant::now();
        let after = Some(LogPosition::START.into());
        let options = WatchOptions { after, ..WatchOptions::default() };
        let mut items = host.watch_session(&me, client.session, options).await.unwrap();
        let mut count = 0;
        while count < 1_000 {
            if let SessionStreamItem::Fact(..) = items.next().await.unwrap() {
                count += 1;
            }
        }
        times.push(start.elapsed());
    }
    let (median, most) = (percentile(0.5, &mut times), percentile(1.0, &mut times));
    print_figure("resumption of 1,000 facts, median and most of 20", (median, most));
    assert!(median < Duration::from_millis(50) * BUILD_FACTOR, "{median:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: `cargo xtask soak`"]
async fn speed_of_an_idle_server_with_parked_sessions() {
    const SESSIONS: usize = 20;
    let env = TestEnv::new(&["say Hello."], r#""titles": false"#);
    let server = TestServer::start(&env, &[]);
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        let mut client = SessionClient::start(&env).await;
        client.submit(SessionOp::prompt("hello")).await.unwrap();
        client.wait_for_turn_end().await;
        clients.push(client);
    }
    let with_clients = status_kb(server.pid(), "VmRSS");
    drop(clients);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = cpu_time(server.pid());
    tokio::time::sleep(Duration::from_secs(20)).await;
    let cpu = cpu_time(server.pid()) - before;
    let (whole, own) = (status_kb(server.pid(), "VmRSS"), memory_kb(server.pid()));
    print_figure("20 parked sessions: RSS in kB with clients, and without", (with_clients, whole));
    print_figure("20 parked sessions: RSS without the executable in kB", own);
    print_figure("20 parked sessions: CPU time in 20 s", cpu);
    assert!(cpu <= Duration::from_millis(20), "{cpu:?}");
    assert!(!LIMITS_MEMORY || own < 40 << 10, "{own}");
}

/// Returns the time in which five sessions produce 50 MB of text, and the growth of the memory,
/// while `readers` streams of each do not read.
async fn time_of_fifty_megabytes(readers: usize) -> (Duration, u64) {
    const SESSIONS: usize = 5;
    const STEPS: usize = 10;
    let megabyte = format!("say {}\n", "x".repeat(1 << 10)).repeat(1024);
    // The sessions share the model: the first request of each waits, and each ends with one answer.
    let replies: Vec<String> = (0..(STEPS + 1) * SESSIONS)
        .map(|number| {
            let call = format!("call grep {{\"pattern\": \"{number}\"}}");
            match number / SESSIONS {
                0 => format!("gate begin\n{megabyte}{call}"),
                STEPS => "say Done.".to_owned(),
                _ => format!("{megabyte}{call}"),
            }
        })
        .collect();
    let replies: Vec<&str> = replies.iter().map(String::as_str).collect();
    let env = TestEnv::new(&replies, r#""titles": false"#);
    let server = TestServer::start(&env, &[]);
    let (mut clients, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..SESSIONS {
        let client = SessionClient::start(&env).await;
        client.submit(SessionOp::prompt("go")).await.unwrap();
        for _ in 0..readers {
            streams.push(open_stream(&socket_path(&env), client.session, "?after=0").await);
        }
        clients.push(client);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = memory_kb(server.pid());
    let start = Instant::now();
    env.model.open_gate("begin");
    let mut most = 0;
    for client in &mut clients {
        client.wait_for_turn_end().await;
        most = most.max(memory_kb(server.pid()));
    }
    let time = start.elapsed();
    tokio::time::sleep(Duration::from_secs(1)).await;
    most = most.max(memory_kb(server.pid()));
    drop(streams);
    (time, most.saturating_sub(before))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures time: `cargo xtask soak`"]
async fn speed_with_five_hundred_readers_that_never_read() {
    let (mut alone, mut crowded) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        alone.push(time_of_fifty_megabytes(0).await);
        crowded.push(time_of_fifty_megabytes(100).await);
    }
    // The least of each: a run disturbs another figure than the next one.
    let least = |runs: &[(Duration, u64)]| {
        let time = runs.iter().map(|(time, _)| *time).min().unwrap();
        (time, runs.iter().map(|(_, growth)| *growth).min().unwrap())
    };
    let ((alone, own_growth), (crowded, growth)) = (least(&alone), least(&crowded));
    print_figure(
        "50 MB in five sessions alone, and with 500 readers that never read",
        (alone, crowded),
    );
    print_figure("growth of memory in kB alone, and with 500 readers", (own_growth, growth));
    let factor = crowded.as_secs_f64() / alone.as_secs_f64();
    print_figure("slower by", factor);
    assert!(!LIMITS_MEMORY || growth < own_growth + (20 << 10), "{growth}");
    assert!(factor < 1.5, "{factor}");
}

#[test]
#[ignore = "measures time: `cargo xtask soak`"]
fn speed_of_attach_until_the_first_frame() {
    let env = TestEnv::new(&[], "");
    let _server = TestServer::start(&env, &[]);
    let measure = || {
        let start = Instant::now();
        let terminal = env.first_terminal().with(&["attach"]).start();
        terminal.wait_text("› ");
        start.elapsed()
    };
    let mut times: Vec<Duration> = (0..10).map(|_| measure()).collect();
    let (least, median) = (percentile(0.0, &mut times), percentile(0.5, &mut times));
    print_figure("attach to first frame, least and median of ten", (least, median));
    assert!(least < Duration::from_millis(60) * BUILD_FACTOR, "{least:?}");
}
