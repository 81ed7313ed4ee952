//! Tests of changes with a well-behaved formatter.

use crate::support::{TestProject, fake_formatter, run};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_protocol::{CallAuthor, CallOutcome, PermissionMode};
use windlass_toolkit::StepContext;

pub fn formatted_content_is_written_and_recorded() {
    run(async {
        let project = TestProject::with_fake_formatter("good");
        let outcome = project.write("new/a.fake", "a=1\nb = 2\n").await;
        assert_eq!(project.read("new/a.fake"), "a = 1\nb = 2\n");
        project.assert_consistent("new/a.fake", &outcome);
        let expected = "Created new/a.fake (2 lines).\nFormatted by fake; its changes:\n\
                        --- a/new/a.fake\n+++ b/new/a.fake\n@@ -1,2 +1,2 @@\n-a=1\n+a = 1\n b = 2";
        assert_eq!(outcome.text(), expected);
        // The model knows the formatted line, and need not read it.
        let outcome = project.edit("new/a.fake", "a = 1", "a=3").await;
        assert_eq!(project.read("new/a.fake"), "a = 3\nb = 2\n");
        project.assert_consistent("new/a.fake", &outcome);
        // Content that is already formatted causes no note.
        let outcome = project.edit("new/a.fake", "a = 3", "a = 4").await;
        assert_eq!(outcome.text(), "Edited new/a.fake.");
        project.assert_consistent("new/a.fake", &outcome);
        assert_eq!(project.changes(0).len(), 3, "one change per call");
        let undone = project.undo(project.changes(1)).await;
        assert!(matches!(undone, CallOutcome::Completed { .. }), "{undone:?}");
        assert_eq!(project.read("new/a.fake"), "a = 1\nb = 2\n");
        let undone = project.undo(project.changes(3)).await;
        assert!(matches!(undone, CallOutcome::Completed { .. }), "{undone:?}");
        assert_eq!(project.read("new/a.fake"), "a = 4\nb = 2\n", "undo of the undo");
        project.undo(project.changes(0)).await;
        assert!(!project.path("new/a.fake").exists(), "the created file was not removed");
    });
}

pub fn an_unformatted_file_keeps_every_byte() {
    run(async {
        let project = TestProject::with_fake_formatter("good");
        project.create_file("a.fake", "x=1\ny  =  2\nz=3\n");
        let outcome = project.edit("a.fake", "z=3", "z=4").await;
        assert_eq!(project.read("a.fake"), "x=1\ny  =  2\nz=4\n");
        assert_eq!(outcome.text(), "Edited a.fake.", "no note is expected");
        project.assert_consistent("a.fake", &outcome);
        let outcome = project.write("a.fake", "x=1\n").await;
        assert_eq!(project.read("a.fake"), "x=1\n");
        assert_eq!(outcome.text(), "Replaced a.fake (1 line).");
        // A formatted file is kept formatted.
        project.create_file("a.fake", "x = 1\n");
        project.edit("a.fake", "x = 1", "x=2").await;
        assert_eq!(project.read("a.fake"), "x = 2\n");
    });
}

pub fn a_preview_shows_the_formatted_content() {
    run(async {
        let project = TestProject::new(
            vec![fake_formatter("good")],
            json!({"edit": "ask"}),
            PermissionMode::Ask,
        );
        project.create_file("a.fake", "x = 1\n");
        let outcome = project.edit("a.fake", "x = 1", "x=2").await;
        project.assert_consistent("a.fake", &outcome);
        let patch = "*** Begin Patch\n*** Add File: b.fake\n+c=1\n*** End Patch";
        let context = StepContext { model: "openai/gpt-5".into(), ..StepContext::default() };
        let cancel = CancellationToken::new();
        let input = json!({"patchText": patch});
        project.execute_call("apply_patch", input, (CallAuthor::Model, &context), cancel).await;
        let previews = project.caller.previews.lock().unwrap();
        let [edit, patch] = previews.as_slice() else { panic!("{previews:?}") };
        assert!(edit.contains("+x = 2") && !edit.contains("x=2"), "{edit}");
        assert!(patch.contains("+c = 1") && !patch.contains("c=1"), "{patch}");
    });
}

pub fn a_change_that_formatting_reverts_fails() {
    run(async {
        let project = TestProject::with_fake_formatter("good");
        project.create_file("a.fake", "x = 1\n");
        let outcome = project.edit("a.fake", "x = 1", "x=1").await;
        let CallOutcome::Failed { text } = outcome else { panic!("{outcome:?}") };
        assert!(text.contains("would be unchanged after formatting"), "{text}");
        assert_eq!(project.read("a.fake"), "x = 1\n");
        assert!(project.changes(0).is_empty());
        let context = StepContext { model: "openai/gpt-5".into(), ..StepContext::default() };
        let patch = |more: &str| {
            let text = format!(
                "*** Begin Patch\n*** Update File: a.fake\n@@\n-x = 1\n+x  =  1\n{more}*** End Patch"
            );
            json!({"patchText": text})
        };
        let author = || (CallAuthor::Model, &context);
        let cancel = CancellationToken::new;
        let outcome = project.execute_call("apply_patch", patch(""), author(), cancel()).await;
        assert!(matches!(outcome, CallOutcome::Failed { .. }), "{outcome:?}");
        let with_other_file = patch("*** Add File: b.fake\n+y=1\n");
        let outcome =
            project.execute_call("apply_patch", with_other_file, author(), cancel()).await;
        assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
        assert_eq!(
            (project.read("a.fake"), project.read("b.fake")),
            ("x = 1\n".into(), "y = 1\n".into())
        );
        assert_eq!(project.changes(0).len(), 1);
    });
}

pub fn a_patch_formats_only_files_that_were_formatted() {
    run(async {
        let project = TestProject::with_fake_formatter("good");
        project.create_file("kept.fake", "a = 1\n");
        project.create_file("loose.fake", "a=1\nb=1\n");
        project.create_file("neat.fake", "a = 1\nb = 1\n");
        let patch = "*** Begin Patch\n\
             *** Add File: new.fake\n+n=1\n\
             *** Add File: other.txt\n+n=1\n\
             *** Update File: kept.fake\n@@\n-a = 1\n+a=2\n\
             *** Update File: loose.fake\n*** Move to: moved/loose.fake\n@@\n-b=1\n+b=2\n\
             *** Update File: neat.fake\n*** Move to: moved/neat.fake\n@@\n-b = 1\n+b=2\n\
             *** End Patch";
        let context = StepContext { model: "openai/gpt-5".into(), ..StepContext::default() };
        let cancel = CancellationToken::new();
        let author = (CallAuthor::Model, &context);
        let outcome =
            project.execute_call("apply_patch", json!({"patchText": patch}), author, cancel).await;
        assert!(matches!(outcome, CallOutcome::Completed { .. }), "{outcome:?}");
        for (name, content) in [
            ("new.fake", "n = 1\n"),
            ("other.txt", "n=1\n"),
            ("kept.fake", "a = 2\n"),
            ("moved/loose.fake", "a=1\nb=2\n"),
            ("moved/neat.fake", "a = 1\nb = 2\n"),
        ] {
            assert_eq!(project.read(name), content, "{name}");
            project.assert_consistent(name, &outcome);
        }
        assert_eq!(project.caller.recorded.lock().unwrap().len(), 1, "one batch");
        assert_eq!(outcome.text().matches("Formatted by fake").count(), 3, "{}", outcome.text());
    });
}

pub fn a_byte_order_mark_stays_and_other_encodings_are_not_formatted() {
    run(async {
        let project = TestProject::with_fake_formatter("good");
        project.create_file("a.fake", "\u{feff}x = 1\n");
        project.edit("a.fake", "x = 1", "x=2").await;
        assert_eq!(project.read("a.fake"), "\u{feff}x = 2\n");
        let latin_1 = b"na\xefve = 1\nb = 2\n";
        project.create_file("l.fake", latin_1);
        project.edit("l.fake", "b = 2", "b=3").await;
        assert_eq!(std::fs::read(project.path("l.fake")).unwrap(), b"na\xefve = 1\nb=3\n");
        let utf_16 = b"\xff\xfea\0=\x001\0\n\0";
        project.create_file("w.fake", utf_16);
        project.edit("w.fake", "a=1", "a=2").await;
        assert_eq!(std::fs::read(project.path("w.fake")).unwrap(), b"\xff\xfea\0=\x002\0\n\0");
    });
}

pub fn an_unconfigured_formatter_is_not_run() {
    run(async {
        let project = TestProject::with_fake_formatter("hangs");
        std::fs::remove_file(project.path("fake.toml")).unwrap();
        let outcome = project.write("a.fake", "a=1\n").await;
        assert_eq!(
            (outcome.text(), project.read("a.fake")),
            ("Created a.fake (1 line).", "a=1\n".into())
        );
        // In a subfolder it is configured.
        std::fs::create_dir(project.path("sub")).unwrap();
        std::fs::write(project.path("sub/fake.toml"), "").unwrap();
        std::fs::copy(project.path("fake.sh"), project.path("sub/fake.sh")).unwrap();
        let outcome = project.write("sub/x/y/a.fake", "a=1\n").await;
        assert!(outcome.text().contains("fake took longer than 0.3 s"), "{}", outcome.text());
    });
}

pub fn writes_of_the_user_are_formatted() {
    run(async {
        let project = TestProject::with_fake_formatter("good");
        let (context, cancel) = (StepContext::default(), CancellationToken::new());
        let input = json!({"filePath": "a.fake", "content": "a=1\n"});
        project.execute_call("write", input, (CallAuthor::User, &context), cancel).await;
        assert_eq!(project.read("a.fake"), "a = 1\n");
    });
}

pub fn a_file_is_formatted_again_after_a_syntax_error() {
    run(async {
        let project = TestProject::with_fake_formatter("picky");
        project.create_file("a.fake", "a = 1\nb = 2\n");
        let outcome = project.edit("a.fake", "a = 1", "a=BROKEN").await;
        assert_eq!(
            project.read("a.fake"),
            "a=BROKEN\nb = 2\n",
            "the unformatted content was not written"
        );
        let expected = "Edited a.fake.\nfake did not format a.fake: error: BROKEN is no word\n \
                        --> line 1";
        assert_eq!(outcome.text(), expected);
        let outcome = project.edit("a.fake", "b = 2", "b=BROKEN").await;
        assert!(outcome.text().contains("did not format"), "{}", outcome.text());
        let outcome = project.edit("a.fake", "a=BROKEN\nb=BROKEN", "a=3\nb=4").await;
        assert_eq!(project.read("a.fake"), "a = 3\nb = 4\n");
        project.assert_consistent("a.fake", &outcome);
        // A file that could not be parsed before the edit is not formatted, because it is unknown
        // whether it was formatted.
        project.create_file("b.fake", "a=1\nb = BROKEN\n");
        let outcome = project.edit("b.fake", "b = BROKEN", "b=2").await;
        assert_eq!(project.read("b.fake"), "a=1\nb=2\n");
        assert_eq!(outcome.text(), "Edited b.fake.");
    });
}
