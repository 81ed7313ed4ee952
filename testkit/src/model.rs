//! A scripted model behind a real HTTP server on loopback.

use crate::script::{Line, Script};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// A model that does as its script says. It ends when it is dropped.
pub struct Model {
    address: std::net::SocketAddr,
    stage: Arc<Stage>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

struct Stage {
    script: Script,
    times: Mutex<BTreeMap<usize, usize>>,
    requests: Mutex<Vec<Value>>,
    gates: watch::Sender<BTreeSet<String>>,
    waiting: watch::Sender<BTreeSet<String>>,
    deserted: AtomicBool,
}

impl Model {
    /// Starts it on a free port.
    pub fn start(script: Script) -> Model {
        let stage = Arc::new(Stage {
            script,
            times: Mutex::default(),
            requests: Mutex::default(),
            gates: watch::Sender::default(),
            waiting: watch::Sender::default(),
            deserted: AtomicBool::new(false),
        });
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (ready, address) = std::sync::mpsc::channel();
        let shared = Arc::clone(&stage);
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
        Model { address, stage, stop: Some(stop), thread: Some(thread) }
    }

    /// The base URL of its OpenAI-compatible API.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.stage.requests.lock().unwrap().clone()
    }

    /// Lets a reply go on past `gate NAME`.
    pub fn open_gate(&self, name: &str) {
        self.stage.gates.send_modify(|gates| {
            gates.insert(name.into());
        });
    }

    /// Waits until a reply has come to `gate NAME`.
    pub fn wait_at_gate(&self, name: &str) {
        wait_until(|| self.stage.waiting.borrow().contains(name), "nobody came to the gate");
    }

    /// Waits until whoever asked has gone away while a reply stood at a gate.
    pub fn wait_until_nobody_listens(&self) {
        wait_until(|| self.stage.deserted.load(Ordering::SeqCst), "somebody still listens");
    }
}

fn wait_until(happened: impl Fn() -> bool, otherwise: &str) {
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while !happened() {
        assert!(std::time::Instant::now() < deadline, "{otherwise}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A piece of a response body; an error ends the connection.
type Piece = Result<Bytes, std::io::Error>;

async fn answer(State(stage): State<Arc<Stage>>, request: Request) -> Response {
    let body = axum::body::to_bytes(request.into_body(), 64 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let given = |message: &&Value| message["role"] == "assistant";
    let turn = body["messages"].as_array().map_or(0, |m| m.iter().filter(given).count());
    let time = {
        let mut times = stage.times.lock().unwrap();
        let time = times.entry(turn).or_insert(0_usize);
        *time += 1;
        *time - 1
    };
    let lines = stage.script.reply(turn, time);
    stage.requests.lock().unwrap().push(body);
    let lines = lines.unwrap_or_else(|| {
        vec![Line::Status(500, format!("the script has no reply {}", turn + 1))]
    });
    let mut response = Response::builder().header("content-type", "text/event-stream");
    for line in &lines {
        match line {
            Line::Header(name, value) => response = response.header(name, value),
            Line::Status(code, body) => {
                return response.status(*code).body(Body::from(body.clone())).unwrap();
            }
            _ => {}
        }
    }
    let (pieces, stream) = mpsc::channel::<Piece>(4);
    tokio::spawn(async move { perform(&stage, turn, &lines, &pieces).await });
    let stream = futures_util::stream::unfold(stream, |mut stream| async move {
        stream.recv().await.map(|piece| (piece, stream))
    });
    response.body(Body::from_stream(stream.boxed())).unwrap()
}

/// Plays a reply. `None` means that nobody listens any more, or that the reply was cut.
async fn perform(
    stage: &Stage,
    turn: usize,
    lines: &[Line],
    pieces: &mpsc::Sender<Piece>,
) -> Option<()> {
    let mut split = usize::MAX;
    let mut calls = 0;
    let mut finish = None;
    let mut usage = (100, 5);
    for line in lines {
        match line {
            Line::Say(text) => {
                for word in text.split_inclusive(' ') {
                    send(pieces, split, &delta(json!({"content": word}))).await?;
                }
            }
            Line::Think(text) => {
                send(pieces, split, &delta(json!({"reasoning_content": text}))).await?;
            }
            Line::Call(tool, arguments) => {
                let id = format!("call_{turn}_{calls}");
                let function = json!({"name": tool, "arguments": ""});
                let head =
                    json!({"index": calls, "id": id, "type": "function", "function": function});
                send(pieces, split, &delta(json!({"tool_calls": [head]}))).await?;
                let middle = arguments.floor_char_boundary(arguments.len() / 2);
                for piece in [&arguments[..middle], &arguments[middle..]] {
                    let function = json!({"arguments": piece});
                    let call = json!({"index": calls, "function": function});
                    send(pieces, split, &delta(json!({"tool_calls": [call]}))).await?;
                }
                calls += 1;
            }
            Line::Finish(reason) => finish = Some(reason.as_str()),
            Line::Usage(input, output) => usage = (*input, *output),
            Line::Raw(text) => send(pieces, split, text).await?,
            Line::Gate(name) => {
                stage.waiting.send_modify(|waiting| {
                    waiting.insert(name.clone());
                });
                let mut gates = stage.gates.subscribe();
                tokio::select! {
                    opened = gates.wait_for(|gates| gates.contains(name)) => opened.ok().map(|_| ())?,
                    () = pieces.closed() => {
                        stage.deserted.store(true, Ordering::SeqCst);
                        return None;
                    }
                }
            }
            Line::Stall(time) => tokio::time::sleep(Duration::from_millis(*time)).await,
            Line::Cut => {
                let _ = pieces.send(Err(std::io::Error::other("cut"))).await;
                return None;
            }
            Line::Split(bytes) => split = *bytes,
            Line::Status(..) | Line::Header(..) | Line::Once(_) => {}
        }
    }
    let usual = if calls > 0 { "tool_calls" } else { "stop" };
    let end =
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish.unwrap_or(usual)}]});
    send(pieces, split, &event(&end)).await?;
    let usage = json!({"prompt_tokens": usage.0, "completion_tokens": usage.1});
    send(pieces, split, &event(&json!({"choices": [], "usage": usage}))).await?;
    send(pieces, split, "data: [DONE]\n\n").await
}

fn delta(delta: Value) -> String {
    event(&json!({"choices": [{"index": 0, "delta": delta}]}))
}

fn event(value: &Value) -> String {
    format!("data: {value}\n\n")
}

async fn send(pieces: &mpsc::Sender<Piece>, split: usize, text: &str) -> Option<()> {
    for piece in text.as_bytes().chunks(split) {
        pieces.send(Ok(Bytes::copy_from_slice(piece))).await.ok()?;
    }
    Some(())
}
