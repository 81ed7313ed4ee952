//! Hooks that revise a model request: its tool definitions and its options.
//!
//! Each definition is shown to the hooks once per process, and the result is kept, because the
//! tools that a model has been told about do not change. A tool whose definition a hook rejects is
//! not available to the model.

use super::SessionDriver;
use super::hook_messages;
use super::session_hooks::SessionHookRunner;
use crate::session::SessionInput;
use crate::settings::EngineSettings;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::{Mutex, OnceCell, mpsc};
use windlass_protocol::{Fault, HookPoint, HookVerdict, Messages, ModelOptions, PermissionMode};
use windlass_toolkit::registry::untrusted_schema;
use windlass_toolkit::{
    CombinedHookResult, HookPayload, HookRun, ToolDefinition, ToolRuntime, ToolSnapshot,
};

/// Definitions that hooks have revised, by tool: the digest of the original, and the result (`None`
/// if rejected).
pub(super) type SeenDefinitions = Arc<Mutex<BTreeMap<String, (String, Option<ToolDefinition>)>>>;

/// Tools of the current step, loaded on first use by `load_step_tools`.
pub(super) type StepTools = Arc<OnceCell<ToolSnapshot>>;

/// Hooks that may revise a request, and the session they run for.
#[derive(Clone)]
pub(super) struct RequestHooks {
    target: SessionHookRunner,
    mode: PermissionMode,
    inputs: mpsc::Sender<SessionInput>,
    seen_definitions: SeenDefinitions,
}

impl SessionDriver {
    /// Returns the hooks at this `HookPoint`, if any are configured.
    pub(super) fn request_hooks(&self, point: HookPoint) -> Option<RequestHooks> {
        let hooks = || RequestHooks {
            target: self.hook_target(),
            mode: self.runtime.policy.mode(),
            inputs: self.inputs.clone(),
            seen_definitions: Arc::clone(&self.seen_definitions),
        };
        self.has_hook_at(point).then(hooks)
    }
}

impl RequestHooks {
    /// Returns the snapshot with the definitions as revised by the hooks.
    pub(super) async fn revise_tools(&self, snapshot: ToolSnapshot) -> ToolSnapshot {
        let mut seen = self.seen_definitions.lock().await;
        let mut revised = BTreeMap::new();
        for (tool, definition) in snapshot.listed_definitions() {
            let ToolDefinition { description, schema } = definition;
            let digest = untrusted_schema::definition_digest(
                &json!({"description": description, "schema": schema}),
            );
            let known = seen.get(tool).filter(|(known_digest, _)| *known_digest == digest);
            let result = match known {
                Some((_, result)) => result.clone(),
                None => {
                    let result = self.revise_definition(tool, definition).await;
                    seen.insert(tool.to_owned(), (digest, result.clone()));
                    result
                }
            };
            if result.as_ref() != Some(definition) {
                revised.insert(tool.to_owned(), result);
            }
        }
        snapshot.with_definitions(&revised)
    }

    async fn revise_definition(
        &self,
        tool: &str,
        definition: &ToolDefinition,
    ) -> Option<ToolDefinition> {
        let payload =
            HookPayload::ToolDefinition { tool: tool.to_owned(), definition: definition.clone() };
        let (mut hook_runs, result) = self.target.fire(self.mode, payload).await;
        let revised = match result {
            Ok(CombinedHookResult {
                payload: HookPayload::ToolDefinition { definition, .. },
                ..
            }) => Some(definition),
            Ok(_) | Err(_) => None,
        };
        // A schema that a hook changed is untrusted input, regardless of which hook.
        let revised = match revised {
            Some(ToolDefinition { description, schema }) if schema != definition.schema => {
                match untrusted_schema::sanitize_schema(&schema) {
                    Ok(schema) => Some(ToolDefinition { description, schema }),
                    Err(reason) => {
                        if let Some(HookRun { verdict, .. }) = hook_runs.last_mut() {
                            *verdict = HookVerdict::Failed { reason };
                        }
                        None
                    }
                }
            }
            revised => revised,
        };
        self.record_hook_runs(hook_runs).await;
        revised
    }

    /// Returns the options as revised by the hooks. The hooks neither see nor change `answer` and
    /// `extra`: the answer schema and the additional provider parameters.
    pub(super) async fn revise_options(
        &self,
        options: &ModelOptions,
    ) -> Result<ModelOptions, Fault> {
        let ModelOptions { answer, extra, .. } = options.clone();
        let visible = ModelOptions { answer: None, extra: Default::default(), ..options.clone() };
        let mut params = json!(visible);
        if let Value::Object(params) = &mut params {
            params.retain(|key, value| !value.is_null() && key != "extra");
        }
        let (hook_runs, result) =
            self.target.fire(self.mode, HookPayload::ModelParams { params }).await;
        self.record_hook_runs(hook_runs).await;
        let params = match result {
            Ok(CombinedHookResult { payload: HookPayload::ModelParams { params }, .. }) => params,
            Ok(_) => return Ok(options.clone()),
            Err(stop) => return Err(Fault::Config { message: stop.to_string() }),
        };
        let revised = serde_json::from_value::<ModelOptions>(params);
        let revised = revised.map_err(|error| Fault::Config {
            message: format!("a hook returned invalid params: {error}"),
        })?;
        Ok(ModelOptions { answer, extra, ..revised })
    }

    /// Returns the messages as revised by the hooks. They are not recorded.
    pub(super) async fn revise_messages(&self, messages: &Messages) -> Result<Messages, Fault> {
        let payload =
            HookPayload::RequestMessages { messages: hook_messages::to_hook_form(messages) };
        let (hook_runs, result) = self.target.fire(self.mode, payload).await;
        self.record_hook_runs(hook_runs).await;
        match result {
            Ok(CombinedHookResult {
                payload: HookPayload::RequestMessages { messages: revised },
                ..
            }) => hook_messages::apply_revision(messages, &revised).map_err(|reason| {
                Fault::Config { message: format!("a hook returned invalid messages: {reason}") }
            }),
            Ok(_) => Ok(messages.clone()),
            Err(stop) => Err(Fault::Config { message: stop.to_string() }),
        }
    }

    async fn record_hook_runs(&self, hook_runs: Vec<HookRun>) {
        if !hook_runs.is_empty() {
            let _ = self.inputs.send(SessionInput::HooksRan { call: None, hook_runs }).await;
        }
    }
}

/// Returns the tools of a step; the first caller takes the snapshot.
pub(super) async fn load_step_tools<'a>(
    step_tools: &'a StepTools,
    (runtime, settings): (&ToolRuntime, &EngineSettings),
    hooks: Option<&RequestHooks>,
) -> &'a ToolSnapshot {
    let load = async {
        let snapshot = runtime.snapshot(&settings.step_context()).await;
        match hooks {
            Some(hooks) => hooks.revise_tools(snapshot).await,
            None => snapshot,
        }
    };
    step_tools.get_or_init(|| load).await
}
