//! The generic list panel: navigation, waiting and closing are shared; a `ListController` decides
//! the effect of a choice.

use super::filter_list::{FilterList, ListKeyOutcome, ListLoadState};
use super::{Panel, PanelControlFlow, PanelResult, shared_rows};
use crate::keys::UiCommand;
use crate::session_state::SessionState;
use crate::ui_context::{Appearance, UiContext};
use crossterm::event::{KeyCode, KeyEvent};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};

/// The effect of a `ListKeyOutcome`.
pub enum ListControllerDecision {
    /// Keeps the list open.
    Stay,
    /// Closes the list with a `PanelResult`.
    Close(PanelResult),
    /// Sends a request and shows the text while it is pending; on success, closes the list with the
    /// result.
    Request(FrontendRequest, &'static str, PanelResult),
}

/// The behavior of one list: its title, its keys and the effect of its choices.
pub trait ListController: std::fmt::Debug {
    /// The value attached to each row.
    type RowValue: std::fmt::Debug;

    /// Returns the title shown in the top border.
    fn title(&self) -> &'static str;

    /// Returns the key hints shown in the footer, as `(command, description)`.
    fn key_hints(&self, list: &FilterList<Self::RowValue>) -> Vec<(UiCommand, &'static str)>;

    /// Handles a `ListKeyOutcome` of the user.
    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<Self::RowValue>,
        cx: &mut UiContext<'_>,
    ) -> ListControllerDecision;

    /// Handles a response; returns true if `id` belongs to a request of this controller.
    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        list: &mut FilterList<Self::RowValue>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let _ = (id, response, list, cx);
        false
    }

    /// Handles closing the list without a choice.
    fn on_leave(&mut self, cx: &mut UiContext<'_>) {
        let _ = cx;
    }
}

/// A panel made of one `FilterList` and its `ListController`.
#[derive(Debug)]
pub struct ListPanel<C: ListController> {
    list: FilterList<C::RowValue>,
    controller: C,
    /// The request that closes the panel on success, with the result to return. Keys are ignored
    /// while it is pending.
    closing_request: Option<(u64, PanelResult)>,
    result: Option<PanelResult>,
}

impl<C: ListController> ListPanel<C> {
    /// Creates a panel from a list and its controller.
    pub fn new(list: FilterList<C::RowValue>, controller: C) -> ListPanel<C> {
        ListPanel { list, controller, closing_request: None, result: None }
    }

    fn on_action(&mut self, action: ListKeyOutcome, cx: &mut UiContext<'_>) -> PanelControlFlow {
        match self.controller.on_action(action, &mut self.list, cx) {
            ListControllerDecision::Stay => {}
            ListControllerDecision::Close(result) => {
                self.result = Some(result);
                return PanelControlFlow::Close;
            }
            ListControllerDecision::Request(request, loading_text, result) => {
                self.closing_request = Some((cx.send_request(request), result));
                self.list.state = ListLoadState::Loading(loading_text);
            }
        }
        PanelControlFlow::Stay
    }
}

impl<C: ListController> Panel for ListPanel<C> {
    fn title(&self) -> String {
        self.controller.title().to_owned()
    }

    fn on_key(&mut self, key: &KeyEvent, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if self.closing_request.is_some() {
            return PanelControlFlow::Stay;
        }
        if let Some((_, input)) = &mut self.list.text_input {
            if key.code == KeyCode::Enter {
                return self.on_action(ListKeyOutcome::TextEntered, cx);
            }
            input.on_key(key, cx.appearance);
            return PanelControlFlow::Stay;
        }
        if self.list.confirmation.take().is_some() {
            let confirmed = key.code == KeyCode::Char('y');
            return if confirmed {
                self.on_action(ListKeyOutcome::Confirmed, cx)
            } else {
                PanelControlFlow::Stay
            };
        }
        let action = self.list.on_key(key, &cx.appearance.key_map);
        self.on_action(action, cx)
    }

    fn on_escape(&mut self, cx: &mut UiContext<'_>) -> PanelControlFlow {
        if self.list.confirmation.take().is_some() || self.list.text_input.take().is_some() {
            return PanelControlFlow::Stay;
        }
        self.controller.on_leave(cx);
        PanelControlFlow::Close
    }

    fn on_paste(&mut self, text: &str, cx: &mut UiContext<'_>) {
        if let Some((_, input)) = &mut self.list.text_input {
            return input.insert(text.trim());
        }
        self.list.on_paste(text);
        self.on_action(ListKeyOutcome::FilterChanged, cx);
    }

    fn on_wheel(&mut self, lines: i32, cx: &mut UiContext<'_>) {
        self.list.move_selection(lines);
        self.on_action(ListKeyOutcome::SelectionMoved, cx);
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        cx: &mut UiContext<'_>,
    ) -> bool {
        let Some((_, result)) = self.closing_request.take_if(|(request_id, _)| *request_id == id)
        else {
            return self.controller.on_response(id, response, &mut self.list, cx);
        };
        match response {
            Ok(_) => self.result = Some(result),
            Err(fault) => self.list.set_failed(fault),
        }
        true
    }

    fn is_done(&self) -> bool {
        self.result.is_some()
    }

    fn take_result(&mut self) -> PanelResult {
        self.result.take().unwrap_or_default()
    }

    fn height(&self, _: u16, _: &SessionState) -> u16 {
        self.list.height()
    }

    fn draw(
        &mut self,
        area: Rect,
        buffer: &mut Buffer,
        appearance: &Appearance,
        _: &SessionState,
    ) -> Option<Position> {
        let hints = self.controller.key_hints(&self.list);
        self.list.draw(area, buffer, appearance, &shared_rows::describe_keys(appearance, &hints))
    }
}
