//! Tests of the proxy with curl, which commands use.

use super::test_network::{FakeServerBehavior, ProxyTestEnv, TOKEN};
use crate::network::proxy::Proxy;
use std::process::{Command, Stdio};

const PUBLIC: &str = "93.184.216.34";

/// Runs curl with the variables of a command, and returns its exit code and output. Returns `None`
/// if curl is not installed.
async fn curl(env: &ProxyTestEnv, token: &str, arguments: &[&str]) -> Option<(i32, String)> {
    let mut command = Command::new("curl");
    command.args(["-q", "-s", "-S", "--max-time", "15"]).args(arguments);
    command.env_clear().envs(Proxy::environment(env.address.port(), token));
    command.env("PATH", "/usr/bin:/bin:/usr/local/bin").stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned()))
}

fn create_env() -> ProxyTestEnv {
    let mut env = ProxyTestEnv::new(&["allowed.com", "next.com", "loop.com"]);
    for (name, address, response) in [
        ("allowed.com", PUBLIC, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ("evil.io", "93.184.216.35", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil"),
        (
            "next.com",
            "93.184.216.36",
            "HTTP/1.1 302 Found\r\nLocation: http://allowed.com/\r\nContent-Length: 0\r\n\r\n",
        ),
        (
            "loop.com",
            "93.184.216.37",
            "HTTP/1.1 302 Found\r\nLocation: http://evil.io/\r\nContent-Length: 0\r\n\r\n",
        ),
    ] {
        env.add_name(name, &[&[address]]);
        env.add_server(address, FakeServerBehavior::Responds(response));
    }
    env
}

#[tokio::test]
async fn curl_reaches_listed_hosts_by_every_protocol() {
    let env = create_env();
    let Some(result) = curl(&env, TOKEN, &["http://allowed.com/"]).await else { return };
    assert_eq!(result, (0, "hello".to_owned()));
    let tunneled = curl(&env, TOKEN, &["--proxytunnel", "http://allowed.com/"]).await.unwrap();
    assert_eq!(tunneled, (0, "hello".to_owned()));
    let socks = format!("socks5h://windlass:{TOKEN}@{}", env.address);
    let result = curl(&env, TOKEN, &["--proxy", &socks, "http://allowed.com/"]).await.unwrap();
    assert_eq!(result, (0, "hello".to_owned()));
    let posted = curl(&env, TOKEN, &["-d", "a=b", "http://allowed.com/"]).await.unwrap();
    assert_eq!(posted, (0, "hello".to_owned()));
    let chunked =
        ["-H", "Transfer-Encoding: chunked", "-H", "Expect:", "-d", "a=b", "http://allowed.com/"];
    assert_eq!(curl(&env, TOKEN, &chunked).await.unwrap(), (0, "hello".to_owned()));
    assert_eq!(env.decisions().len(), 5);
    assert!(
        env.received().iter().all(|received| !received.contains("Proxy-")),
        "{:?}",
        env.received()
    );
}

#[tokio::test]
async fn curl_shows_the_refused_host_and_what_to_do() {
    let env = create_env();
    let Some((code, text)) = curl(&env, TOKEN, &["http://evil.io/"]).await else { return };
    assert_eq!(code, 0);
    assert_eq!(
        text,
        "evil.io:80 was refused: it is not on the list of allowed hosts. \
         To reach it, ask the user to add \"evil.io\" to sandbox.network\n"
    );
    let (code, text) = curl(&env, TOKEN, &["https://evil.io/"]).await.unwrap();
    assert!(code != 0 && text.contains("403"), "{text}");
    let socks = format!("socks5h://windlass:{TOKEN}@{}", env.address);
    let (code, text) = curl(&env, TOKEN, &["--proxy", &socks, "http://evil.io/"]).await.unwrap();
    assert!(code != 0, "{text}");
    let (_, text) = curl(&env, "wrong", &["http://allowed.com/"]).await.unwrap();
    assert!(text.contains("token is missing or wrong"), "{text}");
    assert_eq!(env.decisions(), ["-evil.io:80", "-evil.io:443", "-evil.io:80"]);
    assert!(env.received().is_empty());
}

#[tokio::test]
async fn a_redirect_is_checked_like_any_request() {
    let env = create_env();
    let Some(result) = curl(&env, TOKEN, &["-L", "http://next.com/"]).await else { return };
    assert_eq!(result, (0, "hello".to_owned()));
    let (_, text) = curl(&env, TOKEN, &["-L", "http://loop.com/"]).await.unwrap();
    assert!(text.starts_with("evil.io:80 was refused"), "{text}");
    assert_eq!(env.decisions(), ["+next.com:80", "+allowed.com:80", "+loop.com:80", "-evil.io:80"]);
}
