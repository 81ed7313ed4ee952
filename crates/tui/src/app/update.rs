//! What happens when something happens.

use super::{App, Awaited, Input};
use crate::asked::queue::Agreed;
use crate::cx::Act;
use crate::keys::{Command, Place};
use crate::panel::{self, Flow, Panel, Parting};
use crate::prompt::{Heard, Saying};
use crate::story::{Details, Scroll};
use crate::theme::Ground;
use crossterm::event::{KeyEvent, KeyEventKind};
use windlass_protocol::wire::{Answered, Down, Form, Request};
use windlass_protocol::{Event, Fault, Mode, Op, SessionId};

/// How long a second press counts as one.
const TWICE: u64 = 1_500;
/// How long a hint stands.
const HINT: u64 = 4_000;

impl App {
    /// Takes in what happened, at a moment.
    pub fn update(&mut self, input: Input, now: u64) -> Vec<Act> {
        self.now = now;
        self.story.tick(now);
        self.hint.take_if(|(_, until)| *until <= now);
        let mut acts = Vec::new();
        match input {
            Input::Key(key) if key.kind == KeyEventKind::Release => {}
            Input::Key(key) => self.key(&key, &mut acts),
            Input::Paste(text) => self.with(&mut acts, |parts, cx| match parts.panels.last_mut() {
                Some(panel) => panel.paste(&text, cx),
                None if parts.story.finds() => parts.story.find(&text, cx),
                None if parts.asked.paste(&text, cx.now, parts.prompt.is_empty()) => {}
                None => {
                    parts.asked.typed(cx.now);
                    parts.prompt.paste(&text, cx);
                }
            }),
            Input::Wheel(lines) => {
                let in_panel = self.with(&mut acts, |parts, cx| {
                    let panel = parts.panels.last_mut();
                    panel.map(|panel| panel.wheel(lines, cx)).is_some()
                });
                if !in_panel {
                    self.scroll(Scroll::Lines(lines), &mut acts);
                }
            }
            Input::Ground(colour) => self.look.theme.ground = Ground::of(colour),
            Input::Down(down) => self.down(*down, &mut acts),
            Input::Tick => {}
            Input::Written(Some(text)) => self.prompt.set(text.trim_end()),
            Input::Written(None) => {
                self.hint("your editor could not be used; set VISUAL or EDITOR");
            }
            Input::Picture(Ok(bytes)) => {
                self.with(&mut acts, |parts, cx| parts.prompt.picture(&bytes, cx));
            }
            Input::Picture(Err(why)) => self.hint(&why),
        }
        self.with(&mut acts, |parts, cx| parts.story.fetch(cx));
        acts
    }

    pub(super) fn hint(&mut self, text: &str) {
        self.hint_for(HINT, text);
    }

    fn hint_for(&mut self, time: u64, text: &str) {
        self.hint = Some((text.to_owned(), self.now + time));
    }

    fn key(&mut self, key: &KeyEvent, acts: &mut Vec<Act>) {
        if let Some(mut panel) = self.panels.pop() {
            self.asked.typed(self.now);
            let everywhere = self.look.keys.find(Place::Panel, key);
            let flow = match everywhere {
                Some(Command::Escape) => self.with(acts, |_, cx| panel.escape(cx)),
                Some(Command::Interrupt) => {
                    self.with(acts, |_, cx| panel.escape(cx));
                    Flow::Close
                }
                Some(Command::Redraw | Command::Suspend) => {
                    self.panels.push(panel);
                    if let Some(command) = everywhere {
                        self.carry_out(command, "", acts);
                    }
                    return;
                }
                _ => self.with(acts, |_, cx| panel.key(key, cx)),
            };
            match flow {
                Flow::Stay => self.panels.push(panel),
                Flow::Close => self.part(panel),
            }
            return;
        }
        let everywhere = self.look.keys.find(Place::Everywhere, key);
        if self.story.finds() {
            self.asked.typed(self.now);
            let used = self.with(acts, |parts, cx| parts.story.find_key(key, cx));
            if let Some(command) = everywhere.filter(|_| !used) {
                self.carry_out(command, "", acts);
            }
            return;
        }
        let at_once = [Command::Interrupt, Command::Suspend, Command::Redraw, Command::Quit];
        if let Some(command) = everywhere.filter(|command| at_once.contains(command)) {
            self.carry_out(command, "", acts);
            return;
        }
        let listing = self.prompt.is_listing() && !self.asked_has_keys();
        if everywhere == Some(Command::Answer) && self.asked.is_open() && !listing {
            self.asked.turn_to(self.now, self.prompt.is_empty());
            return;
        }
        if self.asked_has_keys() && self.with(acts, |parts, cx| parts.asked.key(key, cx)) {
            return;
        }
        let heard = self.with(acts, |parts, cx| {
            if crate::asked::writes(key) {
                parts.asked.typed(cx.now);
            }
            parts.prompt.key(key, cx)
        });
        match heard {
            Heard::Used => {}
            Heard::Say(saying) => self.say(saying, acts),
            Heard::Unused => {
                if let Some(command) = everywhere {
                    self.carry_out(command, "", acts);
                }
            }
        }
    }

    /// A panel is gone; what it leaves behind is taken up.
    fn part(&mut self, mut panel: Box<dyn Panel>) {
        if let Some(change) = panel.agreed() {
            self.asked.agree(Agreed::Undo(change));
        }
        match panel.parting() {
            Parting::Nothing => {}
            Parting::Prompt(text, files) => self.prompt.restore(&text, &files),
            Parting::Hint(text) => self.hint(&text),
        }
    }

    /// Says what a person wrote, in a session that is begun for it if there is none.
    pub(super) fn say(&mut self, saying: Saying, acts: &mut Vec<Act>) {
        self.hint = None;
        let op = match saying {
            Saying::Slash(command, behind) => return self.carry_out(command, &behind, acts),
            // It is said when there is a model to say it to.
            Saying::Prompt { .. } if self.known.standing.model.is_none() => {
                self.unsaid(&saying);
                if self.panels.is_empty() {
                    let panel = self.with(acts, |_, cx| panel::first(cx));
                    self.panels.extend(panel);
                }
                return;
            }
            // Nothing runs beside what the model does; it is kept to be said then.
            Saying::Shell(_) if self.known.busy() => {
                self.unsaid(&saying);
                return self.hint("it can run when the model is done");
            }
            saying if self.known.session.is_none() => {
                let request = self.known.begin();
                return self.ask(request, Awaited::Opened(Some(saying)), acts);
            }
            Saying::Own { name, arguments } => return self.fill(&name, &arguments, acts),
            Saying::Prompt { text, attachments, when } => Op::Prompt { text, attachments, when },
            Saying::Shell(command) => {
                let op = Op::shell(&command);
                self.asked.agree(Agreed::Command(command));
                op
            }
        };
        self.story_end(acts);
        self.op(op, acts);
    }

    /// Puts back what could not be said.
    fn unsaid(&mut self, saying: &Saying) {
        if let Some((text, files)) = saying.written() {
            self.prompt.restore(&text, files);
        }
    }

    /// Asks what a command with a name asks of the model, which is said then.
    fn fill(&mut self, name: &str, arguments: &str, acts: &mut Vec<Act>) {
        let (name, arguments) = (name.to_owned(), arguments.to_owned());
        let saying = Saying::Own { name: name.clone(), arguments: arguments.clone() };
        self.ask(Request::Command { name, arguments }, Awaited::Command(saying), acts);
    }

    fn story_end(&mut self, acts: &mut Vec<Act>) {
        self.scroll(Scroll::End, acts);
    }

    pub(super) fn op(&mut self, op: Op, acts: &mut Vec<Act>) {
        if let Some(session) = self.known.session {
            self.ask(Request::Do { session, op }, Awaited::Done, acts);
        }
    }

    pub(super) fn ask(&mut self, request: Request, awaited: Awaited, acts: &mut Vec<Act>) {
        let id = self.with(acts, |_, cx| cx.ask(request));
        self.awaited.insert(id, awaited);
    }

    fn scroll(&mut self, scroll: Scroll, acts: &mut Vec<Act>) {
        self.with(acts, |parts, cx| parts.story.scroll(scroll, cx));
    }

    /// True if this was pressed a moment ago, too.
    fn again(&mut self, command: Command) -> bool {
        let again = self.pressed.is_some_and(|(last, at)| last == command && self.now < at + TWICE);
        self.pressed = (!again).then_some((command, self.now));
        again
    }

    /// Does what a command says, as if it had been typed.
    #[cfg(test)]
    pub(crate) fn told(&mut self, command: Command, behind: &str, now: u64) -> Vec<Act> {
        self.now = now;
        let mut acts = Vec::new();
        self.carry_out(command, behind, &mut acts);
        acts
    }

    /// Does what a command says.
    pub(super) fn carry_out(&mut self, command: Command, behind: &str, acts: &mut Vec<Act>) {
        match command {
            Command::Quit => {
                if self.prompt.is_empty() {
                    acts.push(Act::Quit);
                }
            }
            Command::Interrupt => self.interrupt(acts),
            Command::Escape => self.escape(acts),
            Command::Suspend => acts.push(Act::Suspend),
            Command::Redraw => acts.push(Act::Redraw),
            Command::Mode => self.next_mode(behind, acts),
            Command::New => self.new_session(acts),
            Command::Fork => {
                if let Some(session) = self.known.session {
                    let request = Request::Fork { session, turn: None };
                    self.ask(request, Awaited::Opened(None), acts);
                }
            }
            Command::Rename if !behind.is_empty() => {
                self.op(Op::Rename { title: behind.to_owned() }, acts);
            }
            Command::Rename => self.hint("write the title behind it: /rename TITLE"),
            Command::Compact => self.op(Op::Compact, acts),
            Command::Export => {
                let form = if behind.trim() == "log" { Form::Log } else { Form::Page };
                match self.known.session {
                    Some(session) => {
                        self.ask(Request::Export { session, form }, Awaited::Path, acts);
                    }
                    None => self.hint("there is no session to write yet"),
                }
            }
            Command::Init => self.fill("init", behind, acts),
            Command::Copy => match self.story.last_answer() {
                Some(text) => {
                    acts.push(Act::Copy(text));
                    self.hint("the last answer is in the clipboard");
                }
                None => self.hint("there is no answer yet"),
            },
            Command::Editor => acts.push(Act::Edit(self.prompt.text())),
            Command::Paste => acts.push(Act::Picture),
            Command::Details => self.story.toggle(Details::One),
            Command::DetailsAll => self.story.toggle(Details::All),
            Command::PageUp => self.scroll(Scroll::Pages(-1), acts),
            Command::PageDown => self.scroll(Scroll::Pages(1), acts),
            Command::LineUp => self.scroll(Scroll::Lines(-1), acts),
            Command::LineDown => self.scroll(Scroll::Lines(1), acts),
            Command::Top => self.scroll(Scroll::Top, acts),
            Command::End => self.scroll(Scroll::End, acts),
            Command::PreviousPrompt => self.scroll(Scroll::PreviousPrompt, acts),
            Command::NextPrompt => self.scroll(Scroll::NextPrompt, acts),
            Command::Find if self.known.session.is_some() => {
                self.with(acts, |parts, cx| parts.story.find(behind, cx));
            }
            Command::Find => self.hint("nothing was said yet"),
            Command::Whole => self.panels.extend(self.asked.whole()),
            _ => self.open_panel(command, behind, acts),
        }
    }

    fn open_panel(&mut self, command: Command, behind: &str, acts: &mut Vec<Act>) {
        let panel = self.with(acts, |_, cx| panel::open(command, behind, cx));
        self.panels.extend(panel);
    }

    /// Ctrl-C: first what is written, then what goes on, then twice to leave.
    fn interrupt(&mut self, acts: &mut Vec<Act>) {
        if !self.prompt.is_empty() {
            self.prompt.set("");
        } else if self.known.busy() {
            self.op(Op::Interrupt, acts);
        } else if self.again(Command::Interrupt) {
            acts.push(Act::Quit);
        } else {
            self.hint_for(TWICE, "once more leaves");
        }
    }

    /// Esc: closes a list, stops the model, and twice goes back.
    fn escape(&mut self, acts: &mut Vec<Act>) {
        if self.prompt.close() {
            return;
        }
        if self.known.busy() {
            self.op(Op::Interrupt, acts);
        } else if self.again(Command::Escape) {
            self.open_panel(Command::Back, "", acts);
        } else if self.known.session.is_some() {
            self.hint_for(TWICE, "once more goes back to an earlier prompt");
        }
    }

    fn next_mode(&mut self, behind: &str, acts: &mut Vec<Act>) {
        let named = behind.trim().parse::<Mode>().ok();
        let laxest = self.known.standing.laxest.min(Mode::Auto);
        let next = named.unwrap_or(match self.known.mode {
            Mode::Plan => Mode::Ask,
            Mode::Ask if laxest >= Mode::Auto => Mode::Auto,
            Mode::Ask | Mode::Auto | Mode::Full => Mode::Plan,
        });
        match self.known.session {
            Some(_) => self.op(Op::Mode { mode: next }, acts),
            None => self.known.mode = next,
        }
    }

    fn new_session(&mut self, acts: &mut Vec<Act>) {
        self.ask(self.known.begin(), Awaited::Opened(None), acts);
    }

    fn down(&mut self, down: Down, acts: &mut Vec<Act>) {
        match down {
            Down::Event { event } => self.event(&event, acts),
            Down::Answer { id, answer } => self.answer(id, answer, acts),
            Down::Note { text } => self.story.note(&text),
            Down::Stopped { session, fault } => self.stopped(session, &fault, acts),
        }
    }

    fn stopped(&mut self, session: SessionId, fault: &Fault, acts: &mut Vec<Act>) {
        self.with(acts, |parts, cx| parts.asked.stop(session, cx));
        if Some(session) == self.known.session {
            self.known.turn = None;
            self.known.jobs.clear();
            self.story.note(&crate::fault::told(fault));
        }
    }

    fn event(&mut self, event: &Event, acts: &mut Vec<Act>) {
        self.known.hear(event, self.now);
        self.with(acts, |parts, cx| {
            parts.story.hear(event, cx);
            parts.asked.hear(event, cx);
            parts.panels.iter_mut().for_each(|panel| panel.hear(event, cx));
        });
    }

    fn answer(&mut self, id: u64, answer: Result<Answered, Fault>, acts: &mut Vec<Act>) {
        let Some(awaited) = self.awaited.remove(&id) else {
            self.known.hear_jobs(&answer);
            if self.story.opens_with(id) {
                self.known.remember(&answer, self.now);
            }
            let taken = self.with(acts, |parts, cx| {
                let panels = &mut parts.panels;
                panels.iter_mut().any(|panel| panel.answer(id, &answer, cx))
                    || parts.asked.answer(id, &answer, cx)
                    || parts.prompt.answer(id, &answer, cx)
                    || parts.story.answer(id, &answer, cx)
            });
            let due = self.with(acts, |parts, cx| parts.prompt.due(cx));
            if let Some(saying) = due {
                self.say(saying, acts);
            }
            self.take_standing(&answer);
            match answer {
                Ok(Answered::Opened { session, head }) => self.opened(session, head, None, acts),
                Err(fault) if !taken => self.story.note(&crate::fault::told(&fault)),
                Ok(_) | Err(_) => {}
            }
            let panels = std::mem::take(&mut self.panels);
            let (done, stay): (Vec<_>, Vec<_>) = panels.into_iter().partition(|panel| panel.done());
            self.panels = stay;
            if !done.is_empty() {
                // What comes into sight now has not been seen for a moment yet.
                self.asked.typed(self.now);
            }
            done.into_iter().for_each(|panel| self.part(panel));
            return;
        };
        match (awaited, answer) {
            (Awaited::Standing, Ok(answered)) => {
                self.take_standing(&Ok(answered));
                self.begin(acts);
            }
            (Awaited::Opened(saying), Ok(Answered::Opened { session, head })) => {
                self.opened(session, head, saying, acts);
            }
            (Awaited::Command(_), Ok(Answered::Prompt { text })) => {
                self.say(Saying::prompt(text), acts);
            }
            (Awaited::Trust, Ok(Answered::Trust { would, since })) => {
                self.look_at_trust(would, since);
            }
            (Awaited::Path, Ok(Answered::Path { path })) => {
                self.story.note(&format!("written to {path}"));
            }
            (_, Ok(_)) => {}
            (awaited, Err(fault)) => {
                self.story.note(&crate::fault::told(&fault));
                if let Awaited::Opened(Some(saying)) | Awaited::Command(saying) = awaited
                    && self.prompt.is_empty()
                {
                    self.unsaid(&saying);
                }
            }
        }
    }
}
