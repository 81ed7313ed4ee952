//! What Enter says.

use super::buffer::Reach;
use super::history::Past;
use super::stock::What;
use super::suggest::command_name;
use super::{Heard, Keeping, Prompt, Saying};
use crate::cx::Cx;
use windlass_protocol::Delivery;
use windlass_protocol::wire::Listing;

impl Prompt {
    /// What was sent before all of it was here, once it is.
    pub fn due(&mut self, cx: &mut Cx<'_>) -> Option<Saying> {
        let when = self.due.take()?;
        self.notice = None;
        match self.send(when, cx) {
            Heard::Say(saying) => Some(saying),
            Heard::Used | Heard::Unused => None,
        }
    }

    /// Enter.
    pub(super) fn send(&mut self, when: Delivery, cx: &mut Cx<'_>) -> Heard {
        let raw = self.buffer.raw();
        let slashes = raw.chars().rev().take_while(|character| *character == '\\').count();
        if when == Delivery::Steer && slashes % 2 == 1 && self.buffer.behind().is_empty() {
            // A shell reads the backslash itself.
            if !raw.starts_with('!') {
                self.buffer.delete(Reach::Left);
            }
            self.buffer.insert("\n");
            self.stay();
            return Heard::Used;
        }
        if self.keeping.values().any(|keeping| *keeping == Keeping::Picture) {
            self.wait("the picture is not here yet", when);
            return Heard::Used;
        }
        let Some(saying) = self.saying(when, cx) else { return Heard::Used };
        let text = self.buffer.said().trim_end().to_owned();
        self.history.push(Past { text, files: self.buffer.attachments() });
        self.buffer.clear();
        self.keeping.clear();
        self.suggest.close();
        (self.top, self.goal) = (0, None);
        Heard::Say(saying)
    }

    /// It is sent when that is here for which it waits.
    fn wait(&mut self, notice: &str, when: Delivery) {
        (self.notice, self.due) = (Some(notice.to_owned()), Some(when));
    }

    /// What Enter would say.
    fn saying(&mut self, when: Delivery, cx: &mut Cx<'_>) -> Option<Saying> {
        let said = self.buffer.said();
        let text = said.trim_end().trim_start_matches('\n').to_owned();
        if let Some(command) = text.strip_prefix('!') {
            let command = command.trim().to_owned();
            return (!command.is_empty()).then_some(Saying::Shell(command));
        }
        if let Some(name) = command_name(&text).filter(|name| !name.is_empty()) {
            let behind = text.get(name.len() + 1..).unwrap_or_default().trim().to_owned();
            let stock = &mut self.suggest.stock;
            match stock.command(name) {
                Some(What::Ours(command)) => return Some(Saying::Slash(command, behind)),
                Some(What::Own) => {
                    return Some(Saying::Own { name: name.to_owned(), arguments: behind });
                }
                Some(What::File | What::Agent | What::Past) => {}
                None if !stock.has(Listing::Commands) => {
                    stock.want(Listing::Commands, cx);
                    self.wait("your commands are not here yet", when);
                    return None;
                }
                None => {}
            }
        }
        let attachments = self.buffer.attachments();
        (!text.trim().is_empty()).then_some(Saying::Prompt { text, attachments, when })
    }
}
