//! Servers with the HTTP+SSE transport of revision 2024-11-05, good and hostile ones.

use crate::support::{TestWorkspace, run};
use secrecy::SecretString;
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use windlass_mcp::{AddressPolicy, McpAuth, McpEndpoint, McpServerSpec, ProtocolRevision};
use windlass_testkit::peak_memory;

/// A running `sse_server.py`.
struct SseServer {
    process: Child,
    port: u16,
}

impl SseServer {
    fn start(mode: &str) -> SseServer {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sse_server.py");
        let mut process =
            Command::new("python3").args([script, mode]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        SseServer { process, port: line.trim().parse().unwrap() }
    }

    fn spec(&self, env: &TestWorkspace, uses_sse: bool, headers: &[(&str, &str)]) -> McpServerSpec {
        let header = |(name, value): &(&str, &str)| {
            ((*name).to_owned(), SecretString::from((*value).to_owned()))
        };
        let endpoint = McpEndpoint::Http {
            url: format!("http://127.0.0.1:{}/sse", self.port),
            headers: headers.iter().map(header).collect(),
            auth: McpAuth::None,
            uses_sse,
            address_policy: AddressPolicy::Anywhere,
        };
        let start_timeout = Duration::from_secs(3);
        McpServerSpec { endpoint, start_timeout, ..env.server_spec("r", "") }
    }
}

impl SseServer {
    /// Returns the number of calls that the server has received.
    fn count_calls(&self) -> usize {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let request = "GET /calls HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.rsplit('\n').next().unwrap().parse().unwrap()
    }
}

impl Drop for SseServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn an_old_server_is_used_with_and_without_its_type() {
    run(async {
        for (mode, uses_sse) in [("good", true), ("good", false), ("flood", true)] {
            let (env, server) = (TestWorkspace::new(), SseServer::start(mode));
            let before = peak_memory::reset_peak();
            let started_at = Instant::now();
            let servers = env.open(vec![server.spec(&env, uses_sse, &[])]);
            let inventory = servers.inspect("r").await.unwrap();
            assert_eq!(inventory.revision, ProtocolRevision::Initialize);
            let outcome = env.call("r_echo", json!({"text": "old"})).await;
            assert_eq!(outcome.text(), "echo: old", "{mode}");
            let growth_mb = peak_memory::peak_kb().saturating_sub(before) >> 10;
            assert!(growth_mb < 64, "{mode}: {growth_mb} MB");
            let limit = windlass_testkit::time_limits::limit(Duration::from_secs(20));
            assert!(started_at.elapsed() < limit, "{mode}: {:?}", started_at.elapsed());
            servers.close().await;
        }
    });
}

pub fn headers_reach_the_event_stream_and_the_messages() {
    run(async {
        let (env, server) = (TestWorkspace::new(), SseServer::start("login"));
        let right = [("Authorization", "Bearer right")];
        let servers = env.open(vec![server.spec(&env, false, &right)]);
        servers.inspect("r").await.unwrap();
        for (headers, expected) in [
            (
                &[("Authorization", "Bearer wrong")][..],
                "does not accept the `Authorization` header",
            ),
            (&[], "`\"oauth\": false` forbids"),
        ] {
            let env = TestWorkspace::new();
            let servers = env.open(vec![server.spec(&env, true, headers)]);
            let error = servers.inspect("r").await.unwrap_err().text;
            assert!(error.contains(expected) && !error.contains("wrong"), "{error}");
        }
    });
}

pub fn a_hostile_event_stream_is_refused() {
    run(async {
        for (mode, expected) in [
            ("other_origin", "wants its messages at another address (127.0.0.2)"),
            ("no_endpoint", "did not answer within 3 s"),
            ("ends", "names no address for messages"),
            ("long_event", "its event stream is broken"),
            ("not_found", "there is no MCP server at its `url` (HTTP 404)"),
        ] {
            let server = SseServer::start(mode);
            let before = peak_memory::reset_peak();
            // The reason is the same after messages at the URL itself were refused.
            for uses_sse in if mode == "not_found" { &[false][..] } else { &[true, false] } {
                let env = TestWorkspace::new();
                let servers = env.open(vec![server.spec(&env, *uses_sse, &[])]);
                let error = servers.inspect("r").await.unwrap_err().text;
                assert!(error.contains(expected), "{mode}: {error}");
            }
            let growth_mb = peak_memory::peak_kb().saturating_sub(before) >> 10;
            assert!(growth_mb < 64, "{mode}: {growth_mb} MB");
        }
        let (env, server) = (TestWorkspace::new(), SseServer::start("refuses_calls"));
        let servers = env.open(vec![server.spec(&env, true, &[])]);
        servers.inspect("r").await.unwrap();
        let outcome = env.call("r_echo", json!({"text": "a"})).await;
        assert!(outcome.text().contains("it denied access (HTTP 403)"), "{outcome:?}");
    });
}

pub fn a_call_that_may_have_been_sent_is_not_repeated() {
    run(async {
        for (mode, expected) in [
            ("says_ok", "echo: once"),
            ("drops_calls", "It may have run: verify"),
            ("fails_calls", "(HTTP 502); try again later). It may have run: verify"),
        ] {
            let (env, server) = (TestWorkspace::new(), SseServer::start(mode));
            let servers = env.open(vec![server.spec(&env, true, &[])]);
            servers.inspect("r").await.unwrap();
            let outcome = env.call("r_echo", json!({"text": "once"})).await;
            assert!(outcome.text().contains(expected), "{mode}: {outcome:?}");
            assert_eq!(server.count_calls(), 1, "{mode}");
        }
    });
}

pub fn a_slow_post_does_not_delay_other_messages() {
    run(async {
        let (env, server) = (TestWorkspace::new(), SseServer::start("slow_posts"));
        let servers = env.open(vec![server.spec(&env, true, &[])]);
        servers.inspect("r").await.unwrap();
        let slow = env.call("r_echo", json!({"text": "slow"}));
        let fast = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            env.call("r_echo", json!({"text": "fast"})).await
        };
        tokio::select! {
            outcome = slow => panic!("the server holds this call back: {outcome:?}"),
            outcome = fast => assert_eq!(outcome.text(), "echo: fast"),
        }
    });
}
