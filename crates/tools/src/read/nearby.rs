//! Instructions that lie beside what is read: AGENTS.md in the folders between the workspace and
//! the file, each once in a session, and only in a project the person trusts.

use crate::text::Text;
use std::sync::Arc;
use windlass_toolkit::{Cx, Failure};

const NAME: &str = "AGENTS.md";

/// How long a result may be with instructions, so that nothing of them is cut off.
const LONGEST: usize = 48 * 1024;

/// What is added to a result that is so long.
pub(super) async fn instructions(
    path: &str,
    length: usize,
    cx: &Cx<'_>,
) -> Result<String, Failure> {
    let mut added = String::new();
    if !cx.scene.trusted {
        return Ok(added);
    }
    for beside in candidates(path) {
        if cx.caller.seen(&beside).is_some() {
            continue;
        }
        let name = beside.clone();
        let found = cx.blocking(move |world| Ok(world.beside(&name)));
        let Some(bytes) = found.await? else { continue };
        if length + added.len() + bytes.len() > LONGEST {
            added.push_str(&format!("\n[{beside} has instructions for this folder: read it]"));
            continue;
        }
        let bytes: Arc<[u8]> = bytes.into();
        let Ok(text) = Text::decode(bytes.to_vec()) else { continue };
        let text = text.view();
        added.push_str(&format!("\n[instructions for this folder, from {beside}]\n{text}"));
        cx.caller.show(&beside, &bytes);
    }
    Ok(added)
}

/// The files that would hold them, the outermost first. The workspace's own is told elsewhere.
fn candidates(path: &str) -> Vec<String> {
    let folders = path.match_indices('/').map(|(at, _)| path.split_at(at).0);
    folders.map(|folder| format!("{folder}/{NAME}")).filter(|beside| beside != path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_between_the_workspace_and_the_file_count() {
        assert_eq!(candidates("a/b/c.rs"), ["a/AGENTS.md", "a/b/AGENTS.md"]);
        assert_eq!(candidates("a/AGENTS.md"), [""; 0]);
        assert_eq!(candidates("c.rs"), [""; 0]);
    }
}
