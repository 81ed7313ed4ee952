//! Lists to read: the skills (`/skills`), the hooks (`/hooks`) and the settings (`/config`).

use super::PanelResult;
use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::UiCommand;
use crate::ui_context::UiContext;
use windlass_protocol::Fault;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse, ListedItemKind};

/// `ListController` of a list to read.
#[derive(Debug)]
pub struct Listing {
    title: &'static str,
    list_request: u64,
}

impl Listing {
    /// Opens the list of skills.
    pub fn skills(filter: &str, cx: &mut UiContext<'_>) -> ListPanel<Listing> {
        let empty_text = "No skills found; see the chapter Skills of the book";
        Listing::open("Skills", (ListedItemKind::Skills, empty_text), filter, cx)
    }

    /// Opens the list of hooks.
    pub fn hooks(filter: &str, cx: &mut UiContext<'_>) -> ListPanel<Listing> {
        let empty_text = "No hooks are set; see the chapter Hooks of the book";
        Listing::open("Hooks", (ListedItemKind::Hooks, empty_text), filter, cx)
    }

    /// Opens the list of settings.
    pub fn config(filter: &str, cx: &mut UiContext<'_>) -> ListPanel<Listing> {
        let empty_text = "No settings found; your config is windlass.jsonc in the config folder";
        Listing::open("Config", (ListedItemKind::Config, empty_text), filter, cx)
    }

    fn open(
        title: &'static str,
        (kind, empty_text): (ListedItemKind, &'static str),
        filter: &str,
        cx: &mut UiContext<'_>,
    ) -> ListPanel<Listing> {
        let list_request = cx.send_request(FrontendRequest::List { list: kind });
        let mut list = FilterList::loading("Loading", empty_text);
        list.set_filter(filter.trim());
        ListPanel::new(list, Listing { title, list_request })
    }
}

impl ListController for Listing {
    type RowValue = ();

    fn title(&self) -> &'static str {
        self.title
    }

    fn key_hints(&self, _: &FilterList<()>) -> Vec<(UiCommand, &'static str)> {
        vec![(UiCommand::Escape, "close")]
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        _: &mut FilterList<()>,
        _: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        match action {
            ListKeyOutcome::RowChosen => ListControllerDecision::Close(PanelResult::Nothing),
            ListKeyOutcome::Ignored
            | ListKeyOutcome::SelectionMoved
            | ListKeyOutcome::FilterChanged
            | ListKeyOutcome::RowCommand(_)
            | ListKeyOutcome::Confirmed
            | ListKeyOutcome::TextEntered => ListControllerDecision::Stay,
        }
    }

    fn on_response(
        &mut self,
        id: u64,
        response: &Result<HostResponse, Fault>,
        list: &mut FilterList<()>,
        _: &mut UiContext<'_>,
    ) -> bool {
        if id != self.list_request {
            return false;
        }
        match response {
            Ok(HostResponse::Rows { rows }) => {
                let items = rows.iter().map(|row| {
                    let item = ListItem::new(&row.name).with_note(&row.note);
                    (ListItem { searches_note: true, ..item }, ())
                });
                list.set_items(items.collect());
            }
            Ok(_) => {}
            Err(fault) => list.set_failed(fault),
        }
        true
    }
}
