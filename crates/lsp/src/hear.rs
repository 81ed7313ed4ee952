//! The ear of a connection: takes what a server writes, message by message, and knows what to do with
//! each without asking anybody.
//!
//! Answers go to who asked, requests are answered, findings go to the desk, and everything else is
//! dropped. A flood of anything is slowed down or ends the connection; nothing is queued. Start
//! reading at [`listen`].

use crate::frame::Frames;
use crate::reply::{Effect, reply};
use crate::talk::{Refusal, Wire, lock};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;
use windlass_sandbox::Held;

/// So many requests of a server are answered in a second.
const REQUESTS: u32 = 200;
/// So many messages are taken in a second; more of them wait in the pipe.
const MESSAGES: u32 = 5_000;
/// So many lines go to the journal in a second.
const LINES: u32 = 20;
/// So many messages may be none.
const NOISE: u32 = 100;
/// So many parts may a message have: each costs far more memory than its bytes.
const PARTS: usize = 400_000;
/// How long we wait for a program that closed its output to end, to learn why.
const END: Duration = Duration::from_millis(500);
/// How long after its end what it wrote last may come.
const DRAIN: Duration = Duration::from_millis(100);
/// How long the id of a request may be.
const ID: usize = 256;

/// What can be said of a message at a glance.
#[derive(Deserialize)]
struct Glance<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// The error of an answer.
#[derive(Deserialize)]
struct Told {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

/// What was heard in this second, and what of all was no message.
struct Ear {
    wire: Arc<Wire>,
    since: Instant,
    messages: u32,
    requests: u32,
    lines: u32,
    noise: u32,
}

/// Takes what a server writes until nothing more comes, and says why.
pub(crate) async fn listen<R>(mut reader: R, wire: Arc<Wire>, held: Weak<Held>)
where
    R: AsyncRead + Send + Unpin,
{
    let mut ear = Ear {
        wire: Arc::clone(&wire),
        since: Instant::now(),
        messages: 0,
        requests: 0,
        lines: 0,
        noise: 0,
    };
    let mut frames = Frames::default();
    let mut buffer = vec![0; 64 << 10];
    let why = loop {
        let count = match reader.read(&mut buffer).await {
            Ok(0) => break end(&held, frames.torn()).await,
            Ok(count) => count,
            Err(error) => break format!("its output cannot be read: {error}"),
        };
        let mut piece = buffer.get(..count).unwrap_or_default();
        if let Err(why) = ear.take(&mut frames, &mut piece).await {
            break why;
        }
    };
    wire.close(why);
}

/// Why nothing more comes, where that is simply the end.
async fn end(held: &Weak<Held>, torn: bool) -> String {
    let closed = match torn {
        true => "it closed its output in the middle of a message",
        false => "it closed its output",
    };
    let Some(held) = held.upgrade() else { return closed.into() };
    let _ = tokio::time::timeout(END, held.ended()).await;
    held.last_words().unwrap_or_else(|| closed.into())
}

/// Waits for the end of a program: what it started may hold its pipes open after it.
pub(crate) async fn mourn(held: Arc<Held>, wire: Arc<Wire>) {
    held.ended().await;
    tokio::time::sleep(DRAIN).await;
    wire.close(held.last_words().unwrap_or_else(|| "it ended".into()));
}

impl Ear {
    async fn take(&mut self, frames: &mut Frames, piece: &mut &[u8]) -> Result<(), String> {
        while let Some(body) = frames.step(piece).map_err(|fault| fault.to_string())? {
            let second = self.since + Duration::from_secs(1);
            if Instant::now() >= second {
                (self.messages, self.requests, self.lines) = (0, 0, 0);
                self.since = Instant::now();
            }
            self.messages += 1;
            if self.messages > MESSAGES {
                // It has to wait until its pipe is read again.
                tokio::time::sleep_until(second).await;
            }
            self.hear(&body)?;
        }
        Ok(())
    }

    fn hear(&mut self, body: &[u8]) -> Result<(), String> {
        self.wire.note_life();
        let parts = body.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
        let Ok(glance) = serde_json::from_slice::<Glance<'_>>(body) else {
            return self.pass_over();
        };
        match (glance.method.as_deref(), glance.id) {
            (Some(method), Some(id)) => {
                let params = parsed(glance.params, parts).unwrap_or_default();
                self.ask(method, id, &params)
            }
            (Some(method), None) => {
                self.notice(method, glance.params, parts);
                Ok(())
            }
            (None, Some(id)) => {
                let answer = match glance.error {
                    Some(error) => Err(refused(error, parts)),
                    None => parsed(glance.result, parts).ok_or_else(odd),
                };
                match id.get().parse::<i64>() {
                    Ok(id) if self.wire.answered(id, answer) => Ok(()),
                    Ok(_) | Err(_) => self.pass_over(),
                }
            }
            (None, None) => self.pass_over(),
        }
    }

    /// Counts what is no message, or answers what nobody asked.
    fn pass_over(&mut self) -> Result<(), String> {
        self.noise += 1;
        match self.noise > NOISE {
            true => Err("it sent too much that is no message".into()),
            false => Ok(()),
        }
    }

    fn ask(&mut self, method: &str, id: &RawValue, params: &Value) -> Result<(), String> {
        self.requests += 1;
        if self.requests > REQUESTS {
            return Err(format!("it asked more than {REQUESTS} things in a second"));
        }
        if id.get().len() > ID {
            return self.pass_over();
        }
        let (said, effect) = reply(method, params, &self.wire.terms);
        // What it registers counts before it hears so.
        match effect {
            Effect::None => {}
            Effect::Register(all) => lock(&self.wire.state).offers.register(all),
            Effect::Unregister(ids) => lock(&self.wire.state).offers.unregister(&ids),
            Effect::Stale => self.wire.refreshed(),
            Effect::Journal(text) => self.journal(&text),
        }
        let answer = match said {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => {
                let error = json!({"code": code, "message": message});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        self.wire.send(&answer);
        Ok(())
    }

    fn notice(&mut self, method: &str, params: Option<&RawValue>, parts: usize) {
        match method {
            "textDocument/publishDiagnostics" => {
                if let (Some(desk), Some(params)) = (self.wire.desk.get(), parsed(params, parts)) {
                    desk.published(params);
                }
            }
            "$/progress" => {
                if let Some(params) = parsed(params, parts) {
                    self.wire.progress(&params);
                }
            }
            "window/logMessage" | "window/showMessage" => {
                let text = parsed(params, parts);
                let text = text.as_ref().and_then(|params| params.get("message")?.as_str());
                text.into_iter().for_each(|text| self.journal(text));
            }
            _ => {}
        }
    }

    fn journal(&mut self, text: &str) {
        self.lines += 1;
        if self.lines <= LINES {
            self.wire.journal(text);
        }
    }
}

/// A part of a message, if it has not too many parts itself. What is missing is null.
fn parsed(raw: Option<&RawValue>, parts: usize) -> Option<Value> {
    match raw {
        None => Some(Value::Null),
        Some(_) if parts > PARTS => None,
        Some(raw) => serde_json::from_str(raw.get()).ok(),
    }
}

fn odd() -> Refusal {
    let message = "its answer was not understood, or is too large".to_owned();
    Refusal::Error { code: 0, message, data: Value::Null }
}

fn refused(error: &RawValue, parts: usize) -> Refusal {
    let told = parsed(Some(error), parts).and_then(|value| Told::deserialize(value).ok());
    told.map_or_else(odd, |Told { code, message, data }| Refusal::Error {
        code,
        message: crate::talk::shown(&message),
        data,
    })
}
