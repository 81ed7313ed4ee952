//! A single request to a server, with its answer or error. While it is active, questions of the
//! server go to the user and its progress is shown.

use crate::client::connection::McpConnection;
use crate::client::elicitation;
use crate::client::sanitize_server_text::clean_server_text;
use crate::client::server_messages::list_roots;
use crate::transport::http::{McpHttpError, classify_error, may_have_been_sent};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequest,
    InputRequests, InputResponses, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use windlass_toolkit::{CallFailure, ToolCaller};

/// Limits how often a server may ask for input before it answers.
const MAX_INPUT_ROUNDS: usize = 8;
/// Limit for sending the cancellation; no call waits for its result.
const CANCEL_NOTICE_TIMEOUT: Duration = Duration::from_secs(1);
/// Accepts an answer this long after the connection was closed.
const LATE_ANSWER_GRACE: Duration = Duration::from_millis(100);
/// The reason why a request failed.
#[derive(Debug)]
pub(crate) enum McpRequestError {
    /// The request never reached the server, so `McpServer::call_tool` may repeat it.
    NotSent(String),
    /// The connection was lost after the request was sent.
    ConnectionLost(String),
    /// The answer, or any sign of progress, did not arrive in time.
    TimedOut(Duration),
    Canceled,
    /// The server returned a JSON-RPC error.
    Rejected(String),
    /// The answer does not fit the protocol.
    InvalidAnswer,
}

impl McpRequestError {
    /// Describes the error for the model.
    pub(crate) fn into_failure(self, server: &str) -> CallFailure {
        CallFailure::new(match self {
            McpRequestError::NotSent(reason) => format!("{server} cannot be reached: {reason}"),
            McpRequestError::ConnectionLost(reason) => format!(
                "The connection to {server} was lost after the call was sent ({reason}). It may \
                 have run: verify before you repeat it."
            ),
            McpRequestError::TimedOut(after) => format!(
                "{server} sent nothing for {} s, so the call was canceled. It may have run: \
                 verify before you repeat it.",
                after.as_secs()
            ),
            McpRequestError::Canceled => format!("The call to {server} was canceled."),
            McpRequestError::Rejected(message) => format!("{server} refused: {message}"),
            McpRequestError::InvalidAnswer => {
                format!("{server} sent a response that violates the protocol.")
            }
        })
    }
}

/// Timeouts, cancellation and `ToolCaller` of a request.
pub(crate) struct McpRequestOptions<'a> {
    /// Limit between two signs of life from the server.
    pub(crate) idle_timeout: Duration,
    /// Limit for the whole request.
    pub(crate) total_timeout: Duration,
    /// Fires when the request should stop.
    pub(crate) cancel: CancellationToken,
    /// Receives questions and progress; `None` if no user is present.
    pub(crate) caller: Option<&'a dyn ToolCaller>,
    /// The name of the server, for its questions.
    pub(crate) server: &'a str,
}

impl McpRequestOptions<'_> {
    /// Returns options for a request without a `ToolCaller`.
    pub(crate) fn unattended(limit: Duration) -> McpRequestOptions<'static> {
        McpRequestOptions {
            idle_timeout: limit,
            total_timeout: limit,
            cancel: CancellationToken::new(),
            caller: None,
            server: "",
        }
    }
}

impl McpConnection {
    /// Calls a tool, and answers the server's input requests until it returns a `CallToolResult`.
    pub(crate) async fn call_tool(
        &self,
        mut params: CallToolRequestParams,
        request_options: &McpRequestOptions<'_>,
    ) -> Result<CallToolResult, McpRequestError> {
        for _ in 0..MAX_INPUT_ROUNDS {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            match self.send_request(request, request_options).await? {
                ServerResult::CallToolResult(result) => return Ok(result),
                ServerResult::InputRequiredResult(input_required) => {
                    let input_requests = input_required.input_requests.unwrap_or_default();
                    params.input_responses =
                        Some(self.answer_input_requests(input_requests, request_options).await?);
                    params.request_state = input_required.request_state;
                }
                ServerResult::CreateTaskResult(_) => {
                    let message = "it runs this as a background task, which is not supported";
                    return Err(McpRequestError::Rejected(message.into()));
                }
                _ => return Err(McpRequestError::InvalidAnswer),
            }
        }
        Err(McpRequestError::Rejected(format!(
            "it asked for more input {MAX_INPUT_ROUNDS} times without a result"
        )))
    }

    /// Answers the `InputRequests` that a server sends instead of a result.
    async fn answer_input_requests(
        &self,
        input_requests: InputRequests,
        request_options: &McpRequestOptions<'_>,
    ) -> Result<InputResponses, McpRequestError> {
        let mut responses = InputResponses::new();
        for (key, request) in input_requests.into_iter().take(MAX_INPUT_ROUNDS) {
            let request = match request {
                InputRequest::Elicitation(request) => request,
                InputRequest::ListRoots(_) => {
                    let roots = serde_json::to_value(list_roots(self.root.as_ref()));
                    responses.insert(key, roots.map_err(|_| McpRequestError::InvalidAnswer)?);
                    continue;
                }
                _ => {
                    let message = "it asks for an unsupported kind of input";
                    return Err(McpRequestError::Rejected(message.into()));
                }
            };
            let answer = tokio::select! {
                biased;
                () = request_options.cancel.cancelled() => return Err(McpRequestError::Canceled),
                answer = elicitation::ask_elicitation(&request.params, request_options.caller, request_options.server) => answer,
            };
            let answer =
                serde_json::to_value(answer).map_err(|_| McpRequestError::InvalidAnswer)?;
            responses.insert(key, answer);
        }
        Ok(responses)
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn send_request(
        &self,
        request: ClientRequest,
        request_options: &McpRequestOptions<'_>,
    ) -> Result<ServerResult, McpRequestError> {
        if let Some(reason) = self.close_reason() {
            return Err(McpRequestError::NotSent(reason));
        }
        let mut active_call = self.active_calls.add_call();
        let options = PeerRequestOptions::no_options();
        let send = self.peer().send_cancellable_request(request, options);
        let mut handle = match timeout(request_options.idle_timeout, send).await {
            Ok(Ok(handle)) => handle,
            Ok(Err(error)) => return Err(McpRequestError::NotSent(send_error_text(&error))),
            Err(_) => {
                return Err(McpRequestError::NotSent("it does not read its input".into()));
            }
        };
        active_call.set_progress_token(handle.progress_token.clone());
        let deadline = Instant::now() + request_options.total_timeout;
        let mut idle_deadline = Instant::now() + request_options.idle_timeout;
        let error = loop {
            let until = idle_deadline.min(deadline);
            tokio::select! {
                biased;
                answer = &mut handle.rx => {
                    return self.check_answer(answer.unwrap_or(Err(ServiceError::TransportClosed)));
                }
                reason = self.status.wait_until_closed() => {
                    // An answer or error from before the close still counts.
                    return match timeout(LATE_ANSWER_GRACE, &mut handle.rx).await {
                        Ok(Ok(Ok(answer))) => Ok(answer),
                        Ok(Ok(Err(error @ ServiceError::TransportSend(_)))) if !may_have_been_sent(&error) => {
                            Err(McpRequestError::NotSent(reason))
                        }
                        Ok(_) | Err(_) => Err(McpRequestError::ConnectionLost(reason)),
                    };
                }
                () = request_options.cancel.cancelled() => break McpRequestError::Canceled,
                Some(pending) = active_call.elicitations.recv() => {
                    tokio::select! {
                        biased;
                        () = request_options.cancel.cancelled() => break McpRequestError::Canceled,
                        reason = self.status.wait_until_closed() => return Err(McpRequestError::ConnectionLost(reason)),
                        answer = elicitation::ask_elicitation(&pending.params, request_options.caller, request_options.server) => {
                            let _ = pending.reply.send(answer);
                        }
                    }
                    idle_deadline = Instant::now() + request_options.idle_timeout;
                }
                Some(text) = active_call.progress.recv() => {
                    idle_deadline = Instant::now() + request_options.idle_timeout;
                    if let Some(caller) = request_options.caller {
                        caller.report_progress(text);
                    }
                }
                () = sleep_until(until) => break McpRequestError::TimedOut(request_options.idle_timeout.min(request_options.total_timeout)),
            }
        };
        cancel_request(handle, &error).await;
        Err(error)
    }

    fn check_answer(
        &self,
        answer: Result<ServerResult, ServiceError>,
    ) -> Result<ServerResult, McpRequestError> {
        // The close reason says more than the transport error.
        let reason = |error: String| self.close_reason().unwrap_or(error);
        answer.map_err(|error| match error {
            ServiceError::McpError(error) => {
                McpRequestError::Rejected(clean_server_text(&error.message))
            }
            error @ ServiceError::TransportSend(_) => {
                let text = reason(send_error_text(&error));
                match may_have_been_sent(&error) {
                    true => McpRequestError::ConnectionLost(text),
                    false => McpRequestError::NotSent(text),
                }
            }
            ServiceError::UnexpectedResponse => McpRequestError::InvalidAnswer,
            _ => McpRequestError::ConnectionLost(reason("it closed the connection".to_owned())),
        })
    }
}

/// Describes why a request could not be sent.
fn send_error_text(error: &ServiceError) -> String {
    match classify_error(error) {
        McpHttpError::NeedsLogin { .. } => "it requires a login".to_owned(),
        McpHttpError::NeedsScope { .. } => "the login does not allow this".to_owned(),
        McpHttpError::Other(reason) => reason,
    }
}

/// Tells the server that the request was canceled.
async fn cancel_request(handle: RequestHandle<RoleClient>, error: &McpRequestError) {
    let reason = if matches!(error, McpRequestError::Canceled) { "cancelled" } else { "timeout" };
    tokio::select! {
        _ = handle.cancel(Some(reason.to_owned())) => {}
        () = sleep(CANCEL_NOTICE_TIMEOUT) => {}
    }
}
