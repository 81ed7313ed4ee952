//! A model for load tests: an HTTP server that answers each request after a while with a call of
//! `write`, and notes when requests come.
#![allow(clippy::disallowed_types, reason = "this module accepts the requests of nodes")]

use anyhow::Context;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::convert::Infallible;
use std::future::IntoFuture;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::time::Instant;
use windlass_protocol::mutex_lock::lock;

/// The beginning of the prompts of a load test, before the number of the session.
pub(super) const PROMPT_PREFIX: &str = "load-session-";
/// Maximum size of a request.
const MAX_REQUEST_BYTES: usize = 16 << 20;
/// Parts of an answer that come one after the other.
const CHUNKS: u32 = 10;

/// The model, and what it has measured.
pub(super) struct LoadModel {
    /// Requests of each turn.
    pub(super) steps: u32,
    /// Time of an answer.
    pub(super) answer_time: Duration,
    sessions: Mutex<HashMap<u32, SessionTimes>>,
}

/// The times of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionTimes {
    /// The end of the last answer.
    answered_at: Option<Instant>,
    /// When the first request came.
    pub(super) first_request: Option<Instant>,
    /// Times between an answer and the next request.
    pub(super) delays: Vec<Duration>,
    /// Requests that came again for a step that was answered.
    pub(super) repeated: u32,
    steps: u32,
}

impl LoadModel {
    pub(super) fn new(steps: u32, answer_time: Duration) -> Arc<LoadModel> {
        Arc::new(LoadModel { steps, answer_time, sessions: Mutex::default() })
    }

    /// Returns the server of the model, and its address.
    pub(super) async fn listen(
        self: &Arc<LoadModel>,
        address: &str,
    ) -> anyhow::Result<(SocketAddr, impl Future<Output = std::io::Result<()>> + use<>)> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.with_context(|| format!("cannot listen on {address}"))?;
        let address = listener.local_addr()?;
        let router = Router::new()
            .fallback(answer_request)
            .layer(DefaultBodyLimit::max(MAX_REQUEST_BYTES))
            .with_state(Arc::clone(self));
        Ok((address, axum::serve(listener, router).into_future()))
    }

    /// Returns what was measured for a session.
    pub(super) fn times(&self, session: u32) -> SessionTimes {
        lock(&self.sessions).get(&session).cloned().unwrap_or_default()
    }

    fn note_request(&self, session: u32, step: u32) {
        let now = Instant::now();
        let mut sessions = lock(&self.sessions);
        let times = sessions.entry(session).or_default();
        times.first_request.get_or_insert(now);
        times.delays.extend(times.answered_at.take().map(|answered_at| now - answered_at));
        times.repeated += u32::from(step < times.steps);
        times.steps = times.steps.max(step);
    }

    fn note_answer(&self, session: u32) {
        if let Some(times) = lock(&self.sessions).get_mut(&session) {
            times.answered_at = Some(Instant::now());
        }
    }
}

async fn answer_request(State(model): State<Arc<LoadModel>>, body: Bytes) -> Response {
    let Some((session, step)) = serde_json::from_slice(&body).ok().as_ref().and_then(find_step)
    else {
        return axum::http::StatusCode::BAD_REQUEST.into_response();
    };
    drop(body);
    model.note_request(session, step);
    let pause = model.answer_time / CHUNKS;
    let parts = stream::unfold(0, move |number| {
        let model = Arc::clone(&model);
        async move {
            if number > CHUNKS {
                return None;
            }
            let text = if number < CHUNKS {
                tokio::time::sleep(pause).await;
                chunk(&json!({"content": "Some words of the answer. "}), None)
            } else {
                model.note_answer(session);
                last_chunks(session, step, step < model.steps)
            };
            Some((Ok::<_, Infallible>(text), number + 1))
        }
    });
    let headers = [("content-type", "text/event-stream")];
    (headers, Body::from_stream(parts)).into_response()
}

/// Returns the session and the number of the step of a request.
fn find_step(request: &Value) -> Option<(u32, u32)> {
    let messages = request.get("messages")?.as_array()?;
    let is_of = |message: &&Value, role: &str| message.get("role").is_some_and(|own| own == role);
    let number = |message: &Value| -> Option<u32> {
        let text = message.get("content")?.to_string();
        let (_, rest) = text.split_once(PROMPT_PREFIX)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let session = messages.iter().filter(|one| is_of(one, "user")).find_map(number)?;
    let answers = messages.iter().filter(|one| is_of(one, "assistant")).count();
    Some((session, u32::try_from(answers).ok()? + 1))
}

/// Returns the end of an answer: a call of `write`, or nothing more to do.
fn last_chunks(session: u32, step: u32, has_call: bool) -> String {
    let usage = json!({"prompt_tokens": 1_000 * step, "completion_tokens": 100});
    let end = match has_call {
        true => {
            let path = format!("load/{session}/{step}.txt");
            let content = format!("Step {step} of session {session}.\n").repeat(20);
            let arguments = json!({"path": path, "content": content}).to_string();
            let call = json!([{"index": 0, "id": format!("call-{session}-{step}"),
                "type": "function", "function": {"name": "write", "arguments": arguments}}]);
            let call = chunk(&json!({"tool_calls": call}), None);
            call + &chunk(&json!({}), Some("tool_calls"))
        }
        false => chunk(&json!({}), Some("stop")),
    };
    let usage = json!({"choices": [], "usage": usage});
    format!("{end}data: {usage}\n\ndata: [DONE]\n\n")
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    format!("data: {chunk}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_follows_from_the_answers_in_the_conversation() {
        let request = json!({"messages": [
            {"role": "system", "content": "load-session-9"},
            {"role": "user", "content": [{"type": "text", "text": "load-session-12, go"}]},
            {"role": "assistant", "content": "a"}, {"role": "tool", "content": "b"},
        ]});
        assert_eq!(find_step(&request), Some((12, 2)));
        assert_eq!(find_step(&json!({"messages": [{"role": "user", "content": "x"}]})), None);
    }
}
