//! Requests to a model apart from the conversation: one prompt in, one text out, for titles and
//! judgements.
//!
//! The small model answers, or the session's own if there is no small one, the text does not fit
//! it, or it fails. A request has no tools and no provider cache key. Each request counts against
//! the budget of the turn, and its usage is on record (`SideRequestEnded`).

use super::SessionDriver;
use crate::model_handle::{ModelHandle, NamedModel};
use crate::session::{SessionInput, estimate_tokens};
use crate::turn_budget::TurnBudget;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use windlass_llm::{ModelEvent, ModelRequest};
use windlass_protocol::{
    Fault, FinishReason, Message, MessagePart, MessageRole, ModelOptions, ReasoningEffort,
    SideRequestPurpose, TokenUsage,
};
use windlass_toolkit::HookJudge;

/// Output tokens that a model which cannot turn reasoning off gets in addition.
const REASONING_OUTPUT_TOKENS: u64 = 2_000;

/// Maximum bytes of the answer that are read.
const MAX_ANSWER_BYTES: usize = 16_000;

/// A request to a model apart from the conversation.
#[derive(Clone, Debug)]
pub(crate) struct SideRequest {
    pub(crate) purpose: SideRequestPurpose,
    pub(crate) system_prompt: &'static str,
    pub(crate) text: String,
    /// Limit of the answer. A longer one counts as empty.
    pub(crate) max_output_tokens: u64,
    /// Time limit for each model that is asked.
    pub(crate) timeout: Duration,
    /// JSON schema of the answer, for models that support it.
    pub(crate) answer_schema: Option<Value>,
}

/// The models that answer a `SideRequest`, in order, and the session that pays for it.
#[derive(Clone)]
pub(crate) struct SideRequestModels {
    models: Vec<NamedModel>,
    budget: Arc<TurnBudget>,
    inputs: mpsc::Sender<SessionInput>,
}

impl SessionDriver {
    /// Returns the models for a `SideRequest` of this session. A task may own them.
    pub(crate) fn side_request_models(&self) -> SideRequestModels {
        SideRequestModels {
            models: self.settings.side_models(),
            budget: Arc::clone(&self.lineage.budget),
            inputs: self.inputs.clone(),
        }
    }
}

impl SideRequestModels {
    /// Returns the answer to a request; empty if the model did not finish it. The error is that of
    /// the last model.
    pub(crate) async fn ask(&self, request: SideRequest) -> Result<String, Fault> {
        let mut last_fault = Fault::Config { message: "no model is set".to_owned() };
        let tokens = estimate_tokens(&request.text) + estimate_tokens(request.system_prompt);
        for (index, (handle, name)) in self.models.iter().enumerate() {
            let is_last = index + 1 == self.models.len();
            let needed = tokens + request.max_output_tokens;
            if !is_last && handle.model.context.is_some_and(|context| needed > context) {
                continue;
            }
            let permit = self.budget.acquire_request().await;
            let permit = permit.map_err(|message| Fault::Config { message })?;
            let answer = send_request(handle.clone(), Arc::clone(name), &request);
            let answer = tokio::time::timeout(request.timeout, answer).await;
            let (text, usage) = match answer {
                Ok(Ok(answer)) => answer,
                Ok(Err(fault)) => {
                    last_fault = fault;
                    continue;
                }
                Err(_) => {
                    let message = format!("{name} did not answer in time");
                    last_fault = Fault::Network { message };
                    continue;
                }
            };
            let cost = handle.session_model(name).cost(&usage);
            self.budget.spend(&usage, cost);
            drop(permit);
            let (purpose, model) = (request.purpose, name.to_string());
            // A session that has stopped records nothing more.
            let _ = self
                .inputs
                .send(SessionInput::SideRequestEnded { purpose, model, usage, cost })
                .await;
            return Ok(text);
        }
        Err(last_fault)
    }
}

/// Time limit of a judgement for each model that is asked.
const JUDGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Output token limit of a judgement.
const MAX_JUDGEMENT_TOKENS: u64 = 300;

/// Returns the schema of a judgement.
fn judgement_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"ok": {"type": "boolean"}, "reason": {"type": "string"}},
        "required": ["ok", "reason"],
        "additionalProperties": false,
    })
}

#[async_trait]
impl HookJudge for SideRequestModels {
    async fn judge(&self, prompt: &str) -> Result<String, String> {
        let request = SideRequest {
            purpose: SideRequestPurpose::Judge,
            system_prompt: include_str!("../prompt/judge.md"),
            text: prompt.to_owned(),
            max_output_tokens: MAX_JUDGEMENT_TOKENS,
            timeout: JUDGE_TIMEOUT,
            answer_schema: Some(judgement_schema()),
        };
        self.ask(request).await.map_err(|fault| fault.to_string())
    }
}

async fn send_request(
    handle: ModelHandle,
    model_name: Arc<str>,
    request: &SideRequest,
) -> Result<(String, TokenUsage), Fault> {
    let ModelHandle { client, model, options } = handle;
    let always_reasons = model.reasons && !model.efforts.contains(&ReasoningEffort::None);
    let reasoning_tokens = if always_reasons { REASONING_OUTPUT_TOKENS } else { 0 };
    let options = ModelOptions {
        max_output: Some(request.max_output_tokens + reasoning_tokens),
        effort: Some(ReasoningEffort::None),
        tool_choice: None,
        parallel_calls: None,
        answer: request.answer_schema.clone(),
        ..(*options).clone()
    };
    let parts = vec![MessagePart::text(&request.text)];
    let message = Message { role: MessageRole::User, seq: 0, model: None, parts };
    let request = ModelRequest {
        model,
        model_name,
        system_prompt: request.system_prompt.into(),
        messages: [Arc::new(message)].into_iter().collect(),
        file_bytes: Default::default(),
        tools: Vec::new(),
        options: Arc::new(options),
        cache_key: None,
        incremental_body: Arc::default(),
    };
    let (sink, mut events) = mpsc::channel(16);
    let collect = async move {
        let mut answer = String::new();
        while let Some(event) = events.recv().await {
            match event {
                ModelEvent::Text(text) if answer.len() <= MAX_ANSWER_BYTES => {
                    answer.push_str(&text)
                }
                ModelEvent::Ended { finish: FinishReason::Stop, usage } => {
                    return Ok((answer, usage));
                }
                // A truncated answer is of no use, but its usage counts.
                ModelEvent::Ended { usage, .. } => return Ok((String::new(), usage)),
                ModelEvent::Failed(fault) => return Err(fault),
                ModelEvent::Text(_)
                | ModelEvent::Reasoning(_)
                | ModelEvent::ProviderSignature(_)
                | ModelEvent::CallDelta { .. }
                | ModelEvent::Call { .. } => {}
            }
        }
        Err(Fault::Internal { message: "the answer is incomplete".to_owned() })
    };
    let ((), result) = tokio::join!(client.run_step(&request, &sink), collect);
    result
}
