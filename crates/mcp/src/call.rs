//! One request to a server: its answer, or how it went wrong. While it is under way, what the server
//! asks is put to the person, and what it says of its progress is shown.

use crate::elicit;
use crate::link::Link;
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequest,
    InputRequests, InputResponses, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use windlass_toolkit::{Caller, Failure, bound};

/// So often a server may ask for more before it answers.
const ROUNDS: usize = 8;
/// How long a word that nobody waits for may take.
const BRIEF: Duration = Duration::from_secs(1);
/// How long an answer may come after the end.
const LATE: Duration = Duration::from_millis(100);
/// How much of what a server says is told.
const TOLD: usize = 2_000;

/// How a request went wrong.
#[derive(Debug)]
pub(crate) enum Broke {
    /// It never reached the server.
    Unsent(String),
    /// The connection was lost after it was sent.
    Lost(String),
    /// No answer came, or no word for too long.
    Slow(Duration),
    /// It was to stop.
    Stopped,
    /// The server refused.
    Refused(String),
    /// The answer was not understood.
    Odd,
}

impl Broke {
    /// In words, for a model.
    pub(crate) fn failure(self, server: &str) -> Failure {
        Failure::new(match self {
            Broke::Unsent(why) => format!("{server} cannot be reached: {why}"),
            Broke::Lost(why) => format!(
                "The connection to {server} was lost after the call was sent ({why}). It may have \
                 run: verify before you repeat it."
            ),
            Broke::Slow(after) => format!(
                "{server} said nothing for {} s, so the call was given up. It may have run: verify \
                 before you repeat it.",
                after.as_secs()
            ),
            Broke::Stopped => format!("The call to {server} was stopped."),
            Broke::Refused(words) => format!("{server} refused: {words}"),
            Broke::Odd => format!("{server} gave an answer that does not fit the protocol."),
        })
    }
}

/// What a request is made under.
pub(crate) struct Terms<'a> {
    /// How long the server may say nothing.
    pub(crate) idle: Duration,
    /// How long it may take in all.
    pub(crate) most: Duration,
    /// Fires when it should stop.
    pub(crate) cancel: CancellationToken,
    /// Who is asked and told, if anybody is there.
    pub(crate) caller: Option<&'a dyn Caller>,
}

impl Terms<'_> {
    /// The terms of something that nobody watches.
    pub(crate) fn quiet(most: Duration) -> Terms<'static> {
        Terms { idle: most, most, cancel: CancellationToken::new(), caller: None }
    }
}

impl Link {
    /// Calls a tool.
    pub(crate) async fn call(
        &self,
        mut params: CallToolRequestParams,
        terms: &Terms<'_>,
    ) -> Result<CallToolResult, Broke> {
        for _ in 0..ROUNDS {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            match self.request(request, terms).await? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(more) => {
                    let asked = more.input_requests.unwrap_or_default();
                    params.input_responses = Some(self.fulfil(asked, terms).await?);
                    params.request_state = more.request_state;
                }
                ServerResult::CreateTaskResult(_) => {
                    let words = "it works on this in the background, which is not waited for here";
                    return Err(Broke::Refused(words.into()));
                }
                _ => return Err(Broke::Odd),
            }
        }
        Err(Broke::Refused(format!("it asked for more {ROUNDS} times and never answered")))
    }

    /// Answers what a server asks before it goes on.
    async fn fulfil(
        &self,
        asked: InputRequests,
        terms: &Terms<'_>,
    ) -> Result<InputResponses, Broke> {
        let mut responses = InputResponses::new();
        for (key, request) in asked.into_iter().take(ROUNDS) {
            let InputRequest::Elicitation(request) = request else {
                let words = "it asks for something that is not offered here";
                return Err(Broke::Refused(words.into()));
            };
            let answer = tokio::select! {
                biased;
                () = terms.cancel.cancelled() => return Err(Broke::Stopped),
                answer = elicit::put(&request.params, terms.caller) => answer,
            };
            let answer = serde_json::to_value(answer).map_err(|_| Broke::Odd)?;
            responses.insert(key, answer);
        }
        Ok(responses)
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn request(
        &self,
        request: ClientRequest,
        terms: &Terms<'_>,
    ) -> Result<ServerResult, Broke> {
        if let Some(why) = self.why_closed() {
            return Err(Broke::Unsent(why));
        }
        let mut desk = self.board.seat();
        let options = PeerRequestOptions::no_options();
        let sending = self.peer().send_cancellable_request(request, options);
        let mut handle = match timeout(terms.idle, sending).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(error)) => return Err(Broke::Unsent(error.to_string())),
            Err(_) => return Err(Broke::Unsent("it does not read what it is sent".into())),
        };
        desk.known_by(handle.progress_token.clone());
        let latest = Instant::now() + terms.most;
        let mut quiet = Instant::now() + terms.idle;
        let broke = loop {
            let until = quiet.min(latest);
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    return self.heard(answer.unwrap_or(Err(ServiceError::TransportClosed)));
                }
                why = self.line.ended() => {
                    // What was said or refused before the end still counts.
                    return match timeout(LATE, &mut handle.rx).await {
                        Ok(Ok(Ok(answer))) => Ok(answer),
                        Ok(Ok(Err(ServiceError::TransportSend(_)))) => Err(Broke::Unsent(why)),
                        Ok(_) | Err(_) => Err(Broke::Lost(why)),
                    };
                }
                () = terms.cancel.cancelled() => break Broke::Stopped,
                Some(ask) = desk.asks.recv() => {
                    tokio::select! {
                        biased;
                        () = terms.cancel.cancelled() => break Broke::Stopped,
                        why = self.line.ended() => return Err(Broke::Lost(why)),
                        answer = elicit::put(&ask.params, terms.caller) => {
                            let _ = ask.reply.send(answer);
                        }
                    }
                    quiet = Instant::now() + terms.idle;
                }
                Some(text) = desk.progress.recv() => {
                    quiet = Instant::now() + terms.idle;
                    if let Some(caller) = terms.caller {
                        caller.progress(text);
                    }
                }
                () = sleep_until(until) => break Broke::Slow(terms.idle.min(terms.most)),
            }
        };
        withdraw(handle, &broke).await;
        Err(broke)
    }

    fn heard(&self, answer: Result<ServerResult, ServiceError>) -> Result<ServerResult, Broke> {
        // Why the connection ended says more than that it did.
        let why = |error: String| self.why_closed().unwrap_or(error);
        answer.map_err(|error| match error {
            ServiceError::McpError(error) => Broke::Refused(told(&error.message)),
            ServiceError::TransportSend(error) => Broke::Unsent(why(error.to_string())),
            ServiceError::UnexpectedResponse => Broke::Odd,
            other => Broke::Lost(why(other.to_string())),
        })
    }
}

/// Tells the server that nobody waits any more.
async fn withdraw(handle: RequestHandle<RoleClient>, broke: &Broke) {
    let why = if matches!(broke, Broke::Stopped) { "cancelled" } else { "timeout" };
    tokio::select! {
        _ = handle.cancel(Some(why.to_owned())) => {}
        () = sleep(BRIEF) => {}
    }
}

/// What a server says, as far as it is told on.
pub(crate) fn told(words: &str) -> String {
    let short: String = words.chars().take(TOLD).collect();
    bound::plain(&short)
}
