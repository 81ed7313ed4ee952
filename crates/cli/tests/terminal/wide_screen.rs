//! The layout on wide screens, the status line and the theme.

use crate::support::TestEnv;
use crate::tui_driver::{open_tui, send_prompt, wait_until_ready};

#[test]
fn a_wide_screen_shows_the_side_panel_and_a_diff_in_two_columns() {
    let replies = [
        "call write {\"filePath\": \"a.txt\", \"content\": \"one\\ntwo\\n\"}",
        "call edit {\"filePath\": \"a.txt\", \"oldString\": \"two\", \"newString\": \"three\"}",
        "say Changed.",
    ];
    let (_env, terminal) = open_tui(&replies, r#""permission": "allow""#);
    terminal.resize(190, 50);
    send_prompt(&terminal, "change it");
    terminal.wait_text("Changed.");
    terminal.wait_text("Changed files");
    terminal.wait_for("the old and the new line in one row", |screen| {
        let rows = screen.rows(0, screen.size().1.get());
        rows.into_iter().any(|row| row.contains("- two") && row.contains("+ three"))
    });
    terminal.press("\x1bp");
    terminal.wait_gone("Changed files");
    terminal.resize(100, 30);
    terminal.wait_for("one column", |screen| {
        let rows: Vec<String> = screen.rows(0, screen.size().1.get()).collect();
        rows.iter().all(|row| !(row.contains("- two") && row.contains("+ three")))
    });
}

#[test]
fn servers_are_shown_with_their_state_and_a_language_server_is_restarted() {
    let tag = format!("tag{}", std::process::id());
    let settings =
        r#""mcp": {"ship": {"command": ["python3", "{folder}/server.py", "{folder}/starts"]}},
        "lsp": {"mine": {"command": ["python3", "rogue.py", "good", "TAG"],
                         "extensions": {".mine": "mine"}}},
        "mode": "auto""#
            .replace("TAG", &tag);
    let read = "call read {\"filePath\": \"a.mine\"}";
    let env = TestEnv::new(&[read, "say Read."], &settings);
    std::fs::write(env.root().join("server.py"), crate::panels::SERVER).unwrap();
    let rogue = concat!(env!("CARGO_MANIFEST_DIR"), "/../lsp/tests/rogue.py");
    std::fs::copy(rogue, env.root().join("rogue.py")).unwrap();
    std::fs::write(env.root().join("a.mine"), "some text\n").unwrap();
    assert_eq!(env.run(&["trust", "--yes"]).0, 0);
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    terminal.resize(190, 50);
    send_prompt(&terminal, "read it");
    terminal.wait_text("Read.");
    for text in ["MCP servers", "● ship", "Language servers", "● mine", "1 MCP · 1 LSP"] {
        terminal.wait_text(text);
    }
    let processes = || crate::jobs_and_agents::find_processes(&tag);
    let before = processes();
    assert!(!before.is_empty());
    send_prompt(&terminal, "/lsp");
    terminal.wait_text("Ctrl+R restart");
    terminal.press("\x12");
    terminal.wait_for("another process", |_| {
        let after = processes();
        !after.is_empty() && after.iter().all(|pid| !before.contains(pid))
    });
    terminal.wait_text("running");
    terminal.wait_text("1 MCP · 1 LSP");
}

#[test]
fn the_status_line_is_the_output_of_the_users_command() {
    let settings = r#""tui": {"status_line": {"command": "read x; case $x in *'\"mode\":\"'*) echo own-status:ok;; esac"}}"#;
    let env = TestEnv::new(&[], settings);
    let terminal = env.terminal().start();
    terminal.wait_text("own-status:ok");
}

#[test]
fn the_branch_of_an_untrusted_folder_is_shown_but_not_followed() {
    let env = TestEnv::new(&[], "");
    std::fs::create_dir_all(env.root().join(".git")).unwrap();
    std::fs::write(env.root().join(".git/HEAD"), "ref: refs/heads/topic-7\n").unwrap();
    let terminal = env.terminal().start();
    wait_until_ready(&terminal);
    terminal.wait_text("topic-7");
}
