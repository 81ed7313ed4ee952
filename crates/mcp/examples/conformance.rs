//! The client under test for the conformance suite of MCP, which starts it with the URL of a server
//! as its last argument. It connects, logs in if required, lists the tools and calls each.
//!
//! It tests the transport, the login and the token storage of this crate. The user is scripted: a
//! login page is opened, and an elicitation is answered with its defaults.
#![allow(
    clippy::disallowed_methods,
    reason = "the suite passes the test by environment variables, and nothing outlives the client"
)]

use async_trait::async_trait;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ErrorData, Implementation, JsonObject, ProtocolVersion, Tool,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt, RequestContext, RunningService};
use rmcp::{ClientHandler, RoleClient};
use secrecy::SecretString;
use serde_json::{Map, Value, json};
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use windlass_mcp::{
    AddressPolicy, McpAuth, McpHttpError, OAuthConfig, OAuthLogin, TokenStore, classify_error,
    http_transport,
};

/// URL of the client metadata document that the suite knows.
const CLIENT_METADATA_URL: &str = "https://conformance-test.local/client-metadata.json";
/// Limit for the logins of one run.
const MAX_LOGINS: usize = 3;
/// Time limit for the whole run.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(25);

/// Stores tokens in memory.
#[derive(Default)]
struct MemoryTokenStore {
    text: Mutex<Option<SecretString>>,
    lock: Arc<Mutex<()>>,
}

#[async_trait]
impl TokenStore for MemoryTokenStore {
    async fn load(&self) -> Result<Option<SecretString>, String> {
        Ok(self.text.lock().await.clone())
    }

    async fn save(&self, text: SecretString) -> Result<(), String> {
        *self.text.lock().await = Some(text);
        Ok(())
    }

    async fn clear(&self) -> Result<(), String> {
        *self.text.lock().await = None;
        Ok(())
    }

    async fn lock_refresh(&self) -> Result<Box<dyn Send>, String> {
        Ok(Box::new(Arc::clone(&self.lock).lock_owned().await))
    }
}

/// Answers elicitations with their defaults.
#[derive(Clone)]
struct ConformanceElicitationHandler(ProtocolVersion);

impl ClientHandler for ConformanceElicitationHandler {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_elicitation().build();
        let name = Implementation::new("windlass", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, name).with_protocol_version(self.0.clone())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request = serde_json::to_value(request).unwrap_or_default();
        let form = request.get("requestedSchema").cloned().unwrap_or_default();
        let mut content = Map::new();
        for (name, schema) in properties(&form) {
            if let Some(default) = schema.get("default") {
                content.insert(name.clone(), default.clone());
            } else if is_required(&form, name) {
                content.insert(name.clone(), example(schema));
            }
        }
        let answer = ElicitResult::new(ElicitationAction::Accept);
        Ok(answer.with_content(Value::Object(content)))
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn is_required(schema: &Value, name: &str) -> bool {
    let names = schema["required"].as_array();
    names.is_some_and(|names| names.iter().any(|required_name| required_name == name))
}

/// Returns an example value for a schema.
fn example(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("test"),
    }
}

/// The test that the suite requests.
struct ConformanceTask {
    url: String,
    version: ProtocolVersion,
    context: Value,
    store: Arc<dyn TokenStore>,
    oauth: OAuthConfig,
    logins: usize,
}

type RunningClient = RunningService<RoleClient, ConformanceElicitationHandler>;

impl ConformanceTask {
    fn from_env() -> Result<ConformanceTask, Box<dyn Error>> {
        let url = std::env::args().next_back().ok_or("no address was given")?;
        let version = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
        let version = match version.as_str() {
            "2026-07-28" => ProtocolVersion::V_2026_07_28,
            _ => ProtocolVersion::V_2025_11_25,
        };
        let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
        let context: Value = serde_json::from_str(&context).unwrap_or_default();
        let value = |name: &str| context.get(name)?.as_str().map(str::to_owned);
        let oauth = OAuthConfig {
            client_id: value("client_id").or_else(|| Some(CLIENT_METADATA_URL.to_owned())),
            client_secret: value("client_secret").map(Into::into),
            ..OAuthConfig::default()
        };
        Ok(ConformanceTask {
            url,
            version,
            context,
            store: Arc::new(MemoryTokenStore::default()),
            oauth,
            logins: 0,
        })
    }

    /// Runs the test. Retries after a login if one is required.
    async fn run(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            let running = match self.connect().await {
                Ok(running) => running,
                Err(error) => {
                    self.log_in(error).await?;
                    continue;
                }
            };
            let done = self.call_tools(&running).await;
            running.cancel().await?;
            match done {
                Ok(()) => return Ok(()),
                Err(error) => self.log_in(error).await?,
            }
        }
    }

    async fn connect(&self) -> Result<RunningClient, McpHttpError> {
        let auth = McpAuth::OAuth { store: Arc::clone(&self.store), oauth: self.oauth.clone() };
        let transport = http_transport(&self.url, &[], &auth)
            .map_err(|error| McpHttpError::Other(error.text))?;
        let lifecycle = if self.version == ProtocolVersion::V_2026_07_28 {
            ClientLifecycleMode::Discover { preferred_versions: vec![self.version.clone()] }
        } else {
            ClientLifecycleMode::Initialize
        };
        let started = ConformanceElicitationHandler(self.version.clone())
            .serve_with_lifecycle(transport, lifecycle)
            .await;
        started.map_err(|error| classify_error(&error))
    }

    async fn call_tools(&self, running: &RunningClient) -> Result<(), McpHttpError> {
        let tools = running.list_all_tools().await.map_err(|error| classify_error(&error))?;
        for (name, arguments) in self.calls(&tools) {
            let params = CallToolRequestParams::new(name).with_arguments(arguments);
            match running.call_tool(params).await.map_err(|error| classify_error(&error)) {
                // A tool may fail; the other ones are still called.
                Ok(_) | Err(McpHttpError::Other(_)) => {}
                Err(login) => return Err(login),
            }
        }
        Ok(())
    }

    /// Returns the calls that the suite names, or one call of each tool.
    fn calls(&self, tools: &[Tool]) -> Vec<(String, JsonObject)> {
        if let Some(calls) = self.context.get("toolCalls").and_then(Value::as_array) {
            let arguments = |call: &Value| call["arguments"].as_object().cloned();
            let named = calls.iter().filter_map(|call| {
                Some((call["name"].as_str()?.to_owned(), arguments(call).unwrap_or_default()))
            });
            return named.collect();
        }
        let call = |tool: &Tool| {
            let schema = Value::Object(tool.input_schema.as_ref().clone());
            let required_properties =
                properties(&schema).filter(|(name, _)| is_required(&schema, name));
            let other = || tools.iter().find(|other| other.name != tool.name);
            let arguments = required_properties.map(|(name, schema)| {
                // A tool that requires a schema gets the parsed schema of another tool.
                let value = (name == "schema").then(other).flatten();
                let value = value.map(|tool| Value::Object(tool.input_schema.as_ref().clone()));
                (name.clone(), value.unwrap_or_else(|| example(schema)))
            });
            (tool.name.to_string(), arguments.collect())
        };
        tools.iter().map(call).collect()
    }

    async fn log_in(&mut self, error: McpHttpError) -> Result<(), Box<dyn Error>> {
        let challenge = match error {
            McpHttpError::NeedsLogin { challenge } => challenge,
            McpHttpError::NeedsScope { challenge, .. } => Some(challenge),
            McpHttpError::Other(why) => return Err(why.into()),
        };
        if self.logins == MAX_LOGINS {
            return Err("another login would not help".into());
        }
        self.logins += 1;
        let login = OAuthLogin {
            url: &self.url,
            address_policy: AddressPolicy::Anywhere,
            oauth: &self.oauth,
            store: &self.store,
            challenge,
        };
        let page = |page: &str| drop(tokio::spawn(open_login_page(page.to_owned())));
        login.run(&page).await.map_err(|failure| failure.text.into())
    }
}

/// Opens a login page and follows its redirect.
async fn open_login_page(page: String) -> Option<()> {
    let no_redirects = reqwest::redirect::Policy::none();
    let browser = reqwest::Client::builder().redirect(no_redirects).build().ok()?;
    let response = browser.get(page).send().await.ok()?;
    let location = response.headers().get("location")?.to_str().ok()?.to_owned();
    browser.get(location).send().await.ok()?;
    Some(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tokio::time::timeout(TOTAL_TIMEOUT, async { ConformanceTask::from_env()?.run().await }).await?
}
