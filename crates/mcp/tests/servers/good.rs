//! What servers are for.

use crate::site::{Person, Site, run};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use windlass_mcp::Lifecycle;
use windlass_protocol::{Mode, Outcome};

pub fn tools_of_both_revisions_are_called() {
    run(async {
        for (way, lifecycle) in [
            ("good", Lifecycle::Initialize),
            ("modern", Lifecycle::Discover),
            ("odd_discover", Lifecycle::Initialize),
        ] {
            let site = Site::new();
            let servers = site.open(vec![site.spec("r", way)]);
            let listing = servers.look("r").await.unwrap();
            assert_eq!(listing.lifecycle, lifecycle, "{way}");
            assert!(listing.changed.is_empty() && listing.tools.len() == 10, "{listing:?}");
            let said = site.call("r_echo", json!({"text": "hello"})).await;
            assert_eq!(said.text(), "echo: hello", "{way}");
            assert!(matches!(said, Outcome::Completed { .. }));
            assert_eq!(site.logged("start"), if way == "odd_discover" { 2 } else { 1 }, "{way}");
        }
        let site = Site::in_mode(Mode::Plan);
        let _servers = site.with("good").await;
        assert_eq!(site.logged("start"), 0, "in mode plan it writes nothing");
    });
}

pub fn what_an_answer_holds_is_shown_kept_or_named() {
    run(async {
        let site = Site::new();
        let _servers = site.with("good").await;
        let said = site.call("r_picture", json!({})).await;
        assert_eq!(said.attachments().len(), 1, "{said:?}");
        for words in [
            "audio/wav, 1 kB: read blob:",
            "[resource one: test://one]",
            "test://two\n```\ntwo\n```",
            "image/png: not readable",
        ] {
            assert!(said.text().contains(words), "{words}: {}", said.text());
        }
        let said = site.call("r_structured", json!({})).await;
        let Outcome::Completed { output } = &said else { panic!("{said:?}") };
        assert_eq!(output.metadata["structured"], json!({"degrees": 12}));
        assert_eq!(output.text, r#"{"degrees":12}"#);
        let said = site.call("r_fail", json!({})).await;
        assert!(
            matches!(&said, Outcome::Failed { .. }) && said.text().contains("did not work"),
            "{said:?}"
        );
        let wrong = site.call("r_echo", json!({"text": 7})).await;
        assert!(
            !matches!(wrong, Outcome::Completed { .. }) || wrong.text() == "echo: 7",
            "{wrong:?}"
        );
        let person = Person::default();
        site.call_by("r_work", json!({}), &person, CancellationToken::new()).await;
        assert_eq!(*person.progress.lock().unwrap(), ["1 of 2: step", "2 of 2: step"]);
    });
}

pub fn a_person_is_asked_what_a_server_asks() {
    run(async {
        let site = Site::new();
        let _servers = site.with("good").await;
        let said = |person: Person| {
            let site = &site;
            async move {
                let said =
                    site.call_by("r_ask", json!({}), &person, CancellationToken::new()).await;
                (said.text().to_owned(), person)
            }
        };
        let replies = Some(vec![vec!["Ann".to_owned()], vec!["No".to_owned()]]);
        let (text, person) = said(Person { replies, ..Person::default() }).await;
        assert_eq!(text, r#"{"action": "accept", "content": {"name": "Ann", "sure": false}}"#);
        let asked = person.asked.lock().unwrap().clone();
        assert!(
            asked[0].question.starts_with("Who are you?\nname") && asked[0].custom,
            "{asked:?}"
        );
        assert_eq!(asked[1].options[0].label, "Yes", "the default comes first");
        for replies in [None, Some(vec![vec![], vec![]])] {
            let (text, _) = said(Person { replies, ..Person::default() }).await;
            assert_eq!(text, r#"{"action": "decline"}"#);
        }
    });
}

pub fn resources_and_prompts_are_read() {
    run(async {
        let site = Site::new();
        let servers = site.with("good").await;
        let pinned = site.notes.pins.lock().unwrap().last().unwrap().1.clone();
        assert_eq!(pinned.prompts[0].arguments, ["who*"]);
        let text = servers.prompt("r", "greet", "who=Ann B").await.unwrap();
        assert_eq!(text, "Greet Ann B. !`rm -rf x` @file");
        let mut spec = site.spec("r", "good");
        spec.pins = Some(pinned);
        let _again = site.open(vec![spec]);
        let list = site.call("list_mcp_resources", json!({})).await;
        assert_eq!(list.text(), "r:\n  test://one — The first.");
        let read =
            site.call("read_mcp_resource", json!({"server": "r", "uri": "test://one"})).await;
        assert!(read.text().contains("contents of it"), "{read:?}");
        let none = site.call("read_mcp_resource", json!({"server": "x", "uri": "y"})).await;
        assert!(none.text().contains("There are: r."), "{none:?}");
    });
}

pub fn a_call_that_is_stopped_ends_at_once() {
    run(async {
        let site = Site::new();
        let _servers = site.with("good").await;
        let cancel = CancellationToken::new();
        let stop = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            cancel.cancel();
        };
        let person = Person::default();
        let began = Instant::now();
        let call = site.call_by("r_slow", json!({"seconds": 30}), &person, cancel.clone());
        let (said, ()) = tokio::join!(call, stop);
        assert!(began.elapsed() < Duration::from_secs(5), "{said:?}");
        assert!(!matches!(said, Outcome::Completed { .. }), "{said:?}");
    });
}
