//! What changed behind our back: commands and people change files, too.
//!
//! Open documents are compared with their files, by time and size, whenever a server is touched.
//! Everything else is walked through only if a command may have changed files since, beside
//! whatever goes on, and servers that want to hear of files are told the difference.

use crate::house::House;
use crate::offer::WATCHED;
use crate::place::uri;
use crate::talk::{Link, lock};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use windlass_sandbox::{Glance, Workspace, World};

/// How many files are walked through.
const WALKED: usize = 20_000;
/// How many changes a server is told at once. More than that, and it is told of the first ones.
const TOLD: usize = 500;

/// What the files looked like the last time.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// What counted changes then.
    stirred: Option<u64>,
    files: Option<BTreeMap<String, Glance>>,
}

/// What became of a file, as the protocol counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Made = 1,
    Changed = 2,
    Gone = 3,
}

/// A notification of what became of files.
pub(crate) fn event<'a>(
    workspace: &Workspace,
    changes: impl Iterator<Item = (&'a str, Fate)>,
) -> Value {
    let changes =
        changes.map(|(path, fate)| json!({"uri": uri(workspace.root(), path), "type": fate as u8}));
    json!({"changes": changes.collect::<Vec<_>>()})
}

/// The text of a file that nobody's yes is needed for; none if it is no text.
pub(crate) fn text(world: &World, path: &str) -> Option<Arc<str>> {
    decode(world.beside(path)?)
}

/// The text that bytes are; none if they are not UTF-8.
pub(crate) fn decode(bytes: Vec<u8>) -> Option<Arc<str>> {
    let text = String::from_utf8(bytes).ok()?;
    Some(text.strip_prefix('\u{feff}').map_or_else(|| text.as_str().into(), Arc::from))
}

/// Tells a server of open documents whose files have changed.
pub(crate) fn compare(house: &House, world: &World, link: &Link) {
    let workspace = house.workspace();
    let send = |(method, params)| link.notify(method, params);
    for (path, before) in link.desk().glances() {
        let now = workspace.glance(&path);
        if now == before && now.is_some() {
            continue;
        }
        match now.and_then(|_| text(world, &path)) {
            Some(text) => drop(link.desk().hold(&send, (&path, &text), now)),
            None => link.desk().close(&send, &path),
        }
    }
}

/// Begins a walk through all files if a command may have changed some since the last one.
pub(crate) fn begin(house: &House, link: &Arc<Link>) {
    let workspace = house.workspace().clone();
    let stirred = workspace.stirred();
    {
        let swept = link.desk().swept();
        let mut inner = lock(&swept.inner);
        if inner.stirred == Some(stirred) {
            return;
        }
        inner.stirred = Some(stirred);
    }
    let link = Arc::clone(link);
    let walk = move || {
        let fits = |path: &str| link.watches(path);
        let now: BTreeMap<_, _> = workspace.census(&fits, WALKED).into_iter().collect();
        let swept = link.desk().swept();
        let mut inner = lock(&swept.inner);
        let before = inner.files.replace(now.clone());
        drop(inner);
        let Some(before) = before else { return };
        let changes = difference(&before, &now);
        if !changes.is_empty() {
            let told = changes.iter().take(TOLD).map(|(path, fate)| (path.as_str(), *fate));
            link.notify(WATCHED, event(&workspace, told));
        }
    };
    house.aside(async move {
        let _ = tokio::task::spawn_blocking(walk).await;
    });
}

/// What became of files from one walk to the next.
fn difference(
    before: &BTreeMap<String, Glance>,
    now: &BTreeMap<String, Glance>,
) -> Vec<(String, Fate)> {
    let kept = now.iter().filter_map(|(path, glance)| match before.get(path) {
        Some(known) if known == glance => None,
        Some(_) => Some((path.clone(), Fate::Changed)),
        None => Some((path.clone(), Fate::Made)),
    });
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    kept.chain(gone.map(|path| (path.clone(), Fate::Gone))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn what_became_of_files_is_seen_by_their_times_and_sizes() {
        let files = |list: &[(&str, u64, u64)]| -> BTreeMap<String, Glance> {
            let glance = |(path, changed, size): &(&str, u64, u64)| {
                let changed = Duration::from_secs(*changed);
                ((*path).to_owned(), Glance { changed, size: *size })
            };
            list.iter().map(glance).collect()
        };
        let before = files(&[("same", 1, 1), ("older", 2, 1), ("longer", 3, 1), ("gone", 1, 1)]);
        let now = files(&[("same", 1, 1), ("older", 1, 1), ("longer", 3, 2), ("made", 1, 1)]);
        let changes = difference(&before, &now);
        let fates: Vec<_> = changes.iter().map(|(path, fate)| (path.as_str(), *fate)).collect();
        let expected = [
            ("longer", Fate::Changed),
            ("made", Fate::Made),
            ("older", Fate::Changed),
            ("gone", Fate::Gone),
        ];
        assert_eq!(fates, expected);
    }

    #[test]
    fn a_mark_at_the_start_is_no_part_of_a_text() {
        assert_eq!(decode(b"\xef\xbb\xbfx".to_vec()).as_deref(), Some("x"));
        assert_eq!(decode(b"\xff\xfex".to_vec()), None);
    }
}
