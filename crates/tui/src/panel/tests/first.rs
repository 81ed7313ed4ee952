//! The first run: trust, the choice of a model, a key; and what goes wrong there.

use super::super::Panel;
use super::super::trust::Trust;
use super::super::welcome::{Purpose, Welcome};
use crate::app::{App, Input, Options};
use crate::asked::tests::{key, text};
use crate::cx::{Act, Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use expect_test::{Expect, expect};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use windlass_protocol::wire::{Answered, Down, Found, Keep, Key, Request, Standing, Trusted};
use windlass_protocol::{Event, Fact, Fault, Millis, Record, SessionId, TurnEnd};

/// A screen that has just been started, and its host.
struct Start {
    app: App,
    now: u64,
    acts: Vec<Act>,
}

fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(1))
}

impl Start {
    fn new(model: Option<&str>, trust: Trusted) -> Start {
        Start::with(model, trust, None)
    }

    fn with(model: Option<&str>, trust: Trusted, prompt: Option<&str>) -> Start {
        let prompt = prompt.map(str::to_owned);
        let (app, acts) = App::new(Options { prompt, ..Options::default() }, 0);
        let mut start = Start { app, now: 10_000, acts };
        start.reply(Ok(standing(model, trust)), |request| *request == Request::Standing);
        start
    }

    fn input(&mut self, input: Input) {
        let acts = self.app.update(input, self.now);
        self.acts.extend(acts);
    }

    fn reply(&mut self, answer: Result<Answered, Fault>, to: impl Fn(&Request) -> bool) {
        let at = self.acts.iter().rposition(|act| match act {
            Act::Send(up) => to(&up.request),
            _ => false,
        });
        let Act::Send(up) = self.acts.remove(at.unwrap()) else { panic!() };
        self.input(Input::Down(Box::new(Down::Answer { id: up.id, answer })));
    }

    fn requests(&self) -> Vec<&Request> {
        let sent = self.acts.iter().filter_map(|act| match act {
            Act::Send(up) => Some(&up.request),
            _ => None,
        });
        sent.collect()
    }

    fn press(&mut self, keys: &[&str]) {
        for pressed in keys {
            self.now += 800;
            self.input(Input::Key(key(pressed)));
        }
    }

    fn frame(&mut self) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        self.app.draw(&mut buffer);
        text(&buffer)
    }
}

fn standing(model: Option<&str>, trust: Trusted) -> Answered {
    let standing = Standing {
        workspace: "~/code/harbour".into(),
        model: model.map(str::to_owned),
        trust,
        ..Standing::default()
    };
    Answered::Standing { standing: Box::new(standing) }
}

fn found() -> Vec<Found> {
    let one = |provider: &str, how: &str, ready, models: &[&str]| Found {
        provider: provider.into(),
        how: how.into(),
        ready,
        models: models.iter().map(|model| (*model).to_owned()).collect(),
    };
    vec![
        one("openai", "needs a key; platform.openai.com makes them", false, &["openai/gpt-5"]),
        one("anthropic", "ANTHROPIC_API_KEY is set", true, &["anthropic/claude-sonnet-4-5"]),
        one("ollama", "ollama answers at 127.0.0.1:11434", true, &["ollama/qwen3-coder"]),
    ]
}

fn would() -> Vec<String> {
    vec![
        ".windlass/config.json".into(),
        "mcp/git: npx -y @example/git-server --all".into(),
        "hook/guard: sh .windlass/guard.sh\n t trust it as it is now".into(),
    ]
}

/// The frames of a panel at three sizes.
fn frames(panel: &mut dyn Panel, expected: &Expect) {
    let known = Known {
        standing: Standing { workspace: "~/code/harbour".into(), ..Standing::default() },
        ..Known::default()
    };
    let mut all = String::new();
    for (width, height) in [(80, 20), (40, 8), (120, 26)] {
        let height = panel.height(width, &known).min(height);
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        panel.draw(buffer.area, &mut buffer, &Look::default(), &known);
        all.push_str(&format!("{width}: {}\n{}", panel.title(), text(&buffer)));
    }
    expected.assert_eq(&all);
}

/// A panel by itself.
fn alone<T>(work: impl FnOnce(&mut Cx<'_>) -> T) -> T {
    let (mut look, known) = (Look::default(), Known::default());
    let (mut commands, mut acts, mut next) = (Vec::new(), Vec::new(), 0);
    work(&mut Cx {
        look: &mut look,
        known: &known,
        now: 10_000,
        commands: &mut commands,
        acts: &mut acts,
        next: &mut next,
    })
}

#[test]
fn what_an_unknown_folder_would_run_is_listed_before_it_is_asked_about() {
    frames(
        &mut Trust::found(would(), None, 0),
        &expect![[r#"
            80: Do you trust this folder?
             ~/code/harbour would have Windlass run or obey:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust it as it is now

             If you trust it, this is started and obeyed, its AGENTS.md is read, and
             language servers and formatters are started for its files, until any of it
             changes.
             If you do not, its files are read as text and nothing else. Either way the
             model is allowed nothing by this: what it does is asked about and held by the
             sandbox as before.

                  t trust it as it is now   n not now
            40: Do you trust this folder?
             ~/code/harbour would have Windlass run
             or obey:
                  │ .windlass/config.json
                  │ mcp/git: npx -y
                  │ @example/git-server --all
                  │ hook/guard: sh
                  13 rows more; Down shows them
                  t trust it  n not now
            120: Do you trust this folder?
             ~/code/harbour would have Windlass run or obey:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust it as it is now

             If you trust it, this is started and obeyed, its AGENTS.md is read, and language servers and formatters are started
             for its files, until any of it changes.
             If you do not, its files are read as text and nothing else. Either way the model is allowed nothing by this: what it
             does is asked about and held by the sandbox as before.

                  t trust it as it is now   n not now
        "#]],
    );
}

#[test]
fn what_has_changed_comes_first() {
    let since = Some(vec!["changed: .windlass/guard.sh".into(), "new: mcp/git".into()]);
    frames(
        &mut Trust::found(would(), since, 0),
        &expect![[r#"
            80: This folder has changed since you trusted it
             Since you trusted it, this has changed:
             now  │ changed: .windlass/guard.sh
                  │ new: mcp/git

             ~/code/harbour would have Windlass run or obey:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust it as it is now

             If you trust it, this is started and obeyed, its AGENTS.md is read, and
             language servers and formatters are started for its files, until any of it
             changes.
             If you do not, its files are read as text and nothing else. Either way the
             model is allowed nothing by this: what it does is asked about and held by the
             sandbox as before.

                  t trust it as it is now   n not now
            40: This folder has changed since you trusted it
             Since you trusted it, this has
             changed:
             now  │ changed: .windlass/guard.sh
                  │ new: mcp/git

             ~/code/harbour would have Windlass run
                  18 rows more; Down shows them
                  t trust it  n not now
            120: This folder has changed since you trusted it
             Since you trusted it, this has changed:
             now  │ changed: .windlass/guard.sh
                  │ new: mcp/git

             ~/code/harbour would have Windlass run or obey:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust it as it is now

             If you trust it, this is started and obeyed, its AGENTS.md is read, and language servers and formatters are started
             for its files, until any of it changes.
             If you do not, its files are read as text and nothing else. Either way the model is allowed nothing by this: what it
             does is asked about and held by the sandbox as before.

                  t trust it as it is now   n not now
        "#]],
    );
}

#[test]
fn a_folder_is_trusted_only_by_its_key_and_after_a_calm_moment() {
    let look_at = |request: &Request| *request == Request::LookAtTrust;
    let mut start = Start::new(Some("a/b"), Trusted::Unasked);
    start.reply(Ok(Answered::Trust { would: would(), since: None }), look_at);
    assert!(start.frame().contains("Do you trust this folder?"), "{}", start.frame());
    for letter in "start the tests, then".chars() {
        start.now += 50;
        start.input(Input::Key(key(&letter.to_string())));
    }
    start.input(Input::Key(key("enter")));
    start.input(Input::Paste("t".into()));
    assert!(!start.requests().iter().any(|it| matches!(it, Request::Trust { .. })));
    start.press(&["t"]);
    assert!(start.requests().contains(&&Request::Trust { yes: true }));
    let trust = |request: &Request| matches!(request, Request::Trust { .. });
    start.reply(Ok(standing(Some("a/b"), Trusted::Yes)), trust);
    assert!(start.frame().contains("this folder is trusted until"), "{}", start.frame());
    assert!(!start.frame().contains("Do you trust"), "{}", start.frame());
}

#[test]
fn what_is_trusted_is_shown_and_taken_back_by_its_key_only() {
    let looked = || Answered::Trust { would: would(), since: Some(Vec::new()) };
    frames(
        &mut Trust::found(would(), Some(Vec::new()), 0),
        &expect![[r#"
        80: Trust
         ~/code/harbour has Windlass run or obey:
              │ .windlass/config.json
              │ mcp/git: npx -y @example/git-server --all
              │ hook/guard: sh .windlass/guard.sh⏎ t trust it as it is now

         It is trusted as it is now.
         If you take that back, what it started is ended and not started again, and its
         files are read as text and nothing else.

              r no longer trust it   esc closes
        40: Trust
         ~/code/harbour has Windlass run or
         obey:
              │ .windlass/config.json
              │ mcp/git: npx -y
              │ @example/git-server --all
              │ hook/guard: sh
              8 rows more; Down shows them
              r no longer trust it   esc closes
        120: Trust
         ~/code/harbour has Windlass run or obey:
              │ .windlass/config.json
              │ mcp/git: npx -y @example/git-server --all
              │ hook/guard: sh .windlass/guard.sh⏎ t trust it as it is now

         It is trusted as it is now.
         If you take that back, what it started is ended and not started again, and its files are read as text and nothing
         else.

              r no longer trust it   esc closes
    "#]],
    );
    let mut start = Start::new(Some("a/b"), Trusted::Yes);
    let take_back = |request: &&Request| matches!(request, Request::Trust { .. });
    let open = |start: &mut Start| {
        start.acts.extend(start.app.told(Command::Trust, "", start.now));
        start.reply(Ok(looked()), |request| *request == Request::LookAtTrust);
    };
    open(&mut start);
    start.input(Input::Key(key("r")));
    start.press(&["t", "n", "y", "enter", "esc"]);
    open(&mut start);
    start.press(&["esc"]);
    assert_eq!(start.requests().into_iter().filter(take_back).count(), 0);
    open(&mut start);
    start.press(&["r", "r"]);
    assert_eq!(start.requests().into_iter().filter(take_back).count(), 1);
    assert!(start.requests().contains(&&Request::Trust { yes: false }));
    let trust = |request: &Request| matches!(request, Request::Trust { .. });
    start.reply(Ok(standing(Some("a/b"), Trusted::No)), trust);
    assert!(start.frame().contains("this folder is no longer trusted"), "{}", start.frame());
}

#[test]
fn not_now_is_said_to_the_host_and_esc_means_the_same() {
    for pressed in ["n", "esc"] {
        let mut start = Start::new(Some("a/b"), Trusted::Changed);
        let answer = Answered::Trust { would: would(), since: Some(vec!["new: mcp/git".into()]) };
        start.reply(Ok(answer), |request| *request == Request::LookAtTrust);
        start.press(&[pressed]);
        assert!(start.requests().contains(&&Request::Trust { yes: false }), "{pressed}");
        assert!(!start.frame().contains("has changed since"), "{}", start.frame());
    }
}

#[test]
fn a_folder_that_would_run_nothing_is_only_noted_and_a_trusted_one_not_at_all() {
    let mut start = Start::new(Some("a/b"), Trusted::Unasked);
    let answer = Answered::Trust { would: Vec::new(), since: None };
    start.reply(Ok(answer), |request| *request == Request::LookAtTrust);
    assert!(!start.frame().contains("Do you trust"), "{}", start.frame());
    start.press(&["t"]);
    assert!(!start.requests().iter().any(|it| matches!(it, Request::Trust { .. })));
    for trust in [Trusted::Yes, Trusted::No] {
        assert!(!Start::new(Some("a/b"), trust).requests().contains(&&Request::LookAtTrust));
    }
}

#[test]
fn the_first_run_says_that_it_looks_around() {
    let mut panel = alone(|cx| Welcome::new(Purpose::First, cx));
    frames(
        &mut panel,
        &expect![[r#"
        80: Welcome to Windlass
         Looking for keys in the environment and for model servers on this machine.

              Esc later
        40: Welcome to Windlass
         Looking for keys in the environment and
         for model servers on this machine.

              Esc later
        120: Welcome to Windlass
         Looking for keys in the environment and for model servers on this machine.

              Esc later
    "#]],
    );
}

#[test]
fn what_can_be_asked_at_once_comes_first() {
    let mut panel = alone(|cx| {
        let mut panel = Welcome::new(Purpose::First, cx);
        assert!(panel.answer(1, &Ok(Answered::Found { found: found() }), cx));
        panel
    });
    frames(
        &mut panel,
        &expect![[r#"
            80: Welcome to Windlass
             A model does the work. Which one is asked?

             › anthropic/claude-sonnet-4-5  ANTHROPIC_API_KEY is set
               ollama/qwen3-coder           ollama answers at 127.0.0.1:11434

               openai                       needs a key

                  Enter takes the row   r looks again   Esc later
            40: Welcome to Windlass
             A model does the work. Which one is
             asked?

             › anthropic/claude-so…  ANTHROPIC_API_…
               ollama/qwen3-coder    ollama answers…

               openai                needs a key
                  Enter takes it  r again  Esc later
            120: Welcome to Windlass
             A model does the work. Which one is asked?

             › anthropic/claude-sonnet-4-5  ANTHROPIC_API_KEY is set
               ollama/qwen3-coder           ollama answers at 127.0.0.1:11434

               openai                       needs a key

                  Enter takes the row   r looks again   Esc later
        "#]],
    );
}

#[test]
fn with_nothing_to_ask_it_says_what_can_be_done() {
    for found in [Vec::new(), vec![found().remove(0)]] {
        let empty = found.is_empty();
        let mut panel = alone(|cx| {
            let mut panel = Welcome::new(Purpose::First, cx);
            assert!(panel.answer(1, &Ok(Answered::Found { found }), cx));
            panel
        });
        if empty {
            frames(
                &mut panel,
                &expect![[r#"
                    80: Welcome to Windlass
                     A model does the work, and none can be asked yet: no key is set, and no model
                     server answers on this machine.
                     Set a key such as ANTHROPIC_API_KEY in the environment and start again. Or
                     start a server, such as `ollama serve`, and look again.

                          r looks again   Esc later
                    40: Welcome to Windlass
                     A model does the work, and none can be
                     asked yet: no key is set, and no model
                     server answers on this machine.
                     Set a key such as ANTHROPIC_API_KEY in
                     the environment and start again. Or
                     start a server, such as `ollama serve`,
                     and look again.
                          r looks again   Esc later
                    120: Welcome to Windlass
                     A model does the work, and none can be asked yet: no key is set, and no model server answers on this machine.
                     Set a key such as ANTHROPIC_API_KEY in the environment and start again. Or start a server, such as `ollama serve`, and
                     look again.

                          r looks again   Esc later
                "#]],
            );
        } else {
            frames(
                &mut panel,
                &expect![[r#"
                    80: Welcome to Windlass
                     A model does the work, and none can be asked yet: no key is set, and no model
                     server answers on this machine.
                     Choose a provider below and give its key. Set a key such as ANTHROPIC_API_KEY
                     in the environment and start again. Or start a server, such as `ollama serve`,
                     and look again.

                     › openai  needs a key; platform.openai.com makes them

                          Enter takes the row   r looks again   Esc later
                    40: Welcome to Windlass
                     key. Set a key such as
                     ANTHROPIC_API_KEY in the environment
                     and start again. Or start a server,
                     such as `ollama serve`, and look again.

                     › openai  needs a key; platform.openai…
                          that is all
                          Enter takes it  r again  Esc later
                    120: Welcome to Windlass
                     A model does the work, and none can be asked yet: no key is set, and no model server answers on this machine.
                     Choose a provider below and give its key. Set a key such as ANTHROPIC_API_KEY in the environment and start again. Or
                     start a server, such as `ollama serve`, and look again.

                     › openai  needs a key; platform.openai.com makes them

                          Enter takes the row   r looks again   Esc later
                "#]],
            );
        }
    }
}

#[test]
fn a_key_is_written_unseen() {
    let mut panel = alone(|cx| {
        let mut panel = Welcome::login("anthropic", cx);
        panel.paste(" sk-secret-1\n", cx);
        panel.key(&key("2"), cx);
        assert!(!format!("{panel:?}").contains("secret"));
        panel
    });
    frames(
        &mut panel,
        &expect![[r#"
        80: Sign in
         The key of anthropic.
         Write or paste it; it is not shown. It is kept on this machine, and sent to
         nobody but the provider.

         › ••••••••••••

              Enter keeps it   Esc goes back
        40: Sign in
         The key of anthropic.
         Write or paste it; it is not shown. It
         is kept on this machine, and sent to
         nobody but the provider.

         › ••••••••••••

              Enter keeps it   Esc goes back
        120: Sign in
         The key of anthropic.
         Write or paste it; it is not shown. It is kept on this machine, and sent to nobody but the provider.

         › ••••••••••••

              Enter keeps it   Esc goes back
    "#]],
    );
}

#[test]
fn a_key_that_cannot_be_kept_is_asked_for_again() {
    let mut panel = alone(|cx| {
        let mut panel = Welcome::login("nobody", cx);
        panel.paste("sk-1", cx);
        panel.key(&key("enter"), cx);
        let fault = Fault::Config { message: "there is no provider `nobody`".into() };
        assert!(panel.answer(2, &Err(fault), cx));
        panel
    });
    assert!(!panel.done());
    frames(
        &mut panel,
        &expect![[r#"
            80: Sign in
             The key of nobody.
             Write or paste it; it is not shown. It is kept on this machine, and sent to
             nobody but the provider.

             ›
             there is no provider `nobody`. /doctor says what there is to work with.

                  Enter keeps it   Esc goes back
            40: Sign in
             The key of nobody.
             Write or paste it; it is not shown. It
             is kept on this machine, and sent to
             nobody but the provider.

             ›
                  2 rows more; Down shows them
                  Enter keeps it   Esc goes back
            120: Sign in
             The key of nobody.
             Write or paste it; it is not shown. It is kept on this machine, and sent to nobody but the provider.

             ›
             there is no provider `nobody`. /doctor says what there is to work with.

                  Enter keeps it   Esc goes back
        "#]],
    );
}

#[test]
fn the_first_run_leads_from_a_choice_to_a_prompt_that_waits_to_be_sent() {
    let look = |request: &Request| *request == Request::LookAround;
    let mut start = Start::new(None, Trusted::Yes);
    start.reply(Ok(Answered::Found { found: found() }), look);
    start.press(&["down", "enter"]);
    let wanted = Request::Model { model: "ollama/qwen3-coder".into(), keep: Keep::Always };
    assert!(start.requests().contains(&&wanted), "{:?}", start.requests());
    let model = |request: &Request| matches!(request, Request::Model { .. });
    start.reply(Ok(standing(Some("ollama/qwen3-coder"), Trusted::Yes)), model);
    let frame = start.frame();
    assert!(!frame.contains("Welcome") && frame.contains("Explain what this project"), "{frame}");
    assert!(!start.requests().iter().any(|it| matches!(it, Request::Begin { .. })), "not sent");
}

#[test]
fn a_key_given_on_the_first_run_is_kept_and_looked_around_with_again() {
    let look = |request: &Request| *request == Request::LookAround;
    let mut start = Start::new(None, Trusted::Yes);
    start.reply(Ok(Answered::Found { found: vec![found().remove(0)] }), look);
    start.press(&["enter", "s", "k", "enter"]);
    let wanted = Request::Login { provider: "openai".into(), key: Key("sk".into()) };
    assert!(start.requests().contains(&&wanted), "{:?}", start.requests());
    start.reply(Ok(Answered::Done), |request| matches!(request, Request::Login { .. }));
    start.reply(Ok(Answered::Found { found: found() }), look);
    assert!(start.frame().contains("Which one is asked?"), "{}", start.frame());
}

#[test]
fn a_model_that_cannot_be_used_and_no_network_leave_the_choice_open() {
    let look = |request: &Request| *request == Request::LookAround;
    let fault = || Fault::Network { message: "no route".into() };
    let mut start = Start::new(None, Trusted::Yes);
    start.reply(Err(fault()), look);
    assert!(start.frame().contains("no route") && start.frame().contains("r looks again"));
    start.press(&["r"]);
    start.reply(Ok(Answered::Found { found: found() }), look);
    start.press(&["enter"]);
    start.reply(Err(fault()), |request| matches!(request, Request::Model { .. }));
    assert!(start.frame().contains("no route"), "{}", start.frame());
    start.press(&["down", "enter"]);
    assert!(start.requests().iter().any(|it| matches!(it, Request::Model { .. })));
}

#[test]
fn what_was_to_be_said_first_waits_for_a_model() {
    let mut start = Start::with(None, Trusted::Yes, Some("fix the tests"));
    assert!(!start.requests().iter().any(|it| matches!(it, Request::Begin { .. })));
    start.press(&["esc"]);
    assert!(start.frame().contains("fix the tests"), "{}", start.frame());
}

#[test]
fn a_wrong_key_leads_to_login() {
    let mut start = Start::new(Some("anthropic/claude"), Trusted::Yes);
    start.press(&["h", "i", "enter"]);
    let opened = Answered::Opened { session: session(), head: 0 };
    start.reply(Ok(opened), |request| matches!(request, Request::Begin { .. }));
    let fault = Fault::Auth { message: "anthropic did not accept the key".into() };
    let fact = Fact::TurnEnded { turn: 1, end: TurnEnd::Failed { fault } };
    let event = Event::Fact(Record { session: session(), seq: 1, at: Millis(0), fact });
    start.input(Input::Down(Box::new(Down::Event { event: Box::new(event) })));
    assert!(start.frame().contains("/login keeps another key"), "{}", start.frame());
}
