//! Logins at `MockOAuthServer`, with a user who opens the page, and with attackers.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests act as the browser"
)]

use super::OAuthLogin;
use crate::oauth::tokens::{McpAuth, OAuthConfig, TokenStore};
use crate::transport::http::{AddressPolicy, McpHttpError, classify_error, http_transport};
use async_trait::async_trait;
use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RunningService};
use secrecy::{ExposeSecret, SecretString};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use windlass_testkit::mock_oauth_server::{self, OAuthBehavior, get, open_login_page};

/// Stores tokens in memory, with a lock for refreshes.
#[derive(Default)]
struct MemoryTokenStore {
    text: Mutex<Option<SecretString>>,
    lock: Arc<tokio::sync::Mutex<()>>,
    lock_count: AtomicUsize,
}

#[async_trait]
impl TokenStore for MemoryTokenStore {
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

    async fn lock_refresh(&self) -> Result<Box<dyn Send>, String> {
        self.lock_count.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Arc::clone(&self.lock).lock_owned().await))
    }
}

fn memory_store() -> (Arc<MemoryTokenStore>, Arc<dyn TokenStore>) {
    let memory_store = Arc::<MemoryTokenStore>::default();
    let store: Arc<dyn TokenStore> = Arc::clone(&memory_store) as Arc<dyn TokenStore>;
    (memory_store, store)
}

fn login_at<'a>(
    url: &'a str,
    oauth: &'a OAuthConfig,
    store: &'a Arc<dyn TokenStore>,
) -> OAuthLogin<'a> {
    OAuthLogin { url, address_policy: AddressPolicy::Anywhere, oauth, store, challenge: None }
}

type RunningClient = RunningService<RoleClient, ()>;

async fn connect(url: &str, store: &Arc<dyn TokenStore>) -> Result<RunningClient, McpHttpError> {
    let auth = McpAuth::OAuth { store: Arc::clone(store), oauth: OAuthConfig::default() };
    let transport = http_transport(url, &[], &auth).unwrap();
    let started = ().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await;
    started.map_err(|error| classify_error(&error))
}

async fn call(client: &RunningClient, tool: &'static str) -> Result<String, McpHttpError> {
    let called = client.peer().call_tool(CallToolRequestParams::new(tool)).await;
    let called = called.map_err(|error| classify_error(&error))?;
    Ok(serde_json::to_value(&called.content[0]).unwrap()["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_login_lets_calls_through_and_outlives_the_connection() {
    let server = mock_oauth_server::MockOAuthServer::start(OAuthBehavior::default());
    let (memory_store, store) = memory_store();
    let url = server.url();
    let McpHttpError::NeedsLogin { challenge } = connect(&url, &store).await.unwrap_err() else {
        panic!("the server must require a login")
    };
    assert!(challenge.unwrap().contains("resource_metadata"));
    login_at(&url, &OAuthConfig::default(), &store)
        .run(&|page| drop(open_login_page(page)))
        .await
        .unwrap();
    for _ in 0..2 {
        let client = connect(&url, &store).await.unwrap();
        assert_eq!(call(&client, "look").await.unwrap(), "read");
        client.cancel().await.unwrap();
    }
    assert_eq!(server.counts().registered, 1);
    assert_eq!(server.counts().refreshed, 0);
    let stored_login = memory_store.text.lock().unwrap().clone().unwrap();
    assert!(stored_login.expose_secret().contains("refresh-"));
    assert!(!format!("{stored_login:?}").contains("refresh-"));
}

#[tokio::test]
async fn a_client_with_a_secret_refreshes_its_token_after_a_restart() {
    // The token expires so soon that each use refreshes it.
    let server = mock_oauth_server::MockOAuthServer::start(OAuthBehavior {
        token_lifetime_seconds: 1,
        issues_client_secret: true,
        ..OAuthBehavior::default()
    });
    let (memory_store, store) = memory_store();
    let url = server.url();
    login_at(&url, &OAuthConfig::default(), &store)
        .run(&|page| drop(open_login_page(page)))
        .await
        .unwrap();
    let client = connect(&url, &store).await.unwrap();
    assert_eq!(call(&client, "look").await.unwrap(), "read");
    client.cancel().await.unwrap();
    assert!(server.counts().refreshed > 0);
    assert_eq!(server.counts().reused, 0, "each refresh token is used once");
    assert!(memory_store.lock_count.load(Ordering::SeqCst) > 0, "the refresh was locked");
}

#[tokio::test]
async fn concurrent_refreshes_use_no_refresh_token_twice() {
    let server = mock_oauth_server::MockOAuthServer::start(OAuthBehavior {
        token_lifetime_seconds: 1,
        ..OAuthBehavior::default()
    });
    let (_memory_store, store) = memory_store();
    let url = server.url();
    login_at(&url, &OAuthConfig::default(), &store)
        .run(&|page| drop(open_login_page(page)))
        .await
        .unwrap();
    let many = (0..6).map(|_| async {
        let client = connect(&url, &store).await.unwrap();
        call(&client, "look").await.unwrap();
        client.cancel().await.unwrap();
    });
    futures_util::future::join_all(many).await;
    assert_eq!(server.counts().reused, 0);
}

#[tokio::test]
async fn a_revoked_token_is_refreshed_once_and_then_requires_a_login() {
    let server = mock_oauth_server::MockOAuthServer::start(OAuthBehavior::default());
    let (_memory_store, store) = memory_store();
    let url = server.url();
    login_at(&url, &OAuthConfig::default(), &store)
        .run(&|page| drop(open_login_page(page)))
        .await
        .unwrap();
    let client = connect(&url, &store).await.unwrap();
    server.revoke_access_tokens();
    assert_eq!(call(&client, "look").await.unwrap(), "read");
    assert_eq!(server.counts().refreshed, 1);
    server.revoke_all_tokens();
    assert!(matches!(call(&client, "look").await.unwrap_err(), McpHttpError::NeedsLogin { .. }));
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_call_can_request_more_scopes_and_keeps_the_old_ones() {
    let server = mock_oauth_server::MockOAuthServer::start(OAuthBehavior::default());
    let (_memory_store, store) = memory_store();
    let (url, oauth) = (server.url(), OAuthConfig::default());
    login_at(&url, &oauth, &store).run(&|page| drop(open_login_page(page))).await.unwrap();
    let client = connect(&url, &store).await.unwrap();
    let McpHttpError::NeedsScope { scope, challenge } = call(&client, "change").await.unwrap_err()
    else {
        panic!("the server must name the missing scope")
    };
    assert_eq!(scope.as_deref(), Some("write"));
    client.cancel().await.unwrap();
    let mut login_again = login_at(&url, &oauth, &store);
    login_again.challenge = Some(challenge);
    login_again.run(&|page| drop(open_login_page(page))).await.unwrap();
    let requested_scope = server.counts().scope;
    assert!(
        requested_scope.contains("read") && requested_scope.contains("write"),
        "{requested_scope}"
    );
    let client = connect(&url, &store).await.unwrap();
    assert!(call(&client, "change").await.is_ok());
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_denial_and_a_wrong_issuer_give_no_token() {
    let server = mock_oauth_server::MockOAuthServer::start(OAuthBehavior {
        denies_access: true,
        ..OAuthBehavior::default()
    });
    let (memory_store, store) = memory_store();
    let (url, oauth) = (server.url(), OAuthConfig::default());
    let denied =
        login_at(&url, &oauth, &store).run(&|page| drop(open_login_page(page))).await.unwrap_err();
    assert!(denied.text.contains("access_denied"), "{}", denied.text);
    server.change_behavior(|behavior| {
        behavior.denies_access = false;
        behavior.claimed_issuer = Some("http://evil.example".into());
    });
    let mismatch =
        login_at(&url, &oauth, &store).run(&|page| drop(open_login_page(page))).await.unwrap_err();
    assert!(mismatch.text.contains("mismatch"), "{}", mismatch.text);
    assert!(memory_store.text.lock().unwrap().is_none());
    assert_eq!(server.counts().granted, 0);
}

#[tokio::test]
async fn other_connections_to_the_callback_port_are_rejected_without_delay() {
    let server = mock_oauth_server::MockOAuthServer::start(OAuthBehavior::default());
    let (_memory_store, store) = memory_store();
    let (url, oauth) = (server.url(), OAuthConfig::default());
    let start = Instant::now();
    let open_connections = Arc::new(Mutex::new(Vec::new()));
    let connections = Arc::clone(&open_connections);
    let login = login_at(&url, &oauth, &store);
    let page = move |page: &str| {
        let (page, connections) = (page.to_owned(), Arc::clone(&connections));
        std::thread::spawn(move || {
            let redirect_uri = super::query_parameter(&page, "redirect_uri").unwrap();
            let host =
                redirect_uri.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
            // One sends nothing, one sends a code of its own, and one requests the wrong page.
            connections.lock().unwrap().push(std::net::TcpStream::connect(&host).unwrap());
            assert!(get(&format!("{redirect_uri}?code=evil&state=guess")).contains("404"));
            assert!(get(&format!("http://{host}/favicon.ico")).contains("404"));
            assert!(open_login_page(&page).join().unwrap().contains("Thank you"));
        });
    };
    login.run(&page).await.unwrap();
    assert!(
        start.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(8)),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(open_connections.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_invalid_stored_login_counts_as_none() {
    let server = mock_oauth_server::MockOAuthServer::start(OAuthBehavior::default());
    let (memory_store, store) = memory_store();
    let url = server.url();
    *memory_store.text.lock().unwrap() = Some("{\"old\": 1}".to_owned().into());
    assert!(matches!(connect(&url, &store).await.unwrap_err(), McpHttpError::NeedsLogin { .. }));
    login_at(&url, &OAuthConfig::default(), &store)
        .run(&|page| drop(open_login_page(page)))
        .await
        .unwrap();
    connect(&url, &store).await.unwrap().cancel().await.unwrap();
}

#[tokio::test]
async fn tokens_are_not_sent_to_another_server() {
    let server = mock_oauth_server::MockOAuthServer::start(OAuthBehavior::default());
    let (memory_store, store) = memory_store();
    let url = server.url();
    login_at(&url, &OAuthConfig::default(), &store)
        .run(&|page| drop(open_login_page(page)))
        .await
        .unwrap();
    // The same server with valid tokens, but at another address.
    let other_address = url.replace("127.0.0.1", "localhost");
    assert!(matches!(
        connect(&other_address, &store).await.unwrap_err(),
        McpHttpError::NeedsLogin { .. }
    ));
    assert!(memory_store.text.lock().unwrap().is_some(), "the tokens are still stored");
    connect(&url, &store).await.unwrap().cancel().await.unwrap();
}
