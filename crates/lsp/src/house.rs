//! All servers of a workspace: who serves a file, and from where.
//!
//! Which rows fit, where their project begins and whether their program is there is looked at anew
//! for every file, and nothing is started to find it out. Start reading at [`House::serving`].

use crate::estate::{Estate, folder_of, stands, under, upwards};
use crate::late::Late;
use crate::server::Server;
use crate::talk::lock;
use crate::{Patience, Row, Spec};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;
use windlass_protocol::Mode;
use windlass_sandbox::{Hold, Workspace, World};
use windlass_toolkit::health::State;

/// So many servers look at one file.
const EACH: usize = 3;

/// All servers of a workspace.
pub(crate) struct House {
    rows: Vec<Arc<Row>>,
    estate: Arc<Estate>,
    /// By row, root and what it may do.
    servers: Mutex<BTreeMap<(usize, String, Hold), Arc<Server>>>,
    /// What is done on the side.
    aside: Mutex<JoinSet<()>>,
    late: Arc<Late>,
}

/// A row that fits a file, as far as it does.
enum Fit {
    /// It serves from this root.
    Serves(String),
    /// Its program is not there.
    Absent,
    /// No project of its kind is here.
    Elsewhere,
}

impl House {
    pub(crate) fn new(spec: Spec) -> House {
        let Spec { rows, berth, keeping, patience } = spec;
        House {
            rows: rows.into_iter().map(Arc::new).collect(),
            estate: Arc::new(Estate::new(berth, keeping, patience)),
            servers: Mutex::default(),
            aside: Mutex::default(),
            late: Arc::default(),
        }
    }

    /// Where they work.
    pub(crate) fn workspace(&self) -> &Workspace {
        self.estate.workspace()
    }

    /// How long things may take.
    pub(crate) fn patience(&self) -> &Patience {
        &self.estate.patience
    }

    /// What is not waited for any longer, but still wanted.
    pub(crate) fn late(&self) -> &Arc<Late> {
        &self.late
    }

    /// Who serves a file: the one of its language first, then those that look besides it. Starts
    /// nothing and waits for nobody.
    pub(crate) fn serving(&self, world: &World, path: &str) -> Vec<Arc<Server>> {
        let (mut first, mut besides): (Vec<(&str, Arc<Server>)>, Vec<_>) = Default::default();
        for (number, row) in self.rows.iter().enumerate() {
            let taken = |(language, _): &(&str, _)| *language == row.language;
            if kind(row, path).is_none() || (!row.beside && first.iter().any(taken)) {
                continue;
            }
            if let Fit::Serves(root) = self.fit(world, row, path) {
                let server = self.at(number, row, root, world.mode());
                if row.beside {
                    besides.push(server);
                } else {
                    first.push((&row.language, server));
                }
            }
        }
        let first = first.into_iter().map(|(_, server)| server);
        first.chain(besides).take(EACH).collect()
    }

    /// What a model hears where nobody serves a file; `None` if somebody does.
    pub(crate) fn absent(&self, world: &World, path: &str) -> Option<String> {
        let mut missing = None;
        for row in self.rows.iter().filter(|row| kind(row, path).is_some()) {
            match self.fit(world, row, path) {
                Fit::Serves(_) => return None,
                Fit::Absent if missing.is_none() => missing = Some(row.absence()),
                Fit::Absent | Fit::Elsewhere => {}
            }
        }
        let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
        let files = match name.rsplit_once('.') {
            Some((_, end)) => format!(".{end} files"),
            None => name.to_owned(),
        };
        let why = missing.map_or("; search with grep".to_owned(), |why| format!(": {why}"));
        Some(format!("there is no language server for {files} here{why}"))
    }

    /// Those that answer now.
    pub(crate) fn running(&self) -> Vec<Arc<Server>> {
        let servers = lock(&self.servers);
        let ready = |server: &&Arc<Server>| matches!(server.state(), State::Ready { .. });
        servers.values().filter(ready).cloned().collect()
    }

    /// Those whose project begins at the root of the workspace.
    pub(crate) fn at_root(&self, world: &World) -> Vec<Arc<Server>> {
        let workspace = self.workspace();
        let mut found: Vec<(&str, Arc<Server>)> = Vec::new();
        for (number, row) in self.rows.iter().enumerate() {
            let taken = found.iter().any(|(language, _)| *language == row.language);
            let begins = || row.roots.iter().flatten().any(|name| stands(workspace, name));
            let there = || self.estate.program(row, ".").is_some();
            let set_up = || row.when.iter().all(|sign| sign.holds(world, "."));
            if !taken && !row.beside && begins() && there() && set_up() {
                found.push((&row.language, self.at(number, row, ".".into(), world.mode())));
            }
        }
        found.into_iter().map(|(_, server)| server).collect()
    }

    /// How all are doing that somebody has asked for: name, root and state.
    pub(crate) fn states(&self) -> Vec<(String, String, State)> {
        let servers = lock(&self.servers);
        let state = |it: &Arc<Server>| (it.row().name.clone(), it.root().to_owned(), it.state());
        servers.values().map(state).collect()
    }

    /// Does something on the side, which ends with the house.
    pub(crate) fn aside(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut aside = lock(&self.aside);
        while aside.try_join_next().is_some() {}
        aside.spawn(work);
    }

    /// Ends all of them. Nothing is started any more.
    pub(crate) async fn close(&self) {
        lock(&self.aside).abort_all();
        let servers: Vec<_> = lock(&self.servers).values().cloned().collect();
        let mut ends = JoinSet::new();
        for server in servers {
            ends.spawn(async move { server.close().await });
        }
        while ends.join_next().await.is_some() {}
    }

    fn fit(&self, world: &World, row: &Row, path: &str) -> Fit {
        let Some(root) = self.root_of(row, path) else { return Fit::Elsewhere };
        let there = self.estate.program(row, root).is_some();
        if !row.when.iter().all(|sign| sign.holds(world, folder_of(path))) {
            Fit::Elsewhere
        } else if there {
            Fit::Serves(root.to_owned())
        } else {
            Fit::Absent
        }
    }

    /// Where the project begins that a file belongs to.
    fn root_of<'a>(&self, row: &Row, path: &'a str) -> Option<&'a str> {
        let workspace = self.workspace();
        let begins = |tier: &Vec<String>| {
            let here =
                |folder: &&str| tier.iter().any(|name| stands(workspace, &under(folder, name)));
            upwards(folder_of(path)).find(here)
        };
        row.roots.iter().find_map(begins).or(row.alone.then_some("."))
    }

    fn at(&self, number: usize, row: &Arc<Row>, root: String, mode: Mode) -> Arc<Server> {
        let hold = if row.write { Hold::Write.in_mode(mode) } else { Hold::Read };
        let mut servers = lock(&self.servers);
        let server = servers.entry((number, root.clone(), hold));
        let new = || Server::new(Arc::clone(row), root, hold, &self.estate);
        Arc::clone(server.or_insert_with(new))
    }
}

/// What the protocol calls a file, if a row is for it.
pub(crate) fn kind<'a>(row: &'a Row, path: &str) -> Option<&'a str> {
    let (_, name) = path.rsplit_once('/').unwrap_or(("", path));
    let longest = || {
        let ends = row.extensions.iter().filter(|(end, _)| name.ends_with(end.as_str()));
        ends.max_by_key(|(end, _)| end.len()).map(|(_, kind)| kind)
    };
    row.files.get(name).or_else(longest).map(String::as_str)
}

#[cfg(test)]
mod tests;
