//! Tokens of TCP clients with the real binary (N6): made and revoked by commands while the server
//! runs, named in its access log, and never written anywhere.

use crate::session_client::SessionClient;
use crate::support::TestEnv;
use crate::support::server::{TestServer, caller, connect};
use crate::user_story::wait_until;
use futures_util::StreamExt;
use secrecy::SecretString;
use std::path::Path;
use std::time::{Duration, Instant};
use windlass_protocol::frontend_messages::FrontendRequest;
use windlass_protocol::session_stream::{SessionStreamItem, StreamClosingReason};
use windlass_protocol::{AccessRight, PermissionMode, RequestError, SessionOp};
use windlass_server::{FrontendService, RemoteHost, ServerAddress, WatchOptions};

fn add_token(env: &TestEnv, name: &str, right: &str) -> String {
    let arguments = ["serve", "token", "add", name, "--right", right];
    let (code, token, stderr) = env.run(&arguments);
    assert_eq!(code, 0, "{stderr}");
    token.trim().to_owned()
}

async fn connect_tcp(server: &TestServer, token: &str) -> Result<RemoteHost, RequestError> {
    let url = format!("http://{}/", server.tcp_address()).parse().unwrap();
    RemoteHost::connect(ServerAddress::Url(url, SecretString::from(token.to_owned()))).await
}

/// Returns the files below a folder that contain a text.
fn files_with(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if std::fs::read(&path).is_ok_and(|bytes| {
                bytes.windows(text.len()).any(|window| window == text.as_bytes())
            }) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_works_while_it_exists_and_is_written_nowhere() {
    let env = TestEnv::new(&["say Hi"], "");
    let server = TestServer::start(&env, &["--listen", "127.0.0.1:0"]);
    // The server runs already when the tokens are made.
    let (reader, writer) = (add_token(&env, "phone", "read"), add_token(&env, "laptop", "write"));
    let mut session = SessionClient::start(&env).await;
    session.submit(SessionOp::prompt("hello")).await.unwrap();
    session.wait_for_turn_end().await;
    let me = caller(&env);
    wait_until(|| server_accepts(&server, &writer));
    let write = connect_tcp(&server, &writer).await.unwrap();
    let read = connect_tcp(&server, &reader).await.unwrap();
    let op = |op| FrontendRequest::SessionOp {
        session: session.session,
        id: Some(windlass_protocol::OpId(uuid::Uuid::now_v7())),
        op,
    };
    let rename = || op(SessionOp::RenameSession { title: "renamed".to_owned() });
    let needs_write = Err(RequestError::Forbidden { needs: AccessRight::Write });
    assert_eq!(read.request(&me, rename()).await, needs_write);
    write.request(&me, rename()).await.unwrap();
    let full = op(SessionOp::SetMode { mode: PermissionMode::Full });
    let needs_admin = Err(RequestError::Forbidden { needs: AccessRight::Admin });
    assert_eq!(write.request(&me, full).await, needs_admin);
    assert!(matches!(connect_tcp(&server, "wlt_wrong").await, Err(RequestError::Unauthorized)));

    // Revoked by a command, the stream ends within a second.
    let options = WatchOptions::default();
    let mut items = read.watch_session(&me, session.session, options).await.unwrap();
    items.next().await.unwrap();
    let (code, _, stderr) = env.run(&["serve", "token", "revoke", "phone"]);
    let revoked = Instant::now();
    assert_eq!(code, 0, "{stderr}");
    loop {
        match tokio::time::timeout(Duration::from_secs(20), items.next()).await.unwrap() {
            Some(SessionStreamItem::Closing(closing)) => {
                assert_eq!(closing.reason, StreamClosingReason::TokenRevoked);
                break;
            }
            Some(_) => {}
            None => panic!("the stream ended without a reason"),
        }
    }
    assert!(revoked.elapsed() < Duration::from_secs(2), "{:?}", revoked.elapsed());
    assert!(matches!(connect_tcp(&server, &reader).await, Err(RequestError::Unauthorized)));

    let log = std::fs::read_to_string(env.data().join("log/windlass.log")).unwrap();
    assert!(log.contains("laptop") && log.contains("/v1/sessions/{id}/ops"), "{log}");
    assert!(log.contains("unauthorized") && log.contains("forbidden"), "{log}");
    connect(&env).await;
    for token in [&reader, &writer] {
        assert!(!server.stderr().contains(token.as_str()), "the token was printed");
        assert_eq!(files_with(&env.home(), token), Vec::<String>::new());
    }
}

fn server_accepts(server: &TestServer, token: &str) -> bool {
    let status = std::process::Command::new("curl")
        .args([
            "--silent",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
            "--max-time",
            "5",
        ])
        .args(["--header", &format!("Authorization: Bearer {token}")])
        .arg(format!("http://{}/v1", server.tcp_address()))
        .output()
        .unwrap();
    status.stdout == b"200"
}

#[test]
fn an_address_that_others_can_reach_needs_tls_or_a_word() {
    let env = TestEnv::new(&[], "");
    let (code, _, stderr) = env.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("--tls-cert") && stderr.contains("--plain"), "{stderr}");
}
