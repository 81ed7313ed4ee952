//! Checks paths, links and anchors in documents, and the reasons for dependencies.

use super::Files;
use std::path::Path;

/// Prefixes of paths inside the project.
const PATH_PREFIXES: &[&str] = &["crates/", "docs/", "testkit/", "xtask/", ".ci/", ".github/"];

/// Required documents.
const REQUIRED_DOCUMENTS: &[&str] = &[
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
    REVIEW_DOCUMENT,
];

/// The review of dependencies that read untrusted bytes.
const REVIEW_DOCUMENT: &str = "docs/decisions/dependency-review.md";

pub(crate) fn check(root: &Path, files: &Files) -> Vec<String> {
    let mut faults: Vec<String> = REQUIRED_DOCUMENTS
        .iter()
        .filter(|document| !root.join(document).is_file())
        .map(|document| format!("{document} is missing"))
        .collect();
    let exists = |path: &str, anchor: &str| {
        let path = root.join(path);
        let read = || std::fs::read_to_string(&path).unwrap_or_default();
        path.exists() && (anchor.is_empty() || anchors(&read()).any(|known| known == anchor))
    };
    for (path, text) in files.with_extension("md") {
        faults.extend(broken(&path.display().to_string(), text, &exists));
    }
    let dependencies = files.0.iter().find(|(path, _)| path.ends_with("decisions/dependencies.md"));
    let manifest = files.0.iter().find(|(path, _)| path.as_os_str() == "Cargo.toml");
    if let (Some((_, reasons)), Some((_, manifest))) = (dependencies, manifest) {
        faults.extend(unexplained(manifest, reasons));
    }
    let text_of = |name: &str| {
        files.0.iter().find(|(path, _)| path.ends_with(name)).map_or("", |(_, text)| text.as_str())
    };
    let locked = std::fs::read_to_string(root.join("Cargo.lock")).unwrap_or_default();
    faults.extend(unreviewed(text_of(REVIEW_DOCUMENT), &locked));
    faults
}

/// Returns the anchors of a document's headings, as mdBook and GitHub derive them.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    text.lines().filter(|line| line.starts_with('#')).map(|line| {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let allowed =
            heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        allowed.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

/// Reports the paths and links of a document that do not exist. `exists` takes a path and an
/// anchor.
fn broken(document: &str, text: &str, exists: &dyn Fn(&str, &str) -> bool) -> Vec<String> {
    let mut faults = Vec::new();
    let mut names: Vec<String> = Vec::new();
    for span in text.split('`').skip(1).step_by(2) {
        names.extend(span.split_whitespace().map(str::to_owned));
    }
    for name in names {
        let name = name.trim_matches(|c: char| matches!(c, '"' | ',' | ';' | ':' | ')' | '('));
        let is_path = PATH_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let is_pattern = name.contains(['*', '<', '{', '…']);
        if is_path && !is_pattern && !exists(name, "") {
            faults.push(format!("{document}: {name} does not exist"));
        }
    }
    let folder = document.rsplit_once('/').map_or("", |(folder, _)| folder);
    for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
        let (target, anchor) = link.split_once('#').unwrap_or((link, ""));
        let is_external = link.contains("://") || link.starts_with("mailto:");
        let path = match (target, folder) {
            ("", _) => document.to_owned(),
            (_, "") => target.to_owned(),
            _ => format!("{folder}/{target}"),
        };
        if !is_external && !exists(&path, anchor) {
            faults.push(format!("{document}: the link to {link} is broken"));
        }
    }
    faults
}

/// Reports dependencies without a reason in `dependencies.md`.
fn unexplained(manifest: &str, reasons: &str) -> Vec<String> {
    let section = manifest.split("[workspace.dependencies]").nth(1).unwrap_or_default();
    let section = section.split("\n[").next().unwrap_or_default();
    section
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split_once(" =").map(|(name, _)| name.trim()))
        .filter(|name| !name.starts_with("windlass-") && !reasons.contains(&format!("`{name}`")))
        .map(|name| format!("docs/decisions/dependencies.md: no reason is given for {name}"))
        .collect()
}

/// Reports rows of the review whose versions are not the ones in the lock file.
fn unreviewed(review: &str, locked: &str) -> Vec<String> {
    let rows = review.lines().filter(|line| line.starts_with("| `"));
    let versions = rows.filter_map(|row| {
        let mut columns = row.split('|').map(str::trim).skip(1);
        Some(columns.next()?.split(", ").zip(columns.next()?.split(", ")))
    });
    versions
        .flatten()
        .map(|(name, version)| (name.trim_matches('`'), version))
        .filter(|(name, version)| {
            !locked.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n"))
        })
        .map(|(name, version)| {
            format!(
                "{REVIEW_DOCUMENT}: {name} {version} is not the locked version. Read what changed \
                 and update the row"
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_of_a_reviewed_dependency_is_reported() {
        let locked = "name = \"a\"\nversion = \"1.0\"\nname = \"b\"\nversion = \"2.1\"\n";
        let review = |b: &str| format!("| crate | version |\n| `a`, `b` | 1.0, {b} | none |\n");
        assert!(unreviewed(&review("2.1"), locked).is_empty());
        assert_eq!(unreviewed(&review("2.0"), locked).len(), 1);
    }

    #[test]
    fn a_broken_path_or_link_is_reported() {
        let text = "See `crates/gone/src/lib.rs`, `crates/here`, `docs/*.md` and [this](gone.md), \
                    [that](here.md#part), [there](here.md#gone), [web](https://example.com/x).";
        let exists = |path: &str, anchor: &str| path.contains("here") && anchor != "gone";
        assert_eq!(
            broken("docs/a.md", text, &exists),
            [
                "docs/a.md: crates/gone/src/lib.rs does not exist",
                "docs/a.md: the link to gone.md is broken",
                "docs/a.md: the link to here.md#gone is broken"
            ]
        );
        let found: Vec<String> = anchors("# The `a-b` key, and\ntext\n## C_d 2\n").collect();
        assert_eq!(found, ["the-a-b-key-and", "c_d-2"]);
    }

    #[test]
    fn a_dependency_without_a_reason_is_reported() {
        let manifest = "[workspace.dependencies]\nserde = \"1\"\n# why\nnew = { version = \"1\" }\nwindlass-a = \"0\"\n\n[other]\nx = 1\n";
        assert_eq!(
            unexplained(manifest, "| `serde` | … |"),
            ["docs/decisions/dependencies.md: no reason is given for new"]
        );
    }
}
