//! One tool call: its exchange with the program, user questions, timeout and cancellation.

use super::{ProcessSlot, ToolCallRequest, ToolProcess, stderr_suffix};
use crate::json_lines::{JsonLinesPeer, PeerError, RequestExchange};
use crate::program_messages::{ProgramMessage, ToolReply};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use windlass_protocol::{SessionId, UserQuestion};
use windlass_toolkit::{CallContext, CallFailure, QuestionEffect, UserPresence};

/// Timeout of a call that sets none; `MAX_CALL_TIMEOUT` is the upper bound.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(120);
const MAX_CALL_TIMEOUT: Duration = Duration::from_secs(600);
/// Time for a call to stop after it is canceled; after that, its process is ended.
const CANCEL_TIMEOUT: Duration = Duration::from_millis(1_200);
/// Bounds the progress messages of a call; `MAX_QUESTIONS` bounds its user questions.
const MAX_PROGRESS_REPORTS: usize = 1_000;
const MAX_QUESTIONS: usize = 20;
/// Bounds how often a program reads the session during a call or a hook.
const MAX_SESSION_READS: usize = 20;

impl ToolProcess {
    pub(super) async fn run_call(
        &self,
        slot: &ProcessSlot,
        peer: &JsonLinesPeer,
        request: ToolCallRequest<'_>,
        cx: &CallContext<'_>,
    ) -> Result<ToolReply, CallFailure> {
        let time_limit = request
            .timeout
            .or(self.limits.timeout)
            .unwrap_or(DEFAULT_CALL_TIMEOUT)
            .min(MAX_CALL_TIMEOUT);
        let mut deadline = Instant::now() + time_limit;
        let sent = timeout_at(deadline, peer.request(self.call_message(&request, cx))).await;
        let mut exchange = match sent {
            Ok(Ok(exchange)) => exchange,
            Ok(Err(error)) => return Err(self.fail_call(slot, peer, error).await),
            Err(_) => {
                self.end_process(slot, peer, "it does not read its input").await;
                let text = format!(
                    "{} did not read its input for {} s",
                    request.tool,
                    time_limit.as_secs()
                );
                return Err(CallFailure::new(text));
            }
        };
        let (mut reports, mut questions, mut reads) = (0, 0, 0);
        loop {
            let line = tokio::select! {
                biased;
                () = cx.cancel.cancelled() => {
                    self.cancel_call(slot, peer, exchange).await;
                    return Err(CallFailure::new(format!("{} was canceled", request.tool)));
                }
                line = timeout_at(deadline, exchange.next_line()) => line,
            };
            let line = match line {
                // Check the clock here too: a program that writes without pause never lets the
                // timeout fire.
                Ok(Ok(line)) if Instant::now() < deadline => line,
                Ok(Err(error)) => return Err(self.fail_call(slot, peer, error).await),
                Ok(Ok(_)) | Err(_) => {
                    self.cancel_call(slot, peer, exchange).await;
                    return Err(CallFailure::new(timeout_message(request.tool, time_limit, peer)));
                }
            };
            match ProgramMessage::parse(&line) {
                Ok(ProgramMessage::Progress(text)) if reports < MAX_PROGRESS_REPORTS => {
                    reports += 1;
                    cx.caller.report_progress(text);
                }
                Ok(ProgramMessage::Progress(_)) => {}
                Ok(ProgramMessage::Ask(_) | ProgramMessage::AskPermission { .. })
                    if questions == MAX_QUESTIONS =>
                {
                    self.cancel_call(slot, peer, exchange).await;
                    let text =
                        format!("{} asked more than {MAX_QUESTIONS} questions", request.tool);
                    return Err(CallFailure::new(text));
                }
                Ok(message @ (ProgramMessage::Ask(_) | ProgramMessage::AskPermission { .. })) => {
                    questions += 1;
                    let asked_at = Instant::now();
                    let answer = answer_question(message, request.tool, peer, cx).await;
                    deadline += asked_at.elapsed();
                    if let Err(error) = exchange.send_more(answer.to_message()).await {
                        return Err(self.fail_call(slot, peer, error).await);
                    }
                }
                Ok(ProgramMessage::ReadSession) => {
                    reads += 1;
                    let answer = self.session_answer(cx.session, reads).await;
                    if let Err(error) = exchange.send_more(answer).await {
                        return Err(self.fail_call(slot, peer, error).await);
                    }
                }
                Ok(ProgramMessage::Done(reply)) => {
                    exchange.finish();
                    return Ok(*reply);
                }
                Ok(ProgramMessage::Failed(text)) => {
                    exchange.finish();
                    return Err(CallFailure::new(format!("{} failed: {text}", request.tool)));
                }
                Err(error) => {
                    exchange.finish();
                    return Err(CallFailure::new(format!("{} {error}", request.tool)));
                }
            }
        }
    }

    /// Returns the answer to a program that reads the session for the `reads`-th time.
    pub(super) async fn session_answer(&self, session: SessionId, reads: usize) -> Value {
        let facts = match &self.limits.sessions {
            Some(sessions) if reads <= MAX_SESSION_READS => sessions.read_session(session).await,
            Some(_) => Err(format!("the session was read more than {MAX_SESSION_READS} times")),
            None => Err("the session cannot be read".to_owned()),
        };
        match facts {
            Ok(facts) => json!({"facts": facts}),
            Err(error) => json!({"error": error}),
        }
    }

    fn call_message(&self, request: &ToolCallRequest<'_>, cx: &CallContext<'_>) -> Value {
        json!({
            "method": "call",
            "tool": request.tool,
            "arguments": request.arguments,
            "context": {
                "session": cx.session,
                "call": cx.call,
                "message": cx.caller.message_id(),
                "folder": self.limits.folder.display().to_string(),
                "mode": cx.world.mode(),
                "agent": (!cx.step.agent.is_empty()).then_some(&cx.step.agent),
                "model": cx.step.model,
            },
        })
    }

    /// Sends `cancel` for a call; ends the process if the call does not stop.
    async fn cancel_call(
        &self,
        slot: &ProcessSlot,
        peer: &JsonLinesPeer,
        mut exchange: RequestExchange<'_>,
    ) {
        let stopped = async {
            exchange.send_more(json!({"method": "cancel"})).await?;
            loop {
                let line = exchange.next_line().await?;
                if !matches!(
                    ProgramMessage::parse(&line),
                    Ok(ProgramMessage::Progress(_)
                        | ProgramMessage::Ask(_)
                        | ProgramMessage::AskPermission { .. }
                        | ProgramMessage::ReadSession)
                ) {
                    return Ok::<(), PeerError>(());
                }
            }
        };
        let stopped = timeout(CANCEL_TIMEOUT, stopped).await;
        exchange.finish();
        if !matches!(stopped, Ok(Ok(()))) {
            self.end_process(slot, peer, "it did not stop when asked to").await;
        }
    }

    /// Ends the process and returns the failure for a call whose connection broke.
    async fn fail_call(
        &self,
        slot: &ProcessSlot,
        peer: &JsonLinesPeer,
        PeerError(error): PeerError,
    ) -> CallFailure {
        self.end_process(slot, peer, &error).await;
        CallFailure::new(format!("{error}. The call may have had effects before that."))
    }
}

/// The answer to a program's question.
#[derive(Default)]
struct ProgramAnswer {
    /// The chosen options, or the words of the user; empty if there is no answer.
    words: Vec<String>,
    /// The reason why a permission was not given without asking the user.
    reason: Option<&'static str>,
}

impl ProgramAnswer {
    fn yes() -> ProgramAnswer {
        ProgramAnswer { words: vec!["Yes".to_owned()], reason: None }
    }

    fn to_message(&self) -> Value {
        match self.reason {
            Some(reason) => json!({"answer": self.words, "reason": reason}),
            None => json!({"answer": self.words}),
        }
    }
}

/// Returns the answer to a program's question: of the permission rules, if they decide, or else of
/// the user.
async fn answer_question(
    message: ProgramMessage,
    tool: &str,
    peer: &JsonLinesPeer,
    cx: &CallContext<'_>,
) -> ProgramAnswer {
    let question = match message {
        ProgramMessage::Ask(question) => question,
        ProgramMessage::AskPermission { key, subjects, question, remembered } => {
            match cx.world.answer_by_rules(&key, &subjects) {
                Some(true) => return ProgramAnswer::yes(),
                Some(false) => {
                    let words = vec!["No".to_owned()];
                    return ProgramAnswer { words, reason: Some("a rule denies it") };
                }
                None if remembered => return ProgramAnswer::yes(),
                None => question,
            }
        }
        ProgramMessage::Progress(_)
        | ProgramMessage::ReadSession
        | ProgramMessage::Done(_)
        | ProgramMessage::Failed(_) => return ProgramAnswer::default(),
    };
    let question = UserQuestion { asker: Some(format!("tool {tool}")), ..question };
    let words = ask_user(question, peer, cx).await;
    let is_absent = words.is_empty() && cx.step.user == UserPresence::Absent;
    ProgramAnswer { words, reason: is_absent.then_some("no user is there to approve it") }
}

/// Asks the user a program's question and returns the answer; empty if there is none.
async fn ask_user(
    question: UserQuestion,
    peer: &JsonLinesPeer,
    cx: &CallContext<'_>,
) -> Vec<String> {
    let replies = tokio::select! {
        biased;
        replies = cx.caller.ask_user(vec![question], QuestionEffect::None) => replies.unwrap_or_default(),
        _ = peer.process().wait_for_exit() => Vec::new(),
        () = cx.cancel.cancelled() => Vec::new(),
    };
    replies.into_iter().next().unwrap_or_default()
}

fn timeout_message(tool: &str, time_limit: Duration, peer: &JsonLinesPeer) -> String {
    let limit = match time_limit.subsec_millis() {
        0 => format!("{} s", time_limit.as_secs()),
        _ => format!("{} ms", time_limit.as_millis()),
    };
    format!(
        "{tool} did not answer within {limit}{}. Try a smaller request or another approach.",
        stderr_suffix(peer)
    )
}
