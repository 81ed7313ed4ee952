//! Patches that a model passes to a program `apply_patch` in a command, as if it were installed.

/// Names under which models call the program.
const PROGRAM_NAMES: [&str; 2] = ["apply_patch", "applypatch"];
const PATCH_START: &str = "*** Begin Patch";

/// Returns the patch if the whole command is `apply_patch <<EOF`, the patch and `EOF`.
pub(super) fn patch_in_command(command: &str) -> Option<&str> {
    let command = command.trim();
    let rest = PROGRAM_NAMES.iter().find_map(|name| command.strip_prefix(name))?;
    let (redirection, body) = rest.split_once('\n')?;
    let delimiter = redirection.trim().strip_prefix("<<")?.trim();
    let quoted = ['\'', '"'].iter().find_map(|quote| {
        delimiter.strip_prefix(*quote).and_then(|rest| rest.strip_suffix(*quote))
    });
    let delimiter = quoted.unwrap_or(delimiter);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if delimiter.is_empty() || !delimiter.chars().all(is_word) {
        return None;
    }
    let patch = body.strip_suffix(delimiter)?.strip_suffix('\n')?;
    // A second end would be the end that bash sees.
    let is_whole = patch.lines().all(|line| line != delimiter);
    (is_whole && patch.trim_start().starts_with(PATCH_START)).then_some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATCH: &str = "*** Begin Patch\n*** Add File: a\n+$x\n*** End Patch";

    #[test]
    fn a_patch_is_found_in_the_usual_forms() {
        for start in ["apply_patch <<EOF", "apply_patch <<'EOF'", "applypatch << \"EOF\""] {
            let command = format!("{start}\n{PATCH}\nEOF\n");
            assert_eq!(patch_in_command(&command), Some(PATCH), "{command}");
        }
    }

    #[test]
    fn other_commands_stay_commands() {
        for command in [
            "apply_patch",
            "apply_patch x.patch",
            "apply_patch <<EOF\nhello\nEOF",
            "cat <<EOF\n*** Begin Patch\nEOF",
            "apply_patch <<EOF\n*** Begin Patch\n*** End Patch\nEOF\nrm x",
            "apply_patch <<EOF\n*** Begin Patch\nEOF\nrm x\nEOF",
            "apply_patch <<EOF && rm x\n*** Begin Patch\n*** End Patch\nEOF",
            "apply_patch <<$x\n*** Begin Patch\n*** End Patch\n$x",
        ] {
            assert_eq!(patch_in_command(command), None, "{command}");
        }
    }
}
