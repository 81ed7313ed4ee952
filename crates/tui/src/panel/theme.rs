//! The themes: each is seen on the whole screen while it is selected.

use super::Parting;
use super::list::{Did, Item, List};
use super::listed::{Choose, Listed, Then};
use crate::cx::{Cx, Look};
use crate::keys::Command;
use crate::theme::Theme;
use windlass_protocol::wire::Request;

/// The themes.
#[derive(Debug)]
pub struct Themes {
    before: Theme,
}

impl Themes {
    /// All of them.
    pub fn list(behind: &str, look: &Look) -> Listed<Themes> {
        let before = look.theme.clone();
        let item = |name: &str| {
            let current = name == before.name;
            (Item { current, ..Item::new(name) }, ())
        };
        let mut list = List::of(Theme::names().into_iter().map(item).collect(), "");
        list.select(|item, ()| item.current);
        if !behind.trim().is_empty() {
            list.look_for(behind.trim());
        }
        Listed::new(list, Themes { before })
    }

    /// The theme there was, on the ground that the terminal may have told of since.
    fn before(&self, look: &Look) -> Theme {
        Theme { ground: look.theme.ground, ..self.before.clone() }
    }
}

impl Choose for Themes {
    type Of = ();

    fn title(&self) -> &'static str {
        "Theme"
    }

    fn hints(&self, _: &List<()>) -> Vec<(Command, &'static str)> {
        vec![(Command::Choose, "keeps it"), (Command::Escape, "goes back to yours")]
    }

    fn did(&mut self, did: Did, list: &mut List<()>, cx: &mut Cx<'_>) -> Then {
        let Some((Item { name, .. }, ())) = list.selected() else {
            self.leave(cx);
            return Then::Stay;
        };
        let before = self.before(cx.look);
        cx.look.theme = before.called(name).unwrap_or(before);
        if did != Did::Chose {
            return Then::Stay;
        }
        let value = serde_json::Value::from(name.as_str());
        cx.ask(Request::Set { name: "tui.theme".to_owned(), value });
        Then::Close(Parting::Hint(format!("the theme is {name} from now on")))
    }

    fn leave(&mut self, cx: &mut Cx<'_>) {
        cx.look.theme = self.before(cx.look);
    }
}
