//! Tests of the hosts that a call reaches, directly and by redirects.

use crate::support::{TestPrivateHosts, WebFetchTestEnv, assert_completed, assert_failed};
use serde_json::json;
use windlass_testkit::mock_http_server::{html, redirect, reply};

pub fn a_host_that_is_not_public_is_never_reached() {
    let allow = |_: u16| json!({"webfetch": "allow"});
    let env =
        WebFetchTestEnv::with(TestPrivateHosts::None, allow, Vec::new(), |_| html("<p>secret"));
    for url in [env.url("a", "/"), format!("http://127.0.0.1:{}/", env.site.port())] {
        let outcome = env.fetch(json!({"url": url}));
        assert_failed(&outcome, "resolves to 127.0.0.1, which is not public. Only public hosts");
    }
    for (url, address) in [
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254"),
        ("http://10.1.2.3/", "10.1.2.3"),
        ("http://[::1]/", "::1"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1"),
        ("http://[fd00::1]/", "fd00::1"),
    ] {
        assert_failed(
            &env.fetch(json!({"url": url})),
            &format!("resolves to {address}, which is not public"),
        );
    }
    assert!(env.site.requests().is_empty());
    let reported = env.caller.reported_hosts.lock().unwrap();
    assert!(
        reported.len() == 7 && reported.iter().all(|(_, refused)| refused.is_some()),
        "{reported:?}"
    );
}

pub fn a_name_is_resolved_once_per_call() {
    let names = vec![
        ("turns.test", vec![vec!["192.0.2.1"], vec!["127.0.0.1"]]),
        ("mixed.test", vec![vec!["93.184.216.34", "127.0.0.1"]]),
    ];
    let allow = |_: u16| json!({"webfetch": "allow"});
    let env = WebFetchTestEnv::with(TestPrivateHosts::None, allow, names, |_| html("<p>secret"));
    assert_failed(
        &env.fetch(json!({"url": env.url("mixed", "/")})),
        "127.0.0.1, which is not public",
    );
    assert_failed(&env.fetch(json!({"url": env.url("turns", "/"), "timeout": 2})), "");
    assert_eq!(*env.resolver.resolved_names.lock().unwrap(), ["mixed.test", "turns.test"]);
    assert!(env.site.requests().is_empty());
}

pub fn unusual_spellings_of_hosts_are_refused_first() {
    let env = WebFetchTestEnv::new(|_| html("<p>x"));
    for (url, expected) in [
        ("http://127.1/", "unusual spelling; write 127.0.0.1"),
        ("http://0x7f000001/", "unusual spelling"),
        ("http://2130706433/", "unusual spelling"),
        ("http://user:pw@a.test/", "contains a user name or password; remove it"),
        ("ftp://a.test/", "must start with https://"),
        ("file:///etc/passwd", "must start with https://"),
    ] {
        assert_failed(&env.fetch(json!({"url": url})), expected);
    }
    assert!(
        env.caller.asked_hosts.lock().unwrap().is_empty(),
        "permission was requested for an invalid URL"
    );
    assert!(env.resolver.resolved_names.lock().unwrap().is_empty());
}

pub fn the_rules_apply_to_every_redirect() {
    let rules = |port: u16| {
        json!({"webfetch": {format!("a.test:{port}"): "allow", format!("b.test:{port}"): "ask",
            format!("c.test:{port}"): "deny", format!("d.test:{port}"): "allow"}})
    };
    let env = WebFetchTestEnv::with(TestPrivateHosts::TestHosts, rules, Vec::new(), |request| {
        let port = request.host.rsplit(':').next().unwrap_or_default();
        match request.path.as_str() {
            "/end" => html(format!("<p>the end at {}", request.host)),
            path => redirect(&format!("http://{}.test:{port}/end", path.trim_start_matches('/'))),
        }
    });
    assert_completed(&env.get("/a"), "the end at a.test");
    let redirected = env.get("/d");
    assert_completed(&redirected, "the end at d.test");
    assert_completed(
        &redirected,
        &format!("Untrusted content from {} (via a.test:", env.url("d", "/end")),
    );
    for name in ["b", "c"] {
        let outcome = env.get(&format!("/{name}"));
        assert_completed(
            &outcome,
            &format!("redirects to {}, which is another host", env.url(name, "/end")),
        );
    }
    assert!(env.caller.asked_hosts.lock().unwrap().is_empty());
    let reached: Vec<String> = {
        let reached = env.caller.reported_hosts.lock().unwrap();
        reached.iter().map(|(host, _)| host[..6].to_owned()).collect()
    };
    assert_eq!(reached, ["a.test", "a.test", "a.test", "d.test", "a.test", "a.test"]);
    // A direct call to the target of the redirect is asked about or denied.
    assert_completed(&env.fetch(json!({"url": env.url("b", "/end")})), "the end at b.test");
    assert_eq!(env.caller.asked_hosts.lock().unwrap().len(), 1);
    assert_failed(&env.fetch(json!({"url": env.url("c", "/end")})), "");
    assert!(!env.site.requests().iter().any(|request| request.host.starts_with("c.test")));
}

pub fn a_redirect_to_the_same_host_and_port_is_followed() {
    let env = WebFetchTestEnv::new(|request| match request.path.as_str() {
        "/one" => redirect("two?x=1"),
        "/two?x=1" => redirect("/three#part"),
        "/three" => html("<p>arrived"),
        "/port" => redirect("http://a.test:1/"),
        "/odd" => redirect("http://u:p@a.test/"),
        "/mail" => redirect("mailto:x@a.test"),
        _ => reply("302 Found", &[], ""),
    });
    assert_completed(&env.get("/one"), "arrived");
    assert_eq!(env.paths(), ["/one", "/two?x=1", "/three"]);
    assert_completed(&env.get("/port"), "redirects to http://a.test:1/, which is another host");
    assert_failed(&env.get("/odd"), "contains a user name or password");
    assert_failed(&env.get("/mail"), "must start with https://");
    assert_failed(&env.get("/nowhere"), "HTTP 302 without a redirect target");
}

pub fn endless_redirects_are_stopped() {
    let env = WebFetchTestEnv::new(|request| redirect(&format!("{}x", request.path)));
    assert_failed(&env.get("/"), "too many redirects");
    assert_eq!(env.paths().len(), 6);
}

pub fn a_meta_refresh_is_a_redirect() {
    let env = WebFetchTestEnv::new(|request| match request.path.as_str() {
        "/old" => html("<META HTTP-EQUIV='refresh' content=\"0; URL='/new'\"><p>moved"),
        "/late" => html("<meta http-equiv=refresh content='60;url=/new'><p>still here"),
        "/inner" => html("<meta http-equiv=refresh content='0;url=http://169.254.169.254/'>"),
        "/self" => html("<meta http-equiv=refresh content='0;url=/self#x'><p>reloads"),
        _ => html("<p>new"),
    });
    assert_completed(&env.get("/old"), "new");
    assert_completed(&env.get("/late"), "still here");
    assert_completed(&env.get("/self"), "reloads");
    assert_completed(&env.get("/inner"), "http://169.254.169.254/, which is another host");
}

pub fn redirects_to_private_addresses_are_refused() {
    // Rules that allow every host do not allow addresses that are not public.
    let allow = |_: u16| json!({"webfetch": "allow"});
    let env = WebFetchTestEnv::with(TestPrivateHosts::TestHosts, allow, Vec::new(), |request| {
        let (_, port) = request.host.split_once(':').unwrap_or_default();
        match request.path.as_str() {
            "/cloud" => redirect("http://169.254.169.254/latest"),
            "/ten" => redirect("http://10.0.0.1/"),
            "/six" => redirect("http://[::1]/"),
            "/name" => redirect(&format!("http://inner.test:{port}/secret")),
            "/short" => redirect(&format!("http://127.1:{port}/secret")),
            _ => html("<p>secret"),
        }
    });
    for path in ["/cloud", "/ten", "/six", "/name", "/short"] {
        assert_failed(&env.get(path), "which is not public");
    }
    assert!(!env.paths().contains(&"/secret".to_owned()));
}

pub fn no_state_is_kept_between_requests() {
    let env = WebFetchTestEnv::new(|request| match request.path.as_str() {
        "/" => reply("302 Found", &["location: /next", "set-cookie: id=1; path=/"], ""),
        _ => html("<p>hello"),
    });
    assert_completed(&env.get("/"), "hello");
    assert_completed(&env.get("/"), "hello");
    for request in env.site.requests() {
        for header in ["cookie", "referer", "authorization", "proxy-authorization"] {
            assert_eq!(request.header(header), None, "{}", request.head);
        }
        assert_eq!(request.header("user-agent"), Some("windlass/test"));
        assert_eq!(request.header("accept-encoding"), Some("gzip, deflate"));
        assert!(request.header("accept").unwrap().starts_with("text/markdown"));
    }
}
