//! Reads messages from a language server and dispatches them without blocking.
//!
//! Responses go to their caller, requests to `server_requests`, diagnostics to the
//! `ServerEventHandler`; everything else is dropped. A flood of messages is slowed down or closes
//! the connection; nothing is queued. Start reading at [`read_messages`].

use crate::connection::framing::FrameDecoder;
use crate::connection::server_requests::{ServerRequestEffect, answer_request};
use crate::connection::{ConnectionShared, LspRequestError};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::Instant;
use windlass_protocol::mutex_lock::lock;
use windlass_sandbox::ProcessHandle;

/// More requests of a server in one second close the connection.
const MAX_REQUESTS_PER_SECOND: u32 = 200;
/// More messages in one second wait in the pipe.
const MAX_MESSAGES_PER_SECOND: u32 = 5_000;
/// More log lines in one second are dropped.
const MAX_LOG_LINES_PER_SECOND: u32 = 20;
/// More malformed messages in all close the connection.
const MAX_INVALID_MESSAGES: u32 = 100;
/// Limit for the JSON values of one message: each costs far more memory than its bytes.
const MAX_MESSAGE_PARTS: usize = 400_000;
/// Time to wait for a program that closed its output to exit, to learn the reason.
const EXIT_TIMEOUT: Duration = Duration::from_millis(500);
/// Time after the exit in which the last output may still arrive.
const DRAIN_DELAY: Duration = Duration::from_millis(100);
/// Limit for the id of a server's request.
const MAX_ID_BYTES: usize = 256;

/// A JSON-RPC message whose payloads are not parsed yet.
#[derive(Deserialize)]
struct RawLspMessage<'a> {
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

#[derive(Deserialize)]
struct JsonRpcError {
    #[serde(default)]
    code: i64,
    #[serde(default)]
    message: String,
    #[serde(default)]
    data: Value,
}

/// Message counters of the current second, and the number of invalid messages in all.
struct MessageDispatcher {
    shared: Arc<ConnectionShared>,
    second_start: Instant,
    messages: u32,
    requests: u32,
    lines: u32,
    invalid_messages: u32,
}

/// Reads messages until the output ends or fails, then closes the connection with the reason.
pub(crate) async fn read_messages<R>(
    mut reader: R,
    shared: Arc<ConnectionShared>,
    process: Weak<ProcessHandle>,
) where
    R: AsyncRead + Send + Unpin,
{
    let mut message_reader = MessageDispatcher {
        shared: Arc::clone(&shared),
        second_start: Instant::now(),
        messages: 0,
        requests: 0,
        lines: 0,
        invalid_messages: 0,
    };
    let mut frames = FrameDecoder::default();
    let mut buffer = vec![0; 64 << 10];
    let reason = loop {
        let count = match reader.read(&mut buffer).await {
            Ok(0) => break end_reason(&process, frames.is_incomplete()).await,
            Ok(count) => count,
            Err(error) => break format!("could not read its output: {error}"),
        };
        let mut input = buffer.get(..count).unwrap_or_default();
        if let Err(reason) = message_reader.on_bytes(&mut frames, &mut input).await {
            break reason;
        }
    };
    shared.close(reason);
}

/// Returns the reason for an end of output: the exit of the process, if it is known in time.
async fn end_reason(process: &Weak<ProcessHandle>, is_incomplete: bool) -> String {
    let reason = match is_incomplete {
        true => "it closed its output in the middle of a message",
        false => "it closed its output",
    };
    let Some(process) = process.upgrade() else { return reason.into() };
    let _ = tokio::time::timeout(EXIT_TIMEOUT, process.wait_for_exit()).await;
    process.exit_summary().unwrap_or_else(|| reason.into())
}

/// Closes the connection when the process exits. Its children may keep its pipes open.
pub(crate) async fn close_on_exit(process: Arc<ProcessHandle>, shared: Arc<ConnectionShared>) {
    process.wait_for_exit().await;
    tokio::time::sleep(DRAIN_DELAY).await;
    shared.close(process.exit_summary().unwrap_or_else(|| "it exited".into()));
}

impl MessageDispatcher {
    async fn on_bytes(
        &mut self,
        frames: &mut FrameDecoder,
        input: &mut &[u8],
    ) -> Result<(), String> {
        while let Some(body) = frames.decode(input).map_err(|error| error.to_string())? {
            let second_end = self.second_start + Duration::from_secs(1);
            if Instant::now() >= second_end {
                self.messages = 0;
                self.requests = 0;
                self.lines = 0;
                self.second_start = Instant::now();
            }
            self.messages += 1;
            if self.messages > MAX_MESSAGES_PER_SECOND {
                // The server has to wait until its pipe is read again.
                tokio::time::sleep_until(second_end).await;
            }
            self.on_message(&body)?;
        }
        Ok(())
    }

    fn on_message(&mut self, body: &[u8]) -> Result<(), String> {
        self.shared.mark_alive();
        let parts = body.iter().filter(|byte| matches!(byte, b',' | b':' | b'[' | b'{')).count();
        let Ok(message) = serde_json::from_slice::<RawLspMessage<'_>>(body) else {
            return self.count_invalid();
        };
        match (message.method.as_deref(), message.id) {
            (Some(method), Some(id)) => {
                let params = parse_part(message.params, parts).unwrap_or_default();
                self.on_request(method, id, &params)
            }
            (Some(method), None) => {
                self.on_notification(method, message.params, parts);
                Ok(())
            }
            (None, Some(id)) => {
                let answer = match message.error {
                    Some(error) => Err(parse_error(error, parts)),
                    None => parse_part(message.result, parts).ok_or_else(invalid_answer),
                };
                match id.get().parse::<i64>() {
                    Ok(id) if self.shared.deliver_answer(id, answer) => Ok(()),
                    Ok(_) | Err(_) => self.count_invalid(),
                }
            }
            (None, None) => self.count_invalid(),
        }
    }

    /// Counts a message that is malformed or answers an unknown request.
    fn count_invalid(&mut self) -> Result<(), String> {
        self.invalid_messages += 1;
        match self.invalid_messages > MAX_INVALID_MESSAGES {
            true => Err("it sent too much invalid output".into()),
            false => Ok(()),
        }
    }

    fn on_request(&mut self, method: &str, id: &RawValue, params: &Value) -> Result<(), String> {
        self.requests += 1;
        if self.requests > MAX_REQUESTS_PER_SECOND {
            return Err(format!(
                "it sent more than {MAX_REQUESTS_PER_SECOND} requests in a second"
            ));
        }
        if id.get().len() > MAX_ID_BYTES {
            return self.count_invalid();
        }
        let (result, effect) = answer_request(method, params, &self.shared.workspace_info);
        // Apply the effect before answering, so that a registration is active when the server
        // learns of it.
        match effect {
            ServerRequestEffect::None => {}
            ServerRequestEffect::Register(registrations) => {
                lock(&self.shared.requests).registrations.register(registrations)
            }
            ServerRequestEffect::Unregister(ids) => {
                lock(&self.shared.requests).registrations.unregister(&ids)
            }
            ServerRequestEffect::RefreshDiagnostics => self.shared.on_refresh(),
            ServerRequestEffect::Log(text) => self.log_line(&text),
        }
        let answer = match result {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, message)) => {
                let error = json!({"code": code, "message": message});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        };
        self.shared.send(&answer);
        Ok(())
    }

    fn on_notification(&mut self, method: &str, params: Option<&RawValue>, parts: usize) {
        match method {
            "textDocument/publishDiagnostics" => {
                if let (Some(handler), Some(params)) =
                    (self.shared.event_handler.get(), parse_part(params, parts))
                {
                    handler.on_publish_diagnostics(params);
                }
            }
            "$/progress" => {
                if let Some(params) = parse_part(params, parts) {
                    self.shared.on_progress(&params);
                }
            }
            "window/logMessage" | "window/showMessage" => {
                let text = parse_part(params, parts);
                let text = text.as_ref().and_then(|params| params.get("message")?.as_str());
                text.into_iter().for_each(|text| self.log_line(text));
            }
            _ => {}
        }
    }

    fn log_line(&mut self, text: &str) {
        self.lines += 1;
        if self.lines <= MAX_LOG_LINES_PER_SECOND {
            self.shared.log_line(text);
        }
    }
}

/// Parses a part of a message; `None` if the message has more than `MAX_MESSAGE_PARTS` values. A
/// missing part is null.
fn parse_part(raw: Option<&RawValue>, parts: usize) -> Option<Value> {
    match raw {
        None => Some(Value::Null),
        Some(_) if parts > MAX_MESSAGE_PARTS => None,
        Some(raw) => serde_json::from_str(raw.get()).ok(),
    }
}

fn invalid_answer() -> LspRequestError {
    let message = "its answer is invalid or too large".to_owned();
    LspRequestError::ServerError { code: 0, message, data: Value::Null }
}

fn parse_error(error: &RawValue, parts: usize) -> LspRequestError {
    let parsed =
        parse_part(Some(error), parts).and_then(|value| JsonRpcError::deserialize(value).ok());
    parsed.map_or_else(invalid_answer, |JsonRpcError { code, message, data }| {
        LspRequestError::ServerError {
            code,
            message: crate::connection::to_shown_line(&message),
            data,
        }
    })
}
