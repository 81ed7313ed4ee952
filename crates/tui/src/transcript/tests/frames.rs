//! Frames of the transcript in its states, in several sizes.

use super::*;
use expect_test::{Expect, expect};
use windlass_protocol::todo_list::{TodoPriority, TodoStatus};
use windlass_protocol::{Attachment, BlobRef, Fault, PartialCallProgress, StreamedText, TodoItem};

/// Compares the 80×24, 120×40 and 40×12 frames; a wide frame equal to the first is not repeated.
fn assert_frames(setup: impl Fn(&mut TestTranscript), expected: Expect) {
    let frame = |size: (u16, u16)| {
        let mut env = TestTranscript::open(size);
        env.frame();
        setup(&mut env);
        env.answer_requests();
        env.frame()
    };
    let (usual, wide, narrow) = (frame((80, 24)), frame((120, 40)), frame((40, 12)));
    let wide = if wide == usual { "(the same)".to_owned() } else { wide };
    expected.assert_eq(&format!("80×24\n{usual}\n120×40\n{wide}\n40×12\n{narrow}\n"));
}

fn edit_diff(lines: usize) -> String {
    let body: String = (1..=lines).map(|line| format!("+    line({line});\n")).collect();
    format!(
        "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,{} @@\n fn main() {{\n-    old();\n{body} }}\n",
        lines + 2
    )
}

/// Returns the call of a shell command that the user typed.
fn user_command(number: u128, command: &str) -> Fact {
    let arguments = serde_json::json!({ "command": command }).to_string();
    let mut fact = tool_called(number, "bash", &arguments);
    if let Fact::ToolCalled { author, .. } = &mut fact {
        *author = CallAuthor::User;
    }
    fact
}

#[test]
fn running_processes_and_printed_exit_codes_stay_in_the_output() {
    let frame_with_output = |text: &str| {
        let mut env = TestTranscript::open((80, 24));
        env.facts([
            user_command(1, "make"),
            call_started(1),
            call_settled(1, command_outcome(text, 0)),
        ]);
        env.answer_requests();
        env.frame()
    };
    let still_running = "(exit code 0; still running: sleep (pid 7))";
    assert!(frame_with_output(&format!("made\n{still_running}")).contains(still_running));
    assert!(frame_with_output("(exit code 5)\n(exit code 0)").contains("(exit code 5)"));
    let long = frame_with_output("made\n(exit code 0 after 3 s)");
    assert!(long.contains("made") && !long.contains("(exit"), "{long}");
}

#[test]
fn the_output_of_a_user_command_stays_visible() {
    let lines: String = (1..=23).map(|line| format!("file {line}\n")).collect();
    assert_frames(
        |env| {
            env.facts([user_command(1, "ls"), call_started(1)]);
            env.fact(call_settled(1, command_outcome(&format!("{lines}(exit code 0)"), 0)));
            env.facts([user_command(2, "touch a"), call_started(2)]);
            env.fact(call_settled(2, command_outcome("(no output)\n(exit code 0)", 0)));
            env.facts([user_command(3, "git status"), call_started(3)]);
            env.fact(call_settled(3, command_outcome("clean\n(exit code 1)", 1)));
        },
        expect![[r#"
            80×24
                file 4
                file 5
                file 6
                file 7
                file 8
                file 9
                file 10
                file 11
                file 12
                file 13
                file 14
                file 15
                file 16
                file 17
                file 18
                file 19
                file 20
                file 21
                file 22
                file 23

            ✓ You: Run touch a · exit 0
            ✗ You: Run git status · exit 1
                clean
            120×40
            ✓ You: Run ls · exit 0
                … 3 lines above (Ctrl+O to expand)
                file 4
                file 5
                file 6
                file 7
                file 8
                file 9
                file 10
                file 11
                file 12
                file 13
                file 14
                file 15
                file 16
                file 17
                file 18
                file 19
                file 20
                file 21
                file 22
                file 23

            ✓ You: Run touch a · exit 0
            ✗ You: Run git status · exit 1
                clean
            40×12
                file 16
                file 17
                file 18
                file 19
                file 20
                file 21
                file 22
                file 23

            ✓ You: Run touch a · exit 0
            ✗ You: Run git status · exit 1
                clean
        "#]],
    );
}

#[test]
fn an_empty_session() {
    assert_frames(
        |_| {},
        expect![[r#"
            80×24

              Windlass 0.9.0

              folder   ~/code/harbour · main
              model    test/one
              mode     ask · asks before it changes anything
              sandbox  bubblewrap

              @         attach a file
              /         run a command
              !         run a shell command
              ?         help
              Shift+Tab change the mode
              Ctrl+S    resume an earlier session
              Ctrl+P    find a command
            120×40
            (the same)
            40×12

              Windlass 0.9.0

              folder   ~/code/harbour · main
              model    test/one
              mode     ask · asks before it changes…
              sandbox  bubblewrap
        "#]],
    );
    let mut env = TestTranscript::new((80, 24));
    env.state.host_status.model = None;
    env.state.host_status.trust = TrustState::NotAsked;
    env.transcript.add_note("the key `ctrl+q` cannot be bound: it means nothing");
    expect![[r#"
        80×24

          Windlass 0.9.0

          folder   ~/code/harbour · main
          model    none yet · use /model to choose one
          mode     ask · asks before it changes anything
          sandbox  bubblewrap
          trust    not trusted · AGENTS.md ignored, language servers off; /trust to cha…

          @         attach a file
          /         run a command
          !         run a shell command
          ?         help
          Shift+Tab change the mode
          Ctrl+S    resume an earlier session
          Ctrl+P    find a command

          the key `ctrl+q` cannot be bound: it means nothing"#]]
    .assert_eq(&format!("80×24\n{}", env.frame()));
    env.appearance.ascii = true;
    assert!(env.frame().is_ascii(), "{}", env.frame());
}

#[test]
fn a_plain_answer() {
    let setup = |env: &mut TestTranscript| {
        env.start_turn(1, "What does the harbour do at night?");
        env.facts([
            step_started(1, 1),
            model_text("It sleeps, mostly.\n\nThe cranes stand still and the water is black. Nothing is loaded before six, except on the days before a feast."),
            step_ended(1, 1),
            turn_completed(1),
        ]);
    };
    assert_frames(
        setup,
        expect![[r#"
        80×24
        › What does the harbour do at night?

          It sleeps, mostly.

          The cranes stand still and the water is black. Nothing is loaded before six,
          except on the days before a feast.
        120×40
        › What does the harbour do at night?

          It sleeps, mostly.

          The cranes stand still and the water is black. Nothing is loaded before six, except on the days
          before a feast.
        40×12
        › What does the harbour do at night?

          It sleeps, mostly.

          The cranes stand still and the water
          is black. Nothing is loaded before
          six, except on the days before a
          feast.
    "#]],
    );
}

#[test]
fn a_streaming_answer_looks_like_the_finished_one() {
    let text = "First this.\n\nThen **that**, which is a longer sentence so that it has to be broken somewhere in the middle.\n\n- one\n- two\n";
    let mut env = TestTranscript::open((60, 20));
    env.start_turn(1, "go");
    env.fact(step_started(1, 1));
    for piece in text.split_inclusive(' ') {
        env.stream_text(piece);
    }
    let streaming_frame = env.frame();
    env.fact(model_text(text));
    assert_eq!(env.frame(), streaming_frame);
    env.facts([step_ended(1, 1), turn_completed(1)]);
    assert_eq!(env.frame(), streaming_frame);
}

fn partial_call(index: u64, path: Option<&str>, argument_bytes: u64) -> LiveEvent {
    let (tool, path) = ("write".into(), path.map(str::to_owned));
    LiveEvent::PartialCall { index, tool, path, argument_bytes }
}

#[test]
fn a_partial_step_replaces_what_was_streamed() {
    let mut env = TestTranscript::open((60, 20));
    env.start_turn(1, "go");
    env.fact(step_started(1, 1));
    env.stream_text("It begins");
    env.live(partial_call(3, Some("old.rs"), 10));
    // The deltas between were missed.
    let text = |text: &str| StreamedText { stream: ModelStreamKind::Text, text: text.to_owned() };
    let (tool, path) = ("write".to_owned(), Some("new.rs".to_owned()));
    let call = PartialCallProgress { index: 1, tool, path, argument_bytes: 20 };
    let texts = vec![text("It begins and goes on")];
    env.live(LiveEvent::PartialStep { texts, calls: vec![call] });
    env.stream_text(" to the end.");
    let frame = env.frame();
    assert!(frame.contains("It begins and goes on to the end."), "{frame}");
    assert!(frame.contains("new.rs") && !frame.contains("old.rs"), "{frame}");
}

#[test]
fn a_call_that_the_model_is_writing_shows_its_size() {
    let mut env = TestTranscript::open((60, 20));
    env.start_turn(1, "go");
    env.fact(step_started(1, 1));
    env.stream_text("Now I write it.");
    env.live(partial_call(0, None, 0));
    env.live(partial_call(0, Some("src/main.rs"), 12_437));
    env.live(partial_call(1, Some("src/\u{1b}[31mlib.rs"), 999));
    let frame = env.frame();
    assert!(frame.contains("· write src/main.rs … 12.4 kB"), "{frame}");
    assert!(frame.contains("lib.rs … 999 B"), "{frame}");
    assert!(!frame.contains('\u{1b}') && !frame.contains("… 0 B"), "{frame}");
    assert!(env.state.activity.contains("calling write"), "{}", env.state.activity);

    // The calls take the place of the lines.
    env.fact(model_text("Now I write it."));
    env.fact(tool_called(1, "write", r#"{"filePath":"src/main.rs","content":""}"#));
    let frame = env.frame();
    assert!(!frame.contains("kB") && frame.contains("Write src/main.rs"), "{frame}");
}

#[test]
fn a_call_that_never_completes_disappears() {
    let mut env = TestTranscript::open((60, 20));
    env.start_turn(1, "go");
    env.fact(step_started(1, 1));
    let before = env.frame();
    env.live(partial_call(0, Some("src/main.rs"), 12_437));
    assert!(env.frame().contains("write src/main.rs"));
    env.fact(step_ended(1, 1));
    assert_eq!(env.frame(), before);
}

#[test]
fn reasoning_is_one_line_until_expanded() {
    let setup = |env: &mut TestTranscript| {
        env.start_turn(1, "think");
        env.fact(step_started(1, 1));
        env.stream_reasoning("I should look at the tests first, ");
        env.now += 4_000;
        env.stream_reasoning("and then at the code.");
    };
    assert_frames(
        setup,
        expect![[r#"
        80×24
        › think

          Thinking (12 words)
        120×40
        (the same)
        40×12
        › think

          Thinking (12 words)
    "#]],
    );
    let expanded = |env: &mut TestTranscript| {
        setup(env);
        env.facts([
            model_reasoning("I should look at the tests first, and then at the code."),
            model_text("Done."),
        ]);
        env.transcript.toggle_details(DetailsTarget::MiddleBlock);
    };
    assert_frames(
        expanded,
        expect![[r#"
        80×24
        › think

          Thought for 4 s (12 words)
            I should look at the tests first, and then at the code.

          Done.
        120×40
        (the same)
        40×12
        › think

          Thought for 4 s (12 words)
            I should look at the tests first,
            and then at the code.

          Done.
    "#]],
    );
}

#[test]
fn the_states_of_a_call() {
    let setup = |env: &mut TestTranscript| {
        env.start_turn(1, "look around");
        env.facts([
            tool_called(1, "read", r#"{"filePath":"src/main.rs","offset":1,"limit":80}"#),
            tool_called(2, "bash", r#"{"command":"cargo publish"}"#),
            tool_called(3, "bash", r#"{"command":"cargo test"}"#),
            tool_called(4, "read", r#"{"filePath":"src/gone.rs"}"#),
            tool_called(5, "bash", r#"{"command":"rm -rf build"}"#),
            tool_called(6, "grep", r#"{"pattern":"harbour","path":"src"}"#),
            tool_called(7, "bash", r#"{"command":"make"}"#),
            tool_called(8, "glob", r#"{"pattern":"*.toml"}"#),
            call_started(1),
            call_settled(1, titled_outcome("2 lines", "1: fn main() {\n2: }\n")),
            permission_asked(2),
            call_started(3),
            call_started(4),
            call_settled(
                4,
                CallOutcome::Failed {
                    text: "src/gone.rs: there is no such file.\nDid you mean src/main.rs?".into(),
                },
            ),
            call_settled(5, CallOutcome::Denied { text: "a rule denies it".into() }),
            call_started(6),
            call_settled(6, CallOutcome::Interrupted { text: String::new() }),
            call_started(7),
            call_settled(7, CallOutcome::ResultUnknown),
        ]);
    };
    assert_frames(
        setup,
        expect![[r#"
            80×24
            › look around

            ✓ Read src/main.rs · lines 1–80 · 2 lines
            ? Run cargo publish · waiting for your answer
            · Run cargo test
            ✗ Read src/gone.rs
                src/gone.rs: there is no such file.

            ⊘ Run rm -rf build
                a rule denies it

            ⊘ Search harbour · interrupted
            ! Run make · interrupted: result unknown
            · Find *.toml
            120×40
            (the same)
            40×12
            ✓ Read src/main.rs · lines 1–80 · 2 lin…
            ? Run cargo publish · waiting for your …
            · Run cargo test
            ✗ Read src/gone.rs
                src/gone.rs: there is no such file.

            ⊘ Run rm -rf build
                a rule denies it

            ⊘ Search harbour · interrupted
            ! Run make · interrupted: result unknown
            · Find *.toml
        "#]],
    );
    let mut env = TestTranscript::open((80, 24));
    setup(&mut env);
    env.appearance.ascii = true;
    assert!(env.frame().is_ascii(), "{}", env.frame());
}

#[test]
fn the_kinds_of_calls() {
    let setup = |env: &mut TestTranscript| {
        env.start_turn(1, "do all kinds of things");
        let calls = [
            ("write", r#"{"filePath":"notes.md","content":"x"}"#, text_outcome("")),
            (
                "grep",
                r#"{"pattern":"fn main","path":"src"}"#,
                titled_outcome("2 matches", "src/main.rs\n  1: fn main() {\n  9: fn main2() {"),
            ),
            (
                "glob",
                r#"{"pattern":"*.rs"}"#,
                titled_outcome("103 files", "a.rs\nb.rs\n[2 of 103 files; continue with offset 3]"),
            ),
            ("webfetch", r#"{"url":"https://example.com/page"}"#, text_outcome("…")),
            ("websearch", r#"{"query":"tides in Hamburg"}"#, text_outcome("…")),
            (
                "question",
                r#"{"questions":[{"header":"Database","question":"Which?"}]}"#,
                titled_outcome("Postgres", "Which? → Postgres"),
            ),
            ("skill", r#"{"name":"release"}"#, text_outcome("…")),
            ("lsp", r#"{"operation":"hover","filePath":"src/lib.rs","line":3}"#, text_outcome("…")),
            ("job", r#"{"id":2,"action":"wait"}"#, text_outcome("…")),
            (
                "apply_patch",
                r#"{"patchText":"*** Begin Patch\n*** Update File: a.rs\n*** Add File: b.rs\n*** End Patch"}"#,
                text_outcome(""),
            ),
            ("mcp_weather", r#"{"city":"Hamburg","days":3}"#, text_outcome("rain")),
            (
                "odd",
                "not json at all",
                CallOutcome::Failed { text: "these are no arguments".into() },
            ),
        ];
        for (number, (tool, arguments, outcome)) in calls.into_iter().enumerate() {
            let number = number as u128;
            env.fact(tool_called(number, tool, arguments));
            env.facts([call_started(number), call_settled(number, outcome)]);
        }
    };
    assert_frames(
        setup,
        expect![[r#"
            80×24
            › do all kinds of things

            ✓ Write notes.md
            ✓ Search fn main · 2 matches
            ✓ Find *.rs · 103 files
            ✓ Fetch https://example.com/page
            ✓ websearch {"query":"tides in Hamburg"}
            ✓ Ask · Postgres
            ✓ skill {"name":"release"}
            ✓ lsp {"operation":"hover","filePath":"src/lib.rs","line":3}
            ✓ job {"id":2,"action":"wait"}
            ✓ apply_patch {"patchText":"*** Begin Patch\n*** Update File: a.rs\n*** Add Fil…
            ✓ mcp_weather {"city":"Hamburg","days":3}
            ✗ odd not json at all
                these are no arguments
            120×40
            › do all kinds of things

            ✓ Write notes.md
            ✓ Search fn main · 2 matches
            ✓ Find *.rs · 103 files
            ✓ Fetch https://example.com/page
            ✓ websearch {"query":"tides in Hamburg"}
            ✓ Ask · Postgres
            ✓ skill {"name":"release"}
            ✓ lsp {"operation":"hover","filePath":"src/lib.rs","line":3}
            ✓ job {"id":2,"action":"wait"}
            ✓ apply_patch {"patchText":"*** Begin Patch\n*** Update File: a.rs\n*** Add File: b.rs\n*** End Patch"}
            ✓ mcp_weather {"city":"Hamburg","days":3}
            ✗ odd not json at all
                these are no arguments
            40×12
            ✓ Search fn main · 2 matches
            ✓ Find *.rs · 103 files
            ✓ Fetch https://example.com/page
            ✓ websearch {"query":"tides in Hamburg"}
            ✓ Ask · Postgres
            ✓ skill {"name":"release"}
            ✓ lsp {"operation":"hover","filePath":"…
            ✓ job {"id":2,"action":"wait"}
            ✓ apply_patch {"patchText":"*** Begin P…
            ✓ mcp_weather {"city":"Hamburg","days":…
            ✗ odd not json at all
                these are no arguments
        "#]],
    );
}

#[test]
fn an_edit_shows_its_diff_and_a_long_diff_only_its_start() {
    let setup = |lines: usize| {
        move |env: &mut TestTranscript| {
            env.start_turn(1, "change it");
            env.facts([
                tool_called(
                    1,
                    "edit",
                    r#"{"filePath":"src/lib.rs","oldString":"a","newString":"b"}"#,
                ),
                call_started(1),
                call_settled(1, diff_outcome(&edit_diff(lines))),
                model_text("Changed."),
            ]);
        }
    };
    assert_frames(
        setup(2),
        expect![[r#"
            80×24
            › change it

            ✓ Edit src/lib.rs · +2 −1
              1 1   fn main() {
              2   -     old();
                2 +     line(1);
                3 +     line(2);
              3 4   }

              Changed.
            120×40
            (the same)
            40×12
            › change it

            ✓ Edit src/lib.rs · +2 −1
              1   fn main() {
              2 -     old();
              2 +     line(1);
              3 +     line(2);
              4   }

              Changed.
        "#]],
    );
    assert_frames(
        setup(40),
        expect![[r#"
            80×24
            › change it

            ✓ Edit src/lib.rs · +40 −1
               1  1   fn main() {
               2    -     old();
                  2 +     line(1);
                  3 +     line(2);
                  4 +     line(3);
                  5 +     line(4);
                  6 +     line(5);
                  7 +     line(6);
                  8 +     line(7);
                  9 +     line(8);
                 10 +     line(9);
                 11 +     line(10);
                … 31 more lines (Ctrl+O to expand)

              Changed.
            120×40
            (the same)
            40×12
               3 +     line(2);
               4 +     line(3);
               5 +     line(4);
               6 +     line(5);
               7 +     line(6);
               8 +     line(7);
               9 +     line(8);
              10 +     line(9);
              11 +     line(10);
                … 31 more lines (Ctrl+O to expand)

              Changed.
        "#]],
    );
    let mut env = TestTranscript::open((80, 60));
    setup(40)(&mut env);
    env.transcript.toggle_details(DetailsTarget::MiddleBlock);
    let expanded = env.frame();
    assert!(expanded.contains("line(40)") && !expanded.contains("more lines"), "{expanded}");
}

#[test]
fn a_running_command_shows_its_last_output_and_collapses_when_done() {
    let running = |env: &mut TestTranscript| {
        env.start_turn(1, "test it");
        env.facts([
            tool_called(1, "bash", r#"{"command":"cargo test --workspace"}"#),
            call_started(1),
        ]);
        for line in 1..=20 {
            let text = format!("test number_{line} ... ok\r\n");
            env.live(LiveEvent::CallProgress { call: call(1), text: text.trim_end().into() });
            env.live(LiveEvent::CommandOutput { call: call(1), text });
        }
        env.now += 7_000;
    };
    assert_frames(
        running,
        expect![[r#"
            80×24
            › test it

            · Run cargo test --workspace · 7 s
                test number_15 ... ok
                test number_16 ... ok
                test number_17 ... ok
                test number_18 ... ok
                test number_19 ... ok
                test number_20 ... ok
            120×40
            (the same)
            40×12
            › test it

            · Run cargo test --workspace · 7 s
                test number_15 ... ok
                test number_16 ... ok
                test number_17 ... ok
                test number_18 ... ok
                test number_19 ... ok
                test number_20 ... ok
        "#]],
    );
    let completed = |env: &mut TestTranscript| {
        running(env);
        env.now += 5_000;
        env.fact(call_settled(
            1,
            command_outcome("test number_1 ... ok\nall well\n(exit code 0 after 12 s)", 0),
        ));
    };
    assert_frames(
        completed,
        expect![[r#"
        80×24
        › test it

        ✓ Run cargo test --workspace · 12 s · exit 0
        120×40
        (the same)
        40×12
        › test it

        ✓ Run cargo test --work… · 12 s · exit 0
    "#]],
    );
    let expanded = |env: &mut TestTranscript| {
        completed(env);
        env.transcript.toggle_details(DetailsTarget::All);
    };
    assert_frames(
        expanded,
        expect![[r#"
        80×24
        › test it

        ✓ Run cargo test --workspace · 12 s · exit 0
            test number_1 ... ok
            all well
            (exit code 0 after 12 s)
        120×40
        (the same)
        40×12
        › test it

        ✓ Run cargo test --work… · 12 s · exit 0
            test number_1 ... ok
            all well
            (exit code 0 after 12 s)
    "#]],
    );
}

#[test]
fn a_running_subagent() {
    let child = SessionId(uuid::Uuid::from_u128(99));
    let setup = move |env: &mut TestTranscript| {
        env.start_turn(1, "find out");
        let task = r#"{"subagent_type":"explore","description":"find the tests","prompt":"…"}"#;
        env.facts([
            tool_called(1, "task", task),
            call_started(1),
            Fact::SubagentStarted {
                call: call(1),
                session: child,
                agent: "explore".into(),
                after: 0,
            },
        ]);
        for number in 0..3 {
            let fact =
                tool_called(50 + number, "read", &format!(r#"{{"filePath":"src/{number}.rs"}}"#));
            let record = FactRecord::new(child, 1, UnixMillis(0), fact);
            env.event(Event::Fact(record));
        }
    };
    assert_frames(
        setup,
        expect![[r#"
        80×24
        › find out

        · Task explore: find the tests · 3 calls · reading src/2.rs
        120×40
        (the same)
        40×12
        › find out

        · Task explore: fin… · 3 calls · readin…
    "#]],
    );
    let expanded = move |env: &mut TestTranscript| {
        setup(env);
        env.transcript.toggle_details(DetailsTarget::MiddleBlock);
    };
    assert_frames(
        expanded,
        expect![[r#"
        80×24
        › find out

        · Task explore: find the tests · 3 calls · reading src/2.rs
            subagent_type: explore
            description: find the tests
            prompt: …
            Read src/0.rs
            Read src/1.rs
            Read src/2.rs
        120×40
        (the same)
        40×12
        › find out

        · Task explore: fin… · 3 calls · readin…
            subagent_type: explore
            description: find the tests
            prompt: …
            Read src/0.rs
            Read src/1.rs
            Read src/2.rs
    "#]],
    );
}

#[test]
fn the_ends_of_turns() {
    let ends = [
        TurnEndReason::Interrupted,
        TurnEndReason::Denied,
        TurnEndReason::LimitReached { limit: "50 steps".into() },
        TurnEndReason::LoopDetected { repeated_action: "read src/main.rs".into() },
        TurnEndReason::Failed {
            fault: Fault::Auth { message: "the key of openai was not accepted (401)".into() },
        },
    ];
    let setup = move |env: &mut TestTranscript| {
        for (turn, end) in (1..).zip(ends.clone()) {
            env.start_turn(turn, "go");
            env.fact(Fact::TurnEnded { turn, end });
        }
        env.start_turn(6, "go");
        env.fact(step_started(6, 1));
        env.fact(step_ended(6, 1));
        env.fact(Fact::TurnEnded { turn: 6, end: TurnEndReason::Completed });
    };
    assert_frames(
        setup,
        expect![[r#"
            80×24

              Interrupted · 0 s

            › go

              Stopped: you denied permission.

            › go

              Stopped at a limit: 50 steps. Use /retry to continue.

            › go

              Stopped: the model kept repeating the same action: read src/main.rs

            › go

            ✗ The key of openai was not accepted (401)
              Use /login to save another API key, or /model to choose another model.

            › go

              The model ended its turn without an answer. Ask again, or use /model to choose
              another model.
            120×40
            › go

              Interrupted · 0 s

            › go

              Stopped: you denied permission.

            › go

              Stopped at a limit: 50 steps. Use /retry to continue.

            › go

              Stopped: the model kept repeating the same action: read src/main.rs

            › go

            ✗ The key of openai was not accepted (401)
              Use /login to save another API key, or /model to choose another model.

            › go

              The model ended its turn without an answer. Ask again, or use /model to choose another model.
            40×12
            › go

            ✗ The key of openai was not accepted
              (401)
              Use /login to save another API key, or
              /model to choose another model.

            › go

              The model ended its turn without an
              answer. Ask again, or use /model to
              choose another model.
        "#]],
    );
}

#[test]
fn a_prompt_of_another_user_names_its_author() {
    let mut env = TestTranscript::open((80, 24));
    let client = |name: &str| windlass_protocol::ClientInfo {
        name: name.into(),
        kind: windlass_protocol::ClientKind::Terminal,
    };
    env.state.host_status.client = Some(client("anna"));
    for (turn, name) in [(1, "anna"), (2, "bob")] {
        let number = u128::from(turn);
        let origin = windlass_protocol::FactOrigin {
            op: windlass_protocol::OpId(uuid::Uuid::from_u128(number)),
            client: client(name),
        };
        let fact = prompt_submitted(prompt(number), &format!("prompt {turn}"));
        let seq = env.log.len() as u64 + 1;
        let record = FactRecord {
            origin: Some(origin),
            ..FactRecord::new(session(), seq, UnixMillis(env.now), fact)
        };
        env.log.push(record.clone());
        env.event(Event::Fact(record));
        env.fact(Fact::TurnStarted { turn, prompt: Some(prompt(number)) });
        let end = windlass_protocol::TurnEndReason::Completed;
        env.facts([model_text("Done."), Fact::TurnEnded { turn, end }]);
    }
    let frame = env.frame();
    assert!(frame.contains("from bob") && !frame.contains("from anna"), "{frame}");
}

#[test]
fn queued_prompts_are_shown_at_the_end() {
    let setup = |env: &mut TestTranscript| {
        env.start_turn(1, "begin");
        env.fact(model_text("On it."));
        env.fact(prompt_submitted(prompt(2), "not in that folder\nin the other one"));
        env.fact(Fact::PromptSubmitted {
            prompt: prompt(3),
            text: "and then write down what you found, please, in a file".into(),
            attachments: Vec::new(),
            delivery: PromptDelivery::Queue,
            settings: Default::default(),
        });
    };
    assert_frames(
        setup,
        expect![[r#"
            80×24
            › begin

              On it.

            ↳ not in that folder … · sent at the next step
            … and then write down what you found, please, in a file · queued
            120×40
            (the same)
            40×12
            › begin

              On it.

            ↳ not in that f… · sent at the next step
            … and then write down what you… · queued
        "#]],
    );
}

#[test]
fn other_events_of_a_session() {
    let setup = |env: &mut TestTranscript| {
        env.facts([
            Fact::SessionForked { source_session: session(), through: 0 },
            Fact::ModeChanged { mode: PermissionMode::Auto },
            Fact::ContextCompacted {
                through: 1,
                summary: "We looked at the harbour.".into(),
                todos: Vec::new(),
                mode: None,
            },
            Fact::context_note("src/main.rs was changed by somebody else.\nRead it again."),
            Fact::StepRetrying {
                turn: 1,
                step: 1,
                attempt: 1,
                fault: Fault::Network { message: "connection reset".into() },
                wait_ms: 4_000,
                model: None,
            },
        ]);
        let todo = |content: &str, status| TodoItem {
            content: content.into(),
            status,
            priority: TodoPriority::Medium,
        };
        let items =
            vec![todo("look", TodoStatus::Completed), todo("change", TodoStatus::InProgress)];
        let display = OutputDisplay::Checklist { items };
        let output = ToolOutput { title: "1 of 2 open".into(), display, ..ToolOutput::default() };
        env.facts([
            tool_called(1, "todowrite", r#"{"todos":[]}"#),
            call_settled(1, CallOutcome::Completed { output }),
            tool_called(2, "read", r#"{"filePath":"shot.png"}"#),
        ]);
        let blob = BlobRef::for_bytes(b"x");
        let image = Attachment { name: "shot.png".into(), mime_type: "image/png".into(), blob };
        let output = ToolOutput { attachments: vec![image.clone()], ..ToolOutput::default() };
        env.fact(call_settled(2, CallOutcome::Completed { output }));
        env.fact(Fact::PromptSubmitted {
            prompt: prompt(9),
            text: "look at this".into(),
            attachments: vec![image],
            delivery: PromptDelivery::Steer,
            settings: Default::default(),
        });
        env.fact(Fact::TurnStarted { turn: 1, prompt: Some(prompt(9)) });
        env.transcript.add_note("the provider says that this model will be retired");
    };
    assert_frames(
        setup,
        expect![[r#"
            80×24
              Forked from another session here.
              mode: auto
              Conversation compacted: summary of 5 words (Ctrl+O to view)
              The model was told: src/main.rs was changed by somebody else. …
              The connection to the model failed: connection reset (attempt 1 of 5)

            ✓ Todos · 1 of 2 open
                ☑ look
                ◐ change

            ✓ Read shot.png
                shot.png · image, PNG

            › look at this
              shot.png · image, PNG

              the provider says that this model will be retired
            120×40
            (the same)
            40×12
            ✓ Todos · 1 of 2 open
                ☑ look
                ◐ change

            ✓ Read shot.png
                shot.png · image, PNG

            › look at this
              shot.png · image, PNG

              the provider says that this model will
              be retired
        "#]],
    );
}

#[test]
fn wide_characters_and_long_lines() {
    let setup = |env: &mut TestTranscript| {
        env.start_turn(1, "港の夜は静かです。船は六時まで動きません。 🚢🌊 とても長い行なので、どこかで折り返す必要があります。");
        let long = format!(r#"{{"command":"echo {}"}}"#, "漢字かな交じり文 ".repeat(20));
        env.facts([
            tool_called(1, "bash", &long),
            call_started(1),
            call_settled(1, command_outcome("漢", 0)),
            model_text(&format!("👩‍👩‍👧 {} end", "averyveryverylongwordwithoutanybreak".repeat(5))),
        ]);
    };
    assert_frames(
        setup,
        expect![[r#"
        80×24
        › 港の夜は静かです。船は六時まで動きません。 🚢🌊 とても長い行なので、どこかで折
          り返す必要があります。

        ✓ Run echo 漢字かな交じり文 漢字かな交じり文 漢字かな交じり文 漢字かな… · exit 0

          👩👩👧
          averyveryverylongwordwithoutanybreakaveryveryverylongwordwithoutanybreakaveryv
          eryverylongwordwithoutanybreakaveryveryverylongwordwithoutanybreakaveryveryver
          ylongwordwithoutanybreak end
        120×40
        › 港の夜は静かです。船は六時まで動きません。 🚢🌊 とても長い行なので、どこかで折り返す必要があります。

        ✓ Run echo 漢字かな交じり文 漢字かな交じり文 漢字かな交じり文 漢字かな交じり文 漢字かな交じり文 漢字かな交じり… · exit 0

          👩👩👧
          averyveryverylongwordwithoutanybreakaveryveryverylongwordwithoutanybreakaveryveryverylongwordwithout
          anybreakaveryveryverylongwordwithoutanybreakaveryveryverylongwordwithoutanybreak end
        40×12
        › 港の夜は静かです。船は六時まで動きませ
          ん。 🚢🌊 とても長い行なので、どこかで
          折り返す必要があります。

        ✓ Run echo 漢字かな交じり文 漢… · exit 0

          👩👩👧
          averyveryverylongwordwithoutanybreakav
          eryveryverylongwordwithoutanybreakaver
          yveryverylongwordwithoutanybreakaveryv
          eryverylongwordwithoutanybreakaveryver
          yverylongwordwithoutanybreak end
    "#]],
    );
}

#[test]
fn control_characters_in_a_session_never_reach_the_screen() {
    let hostile = "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}gnp.exe\rover";
    let mut env = TestTranscript::open((80, 40));
    env.start_turn(1, hostile);
    let arguments = serde_json::json!({ "command": hostile, "filePath": hostile }).to_string();
    env.facts([
        model_text(hostile),
        model_reasoning(hostile),
        tool_called(1, "bash", &arguments),
        call_started(1),
        call_settled(1, command_outcome(hostile, 0)),
        tool_called(2, hostile, &arguments),
        call_settled(2, CallOutcome::Failed { text: hostile.into() }),
        tool_called(3, "read", &arguments),
        Fact::context_note(hostile),
        Fact::ContextCompacted {
            through: 1,
            summary: hostile.into(),
            todos: Vec::new(),
            mode: None,
        },
    ]);
    env.live(LiveEvent::CommandOutput { call: call(3), text: hostile.into() });
    env.live(LiveEvent::CallProgress { call: call(3), text: hostile.into() });
    env.stream_text(hostile);
    env.transcript.add_note(hostile);
    for _ in 0..2 {
        let frame = env.frame();
        let is_forbidden = |character: &char| {
            *character != '\n'
                && (character.is_control()
                    || windlass_protocol::display_text::is_hidden_or_bidi(*character))
        };
        assert_eq!(frame.chars().find(is_forbidden), None, "{frame}");
        env.transcript.toggle_details(DetailsTarget::All);
    }
}
