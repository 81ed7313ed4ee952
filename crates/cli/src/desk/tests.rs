//! The desk under test: a scripted model over real HTTP, a folder of its own, and no screen.
#![allow(clippy::disallowed_methods, reason = "the tests arrange files from outside")]

use super::house::{House, Kept};
use super::*;
use serde_json::json;
use std::path::PathBuf;
use windlass_project::{Flags, Places};
use windlass_protocol::wire::{Form, Health, Keep, Key, Listing, Standing, Trusted};
use windlass_protocol::{Query, Reply};
use windlass_testkit::{Model, Script};

/// How long something may take before a test gives up on it.
const LONG: Duration = Duration::from_secs(30);

/// A front end without a screen.
struct Front {
    folder: tempfile::TempDir,
    model: Model,
    up: mpsc::Sender<Up>,
    down: mpsc::Receiver<Down>,
    notes: mpsc::UnboundedSender<String>,
    next: u64,
    heard: Vec<Down>,
    stop: CancellationToken,
}

impl Front {
    fn new(replies: &[&str], settings: &str) -> Front {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start(Script::new(replies.iter().copied()));
        let at = |name: &str| folder.path().join(name);
        for name in ["config", "project/src"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::fs::write(at("project/README.md"), "# Hello\n").unwrap();
        std::fs::write(at("project/src/a.rs"), "fn a() {}\n").unwrap();
        let comma = if settings.is_empty() { "" } else { "," };
        let config = format!(
            r#"{{"model": "scripted/m", "provider": {{"scripted": {{"api": "openai-chat",
            "base_url": "{}", "api_key": "sk-very-secret", "models": {{"m": {{"context": 4000}}, "n": {{}}, "o": {{}}}}}}}}{comma} {settings}}}"#,
            model.url()
        );
        std::fs::write(at("config/windlass.jsonc"), config).unwrap();
        let house =
            House::of(places(folder.path()), Flags::default(), None, Arc::<Kept>::default());
        let (up, asked) = mpsc::channel(UP);
        let (down, told) = mpsc::channel(4);
        let (notes, noted) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let desk = Desk::new(Arc::new(house.unwrap()), noted);
        TaskTracker::new().spawn(desk.attend((asked, down), stop.clone()));
        Front { folder, model, up, down: told, notes, next: 0, heard: Vec::new(), stop }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    fn config(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("config/windlass.jsonc")).unwrap()
    }

    async fn send(&mut self, request: Request) -> u64 {
        self.next += 1;
        self.up.send(Up { id: self.next, request }).await.unwrap();
        self.next
    }

    async fn hear(&mut self) -> Down {
        let down = tokio::time::timeout(LONG, self.down.recv()).await;
        down.expect("something is said in time").expect("the desk is open")
    }

    /// Asks, and waits for the answer; what is said meanwhile is kept.
    async fn ask(&mut self, request: Request) -> Result<Answered, Fault> {
        let wanted = self.send(request).await;
        self.answer(wanted).await
    }

    async fn answer(&mut self, wanted: u64) -> Result<Answered, Fault> {
        loop {
            match self.hear().await {
                Down::Answer { id, answer } if id == wanted => return answer,
                other => self.heard.push(other),
            }
        }
    }

    async fn standing(&mut self) -> Standing {
        match self.ask(Request::Standing).await.unwrap() {
            Answered::Standing { standing } => *standing,
            other => panic!("{other:?}"),
        }
    }

    async fn begin(&mut self) -> SessionId {
        match self.ask(Request::Begin { agent: None }).await.unwrap() {
            Answered::Opened { session, .. } => session,
            other => panic!("{other:?}"),
        }
    }

    async fn rows(&mut self, request: Request) -> Vec<windlass_protocol::wire::Row> {
        match self.ask(request).await.unwrap() {
            Answered::Rows { rows } => rows,
            other => panic!("{other:?}"),
        }
    }

    /// Says something, and waits until the turn has ended: what the model said.
    async fn prompt(&mut self, session: SessionId, text: &str) -> String {
        let op = Op::prompt(text);
        assert_eq!(self.ask(Request::Do { session, op }).await, Ok(Answered::Done));
        self.ended().await
    }

    async fn ended(&mut self) -> String {
        let mut said = String::new();
        let mut waiting = std::mem::take(&mut self.heard);
        waiting.reverse();
        loop {
            let down = match waiting.pop() {
                Some(down) => down,
                None => self.hear().await,
            };
            let Down::Event { event } = down else { continue };
            let Event::Fact(record) = *event else { continue };
            if let Fact::Said { text, .. } = &record.fact {
                said.push_str(text);
            }
            if let Fact::TurnEnded { .. } = &record.fact {
                return said;
            }
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn places(folder: &std::path::Path) -> (Places, PathBuf) {
    let at = |name: &str| folder.join(name);
    let places = Places {
        home: folder.to_owned(),
        config: at("config"),
        data: at("data"),
        cache: at("cache"),
        plugins: at("plugins"),
        managed: None,
    };
    (places, at("project"))
}

#[tokio::test]
async fn a_prompt_is_answered_and_its_session_can_be_asked_about() {
    let mut front = Front::new(&["say Hi there", "say Again"], "");
    let standing = front.standing().await;
    assert_eq!(standing.model.as_deref(), Some("scripted/m"));
    assert_eq!((standing.window, standing.trust), (Some(4000), Trusted::Unasked));
    assert_eq!(standing.workspace, "~/project");
    let session = front.begin().await;
    assert_eq!(front.prompt(session, "hello").await, "Hi there");
    let workspace = Some(standing.root);
    let query = Query::Sessions { workspace };
    let Ok(Answered::Reply { reply: Reply::Sessions { sessions } }) =
        front.ask(Request::Query { query }).await
    else {
        panic!("no list")
    };
    assert_eq!(sessions.len(), 1);
    assert_eq!(sessions[0].session, session);
    // Opened again it goes on, and what it had is not sent once more.
    let opened = front.ask(Request::Open { session }).await.unwrap();
    let Answered::Opened { head, .. } = opened else { panic!("{opened:?}") };
    assert!(head > 3, "{head}");
    assert_eq!(front.prompt(session, "and now?").await, "Again");
}

#[tokio::test]
async fn a_session_that_is_not_open_takes_nothing() {
    let mut front = Front::new(&["say Hi"], "");
    let first = front.begin().await;
    front.prompt(first, "hello").await;
    let second = front.begin().await;
    assert_ne!(first, second);
    let refused = front.ask(Request::Do { session: first, op: Op::Interrupt }).await;
    assert!(refused.unwrap_err().to_string().contains("not open"));
    assert_eq!(front.ask(Request::Delete { session: first }).await, Ok(Answered::Done));
    let gone = front.ask(Request::Open { session: first }).await;
    assert!(gone.is_err(), "{gone:?}");
    // What could not be opened leaves open what was.
    let kept = front.ask(Request::Do { session: second, op: Op::Interrupt }).await;
    assert_eq!(kept, Ok(Answered::Done));
}

#[tokio::test]
async fn many_requests_at_once_are_each_answered_once() {
    let mut front = Front::new(&[], "");
    let mut wanted = std::collections::BTreeSet::new();
    for number in 0..40 {
        let request = match number % 4 {
            0 => Request::Standing,
            1 => Request::List { what: Listing::Files },
            2 => Request::Begin { agent: None },
            _ => Request::Query { query: Query::Sessions { workspace: None } },
        };
        wanted.insert(front.send(request).await);
    }
    while !wanted.is_empty() {
        if let Down::Answer { id, answer } = front.hear().await {
            assert!(wanted.remove(&id), "{id} was answered twice");
            answer.unwrap();
        }
    }
}

#[tokio::test]
async fn another_model_is_asked_from_now_on_and_kept_if_wanted() {
    let mut front = Front::new(&["say One", "say Two"], "// mine\n\"titles\": false");
    let session = front.begin().await;
    front.prompt(session, "hello").await;
    let unknown = Request::Model { model: "nobody/x".into(), keep: Keep::Always };
    assert!(front.ask(unknown).await.is_err());
    assert!(!front.config().contains("nobody"));
    let model = Request::Model { model: "scripted/n".into(), keep: Keep::Now };
    let answer = front.ask(model).await.unwrap();
    let Answered::Standing { standing } = answer else { panic!("{answer:?}") };
    assert_eq!(standing.model.as_deref(), Some("scripted/n"));
    assert!(front.config().contains("\"scripted/m\""), "only for now");
    assert_eq!(front.prompt(session, "you?").await, "Two");
    assert_eq!(front.model.requests()[1]["model"], "n");
    let model = Request::Model { model: "scripted/n".into(), keep: Keep::Always };
    front.ask(model).await.unwrap();
    let config = front.config();
    assert!(config.contains("\"scripted/n\"") && config.contains("// mine"), "{config}");
}

#[tokio::test]
async fn a_folder_is_trusted_as_it_was_shown_and_not_before() {
    let mut front = Front::new(&[], "");
    std::fs::write(front.root().join("windlass.jsonc"), r#"{"titles": true}"#).unwrap();
    assert!(front.ask(Request::Trust { yes: true }).await.is_err(), "nobody looked");
    let answer = front.ask(Request::LookAtTrust).await.unwrap();
    let Answered::Trust { would, since } = answer else { panic!("{answer:?}") };
    assert!(would.iter().any(|line| line.contains("windlass.jsonc")), "{would:?}");
    assert_eq!(since, None);
    front.ask(Request::Trust { yes: false }).await.unwrap();
    assert_eq!(front.standing().await.trust, Trusted::No);
    front.ask(Request::LookAtTrust).await.unwrap();
    front.ask(Request::Trust { yes: true }).await.unwrap();
    assert_eq!(front.standing().await.trust, Trusted::Yes);
}

#[tokio::test]
async fn trust_is_taken_back_and_what_it_set_no_longer_holds() {
    let mut front = Front::new(&["say One", "say Two"], "");
    let project = front.root().join("windlass.jsonc");
    std::fs::write(&project, r#"{"model": "scripted/n"}"#).unwrap();
    front.ask(Request::LookAtTrust).await.unwrap();
    front.ask(Request::Trust { yes: true }).await.unwrap();
    let session = front.begin().await;
    front.prompt(session, "hello").await;
    assert_eq!(front.model.requests()[0]["model"], "n");
    let answer = front.ask(Request::Trust { yes: false }).await.unwrap();
    let Answered::Standing { standing } = answer else { panic!("{answer:?}") };
    assert_eq!((standing.trust, standing.model.as_deref()), (Trusted::No, Some("scripted/m")));
    // The session goes on, without what the folder wants.
    front.prompt(session, "and now?").await;
    assert_eq!(front.model.requests()[1]["model"], "m");
    let answer = front.ask(Request::LookAtTrust).await.unwrap();
    assert!(matches!(answer, Answered::Trust { since: None, .. }), "{answer:?}");
}

#[tokio::test]
async fn nothing_goes_on_in_a_folder_that_is_no_longer_trusted_if_no_config_can_be_read() {
    let mut front = Front::new(&["say One"], "");
    front.ask(Request::LookAtTrust).await.unwrap();
    front.ask(Request::Trust { yes: true }).await.unwrap();
    let session = front.begin().await;
    front.prompt(session, "hello").await;
    std::fs::write(front.folder.path().join("config/windlass.jsonc"), "{").unwrap();
    assert!(front.ask(Request::Trust { yes: false }).await.is_err());
    let said = front.ask(Request::Do { session, op: Op::prompt("still?") }).await;
    assert!(said.unwrap_err().to_string().contains("not open"));
    assert!(front.ask(Request::Begin { agent: None }).await.is_err());
}

#[tokio::test]
async fn the_models_that_were_asked_last_come_first() {
    let mut front = Front::new(&["say One", "say Two"], "");
    let names = async |front: &mut Front| -> Vec<String> {
        let rows = front.rows(Request::List { what: Listing::Models }).await;
        rows.into_iter().map(|row| row.name).filter(|name| name.starts_with("scripted")).collect()
    };
    let choose = |model: &str| Request::Model { model: model.into(), keep: Keep::Now };
    assert_eq!(names(&mut front).await, ["scripted/m", "scripted/n", "scripted/o"]);
    front.ask(choose("scripted/o")).await.unwrap();
    let session = front.begin().await;
    front.prompt(session, "hello").await;
    front.ask(choose("scripted/m")).await.unwrap();
    assert_eq!(names(&mut front).await, ["scripted/m", "scripted/o", "scripted/n"]);
    front.prompt(session, "hello").await;
    front.ask(choose("scripted/n")).await.unwrap();
    assert_eq!(names(&mut front).await, ["scripted/n", "scripted/m", "scripted/o"]);
}

#[tokio::test]
async fn things_are_listed() {
    let mut front = Front::new(&[], "");
    let commands = front.folder.path().join("config/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("fix.md"), "Fix $ARGUMENTS please.\n").unwrap();
    std::fs::write(commands.join("status.md"), "See !`git status`\n").unwrap();
    let names = |rows: Vec<windlass_protocol::wire::Row>| -> Vec<String> {
        rows.into_iter().map(|row| row.name).collect()
    };
    let files = names(front.rows(Request::List { what: Listing::Files }).await);
    assert_eq!(files, ["README.md", "src/a.rs"]);
    let models = names(front.rows(Request::List { what: Listing::Models }).await);
    assert_eq!(models[..2], ["scripted/m", "scripted/n"]);
    let agents = names(front.rows(Request::List { what: Listing::Agents }).await);
    assert!(agents.contains(&"build".to_owned()), "{agents:?}");
    let listed = names(front.rows(Request::List { what: Listing::Commands }).await);
    assert_eq!(listed, ["fix", "status"]);
    let command = |name: &str| Request::Command { name: name.into(), arguments: "it".into() };
    let filled = front.ask(command("fix")).await.unwrap();
    let Answered::Prompt { text } = filled else { panic!("{filled:?}") };
    assert_eq!(text.trim(), "Fix it please.");
    let runs = front.ask(command("status")).await.unwrap_err().to_string();
    assert!(runs.contains("`git status` runs in a session"), "{runs}");
    let init = front.ask(command("init")).await.unwrap();
    assert!(matches!(init, Answered::Prompt { text } if text.contains("AGENTS.md")));
    let doctor = front.rows(Request::Doctor).await;
    assert!(doctor.iter().any(|row| row.name == "disk" && row.health == Health::Good));
}

#[tokio::test]
async fn a_setting_of_the_screen_is_kept_and_no_other() {
    let mut front = Front::new(&[], "");
    let set = |name: &str| Request::Set { name: name.into(), value: json!("paper") };
    assert_eq!(front.ask(set("tui.theme")).await, Ok(Answered::Done));
    assert!(front.config().contains("\"theme\": \"paper\""), "{}", front.config());
    for name in ["permission", "mode", "tui", "tui.", "sandbox.enabled", ""] {
        assert!(front.ask(set(name)).await.is_err(), "{name}");
    }
}

#[tokio::test]
async fn a_picture_is_kept_and_given_back_and_a_text_is_refused() {
    use base64::Engine as _;
    let mut front = Front::new(&[], "");
    let png = b"\x89PNG\r\n\x1a\n0000IHDR".to_vec();
    let bytes = base64::engine::general_purpose::STANDARD.encode(&png);
    let keep = Request::Keep { name: "pasted.png".into(), bytes: bytes.clone() };
    let kept = front.ask(keep).await.unwrap();
    let Answered::Kept { attachment } = kept else { panic!("{kept:?}") };
    assert_eq!((attachment.name.as_str(), attachment.mime.as_str()), ("pasted.png", "image/png"));
    std::fs::write(front.root().join("p.png"), &png).unwrap();
    let kept = front.ask(Request::KeepFile { path: "p.png".into() }).await.unwrap();
    let Answered::Kept { attachment: same } = kept else { panic!("{kept:?}") };
    assert_eq!(same.blob, attachment.blob);
    let text = front.ask(Request::KeepFile { path: "README.md".into() }).await;
    assert!(text.unwrap_err().to_string().contains("the model can read it"));
    assert!(front.ask(Request::KeepFile { path: "none.png".into() }).await.is_err());
}

#[tokio::test]
async fn no_key_is_told_to_anybody() {
    let mut front = Front::new(&[], "");
    for key in ["sk hidden", "", "sk-hidden\u{7}"] {
        let login = Request::Login { provider: "scripted".into(), key: Key(key.to_owned()) };
        let refused = front.ask(login).await.unwrap_err();
        assert!(!format!("{refused:?}").contains("hidden"), "{refused:?}");
    }
    let login = Request::Login { provider: "nobody".into(), key: Key("sk-hidden".into()) };
    let refused = front.ask(login).await.unwrap_err();
    assert!(!format!("{refused:?}{:?}", front.heard).contains("hidden"), "{refused:?}");
}

#[tokio::test]
async fn what_is_noted_is_told_once() {
    let mut front = Front::new(&[], "");
    for _ in 0..3 {
        front.notes.send("note: the sandbox is off".to_owned()).unwrap();
    }
    front.notes.send("something else".to_owned()).unwrap();
    let mut told = Vec::new();
    while told.len() < 2 {
        if let Down::Note { text } = front.hear().await {
            told.push(text);
        }
    }
    assert_eq!(told, ["the sandbox is off", "something else"]);
}

#[tokio::test]
async fn a_front_end_that_reads_nothing_can_still_ask() {
    // Its messages fill up; its requests are taken all the same.
    let mut front = Front::new(&["say Hi"], "");
    let session = front.begin().await;
    for _ in 0..300 {
        front.send(Request::Standing).await;
    }
    let op = Op::Rename { title: "later".into() };
    let last = front.send(Request::Do { session, op }).await;
    assert_eq!(front.answer(last).await, Ok(Answered::Done));
}

#[tokio::test]
async fn a_session_that_does_not_exist_is_not_written() {
    let mut front = Front::new(&[], "");
    let session = "0192f0c4-7e2a-7d1b-8a34-1f2e3d4c5b6a".parse().unwrap();
    assert!(front.ask(Request::Export { session, form: Form::Page }).await.is_err());
}
