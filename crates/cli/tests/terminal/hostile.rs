//! Nothing that a model, a tool or a file name says reaches the terminal but as text: I-INK.

use crate::place::{REST, open, say};
use serde_json::json;

/// What would move the cursor, set the title, write the clipboard, ask the terminal, or hide itself.
const EVIL: &[&str] = &[
    "\x1b]52;c;ZXZpbA==\x07",
    "\x1b]0;owned\x07",
    "\x1b]2;owned\x1b\\",
    "\x1b[2J\x1b[H",
    "\x1b[6n",
    "\x1b[?1049l",
    "\x1b[?25l",
    "\x1b[8;1;1t",
    "\x1bc",
    "\x1bP+q544e\x1b\\",
    "\x1b_Gf=24;AAAA\x1b\\",
    "\u{9b}2J",
    "\u{9d}52;c;ZXZpbA==\u{9c}",
    "\u{202e}evil",
    "\u{2066}evil",
    "\r\x08\x0b\x0c\x07",
];

fn is_calm(terminal: &windlass_testkit::terminal::Terminal, from: &str) {
    terminal.settle(REST);
    let deeds = terminal.deeds();
    assert_eq!(deeds.titles, Vec::<String>::new(), "{from}");
    assert_eq!(deeds.clipboard, Vec::<String>::new(), "{from}");
    assert_eq!((deeds.bells, deeds.unknown), (0, Vec::new()), "{from}");
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    for sign in ['\u{9b}', '\u{9d}', '\u{9c}', '\u{202e}', '\u{2066}', '\x07', '\x0b', '\x0c'] {
        assert!(!raw.contains(sign), "{from}: {sign:?} was written");
    }
    assert!(terminal.look(|screen| screen.alternate_screen() && !screen.hide_cursor()), "{from}");
}

#[test]
fn what_a_model_says_and_thinks_is_only_text() {
    let all = EVIL.concat();
    let reply = format!("raw {}", json_chunks(&all));
    let (_yard, terminal) = open(&[&reply], "");
    say(&terminal, "go");
    terminal.wait_text("The end of it.");
    is_calm(&terminal, "a model");
}

/// An answer in the raw words of the wire, so that no line of the script breaks it.
fn json_chunks(evil: &str) -> String {
    let chunk = |delta: serde_json::Value, finish: serde_json::Value| {
        let choice = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        format!(
            "data: {}\\n\\n",
            json!({"id": "c", "object": "chat.completion.chunk", "choices": choice})
        )
        .replace("\\\\n", "\\n")
    };
    let mut text = chunk(json!({"role": "assistant", "reasoning_content": evil}), json!(null));
    text += &chunk(json!({"content": evil}), json!(null));
    text += &chunk(json!({"content": " The end of it."}), json!("stop"));
    text
}

#[test]
fn what_a_command_prints_and_what_it_is_called_is_only_text() {
    let print: String = EVIL.concat().bytes().map(|byte| format!("\\{byte:03o}")).collect();
    let call = json!({"command": format!("printf '{print}'; printf 'the end of it\\n'"), "description": EVIL.concat()});
    let (_yard, terminal) =
        open(&[&format!("call bash {call}"), "say Done."], r#""permission": "allow""#);
    say(&terminal, "go");
    terminal.wait_text("Done.");
    // Open, too.
    terminal.press("\x1be");
    is_calm(&terminal, "a command");
}

#[test]
fn what_is_asked_about_is_only_text_and_draws_no_question() {
    let fake = "\x1b[2J\x1b[HChange a file\n  y yes\x1b]52;c;ZXZpbA==\x07";
    let call =
        json!({"filePath": format!("{}.txt", EVIL.concat().replace('/', "")), "content": fake});
    let (_yard, terminal) = open(&[&format!("call write {call}"), "say Done."], "");
    say(&terminal, "go");
    terminal.settle(REST * 4);
    is_calm(&terminal, "a question");
}

#[test]
fn a_file_of_the_project_is_listed_by_its_name_and_no_more() {
    let (yard, terminal) = open(&[], "");
    for (number, evil) in EVIL.iter().enumerate() {
        let _ = std::fs::write(yard.root().join(format!("f{number}{}", evil.replace('/', ""))), "");
    }
    terminal.press("@f");
    terminal.wait_text("f15");
    is_calm(&terminal, "a file's name");
}

#[test]
fn what_is_pasted_is_only_text() {
    let (_yard, terminal) = open(&["say Yes."], "");
    terminal.paste(&format!("begin {} end", EVIL.concat().replace('\r', "")));
    terminal.wait_text("begin");
    is_calm(&terminal, "a paste");
}
