//! The model picker (`/model`).

use super::PanelResult;
use super::filter_list::{FilterList, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::UiCommand;
use crate::ui_context::UiContext;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostResponse, ListedItemKind, ModelChoiceScope,
};

/// `ListController` of the model picker.
#[derive(Debug)]
pub struct ModelPicker {
    list_request: u64,
}

impl ModelPicker {
    /// Requests the models from the host and opens the picker.
    pub fn open(filter: &str, cx: &mut UiContext<'_>) -> ListPanel<ModelPicker> {
        let list_request = cx.send_request(FrontendRequest::List { list: ListedItemKind::Models });
        let empty_text = "No models available yet; use /login to save an API key";
        let mut list = FilterList::loading("Loading models", empty_text);
        list.set_filter(filter.trim());
        ListPanel::new(list, ModelPicker { list_request })
    }
}

/// Sets the selected model, for this session or in the config, depending on `persist`.
fn choose_model(persist: ModelChoiceScope, list: &FilterList<()>) -> ListControllerDecision {
    let Some((item, ())) = list.selected() else { return ListControllerDecision::Stay };
    let model = item.name.clone();
    let duration = match persist {
        ModelChoiceScope::Session => "until you quit",
        ModelChoiceScope::Config => "and saved in your config",
    };
    let result = PanelResult::ShowHint(format!("Model set to {model} {duration}"));
    ListControllerDecision::Request(
        FrontendRequest::SetModel { model, persist },
        "Changing the model",
        result,
    )
}

impl ListController for ModelPicker {
    type RowValue = ();

    fn title(&self) -> &'static str {
        "Model"
    }

    fn key_hints(&self, _: &FilterList<()>) -> Vec<(UiCommand, &'static str)> {
        vec![
            (UiCommand::ChooseRow, "use for now"),
            (UiCommand::ChooseAndSave, "save as default"),
            (UiCommand::Escape, "close"),
        ]
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<()>,
        _: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        match action {
            ListKeyOutcome::RowChosen => choose_model(ModelChoiceScope::Session, list),
            ListKeyOutcome::RowCommand(UiCommand::ChooseAndSave) => {
                choose_model(ModelChoiceScope::Config, list)
            }
            _ => ListControllerDecision::Stay,
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        list: &mut FilterList<()>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        (id == self.list_request)
            .then(|| list.fill_from_response(response, &cx.state.model))
            .is_some()
    }
}
