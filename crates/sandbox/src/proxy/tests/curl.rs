//! The same with curl, which is what commands use.

use super::world::{Server, TOKEN, World};
use crate::proxy::Proxy;
use std::process::{Command, Stdio};

const PUBLIC: &str = "93.184.216.34";

/// What curl says with the variables a command gets: its exit code and output.
async fn curl(world: &World, token: &str, arguments: &[&str]) -> Option<(i32, String)> {
    let mut command = Command::new("curl");
    command.args(["-q", "-s", "-S", "--max-time", "15"]).args(arguments);
    command.env_clear().envs(Proxy::environment(world.address.port(), token));
    command.env("PATH", "/usr/bin:/bin:/usr/local/bin").stdin(Stdio::null());
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned()))
}

fn world() -> World {
    let mut world = World::new(&["allowed.com", "next.com", "loop.com"]);
    for (name, address, words) in [
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
        world.name(name, &[&[address]]);
        world.serve(address, Server::Says(words));
    }
    world
}

#[tokio::test]
async fn curl_reaches_what_is_listed_in_every_way() {
    let world = world();
    let Some(said) = curl(&world, TOKEN, &["http://allowed.com/"]).await else { return };
    assert_eq!(said, (0, "hello".to_owned()));
    let tunnelled = curl(&world, TOKEN, &["--proxytunnel", "http://allowed.com/"]).await.unwrap();
    assert_eq!(tunnelled, (0, "hello".to_owned()));
    let socks = format!("socks5h://windlass:{TOKEN}@{}", world.address);
    let said = curl(&world, TOKEN, &["--proxy", &socks, "http://allowed.com/"]).await.unwrap();
    assert_eq!(said, (0, "hello".to_owned()));
    let posted = curl(&world, TOKEN, &["-d", "a=b", "http://allowed.com/"]).await.unwrap();
    assert_eq!(posted, (0, "hello".to_owned()));
    let chunked =
        ["-H", "Transfer-Encoding: chunked", "-H", "Expect:", "-d", "a=b", "http://allowed.com/"];
    assert_eq!(curl(&world, TOKEN, &chunked).await.unwrap(), (0, "hello".to_owned()));
    assert_eq!(world.decided().len(), 5);
    assert!(world.got().iter().all(|got| !got.contains("Proxy-")), "{:?}", world.got());
}

#[tokio::test]
async fn curl_is_told_what_was_refused_and_what_to_do() {
    let world = world();
    let Some((code, text)) = curl(&world, TOKEN, &["http://evil.io/"]).await else { return };
    assert_eq!(code, 0);
    assert_eq!(
        text,
        "evil.io:80 was refused: it is not on the list of hosts. To reach it, ask the person to add \"evil.io\" to sandbox.network\n"
    );
    let (code, text) = curl(&world, TOKEN, &["https://evil.io/"]).await.unwrap();
    assert!(code != 0 && text.contains("403"), "{text}");
    let socks = format!("socks5h://windlass:{TOKEN}@{}", world.address);
    let (code, text) = curl(&world, TOKEN, &["--proxy", &socks, "http://evil.io/"]).await.unwrap();
    assert!(code != 0, "{text}");
    let (_, text) = curl(&world, "wrong", &["http://allowed.com/"]).await.unwrap();
    assert!(text.contains("token is missing or wrong"), "{text}");
    assert_eq!(world.decided(), ["-evil.io:80", "-evil.io:443", "-evil.io:80"]);
    assert!(world.got().is_empty());
}

#[tokio::test]
async fn a_redirect_is_checked_like_any_request() {
    let world = world();
    let Some(said) = curl(&world, TOKEN, &["-L", "http://next.com/"]).await else { return };
    assert_eq!(said, (0, "hello".to_owned()));
    let (_, text) = curl(&world, TOKEN, &["-L", "http://loop.com/"]).await.unwrap();
    assert!(text.starts_with("evil.io:80 was refused"), "{text}");
    assert_eq!(world.decided(), ["+next.com:80", "+allowed.com:80", "+loop.com:80", "-evil.io:80"]);
}
