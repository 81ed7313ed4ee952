//! User requests that the driver handles without the model: switching the model or the agent, ending
//! jobs, and the updates after a rewind.

use super::{AgentBase, SessionDriver};
use crate::agent_definitions::{self, SessionOrigin};
use crate::clock_and_ids::new_stamp;
use crate::model_handle::NamedModel;
use crate::session::{SessionConfig, SessionInput, SessionModel};
use crate::settings::ModelResolver;
use std::sync::Arc;
use windlass_protocol::mutex_lock::lock;
use windlass_protocol::{ContextChange, LiveEvent, OpError, SessionOp};
use windlass_toolkit::{Job, JobEvent};

impl SessionDriver {
    /// Replaces the models of the session by those of another config or API key, under the same
    /// names. One that is no longer available stays as it is.
    pub(super) fn on_new_models(&mut self, resolver: &ModelResolver) -> SessionInput {
        let choice = self.session.transcript().model_choice.clone();
        if let Some(base) = &mut self.agent_base {
            base.settings = Arc::new(base.settings.with_resolver(resolver, choice.as_ref()));
        }
        self.settings = Arc::new(self.settings.with_resolver(resolver, choice.as_ref()));
        self.model_input(None)
    }

    /// Switches to the model that the user chose.
    pub(super) fn choose_model(
        &mut self,
        model: String,
        effort: Option<String>,
    ) -> Result<SessionInput, OpError> {
        let handle = (self.settings.model_resolver)(&model, effort.as_deref());
        let handle = handle.map_err(|fault| OpError::Invalid { text: fault.to_string() })?;
        let named = (handle, Arc::from(model.as_str()));
        Ok(self.switch_model(named, (model, effort)))
    }

    /// Finds the model that a prompt names for its turn. The prompt says why there is none.
    pub(super) fn offer_prompt_model(&mut self, op: &SessionOp) -> Option<SessionInput> {
        let SessionOp::Prompt { settings, .. } = op else { return None };
        let name = settings.model.as_deref()?;
        if self.settings.prompt_models.iter().any(|(_, known)| **known == *name) {
            return None;
        }
        let model = (self.settings.model_resolver)(name, None).ok()?;
        Some(self.add_prompt_model((model, name.into())))
    }

    fn add_prompt_model(&mut self, model: NamedModel) -> SessionInput {
        if let Some(base) = &mut self.agent_base {
            base.settings = Arc::new(base.settings.with_prompt_model(model.clone()));
        }
        let (handle, name) = &model;
        let session_model = handle.session_model(name);
        self.settings = Arc::new(self.settings.with_prompt_model(model));
        SessionInput::ModelOffered { model: session_model }
    }

    /// Switches the model, and drops `attachment_cache` and `incremental_body`, which are of no use
    /// to it.
    fn switch_model(
        &mut self,
        (handle, model_name): NamedModel,
        choice: (String, Option<String>),
    ) -> SessionInput {
        if let Some(base) = &mut self.agent_base {
            let settings = base.settings.with_model(handle.clone(), Arc::clone(&model_name));
            base.settings = Arc::new(settings);
        }
        self.settings = Arc::new(self.settings.with_model(handle, model_name));
        self.model_input(Some(choice))
    }

    /// Returns the input that tells the session its model, which has changed.
    fn model_input(&mut self, choice: Option<(String, Option<String>)>) -> SessionInput {
        let SessionConfig { model, context_window: window, price, .. } =
            self.settings.session_config(&self.runtime);
        (self.attachment_cache, self.incremental_body) = Default::default();
        SessionInput::ModelChanged { model, window, price, choice }
    }

    /// Switches to another agent: its tools, rules, model and instructions apply from the next turn
    /// on.
    pub(super) fn switch_agent(&mut self, name: &str) -> Result<SessionInput, OpError> {
        let invalid = |text: String| Err(OpError::Invalid { text });
        let Some(AgentBase { runtime, settings }) = &self.agent_base else {
            return invalid("A subagent cannot switch to another agent.".to_owned());
        };
        if self.session.is_busy() {
            let text = "The agent can be switched when the turn is done.".to_owned();
            return Err(OpError::TurnRunning { text });
        }
        if name == self.settings.agent_name {
            return invalid(format!("The agent is already {name}."));
        }
        let agent = settings
            .find_agent(name)
            .map_err(|fault| OpError::Invalid { text: fault.to_string() })?;
        if !agent.role.is_primary() {
            return invalid(format!(
                "The agent {name} is a subagent: the model starts it. Mention @{name} in a prompt."
            ));
        }
        let excluded = &settings.subagent_excluded_tools;
        let runtime = agent_definitions::restrict(runtime, &agent, SessionOrigin::User, excluded);
        let settings = settings.for_agent(&agent, settings.limits);
        let SessionConfig { model, context_window: window, price, .. } =
            settings.session_config(&runtime);
        let fallback_models = settings.fallback_models.iter();
        let input = SessionInput::AgentChanged {
            agent: agent.name.clone(),
            model: SessionModel { name: model, window, price },
            fallback_models: fallback_models
                .map(|(handle, name)| handle.session_model(name))
                .collect(),
            max_steps: settings.limits.steps,
            system_prompt: Box::new(settings.system_prompt.clone()),
        };
        self.runtime = match self.session.transcript().mode {
            Some(mode) => Arc::new(runtime.in_mode(mode)),
            None => runtime,
        };
        self.settings = Arc::new(settings);
        (self.attachment_cache, self.incremental_body) = Default::default();
        Ok(input)
    }

    /// Restores `todos` and `file_tracker` after a rewind. Tool calls read them in addition to the
    /// log.
    pub(super) fn on_rewind(&mut self) {
        *lock(&self.todos) = self.session.transcript().todos();
        lock(&self.file_tracker).retain_known(self.session.files());
    }

    /// Handles a `JobEvent` of the session; returns an input if the model should know about it.
    pub(super) fn on_job_event(&self, event: JobEvent) -> Option<SessionInput> {
        match event {
            JobEvent::Notice(text) => Some(SessionInput::note(text)),
            JobEvent::Ended { job, notice } => {
                let change = ContextChange::JobEnded { job };
                Some(SessionInput::Notice { text: notice, change })
            }
            JobEvent::Update(job) => {
                self.emit_job(&job);
                None
            }
        }
    }

    fn emit_job(&self, job: &Job) {
        let at = new_stamp().at;
        self.emit_live(at, LiveEvent::JobUpdate { job: job.row(at) });
    }

    /// Ends all jobs of the session, and emits a `JobUpdate` for each to the remaining watchers.
    pub(super) async fn end_jobs(&self) {
        let (workspace, session) = (&self.runtime.workspace, self.claim.session);
        let mut jobs = workspace.background_jobs(session);
        jobs.retain(|job| !job.is_gone());
        workspace.end_jobs(session).await;
        jobs.iter().for_each(|job| self.emit_job(job));
    }

    pub(super) fn running_job_count(&self) -> u32 {
        let jobs = self.runtime.workspace.background_jobs(self.claim.session);
        jobs.iter().filter(|job| !job.is_gone()).count() as u32
    }

    pub(super) fn is_job_running(&self, job: u64) -> bool {
        let running = self.runtime.workspace.background_job(self.claim.session, job);
        running.is_some_and(|running| !running.is_gone())
    }

    /// Ends a background job. The model gets the usual notice of its end.
    pub(super) fn end_job(&mut self, job: u64) {
        let running = self.runtime.workspace.background_job(self.claim.session, job);
        if let Some(running) = running.filter(|running| !running.is_gone()) {
            self.tasks.spawn(async move { running.kill().await });
        }
    }
}
