//! `mcp serve` with a real client, over standard input and output and over HTTP, and with hostile
//! clients.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests set up files and processes, and fail by panicking"
)]

mod support;

use rmcp::model::{CallToolRequestParams, CallToolResult, ProtocolVersion};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::TestEnv;

type McpTestClient = RunningService<RoleClient, ()>;

/// The time within which the server must answer.
const TIMEOUT: Duration = Duration::from_secs(30);

fn lifecycles() -> [(&'static str, ClientLifecycleMode); 2] {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    [
        ("2025-11-25", ClientLifecycleMode::Initialize),
        ("2026-07-28", ClientLifecycleMode::Discover { preferred_versions }),
    ]
}

async fn call(client: &McpTestClient, tool: &str, arguments: Value) -> CallToolResult {
    let arguments = arguments.as_object().unwrap().clone();
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    tokio::time::timeout(TIMEOUT, client.call_tool(params)).await.unwrap().unwrap()
}

fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    texts.map(|text| text.text.clone()).collect()
}

/// Checks the tools that every client gets, their results and their errors.
async fn check_tools(env: &TestEnv, client: &McpTestClient) {
    let tools = tokio::time::timeout(TIMEOUT, client.list_all_tools()).await.unwrap().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, ["bash", "edit", "glob", "grep", "job", "read", "webfetch", "write"]);
    let read = call(client, "read", json!({"filePath": "README.md"})).await;
    assert_eq!(read.is_error, Some(false));
    assert!(text(&read).contains("A small project."), "{read:?}");
    let wrong = call(client, "read", json!({"name": "README.md"})).await;
    assert_eq!(wrong.is_error, Some(true));
    assert!(text(&wrong).contains("`filePath`: required"), "{wrong:?}");
    let write = call(client, "write", json!({"filePath": "new.txt", "content": "x"})).await;
    assert_eq!(write.is_error, Some(true));
    assert!(text(&write).contains("the user who runs the server can add a rule"), "{write:?}");
    assert_eq!(env.read("new.txt"), None);
    for name in ["task", "undo", "question", "no_such\u{1b}[2Jtool"] {
        let params = CallToolRequestParams::new(name.to_owned());
        let error = client.call_tool(params).await.unwrap_err().to_string();
        assert!(error.contains("unknown tool"), "{error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}

/// Returns the titles and facts of the project's sessions.
fn sessions(env: &TestEnv) -> Vec<(String, Vec<Value>)> {
    let (_, list, _) = env.run(&["session", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| (row["title"].to_string(), env.facts_of(row["session"].as_str().unwrap())))
        .collect()
}

/// Starts the server and connects a real client over pipes.
async fn connect_over_pipes(
    env: &TestEnv,
    arguments: &[&str],
    lifecycle: ClientLifecycleMode,
) -> (tokio::process::Child, McpTestClient) {
    let mut command = env.windlass(&[&["mcp", "serve"], arguments].concat());
    command.stdin(Stdio::piped()).stderr(Stdio::inherit());
    let mut child = tokio::process::Command::from(command).kill_on_drop(true).spawn().unwrap();
    let ends = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let transport = AsyncRwTransport::new_client(ends.0, ends.1);
    let client = ().serve_with_lifecycle(transport, lifecycle);
    let client = tokio::time::timeout(TIMEOUT, client).await.unwrap().unwrap();
    (child, client)
}

#[tokio::test]
async fn a_client_over_pipes_is_recorded_as_a_session() {
    for (name, lifecycle) in lifecycles() {
        let env = TestEnv::new(&[], "");
        let (mut child, client) = connect_over_pipes(&env, &[], lifecycle).await;
        check_tools(&env, &client).await;
        client.cancel().await.unwrap();
        let ended = tokio::time::timeout(TIMEOUT, child.wait()).await.unwrap().unwrap();
        assert!(ended.success(), "{name}: {ended:?}");
        let sessions = sessions(&env);
        let [(title, facts)] = &sessions[..] else { panic!("{name}: {}", sessions.len()) };
        assert!(title.contains("Tools for "), "{title}");
        let kinds: Vec<&str> = facts.iter().map(|fact| fact["kind"].as_str().unwrap()).collect();
        let count = |kind: &str| kinds.iter().filter(|other| **other == kind).count();
        let counted =
            ["call_settled", "call_started", "permission_asked", "permission_answered"].map(count);
        assert_eq!(counted, [3, 1, 1, 1], "{name}: {kinds:?}");
    }
}

#[tokio::test]
async fn changes_of_a_client_can_be_undone() {
    let env = TestEnv::new(&[], "");
    let (_child, client) = connect_over_pipes(
        &env,
        &["--mode", "auto", "--tools", "write,read"],
        ClientLifecycleMode::Initialize,
    )
    .await;
    assert_eq!(client.list_all_tools().await.unwrap().len(), 2);
    let write = call(&client, "write", json!({"filePath": "new.txt", "content": "x\n"})).await;
    assert_eq!(write.is_error, Some(false), "{write:?}");
    assert_eq!(env.read("new.txt").as_deref(), Some("x\n"));
    client.cancel().await.unwrap();
    drop(_child);
    let (_, list, _) = env.run(&["session", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).unwrap();
    let started = Instant::now();
    loop {
        let (code, _, stderr) =
            env.run(&["session", "undo", list[0]["session"].as_str().unwrap(), "--yes"]);
        if code == 0 {
            break;
        }
        assert!(started.elapsed() < windlass_testkit::time_limits::limit(TIMEOUT), "{stderr}");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(env.read("new.txt"), None);
}

/// A server over HTTP, which is killed when it is dropped.
struct McpServeTestProcess {
    child: Child,
    address: String,
    token: String,
}

impl McpServeTestProcess {
    fn start(env: &TestEnv, arguments: &[&str]) -> McpServeTestProcess {
        let file = env.home().join("token");
        let file = file.to_str().unwrap();
        let arguments =
            [&["mcp", "serve", "--http", "0", "--token-file", file], arguments].concat();
        let mut child = env.windlass(&arguments).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the server did not start");
            if let Some(rest) = line.strip_prefix("serving at http://") {
                break rest.split('/').next().unwrap().to_owned();
            }
        };
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::sink()));
        let token = std::fs::read_to_string(file).unwrap().trim().to_owned();
        McpServeTestProcess { child, address, token }
    }

    async fn client(
        &self,
        token: &str,
        lifecycle: ClientLifecycleMode,
    ) -> Result<McpTestClient, String> {
        let config =
            StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", self.address))
                .auth_header(token);
        let transport = StreamableHttpClientTransport::from_config(config);
        let client = ().serve_with_lifecycle(transport, lifecycle);
        let client = tokio::time::timeout(TIMEOUT, client).await.unwrap();
        client.map_err(|error| format!("{error:?}"))
    }

    /// Sends a POST request without an HTTP library and returns the status line.
    fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TIMEOUT)).unwrap();
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
        // A server that refuses does not read the body.
        let _ = stream.write_all(body);
        let mut line = String::new();
        let _ = BufReader::new(stream).read_line(&mut line);
        line.trim().to_owned()
    }
}

impl Drop for McpServeTestProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn a_client_over_http_needs_the_token() {
    let env = TestEnv::new(&[], "");
    let http = McpServeTestProcess::start(&env, &[]);
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(env.home().join("token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(http.token.len(), 64);
    for (name, lifecycle) in lifecycles() {
        let wrong = http.client("wrong", lifecycle.clone()).await;
        assert!(wrong.is_err(), "{name}");
        let client = http.client(&http.token, lifecycle).await.unwrap();
        check_tools(&env, &client).await;
        client.cancel().await.unwrap();
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;

#[test]
fn http_requests_without_a_token_from_web_pages_or_too_large_are_refused() {
    let env = TestEnv::new(&[], "");
    let http = McpServeTestProcess::start(&env, &[]);
    let bearer = format!("Bearer {}", http.token);
    let known = ("Authorization", &*bearer);
    let initialize = INITIALIZE.as_bytes();
    let in_path = format!("/mcp/{}", http.token);
    let large = vec![b' '; 5 << 20];
    let deep = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
    let own = format!("http://{}", http.address);
    for (name, path, headers, body, status) in [
        ("the token", "/mcp", &[known][..], initialize, "200"),
        ("no token", "/mcp", &[], initialize, "401"),
        ("another token", "/mcp", &[("Authorization", "Bearer x")], initialize, "401"),
        ("the token in the path", &*in_path, &[], initialize, "401"),
        ("another path", "/", &[known], initialize, "401"),
        ("another host", "/mcp", &[known, ("Host", "evil.example")], initialize, "403"),
        ("a web page", "/mcp", &[known, ("Origin", "http://evil.example")], initialize, "403"),
        ("the origin null", "/mcp", &[known, ("Origin", "null")], initialize, "403"),
        ("the server's own origin", "/mcp", &[known, ("Origin", &*own)], initialize, "200"),
        (
            "a local web page",
            "/mcp",
            &[known, ("Origin", "http://localhost:3000")],
            initialize,
            "403",
        ),
        ("a large body", "/mcp", &[known], &large, "413"),
        ("a large body without the token", "/mcp", &[], &large, "401"),
        ("deeply nested JSON", "/mcp", &[known], &deep, "4"),
        ("invalid UTF-8", "/mcp", &[known], b"\xff\xfe{", "4"),
        ("the server still works", "/mcp", &[known], initialize, "200"),
    ] {
        let answer = http.post(path, headers, body);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {answer}");
    }
    drop(http);
    let http = McpServeTestProcess::start(&env, &["--token-in-path"]);
    let in_path = format!("/mcp/{}", http.token);
    assert!(
        http.post(&in_path, &[], initialize).contains(" 200"),
        "the token of the file is not accepted"
    );
    assert!(http.post("/mcp/x", &[], initialize).contains(" 401"));
}

#[test]
fn connections_that_send_no_token_take_no_place_from_clients() {
    let env = TestEnv::new(&[], "");
    let http = McpServeTestProcess::start(&env, &[]);
    let bearer = format!("Bearer {}", http.token);
    let known = ("Authorization", &*bearer);
    // Half of them send a part of a request, the others nothing.
    let half_open: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut stream = TcpStream::connect(&http.address).unwrap();
            if number % 2 == 0 {
                let _ = stream.write_all(b"POST /mcp HTTP/1.1\r\nHost: ");
            }
            stream
        })
        .collect();
    for _ in 0..3 {
        let answer = http.post("/mcp", &[known], INITIALIZE.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    // The oldest were closed to make place.
    let mut oldest = &half_open[0];
    oldest.set_read_timeout(Some(TIMEOUT)).unwrap();
    let mut rest = Vec::new();
    let closed = oldest.read_to_end(&mut rest);
    assert!(
        closed.is_ok() || closed.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
    );
}

#[test]
fn an_invalid_token_file_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new(&[], "");
    let file = env.home().join("token");
    let arguments = ["mcp", "serve", "--http", "0", "--token-file", file.to_str().unwrap()];
    for (text, mode, message) in
        [("x".repeat(40), 0o644, "chmod 600"), ("short".into(), 0o600, "contains no valid token")]
    {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        let (code, _, stderr) = env.run(&arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(message), "{stderr}");
    }
    let (code, _, stderr) = env.run(&["mcp", "serve", "--tools", "raed"]);
    assert!(code == 2 && stderr.contains("unknown tool `raed`"), "{stderr}");
}

/// A client without an MCP library.
struct RawMcpTestClient {
    child: Child,
    lines: std::sync::mpsc::Receiver<Value>,
}

impl RawMcpTestClient {
    fn start(env: &TestEnv, arguments: &[&str]) -> RawMcpTestClient {
        let mut command = env.windlass(&[&["mcp", "serve"], arguments].concat());
        let mut child = command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (sender, lines) = std::sync::mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        RawMcpTestClient { child, lines }
    }

    fn send(&mut self, bytes: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn send_message(&mut self, message: &Value) {
        self.send(format!("{message}\n").as_bytes());
    }

    fn initialize(&mut self) {
        self.send(format!("{INITIALIZE}\n").as_bytes());
        assert_eq!(self.answer(1)["result"]["serverInfo"]["name"], "windlass");
        self.send_message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.send_message(
            &json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}),
        );
    }

    fn answer(&self, id: u64) -> Value {
        loop {
            let line = self.lines.recv_timeout(TIMEOUT).unwrap();
            if line["id"] == id {
                return line;
            }
        }
    }

    /// Disconnects and returns the time until the server has ended.
    fn disconnect(mut self) -> Duration {
        drop(self.child.stdin.take());
        let started = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(
                started.elapsed() < windlass_testkit::time_limits::limit(TIMEOUT),
                "the server does not end"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        started.elapsed()
    }
}

impl Drop for RawMcpTestClient {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn invalid_messages_of_a_client_are_ignored() {
    let env = TestEnv::new(&[], "");
    let mut client = RawMcpTestClient::start(&env, &[]);
    client.initialize();
    let deep = [b"[".repeat(100_000), b"\n".to_vec()].concat();
    let long = [vec![b'x'; 6 << 20], b"\n".to_vec()].concat();
    for invalid in
        [b"nonsense\n".to_vec(), b"\xff\xfe\x00\n".to_vec(), deep, long, b"{}\n[]\n".to_vec()]
    {
        client.send(&invalid);
    }
    for n in 0..2_000 {
        client.send_message(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": n}}));
    }
    client.call(7, "read", &json!({"filePath": "README.md"}));
    let answer = client.answer(7);
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("small"), "{answer}");
    let outside = json!({"filePath": "../../../../etc/passwd"});
    client.call(8, "read", &outside);
    assert_eq!(client.answer(8)["result"]["isError"], true);
    client.send(b"{\"jsonrpc\": \"2.0\", \"id\": 9, \"meth");
    assert!(client.disconnect() < Duration::from_secs(10));
}

#[test]
fn too_many_concurrent_calls_are_refused_and_the_others_answered() {
    let env = TestEnv::new(&[], "");
    let mut client = RawMcpTestClient::start(&env, &[]);
    client.initialize();
    for id in 100..400 {
        client.call(id, "read", &json!({"filePath": "README.md"}));
    }
    let (mut done, mut refused) = (0, 0);
    while done + refused < 300 {
        let line = client.lines.recv_timeout(TIMEOUT).unwrap();
        match line["error"]["code"].as_i64() {
            Some(-32000) => refused += 1,
            None if line["result"]["isError"] == false => done += 1,
            _ => panic!("{line}"),
        }
    }
    assert!(done >= 64, "{done} done, {refused} refused");
    client.disconnect();
}

#[test]
fn canceled_and_abandoned_calls_are_stopped() {
    let rules = r#""permission": {"bash": "allow"}"#;
    let env = TestEnv::new(&[], rules);
    let mut client = RawMcpTestClient::start(&env, &["--mode", "auto"]);
    client.initialize();
    let sleep_call =
        json!({"command": "echo begun; touch begun; sleep 61.7", "description": "sleeps"});
    client.call(5, "bash", &sleep_call);
    let started = Instant::now();
    while env.read("begun").is_none() {
        assert!(
            started.elapsed() < windlass_testkit::time_limits::limit(TIMEOUT),
            "the command did not start"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    client.send_message(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}}),
    );
    client.call(6, "read", &json!({"filePath": "README.md"}));
    assert_eq!(client.answer(6)["result"]["isError"], false, "the next call is not answered");
    client.call(7, "bash", &sleep_call);
    std::thread::sleep(Duration::from_millis(300));
    assert!(client.disconnect() < Duration::from_secs(20));
    let mut processes = String::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let mut line = Vec::new();
        if let Ok(mut file) = std::fs::File::open(entry.path().join("cmdline")) {
            let _ = file.read_to_end(&mut line);
        }
        processes.push_str(&String::from_utf8_lossy(&line).replace('\0', " "));
        processes.push('\n');
    }
    assert!(!processes.contains("sleep 61.7"), "the command still runs");
    let facts = env.facts();
    let settled = facts.iter().filter(|fact| fact["kind"] == "call_settled");
    let settled: Vec<&str> =
        settled.map(|fact| fact["outcome"]["status"].as_str().unwrap()).collect();
    assert_eq!(settled[0], "interrupted", "{settled:?}");
}
