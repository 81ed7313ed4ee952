//! Model requests: assembles a request, and passes each streamed `ModelEvent` to the session.

use super::SessionDriver;
use super::request_hooks::{RequestHooks, StepTools, load_step_tools};
use crate::attachments::AttachmentCache;
use crate::model_handle::ModelHandle;
use crate::session::SessionInput;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use windlass_llm::wire_format::incremental_request_body::IncrementalRequestBody;
use windlass_llm::{ModelEvent, ModelRequest};
use windlass_protocol::{
    Fault, HookPoint, Message, MessagePart, MessageRole, Messages, ModelOptions, StepPurpose,
};

impl SessionDriver {
    /// Starts a task that calls the model; its events arrive as `SessionInput::Model`.
    pub(super) fn call_model(
        &mut self,
        (turn, step): (u32, u32),
        model: &str,
        purpose: StepPurpose,
        (system_prompt, mut messages): (Arc<str>, Messages),
    ) {
        if purpose == StepPurpose::Summary {
            let parts = vec![MessagePart::text(include_str!("../prompt/summary.md"))];
            messages.push(Message { role: MessageRole::User, seq: 0, model: None, parts });
        }
        self.step_tools = StepTools::default();
        let (runtime, settings) = (Arc::clone(&self.runtime), self.settings.for_step_model(model));
        let (inputs, step_tools) = (self.inputs.clone(), Arc::clone(&self.step_tools));
        let (log, session) = (Arc::clone(&self.log), self.claim.session);
        let budget = Arc::clone(&self.lineage.budget);
        let (spend_guard, usage_known) = oneshot::channel();
        self.spend_guard = Some(spend_guard);
        let budget_inputs = self.inputs.clone();
        let answer_schema = self.session.answer_schema();
        let (attachment_cache, incremental_body) = self.request_caches(model, purpose);
        let definition_hooks = self.request_hooks(HookPoint::ToolDefinition);
        let params_hooks = self.request_hooks(HookPoint::Params);
        let message_hooks = self.request_hooks(HookPoint::Messages);
        let send_event = {
            let inputs = inputs.clone();
            async move |event| inputs.send(SessionInput::Model { turn, step, event }).await.is_ok()
        };
        let run_request = async move {
            let Some(ModelHandle { client, model, options }) = settings.model.clone() else {
                send_event(ModelEvent::Failed(settings.missing_model_fault())).await;
                return;
            };
            let mut merged = (*options).clone();
            merged.merge(settings.agent_options.clone());
            if let Some(schema) = &answer_schema {
                merged.answer = Some((**schema).clone());
            }
            let options = Arc::new(merged);
            let options = match prepare_options(options, purpose, params_hooks.as_ref()).await {
                Ok(options) => options,
                Err(fault) => {
                    send_event(ModelEvent::Failed(fault)).await;
                    return;
                }
            };
            let (messages, incremental_body) = match &message_hooks {
                // Changed messages are not a continuation of those of the last request.
                Some(hooks) => match hooks.revise_messages(&messages).await {
                    Ok(messages) => (messages, Arc::default()),
                    Err(fault) => {
                        send_event(ModelEvent::Failed(fault)).await;
                        return;
                    }
                },
                None => (messages, incremental_body),
            };
            // Hooks may need requests of their own, so they run before this one has its permit.
            let tools = match purpose {
                StepPurpose::Answer if model.calls => {
                    load_step_tools(&step_tools, (&runtime, &settings), definition_hooks.as_ref())
                        .await
                        .listed_summaries()
                }
                StepPurpose::Answer | StepPurpose::Summary => Vec::new(),
            };
            let permit = match budget.acquire_request().await {
                Ok(permit) => permit,
                Err(limit) => {
                    let input = SessionInput::BudgetExhausted { turn, step, limit };
                    let _ = budget_inputs.send(input).await;
                    return;
                }
            };
            let file_bytes =
                attachment_cache.lock().await.load_files(&*log, &messages, &model).await;
            let request = ModelRequest {
                model,
                model_name: Arc::clone(&settings.model_name),
                system_prompt,
                messages,
                file_bytes,
                tools,
                options,
                cache_key: Some(session.to_string()),
                incremental_body,
            };
            let (sink, mut events) = mpsc::channel(16);
            let stream = async move { client.run_step(&request, &sink).await };
            let forward = async {
                while let Some(event) = events.recv().await {
                    if !send_event(event).await {
                        return;
                    }
                }
            };
            tokio::join!(stream, forward);
            if permit.is_some() {
                let _ = usage_known.await;
            }
        };
        self.model_task = Some(self.tasks.spawn(async move {
            let mut request = JoinSet::new();
            request.spawn(run_request);
            if let Some(Err(error)) = request.join_next().await {
                let event = ModelEvent::Failed(Fault::Internal { message: error.to_string() });
                let _ = inputs.send(SessionInput::Model { turn, step, event }).await;
            }
        }));
    }
}

type RequestCaches = (Arc<tokio::sync::Mutex<AttachmentCache>>, Arc<IncrementalRequestBody>);

impl SessionDriver {
    /// Returns the caches of the conversation, or empty ones for a summary by another model. A
    /// fallback that takes over starts with empty ones.
    fn request_caches(&mut self, model: &str, purpose: StepPurpose) -> RequestCaches {
        if *self.cached_model != *model {
            if purpose == StepPurpose::Summary {
                return RequestCaches::default();
            }
            self.cached_model = model.into();
            (self.attachment_cache, self.incremental_body) = Default::default();
        }
        (Arc::clone(&self.attachment_cache), Arc::clone(&self.incremental_body))
    }
}

/// Returns the model options after hooks. A summary ignores `answer` and `tool_choice`, which apply
/// to answers only.
async fn prepare_options(
    options: Arc<ModelOptions>,
    purpose: StepPurpose,
    hooks: Option<&RequestHooks>,
) -> Result<Arc<ModelOptions>, Fault> {
    let options = match hooks {
        Some(hooks) => Arc::new(hooks.revise_options(&options).await?),
        None => options,
    };
    Ok(match purpose {
        StepPurpose::Answer => options,
        StepPurpose::Summary => {
            Arc::new(ModelOptions { answer: None, tool_choice: None, ..(*options).clone() })
        }
    })
}
