//! Logins at a server on loopback, with a person who opens the page, and with those who should not.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test is the browser, too"
)]

use super::Login;
use crate::tokens::{Auth, OAuth, Tokens};
use crate::wire::{Reach, Trouble, transport, trouble};
use async_trait::async_trait;
use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use secrecy::{ExposeSecret, SecretString};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use windlass_testkit::oauth::{self, Manners, browse, get};

/// Keeps tokens for a test, with a lock that everybody who has it shares.
#[derive(Default)]
struct Drawer {
    text: Mutex<Option<SecretString>>,
    lock: Arc<tokio::sync::Mutex<()>>,
    guards: AtomicUsize,
}

#[async_trait]
impl Tokens for Drawer {
    async fn load(&self) -> Result<Option<SecretString>, String> {
        Ok(self.text.lock().unwrap().clone())
    }

    async fn save(&self, text: SecretString) -> Result<(), String> {
        *self.text.lock().unwrap() = Some(text);
        Ok(())
    }

    async fn clear(&self) -> Result<(), String> {
        *self.text.lock().unwrap() = None;
        Ok(())
    }

    async fn guard(&self) -> Result<Box<dyn Send>, String> {
        self.guards.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Arc::clone(&self.lock).lock_owned().await))
    }
}

fn drawer() -> (Arc<Drawer>, Arc<dyn Tokens>) {
    let drawer = Arc::<Drawer>::default();
    let store: Arc<dyn Tokens> = Arc::clone(&drawer) as Arc<dyn Tokens>;
    (drawer, store)
}

fn plan<'a>(url: &'a str, oauth: &'a OAuth, store: &'a Arc<dyn Tokens>) -> Login<'a> {
    Login { url, reach: Reach::Anywhere, oauth, store, challenge: None }
}

type Running = RunningService<RoleClient, ()>;

async fn connect(url: &str, store: &Arc<dyn Tokens>) -> Result<Running, Trouble> {
    let auth = Auth::Tokens { store: Arc::clone(store), oauth: OAuth::default() };
    let way = transport(url, &[], &auth).unwrap();
    let started = ().serve_with_lifecycle(way, ClientLifecycleMode::Initialize).await;
    started.map_err(|error| trouble(&error))
}

async fn call(running: &Running, tool: &'static str) -> Result<String, Trouble> {
    let called = running.peer().call_tool(CallToolRequestParams::new(tool)).await;
    let called = called.map_err(|error| trouble(&error))?;
    Ok(serde_json::to_value(&called.content[0]).unwrap()["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_login_lets_calls_through_and_outlives_the_connection() {
    let server = oauth::OAuth::start(Manners::default());
    let (drawer, store) = drawer();
    let url = server.url();
    let Trouble::NeedsLogin { challenge } = connect(&url, &store).await.unwrap_err() else {
        panic!("a server that wants a login says so")
    };
    assert!(challenge.unwrap().contains("resource_metadata"));
    plan(&url, &OAuth::default(), &store).run(&|page| drop(browse(page))).await.unwrap();
    for _ in 0..2 {
        let running = connect(&url, &store).await.unwrap();
        assert_eq!(call(&running, "look").await.unwrap(), "read");
        running.cancel().await.unwrap();
    }
    assert_eq!(server.tally().registered, 1);
    assert_eq!(server.tally().refreshed, 0);
    let kept = drawer.text.lock().unwrap().clone().unwrap();
    assert!(kept.expose_secret().contains("refresh-"));
    assert!(!format!("{kept:?}").contains("refresh-"));
}

#[tokio::test]
async fn a_token_is_made_fresh_after_a_restart_by_a_client_with_a_secret() {
    // It lasts so short that each use makes it fresh.
    let server = oauth::OAuth::start(Manners { lasts: 1, secretive: true, ..Manners::default() });
    let (drawer, store) = drawer();
    let url = server.url();
    plan(&url, &OAuth::default(), &store).run(&|page| drop(browse(page))).await.unwrap();
    let running = connect(&url, &store).await.unwrap();
    assert_eq!(call(&running, "look").await.unwrap(), "read");
    running.cancel().await.unwrap();
    assert!(server.tally().refreshed > 0);
    assert_eq!(server.tally().reused, 0, "each refresh token is used once");
    assert!(drawer.guards.load(Ordering::SeqCst) > 0, "others were held off");
}

#[tokio::test]
async fn many_who_make_a_token_fresh_at_once_use_no_refresh_token_twice() {
    let server = oauth::OAuth::start(Manners { lasts: 1, ..Manners::default() });
    let (_drawer, store) = drawer();
    let url = server.url();
    plan(&url, &OAuth::default(), &store).run(&|page| drop(browse(page))).await.unwrap();
    let many = (0..6).map(|_| async {
        let running = connect(&url, &store).await.unwrap();
        call(&running, "look").await.unwrap();
        running.cancel().await.unwrap();
    });
    futures_util::future::join_all(many).await;
    assert_eq!(server.tally().reused, 0);
}

#[tokio::test]
async fn a_token_that_no_longer_counts_is_made_fresh_once_and_then_a_login_is_needed() {
    let server = oauth::OAuth::start(Manners::default());
    let (_drawer, store) = drawer();
    let url = server.url();
    plan(&url, &OAuth::default(), &store).run(&|page| drop(browse(page))).await.unwrap();
    let running = connect(&url, &store).await.unwrap();
    server.revoke();
    assert_eq!(call(&running, "look").await.unwrap(), "read");
    assert_eq!(server.tally().refreshed, 1);
    server.forget();
    assert!(matches!(call(&running, "look").await.unwrap_err(), Trouble::NeedsLogin { .. }));
    running.cancel().await.unwrap();
}

#[tokio::test]
async fn more_is_asked_for_when_a_call_needs_more_and_nothing_is_lost_by_it() {
    let server = oauth::OAuth::start(Manners::default());
    let (_drawer, store) = drawer();
    let (url, oauth) = (server.url(), OAuth::default());
    plan(&url, &oauth, &store).run(&|page| drop(browse(page))).await.unwrap();
    let running = connect(&url, &store).await.unwrap();
    let Trouble::NeedsScope { scope, challenge } = call(&running, "change").await.unwrap_err()
    else {
        panic!("it says what it needs")
    };
    assert_eq!(scope.as_deref(), Some("write"));
    running.cancel().await.unwrap();
    let mut more = plan(&url, &oauth, &store);
    more.challenge = Some(challenge);
    more.run(&|page| drop(browse(page))).await.unwrap();
    let asked = server.tally().scope;
    assert!(asked.contains("read") && asked.contains("write"), "{asked}");
    let running = connect(&url, &store).await.unwrap();
    assert!(call(&running, "change").await.is_ok());
    running.cancel().await.unwrap();
}

#[tokio::test]
async fn a_refusal_and_a_stranger_who_poses_as_the_server_give_nothing() {
    let server = oauth::OAuth::start(Manners { refuses: true, ..Manners::default() });
    let (drawer, store) = drawer();
    let (url, oauth) = (server.url(), OAuth::default());
    let refused = plan(&url, &oauth, &store).run(&|page| drop(browse(page))).await.unwrap_err();
    assert!(refused.text.contains("access_denied"), "{}", refused.text);
    server.behave(|manners| {
        manners.refuses = false;
        manners.poses_as = Some("http://evil.example".into());
    });
    let posed = plan(&url, &oauth, &store).run(&|page| drop(browse(page))).await.unwrap_err();
    assert!(posed.text.contains("mismatch"), "{}", posed.text);
    assert!(drawer.text.lock().unwrap().is_none());
    assert_eq!(server.tally().granted, 0);
}

#[tokio::test]
async fn whoever_else_comes_to_the_port_is_sent_away_and_holds_nobody_up() {
    let server = oauth::OAuth::start(Manners::default());
    let (_drawer, store) = drawer();
    let (url, oauth) = (server.url(), OAuth::default());
    let start = Instant::now();
    let held = Arc::new(Mutex::new(Vec::new()));
    let holding = Arc::clone(&held);
    let login = plan(&url, &oauth, &store);
    let page = move |page: &str| {
        let (page, holding) = (page.to_owned(), Arc::clone(&holding));
        std::thread::spawn(move || {
            let back = super::query(&page, "redirect_uri").unwrap();
            let host = back.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
            // One says nothing at all, one brings a code of its own, one the wrong page.
            holding.lock().unwrap().push(std::net::TcpStream::connect(&host).unwrap());
            assert!(get(&format!("{back}?code=evil&state=guess")).contains("404"));
            assert!(get(&format!("http://{host}/favicon.ico")).contains("404"));
            assert!(browse(&page).join().unwrap().contains("Thank you"));
        });
    };
    login.run(&page).await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    assert_eq!(held.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_text_that_is_no_login_is_as_good_as_none() {
    let server = oauth::OAuth::start(Manners::default());
    let (drawer, store) = drawer();
    let url = server.url();
    *drawer.text.lock().unwrap() = Some("{\"old\": 1}".to_owned().into());
    assert!(matches!(connect(&url, &store).await.unwrap_err(), Trouble::NeedsLogin { .. }));
    plan(&url, &OAuth::default(), &store).run(&|page| drop(browse(page))).await.unwrap();
    connect(&url, &store).await.unwrap().cancel().await.unwrap();
}

#[tokio::test]
async fn what_a_login_gave_goes_to_no_other_server() {
    let server = oauth::OAuth::start(Manners::default());
    let (drawer, store) = drawer();
    let url = server.url();
    plan(&url, &OAuth::default(), &store).run(&|page| drop(browse(page))).await.unwrap();
    // The same name, and tokens that would do, but another address.
    let elsewhere = url.replace("127.0.0.1", "localhost");
    assert!(matches!(connect(&elsewhere, &store).await.unwrap_err(), Trouble::NeedsLogin { .. }));
    assert!(drawer.text.lock().unwrap().is_some(), "and they are still there");
    connect(&url, &store).await.unwrap().cancel().await.unwrap();
}
