//! The model picker (`/model`): favorites first, then the models of recent sessions.

use super::PanelResult;
use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::UiCommand;
use crate::ui_context::UiContext;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostResponse, ListedItemKind, ModelChoiceScope, ModelListItem,
};

/// `ListController` of the model picker.
#[derive(Debug)]
pub struct ModelPicker {
    list_request: u64,
    models: Vec<ModelListItem>,
}

impl ModelPicker {
    /// Requests the models from the host and opens the picker.
    pub fn open(filter: &str, cx: &mut UiContext<'_>) -> ListPanel<ModelPicker> {
        let list_request = cx.send_request(FrontendRequest::List { list: ListedItemKind::Models });
        let empty_text = "No models available yet; use /login to save an API key";
        let mut list = FilterList::loading("Loading models", empty_text);
        list.set_filter(filter.trim());
        ListPanel::new(list, ModelPicker { list_request, models: Vec::new() })
    }

    /// Fills the list: the favorites, the recent models, then the others, each once.
    fn fill(&self, list: &mut FilterList<()>, current: &str) {
        let group = |model: &ModelListItem| match (model.is_favorite, model.is_recent) {
            (true, _) => (0, "Favorites"),
            (false, true) => (1, "Recent"),
            (false, false) => (2, "All models"),
        };
        let mut models: Vec<&ModelListItem> = self.models.iter().collect();
        models.sort_by_key(|model| group(model).0);
        let has_groups = models.iter().any(|model| group(model).0 < 2);
        let item = |model: &ModelListItem| {
            let item = ListItem::new(&model.name).with_note(&model.note);
            let item = if has_groups { item.in_group(group(model).1) } else { item };
            (ListItem { is_current: model.name == current, ..item }, ())
        };
        list.set_items(models.into_iter().map(item).collect());
    }

    /// Adds the selected model to the favorites or removes it, and saves them.
    fn toggle_favorite(&mut self, list: &mut FilterList<()>, cx: &mut UiContext<'_>) {
        let Some((item, ())) = list.selected() else { return };
        let name = item.name.clone();
        let selected = self.models.iter_mut().find(|model| model.name == name);
        selected.into_iter().for_each(|model| model.is_favorite = !model.is_favorite);
        let favorites = self.models.iter().filter(|model| model.is_favorite);
        let value: Vec<&str> = favorites.map(|model| model.name.as_str()).collect();
        cx.send_request(FrontendRequest::SetConfig {
            name: "tui.favorite_models".to_owned(),
            value: value.into(),
        });
        self.fill(list, &cx.state.model);
        list.select(|item, ()| item.name == name);
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
            (UiCommand::ToggleFavorite, "favorite"),
            (UiCommand::Escape, "close"),
        ]
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<()>,
        cx: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        match action {
            ListKeyOutcome::RowChosen => choose_model(ModelChoiceScope::Session, list),
            ListKeyOutcome::RowCommand(UiCommand::ChooseAndSave) => {
                choose_model(ModelChoiceScope::Config, list)
            }
            ListKeyOutcome::RowCommand(UiCommand::ToggleFavorite) => {
                self.toggle_favorite(list, cx);
                ListControllerDecision::Stay
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
        if id != self.list_request {
            return false;
        }
        match response {
            Ok(HostResponse::Models { models }) => {
                self.models.clone_from(models);
                self.fill(list, &cx.state.model);
                if list.filter().is_empty() {
                    list.select(|item, ()| item.is_current);
                }
            }
            Ok(_) => {}
            Err(fault) => list.set_failed(fault),
        }
        true
    }
}
