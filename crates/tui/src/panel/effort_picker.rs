//! The picker of the reasoning effort or variant of the model (`/effort`).

use super::PanelResult;
use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::UiCommand;
use crate::ui_context::UiContext;
use windlass_protocol::frontend_messages::FrontendRequest;

/// The row for the setting of the config.
const DEFAULT_ROW: &str = "default";

/// `ListController` of the effort picker. The value of a row is the effort to set.
#[derive(Debug)]
pub struct EffortPicker;

impl EffortPicker {
    /// Opens the picker with the variants and efforts of the current model.
    pub fn open(filter: &str, cx: &UiContext<'_>) -> ListPanel<EffortPicker> {
        let status = &cx.state.host_status;
        let mut items = Vec::new();
        if !status.efforts.is_empty() {
            let item = ListItem::new(DEFAULT_ROW).with_note("the setting of your config");
            items.push((ListItem { is_current: status.effort.is_none(), ..item }, None));
        }
        items.extend(status.efforts.iter().map(|effort| {
            let is_current = status.effort.as_ref() == Some(effort);
            (ListItem { is_current, ..ListItem::new(effort) }, Some(effort.clone()))
        }));
        let empty_text = "This model has neither reasoning efforts nor variants";
        let mut list = FilterList::with_items(items, empty_text);
        list.select(|item, _| item.is_current);
        if !filter.trim().is_empty() {
            list.set_filter(filter.trim());
        }
        ListPanel::new(list, EffortPicker)
    }
}

impl ListController for EffortPicker {
    type RowValue = Option<String>;

    fn title(&self) -> &'static str {
        "Reasoning effort"
    }

    fn key_hints(&self, _: &FilterList<Option<String>>) -> Vec<(UiCommand, &'static str)> {
        vec![(UiCommand::ChooseRow, "use until you quit"), (UiCommand::Escape, "close")]
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<Option<String>>,
        _: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        match (action, list.selected()) {
            (ListKeyOutcome::RowChosen, Some((item, effort))) => ListControllerDecision::Request(
                FrontendRequest::SetEffort { effort: effort.clone() },
                "Changing the effort",
                PanelResult::ShowHint(format!("Effort: {}", item.name)),
            ),
            _ => ListControllerDecision::Stay,
        }
    }
}
