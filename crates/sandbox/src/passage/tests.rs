//! A passage over the real wire: where it leads, and where it does not.
#![allow(clippy::disallowed_methods, reason = "a server of a test ends with the test")]

use super::*;
use base64::Engine as _;
use std::net::IpAddr;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass_permission::{Decision, Policy, Rules};

/// What a name leads to, one answer after the other; the last one stays.
type Answers = Vec<Vec<&'static str>>;

struct Book(Mutex<Vec<(&'static str, Answers)>>);

impl Names for Book {
    fn resolve(&self, name: &str) -> Vec<IpAddr> {
        let mut book = self.0.lock().unwrap();
        let Some((_, answers)) = book.iter_mut().find(|(known, _)| *known == name) else {
            return Vec::new();
        };
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        answer.iter().map(|address| address.parse().unwrap()).collect()
    }
}

fn workspace() -> Workspace {
    Workspace::at(&std::env::temp_dir()).unwrap()
}

/// A world that may fetch from these, under these rules.
fn world(workspace: &Workspace, hosts: &[&str], rules: serde_json::Value) -> World {
    let accesses: Vec<Access> =
        hosts.iter().map(|host| Access::Fetch { host: (*host).to_owned() }).collect();
    let policy = Policy::new(Rules::parse(&rules).unwrap());
    let grant = match policy.decide(accesses, &[]) {
        Decision::Allowed(grant) => grant,
        Decision::Ask(question) => question.answered(&windlass_protocol::Answer::Once).unwrap(),
        Decision::Denied { reason } => panic!("{reason}"),
    };
    workspace.look(grant)
}

/// Asks the passage for a page of a host, and gives the head of the answer.
async fn fetch(passage: &Passage, host: &str) -> String {
    let (user, place) = passage.proxy().strip_prefix("http://").unwrap().split_once('@').unwrap();
    let mut stream = TcpStream::connect(place).await.unwrap();
    let secret = base64::engine::general_purpose::STANDARD.encode(user);
    let request = format!(
        "GET http://{host}/ HTTP/1.1\r\nhost: {host}\r\nproxy-authorization: Basic {secret}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned()
}

/// A server on this machine that answers everybody.
async fn server() -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 1024];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
        }
    });
    port
}

#[tokio::test]
async fn it_leads_to_what_was_granted_or_is_allowed_and_to_nothing_else() {
    let rules = serde_json::json!({"webfetch": {
        "*.open.test": "allow", "asked.test": "ask", "closed.test": "deny",
    }});
    let world = world(&workspace(), &["granted.test"], rules);
    for host in ["granted.test", "a.open.test"] {
        world.passage(host).unwrap();
    }
    for host in ["asked.test", "closed.test", "other.test", "open.test", "granted.test:8080"] {
        let error = world.passage(host).unwrap_err();
        assert!(matches!(error, Error::NotGranted { .. }), "{host}: {error}");
    }
}

#[tokio::test]
async fn what_is_not_public_is_refused_unless_the_person_named_it() {
    let port = server().await;
    let here = format!("127.0.0.1:{port}");
    let rules = serde_json::json!({});
    let closed = world(&workspace(), &[&here], rules.clone());
    let passage = closed.passage(&here).unwrap();
    assert!(fetch(&passage, &here).await.contains("403"));
    assert_eq!(passage.refused().unwrap(), "it leads to 127.0.0.1, which is not public");

    let inside = Hosts::parse(std::slice::from_ref(&here)).unwrap();
    let open = world(&workspace().with_inside(inside), &[&here], rules);
    let passage = open.passage(&here).unwrap();
    assert!(fetch(&passage, &here).await.contains("200"));
    assert_eq!(passage.refused(), None);
    // It leads to that one host, whoever asks.
    assert!(fetch(&passage, "127.0.0.1:1").await.contains("403"));
    assert!(fetch(&passage, "example.com").await.contains("403"));
}

#[tokio::test]
async fn a_name_that_changes_its_mind_leads_nowhere() {
    let port = server().await;
    let book = vec![
        ("mixed.test", vec![vec!["93.184.216.34", "127.0.0.1"]]),
        ("moved.test", vec![vec!["10.0.0.1"], vec!["93.184.216.34"]]),
        ("mapped.test", vec![vec!["::ffff:127.0.0.1"]]),
        ("meta.test", vec![vec!["169.254.169.254"]]),
    ];
    let names = Arc::new(Book(Mutex::new(book)));
    let workspace = workspace().with_names(names);
    for name in ["mixed.test", "moved.test", "mapped.test", "meta.test"] {
        let host = format!("{name}:{port}");
        let world = world(&workspace, &[&host], serde_json::json!({}));
        let passage = world.passage(&host).unwrap();
        assert!(fetch(&passage, &host).await.contains("403"), "{name}");
        assert!(passage.refused().unwrap().ends_with("which is not public"), "{name}");
    }
}

#[tokio::test]
async fn where_the_machine_holds_a_list_it_is_the_last_word() {
    let mut network = Network::default();
    let held = Hosts::parse(&["docs.rs".to_owned()]).unwrap();
    network.hold(&Reach::Held(held));
    let mut workspace = workspace();
    workspace.network = network;
    let world = world(&workspace, &["docs.rs", "other.test"], serde_json::json!({}));
    let passage = world.passage("other.test").unwrap();
    assert!(fetch(&passage, "other.test").await.contains("403"));
    assert_eq!(passage.refused().unwrap(), "it is not on the list of hosts");
}

#[test]
fn a_host_has_one_spelling() {
    for (host, port, spelled) in [
        ("Docs.RS.", 443, "docs.rs"),
        ("docs.rs", 80, "docs.rs"),
        ("docs.rs", 8080, "docs.rs:8080"),
        ("[::1]", 3000, "[::1]:3000"),
        ("127.0.0.1", 443, "127.0.0.1"),
    ] {
        let found = Hosts::spell(host, port).unwrap();
        assert_eq!(found, spelled);
        assert!(Hosts::parse(&[found]).unwrap().allows(host, port), "{host}");
    }
    for host in ["127.1", "0x7f000001", "2130706433", "a..b", "exämple.com", "a/b", ""] {
        assert!(Hosts::spell(host, 443).is_err(), "{host}");
    }
}
