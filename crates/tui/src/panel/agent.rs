//! The agents: with whom a new session is begun.

use super::Parting;
use super::list::{Did, List};
use super::listed::{Choose, Listed, Then};
use crate::cx::Cx;
use crate::keys::Command;
use windlass_protocol::Fault;
use windlass_protocol::wire::{Answered, Listing, Request};

/// The agents.
#[derive(Debug)]
pub struct Agents {
    listing: u64,
}

impl Agents {
    /// Asks for them.
    pub fn list(behind: &str, cx: &mut Cx<'_>) -> Listed<Agents> {
        let listing = cx.ask(Request::List { what: Listing::Agents });
        let mut list = List::busy("reading the agents", "there is no agent");
        list.look_for(behind.trim());
        Listed::new(list, Agents { listing })
    }
}

impl Choose for Agents {
    type Of = ();

    fn title(&self) -> &'static str {
        "Agent of a new session"
    }

    fn hints(&self, _: &List<()>) -> Vec<(Command, &'static str)> {
        vec![(Command::Choose, "begins a session with it"), (Command::Escape, "closes")]
    }

    fn did(&mut self, did: Did, list: &mut List<()>, _: &mut Cx<'_>) -> Then {
        match (did, list.selected()) {
            (Did::Chose, Some((item, ()))) => {
                let agent = Some(item.name.clone());
                Then::Ask(Request::Begin { agent }, "beginning a session", Parting::Nothing)
            }
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
        (id == self.listing).then(|| list.offer(answer, &cx.known.agent)).is_some()
    }
}
