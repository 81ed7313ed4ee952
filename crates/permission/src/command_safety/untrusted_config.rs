//! Files of a project by which it decides what a program runs.

use super::program_run_context::ProgramRunContext;
use super::risk::{Risk, RiskFinding};

/// Reports `Risk::WorkspaceWrite` if a file of the project, which the user has not trusted, decides
/// what the program runs.
pub(super) fn evaluate_untrusted_config(
    run_context: &ProgramRunContext<'_>,
    program: &str,
) -> RiskFinding {
    match untrusted_config(run_context, program) {
        Some(config) => {
            let reason = format!("`{config}` of the project decides what `{program}` runs");
            RiskFinding::new(Risk::WorkspaceWrite, reason)
        }
        None => RiskFinding::harmless(),
    }
}

/// Returns the name of a file in the workspace by which the project replaces the program, or adds
/// code to it, and which the user has not trusted.
fn untrusted_config(run_context: &ProgramRunContext<'_>, program: &str) -> Option<String> {
    let path_lookup = run_context.path_context.path_lookup();
    // Version managers install a program that starts the one which the project names.
    let is_shim = || {
        let path = path_lookup.find_program(program);
        path.is_some_and(|path| path.parent().is_some_and(|folder| folder.ends_with("shims")))
    };
    let names: &[&str] = match program {
        "cargo" | "rustc" | "rustdoc" | "rustfmt" | "rustup" => {
            &[".cargo/config.toml", ".cargo/config", "rust-toolchain.toml", "rust-toolchain"]
        }
        "mvn" => &[".mvn"],
        "gradle" => &["gradle.properties"],
        "dotnet" => &["global.json"],
        _ if is_shim() => &[".tool-versions", "mise.toml", ".mise.toml", ".config/mise"],
        _ => return None,
    };
    let config = run_context
        .folders
        .0
        .iter()
        .find_map(|folder| path_lookup.find_untrusted_config(folder, names))?;
    let relative = config.strip_prefix(path_lookup.workspace_root()).unwrap_or(&config);
    Some(relative.display().to_string())
}
