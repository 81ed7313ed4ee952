//! The client under test for the protocol's own conformance suite, which starts it with the address of a
//! server as its last argument. It connects, logs in when it has to, lists the tools and calls each.
//!
//! What is tested is this crate's: the way to servers, the login, and what is kept of it. What a person
//! would do is scripted: the page of a login is opened, and a question is answered with its defaults.
#![allow(
    clippy::disallowed_methods,
    reason = "the suite says by the environment what is tested, and nothing outlives the client"
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
use windlass_mcp::{Auth, Login, OAuth, Reach, Tokens, Trouble, transport, trouble};

/// A client that describes itself, as the suite knows it.
const DESCRIBED: &str = "https://conformance-test.local/client-metadata.json";
/// How often a login is done before it is given up.
const LOGINS: usize = 3;
/// How long everything may take.
const PATIENCE: Duration = Duration::from_secs(25);

/// Tokens that are kept for as long as the client runs.
#[derive(Default)]
struct Drawer {
    text: Mutex<Option<SecretString>>,
    lock: Arc<Mutex<()>>,
}

#[async_trait]
impl Tokens for Drawer {
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

    async fn guard(&self) -> Result<Box<dyn Send>, String> {
        Ok(Box::new(Arc::clone(&self.lock).lock_owned().await))
    }
}

/// Answers questions with what they propose.
#[derive(Clone)]
struct Person(ProtocolVersion);

impl ClientHandler for Person {
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
            } else if required(&form, name) {
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

fn required(schema: &Value, name: &str) -> bool {
    let names = schema["required"].as_array();
    names.is_some_and(|names| names.iter().any(|known| known == name))
}

/// Something that fits a schema.
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

/// What the suite asks for.
struct Task {
    url: String,
    version: ProtocolVersion,
    context: Value,
    store: Arc<dyn Tokens>,
    oauth: OAuth,
    logins: usize,
}

type Running = RunningService<RoleClient, Person>;

impl Task {
    fn read() -> Result<Task, Box<dyn Error>> {
        let url = std::env::args().next_back().ok_or("no address was given")?;
        let version = std::env::var("MCP_CONFORMANCE_PROTOCOL_VERSION").unwrap_or_default();
        let version = match version.as_str() {
            "2026-07-28" => ProtocolVersion::V_2026_07_28,
            _ => ProtocolVersion::V_2025_11_25,
        };
        let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
        let context: Value = serde_json::from_str(&context).unwrap_or_default();
        let told = |name: &str| context.get(name)?.as_str().map(str::to_owned);
        let oauth = OAuth {
            client_id: told("client_id").or_else(|| Some(DESCRIBED.to_owned())),
            client_secret: told("client_secret").map(Into::into),
            ..OAuth::default()
        };
        Ok(Task { url, version, context, store: Arc::new(Drawer::default()), oauth, logins: 0 })
    }

    /// Does the whole of it. What a login would help is tried again after one.
    async fn run(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            let running = match self.connect().await {
                Ok(running) => running,
                Err(trouble) => {
                    self.log_in(trouble).await?;
                    continue;
                }
            };
            let done = self.work(&running).await;
            running.cancel().await?;
            match done {
                Ok(()) => return Ok(()),
                Err(trouble) => self.log_in(trouble).await?,
            }
        }
    }

    async fn connect(&self) -> Result<Running, Trouble> {
        let auth = Auth::Tokens { store: Arc::clone(&self.store), oauth: self.oauth.clone() };
        let way = transport(&self.url, &[], &auth).map_err(|error| Trouble::Other(error.text))?;
        let lifecycle = if self.version == ProtocolVersion::V_2026_07_28 {
            ClientLifecycleMode::Discover { preferred_versions: vec![self.version.clone()] }
        } else {
            ClientLifecycleMode::Initialize
        };
        let started = Person(self.version.clone()).serve_with_lifecycle(way, lifecycle).await;
        started.map_err(|error| trouble(&error))
    }

    async fn work(&self, running: &Running) -> Result<(), Trouble> {
        let tools = running.list_all_tools().await.map_err(|error| trouble(&error))?;
        for (name, arguments) in self.calls(&tools) {
            let params = CallToolRequestParams::new(name).with_arguments(arguments);
            match running.call_tool(params).await.map_err(|error| trouble(&error)) {
                // A tool may well fail; the others are still to be called.
                Ok(_) | Err(Trouble::Other(_)) => {}
                Err(login) => return Err(login),
            }
        }
        Ok(())
    }

    /// The calls that the suite names, or one of each tool.
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
            let needed = properties(&schema).filter(|(name, _)| required(&schema, name));
            let other = || tools.iter().find(|other| other.name != tool.name);
            let arguments = needed.map(|(name, schema)| {
                // A tool that wants a schema is given another's, as it was understood here.
                let told = (name == "schema").then(other).flatten();
                let told = told.map(|tool| Value::Object(tool.input_schema.as_ref().clone()));
                (name.clone(), told.unwrap_or_else(|| example(schema)))
            });
            (tool.name.to_string(), arguments.collect())
        };
        tools.iter().map(call).collect()
    }

    async fn log_in(&mut self, trouble: Trouble) -> Result<(), Box<dyn Error>> {
        let challenge = match trouble {
            Trouble::NeedsLogin { challenge } => challenge,
            Trouble::NeedsScope { challenge, .. } => Some(challenge),
            Trouble::Other(why) => return Err(why.into()),
        };
        if self.logins == LOGINS {
            return Err("another login would not help".into());
        }
        self.logins += 1;
        let login = Login {
            url: &self.url,
            reach: Reach::Anywhere,
            oauth: &self.oauth,
            store: &self.store,
            challenge,
        };
        let page = |page: &str| drop(tokio::spawn(browse(page.to_owned())));
        login.run(&page).await.map_err(|failure| failure.text.into())
    }
}

/// Opens the page of a login, and goes where it sends the browser.
async fn browse(page: String) -> Option<()> {
    let stay = reqwest::redirect::Policy::none();
    let browser = reqwest::Client::builder().redirect(stay).build().ok()?;
    let sent = browser.get(page).send().await.ok()?;
    let place = sent.headers().get("location")?.to_str().ok()?.to_owned();
    browser.get(place).send().await.ok()?;
    Some(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    tokio::time::timeout(PATIENCE, async { Task::read()?.run().await }).await?
}
