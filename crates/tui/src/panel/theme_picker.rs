//! The theme picker (`/theme`), which previews the selected theme on the whole screen.

use super::PanelResult;
use super::filter_list::{FilterList, ListItem, ListKeyOutcome};
use super::list_panel::{ListController, ListControllerDecision, ListPanel};
use crate::keys::UiCommand;
use crate::theme::Theme;
use crate::ui_context::{Appearance, UiContext};
use windlass_protocol::frontend_messages::FrontendRequest;

/// `ListController` of the theme picker.
#[derive(Debug)]
pub struct ThemePicker {
    previous_theme: Theme,
}

impl ThemePicker {
    /// Opens the picker with all themes.
    pub fn open(filter: &str, appearance: &Appearance) -> ListPanel<ThemePicker> {
        let previous_theme = appearance.theme.clone();
        let item = |name: &str| {
            let is_current = name == previous_theme.name;
            (ListItem { is_current, ..ListItem::new(name) }, ())
        };
        let mut list = FilterList::with_items(Theme::names().into_iter().map(item).collect(), "");
        list.select(|item, ()| item.is_current);
        if !filter.trim().is_empty() {
            list.set_filter(filter.trim());
        }
        ListPanel::new(list, ThemePicker { previous_theme })
    }

    /// Returns the theme from before the preview, with the background color that the terminal may
    /// have reported since.
    fn previous_theme(&self, appearance: &Appearance) -> Theme {
        Theme { background: appearance.theme.background, ..self.previous_theme.clone() }
    }
}

impl ListController for ThemePicker {
    type RowValue = ();

    fn title(&self) -> &'static str {
        "Theme"
    }

    fn key_hints(&self, _: &FilterList<()>) -> Vec<(UiCommand, &'static str)> {
        vec![(UiCommand::ChooseRow, "save"), (UiCommand::Escape, "cancel")]
    }

    fn on_action(
        &mut self,
        action: ListKeyOutcome,
        list: &mut FilterList<()>,
        cx: &mut UiContext<'_>,
    ) -> ListControllerDecision {
        let Some((ListItem { name, .. }, ())) = list.selected() else {
            self.on_leave(cx);
            return ListControllerDecision::Stay;
        };
        let previous_theme = self.previous_theme(cx.appearance);
        cx.appearance.theme = previous_theme.with_name(name).unwrap_or(previous_theme);
        if action != ListKeyOutcome::RowChosen {
            return ListControllerDecision::Stay;
        }
        let value = serde_json::Value::from(name.as_str());
        cx.send_request(FrontendRequest::SetConfig { name: "tui.theme".to_owned(), value });
        ListControllerDecision::Close(PanelResult::ShowHint(format!("Theme set to {name}")))
    }

    fn on_leave(&mut self, cx: &mut UiContext<'_>) {
        cx.appearance.theme = self.previous_theme(cx.appearance);
    }
}
