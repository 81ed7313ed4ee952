//! Requests that this process answers, because they are about its files or about what it remembers.

use super::{FrontendHost, TaskResult};
use crate::attachments::MAX_ATTACHMENT_BYTES;
use crate::session_export;
use crate::setup::LoadedProject;
use crate::workspace_host::{FAVORITE_MODELS, run_status_line, save_tui_setting, to_fault};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;
use std::sync::Arc;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostResponse, ListedItemKind, ModelChoiceScope, StatusLineInput,
};
use windlass_protocol::{Fault, SessionId, SessionOp};

/// A model and effort that the user chose.
#[derive(Clone, Debug, Default)]
pub(super) struct ChosenModel {
    pub(super) model: Option<String>,
    pub(super) effort: Option<String>,
}

impl FrontendHost {
    /// Chooses the model of the open session and of later ones.
    pub(super) fn set_model(&mut self, id: u64, model: String, persist: ModelChoiceScope) {
        let chosen = ChosenModel { model: Some(model), effort: None };
        self.choose(id, chosen, persist);
    }

    /// Chooses the effort of the model.
    pub(super) fn set_effort(&mut self, id: u64, effort: Option<String>) {
        let chosen = ChosenModel { model: self.session_model.model.clone(), effort };
        self.choose(id, chosen, ModelChoiceScope::Session);
    }

    /// Checks a choice and saves it if asked to; the answer is the status with it.
    fn choose(&mut self, id: u64, chosen: ChosenModel, persist: ModelChoiceScope) {
        let (service, caller) = (Arc::clone(&self.service), self.caller.clone());
        let task = self.background_tasks.spawn(async move {
            let check = async || -> Result<(ChosenModel, HostResponse), Fault> {
                let ChosenModel { model, effort } = chosen;
                let request = FrontendRequest::Status { model, effort: effort.clone() };
                let response = service.request(&caller, request).await?;
                let HostResponse::Status { status } = &response else {
                    let message = "the host did not answer with its status".to_owned();
                    return Err(Fault::Internal { message });
                };
                let chosen = ChosenModel { model: status.model.clone(), effort };
                if let (ModelChoiceScope::Config, Some(model)) = (persist, &chosen.model) {
                    let request = FrontendRequest::SetDefaultModel { model: model.clone() };
                    service.request(&caller, request).await?;
                }
                Ok((chosen, response))
            };
            TaskResult::Chosen(id, check().await)
        });
        self.task_requests.insert(task.id(), id);
    }

    /// Applies a choice to the open session.
    pub(super) fn apply_choice(&mut self, chosen: ChosenModel) {
        if let (Some(watched), Some(model)) = (&self.watched, &chosen.model) {
            let (model, effort) = (model.clone(), chosen.effort.clone());
            let op = SessionOp::SetModel { model, effort };
            self.ops.push(super::OWN_REQUEST, (watched.session, None, op));
        }
        self.session_model = chosen.clone();
        self.chosen_model = chosen;
    }

    /// Passes on a decision about trust.
    pub(super) fn set_trust(&mut self, id: u64, request: FrontendRequest) {
        let (service, caller) = (Arc::clone(&self.service), self.caller.clone());
        let task = self.background_tasks.spawn(async move {
            let answer = service.request(&caller, request).await;
            TaskResult::TrustAnswered(id, answer.map_err(Fault::from))
        });
        self.task_requests.insert(task.id(), id);
    }

    /// Lists the models, that of the open session first.
    pub(super) fn list_models(&mut self, id: u64) {
        let (service, caller) = (Arc::clone(&self.service), self.caller.clone());
        let current = self.session_model.model.clone();
        let favorites = self.local_settings.as_ref().map(|local| local.favorite_models.clone());
        self.spawn_answer(id, async move {
            let request = FrontendRequest::List { list: ListedItemKind::Models };
            let mut response = service.request(&caller, request).await?;
            if let HostResponse::Models { models } = &mut response {
                for (row, favorites) in models.iter_mut().zip(favorites.iter().cycle()) {
                    row.is_favorite = favorites.contains(&row.name);
                }
                models.sort_by_key(|row| Some(&row.name) != current.as_ref());
            }
            Ok(response)
        });
    }

    /// Saves a setting of the screen in the user's config at this machine.
    pub(super) fn set_local_option(&mut self, id: u64, name: &str, value: &serde_json::Value) {
        let Some(local) = &mut self.local_settings else { return };
        let saved = save_tui_setting(&local.config, name, value);
        if saved.is_ok() && name == FAVORITE_MODELS {
            local.favorite_models = serde_json::from_value(value.clone()).unwrap_or_default();
        }
        self.send_answer(id, saved.map(|()| HostResponse::Done));
    }

    /// Runs the user's status line command at this machine.
    pub(super) fn run_local_status_line(&mut self, id: u64, input: StatusLineInput) {
        let local = self.local_settings.as_ref();
        let setting = local.and_then(|local| local.status_line.clone());
        self.spawn_answer(id, async move { run_status_line(setting.as_ref(), &input).await });
    }

    /// Writes a session to a file of this machine.
    pub(super) fn export_session(&mut self, id: u64, session: SessionId, file: String) {
        let (service, caller) = (Arc::clone(&self.service), self.caller.clone());
        self.spawn_answer(id, async move {
            let format = session_export::format_of_file(&file).map_err(|error| to_fault(&error))?;
            let request = FrontendRequest::RenderSession { session, format };
            let HostResponse::Export { name, text } = service.request(&caller, request).await?
            else {
                let message = "the host did not answer with the session".to_owned();
                return Err(Fault::Internal { message });
            };
            let path = session_export::save_export(&file, (&name, session), &text);
            Ok(HostResponse::Path { path: path.map_err(|error| to_fault(&error))? })
        });
    }

    /// Stores a file of this machine that the user names; a path may begin with `~/`.
    pub(super) fn attach_file(&mut self, id: u64, path: &str) {
        let full_path = match path.strip_prefix("~/") {
            Some(relative) => self.folders.home.join(relative),
            None => self.folders.working.join(path),
        };
        let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes =
            LoadedProject::read_file(&full_path.display().to_string(), MAX_ATTACHMENT_BYTES);
        match bytes {
            Ok(bytes) => {
                self.forward(id, FrontendRequest::PutBlob { name, bytes: STANDARD.encode(bytes) });
            }
            Err(error) => self.send_answer(id, Err(to_fault(&error))),
        }
    }
}
