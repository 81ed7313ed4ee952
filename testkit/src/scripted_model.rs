//! A scripted model behind a real HTTP server on loopback.

use crate::model_script::{ModelScript, ScriptLine};
use crate::wire_replies::{ReplyWriter, WireFormat};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// A model that follows its script. It stops when it is dropped.
pub struct ScriptedModel {
    address: std::net::SocketAddr,
    state: Arc<ScriptedModelState>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// A request without its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelRequestHead {
    /// The path and the query.
    pub path: String,
    /// The headers, in order, names in lower case.
    pub headers: Vec<(String, String)>,
}

impl ModelRequestHead {
    fn from_request(request: &Request) -> ModelRequestHead {
        let path = request.uri().to_string();
        let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), text(value))).collect();
        ModelRequestHead { path, headers }
    }

    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

struct ScriptedModelState {
    script: ModelScript,
    attempts: Mutex<BTreeMap<usize, usize>>,
    requests: Mutex<Vec<Value>>,
    request_heads: Mutex<Vec<ModelRequestHead>>,
    gates: watch::Sender<BTreeSet<String>>,
    waiting: watch::Sender<BTreeSet<String>>,
    disconnected: AtomicBool,
}

impl ScriptedModel {
    /// Starts the model on a free port.
    pub fn start(script: ModelScript) -> ScriptedModel {
        let state = Arc::new(ScriptedModelState {
            script,
            attempts: Mutex::default(),
            requests: Mutex::default(),
            request_heads: Mutex::default(),
            gates: watch::Sender::default(),
            waiting: watch::Sender::default(),
            disconnected: AtomicBool::new(false),
        });
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, address) = std::sync::mpsc::channel();
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                ready.send(listener.local_addr().unwrap()).unwrap();
                let router = Router::new().fallback(answer).with_state(shared);
                let serve = axum::serve(listener, router).into_future();
                tokio::select! {
                    served = serve => served.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        let address = address.recv().unwrap();
        ScriptedModel { address, state, stop: Some(stop), thread: Some(thread) }
    }

    /// Returns the base URL of its API. The path below it selects the wire format.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Returns path and headers of all requests so far.
    pub fn request_heads(&self) -> Vec<ModelRequestHead> {
        self.state.request_heads.lock().unwrap().clone()
    }

    /// Lets a reply continue after `gate NAME`.
    pub fn open_gate(&self, name: &str) {
        self.state.gates.send_modify(|gates| {
            gates.insert(name.into());
        });
    }

    /// Waits until a reply has reached `gate NAME`.
    pub fn wait_at_gate(&self, name: &str) {
        wait_until(|| self.state.waiting.borrow().contains(name), "no reply reached the gate");
    }

    /// Waits until the client disconnects while a reply waits at a gate.
    pub fn wait_until_disconnected(&self) {
        wait_until(
            || self.state.disconnected.load(Ordering::SeqCst),
            "the client is still connected",
        );
    }
}

fn wait_until(condition: impl Fn() -> bool, failure: &str) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(std::time::Instant::now() < deadline, "{failure}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A chunk of a response body; an error closes the connection.
type BodyChunk = Result<Bytes, std::io::Error>;

async fn answer(State(state): State<Arc<ScriptedModelState>>, request: Request) -> Response {
    if request.uri().path().ends_with("/models") {
        let list = serde_json::json!({"data": [{"id": "nomic-embed-text"}, {"id": "qwen3-coder"}]});
        return Response::new(Body::from(list.to_string()));
    }
    let format = WireFormat::from_path(request.uri().path());
    let head = ModelRequestHead::from_request(&request);
    let body = axum::body::to_bytes(request.into_body(), 64 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let turn = format.answer_count(&body);
    let lines = match state.script.endless_reply(&body) {
        Some(lines) => lines,
        None => next_reply(&state, turn, body, head),
    };
    let sets_content_type =
        |line: &ScriptLine| matches!(line, ScriptLine::Header(name, _) if name == "content-type");
    let mut response = Response::builder();
    if !lines.iter().any(sets_content_type) {
        response = response.header("content-type", "text/event-stream");
    }
    for line in &lines {
        match line {
            ScriptLine::Header(name, value) => response = response.header(name, value),
            ScriptLine::Late(millis) => tokio::time::sleep(Duration::from_millis(*millis)).await,
            ScriptLine::Status(code, body) => {
                return response.status(*code).body(Body::from(body.clone())).unwrap();
            }
            _ => {}
        }
    }
    let (chunks, stream) = mpsc::channel::<BodyChunk>(4);
    tokio::spawn(async move { play_reply(&state, format, turn, &lines, &chunks).await });
    let stream = futures_util::stream::unfold(stream, |mut stream| async move {
        stream.recv().await.map(|chunk| (chunk, stream))
    });
    response.body(Body::from_stream(stream.boxed())).unwrap()
}

/// Returns the next listed reply, and records the request.
fn next_reply(
    state: &ScriptedModelState,
    turn: usize,
    body: Value,
    head: ModelRequestHead,
) -> Vec<ScriptLine> {
    let attempt = {
        let mut attempts = state.attempts.lock().unwrap();
        let attempt = attempts.entry(turn).or_insert(0_usize);
        *attempt += 1;
        *attempt - 1
    };
    let lines = state.script.reply(turn, attempt);
    state.requests.lock().unwrap().push(body);
    state.request_heads.lock().unwrap().push(head);
    lines.unwrap_or_else(|| {
        vec![ScriptLine::Status(500, format!("the script has no reply {}", turn + 1))]
    })
}

/// Plays a reply. Returns `None` if the client disconnected or the reply was cut.
async fn play_reply(
    state: &ScriptedModelState,
    format: WireFormat,
    turn: usize,
    lines: &[ScriptLine],
    chunks: &mpsc::Sender<BodyChunk>,
) -> Option<()> {
    let mut split = usize::MAX;
    let mut calls = 0;
    let mut finish = None;
    let usage = lines.iter().find_map(|line| match line {
        ScriptLine::Usage(input, output) => Some((*input, *output)),
        _ => None,
    });
    let (input, output) = usage.unwrap_or((100, 5));
    let mut writer = ReplyWriter::new(format);
    let mut started = false;
    for line in lines {
        if !started
            && matches!(line, ScriptLine::Say(_) | ScriptLine::Think(_) | ScriptLine::Call(..))
        {
            started = true;
            send(chunks, split, &writer.start(input)).await?;
        }
        match line {
            ScriptLine::Say(text) => {
                for word in text.split_inclusive(' ') {
                    send(chunks, split, &writer.write("text", word)).await?;
                }
            }
            ScriptLine::Think(text) => send(chunks, split, &writer.write("thinking", text)).await?,
            ScriptLine::Call(tool, arguments) => {
                let id = format!("call_{turn}_{calls}");
                calls += 1;
                for chunk in writer.call(&id, tool, arguments) {
                    send(chunks, split, &chunk).await?;
                }
            }
            ScriptLine::Finish(reason) => finish = Some(reason.as_str()),
            ScriptLine::Raw(text) => send(chunks, split, text).await?,
            ScriptLine::Gate(name) => {
                state.waiting.send_modify(|waiting| {
                    waiting.insert(name.clone());
                });
                let mut gates = state.gates.subscribe();
                tokio::select! {
                    opened = gates.wait_for(|gates| gates.contains(name)) => opened.ok().map(|_| ())?,
                    () = chunks.closed() => {
                        state.disconnected.store(true, Ordering::SeqCst);
                        return None;
                    }
                }
            }
            ScriptLine::Stall(millis) => tokio::time::sleep(Duration::from_millis(*millis)).await,
            ScriptLine::Cut => {
                let _ = chunks.send(Err(std::io::Error::other("cut"))).await;
                return None;
            }
            ScriptLine::Split(bytes) => split = *bytes,
            ScriptLine::Usage(..)
            | ScriptLine::Status(..)
            | ScriptLine::Header(..)
            | ScriptLine::Late(_)
            | ScriptLine::Once(_) => {}
        }
    }
    for chunk in writer.end(finish, input, output) {
        send(chunks, split, &chunk).await?;
    }
    Some(())
}

async fn send(chunks: &mpsc::Sender<BodyChunk>, split: usize, text: &str) -> Option<()> {
    for chunk in text.as_bytes().chunks(split) {
        chunks.send(Ok(Bytes::copy_from_slice(chunk))).await.ok()?;
    }
    Some(())
}
