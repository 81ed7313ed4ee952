//! Where a call leads, and where it does not.

use crate::yard::{Inside, Yard, done, failed};
use serde_json::json;
use windlass_testkit::site::{html, moved, reply};

pub fn a_host_that_is_not_public_is_never_reached() {
    let allow = |_: u16| json!({"webfetch": "allow"});
    let yard = Yard::with(Inside::None, allow, Vec::new(), |_| html("<p>secret"));
    for url in [yard.url("a", "/"), format!("http://127.0.0.1:{}/", yard.site.port())] {
        let outcome = yard.fetch(json!({"url": url}));
        failed(&outcome, "leads to 127.0.0.1, which is not public. Only public hosts");
    }
    for (url, address) in [
        ("http://169.254.169.254/latest/meta-data", "169.254.169.254"),
        ("http://10.1.2.3/", "10.1.2.3"),
        ("http://[::1]/", "::1"),
        ("http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1"),
        ("http://[fd00::1]/", "fd00::1"),
    ] {
        failed(
            &yard.fetch(json!({"url": url})),
            &format!("leads to {address}, which is not public"),
        );
    }
    assert!(yard.site.asked().is_empty());
    let reached = yard.person.reached.lock().unwrap();
    assert!(
        reached.len() == 7 && reached.iter().all(|(_, refused)| refused.is_some()),
        "{reached:?}"
    );
}

pub fn a_name_that_changes_its_mind_is_looked_up_once() {
    let names = vec![
        ("turns.test", vec![vec!["192.0.2.1"], vec!["127.0.0.1"]]),
        ("mixed.test", vec![vec!["93.184.216.34", "127.0.0.1"]]),
    ];
    let allow = |_: u16| json!({"webfetch": "allow"});
    let yard = Yard::with(Inside::None, allow, names, |_| html("<p>secret"));
    failed(&yard.fetch(json!({"url": yard.url("mixed", "/")})), "127.0.0.1, which is not public");
    failed(&yard.fetch(json!({"url": yard.url("turns", "/"), "timeout": 2})), "");
    assert_eq!(*yard.book.looked_up.lock().unwrap(), ["mixed.test", "turns.test"]);
    assert!(yard.site.asked().is_empty());
}

pub fn odd_spellings_of_hosts_are_refused_before_anything() {
    let yard = Yard::new(|_| html("<p>x"));
    for (url, words) in [
        ("http://127.1/", "unusual spelling; write 127.0.0.1"),
        ("http://0x7f000001/", "unusual spelling"),
        ("http://2130706433/", "unusual spelling"),
        ("http://user:pw@a.test/", "holds a name or password; leave it out"),
        ("ftp://a.test/", "must begin with https://"),
        ("file:///etc/passwd", "must begin with https://"),
    ] {
        failed(&yard.fetch(json!({"url": url})), words);
    }
    assert!(yard.person.asked.lock().unwrap().is_empty(), "nobody is asked about what cannot be");
    assert!(yard.book.looked_up.lock().unwrap().is_empty());
}

pub fn every_hop_is_judged_by_the_rules() {
    let rules = |port: u16| {
        json!({"webfetch": {format!("a.test:{port}"): "allow", format!("b.test:{port}"): "ask",
            format!("c.test:{port}"): "deny", format!("d.test:{port}"): "allow"}})
    };
    let yard = Yard::with(Inside::Listed, rules, Vec::new(), |asked| {
        let port = asked.host.rsplit(':').next().unwrap_or_default();
        match asked.path.as_str() {
            "/end" => html(format!("<p>the end at {}", asked.host)),
            path => moved(&format!("http://{}.test:{port}/end", path.trim_start_matches('/'))),
        }
    });
    done(&yard.get("/a"), "the end at a.test");
    let led = yard.get("/d");
    done(&led, "the end at d.test");
    done(&led, &format!("From {} (by way of a.test:", yard.url("d", "/end")));
    for name in ["b", "c"] {
        let outcome = yard.get(&format!("/{name}"));
        done(&outcome, &format!("leads on to {}, which is another host", yard.url(name, "/end")));
    }
    assert!(yard.person.asked.lock().unwrap().is_empty());
    let reached: Vec<String> = {
        let reached = yard.person.reached.lock().unwrap();
        reached.iter().map(|(host, _)| host[..6].to_owned()).collect()
    };
    assert_eq!(reached, ["a.test", "a.test", "a.test", "d.test", "a.test", "a.test"]);
    // What a redirect led to is asked about, or denied, like any other call.
    done(&yard.fetch(json!({"url": yard.url("b", "/end")})), "the end at b.test");
    assert_eq!(yard.person.asked.lock().unwrap().len(), 1);
    failed(&yard.fetch(json!({"url": yard.url("c", "/end")})), "");
    assert!(!yard.site.asked().iter().any(|asked| asked.host.starts_with("c.test")));
}

pub fn a_redirect_within_the_host_is_followed_and_its_port_counts() {
    let yard = Yard::new(|asked| match asked.path.as_str() {
        "/one" => moved("two?x=1"),
        "/two?x=1" => moved("/three#part"),
        "/three" => html("<p>arrived"),
        "/port" => moved("http://a.test:1/"),
        "/odd" => moved("http://u:p@a.test/"),
        "/mail" => moved("mailto:x@a.test"),
        _ => reply("302 Found", &[], ""),
    });
    done(&yard.get("/one"), "arrived");
    assert_eq!(yard.paths(), ["/one", "/two?x=1", "/three"]);
    done(&yard.get("/port"), "leads on to http://a.test:1/, which is another host");
    failed(&yard.get("/odd"), "holds a name or password");
    failed(&yard.get("/mail"), "must begin with https://");
    failed(&yard.get("/nowhere"), "HTTP 302, and does not say where it leads");
}

pub fn redirects_without_end_are_ended() {
    let yard = Yard::new(|asked| moved(&format!("{}x", asked.path)));
    failed(&yard.get("/"), "more than 5 redirects");
    assert_eq!(yard.paths().len(), 6);
}

pub fn a_page_that_sends_on_is_a_hop() {
    let yard = Yard::new(|asked| match asked.path.as_str() {
        "/old" => html("<META HTTP-EQUIV='refresh' content=\"0; URL='/new'\"><p>moved"),
        "/late" => html("<meta http-equiv=refresh content='60;url=/new'><p>still here"),
        "/inner" => html("<meta http-equiv=refresh content='0;url=http://169.254.169.254/'>"),
        "/self" => html("<meta http-equiv=refresh content='0;url=/self#x'><p>reloads"),
        _ => html("<p>new"),
    });
    done(&yard.get("/old"), "new");
    done(&yard.get("/late"), "still here");
    done(&yard.get("/self"), "reloads");
    done(&yard.get("/inner"), "http://169.254.169.254/, which is another host");
}

pub fn redirects_to_inner_places_lead_nowhere() {
    // Even where every host is allowed, what is not public is not reached.
    let allow = |_: u16| json!({"webfetch": "allow"});
    let yard = Yard::with(Inside::Listed, allow, Vec::new(), |asked| {
        let (_, port) = asked.host.split_once(':').unwrap_or_default();
        match asked.path.as_str() {
            "/cloud" => moved("http://169.254.169.254/latest"),
            "/ten" => moved("http://10.0.0.1/"),
            "/six" => moved("http://[::1]/"),
            "/name" => moved(&format!("http://inner.test:{port}/secret")),
            "/short" => moved(&format!("http://127.1:{port}/secret")),
            _ => html("<p>secret"),
        }
    });
    for path in ["/cloud", "/ten", "/six", "/name", "/short"] {
        failed(&yard.get(path), "which is not public");
    }
    assert!(!yard.paths().contains(&"/secret".to_owned()));
}

pub fn nothing_is_kept_between_two_requests() {
    let yard = Yard::new(|asked| match asked.path.as_str() {
        "/" => reply("302 Found", &["location: /next", "set-cookie: id=1; path=/"], ""),
        _ => html("<p>hello"),
    });
    done(&yard.get("/"), "hello");
    done(&yard.get("/"), "hello");
    for asked in yard.site.asked() {
        for header in ["cookie", "referer", "authorization", "proxy-authorization"] {
            assert_eq!(asked.header(header), None, "{}", asked.head);
        }
        assert_eq!(asked.header("user-agent"), Some("windlass/test"));
        assert_eq!(asked.header("accept-encoding"), Some("gzip, deflate"));
        assert!(asked.header("accept").unwrap().starts_with("text/markdown"));
    }
}
