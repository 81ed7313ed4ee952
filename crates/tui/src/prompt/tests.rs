//! Tests of the whole `PromptEditor`: keys, submissions and frames.

use super::{PromptAction, PromptEditor, Submission};
use crate::keys::UiCommand;
use crate::session_state::SessionState;
use crate::theme::{ColorDepth, Theme};
use crate::ui_context::{Appearance, UiContext, UiEffect};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;
use uuid::Uuid;
use windlass_protocol::frontend_messages::{
    FrontendRequest, HostResponse, ListRow, ListedItemKind,
};
use windlass_protocol::{
    Attachment, BlobRef, Event, Fact, FactRecord, Fault, PromptDelivery, PromptHistoryRow,
    PromptId, QueryReply, SessionId, SessionOp, SessionQuery, UnixMillis,
};

const FILES: &[&str] = &[
    "Cargo.toml",
    "README.md",
    "src/main.rs",
    "src/parser.rs",
    "src/parser/tests.rs",
    "src/reader.rs",
    "crates/a-rather-long-name/src/deep/down/in/the/tree/parser_of_everything.rs",
    "docs/日本語.md",
    "my notes.txt",
    "a.rs",
    "b.rs",
    "c.rs",
];

/// A `PromptEditor` with its context, clock, effects and commands.
#[derive(Default)]
struct TestPromptEditor {
    prompt: PromptEditor,
    appearance: Appearance,
    state: SessionState,
    now: u64,
    next_request_id: u64,
    ui_effects: Vec<UiEffect>,
    commands: Vec<UiCommand>,
}

impl TestPromptEditor {
    fn with<T>(&mut self, action: impl FnOnce(&mut PromptEditor, &mut UiContext<'_>) -> T) -> T {
        let mut cx = UiContext {
            appearance: &mut self.appearance,
            state: &self.state,
            now: self.now,
            commands: &mut self.commands,
            effects: &mut self.ui_effects,
            next_request_id: &mut self.next_request_id,
        };
        action(&mut self.prompt, &mut cx)
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> PromptAction {
        self.with(|prompt, cx| prompt.on_key(&KeyEvent::new(code, modifiers), cx))
    }

    /// Presses keys, such as `ctrl+a left`, and returns the last action.
    fn press(&mut self, keys: &str) -> PromptAction {
        let mut action = PromptAction::Ignored;
        for key in keys.split_whitespace() {
            let mut modifiers = KeyModifiers::NONE;
            let mut name = key;
            for (prefix, modifier) in [
                ("ctrl+", KeyModifiers::CONTROL),
                ("alt+", KeyModifiers::ALT),
                ("shift+", KeyModifiers::SHIFT),
            ] {
                if let Some(rest) = name.strip_prefix(prefix) {
                    (name, modifiers) = (rest, modifiers | modifier);
                }
            }
            let code = match name {
                "enter" => KeyCode::Enter,
                "tab" => KeyCode::Tab,
                "esc" => KeyCode::Esc,
                "up" => KeyCode::Up,
                "down" => KeyCode::Down,
                "left" => KeyCode::Left,
                "right" => KeyCode::Right,
                "home" => KeyCode::Home,
                "end" => KeyCode::End,
                "backspace" => KeyCode::Backspace,
                "delete" => KeyCode::Delete,
                "space" => KeyCode::Char(' '),
                character => KeyCode::Char(character.chars().next().unwrap()),
            };
            action = self.key(code, modifiers);
        }
        action
    }

    fn type_text(&mut self, text: &str) -> &mut TestPromptEditor {
        for character in text.chars() {
            match character {
                '\n' => self.key(KeyCode::Enter, KeyModifiers::SHIFT),
                character => self.key(KeyCode::Char(character), KeyModifiers::NONE),
            };
        }
        self
    }

    fn paste(&mut self, text: &str) -> &mut TestPromptEditor {
        self.with(|prompt, cx| prompt.on_paste(text, cx));
        self
    }

    fn answer(&mut self, response: Result<HostResponse, Fault>) {
        let id = self.next_request_id;
        assert!(self.with(|prompt, cx| prompt.on_response(id, &response, cx)));
    }

    /// Answers all requests for lists and for earlier prompts.
    fn answer_requests(&mut self) {
        let row = |name: &str, note: &str| ListRow {
            name: name.into(),
            note: note.into(),
            ..ListRow::default()
        };
        for effect in std::mem::take(&mut self.ui_effects) {
            let UiEffect::Send(message) = effect else { continue };
            let response = match &message.request {
                FrontendRequest::List { list: ListedItemKind::Files } => {
                    HostResponse::Rows { rows: FILES.iter().map(|name| row(name, "")).collect() }
                }
                FrontendRequest::List { list: ListedItemKind::Subagents } => HostResponse::Rows {
                    rows: vec![row("explore", "Looks around and changes nothing")],
                },
                FrontendRequest::List { .. } => HostResponse::Rows {
                    rows: vec![row("refine", "Refines what is staged"), row("quit", "Not ours")],
                },
                FrontendRequest::PreparePrompt { text, attachments, .. } => {
                    let mentions_readme = text.contains("@README.md");
                    let has_image = attachments.iter().any(|file| file.name == "blind.png");
                    HostResponse::PreparedPrompt {
                        attachments: mentions_readme.then(text_attachment).into_iter().collect(),
                        warnings: has_image
                            .then(|| "m sees no images.".into())
                            .into_iter()
                            .collect(),
                    }
                }
                FrontendRequest::Query { query: SessionQuery::Prompts { .. } } => {
                    let (session, at) = (SessionId(Uuid::from_u128(1)), UnixMillis(1));
                    let prompt_row = |text: &str| PromptHistoryRow {
                        session,
                        at,
                        seq: 1,
                        text: text.into(),
                        attachments: Vec::new(),
                        rewind_to: None,
                    };
                    let prompts = vec![
                        prompt_row("rename Parser to Reader"),
                        prompt_row("why is the parser slow?"),
                    ];
                    HostResponse::Reply { reply: QueryReply::Prompts { prompts } }
                }
                _ => continue,
            };
            assert!(self.with(|prompt, cx| prompt.on_response(message.id, &Ok(response), cx)));
        }
    }

    /// Presses Enter and answers the requests that the prompt waits for.
    fn submit(&mut self) -> Submission {
        match self.press("enter") {
            PromptAction::Submit(submission) => submission,
            PromptAction::Handled | PromptAction::Ignored => {
                self.answer_requests();
                self.with(|prompt, cx| prompt.take_due_submission(cx)).expect("a submission")
            }
        }
    }

    fn sent_requests(&self) -> Vec<&FrontendRequest> {
        let sent = self.ui_effects.iter().filter_map(|effect| match effect {
            UiEffect::Send(message) => Some(&message.request),
            _ => None,
        });
        sent.collect()
    }

    /// Returns a frame as text, with the cursor as `▏` before its cell.
    fn frame(&mut self, width: u16, screen: u16) -> String {
        let (buffer, cursor) = self.draw_frame(width, screen);
        let mut text = String::new();
        for y in 0..buffer.area.height {
            let mut row = String::new();
            let mut skip = 0;
            for x in 0..width {
                if cursor == Some(Position::new(x, y)) {
                    row.push('▏');
                }
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                let symbol = buffer[(x, y)].symbol();
                skip = crate::safe_line::display_width(symbol).saturating_sub(1);
                row.push_str(symbol);
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text
    }

    fn draw_frame(
        &mut self,
        width: u16,
        screen: u16,
    ) -> (ratatui::buffer::Buffer, Option<Position>) {
        self.prompt.set_screen_rows(screen);
        let height = self.prompt.height(width, &self.appearance).min(screen / 2).max(1);
        let mut buffer = ratatui::buffer::Buffer::empty(Rect::new(0, 0, width, height));
        let cursor = self.prompt.draw(buffer.area, &mut buffer, &self.appearance, &self.state);
        (buffer, cursor)
    }

    fn assert_frame(&mut self, width: u16, expected: Expect) {
        expected.assert_eq(&self.frame(width, 24));
    }
}

fn expect_submission(action: PromptAction) -> Submission {
    match action {
        PromptAction::Submit(submission) => submission,
        other => panic!("not a submission: {other:?}"),
    }
}

fn text_submission(text: &str) -> Submission {
    Submission::from_text(text.into())
}

fn image_attachment() -> Attachment {
    let blob = BlobRef::parse(&"a".repeat(64)).unwrap();
    Attachment { name: "shot.png".into(), mime_type: "image/png".into(), blob }
}

fn text_attachment() -> Attachment {
    let blob = BlobRef::for_bytes(b"readme");
    Attachment { name: "README.md".into(), mime_type: "text/plain".into(), blob }
}

fn pdf_attachment() -> Attachment {
    Attachment {
        name: "plan.pdf".into(),
        mime_type: "application/pdf".into(),
        ..image_attachment()
    }
}

#[test]
fn enter_submits_the_text_and_clears_the_prompt() {
    let mut env = TestPromptEditor::default();
    env.type_text("fix the parser");
    assert_eq!(env.submit(), text_submission("fix the parser"));
    assert!(env.prompt.is_empty());
    assert_eq!(env.press("enter"), PromptAction::Handled, "an empty prompt is not sent");
    env.type_text("  ");
    assert_eq!(env.press("enter"), PromptAction::Handled, "a blank prompt is not sent");
}

#[test]
fn alt_enter_queues_the_prompt() {
    let mut env = TestPromptEditor::default();
    env.type_text("then the docs");
    let Submission::Prompt { delivery, .. } = expect_submission(env.press("alt+enter")) else {
        panic!()
    };
    assert_eq!(delivery, PromptDelivery::Queue);
}

#[test]
fn three_key_sequences_start_a_new_line() {
    for keys in ["shift+enter", "ctrl+j", "\\ enter"] {
        let mut env = TestPromptEditor::default();
        env.type_text("a");
        env.press(keys);
        env.type_text("b");
        assert_eq!(env.prompt.text(), "a\nb", "{keys}");
    }
    let mut env = TestPromptEditor::default();
    env.type_text("C:\\\\");
    assert_eq!(env.submit(), text_submission("C:\\\\"), "two backslashes are sent as they are");
}

#[test]
fn a_shell_command_keeps_its_backslash() {
    let mut env = TestPromptEditor::default();
    env.type_text("!echo a \\");
    env.press("enter");
    env.type_text("b");
    assert_eq!(env.submit(), Submission::ShellCommand("echo a \\\nb".into()));
    env.type_text("!  ");
    assert_eq!(env.press("enter"), PromptAction::Handled);
}

#[test]
fn up_and_down_move_by_wrapped_rows_and_keep_the_column() {
    let mut env = TestPromptEditor::default();
    env.type_text("one two three four\nx\nlast line");
    env.frame(12, 24);
    // Rows of nine columns: "one two ", "three ", "four", "x", "last line".
    env.press("up");
    assert_eq!(env.prompt.buffer.text_before_cursor(), "one two three four\nx");
    env.press("up");
    assert_eq!(env.prompt.buffer.text_before_cursor(), "one two three four");
    env.press("up");
    assert_eq!(env.prompt.buffer.text_before_cursor(), "one two three");
    env.press("up");
    assert_eq!(env.prompt.buffer.text_before_cursor(), "one two");
    env.press("down down down down");
    assert_eq!(env.prompt.buffer.text_after_cursor(), "");
}

#[test]
fn earlier_prompts_are_recalled_and_the_draft_is_kept() {
    let mut env = TestPromptEditor::default();
    for text in ["first", "second\nwith two lines"] {
        env.type_text(text);
        env.press("enter");
    }
    env.type_text("draft");
    env.press("up");
    assert_eq!(env.prompt.text(), "second\nwith two lines");
    env.press("up");
    assert_eq!(env.prompt.text(), "first", "up leaves a recalled prompt of several lines");
    env.press("down down");
    assert_eq!(env.prompt.text(), "draft");
    env.press("up");
    env.type_text("!");
    env.press("down");
    assert_eq!(env.prompt.text(), "second\nwith two lines!", "a changed prompt is a new draft");
}

#[test]
fn a_long_paste_is_a_chip_and_is_sent_in_full() {
    let mut env = TestPromptEditor::default();
    let log: String = (0..120).map(|number| format!("line {number}\n")).collect();
    env.type_text("see ").paste(&log).type_text(" why?");
    env.assert_frame(
        80,
        expect![[r#"
        › see [pasted 120 lines] why?▏
    "#]],
    );
    env.press("ctrl+left ctrl+left ctrl+left");
    assert_eq!(env.prompt.buffer.text_before_cursor(), "see ");
    env.press("right");
    assert!(env.prompt.buffer.text_after_cursor().starts_with(" why"));
    assert_eq!(env.submit(), text_submission(&format!("see {log} why?")));
}

#[test]
fn the_same_paste_again_expands_it() {
    let mut env = TestPromptEditor::default();
    env.paste("1\n2\n3\n4\n5").paste("1\n2\n3\n4\n5");
    env.assert_frame(
        40,
        expect![[r#"
        › 1
          2
          3
          4
          5▏
    "#]],
    );
    assert_eq!(env.prompt.text(), "1\n2\n3\n4\n5");
    env.press("ctrl+_");
    env.press("backspace");
    assert!(env.prompt.is_empty(), "backspace deletes a whole chip");
}

#[test]
fn a_dropped_image_becomes_a_chip() {
    let mut env = TestPromptEditor::default();
    env.type_text("what is ").paste("'/tmp/my shot.png'").type_text(" ?");
    assert_eq!(
        env.sent_requests(),
        [&FrontendRequest::AttachFile { path: "/tmp/my shot.png".into() }]
    );
    env.answer(Ok(HostResponse::BlobStored { attachment: image_attachment() }));
    env.assert_frame(
        40,
        expect![[r#"
        › what is [image: shot.png] ?▏
    "#]],
    );
    let submission = env.submit();
    let expected = Submission::Prompt {
        text: "what is [image: shot.png] ?".into(),
        attachments: vec![image_attachment()],
        delivery: PromptDelivery::Steer,
        settings: Default::default(),
    };
    assert_eq!(submission, expected);
}

#[test]
fn a_path_that_is_no_image_stays_text() {
    let mut env = TestPromptEditor::default();
    env.paste("/tmp/none.png");
    env.answer(Err(Fault::Internal { message: "no".into() }));
    assert_eq!(env.submit(), text_submission("/tmp/none.png"));
}

#[test]
fn submitting_waits_for_a_clipboard_image() {
    let mut env = TestPromptEditor::default();
    env.type_text("see ");
    env.with(|prompt, cx| prompt.on_clipboard_image(b"png", cx));
    assert_eq!(env.press("enter"), PromptAction::Handled);
    env.assert_frame(
        60,
        expect![[r#"
        › see ▏                                 waiting for the image
    "#]],
    );
    env.answer(Ok(HostResponse::BlobStored { attachment: image_attachment() }));
    assert_eq!(env.with(|prompt, cx| prompt.take_due_submission(cx)), None, "it is checked first");
    env.answer_requests();
    let due = env.with(|prompt, cx| prompt.take_due_submission(cx));
    let Some(Submission::Prompt { attachments, .. }) = due else { panic!("{due:?}") };
    assert_eq!(attachments, [image_attachment()]);
    // Without the image nothing is sent.
    env.type_text("see ");
    env.with(|prompt, cx| prompt.on_clipboard_image(b"png", cx));
    env.press("enter");
    env.answer(Err(Fault::Internal { message: "too large".into() }));
    assert_eq!(env.with(|prompt, cx| prompt.take_due_submission(cx)), None);
    assert_eq!(env.prompt.text(), "see ");
}

#[test]
fn an_image_survives_the_external_editor() {
    let mut env = TestPromptEditor::default();
    env.paste("/tmp/shot.png");
    env.answer(Ok(HostResponse::BlobStored { attachment: image_attachment() }));
    env.press("ctrl+x");
    assert_eq!(env.commands, [UiCommand::OpenEditor]);
    let text = env.prompt.text();
    env.prompt.set_text(&format!("look: {text}"));
    let Submission::Prompt { attachments, .. } = env.submit() else { panic!() };
    assert_eq!(attachments, [image_attachment()]);
}

#[test]
fn a_recalled_prompt_keeps_its_image() {
    let mut env = TestPromptEditor::default();
    let drop_image = |env: &mut TestPromptEditor| {
        env.paste("/tmp/shot.png");
        env.answer(Ok(HostResponse::BlobStored { attachment: image_attachment() }));
    };
    let submit = |env: &mut TestPromptEditor| match env.submit() {
        Submission::Prompt { text, attachments, .. } => (text, attachments),
        other => panic!("{other:?}"),
    };
    env.type_text("see ");
    drop_image(&mut env);
    let first = submit(&mut env);
    assert_eq!(first, ("see [image: shot.png]".to_owned(), vec![image_attachment()]));
    env.type_text("words");
    submit(&mut env);
    // Recalled with the arrow keys, several times.
    env.press("up up down up");
    assert_eq!(submit(&mut env), first);
    // Recalled by search.
    env.press("ctrl+r");
    env.type_text("see").press("enter");
    assert_eq!(submit(&mut env), first);
    // A draft keeps its own image.
    env.type_text("and ");
    drop_image(&mut env);
    env.press("up down");
    assert_eq!(submit(&mut env), ("and [image: shot.png]".to_owned(), vec![image_attachment()]));
}

#[test]
fn a_restored_prompt_has_the_image_that_was_sent_with_it() {
    let mut env = TestPromptEditor::default();
    let clipboard_image = |content: &[u8]| Attachment {
        name: "clipboard.png".into(),
        blob: BlobRef::for_bytes(content),
        ..image_attachment()
    };
    let block = "1\n2\n3\n4\n5";
    let text = format!("see [image: clipboard.png] {block}");
    let sent_files = |env: &mut TestPromptEditor| {
        let Submission::Prompt { text: sent, attachments, .. } = env.submit() else { panic!() };
        assert_eq!(sent, text);
        attachments
    };
    for content in ["first", "second"] {
        env.type_text("see ");
        env.with(|prompt, cx| prompt.on_clipboard_image(b"png", cx));
        let attachment = clipboard_image(content.as_bytes());
        env.answer(Ok(HostResponse::BlobStored { attachment: attachment.clone() }));
        env.type_text(" ").paste(block);
        assert_eq!(sent_files(&mut env), [attachment]);
    }
    // In the history: as it was written, with the pasted block. Otherwise: from the text.
    for (content, shows_block) in [("first", true), ("second", true), ("third", false)] {
        let files = [clipboard_image(content.as_bytes())];
        env.prompt.restore(&text, &files);
        let is_block = !env.prompt.buffer.raw_text().contains("1\n2");
        assert_eq!(is_block, shows_block, "{content}");
        assert_eq!(sent_files(&mut env), files);
    }
    env.prompt.restore(&text, &[]);
    assert_eq!(env.prompt.buffer.attachments(), [], "nothing was attached");
}

#[test]
fn a_pasted_block_never_becomes_a_mention() {
    let mut env = TestPromptEditor::default();
    let log = "1\nsee @README.md\n3\n4";
    let sent = text_submission(&format!("why? {log}"));
    // As a block, expanded by a second paste, recalled, found by search, after the editor.
    env.type_text("why? ").paste(log);
    assert_eq!(env.submit(), sent);
    env.type_text("why? ").paste(log).paste(log);
    assert_eq!(env.submit(), sent);
    env.press("up");
    assert_eq!(env.submit(), sent);
    env.press("ctrl+r");
    env.type_text("why").press("enter");
    assert_eq!(env.submit(), sent);
    env.press("up up");
    let text = env.prompt.text();
    env.prompt.set_text(&format!("{text}\n"));
    assert_eq!(env.submit(), sent);
    // Short pastes are text, too, except for one that is only a mention.
    env.paste("see @README.md");
    assert_eq!(env.submit(), text_submission("see @README.md"));
    // A short paste, a block that is edited, and a prompt of the log, after the editor.
    env.paste("see (@README.md)");
    env.prompt.set_text("see @README.md, please");
    assert_eq!(env.submit(), text_submission("see @README.md, please"));
    env.type_text("why? ").paste(log);
    env.prompt.set_text("why? see @README.md\n3\n4");
    assert_eq!(env.submit(), text_submission("why? see @README.md\n3\n4"));
    env.prompt.restore("of the log: @README.md", &[]);
    env.prompt.set_text("of the log:\n@README.md");
    assert_eq!(env.submit(), text_submission("of the log:\n@README.md"));
    // A mention that the user types in the editor counts.
    env.paste("see a@README.md");
    env.prompt.set_text("see @README.md");
    let Submission::Prompt { attachments, .. } = env.submit() else { panic!() };
    assert_eq!(attachments, [text_attachment()]);
    env.paste("@README.md");
    let Submission::Prompt { attachments, .. } = env.submit() else { panic!() };
    assert_eq!(attachments, [text_attachment()]);
    // A prompt that could not be sent.
    env.prompt.restore(&format!("why? {log}"), &[]);
    assert_eq!(env.submit(), sent);
    // The user's own mention of the same file counts, also after a recall.
    for _ in 0..2 {
        env.press("up");
        env.type_text(" @README.md ");
        let Submission::Prompt { attachments, .. } = env.submit() else { panic!() };
        assert_eq!(attachments, [text_attachment()]);
    }
    env.press("up");
    let Submission::Prompt { attachments, .. } = env.submit() else { panic!() };
    assert_eq!(attachments, [text_attachment()]);
}

#[test]
fn a_prompt_of_the_log_mentions_only_what_it_attached() {
    let mut env = TestPromptEditor::default();
    let text = "@README.md and\n\n\n@src/a.rs";
    env.prompt.restore(text, &[text_attachment()]);
    env.assert_frame(
        40,
        expect![[r#"
            › @README.md and


              @src/a.rs▏
        "#]],
    );
    env.press("enter");
    let requests = env.sent_requests();
    let [FrontendRequest::PreparePrompt { text: typed, attachments, .. }] = requests.as_slice()
    else {
        panic!("{requests:?}")
    };
    assert_eq!((typed.as_str(), attachments.len()), ("@README.md and\n\n\n    src/a.rs", 0));
    env.answer_requests();
    let due = env.with(|prompt, cx| prompt.take_due_submission(cx));
    let Some(Submission::Prompt { text: sent, attachments, .. }) = due else { panic!("{due:?}") };
    assert_eq!((sent.as_str(), attachments), (text, vec![text_attachment()]));
}

#[test]
fn unbound_keys_are_ignored() {
    let mut env = TestPromptEditor::default();
    for key in ["ctrl+g", "alt+q", "esc", "tab", "alt+up"] {
        assert_eq!(env.press(key), PromptAction::Ignored, "{key}");
    }
}

#[test]
fn an_empty_prompt_shows_its_hints() {
    let mut env = TestPromptEditor::default();
    env.assert_frame(
        80,
        expect![[r#"
        › ▏Ask anything · @ file · / command · ! shell
    "#]],
    );
    env.assert_frame(
        40,
        expect![[r#"
        › ▏Ask anything · @ file · / command
    "#]],
    );
    env.assert_frame(
        12,
        expect![[r#"
        › ▏
    "#]],
    );
}

#[test]
fn a_busy_prompt_shows_the_send_keys() {
    let mut env = TestPromptEditor::default();
    env.state.turn = Some((1, 0));
    env.assert_frame(
        80,
        expect![[r#"
        › ▏Enter: send now · Alt+Enter: send when done
    "#]],
    );
    env.type_text("also the docs");
    env.assert_frame(
        80,
        expect![[r#"
        › also the docs▏                      Enter: send now · Alt+Enter: send when done
    "#]],
    );
    env.assert_frame(
        40,
        expect![[r#"
        › also the docs▏          Enter: send now
    "#]],
    );
    env.type_text(" and then everything");
    env.assert_frame(
        40,
        expect![[r#"
        › also the docs and then everything▏
    "#]],
    );
}

#[test]
fn text_wraps_between_words_and_wide_characters() {
    let mut env = TestPromptEditor::default();
    env.type_text("Please make the parser accept a trailing comma everywhere 日本語のテキストも折り返す e\u{301}👍🏽");
    env.assert_frame(
        40,
        expect![[r#"
        › Please make the parser accept a
          trailing comma everywhere 日本語のテ
          キストも折り返す é👍▏
    "#]],
    );
    env.press("left left left");
    env.assert_frame(
        40,
        expect![[r#"
        › Please make the parser accept a
          trailing comma everywhere 日本語のテ
          キストも折り返す▏ é👍
    "#]],
    );
}

#[test]
fn many_rows_scroll_inside_a_third_of_the_screen() {
    let mut env = TestPromptEditor::default();
    env.type_text(&(1..=20).map(|number| format!("row {number}\n")).collect::<String>());
    env.assert_frame(
        40,
        expect![[r#"
        ↑ row 14
          row 15
          row 16
          row 17
          row 18
          row 19
          row 20
          ▏
    "#]],
    );
    env.press("up up up up up up up up up up up up");
    env.assert_frame(
        40,
        expect![[r#"
        ↑ ▏row 9
          row 10
          row 11
          row 12
          row 13
          row 14
          row 15
        ↓ row 16
    "#]],
    );
}

#[test]
fn an_ascii_prompt_without_colors_looks_the_same() {
    let mut env = TestPromptEditor::default();
    env.appearance.ascii = true;
    env.appearance.theme = Theme { color_depth: ColorDepth::Monochrome, ..Theme::default() };
    env.state.turn = Some((1, 0));
    env.assert_frame(
        60,
        expect![[r#"
        > ▏Enter: send now - Alt+Enter: send when done
    "#]],
    );
    env.type_text("plain");
    env.assert_frame(
        60,
        expect![[r#"
        > plain▏          Enter: send now - Alt+Enter: send when done
    "#]],
    );
}

#[test]
fn a_shell_command_is_marked() {
    let mut env = TestPromptEditor::default();
    env.type_text("!cargo test");
    env.assert_frame(
        40,
        expect![[r#"
            ! cargo test▏
        "#]],
    );
}

#[test]
fn an_at_sign_completes_files_and_agents() {
    let mut env = TestPromptEditor::default();
    env.type_text("look at @");
    env.assert_frame(
        60,
        expect![[r#"
          loading …
        › look at @▏
    "#]],
    );
    env.answer_requests();
    env.assert_frame(
        60,
        expect![[r#"
             @explore             Looks around and changes nothing
              Cargo.toml
              README.md
              a.rs
              b.rs
              c.rs
              crates/
              crates/a-rather-long-name/
            › look at @▏
        "#]],
    );
    env.type_text("pars");
    env.assert_frame(
        60,
        expect![[r#"
              src/parser/
              src/parser.rs
              src/parser/tests.rs
              …g-name/src/deep/down/in/the/tree/parser_of_everything.rs
            › look at @pars▏
        "#]],
    );
    env.assert_frame(
        40,
        expect![[r#"
              src/parser/
              src/parser.rs
              src/parser/tests.rs
              …/in/the/tree/parser_of_everything.rs
            › look at @pars▏
        "#]],
    );
    env.press("down");
    env.press("enter");
    env.assert_frame(
        60,
        expect![[r#"
            › look at @src/parser.rs ▏
        "#]],
    );
    env.type_text("and @expl");
    env.press("tab");
    env.type_text("and @mynot");
    env.press("tab");
    assert_eq!(env.prompt.text(), "look at @src/parser.rs and @explore and @\"my notes.txt\" ");
    assert!(!env.prompt.close_list());
}

#[test]
fn the_file_list_is_requested_again_only_after_a_while() {
    let mut env = TestPromptEditor::default();
    env.type_text("@a");
    assert_eq!(env.sent_requests().len(), 2);
    env.answer_requests();
    env.type_text(" @b @c");
    assert_eq!(env.sent_requests().len(), 0);
    env.now += 31_000;
    env.type_text(" @d");
    assert_eq!(env.sent_requests().len(), 2);
    env.type_text("e");
    assert_eq!(env.sent_requests().len(), 2, "the requests are still pending");
}

#[test]
fn a_complete_name_is_sent_and_an_email_address_shows_no_list() {
    let mut env = TestPromptEditor::default();
    env.type_text("see @README.md");
    env.answer_requests();
    let expected = Submission::Prompt {
        text: "see @README.md".into(),
        attachments: vec![text_attachment()],
        delivery: PromptDelivery::Steer,
        settings: Default::default(),
    };
    assert_eq!(env.submit(), expected);
    env.type_text("mail me@src");
    env.answer_requests();
    assert_eq!(env.submit(), text_submission("mail me@src"));
    env.type_text("@nothing-like-this");
    env.assert_frame(
        60,
        expect![[r#"
          no matching file or agent
        › @nothing-like-this▏
    "#]],
    );
    assert_eq!(env.submit(), text_submission("@nothing-like-this"));
}

#[test]
fn a_list_that_was_closed_stays_closed_for_that_name() {
    let mut env = TestPromptEditor::default();
    env.type_text("@pa");
    env.answer_requests();
    assert_eq!(env.press("esc"), PromptAction::Ignored);
    assert!(env.prompt.close_list());
    env.type_text("r");
    assert!(!env.prompt.close_list());
    env.type_text(" @r");
    assert!(env.prompt.close_list());
}

#[test]
fn moving_the_cursor_opens_no_list() {
    let mut env = TestPromptEditor::default();
    env.type_text("@pa");
    env.answer_requests();
    env.press("tab");
    env.press("left left left");
    assert!(!env.prompt.close_list());
    env.press("up");
    assert_eq!(env.prompt.buffer.cursor(), 0, "the arrow key moved the cursor, not the list");
}

#[test]
fn a_longer_query_examines_only_previous_matches() {
    let mut env = TestPromptEditor::default();
    env.type_text("@");
    let files = (0..99_999).map(|number| ListRow {
        name: format!("src/folder{}/file{number}.rs", number % 97),
        ..ListRow::default()
    });
    let files: Vec<ListRow> =
        files.chain([ListRow { name: "zebra".into(), ..ListRow::default() }]).collect();
    let id = env.next_request_id - 1;
    let response = Ok(HostResponse::Rows { rows: files });
    env.with(|prompt, cx| prompt.on_response(id, &response, cx));
    assert_eq!(env.prompt.completion.examined_names, 0, "an empty query examines no names");
    env.type_text("z");
    // The files, 97 folders and `src`.
    assert_eq!(env.prompt.completion.examined_names, 100_098);
    env.type_text("e");
    assert_eq!(env.prompt.completion.examined_names, 1);
    env.press("tab");
    assert_eq!(env.prompt.text(), "@zebra ");
    env.type_text("@beyond");
    env.assert_frame(
        80,
        expect![[r#"
              no match among the first 100,000 files; type the full path instead
            › @zebra @beyond▏
        "#]],
    );
}

#[test]
fn commands_are_listed_with_their_descriptions() {
    let mut env = TestPromptEditor::default();
    env.type_text("/");
    env.answer_requests();
    env.assert_frame(
        80,
        expect![[r#"
             /help      List commands and keys (? on an empty prompt)                    F1
             /commands  Search all commands                                          Ctrl+P
             /mode      Switch to the next mode: plan, ask, auto                  Shift+Tab
             /sessions  List, search, open, fork, rename and delete sessions         Ctrl+S
             /new       Start a new session
             /fork      Continue in a copy of this session
             /rewind    Rewind to an earlier prompt
             /rename    Rename this session: /rename TITLE
            / ▏
        "#]],
    );
    assert_eq!(env.press("enter"), PromptAction::Handled, "a `/` alone runs no command");
    env.type_text("re");
    env.assert_frame(
        80,
        expect![[r#"
             /rewind  Rewind to an earlier prompt
             /rename  Rename this session: /rename TITLE
             /retry   Try again after a failed turn
             /redo    Redo the last undo
             /review  Review uncommitted changes, or a branch: /review BRANCH
             /refine  Refines what is staged
             /resume  /sessions: List, search, open, fork, rename and delete sessio… Ctrl+S
             /reset   /new: Start a new session
            / re▏
        "#]],
    );
    env.assert_frame(
        40,
        expect![[r#"
             /rewind  Rewind to an earlier prompt
             /rename  Rename this session: /rename …
             /retry   Try again after a failed turn
             /redo    Redo the last undo
             /review  Review uncommitted changes, o…
             /refine  Refines what is staged
             /resume  /sessions: List, search, open…
             /reset   /new: Start a new session
            / re▏
        "#]],
    );
    env.type_text("f");
    env.assert_frame(
        80,
        expect![[r#"
             /refine  Refines what is staged
            / ref▏
        "#]],
    );
    let custom_command =
        Submission::CustomCommand { name: "refine".into(), arguments: String::new() };
    assert_eq!(env.submit(), custom_command);
}

#[test]
fn a_command_takes_the_text_after_it_as_arguments() {
    let mut env = TestPromptEditor::default();
    env.type_text("/rena");
    env.answer_requests();
    env.press("tab");
    env.type_text("The parser");
    env.assert_frame(
        60,
        expect![[r#"
        / rename The parser▏
    "#]],
    );
    assert_eq!(env.submit(), Submission::BuiltinCommand(UiCommand::Rename, "The parser".into()));
    env.type_text("/refine src\nand docs");
    let arguments = "src\nand docs".into();
    assert_eq!(env.submit(), Submission::CustomCommand { name: "refine".into(), arguments });
    env.type_text("/quit");
    assert_eq!(env.submit(), Submission::BuiltinCommand(UiCommand::Quit, String::new()));
}

#[test]
fn a_path_is_sent_and_an_unknown_command_only_after_a_second_enter() {
    let mut env = TestPromptEditor::default();
    env.type_text("/usr/bin/env is missing");
    env.answer_requests();
    assert_eq!(env.submit(), text_submission("/usr/bin/env is missing"));
    env.type_text("/modle");
    env.assert_frame(
        60,
        expect![[r#"
              Unknown command. Did you mean /model?
            › /modle▏
        "#]],
    );
    assert_eq!(env.press("enter"), PromptAction::Handled);
    env.assert_frame(
        60,
        expect![[r#"
              Unknown command /modle. Did you mean /model? Press Enter
              again to send it as text.
            › /modle▏
        "#]],
    );
    assert_eq!(env.submit(), text_submission("/modle"));
    // Another text is asked about again.
    env.type_text("/zzz what is this?");
    assert_eq!(env.press("enter"), PromptAction::Handled);
    env.type_text("?");
    assert_eq!(env.press("enter"), PromptAction::Handled);
    assert_eq!(env.submit(), text_submission("/zzz what is this??"));
    // Two slashes send a text that begins with one.
    env.type_text("//model is a command");
    assert_eq!(env.submit(), text_submission("/model is a command"));
    env.type_text("// a comment");
    assert_eq!(env.submit(), text_submission("// a comment"));
}

#[test]
fn commands_that_are_missing_on_purpose_get_a_tip() {
    for (typed, tip) in [
        ("/memory", "AGENTS.md; /init writes it"),
        ("/logout", "`windlass auth logout PROVIDER`"),
        ("/vim", "{\"vim\": true}"),
    ] {
        let mut env = TestPromptEditor::default();
        env.type_text(typed);
        env.answer_requests();
        assert_eq!(env.press("enter"), PromptAction::Handled, "{typed}");
        let notice = env.prompt.notice.clone().unwrap_or_default();
        assert!(notice.contains(tip) && notice.contains("Unknown command"), "{typed}: {notice}");
    }
}

#[test]
fn every_alias_runs_its_command() {
    let entries = crate::keys::COMMAND_TABLE.iter().filter(|entry| entry.is_slash_command);
    let names = entries.flat_map(|entry| {
        [entry.name].into_iter().chain(entry.aliases.iter().copied()).map(move |name| (name, entry))
    });
    let mut count = 0;
    for (name, entry) in names {
        let mut env = TestPromptEditor::default();
        env.type_text(&format!("/{name} x"));
        env.answer_requests();
        assert_eq!(env.submit(), Submission::BuiltinCommand(entry.command, "x".into()), "{name}");
        count += 1;
    }
    assert!(count > 60, "{count}");
}

#[test]
fn names_of_other_programs_run_our_commands() {
    for (typed, command) in [
        ("clear", UiCommand::NewSession),
        ("exit", UiCommand::Quit),
        ("resume", UiCommand::Sessions),
        ("models", UiCommand::Model),
        ("themes", UiCommand::Theme),
        ("status", UiCommand::Doctor),
        ("usage", UiCommand::Cost),
        ("agents", UiCommand::Agent),
        ("settings", UiCommand::Config),
        ("continue", UiCommand::Sessions),
        ("share", UiCommand::Export),
        ("keys", UiCommand::Help),
        ("thinking", UiCommand::Effort),
        ("variant", UiCommand::Effort),
        ("details", UiCommand::ToggleDetails),
    ] {
        let mut env = TestPromptEditor::default();
        env.type_text(&format!("/{typed} x"));
        env.answer_requests();
        assert_eq!(env.submit(), Submission::BuiltinCommand(command, "x".into()), "{typed}");
    }
    let mut env = TestPromptEditor::default();
    env.type_text("/cle");
    env.answer_requests();
    env.assert_frame(
        60,
        expect![[r#"
         /clear  /new: Start a new session
        / cle▏
    "#]],
    );
    assert_eq!(env.submit(), Submission::BuiltinCommand(UiCommand::NewSession, String::new()));
}

#[test]
fn a_model_without_images_is_reported_before_the_prompt_is_sent() {
    let mut env = TestPromptEditor::default();
    env.type_text("what is ").paste("/tmp/blind.png");
    let attachment = Attachment { name: "blind.png".into(), ..image_attachment() };
    env.answer(Ok(HostResponse::BlobStored { attachment }));
    assert_eq!(env.press("enter"), PromptAction::Handled);
    env.answer_requests();
    assert_eq!(env.with(|prompt, cx| prompt.take_due_submission(cx)), None);
    env.assert_frame(
        60,
        expect![[r#"
          m sees no images. Press Enter again to send the prompt.
        › what is [image: blind.png]▏
    "#]],
    );
    assert!(matches!(env.submit(), Submission::Prompt { .. }), "a second Enter sends it");
}

#[test]
fn a_question_mark_on_an_empty_prompt_opens_the_help() {
    let mut env = TestPromptEditor::default();
    env.type_text("?");
    assert_eq!(env.commands, [UiCommand::Help]);
    assert_eq!(env.prompt.text(), "");
    env.type_text("why?");
    assert_eq!((env.prompt.text().as_str(), env.commands.len()), ("why?", 1));
}

#[test]
fn the_first_key_replaces_a_suggestion_and_tab_or_right_accepts_it() {
    for key in ["tab", "right"] {
        let mut env = TestPromptEditor::default();
        env.prompt.suggest("Explain this project");
        env.assert_frame(
            60,
            expect![[r#"
            › ▏Try: Explain this project (Tab accepts)
        "#]],
        );
        assert_eq!(env.press(key), PromptAction::Handled);
        assert_eq!(env.prompt.text(), "Explain this project");
    }
    let mut env = TestPromptEditor::default();
    env.prompt.suggest("Explain this project");
    env.type_text("hello");
    assert_eq!(env.prompt.text(), "hello");
    assert_eq!(env.press("tab"), PromptAction::Ignored);
}

#[test]
fn files_are_listed_again_after_a_call_of_the_model() {
    let mut env = TestPromptEditor::default();
    env.type_text("@a");
    env.answer_requests();
    env.type_text(" @b");
    assert_eq!(env.sent_requests().len(), 0);
    let fact = Fact::TurnEnded { turn: 1, end: windlass_protocol::TurnEndReason::Completed };
    let (session, at) = (SessionId(Uuid::from_u128(1)), UnixMillis(1));
    let event = Event::Fact(FactRecord::new(session, 1, at, fact));
    env.prompt.on_event(&event);
    env.type_text(" @c");
    let files = FrontendRequest::List { list: ListedItemKind::Files };
    assert_eq!(env.sent_requests(), [&files]);
}

#[test]
fn an_abbreviated_command_is_completed_before_it_runs() {
    let mut env = TestPromptEditor::default();
    env.type_text("/mdl");
    env.answer_requests();
    assert_eq!(env.press("enter"), PromptAction::Handled);
    assert_eq!(env.prompt.text(), "/model ");
    assert_eq!(env.submit(), Submission::BuiltinCommand(UiCommand::Model, String::new()));
}

#[test]
fn a_command_waits_for_the_list_of_custom_commands() {
    let mut env = TestPromptEditor::default();
    env.paste("/refine");
    assert_eq!(env.press("enter"), PromptAction::Handled);
    env.assert_frame(
        60,
        expect![[r#"
        › /refine▏                              loading your commands
    "#]],
    );
    env.answer_requests();
    let custom_command =
        Submission::CustomCommand { name: "refine".into(), arguments: String::new() };
    assert_eq!(env.with(|prompt, cx| prompt.take_due_submission(cx)), Some(custom_command));
    assert_eq!(env.with(|prompt, cx| prompt.take_due_submission(cx)), None);
    // Further typing cancels the submission.
    let mut env = TestPromptEditor::default();
    env.paste("/refine");
    env.press("enter");
    env.type_text(" it");
    env.answer_requests();
    assert_eq!(env.with(|prompt, cx| prompt.take_due_submission(cx)), None);
    // A restored command is looked up, too.
    let mut env = TestPromptEditor::default();
    env.prompt.restore("/refine it", &[]);
    assert_eq!(env.press("enter"), PromptAction::Handled);
    env.answer_requests();
    let custom_command =
        Submission::CustomCommand { name: "refine".into(), arguments: "it".into() };
    assert_eq!(env.with(|prompt, cx| prompt.take_due_submission(cx)), Some(custom_command));
}

#[test]
fn an_earlier_prompt_is_found_by_search() {
    let mut env = TestPromptEditor::default();
    env.type_text("fix the PARSER\nand its tests");
    env.press("enter");
    env.type_text("draft");
    env.press("ctrl+r");
    env.answer_requests();
    env.assert_frame(
        60,
        expect![[r#"
          fix the PARSER and its tests
          rename Parser to Reader
          why is the parser slow?
        ? ▏search earlier prompts
    "#]],
    );
    env.type_text("parser");
    env.press("ctrl+r");
    env.assert_frame(
        60,
        expect![[r#"
          fix the PARSER and its tests
          rename Parser to Reader
          why is the parser slow?
        ? parser▏
    "#]],
    );
    env.type_text("zz");
    env.assert_frame(
        60,
        expect![[r#"
          no matching prompt
        ? parserzz▏
    "#]],
    );
    assert!(!env.prompt.is_empty());
    env.prompt.set_text("");
    assert_eq!(env.prompt.text(), "draft", "Ctrl-C restores the draft");
    env.press("ctrl+r");
    env.type_text("slow");
    env.press("enter");
    assert_eq!(env.prompt.text(), "why is the parser slow?");
}

#[test]
fn the_first_up_recalls_a_prompt_of_an_earlier_session() {
    let mut env = TestPromptEditor::default();
    env.press("up");
    assert!(env.prompt.is_empty());
    env.answer_requests();
    assert_eq!(env.prompt.text(), "rename Parser to Reader");
    env.press("up");
    assert_eq!(env.prompt.text(), "why is the parser slow?");
    env.press("down down");
    assert!(env.prompt.is_empty());
    assert!(env.sent_requests().is_empty());
}

#[test]
fn up_withdraws_a_queued_prompt() {
    let mut env = TestPromptEditor::default();
    let (session, prompt) = (SessionId(Uuid::from_u128(1)), PromptId(Uuid::from_u128(2)));
    env.state.session = Some(session);
    env.state.turn = Some((1, 0));
    let queued = |id: PromptId, text: &str, attachments: Vec<Attachment>, delivery| {
        windlass_protocol::transcript::QueuedPrompt { id, text: text.into(), attachments, delivery }
    };
    env.state.queued_prompts = vec![
        queued(PromptId(Uuid::from_u128(1)), "first", Vec::new(), PromptDelivery::Steer),
        queued(
            prompt,
            "see [image: shot.png] here",
            vec![image_attachment(), pdf_attachment()],
            PromptDelivery::Queue,
        ),
    ];
    env.assert_frame(
        80,
        expect![[r#"
        › ▏Enter: send now · Alt+Enter: send when done · Up: edit queued
    "#]],
    );
    env.press("up");
    assert_eq!(
        env.sent_requests(),
        [&FrontendRequest::SessionOp {
            session,
            id: None,
            op: SessionOp::WithdrawPrompt { prompt }
        }]
    );
    env.assert_frame(
        80,
        expect![[r#"
            › see [image: shot.png] here [file: plan.pdf]▏                    Enter: send now
        "#]],
    );
    // Attachments are sent again as long as their chips are in the text.
    env.press("backspace");
    let Submission::Prompt { text, attachments, .. } = env.submit() else { panic!() };
    assert_eq!(
        (text.as_str(), attachments),
        ("see [image: shot.png] here", vec![image_attachment()])
    );
}

/// An input of the property tests.
#[derive(Clone, Debug)]
enum TestEditorInput {
    Key(&'static str),
    Character(char),
    Paste(String),
    Resize(u16, u16),
}

fn characters() -> impl Strategy<Value = char> {
    prop_oneof![
        5 => prop::char::range('a', 'e'),
        2 => Just(' '),
        1 => prop::sample::select(vec![
            '語', '👍', '\u{1f3fd}', '\u{301}', '\u{200d}', '🇩', '🇪', '/', '@', '!', '\\', 'é', 'ﷺ',
            '\u{600}', '\u{100000}', '\u{10ffff}',
        ]),
    ]
}

fn editor_input() -> impl Strategy<Value = TestEditorInput> {
    const KEYS: &[&str] = &[
        "left",
        "right",
        "home",
        "end",
        "up",
        "down",
        "backspace",
        "delete",
        "ctrl+w",
        "alt+d",
        "ctrl+u",
        "ctrl+k",
        "ctrl+y",
        "ctrl+_",
        "ctrl+left",
        "ctrl+right",
        "shift+enter",
        "enter",
        "alt+enter",
        "tab",
        "ctrl+r",
        "ctrl+n",
    ];
    prop_oneof![
        6 => characters().prop_map(TestEditorInput::Character),
        6 => prop::sample::select(KEYS).prop_map(TestEditorInput::Key),
        1 => prop::collection::vec(
            prop_oneof![characters(), Just('\n'), Just('\r'), Just('\u{1b}')], 0..12,
        )
            .prop_map(|characters| TestEditorInput::Paste(characters.into_iter().collect())),
        1 => (1..60u16, 1..40u16).prop_map(|(width, height)| TestEditorInput::Resize(width, height)),
    ]
}

/// A simple editor for comparison, which finds every cursor position by scanning the whole text.
#[derive(Default)]
struct TestReferenceEditor {
    text: String,
    cursor: usize,
}

impl TestReferenceEditor {
    fn boundaries(&self) -> Vec<usize> {
        let starts = self.text.grapheme_indices(true).map(|(at, _)| at);
        starts.chain([self.text.len()]).collect()
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        let end = self.cursor + text.len();
        self.cursor = self.boundaries().into_iter().find(|boundary| *boundary >= end).unwrap();
    }

    fn delete_to(&mut self, position: usize) {
        let (start, end) = (self.cursor.min(position), self.cursor.max(position));
        self.text.replace_range(start..end, "");
        self.cursor = self.boundaries().into_iter().find(|boundary| *boundary >= start).unwrap();
    }

    fn left(&self) -> usize {
        self.boundaries().into_iter().rev().find(|boundary| *boundary < self.cursor).unwrap_or(0)
    }

    fn right(&self) -> usize {
        let next = self.boundaries().into_iter().find(|boundary| *boundary > self.cursor);
        next.unwrap_or(self.text.len())
    }

    /// Moves the cursor behind a leading `!`, which is drawn as the mark of the prompt.
    fn skip_shell_sign(&mut self) {
        if self.text.starts_with('!') && self.cursor == 0 {
            self.cursor = self.right();
        }
    }

    fn key(&mut self, key: &str) {
        match key {
            "left" => self.cursor = self.left(),
            "right" => self.cursor = self.right(),
            "home" => self.cursor = self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1),
            "end" => {
                let end = self.text[self.cursor..].find('\n');
                self.cursor = end.map_or(self.text.len(), |end| self.cursor + end);
            }
            "backspace" => self.delete_to(self.left()),
            "delete" => self.delete_to(self.right()),
            "shift+enter" => self.insert("\n"),
            other => panic!("{other}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_cursor_stays_between_clusters_and_inside_the_screen(
        inputs in prop::collection::vec(editor_input(), 1..80),
    ) {
        let mut env = TestPromptEditor::default();
        let (mut width, mut height) = (80, 24);
        for input in inputs {
            match input {
                TestEditorInput::Key(key) => { env.press(key); }
                TestEditorInput::Character(character) => {
                    env.key(KeyCode::Char(character), KeyModifiers::NONE);
                }
                TestEditorInput::Paste(text) => { env.paste(&text); }
                TestEditorInput::Resize(w, h) => (width, height) = (w, h),
            }
            env.answer_requests();
            let (raw, at) = (env.prompt.buffer.raw_text().to_owned(), env.prompt.buffer.cursor());
            let boundaries: Vec<usize> =
                super::cursor::clusters(&raw).map(|(at, _)| at).chain([raw.len()]).collect();
            prop_assert!(boundaries.contains(&at), "{raw:?} {at}");
            let (buffer, cursor) = env.draw_frame(width, height);
            if let Some(cursor) = cursor {
                prop_assert!(buffer.area.contains(cursor));
            }
        }
    }

    #[test]
    fn the_text_matches_a_reference_editor(inputs in prop::collection::vec(editor_input(), 1..80)) {
        let mut env = TestPromptEditor::default();
        let mut reference = TestReferenceEditor::default();
        for input in inputs {
            match input {
                TestEditorInput::Key(key) => {
                    const SIMPLE: [&str; 7] =
                        ["left", "right", "home", "end", "backspace", "delete", "shift+enter"];
                    if !SIMPLE.contains(&key) {
                        continue;
                    }
                    env.press(key);
                    reference.key(key);
                }
                // The meaning of `/` depends on the lists of the host.
                TestEditorInput::Character('/') => {}
                TestEditorInput::Character(character) => {
                    env.key(KeyCode::Char(character), KeyModifiers::NONE);
                    if character < '\u{100000}' {
                        reference.insert(&character.to_string());
                    }
                }
                // A mention in pasted text becomes a chip.
                TestEditorInput::Paste(text)
                    if text.matches(['\n', '\r']).count() < 3 && !text.contains(['/', '@']) =>
                {
                    env.paste(&text);
                    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
                    reference.insert(&lines.replace(['\u{1b}', '\u{100000}', '\u{10ffff}'], ""));
                }
                TestEditorInput::Paste(_) => {}
                TestEditorInput::Resize(width, height) => { env.frame(width, height); }
            }
            reference.skip_shell_sign();
            prop_assert_eq!(env.prompt.buffer.raw_text(), &reference.text);
            prop_assert_eq!(env.prompt.buffer.cursor(), reference.cursor);
        }
    }
}

/// Types a text in insert mode, then the keys; `<` is Esc. Returns the text and the mode.
fn edit_with_vim(text: &str, keys: &str) -> (String, &'static str) {
    let mut env = TestPromptEditor::default();
    env.appearance.layout.vim = true;
    env.type_text(text);
    for key in keys.chars() {
        match key {
            '<' => env.key(KeyCode::Esc, KeyModifiers::NONE),
            key => env.key(KeyCode::Char(key), KeyModifiers::NONE),
        };
    }
    (env.prompt.text(), env.prompt.editing_mode(&env.appearance).unwrap())
}

#[test]
fn vi_commands_edit_words_and_characters() {
    for (keys, expected) in [
        ("<0dw", "two three"),
        ("<02dw", "three"),
        ("<0d2w", "three"),
        ("<0cwX", "X two three"),
        ("<0de", " two three"),
        ("<0d$", ""),
        ("<0wD", "one "),
        ("<0x", "ne two three"),
        ("<03x", " two three"),
        ("<0rX", "Xne two three"),
        ("<0wwdb", "one three"),
        ("<0ywP", "one one two three"),
        ("<0dwu", "one two three"),
        ("<0A!", "one two three!"),
        ("<I>", ">one two three"),
        ("<0$i-", "one two thre-e"),
        ("<0ea-", "one- two three"),
        ("<bdw", "one two "),
        ("<0xp", "noe two three"),
        ("<0d<x", "ne two three"),
        ("<0dqx", "ne two three"),
        ("<0wCX", "one X"),
        ("<hhx", "one two thee"),
        ("<^dd", ""),
    ] {
        assert_eq!(edit_with_vim("one two three", keys).0, expected, "{keys}");
    }
}

#[test]
fn vi_commands_edit_lines() {
    for (keys, expected) in [
        ("<ggdd", "b\nc"),
        ("<Gdd", "a\nb"),
        ("<ggyyp", "a\na\nb\nc"),
        ("<gg2dd", "c"),
        ("<ggccX", "X\nb\nc"),
        ("<ggoX", "a\nX\nb\nc"),
        ("<GOX", "a\nb\nX\nc"),
        ("<ggdG", ""),
        ("<2Gdd", "a\nc"),
        ("<ggjx", "a\n\nc"),
        ("<kx", "a\n\nc"),
        ("<ggyyGP", "a\nb\na\nc"),
    ] {
        assert_eq!(edit_with_vim("a\nb\nc", keys).0, expected, "{keys}");
    }
}

#[test]
fn vi_modes_keep_the_usual_keys() {
    assert_eq!(edit_with_vim("word", "").1, "INSERT");
    assert_eq!(edit_with_vim("word", "<").1, "NORMAL");
    assert_eq!(edit_with_vim("word", "<i").1, "INSERT");
    let mut env = TestPromptEditor::default();
    env.appearance.layout.vim = true;
    env.type_text("word");
    assert_eq!(env.press("esc"), PromptAction::Handled, "Esc leaves insert mode first");
    assert_eq!(env.press("d esc"), PromptAction::Handled, "Esc drops a pending operator");
    assert_eq!(env.press("esc"), PromptAction::Ignored, "then it has its usual meaning");
    assert!(matches!(env.press("enter"), PromptAction::Submit(_)));
    assert_eq!(env.prompt.editing_mode(&env.appearance), Some("INSERT"));
    env.appearance.layout.vim = false;
    env.type_text("x");
    assert_eq!(env.press("esc"), PromptAction::Ignored);
    assert_eq!(env.prompt.editing_mode(&env.appearance), None);
}

proptest! {
    #[test]
    fn vi_keys_never_break_the_text(
        text in "[a-z 漢👨‍👩‍👧\n]{0,20}",
        keys in "[hlwbe0$^gGdcypxriaIAoOuDCPjks1-3<é漢]{0,30}",
    ) {
        let (result, mode) = edit_with_vim(&text, &keys);
        let lost_character = '\u{fffd}';
        prop_assert!(!result.contains(lost_character) && !mode.is_empty());
    }
}

#[test]
fn a_click_moves_the_cursor() {
    let mut env = TestPromptEditor::default();
    env.type_text("first\nsecond");
    let mut buffer = ratatui::buffer::Buffer::empty(Rect::new(0, 0, 40, 2));
    let (appearance, state) = (env.appearance.clone(), SessionState::default());
    env.prompt.draw(Rect::new(0, 0, 40, 2), &mut buffer, &appearance, &state);
    env.prompt.click((0, 4));
    env.type_text("X");
    assert_eq!(env.prompt.text(), "fiXrst\nsecond");
    env.prompt.click((1, 99));
    env.type_text("Y");
    assert_eq!(env.prompt.text(), "fiXrst\nsecondY");
}
