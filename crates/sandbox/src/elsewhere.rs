//! Commands where they cannot be run yet: everything but Linux. The names are the same, so that
//! nobody else has to know; there is no way to make a [`Task`].

use crate::command::{Ending, Glimpse, Heard, News, Piece, Reached, Shell, Start};
use crate::ground::Ground;
use crate::servant::{Engaged, Servant};
use crate::{Error, Workspace, World};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use windlass_permission::Grant;
use windlass_protocol::{JobRow, Millis, SessionId};

/// Where the words of a workspace's commands lead.
#[derive(Debug)]
pub(crate) struct Yards(Arc<Ground>);

impl Yards {
    fn new(shell: &Shell, root: &Path) -> Yards {
        let (home, walls) = (shell.home.as_deref(), shell.walls.clone());
        Yards(Arc::new(Ground::new(root, home, &shell.inherited, walls)))
    }
}

/// There is none.
fn nowhere() -> Error {
    Error::NotStarted { why: "commands run on Linux only, for now".to_owned() }
}

/// Keeps nothing.
pub fn keeper() -> Result<(), Error> {
    Err(nowhere())
}

impl Workspace {
    /// Says how commands would be run here.
    #[must_use]
    pub fn with_shell(mut self, shell: Shell) -> Workspace {
        self.network.hold(&shell.reach);
        self.yards = Some(Arc::new(Yards::new(&shell, self.root())));
        self
    }

    /// Where the words of its commands lead; `None` if nobody said how they are run.
    pub fn ground(&self) -> Option<Arc<Ground>> {
        self.yards.as_ref().map(|yards| Arc::clone(&yards.0))
    }

    /// Nothing is ever told.
    pub fn news(&self, _session: SessionId) -> News {
        News { told: mpsc::unbounded_channel().1, part: None }
    }

    /// Nobody hears it.
    pub fn tell(&self, _session: SessionId, _text: String) {}

    /// No command ever changes anything.
    pub fn stirred(&self) -> u64 {
        0
    }

    /// There are none.
    pub fn jobs(&self, _session: SessionId) -> Vec<Arc<Task>> {
        Vec::new()
    }

    /// There is none.
    pub fn job(&self, _session: SessionId, _id: u64) -> Option<Arc<Task>> {
        None
    }

    /// There is nothing to end.
    pub async fn end_jobs(&self, _session: SessionId) {}

    /// Says that it cannot.
    pub async fn engage(&self, _grant: &Grant, _servant: Servant) -> Result<Engaged, Error> {
        Err(nowhere())
    }

    /// There are none.
    pub async fn dismiss_servants(&self) {}
}

impl World {
    /// Says that it cannot.
    pub async fn start(&self, _start: Start<'_>) -> Result<Arc<Task>, Error> {
        Err(nowhere())
    }

    /// There is none.
    pub fn task(&self, _session: SessionId, _id: u64) -> Option<Arc<Task>> {
        None
    }

    /// There are none.
    pub fn tasks(&self, _session: SessionId) -> Vec<Arc<Task>> {
        Vec::new()
    }

    /// There is nothing to announce.
    pub fn announce(&self, _session: SessionId, _task: &Arc<Task>) {}
}

/// A command of a session, of which there is none.
#[derive(Debug)]
pub enum Task {}

#[allow(missing_docs, reason = "see the task of Linux; nobody can call these")]
impl Task {
    pub fn id(&self) -> u64 {
        match *self {}
    }

    pub fn command(&self) -> &str {
        match *self {}
    }

    pub async fn ended(&self) -> Ending {
        match *self {}
    }

    pub fn ending(&self) -> Option<Ending> {
        match *self {}
    }

    pub fn gone(&self) -> bool {
        match *self {}
    }

    pub fn heard(&self) -> Heard {
        match *self {}
    }

    pub fn row(&self, _now: Millis) -> JobRow {
        match *self {}
    }

    pub fn said(&self) -> String {
        match *self {}
    }

    pub fn heard_on(&self, _place: &mut u64) -> Vec<Piece> {
        match *self {}
    }

    pub fn unread(&self) -> Vec<Piece> {
        match *self {}
    }

    pub fn mask(&self, _text: &str) -> String {
        match *self {}
    }

    pub fn watch(&self) -> watch::Receiver<Glimpse> {
        match *self {}
    }

    pub async fn write(&self, _bytes: &[u8]) -> Result<(), Error> {
        match *self {}
    }

    pub async fn kill(&self) {
        match *self {}
    }

    pub async fn dismiss(&self) {
        match *self {}
    }

    pub fn reached(&self, _place: usize) -> Vec<Reached> {
        match *self {}
    }

    pub fn unkept(&self) -> u64 {
        match *self {}
    }

    pub fn is_plain(&self) -> bool {
        match *self {}
    }

    pub fn remarks(&self) -> Vec<String> {
        match *self {}
    }

    pub fn last_remarks(&self) -> Vec<String> {
        match *self {}
    }
}

/// What keeps a servant running, of which there is none.
#[derive(Debug)]
pub enum Held {}

#[allow(missing_docs, reason = "see what Linux holds; nobody can call these")]
impl Held {
    pub fn name(&self) -> &str {
        match *self {}
    }

    pub fn pid(&self) -> Option<i32> {
        match *self {}
    }

    pub async fn ended(&self) -> Ending {
        match *self {}
    }

    pub fn ending(&self) -> Option<Ending> {
        match *self {}
    }

    pub fn gone(&self) -> bool {
        match *self {}
    }

    pub fn memory(&self) -> u64 {
        match *self {}
    }

    pub fn heard(&self) -> Heard {
        match *self {}
    }

    pub fn heard_on(&self, _place: u64) -> Piece {
        match *self {}
    }

    pub fn complaint(&self) -> String {
        match *self {}
    }

    pub fn last_words(&self) -> Option<String> {
        match *self {}
    }

    pub fn remarks(&self) -> Vec<String> {
        match *self {}
    }

    pub fn reached(&self, _place: usize) -> Vec<Reached> {
        match *self {}
    }

    pub async fn end(&self, _grace: Duration) {
        match *self {}
    }
}
