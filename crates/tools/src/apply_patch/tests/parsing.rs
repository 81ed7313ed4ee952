//! Tests of `parse_patch` and its errors.

use crate::apply_patch::{HunkLine, PatchHunk, PatchSection, parse_patch};

const SECTION_HELP: &str = "A section begins with \"*** Add File: PATH\", \"*** Delete File: \
                            PATH\" or \"*** Update File: PATH\".";

fn parse_error(text: &str) -> String {
    parse_patch(text).expect_err(text).to_string()
}

fn hunks(text: &str) -> Vec<PatchHunk> {
    match parse_patch(text).unwrap().remove(0) {
        PatchSection::Update { hunks, .. } => hunks,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_incomplete_patch_is_rejected() {
    for (patch, expected) in [
        ("", "the patch is empty. It must begin with \"*** Begin Patch\".".to_owned()),
        (" \n\n", "the patch is empty. It must begin with \"*** Begin Patch\".".to_owned()),
        (
            "\nHere you go:\n*** Begin Patch\n*** End Patch",
            "line 2 of the patch: a patch must begin with \"*** Begin Patch\", but this line is \
             \"Here you \
             go:\"."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\n",
            "the patch does not end with \"*** End Patch\", so it may have been cut off and was \
             not applied. Send all of it again, or send it in smaller parts."
                .to_owned(),
        ),
        (
            "```\n*** Begin Patch\n*** Add File: a\n+x\n*** End Patc\n```",
            "the patch does not end with \"*** End Patch\", so it may have been cut off and was \
             not applied. Send all of it again, or send it in smaller parts."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch\n\nDone!\n",
            "line 6 of the patch: nothing may follow \"*** End Patch\", but this line is \"Done!\"."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n\n*** End Patch",
            format!(
                "the patch is empty: no section between \"*** Begin Patch\" and \"*** End \
                 Patch\". {SECTION_HELP}"
            ),
        ),
        (
            "*** Begin Patch\n*** Frobnicate File: a\n*** End Patch",
            format!(
                "line 2 of the patch: \"*** Frobnicate File: a\" is not part of any section. \
                 {SECTION_HELP}"
            ),
        ),
    ] {
        assert_eq!(parse_error(patch), expected, "{patch}");
    }
}

#[test]
fn an_invalid_section_is_rejected_with_its_line() {
    for (patch, expected) in [
        (
            "*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch",
            format!("line 3 of the patch: \"-x\" is not part of any section. {SECTION_HELP}"),
        ),
        (
            "*** Begin Patch\n*** Delete File:  \n*** End Patch",
            "line 2 of the patch: the path is missing. Write it after the colon.".to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n*** Move to:\n*** End Patch",
            "line 3 of the patch: the path is missing. Write it after the colon.".to_owned(),
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\nhello\n*** End Patch",
            "line 4 of the patch: every line of the new file a must begin with \"+\", including \
             empty lines."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Add File: a\n+x\n\n+y\n*** End Patch",
            "line 4 of the patch: every line of the new file a must begin with \"+\", including \
             empty lines."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n\n*** End Patch",
            "line 2 of the patch: this section changes nothing in a. Add lines that begin with \
             \"-\" and \"+\", or omit the section."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@ fn f()\n x\n*** End Patch",
            "line 2 of the patch: this section changes nothing in a. Add lines that begin with \
             \"-\" and \"+\", or omit the section."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@ fn f()\n\n@@\n-x\n*** End Patch",
            "line 3 of the patch: this hunk has no lines. Add context lines with a leading space, \
             and lines that begin with \"-\" and \"+\"."
                .to_owned(),
        ),
        (
            "*** Begin Patch\n*** Update File: a\n@@\n-x\n\tindented\n*** End Patch",
            "line 5 of the patch: a hunk line must begin with \" \" (context), \"-\" (removed) or \
             \"+\" (added), but this line is \"\tindented\"."
                .to_owned(),
        ),
    ] {
        assert_eq!(parse_error(patch), expected, "{patch}");
    }
}

#[test]
fn a_patch_above_the_limits_is_rejected_briefly() {
    let begin = "*** Begin Patch\n";
    let many = format!("{begin}*** Update File: a\n{}*** End Patch", "@@\n-x\n".repeat(10_000));
    let expected = "the patch has more than 10000 sections and hunks. Send it in parts.";
    assert!(parse_error(&many).ends_with(expected));
    let long = format!("{begin}*** Add File: a\n+{}\n*** End Patch", "x".repeat(4 << 20));
    assert!(parse_error(&long).contains("larger than 4 MiB"));
    let quoted = parse_error(&format!("{begin}{}\n*** End Patch", "é".repeat(1000)));
    assert!(quoted.chars().count() < 300, "{quoted}");
}

#[test]
fn every_prefix_of_a_patch_is_rejected() {
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n+*** End Patch\n*** Update File: b\n@@ f\n \
                 *** End Patch is kept\n-y\n+z\n*** End Patch";
    assert!(parse_patch(patch).is_ok());
    for end in 0..patch.len() {
        assert!(parse_patch(&patch[..end]).is_err(), "{}", &patch[..end]);
    }
}

#[test]
fn wrappers_padding_and_line_ends_do_not_matter() {
    let plain =
        "*** Begin Patch\n*** Update File: a b\n@@ f\n-x\n+y\n*** Add File: n\n+\n*** End Patch";
    let expected = parse_patch(plain).unwrap();
    let clear_line_numbers = |sections: &mut Vec<PatchSection>| {
        for section in sections {
            if let PatchSection::Update { hunks, .. } = section {
                hunks.iter_mut().for_each(|hunk| hunk.patch_line = 0);
            }
        }
    };
    for patch in [
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
        let (mut parsed, mut expected) = (parse_patch(&patch).expect(&patch), expected.clone());
        clear_line_numbers(&mut parsed);
        clear_line_numbers(&mut expected);
        if let Some(PatchSection::Update { hunks, .. }) = parsed.first_mut() {
            let blank = hunks[0].trailing_blanks;
            assert!(blank <= 1);
            let line_count = hunks[0].lines.len() - blank;
            hunks[0].lines.truncate(line_count);
            hunks[0].trailing_blanks = 0;
        }
        assert_eq!(parsed, expected, "{patch}");
    }
}

#[test]
fn markers_in_file_lines_are_text() {
    let text = "*** Begin Patch\n*** Add File: doc.md\n+*** Begin Patch\n+*** End Patch\n\
                *** Update File: other.md\n@@ *** Update File: x\n *** End of File\n\
                -*** End Patch\n+@@\n *** Delete File: y\n*** End of File\n*** End Patch";
    let sections = parse_patch(text).unwrap();
    let content = "*** Begin Patch\n*** End Patch\n".to_owned();
    assert_eq!(sections[0], PatchSection::Add { path: "doc.md".into(), content });
    let hunk = PatchHunk {
        patch_line: 6,
        anchors: vec!["*** Update File: x".into()],
        lines: vec![
            HunkLine::Context("*** End of File".into()),
            HunkLine::Remove("*** End Patch".into()),
            HunkLine::Add("@@".into()),
            HunkLine::Context("*** Delete File: y".into()),
        ],
        trailing_blanks: 0,
        at_end_of_file: true,
    };
    let (path, move_to) = ("other.md".into(), None);
    assert_eq!(sections[1], PatchSection::Update { path, move_to, hunks: vec![hunk] });
    assert_eq!(sections.len(), 2);
}

#[test]
fn anchors_nest_and_line_numbers_are_not_anchors() {
    let text = "*** Begin Patch\n*** Update File: a\n@@ class A:\n@@     def f():\n-x\n\
                @@ -1,2 +3,4 @@ fn f()\n-y\n@@ -1 @@\n-z\n*** End Patch";
    let hunks = hunks(text);
    assert_eq!(hunks[0].anchors, ["class A:", "    def f():"]);
    assert!(hunks[1].anchors.is_empty());
    assert_eq!(hunks[2].anchors, ["-1 @@"]);
    assert_eq!(hunks.iter().map(|hunk| hunk.patch_line).collect::<Vec<_>>(), [3, 6, 8]);
}

#[test]
fn an_empty_file_can_be_added() {
    let parsed = parse_patch("*** Begin Patch\n*** Add File: a\n*** End Patch").unwrap();
    assert_eq!(parsed, [PatchSection::Add { path: "a".into(), content: String::new() }]);
}
