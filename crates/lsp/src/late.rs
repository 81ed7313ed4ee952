//! What is not waited for any longer, but still wanted: errors that come after the answer to a
//! change. A session is told of them between its steps, once, and only until its next change.

use crate::desk::Desk;
use crate::house::House;
use crate::judge::{self, Snapshot, Told};
use crate::pull::pull;
use crate::talk::{Link, lock};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use windlass_protocol::SessionId;
use windlass_sandbox::Workspace;

/// How long something is owed.
const OWED: Duration = Duration::from_secs(120);
/// How many are.
const MOST: usize = 64;
/// How long more is waited for once the first of it has come.
const SETTLE: Duration = Duration::from_millis(200);
/// How long a pull may take that nobody waits for.
const PULL: Duration = Duration::from_secs(10);

/// Whose change it was, and at which server: its row and root.
type Owner = (String, String, SessionId);

/// What sessions are owed.
#[derive(Debug, Default)]
pub(crate) struct Late {
    /// What ends the debt, and the files it is about.
    owed: Mutex<BTreeMap<Owner, (DropGuard, BTreeSet<String>)>>,
    /// Servers for whose start a change has waited in vain.
    awaited: Mutex<BTreeSet<(String, String)>>,
}

/// What a session is still owed of a change.
pub(crate) struct Debt {
    pub(crate) workspace: Workspace,
    pub(crate) session: SessionId,
    pub(crate) link: Arc<Link>,
    pub(crate) row: String,
    pub(crate) root: String,
    pub(crate) paths: Vec<String>,
    /// What is known, or was told.
    pub(crate) known: Snapshot,
    /// What had been said when that was so.
    pub(crate) said: (u64, u64),
    /// Other files are compared, too: they were known before.
    pub(crate) others: Others,
}

/// Whether other files than those that changed are spoken of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    Compared,
    Unknown,
}

impl Late {
    /// True for the first change that finds a server not running: it may wait for its start.
    pub(crate) fn may_wait(&self, row: &str, root: &str) -> bool {
        lock(&self.awaited).insert((row.to_owned(), root.to_owned()))
    }

    /// It runs.
    pub(crate) fn runs(&self, row: &str, root: &str) {
        lock(&self.awaited).remove(&(row.to_owned(), root.to_owned()));
    }

    /// What was owed of earlier changes is of no interest after a later one.
    pub(crate) fn forgive(&self, row: &str, root: &str, session: SessionId) {
        lock(&self.owed).remove(&(row.to_owned(), root.to_owned(), session));
    }

    /// Takes note of a debt, and gives what says that it is forgiven. There may be too many.
    fn note(&self, debt: &Debt) -> Option<CancellationToken> {
        let mut owed = lock(&self.owed);
        if owed.len() >= MOST && !owed.contains_key(&debt.owner()) {
            return None;
        }
        let forgiven = CancellationToken::new();
        let paths = debt.paths.iter().cloned().collect();
        owed.insert(debt.owner(), (forgiven.clone().drop_guard(), paths));
        Some(forgiven)
    }

    fn changed_by_others(&self, debt: &Debt) -> BTreeSet<String> {
        let owed = lock(&self.owed);
        let others = owed.iter().filter(|((row, root, session), _)| {
            *row == debt.row && *root == debt.root && *session != debt.session
        });
        others.flat_map(|(_, (_, paths))| paths.iter().cloned()).collect()
    }
}

/// Tells a session what comes later.
pub(crate) fn owe(house: &House, debt: Debt) {
    let Some(forgiven) = house.late().note(&debt) else { return };
    let late = Arc::clone(house.late());
    house.aside(async move {
        let told = tokio::select! {
            biased;
            () = forgiven.cancelled() => return,
            told = tokio::time::timeout(OWED, debt.comes()) => told.ok().flatten(),
        };
        // What others have changed meanwhile is theirs to hear of.
        let theirs = late.changed_by_others(&debt);
        let told = told.unwrap_or_default().into_iter();
        let told: Vec<Told> = told.filter(|told| !theirs.contains(&told.path)).collect();
        if !told.is_empty() && !forgiven.is_cancelled() {
            told.iter().for_each(|told| debt.link.desk().note_told(&told.path));
            let text = judge::late_words(&debt.row, &debt.paths, &told);
            debt.workspace.tell(debt.session, text);
        }
        if !forgiven.is_cancelled() {
            late.forgive(&debt.row, &debt.root, debt.session);
        }
    });
}

impl Debt {
    fn owner(&self) -> Owner {
        (self.row.clone(), self.root.clone(), self.session)
    }

    fn desk(&self) -> &Desk {
        self.link.desk()
    }

    /// Waits until there are new errors; none if the connection ends before.
    async fn comes(&self) -> Option<Vec<Told>> {
        let mut said = self.said;
        loop {
            let now = self.desk().stirred(said).await?;
            tokio::time::sleep(SETTLE).await;
            if now.1 != said.1 {
                for path in &self.paths {
                    pull(&self.link, path, Instant::now() + PULL).await;
                }
            }
            said = now;
            let told = self.arrived();
            if !told.is_empty() {
                return Some(told);
            }
        }
    }

    fn arrived(&self) -> Vec<Told> {
        let now = self.desk().snapshot();
        let mut told = Vec::new();
        for (path, found) in &now {
            if !self.paths.contains(path) && self.others == Others::Unknown {
                continue;
            }
            let before = self.known.get(path).map(judge::Found::all).unwrap_or_default();
            let (new, left) = judge::difference(&before, found.all());
            if !new.is_empty() {
                told.push(Told { path: path.clone(), new, left, strange: false });
            }
        }
        // Files that were changed come first.
        told.sort_by_key(|told| !self.paths.contains(&told.path));
        told
    }
}
