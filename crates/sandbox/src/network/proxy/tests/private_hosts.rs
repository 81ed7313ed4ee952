//! Tests of hosts without public addresses: opened by the user, invented by a local proxy program,
//! or closed to everyone.

use super::test_network::{FakeServerBehavior, ProxyTestEnv, authorization_header};
use crate::network::proxy::{HostAllowlist, PROXY_LIMITS};
use std::net::TcpListener;

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

/// Returns true if the proxy connects to `host`, whose name resolves to `address`.
async fn reaches(hosts: HostAllowlist, host: &str, address: &str) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut env = ProxyTestEnv::with_hosts(listener, hosts, None, PROXY_LIMITS);
    env.add_name(host, &[&[address]]);
    env.add_server(address, FakeServerBehavior::Responds(HELLO));
    let request = format!("GET http://{host}/ HTTP/1.1\r\n{}\r\n", authorization_header());
    let reply = env.exchange(request.as_bytes()).await;
    let is_reached = reply == HELLO;
    assert_eq!(!env.dialed_addresses().is_empty(), is_reached, "{reply}");
    is_reached
}

fn own_list(list: &[&str]) -> HostAllowlist {
    let list: Vec<String> = list.iter().map(|each| (*each).to_owned()).collect();
    HostAllowlist::parse_with_private(&list).unwrap()
}

#[tokio::test]
async fn the_user_opens_private_hosts_by_name_or_range() {
    for (list, host, address, expected) in [
        (&["git.corp.example"][..], "git.corp.example", "10.0.0.5", true),
        (&["git.corp.example"], "git.corp.example", "127.0.0.1", false),
        (&["git.corp.example"], "git.corp.example", "169.254.169.254", false),
        (&["git.corp.example"], "git.corp.example", "100.100.100.200", false),
        (&["*.corp.example"], "git.corp.example", "10.0.0.5", false),
        (&["*"], "git.corp.example", "10.0.0.5", false),
        (&["*", "10.0.0.0/8"], "git.corp.example", "10.0.0.5", true),
        (&["*", "10.0.0.0/8:443"], "git.corp.example", "10.0.0.5", false),
        (&["*", "10.0.0.0/8"], "git.corp.example", "192.168.0.5", false),
        (&["10.0.0.0/8"], "10.0.0.5", "10.0.0.5", true),
        (&["*"], "10.0.0.5", "10.0.0.5", false),
        (&["127.0.0.1"], "127.0.0.1", "127.0.0.1", true),
        (&["169.254.169.254"], "169.254.169.254", "169.254.169.254", false),
        (&["169.254.0.0/16"], "169.254.169.254", "169.254.169.254", false),
        (
            &["metadata.corp.example", "169.254.0.0/16"],
            "metadata.corp.example",
            "169.254.169.254",
            false,
        ),
    ] {
        let is_reached = reaches(own_list(list), host, address).await;
        assert_eq!(is_reached, expected, "{list:?}: {host} at {address}");
    }
    let project = HostAllowlist::parse(&["git.corp.example".to_owned()]).unwrap();
    assert!(!reaches(project, "git.corp.example", "10.0.0.5").await);
}

#[tokio::test]
async fn an_invented_address_is_reached_by_name_only() {
    assert!(reaches(HostAllowlist::any(), "a.example", "198.18.0.7").await);
    assert!(!reaches(HostAllowlist::any(), "198.18.0.7", "198.18.0.7").await);
    let listed = HostAllowlist::parse(&["198.18.0.7".to_owned()]).unwrap();
    assert!(!reaches(listed, "198.18.0.7", "198.18.0.7").await);
}
