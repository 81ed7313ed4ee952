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
