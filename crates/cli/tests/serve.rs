//! `mcp serve` with a real client, over standard input and output and over HTTP, and with clients
//! that mean no good.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod yard;

use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use yard::Yard;

type Client = RunningService<RoleClient, ()>;

const PATIENCE: Duration = Duration::from_secs(30);

fn lifecycles() -> [(&'static str, ClientLifecycleMode); 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [
        ("2025-11-25", ClientLifecycleMode::Initialize),
        ("2026-07-28", ClientLifecycleMode::Discover { preferred_versions }),
    ]
}

async fn call(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().unwrap().clone();
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    tokio::time::timeout(PATIENCE, client.call_tool(params)).await.unwrap().unwrap()
}

fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    texts.map(|text| text.text.clone()).collect()
}

/// What every client can rely on, whatever way it came.
async fn try_out(yard: &Yard, client: &Client) {
    let tools = tokio::time::timeout(PATIENCE, client.list_all_tools()).await.unwrap().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["bash", "edit", "glob", "grep", "job", "read", "webfetch", "write"]);
    let read = call(client, "read", json!({"filePath": "README.md"})).await;
    assert_eq!(read.is_error, Some(false));
    assert!(text(&read).contains("A small project."), "{read:?}");
    let wrong = call(client, "read", json!({"path": "README.md"})).await;
    assert_eq!(wrong.is_error, Some(true));
    assert!(text(&wrong).contains("`filePath`: required"), "{wrong:?}");
    let write = call(client, "write", json!({"filePath": "new.txt", "content": "x"})).await;
    assert_eq!(write.is_error, Some(true));
    assert!(text(&write).contains("nobody is asked while tools are served"), "{write:?}");
    assert_eq!(yard.read("new.txt"), None);
    for name in ["task", "undo", "question", "no_such\u{1b}[2Jtool"] {
        let params = CallToolRequestParams::new(name.to_owned());
        let error = client.call_tool(params).await.unwrap_err().to_string();
        assert!(error.contains("there is no tool"), "{error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}

/// The sessions of the project, with their facts.
fn sessions(yard: &Yard) -> Vec<(String, Vec<Value>)> {
    let (_, list, _) = yard.run(&["session", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| (row["title"].to_string(), yard.facts_of(row["session"].as_str().unwrap())))
        .collect()
}

/// Starts the server with pipes for a real client.
async fn piped(
    yard: &Yard,
    arguments: &[&str],
    lifecycle: ClientLifecycleMode,
) -> (tokio::process::Child, Client) {
    let mut command = yard.windlass(&[&["mcp", "serve"], arguments].concat());
    command.stdin(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
    let ends = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let transport = AsyncRwTransport::new_client(ends.0, ends.1);
    let client = ().serve_with_lifecycle(transport, lifecycle);
    let client = tokio::time::timeout(PATIENCE, client).await.unwrap().unwrap();
    (child, client)
}

#[tokio::test]
async fn a_real_client_over_pipes_is_a_session_on_record() {
    for (name, lifecycle) in lifecycles() {
        let yard = Yard::new(&[], "");
        let (mut child, client) = piped(&yard, &[], lifecycle).await;
        try_out(&yard, &client).await;
        client.cancel().await.unwrap();
        let ended = tokio::time::timeout(PATIENCE, child.wait()).await.unwrap().unwrap();
        assert!(ended.success(), "{name}: {ended:?}");
        let sessions = sessions(&yard);
        let [(title, facts)] = &sessions[..] else { panic!("{name}: {}", sessions.len()) };
        assert!(title.contains("Tools for "), "{title}");
        let kinds: Vec<&str> = facts.iter().map(|fact| fact["kind"].as_str().unwrap()).collect();
        let count = |kind: &str| kinds.iter().filter(|other| **other == kind).count();
        let counted = ["settled", "started", "asked", "answered"].map(count);
        assert_eq!(counted, [3, 1, 1, 1], "{name}: {kinds:?}");
    }
}

#[tokio::test]
async fn what_a_client_changed_is_undone_like_anything_else() {
    let yard = Yard::new(&[], "");
    let (_child, client) =
        piped(&yard, &["--mode", "auto", "--tools", "write,read"], ClientLifecycleMode::Initialize)
            .await;
    assert_eq!(client.list_all_tools().await.unwrap().len(), 2);
    let write = call(&client, "write", json!({"filePath": "new.txt", "content": "x\n"})).await;
    assert_eq!(write.is_error, Some(false), "{write:?}");
    assert_eq!(yard.read("new.txt").as_deref(), Some("x\n"));
    client.cancel().await.unwrap();
    drop(_child);
    let (_, list, _) = yard.run(&["session", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let started = Instant::now();
    loop {
        let (code, _, notes) =
            yard.run(&["session", "undo", list[0]["session"].as_str().unwrap(), "--yes"]);
        if code == 0 {
            break;
        }
        assert!(started.elapsed() < PATIENCE, "{notes}");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(yard.read("new.txt"), None);
}

/// A server over HTTP, which ends with the test.
struct Http {
    child: Child,
    address: String,
    token: String,
}

impl Http {
    fn start(yard: &Yard, arguments: &[&str]) -> Http {
        let file = yard.home().join("token");
        let file = file.to_str().unwrap();
        let arguments =
            [&["mcp", "serve", "--http", "0", "--token-file", file], arguments].concat();
        let mut child = yard.windlass(&arguments).spawn().unwrap();
        let mut notes = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert_ne!(notes.read_line(&mut line).unwrap(), 0, "it did not start");
            if let Some(rest) = line.strip_prefix("serving at http://") {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut notes, &mut std::io::sink()));
        let token = std::fs::read_to_string(file).unwrap().trim().to_owned();
        Http { child, address, token }
    }

    async fn client(&self, token: &str, lifecycle: ClientLifecycleMode) -> Result<Client, String> {
        let config =
            StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", self.address))
                .auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        let client = ().serve_with_lifecycle(transport, lifecycle);
        let client = tokio::time::timeout(PATIENCE, client).await.unwrap();
        client.map_err(|error| format!("{error:?}"))
    }

    /// The status line of a request that is written by hand.
    fn raw(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head = format!("POST {path} HTTP/1.1\r\n");
        let usual = [
            ("Host", &*self.address),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("Connection", "close"),
        ];
        let given = |name: &str| headers.iter().any(|(other, _)| *other == name);
        for (name, value) in usual.iter().filter(|(name, _)| !given(name)).chain(headers) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        stream.write_all(head.as_bytes()).unwrap();
        // Who refuses does not read on.
        let _ = stream.write_all(body);
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        line.trim().to_owned()
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_real_client_over_http_needs_the_token() {
    let yard = Yard::new(&[], "");
    let http = Http::start(&yard, &[]);
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(yard.home().join("token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(http.token.len(), 64);
    for (name, lifecycle) in lifecycles() {
        let wrong = http.client("wrong", lifecycle.clone()).await;
        assert!(wrong.is_err(), "{name}");
        let client = http.client(&http.token, lifecycle).await.unwrap();
        try_out(&yard, &client).await;
        client.cancel().await.unwrap();
    }
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;

#[test]
fn over_http_strangers_pages_and_floods_are_sent_away() {
    let yard = Yard::new(&[], "");
    let http = Http::start(&yard, &[]);
    let bearer = format!("Bearer {}", http.token);
    let known = ("Authorization", &*bearer);
    let hello = HELLO.as_bytes();
    let in_path = format!("/mcp/{}", http.token);
    let large = vec![b' '; 5 << 20];
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let own = format!("http://{}", http.address);
    for (what, path, headers, body, status) in [
        ("the token", "/mcp", &[known][..], hello, "200"),
        ("none", "/mcp", &[], hello, "401"),
        ("another", "/mcp", &[("Authorization", "Bearer x")], hello, "401"),
        ("in the path", &*in_path, &[], hello, "401"),
        ("elsewhere", "/", &[known], hello, "401"),
        ("another host", "/mcp", &[known, ("Host", "evil.example")], hello, "403"),
        ("a page", "/mcp", &[known, ("Origin", "http://evil.example")], hello, "403"),
        ("no page", "/mcp", &[known, ("Origin", "null")], hello, "403"),
        ("our own name", "/mcp", &[known, ("Origin", &*own)], hello, "200"),
        ("a local page", "/mcp", &[known, ("Origin", "http://localhost:3000")], hello, "403"),
        ("a flood", "/mcp", &[known], &large, "413"),
        ("a flood without the token", "/mcp", &[], &large, "401"),
        ("deep", "/mcp", &[known], &deep, "4"),
        ("no words", "/mcp", &[known], b"\xff\xfe{", "4"),
        ("still there", "/mcp", &[known], hello, "200"),
    ] {
        let answer = http.raw(path, headers, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{what}: {answer}");
    }
    drop(http);
    let http = Http::start(&yard, &["--token-in-path"]);
    let in_path = format!("/mcp/{}", http.token);
    assert!(http.raw(&in_path, &[], hello).contains(" 200"), "the same token, from the file");
    assert!(http.raw("/mcp/x", &[], hello).contains(" 401"));
}

#[test]
fn a_token_that_others_can_read_or_that_is_none_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let yard = Yard::new(&[], "");
    let file = yard.home().join("token");
    let arguments = ["mcp", "serve", "--http", "0", "--token-file", file.to_str().unwrap()];
    for (text, mode, told) in
        [("x".repeat(40), 0o644, "chmod 600"), ("short".into(), 0o600, "holds no token")]
    {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let (code, _, notes) = yard.run(&arguments);
        assert_eq!(code, 2, "{notes}");
        assert!(notes.contains(told), "{notes}");
    }
    let (code, _, notes) = yard.run(&["mcp", "serve", "--tools", "raed"]);
    assert!(code == 2 && notes.contains("there is no tool raed"), "{notes}");
}

/// A client that is written by hand.
struct Raw {
    child: Child,
    lines: std::sync::mpsc::Receiver<Value>,
}

impl Raw {
    fn start(yard: &Yard, arguments: &[&str]) -> Raw {
        let mut command = yard.windlass(&[&["mcp", "serve"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (tell, lines) = std::sync::mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = tell.send(serde_json::from_str(&line).unwrap());
            }
        });
        Raw { child, lines }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn say(&mut self, message: &Value) {
        self.send(format!("{message}\n").as_bytes());
    }

    fn greet(&mut self) {
        self.send(format!("{HELLO}\n").as_bytes());
        assert_eq!(self.answer(1)["result"]["serverInfo"]["name"], "windlass");
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    fn answer(&self, id: u64) -> Value {
        loop {
            let line = self.lines.recv_timeout(PATIENCE).unwrap();
            if line["id"] == id {
                return line;
            }
        }
    }

    /// Hangs up, and says how long the server took to leave.
    fn hang_up(mut self) -> Duration {
        drop(self.child.stdin.take());
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        started.elapsed()
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_client_that_talks_nonsense_hurts_nobody() {
    let yard = Yard::new(&[], "");
    let mut raw = Raw::start(&yard, &[]);
    raw.greet();
    let deep = [b"[".repeat(100_000), b"\n".to_vec()].concat();
    let long = [vec![b'x'; 6 << 20], b"\n".to_vec()].concat();
    for nonsense in
        [b"nonsense\n".to_vec(), b"\xff\xfe\x00\n".to_vec(), deep, long, b"{}\n[]\n".to_vec()]
    {
        raw.send(&nonsense);
    }
    for n in 0..2_000 {
        raw.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}}));
    }
    raw.call(7, "read", &json!({"filePath": "README.md"}));
    let answer = raw.answer(7);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("small"), "{answer}");
    let outside = json!({"filePath": "../../../../etc/passwd"});
    raw.call(8, "read", &outside);
    assert_eq!(raw.answer(8)["result"]["isError"], true);
    raw.send(b"{\"jsonrpc\": \"2.0\", \"id\": 9, \"meth");
    assert!(raw.hang_up() < Duration::from_secs(10));
}

#[test]
fn of_many_calls_at_once_some_are_refused_and_the_others_answered() {
    let yard = Yard::new(&[], "");
    let mut raw = Raw::start(&yard, &[]);
    raw.greet();
    for id in 100..400 {
        raw.call(id, "read", &json!({"filePath": "README.md"}));
    }
    let (mut done, mut refused) = (0, 0);
    while done + refused < 300 {
        let line = raw.lines.recv_timeout(PATIENCE).unwrap();
        match line["error"]["code"].as_i64() {
            Some(-32000) => refused += 1,
            None if line["result"]["isError"] == false => done += 1,
            _ => panic!("{line}"),
        }
    }
    assert!(done >= 64, "{done} done, {refused} refused");
    raw.hang_up();
}

#[test]
fn a_call_that_nobody_waits_for_any_more_is_stopped() {
    let rules = r#""permission": {"bash": "allow"}"#;
    let yard = Yard::new(&[], rules);
    let mut raw = Raw::start(&yard, &["--mode", "auto"]);
    raw.greet();
    let sleeps = json!({"command": "echo begun; touch begun; sleep 61.7", "description": "sleeps"});
    raw.call(5, "bash", &sleeps);
    let started = Instant::now();
    while yard.read("begun").is_none() {
        assert!(started.elapsed() < PATIENCE, "it does not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    raw.say(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}),
    );
    raw.call(6, "read", &json!({"filePath": "README.md"}));
    assert_eq!(raw.answer(6)["result"]["isError"], false, "the next call has its turn");
    raw.call(7, "bash", &sleeps);
    std::thread::sleep(Duration::from_millis(300));
    assert!(raw.hang_up() < Duration::from_secs(20));
    let mut left = String::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let mut line = Vec::new();
        if let Ok(mut file) = std::fs::File::open(entry.path().join("cmdline")) {
            let _ = file.read_to_end(&mut line);
        }
        left.push_str(&String::from_utf8_lossy(&line).replace('\0', " "));
        left.push('\n');
    }
    assert!(!left.contains("sleep 61.7"), "it is still asleep");
    let facts = yard.facts();
    let settled = facts.iter().filter(|fact| fact["kind"] == "settled");
    let settled: Vec<&str> =
        settled.map(|fact| fact["outcome"]["status"].as_str().unwrap()).collect();
    assert_eq!(settled[0], "interrupted", "{settled:?}");
}
