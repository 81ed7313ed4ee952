//! Instructions for a file that is read or changed: `AGENTS.md` in the folders between the
//! workspace and the file, and the project's rules for such files. Only a project that the user
//! trusts has instructions, and each is shown once, as long as it stays in the model's context.

use crate::text::FileText;
use globset::GlobBuilder;
use std::sync::Arc;
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::file_history::INSTRUCTIONS_FILE_NAME;
use windlass_toolkit::{CallContext, CallFailure};

/// Size limit of a result with instructions, so that they are never truncated.
const MAX_RESULT_BYTES: usize = 48 * 1024;

/// Returns the instructions for a file, to append to a result of `length` bytes.
pub(crate) async fn nearby_instructions(
    path: &str,
    length: usize,
    cx: &CallContext<'_>,
) -> Result<String, CallFailure> {
    let mut instructions = String::new();
    if !cx.step.trusted {
        return Ok(instructions);
    }
    for instructions_path in instruction_paths(path) {
        let name = instructions_path.clone();
        let read = cx.run_blocking(move |workspace| Ok(workspace.read_unasked(&name)));
        let Some(bytes) = read.await? else { continue };
        if !cx.caller.claim_instructions(&instructions_path) {
            continue;
        }
        if length + instructions.len() + bytes.len() > MAX_RESULT_BYTES {
            instructions.push_str(&format!(
                "\n[{instructions_path} contains instructions for this folder: read it]"
            ));
            continue;
        }
        let bytes: Arc<[u8]> = bytes.into();
        let Ok(text) = FileText::decode(bytes.to_vec()) else { continue };
        let folder = instructions_path.trim_end_matches(INSTRUCTIONS_FILE_NAME);
        instructions.push_str(&instructions_element(&instructions_path, folder, text.view()));
        cx.caller.mark_seen(&instructions_path, &bytes);
    }
    for rule in cx.step.path_rules.iter() {
        if !applies_to(&rule.patterns, path) || !cx.caller.claim_instructions(&rule.path) {
            continue;
        }
        if length + instructions.len() + rule.text.len() > MAX_RESULT_BYTES {
            let path = &rule.path;
            instructions.push_str(&format!("\n[{path} contains rules for this file: read it]"));
            continue;
        }
        let files = rule.patterns.join(", ");
        instructions.push_str(&instructions_element(&rule.path, &files, &rule.text));
        cx.caller.mark_seen(&rule.path, &Arc::from(rule.source.as_bytes()));
    }
    Ok(instructions)
}

/// Returns the instructions for files that were changed before the model saw the instructions.
pub(crate) async fn instructions_after_change(paths: &[String], cx: &CallContext<'_>) -> String {
    let mut instructions = String::new();
    for path in paths {
        // The files are written: an error must not fail the call.
        let found = nearby_instructions(path, instructions.len(), cx).await;
        instructions.push_str(&found.unwrap_or_default());
    }
    match instructions.is_empty() {
        true => instructions,
        false => format!(
            "\nThese instructions apply to what you changed. Check the change against \
             them.{instructions}"
        ),
    }
}

/// Returns the text that shows instructions to the model. The system prompt does not tell the model
/// to obey the element, because any output could contain one.
fn instructions_element(source: &str, files: &str, text: &str) -> String {
    let (source, files) = (to_one_line(source), to_one_line(files));
    let text = text.trim().replace("</instructions", "&lt;/instructions");
    format!("\n<instructions from=\"{source}\" for=\"{files}\">\n{text}\n</instructions>\n")
}

/// Returns true if a path matches one of the globs. An invalid glob matches nothing.
fn applies_to(patterns: &[String], path: &str) -> bool {
    let is_match = |pattern: &String| {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        glob.is_ok_and(|glob| glob.compile_matcher().is_match(path))
    };
    patterns.iter().any(is_match)
}

/// Returns the candidate paths, outermost first. The workspace's own `AGENTS.md` is delivered
/// elsewhere.
fn instruction_paths(path: &str) -> Vec<String> {
    let folders = path.match_indices('/').map(|(index, _)| path.split_at(index).0);
    folders
        .map(|folder| format!("{folder}/{INSTRUCTIONS_FILE_NAME}"))
        .filter(|candidate| candidate != path)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_applies_to_the_files_of_its_globs() {
        let rows = [
            ("src/**/*.ts", "src/a/b.ts", true),
            ("src/**/*.ts", "src/b.ts", true),
            ("src/*.ts", "src/a/b.ts", false),
            ("**/*.{ts,tsx}", "x/y.tsx", true),
            ("*.md", "docs/a.md", false),
            ("[", "[", false),
        ];
        for (pattern, path, expected) in rows {
            assert_eq!(applies_to(&[pattern.to_owned()], path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn instructions_are_searched_between_the_workspace_and_the_file() {
        assert_eq!(instruction_paths("a/b/c.rs"), ["a/AGENTS.md", "a/b/AGENTS.md"]);
        assert_eq!(instruction_paths("a/AGENTS.md"), [""; 0]);
        assert_eq!(instruction_paths("c.rs"), [""; 0]);
    }
}
