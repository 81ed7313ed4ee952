//! Servers that mean harm: whatever one does, nobody waits longer than they said, little is kept of
//! it, nothing of it is left, and the others go on.

use crate::site::{ANSWER, SLACK, START, Site, run, state};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_lsp::Code;
use windlass_protocol::SessionId;
use windlass_sandbox::{Backend, Walls};
use windlass_testkit::memory;
use windlass_toolkit::health::State;

/// What a server does in a call, and what the caller hears of it, one of these.
const TABLE: &[(&str, &str)] = &[
    ("good", "alive"),
    ("talks", "alive"),
    ("dies", "exited with code 9: the licence has run out"),
    ("half_header", "Late"),
    ("half_body", "Late"),
    ("hangs", "Late"),
    ("huge_header", "too much that is no message"),
    ("many_lines", "a head of more than 4 kB"),
    ("announced", "a message of more than 16 MB"),
    ("sent", "a message of more than 16 MB"),
    ("many_parts", "too large"),
    ("deep", "alive"),
    ("floods", "alive"),
    ("odd_findings", "alive"),
    ("asks", "200 things in a second"),
    ("twice", "alive"),
    ("unknown", "too much that is no message"),
    ("forks", "exited with code 3"),
    // What encloses it may hold its pipe open.
    ("closes", "closed its output|Late"),
];

/// How a server fails at its start.
const STARTS: &[(&str, &str)] = &[
    ("exits", "exited with code 7: the licence has run out"),
    ("silent", "did not answer `initialize` within 1"),
    ("garbage", "too much that is no message"),
];

/// The good server beside it answers, again and again, until told otherwise.
async fn goes_on(site: &Site, code: &Code, until: Instant) {
    while Instant::now() < until {
        let began = Instant::now();
        assert!(site.echoes(code, "a.good").await, "the other one has stopped");
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How a call went.
struct Went {
    said: String,
    took: Duration,
    /// How much memory it cost us, in MB.
    grown: u64,
}

/// One call of a server that behaves in a way, while another one answers as ever.
async fn call(way: &str, limit: Duration, site: &Site, good: &Code, walls: Walls) -> Went {
    let other = Site::within(walls);
    let code = other.open(vec![other.row("rogue", way, ".x")]);
    assert!(other.echoes(&code, "a.x").await, "{way}");
    let (before, began) = (memory::forget(), Instant::now());
    let asked = async {
        let limits = (START, limit);
        let said = code.probe(&other.world, "a.x", "hostile", json!({}), limits).await;
        (said.map_or_else(|why| why, |said| said.to_string()), began.elapsed())
    };
    let until = began + Duration::from_millis(300);
    let ((said, took), ()) = tokio::join!(asked, goes_on(site, good, until));
    let grown = memory::most().saturating_sub(before) >> 10;
    println!("{way}: {took:?}, {grown} MB: {said}");
    let began = Instant::now();
    code.close().await;
    assert!(began.elapsed() < Duration::from_secs(5), "{way}: {:?}", began.elapsed());
    assert!(other.is_quiet().await, "{way}");
    Went { said, took, grown }
}

pub fn nothing_it_does_in_a_call_harms_anybody_else() {
    run(async {
        let site = Site::new();
        let good = site.open(vec![site.row("good", "good", ".good")]);
        assert!(site.echoes(&good, "a.good").await);
        let limit = Duration::from_secs(1);
        for (way, hears) in TABLE {
            let mut went = call(way, limit, &site, &good, Walls::Best).await;
            // What else the machine does only adds to it.
            for _ in 0..2 {
                if went.took >= limit + SLACK {
                    went = call(way, limit, &site, &good, Walls::Best).await;
                }
            }
            let Went { said, took, grown } = went;
            assert!(hears.split('|').any(|hears| said.contains(hears)), "{way}: {said}");
            assert!(took < limit + SLACK, "{way}: {took:?}");
            assert!(grown < 64, "{way}: {grown} MB");
        }
        assert!(site.echoes(&good, "a.good").await);
        good.close().await;
    });
}

/// What is left of a server is found without namespaces, too.
pub fn nothing_is_left_of_it_in_another_cage() {
    run(async {
        let site = Site::new();
        let good = site.open(vec![site.row("good", "good", ".good")]);
        assert!(site.echoes(&good, "a.good").await);
        for (way, hears) in [
            ("good", "alive"),
            ("dies", "exited with code 9"),
            ("closes", "closed its output"),
            ("forks", "exited with code 3"),
            ("stubborn", "alive"),
        ] {
            let walls = Walls::Exactly(Backend::Landlock);
            let went = call(way, Duration::from_secs(1), &site, &good, walls).await;
            assert!(went.said.contains(hears), "{way}: {}", went.said);
        }
        good.close().await;
    });
}

/// An edit waits no longer than its limit for what a server makes of it, and not at all for one that
/// cannot be there.
pub fn no_edit_waits_for_it() {
    run(async {
        for way in ["silent", "good", "odd_findings", "exits"] {
            let mut site = Site::new();
            site.patience.review = Duration::from_millis(500);
            let code = site.open(vec![site.row("rogue", way, ".x")]);
            for round in 0..3 {
                let began = Instant::now();
                let before = code.before(&site.world, &["a.x".into()]);
                assert!(began.elapsed() < SLACK, "{way} {round}: {:?}", began.elapsed());
                let now = vec![("a.x".into(), Some("text".into()))];
                let (session, cancel) = (SessionId(Default::default()), CancellationToken::new());
                let review = code.after(&site.world, session, before, now, &cancel).await;
                let took = began.elapsed();
                println!("{way} {round}: {took:?} {review:?}");
                assert!(review.is_none(), "{way} {round}: {review:?}");
                assert!(took < site.patience.review + SLACK, "{way} {round}: {took:?}");
                if (way, round) == ("exits", 2) {
                    assert!(took < SLACK / 4, "it is not tried again yet: {took:?}");
                }
            }
            code.close().await;
            assert!(site.is_quiet().await, "{way}");
        }
    });
}

/// What a change costs where its server is missing or does not start, besides the change itself.
pub fn a_server_that_is_not_there_costs_an_edit_nothing() {
    run(async {
        let site = Site::new();
        let mut missing = site.row("missing", "good", ".x");
        missing.command = vec!["no-such-program-anywhere".into()];
        for row in [missing, site.row("rogue", "exits", ".x")] {
            let name = row.name.clone();
            let code = site.open(vec![row]);
            let mut costs = Vec::new();
            for _ in 0..200 {
                let began = Instant::now();
                let before = code.before(&site.world, &["a.x".into()]);
                let now = vec![("a.x".into(), Some("text".into()))];
                let (session, cancel) = (SessionId(Default::default()), CancellationToken::new());
                assert!(code.after(&site.world, session, before, now, &cancel).await.is_none());
                costs.push(began.elapsed());
            }
            costs.sort();
            let (median, most) = (costs[costs.len() / 2], costs[costs.len() - 2]);
            println!("{name}: {median:?} in the median, {most:?} at most but once");
            assert!(median < Duration::from_millis(5), "{name}: {median:?}");
            code.close().await;
        }
        assert!(site.is_quiet().await);
    });
}

pub fn a_flood_slows_nobody_down() {
    run(async {
        let site = Site::new();
        let rows = vec![site.row("rogue", "floods", ".x"), site.row("good", "good", ".good")];
        let code = site.open(rows);
        assert!(site.echoes(&code, "a.good").await && site.echoes(&code, "a.x").await);
        let before = memory::forget();
        assert_eq!(site.ask(&code, "a.x", "hostile", json!({})).await, Ok(json!("alive")));
        let until = Instant::now() + Duration::from_millis(2_500);
        let asked = async {
            let limits = (START, Duration::from_millis(300));
            while Instant::now() < until {
                let began = Instant::now();
                let _ = code.probe(&site.world, "a.x", "echo", json!({}), limits).await;
                assert!(began.elapsed() < limits.1 + SLACK, "{:?}", began.elapsed());
            }
        };
        tokio::join!(asked, goes_on(&site, &code, until));
        let grown = memory::most().saturating_sub(before) >> 10;
        assert!(grown < 64, "{grown} MB");
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        assert!(site.echoes(&code, "a.x").await, "it has come to its end");
        code.close().await;
        assert!(site.is_quiet().await);
    });
}

pub fn nothing_it_does_at_its_start_harms_anybody_else() {
    run(async {
        let site = Site::new();
        let good = site.open(vec![site.row("good", "good", ".good")]);
        assert!(site.echoes(&good, "a.good").await);
        for (way, hears) in STARTS {
            let mut other = Site::new();
            other.patience.start = Duration::from_secs(1);
            let code = other.open(vec![other.row("rogue", way, ".x")]);
            let began = Instant::now();
            let call = other.ask(&code, "a.x", "echo", json!({}));
            let call = async { (call.await, began.elapsed()) };
            let look = async {
                let mut least = Duration::MAX;
                for _ in 0..5 {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    let began = Instant::now();
                    code.warm(&other.world, "a.x");
                    let short = (Duration::from_millis(20), ANSWER);
                    let said = code.probe(&other.world, "b.x", "echo", json!({}), short).await;
                    assert!(said.is_err(), "{way}: {said:?}");
                    least = least.min(began.elapsed());
                }
                least
            };
            let until = began + Duration::from_millis(500);
            let ((said, took), least, ()) = tokio::join!(call, look, goes_on(&site, &good, until));
            let said = said.unwrap_err();
            println!("{way}: {took:?}, others {least:?}: {said}");
            assert!(least < Duration::from_millis(50), "{way}: {least:?}");
            assert!(said.contains(hears) && said.contains("rogue is not running"), "{way}: {said}");
            assert!(took < other.patience.start + 2 * SLACK, "{way}: {took:?}");
            let again = other.ask(&code, "a.x", "echo", json!({})).await.unwrap_err();
            assert!(again.contains("it is tried again in"), "{way}: {again}");
            assert!(other.is_quiet().await, "{way}");
        }
        good.close().await;
    });
}

pub fn one_that_ignores_its_end_is_ended() {
    run(async {
        let site = Site::new();
        let code = site.open(vec![site.row("rogue", "stubborn", ".x")]);
        assert!(site.echoes(&code, "a.x").await);
        let began = Instant::now();
        code.close().await;
        let took = began.elapsed();
        assert!(took > Duration::from_secs(2) && took < Duration::from_millis(4_500), "{took:?}");
        assert_eq!(site.processes(), 0);
    });
}

pub fn one_that_does_not_read_is_ended() {
    run(async {
        let site = Site::new();
        let rows = vec![site.row("rogue", "never_reads", ".x"), site.row("good", "good", ".good")];
        let code = site.open(rows);
        assert!(site.echoes(&code, "a.good").await);
        assert_eq!(site.ask(&code, "a.x", "hostile", json!({})).await, Ok(json!("alive")));
        let before = memory::forget();
        let text = "x".repeat(1 << 20);
        let began = Instant::now();
        let told = site.ask(&code, "a.x", "notify:big", json!({"text": text})).await;
        assert!(told.is_ok() && began.elapsed() < SLACK, "{:?}", began.elapsed());
        let began = Instant::now();
        let limits = (START, Duration::from_millis(300));
        let said = code.probe(&site.world, "a.x", "echo", json!({}), limits).await;
        assert_eq!(said, Err("Late".into()));
        assert!(began.elapsed() < limits.1 + SLACK, "{:?}", began.elapsed());
        goes_on(&site, &code, Instant::now() + Duration::from_millis(5_500)).await;
        let State::Lost { why } = state(&code, "rogue") else { panic!("{:?}", code.states()) };
        assert!(why.contains("did not read what it was sent"), "{why}");
        assert!(memory::most().saturating_sub(before) >> 10 < 64);
        assert_eq!(
            site.ask(&code, "a.x", "echo", json!(1)).await,
            Ok(json!(1)),
            "it is started anew"
        );
        code.close().await;
        assert!(site.is_quiet().await);
    });
}

pub fn one_that_grows_is_ended() {
    run(async {
        let site = Site::new();
        let mut rogue = site.row("rogue", "grows", ".x");
        rogue.memory = 100;
        let code = site.open(vec![rogue, site.row("good", "good", ".good")]);
        assert!(site.echoes(&code, "a.good").await);
        assert_eq!(site.ask(&code, "a.x", "hostile", json!({})).await, Ok(json!("alive")));
        let one = site.processes() / 2;
        assert!(site.comes_to(one, Duration::from_secs(9)).await);
        let State::Broken { why, .. } = state(&code, "rogue") else {
            panic!("{:?}", code.states())
        };
        assert_eq!(why, "it used more than 100 MB of memory");
        assert!(site.echoes(&code, "a.good").await);
        code.close().await;
    });
}

pub fn one_that_stays_silent_is_started_anew() {
    run(async {
        let mut site = Site::new();
        site.patience.answer = Duration::from_millis(500);
        let code = site.open(vec![site.row("rogue", "hangs", ".x")]);
        assert!(site.echoes(&code, "a.x").await);
        let limits = (START, Duration::from_millis(300));
        let _ = code.probe(&site.world, "a.x", "hostile", json!({}), limits).await;
        for _ in 0..2 {
            let said = code.probe(&site.world, "a.x", "echo", json!({}), limits).await;
            assert_eq!(said, Err("Late".into()));
        }
        let State::Lost { why } = state(&code, "rogue") else { panic!("{:?}", code.states()) };
        assert!(why.contains("3 questions in a row without an answer"), "{why}");
        assert!(site.echoes(&code, "a.x").await);
        code.close().await;
        assert!(site.is_quiet().await);
    });
}
