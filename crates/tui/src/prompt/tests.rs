//! The prompt as a whole: what keys do, what is said, and how it looks.

use super::{Heard, Prompt, Saying};
use crate::cx::{Act, Cx, Look};
use crate::keys::Command;
use crate::known::Known;
use crate::theme::{Depth, Theme};
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use ratatui::layout::{Position, Rect};
use unicode_segmentation::UnicodeSegmentation;
use uuid::Uuid;
use windlass_protocol::wire::{Answered, Listing, Request, Row};
use windlass_protocol::{
    Attachment, BlobRef, Delivery, Fault, Millis, Op, PromptId, PromptRow, Query, Reply, SessionId,
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

/// A prompt, and what it was given and gave.
#[derive(Default)]
struct Stage {
    prompt: Prompt,
    look: Look,
    known: Known,
    now: u64,
    next: u64,
    acts: Vec<Act>,
    commands: Vec<Command>,
}

impl Stage {
    fn with<T>(&mut self, work: impl FnOnce(&mut Prompt, &mut Cx<'_>) -> T) -> T {
        let mut cx = Cx {
            look: &mut self.look,
            known: &self.known,
            now: self.now,
            commands: &mut self.commands,
            acts: &mut self.acts,
            next: &mut self.next,
        };
        work(&mut self.prompt, &mut cx)
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Heard {
        self.with(|prompt, cx| prompt.key(&KeyEvent::new(code, modifiers), cx))
    }

    /// Presses keys: `ctrl+a left`.
    fn press(&mut self, keys: &str) -> Heard {
        let mut heard = Heard::Unused;
        for key in keys.split_whitespace() {
            let mut modifiers = KeyModifiers::NONE;
            let mut name = key;
            for (word, modifier) in [
                ("ctrl+", KeyModifiers::CONTROL),
                ("alt+", KeyModifiers::ALT),
                ("shift+", KeyModifiers::SHIFT),
            ] {
                if let Some(rest) = name.strip_prefix(word) {
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
                letter => KeyCode::Char(letter.chars().next().unwrap()),
            };
            heard = self.key(code, modifiers);
        }
        heard
    }

    fn write(&mut self, text: &str) -> &mut Stage {
        for letter in text.chars() {
            match letter {
                '\n' => self.key(KeyCode::Enter, KeyModifiers::SHIFT),
                letter => self.key(KeyCode::Char(letter), KeyModifiers::NONE),
            };
        }
        self
    }

    fn paste(&mut self, text: &str) -> &mut Stage {
        self.with(|prompt, cx| prompt.paste(text, cx));
        self
    }

    fn answer(&mut self, answer: Result<Answered, Fault>) {
        let id = self.next;
        assert!(self.with(|prompt, cx| prompt.answer(id, &answer, cx)));
    }

    /// Answers every question for a list, or for prompts, as a host would.
    fn serve(&mut self) {
        let row =
            |name: &str, note: &str| Row { name: name.into(), note: note.into(), ..Row::default() };
        for act in std::mem::take(&mut self.acts) {
            let Act::Send(up) = act else { continue };
            let answered = match &up.request {
                Request::List { what: Listing::Files } => {
                    Answered::Rows { rows: FILES.iter().map(|name| row(name, "")).collect() }
                }
                Request::List { what: Listing::Agents } => Answered::Rows {
                    rows: vec![row("explore", "Looks around and changes nothing")],
                },
                Request::List { .. } => Answered::Rows {
                    rows: vec![row("review", "Reviews what is staged"), row("quit", "Not ours")],
                },
                Request::Query { query: Query::Prompts { .. } } => {
                    let (session, at) = (SessionId(Uuid::from_u128(1)), Millis(1));
                    let said = |text: &str| PromptRow {
                        session,
                        at,
                        seq: 1,
                        text: text.into(),
                        attachments: Vec::new(),
                        back: None,
                    };
                    let prompts =
                        vec![said("rename Parser to Reader"), said("why is the parser slow?")];
                    Answered::Reply { reply: Reply::Prompts { prompts } }
                }
                _ => continue,
            };
            assert!(self.with(|prompt, cx| prompt.answer(up.id, &Ok(answered), cx)));
        }
    }

    fn asked(&self) -> Vec<&Request> {
        let sent = self.acts.iter().filter_map(|act| match act {
            Act::Send(up) => Some(&up.request),
            _ => None,
        });
        sent.collect()
    }

    /// The frame, and the cursor as `▏` before the cell it is in.
    fn frame(&mut self, width: u16, screen: u16) -> String {
        let (buffer, cursor) = self.drawn(width, screen);
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
                skip = crate::ink::width(symbol).saturating_sub(1);
                row.push_str(symbol);
            }
            text.push_str(row.trim_end());
            text.push('\n');
        }
        text
    }

    fn drawn(&mut self, width: u16, screen: u16) -> (ratatui::buffer::Buffer, Option<Position>) {
        self.prompt.fit(screen);
        let height = self.prompt.height(width, &self.look).min(screen / 2).max(1);
        let mut buffer = ratatui::buffer::Buffer::empty(Rect::new(0, 0, width, height));
        let cursor = self.prompt.draw(buffer.area, &mut buffer, &self.look, &self.known);
        (buffer, cursor)
    }

    fn shows(&mut self, width: u16, expected: Expect) {
        expected.assert_eq(&self.frame(width, 24));
    }
}

fn said(heard: Heard) -> Saying {
    match heard {
        Heard::Say(saying) => saying,
        other => panic!("nothing was said: {other:?}"),
    }
}

fn steered(text: &str) -> Saying {
    Saying::prompt(text.into())
}

fn shot() -> Attachment {
    let blob = BlobRef::parse(&"a".repeat(64)).unwrap();
    Attachment { name: "shot.png".into(), mime: "image/png".into(), blob }
}

fn other() -> Attachment {
    Attachment { name: "plan.pdf".into(), mime: "application/pdf".into(), ..shot() }
}

#[test]
fn enter_says_it_and_the_prompt_is_empty_again() {
    let mut stage = Stage::default();
    stage.write("fix the parser");
    assert_eq!(said(stage.press("enter")), steered("fix the parser"));
    assert!(stage.prompt.is_empty());
    assert_eq!(stage.press("enter"), Heard::Used, "nothing is never said");
    stage.write("  ");
    assert_eq!(stage.press("enter"), Heard::Used, "nor is space");
}

#[test]
fn alt_enter_queues() {
    let mut stage = Stage::default();
    stage.write("then the docs");
    let Saying::Prompt { when, .. } = said(stage.press("alt+enter")) else { panic!() };
    assert_eq!(when, Delivery::Queue);
}

#[test]
fn a_new_line_is_begun_in_three_ways() {
    for keys in ["shift+enter", "ctrl+j", "\\ enter"] {
        let mut stage = Stage::default();
        stage.write("a");
        stage.press(keys);
        stage.write("b");
        assert_eq!(stage.prompt.text(), "a\nb", "{keys}");
    }
    let mut stage = Stage::default();
    stage.write("C:\\\\");
    assert_eq!(said(stage.press("enter")), steered("C:\\\\"), "two are meant");
}

#[test]
fn a_line_for_the_shell_keeps_its_backslash() {
    let mut stage = Stage::default();
    stage.write("!echo a \\");
    stage.press("enter");
    stage.write("b");
    assert_eq!(said(stage.press("enter")), Saying::Shell("echo a \\\nb".into()));
    stage.write("!  ");
    assert_eq!(stage.press("enter"), Heard::Used);
}

#[test]
fn up_and_down_go_by_the_rows_that_are_seen_and_keep_their_column() {
    let mut stage = Stage::default();
    stage.write("one two three four\nx\nlast line");
    stage.frame(12, 24);
    // Rows of nine columns: "one two ", "three ", "four", "x", "last line".
    stage.press("up");
    assert_eq!(stage.prompt.buffer.before(), "one two three four\nx");
    stage.press("up");
    assert_eq!(stage.prompt.buffer.before(), "one two three four");
    stage.press("up");
    assert_eq!(stage.prompt.buffer.before(), "one two three");
    stage.press("up");
    assert_eq!(stage.prompt.buffer.before(), "one two");
    stage.press("down down down down");
    assert_eq!(stage.prompt.buffer.behind(), "");
}

#[test]
fn what_was_said_comes_back_and_the_draft_is_kept() {
    let mut stage = Stage::default();
    for text in ["first", "second\nwith two lines"] {
        stage.write(text);
        stage.press("enter");
    }
    stage.write("draft");
    stage.press("up");
    assert_eq!(stage.prompt.text(), "second\nwith two lines");
    stage.press("up");
    assert_eq!(stage.prompt.text(), "first", "a prompt of several lines is no trap");
    stage.press("down down");
    assert_eq!(stage.prompt.text(), "draft");
    stage.press("up");
    stage.write("!");
    stage.press("down");
    assert_eq!(stage.prompt.text(), "second\nwith two lines!", "what was changed is a draft");
}

#[test]
fn a_long_paste_is_a_chip_and_is_said_whole() {
    let mut stage = Stage::default();
    let log: String = (0..120).map(|number| format!("line {number}\n")).collect();
    stage.write("see ").paste(&log).write(" why?");
    stage.shows(
        80,
        expect![[r#"
        › see [pasted 120 lines] why?▏
    "#]],
    );
    stage.press("ctrl+left ctrl+left ctrl+left");
    assert_eq!(stage.prompt.buffer.before(), "see ");
    stage.press("right");
    assert!(stage.prompt.buffer.behind().starts_with(" why"));
    assert_eq!(said(stage.press("enter")), steered(&format!("see {log} why?")));
}

#[test]
fn the_same_paste_again_opens_it() {
    let mut stage = Stage::default();
    stage.paste("1\n2\n3\n4\n5").paste("1\n2\n3\n4\n5");
    stage.shows(
        40,
        expect![[r#"
        › 1
          2
          3
          4
          5▏
    "#]],
    );
    assert_eq!(stage.prompt.text(), "1\n2\n3\n4\n5");
    stage.press("ctrl+_");
    stage.press("backspace");
    assert!(stage.prompt.is_empty(), "a chip goes at once");
}

#[test]
fn a_dropped_picture_becomes_a_chip_when_it_is_one() {
    let mut stage = Stage::default();
    stage.write("what is ").paste("'/tmp/my shot.png'").write(" ?");
    assert_eq!(stage.asked(), [&Request::KeepFile { path: "/tmp/my shot.png".into() }]);
    stage.answer(Ok(Answered::Kept { attachment: shot() }));
    stage.shows(
        40,
        expect![[r#"
        › what is [image: shot.png] ?▏
    "#]],
    );
    let saying = said(stage.press("enter"));
    let (text, when) = ("what is [image: shot.png] ?".into(), Delivery::Steer);
    assert_eq!(saying, Saying::Prompt { text, attachments: vec![shot()], when });
}

#[test]
fn a_path_that_is_no_picture_stays_a_text() {
    let mut stage = Stage::default();
    stage.paste("/tmp/none.png");
    stage.answer(Err(Fault::Internal { message: "no".into() }));
    assert_eq!(said(stage.press("enter")), steered("/tmp/none.png"));
}

#[test]
fn a_picture_of_the_clipboard_is_waited_for() {
    let mut stage = Stage::default();
    stage.write("see ");
    stage.with(|prompt, cx| prompt.picture(b"png", cx));
    assert_eq!(stage.press("enter"), Heard::Used);
    stage.shows(
        60,
        expect![[r#"
        › see ▏                           the picture is not here yet
    "#]],
    );
    stage.answer(Ok(Answered::Kept { attachment: shot() }));
    let due = stage.with(|prompt, cx| prompt.due(cx));
    let Some(Saying::Prompt { attachments, .. }) = due else { panic!("{due:?}") };
    assert_eq!(attachments, [shot()]);
    // Without it nothing is sent.
    stage.write("see ");
    stage.with(|prompt, cx| prompt.picture(b"png", cx));
    stage.press("enter");
    stage.answer(Err(Fault::Internal { message: "too large".into() }));
    assert_eq!(stage.with(|prompt, cx| prompt.due(cx)), None);
    assert_eq!(stage.prompt.text(), "see ");
}

#[test]
fn a_picture_survives_the_editor() {
    let mut stage = Stage::default();
    stage.paste("/tmp/shot.png");
    stage.answer(Ok(Answered::Kept { attachment: shot() }));
    stage.press("ctrl+x");
    assert_eq!(stage.commands, [Command::Editor]);
    let text = stage.prompt.text();
    stage.prompt.set(&format!("look: {text}"));
    let Saying::Prompt { attachments, .. } = said(stage.press("enter")) else { panic!() };
    assert_eq!(attachments, [shot()]);
}

#[test]
fn what_was_said_with_a_picture_comes_back_with_it() {
    let mut stage = Stage::default();
    let drop = |stage: &mut Stage| {
        stage.paste("/tmp/shot.png");
        stage.answer(Ok(Answered::Kept { attachment: shot() }));
    };
    let sent = |stage: &mut Stage| match said(stage.press("enter")) {
        Saying::Prompt { text, attachments, .. } => (text, attachments),
        other => panic!("{other:?}"),
    };
    stage.write("see ");
    drop(&mut stage);
    let first = sent(&mut stage);
    assert_eq!(first, ("see [image: shot.png]".to_owned(), vec![shot()]));
    stage.write("words");
    sent(&mut stage);
    // By the arrows, over and over.
    stage.press("up up down up");
    assert_eq!(sent(&mut stage), first);
    // By its words.
    stage.press("ctrl+r");
    stage.write("see").press("enter");
    assert_eq!(sent(&mut stage), first);
    // A draft keeps its own.
    stage.write("and ");
    drop(&mut stage);
    stage.press("up down");
    assert_eq!(sent(&mut stage), ("and [image: shot.png]".to_owned(), vec![shot()]));
}

#[test]
fn keys_that_mean_nothing_here_are_left_to_others() {
    let mut stage = Stage::default();
    for key in ["ctrl+g", "alt+q", "esc", "tab", "alt+up"] {
        assert_eq!(stage.press(key), Heard::Unused, "{key}");
    }
}

#[test]
fn it_looks_empty() {
    let mut stage = Stage::default();
    stage.shows(
        80,
        expect![[r#"
        › ▏Say what is to be done · @ names a file · / a command · ! the shell
    "#]],
    );
    stage.shows(
        40,
        expect![[r#"
        › ▏Say what is to be done
    "#]],
    );
    stage.shows(
        12,
        expect![[r#"
        › ▏
    "#]],
    );
}

#[test]
fn it_looks_busy() {
    let mut stage = Stage::default();
    stage.known.turn = Some((1, 0));
    stage.shows(
        80,
        expect![[r#"
        › ▏Enter steers · Alt+Enter queues
    "#]],
    );
    stage.write("also the docs");
    stage.shows(
        80,
        expect![[r#"
        › also the docs▏                                  Enter steers · Alt+Enter queues
    "#]],
    );
    stage.shows(
        40,
        expect![[r#"
        › also the docs▏             Enter steers
    "#]],
    );
    stage.write(" and then everything");
    stage.shows(
        40,
        expect![[r#"
        › also the docs and then everything▏
    "#]],
    );
}

#[test]
fn a_text_wraps_between_words_and_between_wide_letters() {
    let mut stage = Stage::default();
    stage.write("Please make the parser accept a trailing comma everywhere 日本語のテキストも折り返す e\u{301}👍🏽");
    stage.shows(
        40,
        expect![[r#"
        › Please make the parser accept a
          trailing comma everywhere 日本語のテ
          キストも折り返す é👍▏
    "#]],
    );
    stage.press("left left left");
    stage.shows(
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
    let mut stage = Stage::default();
    stage.write(&(1..=20).map(|number| format!("row {number}\n")).collect::<String>());
    stage.shows(
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
    stage.press("up up up up up up up up up up up up");
    stage.shows(
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
fn it_looks_the_same_in_ascii_without_colours() {
    let mut stage = Stage::default();
    stage.look.ascii = true;
    stage.look.theme = Theme { depth: Depth::None, ..Theme::default() };
    stage.known.turn = Some((1, 0));
    stage.shows(
        60,
        expect![[r#"
        > ▏Enter steers - Alt+Enter queues
    "#]],
    );
    stage.write("plain");
    stage.shows(
        60,
        expect![[r#"
        > plain▏                      Enter steers - Alt+Enter queues
    "#]],
    );
}

#[test]
fn a_line_for_the_shell_is_marked() {
    let mut stage = Stage::default();
    stage.write("!cargo test");
    stage.shows(
        40,
        expect![[r#"
            ! cargo test▏
        "#]],
    );
}

#[test]
fn a_file_is_named_behind_an_at() {
    let mut stage = Stage::default();
    stage.write("look at @");
    stage.shows(
        60,
        expect![[r#"
          looking …
        › look at @▏
    "#]],
    );
    stage.serve();
    stage.shows(
        60,
        expect![[r#"
         @explore             Looks around and changes nothing
          Cargo.toml
          README.md
          src/main.rs
          src/parser.rs
          src/parser/tests.rs
          src/reader.rs
          …g-name/src/deep/down/in/the/tree/parser_of_everything.rs
        › look at @▏
    "#]],
    );
    stage.write("pars");
    stage.shows(
        60,
        expect![[r#"
          src/parser.rs
          src/parser/tests.rs
          …g-name/src/deep/down/in/the/tree/parser_of_everything.rs
        › look at @pars▏
    "#]],
    );
    stage.shows(
        40,
        expect![[r#"
          src/parser.rs
          src/parser/tests.rs
          …/in/the/tree/parser_of_everything.rs
        › look at @pars▏
    "#]],
    );
    stage.press("down");
    stage.press("enter");
    stage.shows(
        60,
        expect![[r#"
        › look at @src/parser/tests.rs ▏
    "#]],
    );
    stage.write("and @expl");
    stage.press("tab");
    stage.write("and @mynot");
    stage.press("tab");
    assert_eq!(
        stage.prompt.text(),
        "look at @src/parser/tests.rs and @explore and @\"my notes.txt\" "
    );
    assert!(!stage.prompt.close());
}

#[test]
fn files_are_asked_for_once_in_a_while() {
    let mut stage = Stage::default();
    stage.write("@a");
    assert_eq!(stage.asked().len(), 2);
    stage.serve();
    stage.write(" @b @c");
    assert_eq!(stage.asked().len(), 0);
    stage.now += 31_000;
    stage.write(" @d");
    assert_eq!(stage.asked().len(), 2);
    stage.write("e");
    assert_eq!(stage.asked().len(), 2, "they are under way");
}

#[test]
fn a_whole_name_is_said_and_nothing_is_shown_for_an_address() {
    let mut stage = Stage::default();
    stage.write("see @README.md");
    stage.serve();
    assert_eq!(said(stage.press("enter")), steered("see @README.md"));
    stage.write("mail me@src");
    stage.serve();
    assert_eq!(said(stage.press("enter")), steered("mail me@src"));
    stage.write("@nothing-like-this");
    stage.shows(
        60,
        expect![[r#"
          no file and no agent is called that
        › @nothing-like-this▏
    "#]],
    );
    assert_eq!(said(stage.press("enter")), steered("@nothing-like-this"));
}

#[test]
fn a_list_that_was_closed_stays_closed_for_that_name() {
    let mut stage = Stage::default();
    stage.write("@pa");
    stage.serve();
    assert_eq!(stage.press("esc"), Heard::Unused);
    assert!(stage.prompt.close());
    stage.write("r");
    assert!(!stage.prompt.close());
    stage.write(" @r");
    assert!(stage.prompt.close());
}

#[test]
fn moving_the_cursor_opens_no_list() {
    let mut stage = Stage::default();
    stage.write("@pa");
    stage.serve();
    stage.press("tab");
    stage.press("left left left");
    assert!(!stage.prompt.close());
    stage.press("up");
    assert_eq!(stage.prompt.buffer.at(), 0, "the arrow was not the list's");
}

#[test]
fn a_needle_that_grows_is_looked_for_in_what_matched() {
    let mut stage = Stage::default();
    stage.write("@");
    let files = (0..100_000).map(|number| Row {
        name: format!("src/folder{}/file{number}.rs", number % 97),
        ..Row::default()
    });
    let files: Vec<Row> = files.chain([Row { name: "zebra".into(), ..Row::default() }]).collect();
    let id = stage.next - 1;
    let answer = Ok(Answered::Rows { rows: files });
    stage.with(|prompt, cx| prompt.answer(id, &answer, cx));
    assert_eq!(stage.prompt.suggest.looked_at, 0, "nothing matches everything");
    stage.write("z");
    assert_eq!(stage.prompt.suggest.looked_at, 100_001);
    stage.write("e");
    assert_eq!(stage.prompt.suggest.looked_at, 1);
    stage.press("tab");
    assert_eq!(stage.prompt.text(), "@zebra ");
}

#[test]
fn commands_are_listed_with_what_they_do() {
    let mut stage = Stage::default();
    stage.write("/");
    stage.serve();
    stage.shows(
        80,
        expect![[r#"
             /help      Lists keys and commands                                          F1
             /mode      Goes to the next mode: plan, ask, auto                    Shift+Tab
             /sessions  Lists sessions; finds, opens, forks and deletes them         Ctrl+S
             /new       Begins a new session
             /fork      Goes on in a copy of this session
             /back      Goes back to an earlier prompt
             /rename    Gives this session a title: /rename TITLE
             /compact   Sums the conversation up, so that it takes less room
            / ▏
        "#]],
    );
    assert_eq!(stage.press("enter"), Heard::Used, "a sign alone runs nothing");
    stage.write("re");
    stage.shows(
        80,
        expect![[r#"
         /rename  Gives this session a title: /rename TITLE
         /redo    Does again what was taken back last
         /review  Reviews what is staged
        / re▏
    "#]],
    );
    stage.shows(
        40,
        expect![[r#"
         /rename  Gives this session a title: /…
         /redo    Does again what was taken bac…
         /review  Reviews what is staged
        / re▏
    "#]],
    );
    stage.write("v");
    stage.shows(
        80,
        expect![[r#"
         /review  Reviews what is staged
        / rev▏
    "#]],
    );
    let own = Saying::Own { name: "review".into(), arguments: String::new() };
    assert_eq!(said(stage.press("enter")), own);
}

#[test]
fn a_command_takes_what_stands_behind_it() {
    let mut stage = Stage::default();
    stage.write("/rena");
    stage.serve();
    stage.press("tab");
    stage.write("The parser");
    stage.shows(
        60,
        expect![[r#"
        / rename The parser▏
    "#]],
    );
    assert_eq!(said(stage.press("enter")), Saying::Slash(Command::Rename, "The parser".into()));
    stage.write("/review src\nand docs");
    let arguments = "src\nand docs".into();
    assert_eq!(said(stage.press("enter")), Saying::Own { name: "review".into(), arguments });
    stage.write("/quit");
    assert_eq!(said(stage.press("enter")), Saying::Slash(Command::Quit, String::new()));
}

#[test]
fn a_path_and_an_unknown_word_can_be_said() {
    let mut stage = Stage::default();
    for text in ["/usr/bin/env is missing", "/etc", "/zzz what is this?"] {
        stage.write(text);
        stage.serve();
        if text == "/etc" {
            stage.shows(
                60,
                expect![[r#"
                  no such command; Enter says it as it is
                › /etc▏
            "#]],
            );
        }
        assert_eq!(said(stage.press("enter")), steered(text));
    }
}

#[test]
fn what_is_only_like_a_command_is_written_out_before_it_runs() {
    let mut stage = Stage::default();
    stage.write("/mdl");
    stage.serve();
    assert_eq!(stage.press("enter"), Heard::Used);
    assert_eq!(stage.prompt.text(), "/model ");
    assert_eq!(said(stage.press("enter")), Saying::Slash(Command::Model, String::new()));
}

#[test]
fn a_command_waits_until_it_is_known_which_there_are() {
    let mut stage = Stage::default();
    stage.paste("/review");
    assert_eq!(stage.press("enter"), Heard::Used);
    stage.shows(
        60,
        expect![[r#"
        › /review▏                     your commands are not here yet
    "#]],
    );
    stage.serve();
    let own = Saying::Own { name: "review".into(), arguments: String::new() };
    assert_eq!(stage.with(|prompt, cx| prompt.due(cx)), Some(own));
    assert_eq!(stage.with(|prompt, cx| prompt.due(cx)), None);
    // Whoever types on has not sent it.
    let mut stage = Stage::default();
    stage.paste("/review");
    stage.press("enter");
    stage.write(" it");
    stage.serve();
    assert_eq!(stage.with(|prompt, cx| prompt.due(cx)), None);
    // One that was put there by others is looked up, too.
    let mut stage = Stage::default();
    stage.prompt.restore("/review it", &[]);
    assert_eq!(stage.press("enter"), Heard::Used);
    stage.serve();
    let own = Saying::Own { name: "review".into(), arguments: "it".into() };
    assert_eq!(stage.with(|prompt, cx| prompt.due(cx)), Some(own));
}

#[test]
fn an_earlier_prompt_is_found_by_its_words() {
    let mut stage = Stage::default();
    stage.write("fix the PARSER\nand its tests");
    stage.press("enter");
    stage.write("draft");
    stage.press("ctrl+r");
    stage.serve();
    stage.shows(
        60,
        expect![[r#"
          fix the PARSER and its tests
          rename Parser to Reader
          why is the parser slow?
        ? ▏words of an earlier prompt
    "#]],
    );
    stage.write("parser");
    stage.press("ctrl+r");
    stage.shows(
        60,
        expect![[r#"
          fix the PARSER and its tests
          rename Parser to Reader
          why is the parser slow?
        ? parser▏
    "#]],
    );
    stage.write("zz");
    stage.shows(
        60,
        expect![[r#"
          nothing like that was said here
        ? parserzz▏
    "#]],
    );
    assert!(!stage.prompt.is_empty());
    stage.prompt.set("");
    assert_eq!(stage.prompt.text(), "draft", "Ctrl-C brings the draft back");
    stage.press("ctrl+r");
    stage.write("slow");
    stage.press("enter");
    assert_eq!(stage.prompt.text(), "why is the parser slow?");
}

#[test]
fn the_first_up_brings_a_prompt_of_an_earlier_session() {
    let mut stage = Stage::default();
    stage.press("up");
    assert!(stage.prompt.is_empty());
    stage.serve();
    assert_eq!(stage.prompt.text(), "rename Parser to Reader");
    stage.press("up");
    assert_eq!(stage.prompt.text(), "why is the parser slow?");
    stage.press("down down");
    assert!(stage.prompt.is_empty());
    assert!(stage.asked().is_empty());
}

#[test]
fn up_takes_a_prompt_back_that_waits() {
    let mut stage = Stage::default();
    let (session, prompt) = (SessionId(Uuid::from_u128(1)), PromptId(Uuid::from_u128(2)));
    stage.known.session = Some(session);
    stage.known.turn = Some((1, 0));
    let waits = |id: PromptId, text: &str, attachments: Vec<Attachment>, when| {
        windlass_protocol::transcript::Prompt { id, text: text.into(), attachments, when }
    };
    stage.known.waiting = vec![
        waits(PromptId(Uuid::from_u128(1)), "first", Vec::new(), Delivery::Steer),
        waits(prompt, "see [image: shot.png] here", vec![shot(), other()], Delivery::Queue),
    ];
    stage.shows(
        80,
        expect![[r#"
        › ▏Enter steers · Alt+Enter queues · Up takes back
    "#]],
    );
    stage.press("up");
    assert_eq!(stage.asked(), [&Request::Do { session, op: Op::Withdraw { prompt } }]);
    stage.shows(
        80,
        expect![[r#"
            › see [image: shot.png] here [file: plan.pdf]▏    Enter steers · Alt+Enter queues
        "#]],
    );
    // What came with it is said with it again, as long as it stands there.
    stage.press("backspace");
    let Saying::Prompt { text, attachments, .. } = said(stage.press("enter")) else { panic!() };
    assert_eq!((text.as_str(), attachments), ("see [image: shot.png] here", vec![shot()]));
}

/// What can happen to a prompt.
#[derive(Clone, Debug)]
enum Happens {
    Key(&'static str),
    Letter(char),
    Paste(String),
    Size(u16, u16),
}

fn letters() -> impl Strategy<Value = char> {
    prop_oneof![
        5 => prop::char::range('a', 'e'),
        2 => Just(' '),
        1 => prop::sample::select(vec![
            '語', '👍', '\u{1f3fd}', '\u{301}', '\u{200d}', '🇩', '🇪', '/', '@', '!', '\\', 'é', 'ﷺ',
            '\u{600}', '\u{100000}', '\u{10ffff}',
        ]),
    ]
}

fn happens() -> impl Strategy<Value = Happens> {
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
        "ctrl+p",
    ];
    prop_oneof![
        6 => letters().prop_map(Happens::Letter),
        6 => prop::sample::select(KEYS).prop_map(Happens::Key),
        1 => prop::collection::vec(prop_oneof![letters(), Just('\n'), Just('\r'), Just('\u{1b}')], 0..12)
            .prop_map(|letters| Happens::Paste(letters.into_iter().collect())),
        1 => (1..60u16, 1..40u16).prop_map(|(width, height)| Happens::Size(width, height)),
    ]
}

/// The same, without any cleverness: every place is found by looking at the whole text.
#[derive(Default)]
struct Naive {
    text: String,
    at: usize,
}

impl Naive {
    fn places(&self) -> Vec<usize> {
        let starts = self.text.grapheme_indices(true).map(|(at, _)| at);
        starts.chain([self.text.len()]).collect()
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        let at = self.at + text.len();
        self.at = self.places().into_iter().find(|place| *place >= at).unwrap();
    }

    fn cut(&mut self, other: usize) {
        let (from, to) = (self.at.min(other), self.at.max(other));
        self.text.replace_range(from..to, "");
        self.at = self.places().into_iter().find(|place| *place >= from).unwrap();
    }

    fn left(&self) -> usize {
        self.places().into_iter().rev().find(|place| *place < self.at).unwrap_or(0)
    }

    fn right(&self) -> usize {
        let next = self.places().into_iter().find(|place| *place > self.at);
        next.unwrap_or(self.text.len())
    }

    /// The cursor never stands before a sign that the mark shows.
    fn settle(&mut self) {
        if self.text.starts_with('!') && self.at == 0 {
            self.at = self.right();
        }
    }

    fn key(&mut self, key: &str) {
        match key {
            "left" => self.at = self.left(),
            "right" => self.at = self.right(),
            "home" => self.at = self.text[..self.at].rfind('\n').map_or(0, |at| at + 1),
            "end" => {
                let end = self.text[self.at..].find('\n');
                self.at = end.map_or(self.text.len(), |end| self.at + end);
            }
            "backspace" => self.cut(self.left()),
            "delete" => self.cut(self.right()),
            "shift+enter" => self.insert("\n"),
            other => panic!("{other}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_the_cursor_stands_between_clusters_and_inside_the_screen(
        all in prop::collection::vec(happens(), 1..80),
    ) {
        let mut stage = Stage::default();
        let (mut width, mut height) = (80, 24);
        for happens in all {
            match happens {
                Happens::Key(key) => { stage.press(key); }
                Happens::Letter(letter) => { stage.key(KeyCode::Char(letter), KeyModifiers::NONE); }
                Happens::Paste(text) => { stage.paste(&text); }
                Happens::Size(w, h) => (width, height) = (w, h),
            }
            stage.serve();
            let (raw, at) = (stage.prompt.buffer.raw().to_owned(), stage.prompt.buffer.at());
            let places: Vec<usize> =
                super::motion::clusters(&raw).map(|(at, _)| at).chain([raw.len()]).collect();
            prop_assert!(places.contains(&at), "{raw:?} {at}");
            let (buffer, cursor) = stage.drawn(width, height);
            if let Some(cursor) = cursor {
                prop_assert!(buffer.area.contains(cursor));
            }
        }
    }

    #[test]
    fn the_text_is_what_a_naive_prompt_would_hold(all in prop::collection::vec(happens(), 1..80)) {
        let mut stage = Stage::default();
        let mut naive = Naive::default();
        for happens in all {
            match happens {
                Happens::Key(key) => {
                    const SIMPLE: [&str; 7] =
                        ["left", "right", "home", "end", "backspace", "delete", "shift+enter"];
                    if !SIMPLE.contains(&key) {
                        continue;
                    }
                    stage.press(key);
                    naive.key(key);
                }
                // What it means depends on what the host knows.
                Happens::Letter('/') => {}
                Happens::Letter(letter) => {
                    stage.key(KeyCode::Char(letter), KeyModifiers::NONE);
                    if letter < '\u{100000}' {
                        naive.insert(&letter.to_string());
                    }
                }
                Happens::Paste(text) if text.matches(['\n', '\r']).count() < 3 && !text.contains('/') => {
                    stage.paste(&text);
                    let lines = text.replace("\r\n", "\n").replace('\r', "\n");
                    naive.insert(&lines.replace(['\u{1b}', '\u{100000}', '\u{10ffff}'], ""));
                }
                Happens::Paste(_) => {}
                Happens::Size(width, height) => { stage.frame(width, height); }
            }
            naive.settle();
            prop_assert_eq!(stage.prompt.buffer.raw(), &naive.text);
            prop_assert_eq!(stage.prompt.buffer.at(), naive.at);
        }
    }
}
