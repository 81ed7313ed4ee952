//! Cycles of files inside a crate: files that import each other, directly or through others.
//!
//! Imports between a module and its own submodules do not count: a folder is one subject. A name
//! that a module re-exports counts as an import of the file that defines it.

use super::Files;
use super::source_rules::{is_fixture, is_test, production};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A module path inside a crate, such as `["driver", "request"]`; empty for the crate root.
type ModulePath = Vec<String>;

pub(crate) fn check(files: &Files) -> Vec<String> {
    let mut faults = Vec::new();
    for (name, modules) in crates(files) {
        for cycle in cycles(&imports(&modules)) {
            let shown: Vec<String> = cycle.iter().map(|path| path.join("/")).collect();
            faults.push(format!("{name}: files import each other: {}", shown.join(", ")));
        }
    }
    faults
}

/// The modules of each crate with their production code.
fn crates(files: &Files) -> BTreeMap<String, BTreeMap<ModulePath, String>> {
    let mut crates: BTreeMap<String, BTreeMap<ModulePath, String>> = BTreeMap::new();
    for (path, text) in files.with_extension("rs") {
        let Ok(rest) = path.strip_prefix("crates") else { continue };
        let mut parts = rest.iter().map(|part| part.to_string_lossy().into_owned());
        let (Some(name), Some(folder)) = (parts.next(), parts.next()) else { continue };
        if folder != "src" || is_test(path) || is_fixture(path) {
            continue;
        }
        let code: Vec<&str> =
            production(text).lines().filter(|line| !line.trim().starts_with("//")).collect();
        crates.entry(name).or_default().insert(module_path(parts.collect()), code.join("\n"));
    }
    crates
}

fn module_path(mut parts: ModulePath) -> ModulePath {
    if let Some(last) = parts.pop() {
        let stem = Path::new(&last).file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !matches!(stem.as_str(), "mod" | "lib" | "main") {
            parts.push(stem);
        }
    }
    parts
}

/// The modules that each module imports, without its parents and children.
fn imports(modules: &BTreeMap<ModulePath, String>) -> BTreeMap<ModulePath, BTreeSet<ModulePath>> {
    let exports: BTreeMap<&ModulePath, BTreeMap<String, Vec<String>>> =
        modules.iter().map(|(path, code)| (path, exported(code))).collect();
    let mut edges = BTreeMap::new();
    for (module, code) in modules {
        let mut targets = BTreeSet::new();
        for path in used_paths(code) {
            let Some(target) = resolve(modules, &exports, module, &path, 0) else { continue };
            let kin = target.starts_with(module) || module.starts_with(&target);
            if !kin {
                targets.insert(target);
            }
        }
        edges.insert(module.clone(), targets);
    }
    edges
}

/// Every path that code names: the leaves of its `use` declarations, and paths in expressions.
fn used_paths(code: &str) -> Vec<Vec<String>> {
    let mut paths: Vec<Vec<String>> =
        use_trees(code).iter().flat_map(|(_, tree)| leaves(tree, &[])).map(|leaf| leaf.0).collect();
    for root in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(root) {
            let inside = code.get(..at).unwrap_or_default();
            if inside.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let rest = code.get(at..).unwrap_or_default();
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            let path = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
            paths.push(path.split("::").filter(|s| !s.is_empty()).map(str::to_owned).collect());
        }
    }
    paths
}

/// The `use` declarations of code: whether each is exported, and its tree without white space.
fn use_trees(code: &str) -> Vec<(bool, String)> {
    let mut trees = Vec::new();
    for (at, _) in code.match_indices("use ") {
        let line =
            code.get(..at).unwrap_or_default().rsplit('\n').next().unwrap_or_default().trim();
        if !line.is_empty() && !line.starts_with("pub") {
            continue;
        }
        let rest = code.get(at + 4..).unwrap_or_default();
        let Some((tree, _)) = rest.split_once(';') else { continue };
        trees
            .push((line.starts_with("pub"), tree.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    trees
}

/// The names that a module exports by `pub use`, with the path behind each.
fn exported(code: &str) -> BTreeMap<String, Vec<String>> {
    use_trees(code)
        .iter()
        .filter(|(public, _)| *public)
        .flat_map(|(_, tree)| leaves(tree, &[]))
        .filter_map(|(path, alias)| Some((alias.or_else(|| path.last().cloned())?, path)))
        .collect()
}

/// The paths that a `use` tree names, each with its alias.
fn leaves(tree: &str, prefix: &[String]) -> Vec<(Vec<String>, Option<String>)> {
    let tree = tree.trim();
    if let Some((head, rest)) = tree.split_once('{') {
        let mut prefix = prefix.to_vec();
        prefix.extend(head.split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned));
        let inner = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
        return split_at_commas(inner).iter().flat_map(|part| leaves(part, &prefix)).collect();
    }
    let (path, alias) = match tree.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim().to_owned())),
        None => (tree, None),
    };
    let mut whole = prefix.to_vec();
    whole.extend(path.split("::").map(str::trim).filter(|s| !s.is_empty()).map(str::to_owned));
    if whole.len() > 1 && whole.last().is_some_and(|last| last == "self") {
        whole.pop();
    }
    vec![(whole, alias)]
}

fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// The module that a path in `module` leads to, through re-exports.
fn resolve(
    modules: &BTreeMap<ModulePath, String>,
    exports: &BTreeMap<&ModulePath, BTreeMap<String, Vec<String>>>,
    module: &ModulePath,
    path: &[String],
    depth: usize,
) -> Option<ModulePath> {
    let mut current = module.clone();
    let mut rest = path;
    match path.first()?.as_str() {
        "crate" => {
            current.clear();
            rest = path.get(1..)?;
        }
        "self" => rest = path.get(1..)?,
        "super" => {
            while rest.first().is_some_and(|part| part == "super") {
                current.pop();
                rest = rest.get(1..)?;
            }
        }
        child => {
            let mut below = module.clone();
            below.push(child.to_owned());
            modules.get(&below)?;
        }
    }
    while let Some(next) = rest.first() {
        let mut below = current.clone();
        below.push(next.clone());
        if !modules.contains_key(&below) {
            break;
        }
        current = below;
        rest = rest.get(1..)?;
    }
    let behind = rest.first().and_then(|name| exports.get(&current)?.get(name));
    if let Some(behind) = behind.filter(|_| depth < 6)
        && let Some(target) = resolve(modules, exports, &current, behind, depth + 1)
    {
        return Some(target);
    }
    (!current.is_empty()).then_some(current)
}

/// The strongly connected components with more than one module, each sorted.
fn cycles(edges: &BTreeMap<ModulePath, BTreeSet<ModulePath>>) -> Vec<Vec<ModulePath>> {
    let reach: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
        edges.keys().map(|from| (from, reachable(edges, from))).collect();
    let mut found = BTreeSet::new();
    for (from, to) in &reach {
        let ring: Vec<ModulePath> = to
            .iter()
            .filter(|other| reach.get(*other).is_some_and(|back| back.contains(from)))
            .map(|other| (*other).clone())
            .collect();
        if ring.len() > 1 {
            found.insert(ring);
        }
    }
    found.into_iter().collect()
}

fn reachable<'a>(
    edges: &'a BTreeMap<ModulePath, BTreeSet<ModulePath>>,
    from: &'a ModulePath,
) -> BTreeSet<&'a ModulePath> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        for target in edges.get(next).into_iter().flatten() {
            if seen.insert(target) {
                open.push(target);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        check(&Files::fixture(files))
    }

    #[test]
    fn a_cycle_over_folders_is_found_through_exports_and_paths() {
        let faults = found(&[
            ("crates/x/src/lib.rs", "mod a; mod b; mod c;\npub use a::one::One;"),
            ("crates/x/src/a/mod.rs", "pub mod one;"),
            ("crates/x/src/a/one.rs", "use crate::b::Two;\npub struct One;"),
            ("crates/x/src/b.rs", "fn two() { crate::c::three() }"),
            ("crates/x/src/c.rs", "use crate::{\n    One,\n};"),
        ]);
        assert_eq!(faults, ["x: files import each other: a/one, b, c"]);
    }

    #[test]
    fn parents_and_children_may_import_each_other() {
        let files = [
            ("crates/x/src/lib.rs", "mod a; mod b;"),
            ("crates/x/src/a/mod.rs", "mod one;\nuse one::One;"),
            ("crates/x/src/a/one.rs", "use super::A;\nuse crate::b::B;"),
            ("crates/x/src/b.rs", "use crate::c::C;"),
        ];
        assert_eq!(found(&files), [""; 0]);
    }
}
