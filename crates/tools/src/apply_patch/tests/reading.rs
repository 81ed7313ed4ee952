//! What is read as a patch, and what is refused with which words.

use crate::apply_patch::{Hunk, Line, Section, parse};

const SECTIONS: &str = "A section begins with \"*** Add File: PATH\", \"*** Delete File: PATH\" \
                        or \"*** Update File: PATH\".";

fn refused(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

fn hunks(text: &str) -> Vec<Hunk> {
    match parse(text).unwrap().remove(0) {
        Section::Update { hunks, .. } => hunks,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_no_whole_patch_is_refused() {
    for (written, words) in [
        ("", "the patch is empty. It begins with \"*** Begin Patch\".".to_owned()),
        (" \n\n", "the patch is empty. It begins with \"*** Begin Patch\".".to_owned()),
        (
            "\nHere you go:\n*** Begin Patch\n*** End Patch",
            "line 2 of the patch: a patch begins with \"*** Begin Patch\", but here is \"Here you \
             go:\"."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\n",
            "the patch does not end with \"*** End Patch\", so it may have been cut off and none \
             of it was applied. Send it again whole, or in smaller parts."
                .to_owned(),
        ),
        (
            "```\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patc\n```",
            "the patch does not end with \"*** End Patch\", so it may have been cut off and none \
             of it was applied. Send it again whole, or in smaller parts."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n\nDone!\n",
            "line 6 of the patch: nothing may follow \"*** End Patch\", but here is \"Done!\"."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n\n*** End Patch",
            format!(
                "the patch is empty: between \"*** Begin Patch\" and \"*** End Patch\" there is no \
                 section. {SECTIONS}"
            ),
        ),
        (
            "*** Begin Patch\n*** Frobnicate File: a\n*** End Patch",
            format!(
                "line 2 of the patch: \"*** Frobnicate File: a\" belongs to no section. {SECTIONS}"
            ),
        ),
    ] {
        assert_eq!(refused(written), words, "{written}");
    }
}

#[test]
fn what_is_no_section_is_refused_with_the_line_that_is_wrong() {
    for (written, words) in [
        (
            "*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch",
            format!("line 3 of the patch: \"-x\" belongs to no section. {SECTIONS}"),
        ),
        (
            "*** Begin Patch\n*** Delete File:  \n*** End Patch",
            "line 2 of the patch: the path is missing. It follows the colon.".to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** Move to:\n*** End Patch",
            "line 3 of the patch: the path is missing. It follows the colon.".to_owned(),
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\nhello\n*** End Patch",
            "line 4 of the patch: every line of the new file a begins with \"+\", an empty one too."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\n\n+y\n*** End Patch",
            "line 4 of the patch: every line of the new file a begins with \"+\", an empty one too."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n\n*** End Patch",
            "line 2 of the patch: this section changes nothing in a. Say what changes with lines \
             that begin with \"-\" and \"+\", or leave the section out."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@ fn f()\n x\n*** End Patch",
            "line 2 of the patch: this section changes nothing in a. Say what changes with lines \
             that begin with \"-\" and \"+\", or leave the section out."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@ fn f()\n\n@@\n-x\n*** End Patch",
            "line 3 of the patch: this hunk has no lines. Add the lines to keep, with a leading \
             space, and those that begin with \"-\" and \"+\"."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n-x\n\tindented\n*** End Patch",
            "line 5 of the patch: a line of a hunk begins with \" \" (kept), \"-\" (removed) or \
             \"+\" (added), but here is \"\tindented\"."
                .to_owned(),
        ),
    ] {
        assert_eq!(refused(written), words, "{written}");
    }
}

#[test]
fn what_is_too_much_is_refused_in_few_words() {
    let begin = "*** Begin Patch\n";
    let many = format!("{begin}*** Update File: a\n{}*** End Patch", "@@\n-x\n".repeat(10_000));
    let words = "a patch may have 10000 sections and hunks, and this has more. Send it in parts.";
    assert!(refused(&many).ends_with(words));
    let long = format!("{begin}*** Add File: a\n+{}\n*** End Patch", "x".repeat(4 << 20));
    assert!(refused(&long).contains("longer than 4 MiB"));
    let quoted = refused(&format!("{begin}{}\n*** End Patch", "é".repeat(1000)));
    assert!(quoted.chars().count() < 300, "{quoted}");
}

#[test]
fn every_beginning_of_a_patch_is_refused() {
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n+*** End Patch\n*** Update File: b\n@@ f\n \
                 *** End Patch is kept\n-y\n+z\n*** End Patch";
    assert!(parse(patch).is_ok());
    for end in 0..patch.len() {
        assert!(parse(&patch[..end]).is_err(), "{}", &patch[..end]);
    }
}

#[test]
fn wrappers_padding_and_line_ends_do_not_matter() {
    let plain =
        "*** Begin Patch\n*** Update File: a b\n@@ f\n-x\n+y\n*** Add File: n\n+\n*** End Patch";
    let expected = parse(plain).unwrap();
    let strip = |sections: &mut Vec<Section>| {
        for section in sections {
            if let Section::Update { hunks, .. } = section {
                hunks.iter_mut().for_each(|hunk| hunk.at = 0);
            }
        }
    };
    for written in [
        format!("\n\n{plain}\n\n"),
        format!("\u{feff}{plain}"),
        plain.replace('\n', "\r\n"),
        format!("<<'EOF'\n{plain}\nEOF"),
        format!("<<EOF\n{plain}\nEOF\n"),
        format!("apply_patch <<\"END_OF_IT\"\n{plain}\nEND_OF_IT"),
        format!("apply_patch <<-'EOF'\n{plain}"),
        format!("```\n{plain}\n```"),
        format!("````diff\n\n{plain}\n\n````"),
        format!("```sh\napply_patch << 'EOF'\n{plain}\nEOF\n```\n"),
        plain.replace("*** Update File: a b", "  *** Update File:   a b  "),
        plain.replace("*** Add", "\n*** Add"),
        plain.replace("*** Begin Patch\n", "\t*** Begin Patch \n\n"),
        plain.replace("*** End Patch", "\n  *** End Patch  "),
        plain.replace("@@ f", "@@ f  "),
    ] {
        let (mut read, mut expected) = (parse(&written).expect(&written), expected.clone());
        strip(&mut read);
        strip(&mut expected);
        if let Some(Section::Update { hunks, .. }) = read.first_mut() {
            let blank = hunks[0].spare;
            assert!(blank <= 1);
            let kept = hunks[0].lines.len() - blank;
            hunks[0].lines.truncate(kept);
            hunks[0].spare = 0;
        }
        assert_eq!(read, expected, "{written}");
    }
}

#[test]
fn markers_are_markers_only_where_they_can_be() {
    let text = "*** Begin Patch\n*** Add File: doc.md\n+*** Begin Patch\n+*** End Patch\n\
                *** Update File: other.md\n@@ *** Update File: x\n *** End of File\n\
                -*** End Patch\n+@@\n *** Delete File: y\n*** End of File\n*** End Patch";
    let sections = parse(text).unwrap();
    let content = "*** Begin Patch\n*** End Patch\n".to_owned();
    assert_eq!(sections[0], Section::Add { path: "doc.md".into(), content });
    let hunk = Hunk {
        at: 6,
        anchors: vec!["*** Update File: x".into()],
        lines: vec![
            Line::Keep("*** End of File".into()),
            Line::Remove("*** End Patch".into()),
            Line::Add("@@".into()),
            Line::Keep("*** Delete File: y".into()),
        ],
        spare: 0,
        ends_file: true,
    };
    let (path, to) = ("other.md".into(), None);
    assert_eq!(sections[1], Section::Update { path, to, hunks: vec![hunk] });
    assert_eq!(sections.len(), 2);
}

#[test]
fn anchors_nest_and_the_numbers_of_a_diff_are_no_anchor() {
    let text = "*** Begin Patch\n*** Update File: a\n@@ class A:\n@@     def f():\n-x\n\
                @@ -1,2 +3,4 @@ fn f()\n-y\n@@ -1 @@\n-z\n*** End Patch";
    let hunks = hunks(text);
    assert_eq!(hunks[0].anchors, ["class A:", "    def f():"]);
    assert!(hunks[1].anchors.is_empty());
    assert_eq!(hunks[2].anchors, ["-1 @@"]);
    assert_eq!(hunks.iter().map(|hunk| hunk.at).collect::<Vec<_>>(), [3, 6, 8]);
}

#[test]
fn an_empty_file_can_be_added() {
    let read = parse("*** Begin Patch\n*** Add File: a\n*** End Patch").unwrap();
    assert_eq!(read, [Section::Add { path: "a".into(), content: String::new() }]);
}
