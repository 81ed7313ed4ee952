//! Messages of servers that cannot be used, each from its real cause.

use crate::support::{TestWorkspace, run};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::time::Duration;
use windlass_mcp::{AddressPolicy, McpAuth, McpEndpoint, McpServerSpec};
use windlass_testkit::mock_http_server::{
    MockHttpServer, RecordedRequest, ResponsePart, html, reply,
};

/// Words of libraries, which no message may contain.
const LIBRARY_WORDS: &[&str] = &[
    "rmcp",
    "reqwest",
    "hyper",
    "Transport",
    "os error",
    "Some(",
    "Error {",
    "error sending",
    "JSON-RPC",
    "Client error",
];

/// Answers each request with a JSON-RPC member, such as `"result": {}`.
fn answer(member: &'static str) -> impl Fn(&RecordedRequest) -> Vec<ResponsePart> {
    move |request: &RecordedRequest| {
        let body: serde_json::Value = serde_json::from_str(&request.body).unwrap_or_default();
        let body = format!(r#"{{"jsonrpc": "2.0", "id": {}, {member}}}"#, body["id"]);
        reply("200 OK", &["content-type: application/json"], body)
    }
}

/// Starts a server that answers anything, such as the start of TLS, in plain text. Returns its port.
fn start_plain_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().take(10) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    port
}

fn http_spec(env: &TestWorkspace, url: String) -> McpServerSpec {
    let endpoint = McpEndpoint::Http {
        url,
        headers: Vec::new(),
        auth: McpAuth::None,
        uses_sse: false,
        address_policy: AddressPolicy::Anywhere,
    };
    let start_timeout = Duration::from_secs(3);
    McpServerSpec { endpoint, start_timeout, ..env.server_spec("r", "") }
}

async fn check(env: &TestWorkspace, spec: McpServerSpec, cause: &str, expected: &str) {
    let error = env.open(vec![spec]).inspect("r").await.unwrap_err().text;
    println!("{cause}: {error}");
    assert!(error.contains(expected), "{cause}: {error}");
    let word = LIBRARY_WORDS.iter().find(|word| error.contains(**word));
    assert_eq!(word, None, "{cause}: {error}");
}

pub fn each_failure_says_what_happened_and_what_to_do() {
    run(async {
        let env = TestWorkspace::new();
        for (status, expected) in [
            ("401 Unauthorized", "it requires a login (HTTP 401)"),
            ("403 Forbidden", "it denied access (HTTP 403); check the rights of your account"),
            ("404 Not Found", "there is no MCP server at its `url` (HTTP 404); correct the `url`"),
            ("405 Nope", "its `url` does not accept messages (HTTP 405); correct the `url`"),
            (
                "418 Teapot",
                "it answered with HTTP 418; check its `url`. Its answer: short and stout",
            ),
            ("503 Later", "it is not available now (HTTP 503); try again later"),
        ] {
            let server = MockHttpServer::start(move |_| reply(status, &[], "short and stout"));
            let url = format!("http://127.0.0.1:{}/mcp", server.port());
            check(&env, http_spec(&env, url), status, expected).await;
        }
        let server = MockHttpServer::start(|_| html("<p>Welcome"));
        let url = format!("http://127.0.0.1:{}/", server.port());
        let expected = "it answered with text/html, which is not MCP; check its `url`";
        check(&env, http_spec(&env, url), "a web page", expected).await;
        let tls = format!("https://127.0.0.1:{}/", start_plain_server());
        let expected = "it does not speak TLS at this address; use http:// in its `url`";
        check(&env, http_spec(&env, tls), "no TLS", expected).await;

        let server =
            MockHttpServer::start(answer(r#""error": {"code": -1, "message": "closed\u001b"}"#));
        let url = format!("http://127.0.0.1:{}/", server.port());
        check(&env, http_spec(&env, url), "an error", "it rejected the connection: closed").await;
        let server = MockHttpServer::start(answer(r#""result": {"tools": 7}"#));
        let url = format!("http://127.0.0.1:{}/", server.port());
        let expected = "its first answer is invalid; it may not be an MCP server";
        check(&env, http_spec(&env, url), "a wrong answer", expected).await;

        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let expected = "the connection was refused; start the server, or correct its `url`";
        // Words in the URL say nothing about the cause.
        for path in ["", "certificates", "Expired"] {
            let url = format!("http://127.0.0.1:{port}/{path}");
            check(&env, http_spec(&env, url), "refused", expected).await;
        }
        let expected = "its host name cannot be resolved; check its `url` and the network";
        check(&env, http_spec(&env, "http://nowhere.invalid/".into()), "no host", expected).await;
        let silent = MockHttpServer::start(|_| vec![ResponsePart::Silence]);
        let url = format!("http://127.0.0.1:{}/", silent.port());
        let expected =
            "it did not answer within 3 s; increase its `timeout`, or see `windlass mcp logs r`";
        check(&env, http_spec(&env, url), "silence", expected).await;

        check(
            &env,
            env.server_spec("r", "exit_at_start"),
            "exits",
            "exited with code 7: the license",
        )
        .await;
        let mut missing = env.server_spec("r", "good");
        if let McpEndpoint::Stdio(process) = &mut missing.endpoint {
            process.program = "no-such-program".into();
        }
        let expected = "no-such-program is not installed, or not in PATH";
        check(&env, missing, "no program", expected).await;
        let mut sleeps = env.server_spec("r", "sleeps");
        sleeps.start_timeout = Duration::from_secs(1);
        check(&env, sleeps, "hangs", "it did not answer within 1 s; increase its `timeout`").await;
    });
}
