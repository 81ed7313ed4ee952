//! What every part of the screen is given when something happens: how things look and stand, and the
//! ways out.

use crate::keys::{Command, Keys};
use crate::known::Known;
use crate::theme::{Role, Theme};
use ratatui::style::Style;
use windlass_protocol::wire::{Request, Up};
use windlass_protocol::{Op, Query};

/// How things look.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// The colours.
    pub theme: Theme,
    /// The keys.
    pub keys: Keys,
    /// True if nothing but ASCII is to be drawn by us.
    pub ascii: bool,
}

impl Look {
    /// The style of a role.
    pub fn style(&self, role: Role) -> Style {
        self.theme.style(role)
    }
}

/// Something that only the shell around the screen can do.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Sends a request.
    Send(Box<Up>),
    /// Ends the program.
    Quit,
    /// Puts a text into the clipboard, because the person asked for it.
    Copy(String),
    /// Has the person write a text in their own editor; it comes back as `Input::Written`.
    Edit(String),
    /// Reads a picture from the clipboard; it, or why there is none, comes back as `Input::Picture`.
    Picture,
    /// Makes the terminal call for attention.
    Bell,
    /// Draws everything anew.
    Redraw,
    /// Stops this process until the shell has it go on (Ctrl-Z).
    Suspend,
}

/// What a part of the screen is given.
pub struct Cx<'a> {
    /// How things look.
    pub look: &'a mut Look,
    /// How things stand.
    pub known: &'a Known,
    /// Now, in milliseconds since 1970.
    pub now: u64,
    /// The commands to carry out when this is over: one way for keys, `/` and panels.
    pub commands: &'a mut Vec<Command>,
    pub(crate) acts: &'a mut Vec<Act>,
    pub(crate) next: &'a mut u64,
}

impl Cx<'_> {
    /// Sends a request, and says under which number its answer will come.
    pub fn ask(&mut self, request: Request) -> u64 {
        *self.next += 1;
        let id = *self.next;
        self.acts.push(Act::Send(Box::new(Up { id, request })));
        id
    }

    /// Asks a question that changes nothing.
    pub fn query(&mut self, query: Query) -> u64 {
        self.ask(Request::Query { query })
    }

    /// Says something to the session on the screen, if there is one.
    pub fn op(&mut self, op: Op) {
        if let Some(session) = self.known.session {
            self.ask(Request::Do { session, op });
        }
    }

    /// Has the shell do something.
    pub fn act(&mut self, act: Act) {
        self.acts.push(act);
    }

    /// Has a command carried out, as if it had been typed.
    pub fn command(&mut self, command: Command) {
        self.commands.push(command);
    }
}
