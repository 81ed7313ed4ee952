//! What a formatter that behaves well does to changes.

use crate::site::{Site, fake, run};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass_protocol::{Author, Mode, Outcome};
use windlass_toolkit::Scene;

pub fn what_is_written_is_what_was_formatted_and_on_record() {
    run(async {
        let site = Site::with("good");
        let made = site.write("new/a.fake", "a=1\nb = 2\n").await;
        assert_eq!(site.read("new/a.fake"), "a = 1\nb = 2\n");
        site.agrees("new/a.fake", &made);
        let expected = "Created new/a.fake (2 lines).\nFormatted by fake; what it changed:\n\
                        --- a/new/a.fake\n+++ b/new/a.fake\n@@ -1,2 +1,2 @@\n-a=1\n+a = 1\n b = 2";
        assert_eq!(made.text(), expected);
        // The model knows the formatted line, and need not read it.
        let made = site.edit("new/a.fake", "a = 1", "a=3").await;
        assert_eq!(site.read("new/a.fake"), "a = 3\nb = 2\n");
        site.agrees("new/a.fake", &made);
        // What is formatted already is not spoken of.
        let made = site.edit("new/a.fake", "a = 3", "a = 4").await;
        assert_eq!(made.text(), "Edited new/a.fake.");
        site.agrees("new/a.fake", &made);
        assert_eq!(site.changes(0).len(), 3, "one change a call");
        let undone = site.undo(site.changes(1)).await;
        assert!(matches!(undone, Outcome::Completed { .. }), "{undone:?}");
        assert_eq!(site.read("new/a.fake"), "a = 1\nb = 2\n");
        let undone = site.undo(site.changes(3)).await;
        assert!(matches!(undone, Outcome::Completed { .. }), "{undone:?}");
        assert_eq!(site.read("new/a.fake"), "a = 4\nb = 2\n", "taking it back once more");
        site.undo(site.changes(0)).await;
        assert!(!site.path("new/a.fake").exists(), "it was not there at first");
    });
}

pub fn a_file_that_was_not_kept_formatted_keeps_every_byte() {
    run(async {
        let site = Site::with("good");
        site.put("a.fake", "x=1\ny  =  2\nz=3\n");
        let made = site.edit("a.fake", "z=3", "z=4").await;
        assert_eq!(site.read("a.fake"), "x=1\ny  =  2\nz=4\n");
        assert_eq!(made.text(), "Edited a.fake.", "there is nothing to say about it");
        site.agrees("a.fake", &made);
        let made = site.write("a.fake", "x=1\n").await;
        assert_eq!(site.read("a.fake"), "x=1\n");
        assert_eq!(made.text(), "Replaced a.fake (1 line).");
        // Once it is formatted, it is kept so.
        site.put("a.fake", "x = 1\n");
        site.edit("a.fake", "x = 1", "x=2").await;
        assert_eq!(site.read("a.fake"), "x = 2\n");
    });
}

pub fn a_preview_shows_what_is_written() {
    run(async {
        let site = Site::of(vec![fake("good")], json!({"edit": "ask"}), Mode::Ask);
        site.put("a.fake", "x = 1\n");
        let made = site.edit("a.fake", "x = 1", "x=2").await;
        site.agrees("a.fake", &made);
        let patch = "*** Begin Patch\n*** Add File: b.fake\n+c=1\n*** End Patch";
        let scene = Scene { model: "openai/gpt-5".into(), ..Scene::default() };
        let cancel = CancellationToken::new();
        let input = json!({"patchText": patch});
        site.travel("apply_patch", input, (Author::Model, &scene), cancel).await;
        let shown = site.person.shown.lock().unwrap();
        let [edit, patch] = shown.as_slice() else { panic!("{shown:?}") };
        assert!(edit.contains("+x = 2") && !edit.contains("x=2"), "{edit}");
        assert!(patch.contains("+c = 1") && !patch.contains("c=1"), "{patch}");
    });
}

pub fn a_change_of_layout_alone_is_no_change() {
    run(async {
        let site = Site::with("good");
        site.put("a.fake", "x = 1\n");
        let made = site.edit("a.fake", "x = 1", "x=1").await;
        let Outcome::Failed { text } = made else { panic!("{made:?}") };
        assert!(text.contains("would be the same as before once it is formatted"), "{text}");
        assert_eq!(site.read("a.fake"), "x = 1\n");
        assert!(site.changes(0).is_empty());
        let scene = Scene { model: "openai/gpt-5".into(), ..Scene::default() };
        let patch = |more: &str| {
            let text = format!(
                "*** Begin Patch\n*** Update File: a.fake\n@@\n-x = 1\n+x  =  1\n{more}*** End Patch"
            );
            json!({"patchText": text})
        };
        let by = || (Author::Model, &scene);
        let cancel = CancellationToken::new;
        let made = site.travel("apply_patch", patch(""), by(), cancel()).await;
        assert!(matches!(made, Outcome::Failed { .. }), "{made:?}");
        let more = patch("*** Add File: b.fake\n+y=1\n");
        let made = site.travel("apply_patch", more, by(), cancel()).await;
        assert!(matches!(made, Outcome::Completed { .. }), "{made:?}");
        assert_eq!(
            (site.read("a.fake"), site.read("b.fake")),
            ("x = 1\n".into(), "y = 1\n".into())
        );
        assert_eq!(site.changes(0).len(), 1);
    });
}

pub fn a_patch_is_formatted_whole_and_what_is_moved_stays_as_it_was() {
    run(async {
        let site = Site::with("good");
        site.put("kept.fake", "a = 1\n");
        site.put("loose.fake", "a=1\nb=1\n");
        site.put("neat.fake", "a = 1\nb = 1\n");
        let patch = "*** Begin Patch\n\
             *** Add File: new.fake\n+n=1\n\
             *** Add File: other.txt\n+n=1\n\
             *** Update File: kept.fake\n@@\n-a = 1\n+a=2\n\
             *** Update File: loose.fake\n*** Move to: moved/loose.fake\n@@\n-b=1\n+b=2\n\
             *** Update File: neat.fake\n*** Move to: moved/neat.fake\n@@\n-b = 1\n+b=2\n\
             *** End Patch";
        let scene = Scene { model: "openai/gpt-5".into(), ..Scene::default() };
        let cancel = CancellationToken::new();
        let by = (Author::Model, &scene);
        let made = site.travel("apply_patch", json!({"patchText": patch}), by, cancel).await;
        assert!(matches!(made, Outcome::Completed { .. }), "{made:?}");
        for (name, content) in [
            ("new.fake", "n = 1\n"),
            ("other.txt", "n=1\n"),
            ("kept.fake", "a = 2\n"),
            ("moved/loose.fake", "a=1\nb=2\n"),
            ("moved/neat.fake", "a = 1\nb = 2\n"),
        ] {
            assert_eq!(site.read(name), content, "{name}");
            site.agrees(name, &made);
        }
        assert_eq!(site.person.recorded.lock().unwrap().len(), 1, "one batch");
        assert_eq!(made.text().matches("Formatted by fake").count(), 3, "{}", made.text());
    });
}

pub fn a_mark_stays_and_other_encodings_are_left_alone() {
    run(async {
        let site = Site::with("good");
        site.put("a.fake", "\u{feff}x = 1\n");
        site.edit("a.fake", "x = 1", "x=2").await;
        assert_eq!(site.read("a.fake"), "\u{feff}x = 2\n");
        let latin = b"na\xefve = 1\nb = 2\n";
        site.put("l.fake", latin);
        site.edit("l.fake", "b = 2", "b=3").await;
        assert_eq!(std::fs::read(site.path("l.fake")).unwrap(), b"na\xefve = 1\nb=3\n");
        let wide = b"\xff\xfea\0=\x001\0\n\0";
        site.put("w.fake", wide);
        site.edit("w.fake", "a=1", "a=2").await;
        assert_eq!(std::fs::read(site.path("w.fake")).unwrap(), b"\xff\xfea\0=\x002\0\n\0");
    });
}

pub fn what_is_not_set_up_is_not_run() {
    run(async {
        let site = Site::with("hangs");
        std::fs::remove_file(site.path("fake.toml")).unwrap();
        let made = site.write("a.fake", "a=1\n").await;
        assert_eq!(
            (made.text(), site.read("a.fake")),
            ("Created a.fake (1 line).", "a=1\n".into())
        );
        // Further down it is.
        std::fs::create_dir(site.path("sub")).unwrap();
        std::fs::write(site.path("sub/fake.toml"), "").unwrap();
        std::fs::copy(site.path("fake.sh"), site.path("sub/fake.sh")).unwrap();
        let made = site.write("sub/x/y/a.fake", "a=1\n").await;
        assert!(made.text().contains("fake took longer than 0.3 s"), "{}", made.text());
    });
}

pub fn a_person_is_served_as_a_model_is() {
    run(async {
        let site = Site::with("good");
        let (scene, cancel) = (Scene::default(), CancellationToken::new());
        let input = json!({"filePath": "a.fake", "content": "a=1\n"});
        site.travel("write", input, (Author::Person, &scene), cancel).await;
        assert_eq!(site.read("a.fake"), "a = 1\n");
    });
}

pub fn a_file_that_could_not_be_read_for_a_while_is_formatted_again() {
    run(async {
        let site = Site::with("picky");
        site.put("a.fake", "a = 1\nb = 2\n");
        let made = site.edit("a.fake", "a = 1", "a=BROKEN").await;
        assert_eq!(site.read("a.fake"), "a=BROKEN\nb = 2\n", "the wanted bytes stand");
        let expected = "Edited a.fake.\nfake did not format a.fake: error: BROKEN is no word\n \
                        --> line 1";
        assert_eq!(made.text(), expected);
        let made = site.edit("a.fake", "b = 2", "b=BROKEN").await;
        assert!(made.text().contains("did not format"), "{}", made.text());
        let made = site.edit("a.fake", "a=BROKEN\nb=BROKEN", "a=3\nb=4").await;
        assert_eq!(site.read("a.fake"), "a = 3\nb = 4\n");
        site.agrees("a.fake", &made);
        // Of one that was broken before anybody came, nobody knows whether it was kept formatted.
        site.put("b.fake", "a=1\nb = BROKEN\n");
        let made = site.edit("b.fake", "b = BROKEN", "b=2").await;
        assert_eq!(site.read("b.fake"), "a=1\nb=2\n");
        assert_eq!(made.text(), "Edited b.fake.");
    });
}
