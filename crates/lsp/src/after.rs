//! What servers make of a change: what was known before, what is told them, what is waited for.
//!
//! Nobody waits longer than the patience of a review, and nobody at all once the call is stopped.
//! What is not there by then is owed, and comes later (see `late`). Start reading at [`after`].

use crate::Review;
use crate::desk::{Mark, Silence};
use crate::house::House;
use crate::judge::{self, Found, OTHERS, Snapshot, Told};
use crate::late::{self, Debt, Others};
use crate::offer::WATCHED;
use crate::place::uri;
use crate::pull::{PULL, pull, speaks};
use crate::server::Server;
use crate::sweep::{self, Fate};
use crate::talk::Link;
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windlass_protocol::SessionId;
use windlass_sandbox::World;

/// How many files of one change are waited for.
const AWAITED: usize = 10;
/// How long a server is waited for that was silent about two changes in a row.
const SHORT: Duration = Duration::from_millis(500);
/// How long other open documents are waited for.
const ASIDE: Duration = Duration::from_millis(500);

/// What files hold now: a text, or nothing if they are gone.
pub(crate) type Now = Vec<(String, Option<Arc<str>>)>;

/// What was known of files before they changed.
#[derive(Default)]
pub struct Before {
    eyes: Vec<Eye>,
    /// Those that were there.
    there: BTreeSet<String>,
}

/// What one server knew before a change.
struct Eye {
    server: Arc<Server>,
    paths: Vec<String>,
    known: Option<Known>,
}

struct Known {
    link: Arc<Link>,
    snapshot: Snapshot,
    /// Files that were opened only just now, so that nothing was found in them yet.
    unseen: BTreeSet<String>,
    others: Others,
}

/// Somebody looks at a file.
pub(crate) fn warm(house: &House, world: &Arc<World>, path: &str) {
    let Ok(path) = world.locate(path) else { return };
    for server in house.serving(world, &path) {
        match server.ready() {
            Some(link) => open(house, world, &link, &path),
            None => server.wake(),
        }
    }
}

/// Opens a document if it is not open, so that it is looked at before it changes.
fn open(house: &House, world: &World, link: &Link, path: &str) {
    if link.desk().document(path).is_none()
        && let Some(text) = sweep::text(world, path)
    {
        let glance = house.workspace().glance(path);
        link.desk().hold(&|(method, params)| link.notify(method, params), (path, &text), glance);
    }
}

/// What is known of files that are about to change.
pub(crate) fn before(house: &House, world: &Arc<World>, paths: &[String]) -> Before {
    let mut before = Before::default();
    for path in paths {
        if house.workspace().glance(path).is_some() {
            before.there.insert(path.clone());
        }
        for server in house.serving(world, path) {
            let known = before.eyes.iter_mut().find(|eye| Arc::ptr_eq(&eye.server, &server));
            match known {
                Some(eye) => eye.paths.push(path.clone()),
                None => before.eyes.push(Eye { server, paths: vec![path.clone()], known: None }),
            }
        }
    }
    for eye in &mut before.eyes {
        let Some(link) = eye.server.ready() else {
            eye.server.wake();
            continue;
        };
        house.late().runs(&eye.server.row().name, eye.server.root());
        sweep::compare(house, world, &link);
        let there = eye.paths.iter().filter(|path| before.there.contains(*path));
        let mut unseen = BTreeSet::new();
        for path in there {
            open(house, world, &link, path);
            let desk = link.desk();
            let seen = if link.offers(PULL) { desk.was_pulled(path) } else { desk.was_heard(path) };
            if !seen {
                unseen.insert(path.clone());
            }
        }
        let others = if link.busy().is_some() { Others::Unknown } else { Others::Compared };
        let snapshot = link.desk().snapshot();
        eye.known = Some(Known { link, snapshot, unseen, others });
    }
    before
}

/// Tells servers what files hold now, and does not wait.
pub(crate) fn changed(house: &House, world: &Arc<World>, now: Now) {
    for (path, text) in &now {
        for server in house.serving(world, path) {
            if let Some(link) = server.ready() {
                let fate = if text.is_some() { Fate::Changed } else { Fate::Gone };
                tell(house, &link, (path, text.as_ref()), fate);
            }
        }
    }
    tell_others(house, &[], &now, &BTreeSet::new());
}

/// Tells a server what a file holds, and that it was saved.
fn tell(
    house: &House,
    link: &Link,
    (path, text): (&str, Option<&Arc<str>>),
    fate: Fate,
) -> Option<Mark> {
    let send = |(method, params)| link.notify(method, params);
    let mark = match text {
        Some(text) => {
            let glance = house.workspace().glance(path);
            let mark = link.desk().hold(&send, (path, text), glance);
            let registered = || link.offers("textDocument/didSave").then_some(Save::Plain);
            if let Some(save) = save(link.capabilities()).or_else(registered) {
                let mut params =
                    json!({"textDocument": {"uri": uri(house.workspace().root(), path)}});
                if let (Save::WithText, Some(params)) = (save, params.as_object_mut()) {
                    params.insert("text".into(), Value::from(&**text));
                }
                link.notify("textDocument/didSave", params);
            }
            mark
        }
        None => {
            link.desk().close(&send, path);
            None
        }
    };
    if link.watches(path) {
        let change = std::iter::once((path, fate));
        link.notify(WATCHED, sweep::event(house.workspace(), change));
    }
    mark
}

/// Tells servers that do not serve a file, but want to hear of it.
fn tell_others(house: &House, told: &[Arc<Server>], now: &Now, there: &BTreeSet<String>) {
    for server in house.running() {
        if told.iter().any(|known| Arc::ptr_eq(known, &server)) {
            continue;
        }
        let Some(link) = server.ready() else { continue };
        let wanted: Vec<(&str, Fate)> = now
            .iter()
            .filter(|(path, _)| link.watches(path))
            .map(|(path, text)| (path.as_str(), fate((path, text.as_ref()), there)))
            .collect();
        if !wanted.is_empty() {
            link.notify(WATCHED, sweep::event(house.workspace(), wanted.into_iter()));
        }
    }
}

fn fate((path, text): (&str, Option<&Arc<str>>), there: &BTreeSet<String>) -> Fate {
    match text {
        None => Fate::Gone,
        Some(_) if there.contains(path) => Fate::Changed,
        Some(_) => Fate::Made,
    }
}

/// How a server wants to hear that a file was saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Save {
    Plain,
    WithText,
}

fn save(capabilities: &Value) -> Option<Save> {
    match capabilities.pointer("/textDocumentSync/save") {
        Some(Value::Bool(true)) => Some(Save::Plain),
        Some(Value::Object(save)) => {
            let text = save.get("includeText") == Some(&Value::Bool(true));
            Some(if text { Save::WithText } else { Save::Plain })
        }
        Some(_) | None => None,
    }
}

/// A change that is under way.
struct Change<'a> {
    house: &'a House,
    world: &'a Arc<World>,
    session: SessionId,
    there: BTreeSet<String>,
    now: Now,
    deadline: Instant,
    cancel: &'a CancellationToken,
}

/// Tells servers what files hold now, and waits for what they make of it.
pub(crate) async fn after(
    house: &House,
    world: &Arc<World>,
    session: SessionId,
    before: Before,
    now: Now,
    cancel: &CancellationToken,
) -> Option<Review> {
    let Before { eyes, there } = before;
    let served: Vec<Arc<Server>> = eyes.iter().map(|eye| Arc::clone(&eye.server)).collect();
    tell_others(house, &served, &now, &there);
    let deadline = Instant::now() + house.patience().review;
    let change = Change { house, world, session, there, now, deadline, cancel };
    let reviews = join_all(eyes.into_iter().map(|eye| change.review(eye))).await;
    let mut whole = Review { text: String::new(), new: 0, left: 0 };
    for Review { text, new, left } in reviews.into_iter().flatten() {
        if !whole.text.is_empty() && !text.is_empty() {
            whole.text.push('\n');
        }
        whole.text.push_str(&text);
        whole.new += new;
        whole.left += left;
    }
    (!whole.text.is_empty()).then_some(whole)
}

impl Change<'_> {
    /// What one server makes of it.
    async fn review(&self, eye: Eye) -> Option<Review> {
        let Eye { server, paths, known } = eye;
        let (row, root) = (server.row().name.clone(), server.root().to_owned());
        self.house.late().forgive(&row, &root, self.session);
        let mut known = match known {
            Some(known) => known,
            None => self.meet(&server, &paths).await?,
        };
        let link = Arc::clone(&known.link);
        self.look_back(&mut known).await;
        let marks: Vec<Mark> = paths.iter().filter_map(|path| self.tell(&link, path)).collect();
        sweep::begin(self.house, &link);
        let settled = self.wait(&link, server.row().settle(), &marks).await;
        if !self.cancel.is_cancelled() && !settled.is_empty() {
            self.look_aside(&link, &mut known, &paths).await;
        }
        let snapshot = link.desk().snapshot();
        let said = link.desk().said();
        let review = self.judge(&row, &known, &snapshot, &settled);
        // Of files that nobody has spoken of yet, everything is still to come.
        let mut told = snapshot;
        for mark in marks.iter().filter(|mark| !settled.contains(&mark.path)) {
            match known.snapshot.get(&mark.path) {
                Some(found) => drop(told.insert(mark.path.clone(), found.clone())),
                None => drop(told.remove(&mark.path)),
            }
        }
        if known.others == Others::Compared {
            // Nor is what is found elsewhere told before this has settled.
            if settled.is_empty() {
                told.clone_from(&known.snapshot);
            }
        }
        late::owe(
            self.house,
            Debt {
                workspace: self.house.workspace().clone(),
                session: self.session,
                link,
                row,
                root,
                paths,
                known: told,
                said,
                others: known.others,
            },
        );
        review
    }

    /// The server starts with this change: whoever is first waits for it, and others do not.
    async fn meet(&self, server: &Arc<Server>, paths: &[String]) -> Option<Known> {
        if !self.house.late().may_wait(&server.row().name, server.root()) {
            server.wake();
            return None;
        }
        let limit = self.deadline.saturating_duration_since(Instant::now());
        let link = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return None,
            link = server.link(limit) => link.ok()?,
        };
        self.house.late().runs(&server.row().name, server.root());
        let unseen = paths.iter().filter(|path| self.there.contains(*path)).cloned().collect();
        Some(Known { link, snapshot: Snapshot::new(), unseen, others: Others::Unknown })
    }

    /// Has files that were opened only just now judged as they were before the change.
    async fn look_back(&self, known: &mut Known) {
        let link = Arc::clone(&known.link);
        let asked: Vec<String> = known
            .unseen
            .iter()
            .filter(|path| link.desk().document(path).is_some())
            .take(AWAITED)
            .cloned()
            .collect();
        if asked.is_empty() || !link.offers(PULL) {
            return;
        }
        let half = Instant::now() + self.deadline.saturating_duration_since(Instant::now()) / 2;
        let pulls = join_all(asked.iter().map(|path| pull(&link, path, half)));
        let answered = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return,
            answered = pulls => answered,
        };
        for (path, _) in asked.iter().zip(answered).filter(|(_, answered)| *answered) {
            known.unseen.remove(path);
        }
        known.snapshot = link.desk().snapshot();
    }

    fn tell(&self, link: &Link, path: &str) -> Option<Mark> {
        let (_, text) = self.now.iter().find(|(changed, _)| changed == path)?;
        let fate = fate((path, text.as_ref()), &self.there);
        tell(self.house, link, (path, text.as_ref()), fate)
    }

    /// Waits until a server has spoken of changes, and says of which it has.
    async fn wait(&self, link: &Link, settle: Duration, marks: &[Mark]) -> BTreeSet<String> {
        let desk = link.desk();
        let short = Instant::now() + SHORT;
        let deadline = if desk.silent() < 2 { self.deadline } else { self.deadline.min(short) };
        let waits = marks.iter().take(AWAITED).map(|mark| speaks(link, settle, mark, deadline));
        let spoken = tokio::select! {
            biased;
            () = self.cancel.cancelled() => return BTreeSet::new(),
            spoken = join_all(waits) => spoken,
        };
        if !marks.is_empty() {
            let all = spoken.iter().all(|spoken| *spoken);
            desk.note_silence(if all { Silence::Broken } else { Silence::Kept });
        }
        let spoken = marks.iter().zip(spoken).filter(|(_, spoken)| *spoken);
        spoken.map(|(mark, _)| mark.path.clone()).collect()
    }

    /// Pulls other open documents that may depend on what changed.
    async fn look_aside(&self, link: &Link, known: &mut Known, paths: &[String]) {
        let Some(options) = link.options(PULL) else { return };
        if options.get("interFileDependencies") == Some(&Value::Bool(false)) {
            return;
        }
        let limit = self.deadline.min(Instant::now() + ASIDE);
        let others: Vec<String> = link
            .desk()
            .recent()
            .into_iter()
            .filter(|path| !paths.contains(path))
            .take(OTHERS)
            .collect();
        // What is found in one that was never looked at before is not new.
        let strange: Vec<&String> =
            others.iter().filter(|path| !link.desk().was_pulled(path)).collect();
        let pulls = join_all(others.iter().map(|path| pull(link, path, limit)));
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return,
            _ = pulls => {}
        }
        let now = link.desk().snapshot();
        for path in strange {
            if let Some(found) = now.get(path) {
                known.snapshot.insert(path.clone(), found.clone());
            }
        }
    }

    fn judge(
        &self,
        server: &str,
        known: &Known,
        now: &Snapshot,
        settled: &BTreeSet<String>,
    ) -> Option<Review> {
        let desk = known.link.desk();
        let of = |snapshot: &Snapshot, path: &str| {
            snapshot.get(path).map(Found::all).unwrap_or_default()
        };
        let (mut own, mut fixed) = (Vec::new(), Vec::new());
        for path in settled {
            let found = of(now, path);
            if found.is_empty() && desk.take_told(path) {
                fixed.push(path.clone());
            }
            let strange = known.unseen.contains(path);
            let before = if strange { Vec::new() } else { of(&known.snapshot, path) };
            let (new, left) = judge::difference(&before, found);
            own.push(Told { path: path.clone(), new, left, strange });
        }
        let mut others = Vec::new();
        if known.others == Others::Compared && !settled.is_empty() {
            for (path, found) in now.iter().filter(|(path, _)| !settled.contains(*path)) {
                if self.now.iter().any(|(changed, _)| changed == path) {
                    continue;
                }
                let (new, left) = judge::difference(&of(&known.snapshot, path), found.all());
                if !new.is_empty() {
                    others.push(Told { path: path.clone(), new, left, strange: false });
                }
            }
        }
        others.sort_by_key(|told| std::cmp::Reverse(told.new.len()));
        others.iter_mut().take(OTHERS).for_each(|told| self.source(told));
        for told in own.iter().chain(others.iter().take(OTHERS)) {
            if !told.new.is_empty() {
                desk.note_told(&told.path);
            }
        }
        let text = judge::words(server, &own, &others, &fixed);
        let new = own.iter().chain(&others).map(|told| told.new.len()).sum();
        let left = own.iter().map(|told| told.left).sum();
        (!text.is_empty()).then_some(Review { text, new, left })
    }

    /// Adds the lines of a file that is not open.
    fn source(&self, told: &mut Told) {
        if told.new.iter().all(|finding| finding.text.is_some()) {
            return;
        }
        let Some(text) = sweep::text(self.world, &told.path).map(crate::place::Text::new) else {
            return;
        };
        for finding in told.new.iter_mut().filter(|finding| finding.text.is_none()) {
            finding.text = Some(text.line(finding.point.line).trim().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_hears_of_saving_as_it_said() {
        for (sync, wanted) in [
            (json!(1), None),
            (json!({"save": true}), Some(Save::Plain)),
            (json!({"save": false}), None),
            (json!({"save": {}}), Some(Save::Plain)),
            (json!({"save": {"includeText": true}}), Some(Save::WithText)),
        ] {
            let capabilities = json!({"textDocumentSync": sync});
            assert_eq!(save(&capabilities), wanted, "{capabilities}");
        }
    }
}
