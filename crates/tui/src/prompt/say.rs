//! What Enter says.

use super::buffer::Reach;
use super::stock::What;
use super::suggest::command_name;
use super::{Heard, Keeping, Prompt, Saying};
use windlass_protocol::Delivery;
use windlass_protocol::wire::Listing;

impl Prompt {
    /// Enter.
    pub(super) fn send(&mut self, when: Delivery) -> Heard {
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
            self.notice = Some("the picture is not here yet".to_owned());
            return Heard::Used;
        }
        let Some(saying) = self.saying(when) else { return Heard::Used };
        self.history.push(self.buffer.said().trim_end());
        self.buffer.clear();
        self.keeping.clear();
        self.suggest.close();
        (self.top, self.goal) = (0, None);
        Heard::Say(saying)
    }

    /// What Enter would say.
    fn saying(&mut self, when: Delivery) -> Option<Saying> {
        let said = self.buffer.said();
        let text = said.trim_end().trim_start_matches('\n').to_owned();
        if let Some(command) = text.strip_prefix('!') {
            let command = command.trim().to_owned();
            return (!command.is_empty()).then_some(Saying::Shell(command));
        }
        let stock = &self.suggest.stock;
        if let Some(name) = command_name(&text).filter(|name| !name.is_empty()) {
            let behind = text.get(name.len() + 1..).unwrap_or_default().trim().to_owned();
            match stock.command(name) {
                Some(What::Ours(command)) => return Some(Saying::Slash(command, behind)),
                Some(What::Own) => {
                    return Some(Saying::Own { name: name.to_owned(), arguments: behind });
                }
                Some(What::File | What::Agent | What::Past) => {}
                None if !stock.has(Listing::Commands) => {
                    self.notice = Some("your commands are not here yet".to_owned());
                    return None;
                }
                None => {}
            }
        }
        let attachments = self.buffer.attachments();
        (!text.trim().is_empty()).then_some(Saying::Prompt { text, attachments, when })
    }
}
