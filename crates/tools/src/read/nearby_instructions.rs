//! Instructions for a file that is read: `AGENTS.md` in the folders between the workspace and the
//! file, and the project's rules for such files, each once per session, and only in a project the
//! user trusts.

use crate::text::FileText;
use globset::GlobBuilder;
use std::sync::Arc;
use windlass_toolkit::{CallContext, CallFailure};

const INSTRUCTIONS_FILE_NAME: &str = "AGENTS.md";

/// Size limit of a result with instructions, so that they are never truncated.
const MAX_RESULT_BYTES: usize = 48 * 1024;

/// Returns the instructions to append to a result of `length` bytes.
pub(super) async fn nearby_instructions(
    path: &str,
    length: usize,
    cx: &CallContext<'_>,
) -> Result<String, CallFailure> {
    let mut instructions = String::new();
    if !cx.step.trusted {
        return Ok(instructions);
    }
    for instructions_path in instruction_paths(path) {
        if cx.caller.last_seen(&instructions_path).is_some() {
            continue;
        }
        let name = instructions_path.clone();
        let read = cx.run_blocking(move |workspace| Ok(workspace.read_unasked(&name)));
        let Some(bytes) = read.await? else { continue };
        if length + instructions.len() + bytes.len() > MAX_RESULT_BYTES {
            instructions.push_str(&format!(
                "\n[{instructions_path} contains instructions for this folder: read it]"
            ));
            continue;
        }
        let bytes: Arc<[u8]> = bytes.into();
        let Ok(text) = FileText::decode(bytes.to_vec()) else { continue };
        let text = text.view();
        instructions.push_str(&format!(
            "\n[instructions for this folder, from {instructions_path}]\n{text}"
        ));
        cx.caller.mark_seen(&instructions_path, &bytes);
    }
    for rule in cx.step.path_rules.iter() {
        if cx.caller.last_seen(&rule.path).is_some() || !applies_to(&rule.patterns, path) {
            continue;
        }
        if length + instructions.len() + rule.text.len() > MAX_RESULT_BYTES {
            let path = &rule.path;
            instructions.push_str(&format!("\n[{path} contains rules for this file: read it]"));
            continue;
        }
        let (rule_path, text) = (&rule.path, &rule.text);
        instructions.push_str(&format!("\n[rules for this file, from {rule_path}]\n{text}\n"));
        cx.caller.mark_seen(rule_path, &Arc::from(rule.source.as_bytes()));
    }
    Ok(instructions)
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
