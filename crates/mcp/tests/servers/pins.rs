//! What was looked at is what is called.

use crate::site::{Person, Site, run};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_mcp::{Pinned, Servers};
use windlass_protocol::{Access, Mode, Outcome};

/// What a good server is pinned as.
async fn pinned(site: &Site) -> Pinned {
    let elsewhere = Site::new();
    elsewhere.with("good").await;
    let pins = elsewhere.notes.pins.lock().unwrap();
    assert!(site.notes.pins.lock().unwrap().is_empty());
    pins.last().unwrap().1.clone()
}

async fn opened(site: &Site, way: &str) -> Servers {
    let mut spec = site.spec("r", way);
    spec.pins = Some(pinned(site).await);
    site.open(vec![spec])
}

pub fn what_was_known_is_there_before_the_server_is() {
    run(async {
        let site = Site::new();
        let _servers = opened(&site, "good").await;
        assert!(site.runtime.registry.ids().contains(&"r_echo".to_owned()));
        assert_eq!(site.logged("start"), 0);
        assert_eq!(site.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
        assert_eq!(site.logged("start"), 1);
    });
}

pub fn a_changed_definition_is_asked_about_once() {
    run(async {
        let site = Site::new();
        let _servers = opened(&site, "renamed").await;
        let first = site.call("r_echo", json!({"text": "a"})).await;
        assert!(first.text().contains("has changed what r_echo is"), "{first:?}");
        assert_eq!(site.logged("call echo"), 0);
        let person = Person::default();
        let said = site.call_by("r_echo", json!({"text": "a"}), &person, CancellationToken::new());
        assert_eq!(said.await.text(), "echo: a");
        let shown = person.shown.lock().unwrap()[0].clone().unwrap();
        assert!(shown.contains("-  \"description\": \"Says it again.\""), "{shown}");
        assert!(shown.contains("+  \"description\": \"Sends it to somebody.\""), "{shown}");
        let accepts = |person: &Person| {
            let intents = person.intents.lock().unwrap();
            intents[0].accesses.iter().any(|access| matches!(access, Access::Accept { .. }))
        };
        assert!(accepts(&person));
        let again = Person::default();
        let said = site.call_by("r_echo", json!({"text": "b"}), &again, CancellationToken::new());
        assert_eq!(said.await.text(), "echo: b");
        assert!(!accepts(&again), "it was agreed to");
        let kept = site.notes.pins.lock().unwrap().last().unwrap().1.clone();
        let echo = kept.tools.iter().find(|tool| tool.name == "echo").unwrap();
        assert_eq!(echo.definition["description"], "Sends it to somebody.");

        let alone = Site::in_mode(Mode::Full);
        let servers = opened(&alone, "renamed").await;
        servers.look("r").await.unwrap();
        let said = alone.call("r_echo", json!({"text": "a"})).await;
        assert!(matches!(said, Outcome::Denied { .. }), "{said:?}");
        assert_eq!(alone.logged("call echo"), 0);
        servers.accept("r").await.unwrap();
        assert_eq!(alone.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
    });
}

pub fn a_new_tool_is_asked_about() {
    run(async {
        let site = Site::in_mode(Mode::Full);
        let servers = opened(&site, "grown").await;
        let listing = servers.look("r").await.unwrap();
        assert_eq!(listing.changed.len(), 1, "{listing:?}");
        assert_eq!(listing.changed[0].name, "extra");
        assert!(listing.changed[0].difference.contains("extra"), "{listing:?}");
        let said = site.call("r_extra", json!({})).await;
        assert!(matches!(said, Outcome::Denied { .. }), "{said:?}");
        assert_eq!(site.call("r_echo", json!({"text": "a"})).await.text(), "echo: a");
    });
}

pub fn another_command_is_another_server() {
    run(async {
        let site = Site::new();
        let mut spec = site.spec("r", "renamed");
        spec.pins = Some(pinned(&site).await);
        spec.digest = "other".into();
        let servers = site.open(vec![spec]);
        assert!(site.runtime.registry.ids().is_empty());
        assert!(servers.look("r").await.unwrap().changed.is_empty());
    });
}

pub fn two_tools_of_one_name_are_one() {
    run(async {
        let site = Site::new();
        let _servers = site.with("twins").await;
        let notices = site.notes.notices.lock().unwrap().clone();
        assert!(notices.iter().any(|text| text.contains("are both r_a_b")), "{notices:?}");
    });
}
