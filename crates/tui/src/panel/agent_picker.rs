//! The agent picker (`/agent`), which switches the agent of this session.

use super::PanelResult;
use super::filter_list::{FilterList, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::UiCommand;
use crate::ui_context::UiContext;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse, ListedItemKind};
use windlass_protocol::{Fault, SessionOp};

/// The reason why the agent stays while the model works.
pub(crate) const BUSY_HINT: &str = "The agent can be switched when the model is done";

/// `ListController` of the agent picker.
#[derive(Debug)]
pub struct AgentPicker {
    list_request: u64,
}

impl AgentPicker {
    /// Requests the agents from the host and opens the picker.
    pub fn open(filter: &str, cx: &mut UiContext<'_>) -> ListPanel<AgentPicker> {
        let list_request = cx.send_request(FrontendRequest::List { list: ListedItemKind::Agents });
        let mut list = FilterList::loading("Loading agents", "No agents found");
        list.set_filter(filter.trim());
        ListPanel::new(list, AgentPicker { list_request })
    }
}

impl ListController for AgentPicker {
    type RowValue = ();

    fn title(&self) -> &'static str {
        "Agent"
    }

    fn key_hints(&self, _: &FilterList<()>) -> Vec<(UiCommand, &'static str)> {
        vec![(UiCommand::ChooseRow, "switch to it"), (UiCommand::Escape, "close")]
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<()>,
        cx: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        match (action, list.selected()) {
            (ListKeyOutcome::RowChosen, Some(_)) if cx.state.is_busy() => {
                ListControllerDecision::Close(PanelResult::ShowHint(BUSY_HINT.to_owned()))
            }
            (ListKeyOutcome::RowChosen, Some((item, ()))) if item.is_current => {
                ListControllerDecision::Close(PanelResult::Nothing)
            }
            (ListKeyOutcome::RowChosen, Some((item, ()))) => {
                cx.send_op(SessionOp::SetAgent { agent: item.name.clone() });
                ListControllerDecision::Close(PanelResult::AgentChosen(item.name.clone()))
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
            .then(|| list.fill_from_response(response, &cx.state.agent))
            .is_some()
    }
}
