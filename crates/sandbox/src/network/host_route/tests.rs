//! Tests of host routes over real connections.
#![allow(clippy::disallowed_methods, reason = "the server task of a test ends with the test")]

use super::*;
use crate::NetworkPolicy;
use base64::Engine as _;
use std::net::IpAddr;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass_permission::{Decision, PermissionRules, Policy};

/// The answers for a name, in order; the last one repeats.
type DnsAnswers = Vec<Vec<&'static str>>;

/// A `NameResolver` with fixed answers.
struct FakeResolver(Mutex<Vec<(&'static str, DnsAnswers)>>);

impl NameResolver for FakeResolver {
    fn resolve(&self, name: &str) -> Vec<IpAddr> {
        let mut names = self.0.lock().unwrap();
        let Some((_, answers)) = names.iter_mut().find(|(known, _)| *known == name) else {
            return Vec::new();
        };
        let answer = if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() };
        answer.iter().map(|address| address.parse().unwrap()).collect()
    }
}

fn workspace() -> Workspace {
    Workspace::open(&std::env::temp_dir()).unwrap()
}

/// Grants fetches from hosts under permission rules.
fn grant_fetch(workspace: &Workspace, hosts: &[&str], rules: serde_json::Value) -> CallWorkspace {
    let accesses: Vec<ToolAccess> =
        hosts.iter().map(|host| ToolAccess::Fetch { host: (*host).to_owned() }).collect();
    let policy = Policy::new(PermissionRules::parse(&rules).unwrap());
    let grant = match policy.decide(accesses, &[]) {
        Decision::Allowed(grant) => grant,
        Decision::Ask(question) => {
            question.resolve(&windlass_protocol::PermissionAnswer::Once).unwrap()
        }
        Decision::Denied { reason } => panic!("{reason}"),
    };
    workspace.open_read_only(grant)
}

/// Fetches a page of a host through a route, and returns the status line.
async fn fetch(route: &HostRoute, host: &str) -> String {
    let (user, address) =
        route.proxy_url().strip_prefix("http://").unwrap().split_once('@').unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
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

/// Starts a local server that answers every request, and returns its port.
async fn start_server() -> u16 {
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
async fn only_granted_or_allowed_hosts_get_a_route() {
    let rules = serde_json::json!({"webfetch": {
        "*.open.test": "allow", "asked.test": "ask", "closed.test": "deny",
    }});
    let granted = grant_fetch(&workspace(), &["granted.test"], rules);
    for host in ["granted.test", "a.open.test"] {
        granted.route_to_host(host).unwrap();
    }
    for host in ["asked.test", "closed.test", "other.test", "open.test", "granted.test:8080"] {
        let error = granted.route_to_host(host).unwrap_err();
        assert!(matches!(error, Error::NotGranted { .. }), "{host}: {error}");
    }
}

#[tokio::test]
async fn private_addresses_are_refused_unless_the_user_listed_them() {
    let port = start_server().await;
    let host = format!("127.0.0.1:{port}");
    let rules = serde_json::json!({});
    let closed = grant_fetch(&workspace(), &[&host], rules.clone());
    let route = closed.route_to_host(&host).unwrap();
    assert!(fetch(&route, &host).await.contains("403"));
    assert_eq!(route.refusal().unwrap(), "it resolves to 127.0.0.1, which is not public");

    let private_hosts = HostAllowlist::parse(std::slice::from_ref(&host)).unwrap();
    let open = grant_fetch(&workspace().with_private_hosts(private_hosts), &[&host], rules);
    let route = open.route_to_host(&host).unwrap();
    assert!(fetch(&route, &host).await.contains("200"));
    assert_eq!(route.refusal(), None);
    // The route leads to that one host only.
    assert!(fetch(&route, "127.0.0.1:1").await.contains("403"));
    assert!(fetch(&route, "example.com").await.contains("403"));
}

#[tokio::test]
async fn a_name_that_resolves_to_a_private_address_is_refused() {
    let port = start_server().await;
    let answers = vec![
        ("mixed.test", vec![vec!["93.184.216.34", "127.0.0.1"]]),
        ("moved.test", vec![vec!["10.0.0.1"], vec!["93.184.216.34"]]),
        ("mapped.test", vec![vec!["::ffff:127.0.0.1"]]),
        ("meta.test", vec![vec!["169.254.169.254"]]),
    ];
    let resolver = Arc::new(FakeResolver(Mutex::new(answers)));
    let workspace = workspace().with_name_resolver(resolver);
    for name in ["mixed.test", "moved.test", "mapped.test", "meta.test"] {
        let host = format!("{name}:{port}");
        let granted = grant_fetch(&workspace, &[&host], serde_json::json!({}));
        let route = granted.route_to_host(&host).unwrap();
        assert!(fetch(&route, &host).await.contains("403"), "{name}");
        assert!(route.refusal().unwrap().ends_with("which is not public"), "{name}");
    }
}

#[tokio::test]
async fn an_enforced_list_overrides_grants() {
    let mut network = WorkspaceNetworkSettings::default();
    let enforced = HostAllowlist::parse(&["docs.rs".to_owned()]).unwrap();
    network.set_policy(&NetworkPolicy::Enforced(enforced));
    let mut workspace = workspace();
    workspace.network = network;
    let granted = grant_fetch(&workspace, &["docs.rs", "other.test"], serde_json::json!({}));
    let route = granted.route_to_host("other.test").unwrap();
    assert!(fetch(&route, "other.test").await.contains("403"));
    assert_eq!(route.refusal().unwrap(), "it is not on the list of allowed hosts");
}

#[test]
fn a_host_has_one_canonical_name() {
    for (host, port, expected) in [
        ("Docs.RS.", 443, "docs.rs"),
        ("docs.rs", 80, "docs.rs"),
        ("docs.rs", 8080, "docs.rs:8080"),
        ("[::1]", 3000, "[::1]:3000"),
        ("127.0.0.1", 443, "127.0.0.1"),
    ] {
        let found = HostAllowlist::canonical_name(host, port).unwrap();
        assert_eq!(found, expected);
        assert!(HostAllowlist::parse(&[found]).unwrap().allows(host, port), "{host}");
    }
    for host in ["127.1", "0x7f000001", "2130706433", "a..b", "exämple.com", "a/b", ""] {
        assert!(HostAllowlist::canonical_name(host, 443).is_err(), "{host}");
    }
}
