//! Commands behind `/`, as far as lines can tell what they do.

use super::talk::{Awaited, Linear, Next};
use crate::asked::queue::Agreed;
use crate::cx::Act;
use crate::keys::{Command, TABLE};
use crate::panel::jobs::state;
use crate::panel::trust;
use windlass_protocol::text::one_line;
use windlass_protocol::wire::{Answered, Form, Health, Keep, Listing, Request, Row};
use windlass_protocol::{Mode, Op, Query, Reply, Scope, View};

/// A cost is in millionths of a dollar.
const COST_OF_A_DOLLAR: u64 = 1_000_000;

/// The commands that can be used here.
const HERE: [Command; 20] = [
    Command::Quit,
    Command::Help,
    Command::Mode,
    Command::Sessions,
    Command::New,
    Command::Fork,
    Command::Rename,
    Command::Compact,
    Command::Undo,
    Command::Redo,
    Command::Diff,
    Command::Model,
    Command::Login,
    Command::Todos,
    Command::Jobs,
    Command::Cost,
    Command::Doctor,
    Command::Export,
    Command::Trust,
    Command::Init,
];

impl Linear {
    pub(super) fn command(&mut self, name: &str, behind: &str) {
        // Whoever goes on with something else does not take back what was shown.
        self.undo = None;
        let entry = TABLE.iter().find(|entry| entry.slash && entry.name == name);
        let Some(command) = entry.map(|entry| entry.command) else {
            return self.own(name, behind);
        };
        match command {
            Command::Quit => self.acts.push(Act::Quit),
            Command::Help => self.help(),
            Command::Mode => self.mode(behind),
            Command::Sessions => self.sessions(behind),
            Command::New => self.begin(Next::Nothing),
            Command::Rename if behind.is_empty() => {
                self.say("write the title behind it: /rename TITLE")
            }
            Command::Model => self.model_command(behind),
            Command::Init => self.own("init", behind),
            Command::Doctor => self.ask(Request::Doctor, Awaited::Doctor),
            Command::Login => self.say(
                "a key that is typed here could be read by others. Leave with /quit, then run \
                 `windlass auth login PROVIDER` and `windlass --linear --continue`",
            ),
            Command::Trust => match behind {
                "yes" => {
                    let request = Request::Trust { yes: true };
                    self.ask(request, Awaited::Then("this folder is trusted".to_owned()));
                }
                "no" => {
                    let request = Request::Trust { yes: false };
                    self.ask(request, Awaited::Then("this folder is not trusted".to_owned()));
                }
                _ => self.ask(Request::LookAtTrust, Awaited::Shown),
            },
            Command::Cost => {
                let (dollars, usage) = (COST_OF_A_DOLLAR, self.known.usage);
                let cost = self.known.cost.0 as f64 / dollars as f64;
                self.say(&format!("this session cost {cost:.4} dollars"));
                self.say(&format!("{} tokens were read, {} written", usage.input, usage.output));
            }
            Command::Todos => {
                let todos: Vec<String> = self.known.todos.iter().map(ToString::to_string).collect();
                match todos.is_empty() {
                    true => self.say("nothing is to be done"),
                    false => self.quote(&todos.join("\n"), usize::MAX),
                }
            }
            other => self.in_session(other, behind),
        }
    }

    /// What needs a session.
    fn in_session(&mut self, command: Command, behind: &str) {
        let Some(session) = self.known.session else {
            return self.say("there is no session yet; say something first");
        };
        let changes =
            |scope, view| Request::Query { query: Query::Changes { session, scope, view } };
        match command {
            Command::Fork => {
                self.ask(Request::Fork { session, turn: None }, Awaited::Opened(Next::Nothing));
            }
            Command::Rename => self.op(Op::Rename { title: behind.to_owned() }),
            Command::Compact => self.op(Op::Compact),
            Command::Undo => self.ask(changes(Scope::LastTurn, View::Back), Awaited::Undo),
            Command::Redo => self.ask(changes(Scope::LastUndo, View::Back), Awaited::Undo),
            Command::Jobs => {
                let query = Query::Jobs { session };
                self.ask(Request::Query { query }, Awaited::Shown);
            }
            Command::Diff => self.ask(changes(Scope::All, View::Made), Awaited::Shown),
            Command::Export => {
                let form = if behind == "log" { Form::Log } else { Form::Page };
                self.ask(Request::Export { session, form }, Awaited::Path);
            }
            _ => self.say("that needs the screen; /help lists what can be done here"),
        }
    }

    /// One of the person's own. What it wants run first is run in a session.
    fn own(&mut self, name: &str, behind: &str) {
        self.go_on(Next::Own { name: name.to_owned(), arguments: behind.to_owned() });
    }

    fn help(&mut self) {
        self.say("write what is to be done and press Enter. A line that ends with \\ goes on in the next");
        self.say("! runs a command in the shell. Ctrl-C stops the model; twice it leaves");
        let here = TABLE.iter().filter(|entry| HERE.contains(&entry.command));
        let lines: Vec<String> =
            here.map(|entry| format!("/{}: {}", entry.name, entry.what)).collect();
        self.say(&lines.join("\n"));
        self.say("your own commands work, too");
    }

    fn mode(&mut self, behind: &str) {
        let Ok(mode) = behind.parse::<Mode>() else {
            let laxest = self.known.standing.laxest;
            let all = Mode::ALL.into_iter().filter(|mode| *mode <= laxest);
            let names: Vec<String> = all.map(|mode| format!("/mode {mode}")).collect();
            let text = format!("mode: {}. There are {}", self.known.mode, names.join(", "));
            return self.say(&text);
        };
        match self.known.session {
            Some(_) => self.op(Op::Mode { mode }),
            None => {
                self.known.mode = mode;
                self.say(&format!("mode: {mode}"));
            }
        }
    }

    fn model_command(&mut self, behind: &str) {
        if behind.is_empty() {
            return self.ask(Request::List { what: Listing::Models }, Awaited::Shown);
        }
        let request = Request::Model { model: behind.to_owned(), keep: Keep::Now };
        self.ask(request, Awaited::Then(format!("{behind} is asked from now on")));
    }

    fn sessions(&mut self, behind: &str) {
        if behind.is_empty() {
            let workspace = Some(self.known.standing.root.clone());
            let query = Query::Sessions { workspace };
            return self.ask(Request::Query { query }, Awaited::Shown);
        }
        let number = behind.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match number.and_then(|number| self.listed.get(number).copied()) {
            Some(session) => self.ask(Request::Open { session }, Awaited::Opened(Next::Nothing)),
            None => self.say("no session has that number; /sessions lists them"),
        }
    }

    /// Reads out what was asked for.
    pub(super) fn listed(&mut self, awaited: &Awaited, answered: Answered) {
        match answered {
            Answered::Reply { reply: Reply::Sessions { sessions } } => {
                let sessions = sessions.into_iter().filter(|row| row.parent.is_none()).take(20);
                let rows: Vec<_> = sessions.collect();
                self.listed = rows.iter().map(|row| row.session).collect();
                for (number, row) in rows.iter().enumerate() {
                    self.quote(&format!("{}. {}", number + 1, one_line(&row.title)), 1);
                }
                self.say(match rows.is_empty() {
                    true => "there is no session yet",
                    false => "/sessions and a number opens one",
                });
            }
            Answered::Reply { reply: Reply::Changes { facts, diff } } => {
                if diff.trim().is_empty() {
                    return self.say("nothing was changed");
                }
                self.quote(&crate::lay::spoken(&diff), usize::MAX);
                if *awaited == Awaited::Undo && !facts.is_empty() {
                    self.undo = Some((facts, diff));
                    self.say(
                        "answer y to have this done; anything else leaves everything as it is",
                    );
                }
            }
            Answered::Reply { reply: Reply::Jobs { jobs } } => {
                for job in &jobs {
                    self.say(&format!("job {}, {}:", job.id, state(job)));
                    self.quote(&job.command, 1);
                    self.quote(&job.tail, 3);
                }
                if jobs.is_empty() {
                    self.say("nothing runs in the background");
                }
            }
            Answered::Rows { rows } if *awaited == Awaited::Doctor => {
                for Row { name, note, health } in &rows {
                    let health = match health {
                        Health::Good => "good",
                        Health::Less => "could be better",
                        Health::Bad => "missing",
                    };
                    self.quote(&format!("{name}, {health}: {note}"), 1);
                }
            }
            Answered::Rows { rows } => {
                for row in &rows {
                    let now =
                        if row.name == self.known.model { ", which is asked now" } else { "" };
                    self.quote(&format!("{}{now}", row.name), 1);
                }
                self.say("/model and a name chooses one");
            }
            Answered::Trust { would, since } => {
                self.trust(&would, since.is_some_and(|since| since.is_empty()));
            }
            _ => {}
        }
    }

    fn trust(&mut self, would: &[String], holds: bool) {
        match would.is_empty() {
            true => self.say("this folder has nothing of its own that Windlass would run"),
            false => {
                self.say("this folder would have Windlass run or obey:");
                self.quote(&would.join("\n"), usize::MAX);
            }
        }
        if holds {
            self.say(trust::MEANS_BACK);
            return self.say("it is trusted as it is now; /trust no takes that back");
        }
        self.say(trust::means(would));
        self.say(trust::MEANS_NOT);
        self.say("/trust yes trusts it as it is now");
    }

    /// Whether what was shown is to be taken back.
    pub(super) fn confirm(&mut self, text: &str) {
        let Some((facts, change)) = self.undo.take() else { return };
        match text {
            "y" | "yes" => {
                self.questions.agree(Agreed::Undo(change));
                self.op(Op::Undo { facts });
            }
            _ => self.say("everything stays as it is, and nothing was said to the model"),
        }
    }
}
