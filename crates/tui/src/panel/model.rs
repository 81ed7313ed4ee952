//! The models that can be asked.

use super::Parting;
use super::list::{Did, List};
use super::listed::{Choose, Listed, Then};
use crate::cx::Cx;
use crate::keys::Command;
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Keep, Listing, Request};

/// The models.
#[derive(Debug)]
pub struct Models {
    listing: u64,
}

impl Models {
    /// Asks for them.
    pub fn list(behind: &str, cx: &mut Cx<'_>) -> Listed<Models> {
        let listing = cx.ask(Request::List { what: Listing::Models });
        let empty = "no model can be asked yet; /login keeps a provider's key";
        let mut list = List::busy("looking for models", empty);
        list.look_for(behind.trim());
        Listed::new(list, Models { listing })
    }
}

/// Takes the selected model.
fn take(keep: Keep, list: &List<()>) -> Then {
    let Some((item, ())) = list.selected() else { return Then::Stay };
    let model = item.name.clone();
    let how_long = match keep {
        Keep::Now => "until you leave",
        Keep::Always => "from now on; it stands in your config",
    };
    let parting = Parting::Hint(format!("{model} is asked {how_long}"));
    Then::Ask(Request::Model { model, keep }, "changing the model", parting)
}

impl Choose for Models {
    type Of = ();

    fn title(&self) -> &'static str {
        "Model"
    }

    fn hints(&self, _: &List<()>) -> Vec<(Command, &'static str)> {
        vec![
            (Command::Choose, "takes it for now"),
            (Command::KeepRow, "keeps it for good"),
            (Command::Escape, "closes"),
        ]
    }

    fn did(&mut self, did: Did, list: &mut List<()>, _: &mut Cx<'_>) -> Then {
        match did {
            Did::Chose => take(Keep::Now, list),
            Did::Wants(Command::KeepRow) => take(Keep::Always, list),
            _ => Then::Stay,
        }
    }

    fn answer(
        &mut self,
        id: u64,
        answer: &Result<Answered, Fault>,
        list: &mut List<()>,
        cx: &mut Cx<'_>,
    ) -> bool {
        (id == self.listing).then(|| list.offer(answer, &cx.known.model)).is_some()
    }
}
