//! Every path and every command that a document names exists.

use super::Files;
use std::path::Path;

/// Beginnings of what is a path inside the project.
const ROOTS: &[&str] = &["crates/", "docs/", "testkit/", "xtask/", ".ci/", ".github/"];

/// Documents that must be there.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "STYLE.md",
    "SECURITY.md",
    "CHANGELOG.md",
    "AGENTS.md",
    "docs/glossary.md",
    "docs/vision.md",
    "docs/decisions/dependencies.md",
];

pub(crate) fn check(root: &Path, files: &Files) -> Vec<String> {
    let mut faults: Vec<String> = DOCUMENTS
        .iter()
        .filter(|document| !root.join(document).is_file())
        .map(|document| format!("{document} is missing"))
        .collect();
    let exists = |path: &str| root.join(path).exists();
    for (path, text) in files.with_ending("md") {
        faults.extend(broken(&path.display().to_string(), text, &exists));
    }
    let dependencies = files.0.iter().find(|(path, _)| path.ends_with("decisions/dependencies.md"));
    let manifest = files.0.iter().find(|(path, _)| path.as_os_str() == "Cargo.toml");
    if let (Some((_, reasons)), Some((_, manifest))) = (dependencies, manifest) {
        faults.extend(unexplained(manifest, reasons));
    }
    faults
}

/// The paths and links of a document that lead nowhere.
fn broken(document: &str, text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for span in text.split('`').skip(1).step_by(2) {
        names.extend(span.split_whitespace().map(str::to_owned));
    }
    for name in names {
        let name = name.trim_matches(|c: char| matches!(c, '"' | ',' | ';' | ':' | ')' | '('));
        let named = ROOTS.iter().any(|root| name.starts_with(root));
        let pattern = name.contains(['*', '<', '{', '…']);
        if named && !pattern && !exists(name) {
            faults.push(format!("{document}: there is no {name}"));
        }
    }
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let target = link.split('#').next().unwrap_or_default();
        let outside = target.is_empty() || target.contains("://") || target.starts_with("mailto:");
        let path = if folder.is_empty() { target.to_owned() } else { format!("{folder}/{target}") };
        if !outside && !exists(&path) {
            faults.push(format!("{document}: the link to {target} leads nowhere"));
        }
    }
    faults
}

/// The dependencies nobody gives a reason for.
fn unexplained(manifest: &str, reasons: &str) -> Vec<String> {
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    section
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" =").map(|(name, _)| name.trim()))
        .filter(|name| !name.starts_with("windlass-") && !reasons.contains(&format!("`{name}`")))
        .map(|name| format!("docs/decisions/dependencies.md: it does not say why {name} is here"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_or_link_that_leads_nowhere_is_noticed() {
        let text = "See `crates/gone/src/lib.rs`, `crates/here`, `docs/*.md` and [this](gone.md), \
                    [that](here.md#part), [web](https://example.com/x).";
        let exists = |path: &str| path.contains("here");
        assert_eq!(
            broken("docs/a.md", text, &exists),
            [
                "docs/a.md: there is no crates/gone/src/lib.rs",
                "docs/a.md: the link to gone.md leads nowhere"
            ]
        );
    }

    #[test]
    fn a_dependency_without_a_reason_is_noticed() {
        let manifest = "[workspace.dependencies]\nserde = \"1\"\n# why\nnew = { version = \"1\" }\nwindlass-a = \"0\"\n\n[other]\nx = 1\n";
        assert_eq!(
            unexplained(manifest, "| `serde` | … |"),
            ["docs/decisions/dependencies.md: it does not say why new is here"]
        );
    }
}
