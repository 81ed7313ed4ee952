//! A scripted model behind a real HTTP server on loopback.

use crate::script::{Line, Script};
use crate::speech::{Speech, Writer};
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

/// A model that does as its script says. It ends when it is dropped.
pub struct Model {
    address: std::net::SocketAddr,
    stage: Arc<Stage>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// A request besides its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The path, with what follows it.
    pub path: String,
    /// The headers, in order, names in lower case.
    pub headers: Vec<(String, String)>,
}

impl Asked {
    fn of(request: &Request) -> Asked {
        let path = request.uri().to_string();
        let text = |value: &axum::http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), text(value))).collect();
        Asked { path, headers }
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }
}

struct Stage {
    script: Script,
    times: Mutex<BTreeMap<usize, usize>>,
    requests: Mutex<Vec<Value>>,
    asked: Mutex<Vec<Asked>>,
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
            asked: Mutex::default(),
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

    /// The base URL of its API; the format is told by the path below it.
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of all requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.stage.requests.lock().unwrap().clone()
    }

    /// Where and how it was asked, each time.
    pub fn asked(&self) -> Vec<Asked> {
        self.stage.asked.lock().unwrap().clone()
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
    let speech = Speech::at(request.uri().path());
    let asked = Asked::of(&request);
    let body = axum::body::to_bytes(request.into_body(), 64 << 20).await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    let turn = speech.answers(&body);
    let lines = match stage.script.follow(&body) {
        Some(lines) => lines,
        None => listed(&stage, turn, body, asked),
    };
    let kind = |line: &Line| matches!(line, Line::Header(name, _) if name == "content-type");
    let mut response = Response::builder();
    if !lines.iter().any(kind) {
        response = response.header("content-type", "text/event-stream");
    }
    for line in &lines {
        match line {
            Line::Header(name, value) => response = response.header(name, value),
            Line::Late(time) => tokio::time::sleep(Duration::from_millis(*time)).await,
            Line::Status(code, body) => {
                return response.status(*code).body(Body::from(body.clone())).unwrap();
            }
            _ => {}
        }
    }
    let (pieces, stream) = mpsc::channel::<Piece>(4);
    tokio::spawn(async move { perform(&stage, speech, turn, &lines, &pieces).await });
    let stream = futures_util::stream::unfold(stream, |mut stream| async move {
        stream.recv().await.map(|piece| (piece, stream))
    });
    response.body(Body::from_stream(stream.boxed())).unwrap()
}

/// The reply of a script that has an end; the request is kept.
fn listed(stage: &Stage, turn: usize, body: Value, asked: Asked) -> Vec<Line> {
    let time = {
        let mut times = stage.times.lock().unwrap();
        let time = times.entry(turn).or_insert(0_usize);
        *time += 1;
        *time - 1
    };
    let lines = stage.script.reply(turn, time);
    stage.requests.lock().unwrap().push(body);
    stage.asked.lock().unwrap().push(asked);
    lines
        .unwrap_or_else(|| vec![Line::Status(500, format!("the script has no reply {}", turn + 1))])
}

/// Plays a reply. `None` means that nobody listens any more, or that the reply was cut.
async fn perform(
    stage: &Stage,
    speech: Speech,
    turn: usize,
    lines: &[Line],
    pieces: &mpsc::Sender<Piece>,
) -> Option<()> {
    let mut split = usize::MAX;
    let mut calls = 0;
    let mut finish = None;
    let usage = lines.iter().find_map(|line| match line {
        Line::Usage(input, output) => Some((*input, *output)),
        _ => None,
    });
    let (input, output) = usage.unwrap_or((100, 5));
    let mut writer = Writer::new(speech);
    let mut started = false;
    for line in lines {
        if !started && matches!(line, Line::Say(_) | Line::Think(_) | Line::Call(..)) {
            started = true;
            send(pieces, split, &writer.start(input)).await?;
        }
        match line {
            Line::Say(text) => {
                for word in text.split_inclusive(' ') {
                    send(pieces, split, &writer.write("text", word)).await?;
                }
            }
            Line::Think(text) => send(pieces, split, &writer.write("thinking", text)).await?,
            Line::Call(tool, arguments) => {
                let id = format!("call_{turn}_{calls}");
                calls += 1;
                for piece in writer.call(&id, tool, arguments) {
                    send(pieces, split, &piece).await?;
                }
            }
            Line::Finish(reason) => finish = Some(reason.as_str()),
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
            Line::Usage(..)
            | Line::Status(..)
            | Line::Header(..)
            | Line::Late(_)
            | Line::Once(_) => {}
        }
    }
    for piece in writer.end(finish, input, output) {
        send(pieces, split, &piece).await?;
    }
    Some(())
}

async fn send(pieces: &mpsc::Sender<Piece>, split: usize, text: &str) -> Option<()> {
    for piece in text.as_bytes().chunks(split) {
        pieces.send(Ok(Bytes::copy_from_slice(piece))).await.ok()?;
    }
    Some(())
}
