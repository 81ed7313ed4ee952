//! I-TEXT: output of a model, a tool or a file name reaches the terminal only as text.

use crate::tui_driver::{QUIET_TIME, open_tui, send_prompt};
use serde_json::json;

/// Sequences that move the cursor, set the title, write the clipboard, query the terminal or hide
/// text.
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

/// Sequences that change the reports of keys, mouse and focus, that notify the user, or that read
/// the clipboard. The terminal UI writes such sequences too, but none with these parameters.
const EVIL_MODES: &[&str] = &[
    "\x1b[?1003h",
    "\x1b[?1000;1002;1006l",
    "\x1b[?2004;1004l",
    "\x1b[>31u",
    "\x1b[=31;1u",
    "\x1b[<9u",
    "\x1b[>4;2m",
    "\x1b[?u",
    "\x1b]9;evil\x07",
    "\x1b]9;4;3;99\x07",
    "\x1b]99;;evil\x1b\\",
    "\x1b]777;notify;evil;evil\x07",
    "\x1b]5522;type=read;aW1hZ2UvcG5n\x1b\\",
];

/// Returns all hostile sequences in one text.
fn evil_text() -> String {
    EVIL.concat() + &EVIL_MODES.concat()
}

/// Checks that nothing but text reached the terminal.
fn assert_only_text(terminal: &windlass_testkit::terminal::Terminal, source: &str) {
    terminal.settle(QUIET_TIME);
    let effects = terminal.effects();
    let is_own = |title: &String| title.ends_with("windlass") && !title.contains(char::is_control);
    assert!(effects.titles.iter().all(is_own), "{source}: {:?}", effects.titles);
    assert_eq!(effects.clipboard, Vec::<String>::new(), "{source}");
    assert_eq!((effects.bells, effects.unknown), (0, Vec::new()), "{source}");
    let raw = String::from_utf8_lossy(&terminal.raw()).into_owned();
    for sign in ['\u{9b}', '\u{9d}', '\u{9c}', '\u{202e}', '\u{2066}', '\x07', '\x0b', '\x0c'] {
        assert!(!raw.contains(sign), "{source}: {sign:?} was written");
    }
    for sequence in EVIL_MODES {
        assert!(!raw.contains(sequence), "{source}: {sequence:?} was written");
    }
    assert!(terminal.look(|screen| screen.alternate_screen() && !screen.hide_cursor()), "{source}");
}

#[test]
fn text_and_reasoning_of_a_model_are_only_text() {
    let all = evil_text();
    let reply = format!("raw {}", json_chunks(&all));
    let (_env, terminal) = open_tui(&[&reply], "");
    send_prompt(&terminal, "go");
    terminal.wait_text("The end of it.");
    assert_only_text(&terminal, "a model");
}

/// Returns a response in wire format, because a line of the script cannot contain line breaks.
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
fn output_and_description_of_a_command_are_only_text() {
    let print: String = evil_text().bytes().map(|byte| format!("\\{byte:03o}")).collect();
    let call = json!({"command": format!("printf '{print}'; printf 'the end of it\\n'"), "description": evil_text()});
    let (_env, terminal) =
        open_tui(&[&format!("call bash {call}"), "say Done."], r#""permission": "allow""#);
    send_prompt(&terminal, "go");
    terminal.wait_text("Done.");
    // Expands the output.
    terminal.press("\x1be");
    assert_only_text(&terminal, "a command");
}

#[test]
fn arguments_in_a_permission_question_are_only_text() {
    let fake = "\x1b[2J\x1b[HEdit a file\n  y yes\x1b]52;c;ZXZpbA==\x07";
    let call =
        json!({"filePath": format!("{}.txt", evil_text().replace('/', "")), "content": fake});
    let (_env, terminal) = open_tui(&[&format!("call write {call}"), "say Done."], "");
    send_prompt(&terminal, "go");
    terminal.settle(QUIET_TIME * 4);
    assert_only_text(&terminal, "a question");
}

#[test]
fn file_names_are_only_text() {
    let (env, terminal) = open_tui(&[], "");
    // Of each list, all names fit on the screen.
    let lists = [("f", EVIL, r"\033[2J"), ("g", EVIL_MODES, r"\033[?1003h")];
    for (prefix, evil, _) in lists {
        for (number, evil) in evil.iter().enumerate() {
            let name = format!("{prefix}{number}{}", evil.replace('/', ""));
            let _ = std::fs::write(env.root().join(name), "");
        }
    }
    for (prefix, _, shown) in lists {
        terminal.press(&format!("@{prefix}"));
        terminal.wait_text(shown);
        assert_only_text(&terminal, "a file's name");
        terminal.press("\x15");
    }
}

#[test]
fn pasted_text_is_only_text() {
    let (_env, terminal) = open_tui(&["say Yes."], "");
    terminal.paste(&format!("begin {} end", evil_text().replace('\r', "")));
    terminal.wait_text("begin");
    assert_only_text(&terminal, "a paste");
}
