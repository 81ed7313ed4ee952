//! Tests of the first run: trust, choosing a model, entering an API key, and their failures.

use super::super::Panel;
use super::super::onboarding::{OnboardingPanel, OnboardingPurpose};
use super::super::trust::TrustPanel;
use crate::app::{App, AppEvent, TuiOptions};
use crate::keys::UiCommand;
use crate::questions::tests::{buffer_text, key_event};
use crate::session_state::SessionState;
use crate::ui_context::{Appearance, UiContext, UiEffect};
use expect_test::{Expect, expect};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostMessage, HostResponse, HostStatus, LoginResult, ModelChoiceScope,
    ProviderKey, ProviderListItem, TrustState,
};
use windlass_protocol::{
    Event, Fact, FactRecord, Fault, PermissionMode, SessionId, TrustDecision, TrustReview,
    TurnEndReason, UnixMillis,
};

/// An `App` that has just started, with a clock and its effects.
struct TestStartupApp {
    app: App,
    now: u64,
    ui_effects: Vec<UiEffect>,
}

fn session() -> SessionId {
    SessionId(uuid::Uuid::from_u128(1))
}

impl TestStartupApp {
    fn new(model: Option<&str>, trust: TrustState) -> TestStartupApp {
        TestStartupApp::with(model, trust, None)
    }

    fn with(model: Option<&str>, trust: TrustState, prompt: Option<&str>) -> TestStartupApp {
        let prompt = prompt.map(str::to_owned);
        let (app, ui_effects) = App::new(TuiOptions { prompt, ..TuiOptions::default() }, 0);
        let mut env = TestStartupApp { app, now: 10_000, ui_effects };
        env.reply(Ok(status(model, trust)), |request| *request == FrontendRequest::status());
        env
    }

    fn update(&mut self, event: AppEvent) {
        let ui_effects = self.app.update(event, self.now);
        self.ui_effects.extend(ui_effects);
    }

    fn reply(
        &mut self,
        response: Result<HostResponse, Fault>,
        matches: impl Fn(&FrontendRequest) -> bool,
    ) {
        let position = self.ui_effects.iter().rposition(|effect| match effect {
            UiEffect::Send(message) => matches(&message.request),
            _ => false,
        });
        let UiEffect::Send(message) = self.ui_effects.remove(position.unwrap()) else { panic!() };
        self.update(AppEvent::HostMessage(Box::new(HostMessage::Response {
            id: message.id,
            response,
        })));
    }

    fn requests(&self) -> Vec<&FrontendRequest> {
        let sent = self.ui_effects.iter().filter_map(|effect| match effect {
            UiEffect::Send(message) => Some(&message.request),
            _ => None,
        });
        sent.collect()
    }

    fn press(&mut self, keys: &[&str]) {
        for key in keys {
            self.now += 800;
            self.update(AppEvent::Key(key_event(key)));
        }
    }

    fn frame(&mut self) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        self.app.draw(&mut buffer);
        buffer_text(&buffer)
    }
}

fn status(model: Option<&str>, trust: TrustState) -> HostResponse {
    let status = HostStatus {
        workspace: "~/code/harbour".into(),
        model: model.map(str::to_owned),
        trust,
        ..HostStatus::default()
    };
    HostResponse::Status { status: Box::new(status) }
}

fn provider_options() -> Vec<ProviderListItem> {
    let option = |provider: &str, evidence: &str, is_ready, models: &[&str]| ProviderListItem {
        provider: provider.into(),
        display_name: if provider == "openai" { "OpenAI".into() } else { String::new() },
        evidence: evidence.into(),
        is_ready,
        takes_key: provider != "ollama",
        models: models.iter().map(|model| (*model).to_owned()).collect(),
    };
    vec![
        option("openai", "needs a key; platform.openai.com makes them", false, &["openai/gpt-5"]),
        option("anthropic", "ANTHROPIC_API_KEY is set", true, &["anthropic/claude-sonnet-4-5"]),
        option("ollama", "ollama answers at 127.0.0.1:11434", true, &["ollama/qwen3-coder"]),
    ]
}

fn requested_actions() -> Vec<String> {
    vec![
        ".windlass/config.json".into(),
        "mcp/git: npx -y @example/git-server --all".into(),
        "hook/guard: sh .windlass/guard.sh\n t trust this folder".into(),
    ]
}

fn review(requested_actions: Vec<String>, changes: Option<Vec<String>>) -> TrustReview {
    TrustReview {
        digest: String::new(),
        requested_actions,
        changes,
        trusted_mode: PermissionMode::Auto,
        untrusted_mode: PermissionMode::Ask,
        is_home: false,
    }
}

fn review_response(actions: Vec<String>, changes: Option<Vec<String>>) -> HostResponse {
    HostResponse::TrustReview { review: Box::new(review(actions, changes)) }
}

/// Compares the frames of a panel at three sizes.
fn assert_frames(panel: &mut dyn Panel, expected: &Expect) {
    let state = SessionState {
        host_status: HostStatus { workspace: "~/code/harbour".into(), ..HostStatus::default() },
        ..SessionState::default()
    };
    let mut frames = String::new();
    for (width, height) in [(80, 20), (40, 8), (120, 26)] {
        let height = panel.height(width, &state).min(height);
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        panel.draw(buffer.area, &mut buffer, &Appearance::default(), &state);
        frames.push_str(&format!("{width}: {}\n{}", panel.title(), buffer_text(&buffer)));
    }
    expected.assert_eq(&frames);
}

/// Runs `action` with the `UiContext` of a panel without an `App`.
fn with_context<T>(action: impl FnOnce(&mut UiContext<'_>) -> T) -> T {
    let (mut appearance, state) = (Appearance::default(), SessionState::default());
    let (mut commands, mut ui_effects, mut next_request_id) = (Vec::new(), Vec::new(), 0);
    action(&mut UiContext {
        appearance: &mut appearance,
        state: &state,
        now: 10_000,
        commands: &mut commands,
        effects: &mut ui_effects,
        next_request_id: &mut next_request_id,
    })
}

#[test]
fn requested_actions_of_a_new_folder_are_listed_before_the_trust_question() {
    assert_frames(
        &mut TrustPanel::with_review(review(requested_actions(), None), 0),
        &expect![[r#"
            80: Do you trust this folder?
             ~/code/harbour contains files that Windlass would run or the model would
             follow:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust this folder

             If you trust this folder, Windlass runs and follows this, and starts language
             servers and formatters for its files, until a setting changes. AGENTS.md may
             change without a new question.
             In mode auto, edits in this folder and sandboxed commands run without asking.
             In mode ask, you approve them.
             If you do not, its settings and AGENTS.md are ignored and the mode stays ask.
             Then you are asked again when other settings appear in it.

               1. Trust this folder and work in mode auto (t)
               2. Trust this folder and keep asking (a)
               3. Do not trust this folder (n)
            40: Do you trust this folder?
             ~/code/harbour contains files that
             Windlass would run or the model would
                  22 more rows; press Down
               1. Trust this folder and work in mode
                  auto (t)
               2. Trust this folder and keep asking
                  (a)
               3. Do not trust this folder (n)
            120: Do you trust this folder?
             ~/code/harbour contains files that Windlass would run or the model would follow:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust this folder

             If you trust this folder, Windlass runs and follows this, and starts language servers and formatters for its files,
             until a setting changes. AGENTS.md may change without a new question.
             In mode auto, edits in this folder and sandboxed commands run without asking. In mode ask, you approve them.
             If you do not, its settings and AGENTS.md are ignored and the mode stays ask.
             Then you are asked again when other settings appear in it.

               1. Trust this folder and work in mode auto (t)
               2. Trust this folder and keep asking (a)
               3. Do not trust this folder (n)
        "#]],
    );
}

#[test]
fn changes_since_trust_come_first() {
    let changes = Some(vec!["changed: .windlass/guard.sh".into(), "new: mcp/git".into()]);
    assert_frames(
        &mut TrustPanel::with_review(review(requested_actions(), changes), 0),
        &expect![[r#"
            80: This folder has changed since you trusted it
             Changed since you trusted it:
             now  │ changed: .windlass/guard.sh
                  │ new: mcp/git

             ~/code/harbour contains files that Windlass would run or the model would
             follow:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust this folder

             If you trust this folder, Windlass runs and follows this, and starts language
             servers and formatters for its files, until a setting changes. AGENTS.md may
             change without a new question.
             In mode auto, edits in this folder and sandboxed commands run without asking.
             In mode ask, you approve them.
             If you do not, its settings and AGENTS.md are ignored and the mode stays ask.
             Then you are asked again at the next start.
               1. Trust this folder and work in mode auto (t)
               2. Trust this folder and keep asking (a)
               3. Not now (n)
            40: This folder has changed since you trusted it
             Changed since you trusted it:
             now  │ changed: .windlass/guard.sh
                  26 more rows; press Down
               1. Trust this folder and work in mode
                  auto (t)
               2. Trust this folder and keep asking
                  (a)
               3. Not now (n)
            120: This folder has changed since you trusted it
             Changed since you trusted it:
             now  │ changed: .windlass/guard.sh
                  │ new: mcp/git

             ~/code/harbour contains files that Windlass would run or the model would follow:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust this folder

             If you trust this folder, Windlass runs and follows this, and starts language servers and formatters for its files,
             until a setting changes. AGENTS.md may change without a new question.
             In mode auto, edits in this folder and sandboxed commands run without asking. In mode ask, you approve them.
             If you do not, its settings and AGENTS.md are ignored and the mode stays ask.
             Then you are asked again at the next start.

               1. Trust this folder and work in mode auto (t)
               2. Trust this folder and keep asking (a)
               3. Not now (n)
        "#]],
    );
}

#[test]
fn a_folder_is_trusted_only_by_its_key_after_a_pause_in_typing() {
    let is_review = |request: &FrontendRequest| *request == FrontendRequest::ReviewTrust;
    let mut env = TestStartupApp::new(Some("a/b"), TrustState::NotAsked);
    env.reply(Ok(review_response(requested_actions(), None)), is_review);
    assert!(env.frame().contains("Do you trust this folder?"), "{}", env.frame());
    for character in "start the tests, then".chars() {
        env.now += 50;
        env.update(AppEvent::Key(key_event(&character.to_string())));
    }
    env.update(AppEvent::Key(key_event("enter")));
    env.update(AppEvent::Paste("t".into()));
    assert!(
        !env.requests().iter().any(|request| matches!(request, FrontendRequest::SetTrust { .. }))
    );
    env.press(&["t"]);
    assert!(env.frame().contains("start the tests, thent"), "{}", env.frame());
    assert!(
        !env.requests().iter().any(|request| matches!(request, FrontendRequest::SetTrust { .. }))
    );
    env.press(&["down", "enter"]);
    assert!(
        env.requests()
            .contains(&&FrontendRequest::SetTrust { decision: TrustDecision::Trust, seen: None })
    );
    let is_set_trust =
        |request: &FrontendRequest| matches!(request, FrontendRequest::SetTrust { .. });
    env.reply(Ok(status(Some("a/b"), TrustState::Trusted)), is_set_trust);
    assert!(env.frame().contains("This folder is trusted until"), "{}", env.frame());
    assert!(!env.frame().contains("Do you trust"), "{}", env.frame());
}

#[test]
fn trusted_settings_are_shown_and_trust_is_revoked_only_by_its_key() {
    assert_frames(
        &mut TrustPanel::with_review(review(requested_actions(), Some(Vec::new())), 0),
        &expect![[r#"
            80: Trust
             ~/code/harbour contains files that Windlass runs or the model follows:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust this folder

             The folder is trusted until its settings change.
             If you revoke trust, Windlass stops the programs it started for this folder,
             ignores its settings and AGENTS.md, reads its files only as text, and asks
             before changes unless your config sets another mode.

                  r revoke trust   Esc close
            40: Trust
             ~/code/harbour contains files that
             Windlass runs or the model follows:
                  │ .windlass/config.json
                  │ mcp/git: npx -y
                  │ @example/git-server --all
                  │ hook/guard: sh
                  11 more rows; press Down
                  r revoke trust   Esc close
            120: Trust
             ~/code/harbour contains files that Windlass runs or the model follows:
                  │ .windlass/config.json
                  │ mcp/git: npx -y @example/git-server --all
                  │ hook/guard: sh .windlass/guard.sh⏎ t trust this folder

             The folder is trusted until its settings change.
             If you revoke trust, Windlass stops the programs it started for this folder, ignores its settings and AGENTS.md, reads
             its files only as text, and asks before changes unless your config sets another mode.

                  r revoke trust   Esc close
        "#]],
    );
    let mut env = TestStartupApp::new(Some("a/b"), TrustState::Trusted);
    let sets_trust =
        |request: &&FrontendRequest| matches!(request, FrontendRequest::SetTrust { .. });
    let open = |env: &mut TestStartupApp| {
        env.ui_effects.extend(env.app.perform_at(UiCommand::Trust, "", env.now));
        env.reply(Ok(review_response(requested_actions(), Some(Vec::new()))), |request| {
            *request == FrontendRequest::ReviewTrust
        });
    };
    open(&mut env);
    env.update(AppEvent::Key(key_event("r")));
    env.press(&["t", "n", "y", "enter", "esc"]);
    open(&mut env);
    env.press(&["esc"]);
    assert_eq!(env.requests().into_iter().filter(sets_trust).count(), 0);
    open(&mut env);
    env.press(&["r", "r"]);
    assert_eq!(env.requests().into_iter().filter(sets_trust).count(), 1);
    assert!(
        env.requests()
            .contains(&&FrontendRequest::SetTrust { decision: TrustDecision::Decline, seen: None })
    );
    let is_set_trust =
        |request: &FrontendRequest| matches!(request, FrontendRequest::SetTrust { .. });
    env.reply(Ok(status(Some("a/b"), TrustState::Declined)), is_set_trust);
    assert!(env.frame().contains("This folder is no longer trusted"), "{}", env.frame());
}

#[test]
fn no_declines_trust() {
    let mut env = TestStartupApp::new(Some("a/b"), TrustState::ChangedSinceTrust);
    let response = review_response(requested_actions(), Some(vec!["new: mcp/git".into()]));
    env.reply(Ok(response), |request| *request == FrontendRequest::ReviewTrust);
    env.press(&["n"]);
    assert!(
        env.requests()
            .contains(&&FrontendRequest::SetTrust { decision: TrustDecision::Decline, seen: None })
    );
    assert!(!env.frame().contains("has changed since"), "{}", env.frame());
}

#[test]
fn ctrl_c_and_esc_decide_nothing_about_trust() {
    for key in ["ctrl+c", "esc"] {
        let mut env = TestStartupApp::new(Some("a/b"), TrustState::NotAsked);
        let response = review_response(requested_actions(), None);
        env.reply(Ok(response), |request| *request == FrontendRequest::ReviewTrust);
        env.press(&[key]);
        assert!(!env.frame().contains("Do you trust"), "{}", env.frame());
        let sets_trust =
            |request: &&FrontendRequest| matches!(request, FrontendRequest::SetTrust { .. });
        assert_eq!(env.requests().into_iter().filter(sets_trust).count(), 0, "{key}");
    }
}

#[test]
fn an_esc_typed_before_the_trust_question_does_not_close_it() {
    let mut env = TestStartupApp::new(Some("a/b"), TrustState::NotAsked);
    let response = review_response(requested_actions(), None);
    env.reply(Ok(response), |request| *request == FrontendRequest::ReviewTrust);
    env.now += 100;
    env.update(AppEvent::Key(key_event("esc")));
    assert!(env.frame().contains("Do you trust"), "{}", env.frame());
    env.press(&["esc"]);
    assert!(!env.frame().contains("Do you trust"), "{}", env.frame());
}

#[test]
fn every_new_folder_asks_for_trust_once() {
    let is_review = |request: &FrontendRequest| *request == FrontendRequest::ReviewTrust;
    let mut env = TestStartupApp::new(Some("a/b"), TrustState::NotAsked);
    env.reply(Ok(review_response(Vec::new(), None)), is_review);
    let frame = env.frame();
    for words in ["Do you trust", "contains no settings", "1. Trust this folder and work in"] {
        assert!(frame.contains(words), "{words}: {frame}");
    }
    for trust in [TrustState::Trusted, TrustState::Declined] {
        assert!(
            !TestStartupApp::new(Some("a/b"), trust)
                .requests()
                .contains(&&FrontendRequest::ReviewTrust)
        );
    }
}

#[test]
fn the_trust_question_is_a_list_and_enter_takes_only_a_row_that_was_walked_to() {
    let decision_for = |keys: &[&str]| {
        let mut env = TestStartupApp::new(Some("a/b"), TrustState::NotAsked);
        env.reply(Ok(review_response(requested_actions(), None)), |request| {
            *request == FrontendRequest::ReviewTrust
        });
        env.press(keys);
        env.requests().iter().find_map(|request| match request {
            FrontendRequest::SetTrust { decision, seen: None } => Some(*decision),
            _ => None,
        })
    };
    assert_eq!(decision_for(&["enter", "enter"]), None);
    assert_eq!(decision_for(&["down", "enter"]), Some(TrustDecision::Trust));
    assert_eq!(decision_for(&["down", "down", "enter"]), Some(TrustDecision::TrustAndAsk));
    assert_eq!(decision_for(&["2"]), Some(TrustDecision::TrustAndAsk));
    assert_eq!(decision_for(&["a"]), Some(TrustDecision::TrustAndAsk));
    assert_eq!(decision_for(&["up", "enter"]), Some(TrustDecision::Decline));
    assert_eq!(decision_for(&["3"]), Some(TrustDecision::Decline));
    assert_eq!(decision_for(&["x", "t"]), None, "text for the prompt answers nothing");
}

#[test]
fn the_home_folder_is_offered_with_a_warning_and_no_first() {
    let review = TrustReview { is_home: true, ..review(Vec::new(), None) };
    let mut panel = TrustPanel::with_review(review, 0);
    let state = SessionState::default();
    let mut buffer = Buffer::empty(Rect::new(0, 0, 80, panel.height(80, &state)));
    panel.draw(buffer.area, &mut buffer, &Appearance::default(), &state);
    let frame = buffer_text(&buffer);
    assert!(frame.contains("This is your home folder"), "{frame}");
    assert!(frame.contains("1. Do not trust this folder (n)"), "{frame}");
}

#[test]
fn the_first_prompt_waits_for_the_trust_question() {
    for (key, is_trusted) in [("t", true), ("n", false)] {
        let mut env = TestStartupApp::with(Some("a/b"), TrustState::NotAsked, Some("hello"));
        env.reply(Ok(review_response(Vec::new(), None)), |request| {
            *request == FrontendRequest::ReviewTrust
        });
        let starts_session =
            |request: &&FrontendRequest| matches!(request, FrontendRequest::NewSession { .. });
        assert_eq!(env.requests().iter().filter(|it| starts_session(it)).count(), 0);
        env.press(&[key]);
        if is_trusted {
            env.reply(Ok(status(Some("a/b"), TrustState::Trusted)), |request| {
                matches!(request, FrontendRequest::SetTrust { .. })
            });
        }
        assert_eq!(env.requests().iter().filter(|it| starts_session(it)).count(), 1, "{key}");
    }
}

#[test]
fn the_first_run_shows_that_it_looks_for_providers() {
    let mut panel = with_context(|cx| OnboardingPanel::new(OnboardingPurpose::ChooseModel, cx));
    assert_frames(
        &mut panel,
        &expect![[r#"
        80: Welcome to Windlass
         Looking for API keys in the environment and for local model servers.

              Esc skip
        40: Welcome to Windlass
         Looking for API keys in the environment
         and for local model servers.

              Esc skip
        120: Welcome to Windlass
         Looking for API keys in the environment and for local model servers.

              Esc skip
    "#]],
    );
}

#[test]
fn ready_providers_come_first() {
    let mut panel = with_context(|cx| {
        let mut panel = OnboardingPanel::new(OnboardingPurpose::ChooseModel, cx);
        assert!(panel.on_response(
            1,
            &Ok(HostResponse::Providers { providers: provider_options() }),
            cx
        ));
        panel
    });
    assert_frames(
        &mut panel,
        &expect![[r#"
            80: Welcome to Windlass
             Choose a model.
             type to filter

             › anthropic/claude-sonnet-4-5       ANTHROPIC_API_KEY is set
               ollama/qwen3-coder                ollama answers at 127.0.0.1:11434

               OpenAI                            needs a key
               Another OpenAI-compatible server  name, URL and key

                  Enter select   Ctrl+R rescan   Esc skip
            40: Welcome to Windlass
             Choose a model.
             type to filter

             › anthropic/claude-so…  ANTHROPIC_API_…
               ollama/qwen3-coder    ollama answers…
                  3 more rows; press Down
                  Enter select  Ctrl+R rescan
                  Esc skip
            120: Welcome to Windlass
             Choose a model.
             type to filter

             › anthropic/claude-sonnet-4-5       ANTHROPIC_API_KEY is set
               ollama/qwen3-coder                ollama answers at 127.0.0.1:11434

               OpenAI                            needs a key
               Another OpenAI-compatible server  name, URL and key

                  Enter select   Ctrl+R rescan   Esc skip
        "#]],
    );
}

#[test]
fn without_a_ready_provider_the_next_steps_are_shown() {
    for providers in [Vec::new(), vec![provider_options().remove(0)]] {
        let empty = providers.is_empty();
        let mut panel = with_context(|cx| {
            let mut panel = OnboardingPanel::new(OnboardingPurpose::ChooseModel, cx);
            assert!(panel.on_response(1, &Ok(HostResponse::Providers { providers }), cx));
            panel
        });
        if empty {
            assert_frames(
                &mut panel,
                &expect![[r#"
                    80: Welcome to Windlass
                     No model is available yet: no API key found, and no local model server is
                     running.
                     Quit, set a variable such as ANTHROPIC_API_KEY, and start again. Or start a
                     local server, such as `ollama serve`, and press Ctrl+R.
                     type to filter

                     › Another OpenAI-compatible server  name, URL and key

                          Enter select   Ctrl+R rescan   Esc skip
                    40: Welcome to Windlass
                     start a local server, such as `ollama
                     serve`, and press Ctrl+R.
                     type to filter

                     › Another OpenAI-comp…  name, URL and …
                          end of list
                          Enter select  Ctrl+R rescan
                          Esc skip
                    120: Welcome to Windlass
                     No model is available yet: no API key found, and no local model server is running.
                     Quit, set a variable such as ANTHROPIC_API_KEY, and start again. Or start a local server, such as `ollama serve`, and
                     press Ctrl+R.
                     type to filter

                     › Another OpenAI-compatible server  name, URL and key

                          Enter select   Ctrl+R rescan   Esc skip
                "#]],
            );
        } else {
            assert_frames(
                &mut panel,
                &expect![[r#"
                    80: Welcome to Windlass
                     No model is available yet: no API key found, and no local model server is
                     running.
                     Choose a provider below and enter its API key. Or quit, set a variable such as
                     ANTHROPIC_API_KEY, and start again. Or start a local server, such as `ollama
                     serve`, and press Ctrl+R.
                     type to filter

                     › OpenAI                            needs a key; platform.openai.com makes them
                       Another OpenAI-compatible server  name, URL and key

                          Enter select   Ctrl+R rescan   Esc skip
                    40: Welcome to Windlass
                     Or start a local server, such as
                     `ollama serve`, and press Ctrl+R.
                     type to filter

                     › OpenAI                needs a key; p…
                          1 more row; press Down
                          Enter select  Ctrl+R rescan
                          Esc skip
                    120: Welcome to Windlass
                     No model is available yet: no API key found, and no local model server is running.
                     Choose a provider below and enter its API key. Or quit, set a variable such as ANTHROPIC_API_KEY, and start again. Or
                     start a local server, such as `ollama serve`, and press Ctrl+R.
                     type to filter

                     › OpenAI                            needs a key; platform.openai.com makes them
                       Another OpenAI-compatible server  name, URL and key

                          Enter select   Ctrl+R rescan   Esc skip
                "#]],
            );
        }
    }
}

#[test]
fn a_typed_api_key_is_hidden() {
    let mut panel = with_context(|cx| {
        let mut panel = OnboardingPanel::open_login("anthropic", cx);
        panel.on_paste(" sk-secret-1\n", cx);
        panel.on_key(&key_event("2"), cx);
        assert!(!format!("{panel:?}").contains("secret"));
        panel
    });
    assert_frames(
        &mut panel,
        &expect![[r#"
        80: Log in
         API key for anthropic.
         Paste it here (hidden). Stored on this machine; sent only to the provider.

         › ••••••••••••

              Enter save   Esc go back
        40: Log in
         API key for anthropic.
         Paste it here (hidden). Stored on this
         machine; sent only to the provider.

         › ••••••••••••

              Enter save   Esc go back
        120: Log in
         API key for anthropic.
         Paste it here (hidden). Stored on this machine; sent only to the provider.

         › ••••••••••••

              Enter save   Esc go back
    "#]],
    );
}

#[test]
fn an_api_key_that_cannot_be_saved_is_requested_again() {
    let mut panel = with_context(|cx| {
        let mut panel = OnboardingPanel::open_login("nobody", cx);
        panel.on_paste("sk-1", cx);
        panel.on_key(&key_event("enter"), cx);
        let fault = Fault::Config { message: "there is no provider `nobody`".into() };
        assert!(panel.on_response(2, &Err(fault), cx));
        panel
    });
    assert!(!panel.is_done());
    assert_frames(
        &mut panel,
        &expect![[r#"
            80: Log in
             API key for nobody.
             Paste it here (hidden). Stored on this machine; sent only to the provider.

             ›
             there is no provider `nobody`. Use /doctor to check the installation.

                  Enter save   Esc go back
            40: Log in
             API key for nobody.
             Paste it here (hidden). Stored on this
             machine; sent only to the provider.

             ›
             there is no provider `nobody`. Use
             /doctor to check the installation.
                  Enter save   Esc go back
            120: Log in
             API key for nobody.
             Paste it here (hidden). Stored on this machine; sent only to the provider.

             ›
             there is no provider `nobody`. Use /doctor to check the installation.

                  Enter save   Esc go back
        "#]],
    );
}

#[test]
fn choosing_a_model_on_the_first_run_fills_in_a_prompt_without_sending_it() {
    let is_discovery = |request: &FrontendRequest| *request == FrontendRequest::DiscoverProviders;
    let mut env = TestStartupApp::new(None, TrustState::Trusted);
    env.reply(Ok(HostResponse::Providers { providers: provider_options() }), is_discovery);
    env.press(&["down", "enter"]);
    let set_model = FrontendRequest::SetModel {
        model: "ollama/qwen3-coder".into(),
        persist: ModelChoiceScope::Config,
    };
    assert!(env.requests().contains(&&set_model), "{:?}", env.requests());
    let is_set_model =
        |request: &FrontendRequest| matches!(request, FrontendRequest::SetModel { .. });
    env.reply(Ok(status(Some("ollama/qwen3-coder"), TrustState::Trusted)), is_set_model);
    let frame = env.frame();
    assert!(!frame.contains("Welcome") && frame.contains("Explain what this project"), "{frame}");
    assert!(
        !env.requests().iter().any(|request| matches!(request, FrontendRequest::NewSession { .. })),
        "the prompt is not sent"
    );
}

#[test]
fn the_only_provider_with_a_key_is_used_without_a_question() {
    let is_discovery = |request: &FrontendRequest| *request == FrontendRequest::DiscoverProviders;
    let is_set_model =
        |request: &FrontendRequest| matches!(request, FrontendRequest::SetModel { .. });
    let option = |provider: &str, takes_key| ProviderListItem {
        provider: provider.into(),
        display_name: provider.into(),
        evidence: "A_KEY is set".into(),
        is_ready: true,
        takes_key,
        models: vec![format!("{provider}/best"), format!("{provider}/other")],
    };
    let asks = |providers| {
        let mut env = TestStartupApp::new(None, TrustState::Trusted);
        env.reply(Ok(HostResponse::Providers { providers }), is_discovery);
        let sets_model = env.requests().into_iter().any(is_set_model);
        (env, !sets_model)
    };
    let (mut env, asked) = asks(vec![option("a", true)]);
    assert!(!asked);
    env.reply(Ok(status(Some("a/best"), TrustState::Trusted)), is_set_model);
    let frame = env.frame();
    assert!(!frame.contains("Welcome"), "{frame}");
    assert!(frame.contains("Using a/best (A_KEY is set); /model chooses another"), "{frame}");
    // A local server, or two providers, are a choice of the user.
    assert!(asks(vec![option("local", false)]).1);
    assert!(asks(vec![option("a", true), option("b", true)]).1);
    // If it cannot be used, the list is open.
    let (mut env, _) = asks(vec![option("a", true)]);
    env.reply(Err(Fault::Config { message: "no such model".into() }), is_set_model);
    assert!(env.frame().contains("no such model") && env.frame().contains("Choose a model."));
}

#[test]
fn an_api_key_entered_on_the_first_run_is_saved_and_providers_are_rescanned() {
    let is_discovery = |request: &FrontendRequest| *request == FrontendRequest::DiscoverProviders;
    let mut env = TestStartupApp::new(None, TrustState::Trusted);
    env.reply(
        Ok(HostResponse::Providers { providers: vec![provider_options().remove(0)] }),
        is_discovery,
    );
    env.press(&["enter", "s", "k", "enter"]);
    let login = |save_rejected| FrontendRequest::Login {
        provider: "openai".into(),
        key: ProviderKey("sk".into()),
        save_rejected,
    };
    assert!(env.requests().contains(&&login(false)), "{:?}", env.requests());
    let is_login = |request: &FrontendRequest| matches!(request, FrontendRequest::Login { .. });
    let answer = |result| Ok(HostResponse::Login { result });
    env.reply(answer(LoginResult::Rejected { reason: "no such key".into() }), is_login);
    assert!(env.frame().contains("Not saved: no such key"), "{}", env.frame());
    env.press(&["enter"]);
    assert!(env.requests().contains(&&login(true)), "{:?}", env.requests());
    env.reply(answer(LoginResult::SavedUnchecked { reason: "you chose".into() }), is_login);
    env.reply(Ok(HostResponse::Providers { providers: provider_options() }), is_discovery);
    assert!(env.frame().contains("Choose a model."), "{}", env.frame());
}

#[test]
fn an_unusable_model_or_no_network_keeps_the_choice_open() {
    let is_discovery = |request: &FrontendRequest| *request == FrontendRequest::DiscoverProviders;
    let fault = || Fault::Network { message: "no route".into() };
    let mut env = TestStartupApp::new(None, TrustState::Trusted);
    env.reply(Err(fault()), is_discovery);
    assert!(env.frame().contains("no route") && env.frame().contains("Ctrl+R rescan"));
    let rescan = crate::keys::KeyStroke::parse("ctrl+r").unwrap().to_event();
    env.update(AppEvent::Key(rescan));
    env.reply(Ok(HostResponse::Providers { providers: provider_options() }), is_discovery);
    env.press(&["enter"]);
    env.reply(Err(fault()), |request| matches!(request, FrontendRequest::SetModel { .. }));
    assert!(env.frame().contains("no route"), "{}", env.frame());
    env.press(&["down", "enter"]);
    assert!(
        env.requests().iter().any(|request| matches!(request, FrontendRequest::SetModel { .. }))
    );
}

#[test]
fn the_initial_prompt_waits_for_a_model() {
    let mut env = TestStartupApp::with(None, TrustState::Trusted, Some("fix the tests"));
    assert!(
        !env.requests().iter().any(|request| matches!(request, FrontendRequest::NewSession { .. }))
    );
    env.press(&["esc"]);
    assert!(env.frame().contains("fix the tests"), "{}", env.frame());
}

#[test]
fn a_rejected_api_key_leads_to_login() {
    let mut env = TestStartupApp::new(Some("anthropic/claude"), TrustState::Trusted);
    env.press(&["h", "i", "enter"]);
    let session_opened = HostResponse::SessionOpened { session: session(), head: 0, model: None };
    env.reply(Ok(session_opened), |request| matches!(request, FrontendRequest::NewSession { .. }));
    let fault = Fault::Auth { message: "anthropic did not accept the key".into() };
    let fact = Fact::TurnEnded { turn: 1, end: TurnEndReason::Failed { fault } };
    let event = Event::Fact(FactRecord::new(session(), 1, UnixMillis(0), fact));
    env.update(AppEvent::HostMessage(Box::new(HostMessage::Event { event: Box::new(event) })));
    assert!(env.frame().contains("/login to save another API key"), "{}", env.frame());
}

#[test]
fn only_the_first_run_offers_servers_without_keys() {
    let rows = |purpose| {
        let mut panel = with_context(|cx| {
            let mut panel = OnboardingPanel::new(purpose, cx);
            let providers = provider_options();
            assert!(panel.on_response(1, &Ok(HostResponse::Providers { providers }), cx));
            panel
        });
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 20));
        panel.draw(buffer.area, &mut buffer, &Appearance::default(), &SessionState::default());
        buffer_text(&buffer)
    };
    let login = rows(OnboardingPurpose::Login);
    assert!(login.contains("anthropic") && login.contains("OpenAI"), "{login}");
    assert!(!login.contains("ollama"), "{login}");
    assert!(rows(OnboardingPurpose::ChooseModel).contains("ollama"));
}

#[test]
fn typing_filters_providers_and_a_rejected_key_is_replaced_by_the_next_paste() {
    let mut panel = with_context(|cx| {
        let mut panel = OnboardingPanel::new(OnboardingPurpose::Login, cx);
        let providers = provider_options();
        assert!(panel.on_response(1, &Ok(HostResponse::Providers { providers }), cx));
        for key in ["o", "p", "e", "n", "a"] {
            panel.on_key(&key_event(key), cx);
        }
        panel
    });
    assert_frames(
        &mut panel,
        &expect![[r#"
        80: Log in
         Which provider's API key do you want to add?
         opena

         › OpenAI                            needs a key; platform.openai.com makes them
           Another OpenAI-compatible server  name, URL and key

              Enter select   Ctrl+R rescan   Esc close
        40: Log in
         Which provider's API key do you want to
         add?
         opena

         › OpenAI                needs a key; p…
           Another OpenAI-comp…  name, URL and …
              Enter select  Ctrl+R rescan
              Esc close
        120: Log in
         Which provider's API key do you want to add?
         opena

         › OpenAI                            needs a key; platform.openai.com makes them
           Another OpenAI-compatible server  name, URL and key

              Enter select   Ctrl+R rescan   Esc close
    "#]],
    );
    with_context(|cx| {
        panel.on_key(&key_event("enter"), cx);
        panel.on_paste("sk-first", cx);
        panel.on_key(&key_event("enter"), cx);
        let result = LoginResult::Rejected { reason: "OpenAI rejected the API key".into() };
        assert!(panel.on_response(1, &Ok(HostResponse::Login { result }), cx));
        panel.on_paste("sk-2", cx);
    });
    assert_frames(
        &mut panel,
        &expect![[r#"
        80: Log in
         API key for OpenAI.
         Paste it here (hidden). Stored on this machine; sent only to the provider.

         › ••••

              Enter save   Esc go back
        40: Log in
         API key for OpenAI.
         Paste it here (hidden). Stored on this
         machine; sent only to the provider.

         › ••••

              Enter save   Esc go back
        120: Log in
         API key for OpenAI.
         Paste it here (hidden). Stored on this machine; sent only to the provider.

         › ••••

              Enter save   Esc go back
    "#]],
    );
}

#[test]
fn another_server_is_added_with_name_url_key_and_model() {
    let is_discovery = |request: &FrontendRequest| *request == FrontendRequest::DiscoverProviders;
    let mut env = TestStartupApp::new(None, TrustState::Trusted);
    env.reply(Ok(HostResponse::Providers { providers: Vec::new() }), is_discovery);
    env.press(&["enter", "w", "enter"]);
    env.update(AppEvent::Paste("https://models.example.com/v1".into()));
    env.press(&["enter", "q", "9", "enter", "enter"]);
    let add = FrontendRequest::AddProvider {
        name: "w".into(),
        base_url: "https://models.example.com/v1".into(),
        key: ProviderKey("q9".into()),
        model: String::new(),
    };
    assert!(env.requests().contains(&&add), "{:?}", env.requests());
    assert!(!env.frame().contains("q9"), "{}", env.frame());
    let is_add = |request: &FrontendRequest| matches!(request, FrontendRequest::AddProvider { .. });
    let result = LoginResult::Rejected { reason: "bad key".into() };
    env.reply(Ok(HostResponse::Login { result }), is_add);
    assert!(env.frame().contains("Not saved: bad key"), "{}", env.frame());
    env.press(&["enter"]);
    env.reply(Ok(HostResponse::Login { result: LoginResult::Saved }), is_add);
    assert!(env.requests().contains(&&FrontendRequest::DiscoverProviders), "it looks again");
}
