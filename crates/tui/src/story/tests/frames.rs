//! What each state looks like, in several sizes.

use super::*;
use expect_test::{Expect, expect};
use windlass_protocol::todo::{Priority, Status};
use windlass_protocol::{Attachment, BlobRef, Fault, Todo};

/// What a scene looks like wide, usual and narrow. Where wide is as usual, it is not told twice.
fn shot(play: impl Fn(&mut Scene), expected: Expect) {
    let frame = |size: (u16, u16)| {
        let mut scene = Scene::open(size);
        scene.frame();
        play(&mut scene);
        scene.serve();
        scene.frame()
    };
    let (usual, wide, narrow) = (frame((80, 24)), frame((120, 40)), frame((40, 12)));
    let wide = if wide == usual { "(the same)".to_owned() } else { wide };
    expected.assert_eq(&format!("80×24\n{usual}\n120×40\n{wide}\n40×12\n{narrow}\n"));
}

fn edit(lines: usize) -> String {
    let body: String = (1..=lines).map(|line| format!("+    line({line});\n")).collect();
    format!(
        "--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,3 +1,{} @@\n fn main() {{\n-    old();\n{body} }}\n",
        lines + 2
    )
}

/// A command that a person typed.
fn typed(number: u128, command: &str) -> Fact {
    let arguments = serde_json::json!({ "command": command }).to_string();
    let mut fact = called(number, "bash", &arguments);
    if let Fact::Called { by, .. } = &mut fact {
        *by = Author::Person;
    }
    fact
}

#[test]
fn what_still_runs_and_what_a_command_says_itself_is_not_left_out() {
    let said = |text: &str| {
        let mut scene = Scene::open((80, 24));
        scene.facts([typed(1, "make"), started(1), settled(1, exit(text, 0))]);
        scene.serve();
        scene.frame()
    };
    let still = "(exit code 0; still running: sleep (pid 7))";
    assert!(said(&format!("made\n{still}")).contains(still));
    assert!(said("(exit code 5)\n(exit code 0)").contains("(exit code 5)"));
    let long = said("made\n(exit code 0 after 3 s)");
    assert!(long.contains("made") && !long.contains("(exit"), "{long}");
}

#[test]
fn what_a_person_ran_themselves_stays_in_sight() {
    let lines: String = (1..=23).map(|line| format!("file {line}\n")).collect();
    shot(
        |scene| {
            scene.facts([typed(1, "ls"), started(1)]);
            scene.fact(settled(1, exit(&format!("{lines}(exit code 0)"), 0)));
            scene.facts([typed(2, "touch a"), started(2)]);
            scene.fact(settled(2, exit("(no output)\n(exit code 0)", 0)));
            scene.facts([typed(3, "git status"), started(3)]);
            scene.fact(settled(3, exit("clean\n(exit code 1)", 1)));
        },
        expect![[r#"
            80×24
                … 3 lines above, Ctrl+O opens
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
            ✓ You: Run git status · exit 1
                clean
            120×40
            ✓ You: Run ls · exit 0
                … 3 lines above, Ctrl+O opens
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
            ✓ You: Run git status · exit 1
                clean
            40×12
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
            ✓ You: Run git status · exit 1
                clean
        "#]],
    );
}

#[test]
fn before_anything_was_said() {
    shot(
        |_| {},
        expect![[r#"
            80×24

              Windlass 0.9.0

              folder   ~/code/harbour · main
              model    test/one
              mode     ask · asks before it changes something
              sandbox  bubblewrap

              @         names a file, / a command, ! runs a line in the shell
              Shift+Tab changes the mode
              Ctrl+S    goes on with an earlier session
              F1        lists keys and commands
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
    let mut scene = Scene::new((80, 24));
    scene.known.standing.model = None;
    scene.known.standing.trust = Trusted::Unasked;
    scene.story.note("the key `ctrl+q` cannot be bound: it means nothing");
    expect![[r#"
        80×24

          Windlass 0.9.0

          folder   ~/code/harbour · main
          model    none yet · /model chooses one
          mode     ask · asks before it changes something
          sandbox  bubblewrap
          trust    none · AGENTS.md is not read, nothing here is run; /trust

          @         names a file, / a command, ! runs a line in the shell
          Shift+Tab changes the mode
          Ctrl+S    goes on with an earlier session
          F1        lists keys and commands

          the key `ctrl+q` cannot be bound: it means nothing"#]]
    .assert_eq(&format!("80×24\n{}", scene.frame()));
    scene.look.ascii = true;
    assert!(scene.frame().is_ascii(), "{}", scene.frame());
}

#[test]
fn a_plain_answer() {
    let play = |scene: &mut Scene| {
        scene.ask(1, "What does the harbour do at night?");
        scene.facts([
            step(1, 1),
            said("It sleeps, mostly.\n\nThe cranes stand still and the water is black. Nothing is loaded before six, except on the days before a feast."),
            step_ended(1, 1),
            done(1),
        ]);
    };
    shot(
        play,
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
fn an_answer_while_it_is_written_looks_as_it_will() {
    let text = "First this.\n\nThen **that**, which is a longer sentence so that it has to be broken somewhere in the middle.\n\n- one\n- two\n";
    let mut scene = Scene::open((60, 20));
    scene.ask(1, "go");
    scene.fact(step(1, 1));
    for piece in text.split_inclusive(' ') {
        scene.write(piece);
    }
    let written = scene.frame();
    scene.fact(said(text));
    assert_eq!(scene.frame(), written);
    scene.facts([step_ended(1, 1), done(1)]);
    assert_eq!(scene.frame(), written);
}

#[test]
fn thoughts_are_one_line_until_they_are_opened() {
    let play = |scene: &mut Scene| {
        scene.ask(1, "think");
        scene.fact(step(1, 1));
        scene.think("I should look at the tests first, ");
        scene.now += 4_000;
        scene.think("and then at the code.");
    };
    shot(
        play,
        expect![[r#"
        80×24
        › think

          thinking · 12 words
        120×40
        (the same)
        40×12
        › think

          thinking · 12 words
    "#]],
    );
    let opened = |scene: &mut Scene| {
        play(scene);
        scene.facts([
            thought("I should look at the tests first, and then at the code."),
            said("Done."),
        ]);
        scene.story.toggle(Details::One);
    };
    shot(
        opened,
        expect![[r#"
        80×24
        › think

          thought for 4 s · 12 words
            I should look at the tests first, and then at the code.

          Done.
        120×40
        (the same)
        40×12
        › think

          thought for 4 s · 12 words
            I should look at the tests first,
            and then at the code.

          Done.
    "#]],
    );
}

#[test]
fn the_states_of_a_call() {
    let play = |scene: &mut Scene| {
        scene.ask(1, "look around");
        scene.facts([
            called(1, "read", r#"{"filePath":"src/main.rs","offset":1,"limit":80}"#),
            called(2, "bash", r#"{"command":"cargo publish"}"#),
            called(3, "bash", r#"{"command":"cargo test"}"#),
            called(4, "read", r#"{"filePath":"src/gone.rs"}"#),
            called(5, "bash", r#"{"command":"rm -rf build"}"#),
            called(6, "grep", r#"{"pattern":"harbour","path":"src"}"#),
            called(7, "bash", r#"{"command":"make"}"#),
            called(8, "glob", r#"{"pattern":"*.toml"}"#),
            started(1),
            settled(1, gave("1: fn main() {\n2: }\n")),
            asked(2),
            started(3),
            started(4),
            settled(
                4,
                Outcome::Failed {
                    text: "src/gone.rs: there is no such file.\nDid you mean src/main.rs?".into(),
                },
            ),
            settled(5, Outcome::Denied { text: "a person said no".into() }),
            started(6),
            settled(6, Outcome::Interrupted { text: String::new() }),
            started(7),
            settled(7, Outcome::Unknown),
        ]);
    };
    shot(
        play,
        expect![[r#"
        80×24
        › look around

        ✓ Read src/main.rs 1–80 · 2 lines
        ? Run cargo publish · waits for your answer
        · Run cargo test
        ✗ Read src/gone.rs
            src/gone.rs: there is no such file.
        ⊘ Run rm -rf build
            a person said no
        ⊘ Search harbour in src · interrupted
        ! Run make · how it ended is not known
        · Find *.toml
        120×40
        (the same)
        40×12
        › look around

        ✓ Read src/main.rs 1–80 · 2 lines
        ? Run cargo publish · waits for your an…
        · Run cargo test
        ✗ Read src/gone.rs
            src/gone.rs: there is no such file.
        ⊘ Run rm -rf build
            a person said no
        ⊘ Search harbour in src · interrupted
        ! Run make · how it ended is not known
        · Find *.toml
    "#]],
    );
    let mut scene = Scene::open((80, 24));
    play(&mut scene);
    scene.look.ascii = true;
    assert!(scene.frame().is_ascii(), "{}", scene.frame());
}

#[test]
fn the_kinds_of_calls() {
    let play = |scene: &mut Scene| {
        scene.ask(1, "do all kinds of things");
        let calls = [
            ("write", r#"{"filePath":"notes.md","content":"x"}"#, gave("")),
            (
                "grep",
                r#"{"pattern":"fn main","path":"src"}"#,
                gave("src/main.rs\n  1: fn main() {\n  9: fn main2() {"),
            ),
            (
                "glob",
                r#"{"pattern":"*.rs"}"#,
                gave("a.rs\nb.rs\n[2 of 103 files; the next with offset 3]"),
            ),
            ("webfetch", r#"{"url":"https://example.com/page"}"#, gave("…")),
            ("websearch", r#"{"query":"tides in Hamburg"}"#, gave("…")),
            (
                "question",
                r#"{"questions":[{"header":"Database","question":"Which?"}]}"#,
                gave("Which? → Postgres"),
            ),
            ("skill", r#"{"name":"release"}"#, gave("…")),
            ("lsp", r#"{"operation":"hover","filePath":"src/lib.rs","line":3}"#, gave("…")),
            ("job", r#"{"id":2,"action":"wait"}"#, gave("…")),
            (
                "apply_patch",
                r#"{"patchText":"*** Begin Patch\n*** Update File: a.rs\n*** Add File: b.rs\n*** End Patch"}"#,
                gave(""),
            ),
            ("mcp_weather", r#"{"city":"Hamburg","days":3}"#, gave("rain")),
            ("odd", "not json at all", Outcome::Failed { text: "these are no arguments".into() }),
        ];
        for (number, (tool, arguments, outcome)) in calls.into_iter().enumerate() {
            let number = number as u128;
            scene.fact(called(number, tool, arguments));
            scene.facts([started(number), settled(number, outcome)]);
        }
    };
    shot(
        play,
        expect![[r#"
        80×24
        › do all kinds of things

        ✓ Write notes.md
        ✓ Search fn main in src · 2 matches
        ✓ Find *.rs · 103 files
        ✓ Fetch example.com/page
        ✓ Search the web tides in Hamburg
        ✓ Ask Database · Postgres
        ✓ Skill release
        ✓ Look up hover src/lib.rs:3
        ✓ Job 2 wait
        ✓ Patch a.rs, b.rs
        ✓ mcp_weather city: Hamburg, days: 3
        ✗ odd not json at all
            these are no arguments
        120×40
        (the same)
        40×12
        ✓ Search fn main in src · 2 matches
        ✓ Find *.rs · 103 files
        ✓ Fetch example.com/page
        ✓ Search the web tides in Hamburg
        ✓ Ask Database · Postgres
        ✓ Skill release
        ✓ Look up hover src/lib.rs:3
        ✓ Job 2 wait
        ✓ Patch a.rs, b.rs
        ✓ mcp_weather city: Hamburg, days: 3
        ✗ odd not json at all
            these are no arguments
    "#]],
    );
}

#[test]
fn an_edit_shows_its_change_and_a_long_one_only_its_beginning() {
    let play = |lines: usize| {
        move |scene: &mut Scene| {
            scene.ask(1, "change it");
            scene.facts([
                called(1, "edit", r#"{"filePath":"src/lib.rs","oldString":"a","newString":"b"}"#),
                started(1),
                settled(1, changed(&edit(lines))),
                said("Changed."),
            ]);
        }
    };
    shot(
        play(2),
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
    shot(
        play(40),
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
                … 31 more lines, Ctrl+O opens

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
                … 31 more lines, Ctrl+O opens

              Changed.
        "#]],
    );
    let mut scene = Scene::open((80, 60));
    play(40)(&mut scene);
    scene.story.toggle(Details::One);
    let open = scene.frame();
    assert!(open.contains("line(40)") && !open.contains("more lines"), "{open}");
}

#[test]
fn a_command_at_work_shows_the_last_it_printed_and_folds_when_it_is_done() {
    let running = |scene: &mut Scene| {
        scene.ask(1, "test it");
        scene.facts([called(1, "bash", r#"{"command":"cargo test --workspace"}"#), started(1)]);
        for line in 1..=20 {
            let text = format!("test number_{line} ... ok\r\n");
            scene.live(Live::Progress { call: call(1), text: text.trim_end().into() });
            scene.live(Live::Output { call: call(1), text });
        }
        scene.now += 7_000;
    };
    shot(
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
    let over = |scene: &mut Scene| {
        running(scene);
        scene.now += 5_000;
        scene.fact(settled(1, exit("test number_1 ... ok\nall well\n(exit code 0 after 12 s)", 0)));
    };
    shot(
        over,
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
    let open = |scene: &mut Scene| {
        over(scene);
        scene.story.toggle(Details::All);
    };
    shot(
        open,
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
fn another_agent_at_work() {
    let child = SessionId(uuid::Uuid::from_u128(99));
    let play = move |scene: &mut Scene| {
        scene.ask(1, "find out");
        let task = r#"{"subagent_type":"explore","description":"find the tests","prompt":"…"}"#;
        scene.facts([
            called(1, "task", task),
            started(1),
            Fact::Spawned { call: call(1), session: child, agent: "explore".into() },
        ]);
        for number in 0..3 {
            let fact = called(50 + number, "read", &format!(r#"{{"filePath":"src/{number}.rs"}}"#));
            let record = Record { session: child, seq: 1, at: Millis(0), fact };
            scene.event(Event::Fact(record));
        }
    };
    shot(
        play,
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
    let open = move |scene: &mut Scene| {
        play(scene);
        scene.story.toggle(Details::One);
    };
    shot(
        open,
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
fn how_turns_end() {
    let ends = [
        TurnEnd::Interrupted,
        TurnEnd::Denied,
        TurnEnd::Limit { what: "50 steps".into() },
        TurnEnd::Looped { what: "read src/main.rs".into() },
        TurnEnd::Failed {
            fault: Fault::Auth { message: "the key of openai was not accepted (401)".into() },
        },
    ];
    let play = move |scene: &mut Scene| {
        for (turn, end) in (1..).zip(ends.clone()) {
            scene.ask(turn, "go");
            scene.fact(Fact::TurnEnded { turn, end });
        }
    };
    shot(
        play,
        expect![[r#"
            80×24
            › go

              interrupted · 0 s

            › go

              stopped here: the answer was no

            › go

              stopped at a limit: 50 steps. Say “go on” to go on.

            › go

              stopped, because the model did the same again and again: read src/main.rs

            › go

            ✗ the key of openai was not accepted (401)
              /login keeps another key, /model chooses another model.
            120×40
            (the same)
            40×12

            › go

              stopped, because the model did the
              same again and again: read src/main.rs

            › go

            ✗ the key of openai was not accepted
              (401)
              /login keeps another key, /model
              chooses another model.
        "#]],
    );
}

#[test]
fn prompts_that_wait_stand_at_the_end() {
    let play = |scene: &mut Scene| {
        scene.ask(1, "begin");
        scene.fact(said("On it."));
        scene.fact(prompted(prompt(2), "not in that folder\nin the other one"));
        let (attachments, when) = (Vec::new(), Delivery::Queue);
        let text = "and then write down what you found, please, in a file".into();
        scene.fact(Fact::Prompted { prompt: prompt(3), text, attachments, when });
    };
    shot(
        play,
        expect![[r#"
        80×24
        › begin

          On it.

        ↳ not in that folder … · heard before the next step
        … and then write down what you found, please, in a fi… · heard when this is done
        120×40
        › begin

          On it.

        ↳ not in that folder … · heard before the next step
        … and then write down what you found, please, in a file · heard when this is done
        40×12
        › begin

          On it.

        ↳ not in t… · heard before the next step
        … and then wr… · heard when this is done
    "#]],
    );
}

#[test]
fn what_else_happens_in_a_session() {
    let play = |scene: &mut Scene| {
        scene.facts([
            Fact::Forked { from: session(), through: 0 },
            Fact::ModeChanged { mode: Mode::Auto },
            Fact::Compacted { through: 1, summary: "We looked at the harbour.".into() },
            Fact::ContextChanged {
                text: "src/main.rs was changed by somebody else.\nRead it again.".into(),
            },
            Fact::Retrying {
                turn: 1,
                step: 1,
                attempt: 1,
                fault: Fault::Network { message: "connection reset".into() },
                wait_ms: 4_000,
            },
        ]);
        let todo = |content: &str, status| Todo {
            content: content.into(),
            status,
            priority: Priority::Medium,
        };
        let items = vec![todo("look", Status::Completed), todo("change", Status::InProgress)];
        let display = Display::Checklist { items };
        let output = Output { title: "1 of 2 open".into(), display, ..Output::default() };
        scene.facts([
            called(1, "todowrite", r#"{"todos":[]}"#),
            settled(1, Outcome::Completed { output }),
            called(2, "read", r#"{"filePath":"shot.png"}"#),
        ]);
        let blob = BlobRef::of(b"x");
        let picture = Attachment { name: "shot.png".into(), mime: "image/png".into(), blob };
        let output = Output { attachments: vec![picture.clone()], ..Output::default() };
        scene.fact(settled(2, Outcome::Completed { output }));
        let (attachments, when) = (vec![picture], Delivery::Steer);
        let text = "look at this".into();
        scene.fact(Fact::Prompted { prompt: prompt(9), text, attachments, when });
        scene.fact(Fact::TurnStarted { turn: 1, prompt: Some(prompt(9)) });
        scene.story.note("the provider says that this model will be retired");
    };
    shot(
        play,
        expect![[r#"
            80×24
              goes on here in a copy of another session
              mode: auto
              summed up in 5 words · Ctrl+O opens
              told the model: src/main.rs was changed by somebody else. …
              the connection to the model failed: connection reset · try 2 after 4 s

            ✓ Todos · 1 of 2 open
                ☑ look
                ◐ change
            ✓ Read shot.png
                shot.png · picture, PNG

            › look at this
              shot.png · picture, PNG

              the provider says that this model will be retired
            120×40
            (the same)
            40×12

            ✓ Todos · 1 of 2 open
                ☑ look
                ◐ change
            ✓ Read shot.png
                shot.png · picture, PNG

            › look at this
              shot.png · picture, PNG

              the provider says that this model will
              be retired
        "#]],
    );
}

#[test]
fn wide_letters_and_long_lines() {
    let play = |scene: &mut Scene| {
        scene.ask(1, "港の夜は静かです。船は六時まで動きません。 🚢🌊 とても長い行なので、どこかで折り返す必要があります。");
        let long = format!(r#"{{"command":"echo {}"}}"#, "漢字かな交じり文 ".repeat(20));
        scene.facts([
            called(1, "bash", &long),
            started(1),
            settled(1, exit("漢", 0)),
            said(&format!("👩‍👩‍👧 {} end", "averyveryverylongwordwithoutanybreak".repeat(5))),
        ]);
    };
    shot(
        play,
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
fn nothing_a_session_says_reaches_the_screen_unchanged_if_it_steers_a_terminal() {
    let evil = "\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}gnp.exe\rover";
    let mut scene = Scene::open((80, 40));
    scene.ask(1, evil);
    let arguments = serde_json::json!({ "command": evil, "filePath": evil }).to_string();
    scene.facts([
        said(evil),
        thought(evil),
        called(1, "bash", &arguments),
        started(1),
        settled(1, exit(evil, 0)),
        called(2, evil, &arguments),
        settled(2, Outcome::Failed { text: evil.into() }),
        called(3, "read", &arguments),
        Fact::ContextChanged { text: evil.into() },
        Fact::Compacted { through: 1, summary: evil.into() },
    ]);
    scene.live(Live::Output { call: call(3), text: evil.into() });
    scene.live(Live::Progress { call: call(3), text: evil.into() });
    scene.write(evil);
    scene.story.note(evil);
    for _ in 0..2 {
        let frame = scene.frame();
        let bad = |character: &char| {
            *character != '\n'
                && (character.is_control() || windlass_protocol::text::hides(*character))
        };
        assert_eq!(frame.chars().find(bad), None, "{frame}");
        scene.story.toggle(Details::All);
    }
}
