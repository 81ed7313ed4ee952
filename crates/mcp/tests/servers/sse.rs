//! Servers with the HTTP+SSE transport of revision 2024-11-05, good and hostile ones.

use crate::support::{TestWorkspace, run};
use secrecy::SecretString;
use serde_json::json;
use std::io::{BufRead, BufReader};
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
            let (env, server) = (TestWorkspace::new(), SseServer::start(mode));
            let before = peak_memory::reset_peak();
            let servers = env.open(vec![server.spec(&env, mode != "not_found", &[])]);
            let error = servers.inspect("r").await.unwrap_err().text;
            assert!(error.contains(expected), "{mode}: {error}");
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
