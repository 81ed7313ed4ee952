//! What becomes of a command: judged by its words, and by what the person allowed before.

use crate::judge::{Judgement, Setting, judge};
use crate::{Level, Policy, Shelter};
use std::fmt;
use std::path::{Path, PathBuf};
use windlass_protocol::{Access, Mode};

/// Where a command's words lead. The sandbox looks; nothing here does.
pub trait Places: fmt::Debug + Send + Sync {
    /// The workspace.
    fn root(&self) -> &Path;
    /// The person's home.
    fn home(&self) -> Option<&Path>;
    /// Where an absolute path really leads, as far as it exists.
    fn real(&self, path: &Path) -> PathBuf;
    /// Whether commands run in a sandbox.
    fn shelter(&self) -> Shelter;
    /// What stands beneath a folder, as far as a short look shows.
    fn beneath(&self, folder: &Path) -> Beneath;
    /// The program of this name that a command would get.
    fn program(&self, name: &str) -> Option<PathBuf>;
}

/// What a short look beneath a folder showed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beneath {
    /// Files and folders, relative to it.
    pub paths: Vec<PathBuf>,
    /// There is no more, but for what was built or fetched.
    pub whole: bool,
}

/// The verdict on a command.
pub(crate) struct Ruling {
    pub(crate) level: Level,
    pub(crate) reason: String,
    /// It wants the network.
    pub(crate) wants: bool,
    /// Whoever says yes to it, or said so before, opens the network with it.
    pub(crate) connects: bool,
    /// The kind of command it is, where a yes may mean all of that kind.
    pub(crate) offer: Option<String>,
    /// A yes that was given before may answer for it. One that was given under the sandbox says
    /// nothing about running without.
    pub(crate) coverable: bool,
    /// It is allowed because it is proven to look only, and for no other reason.
    pub(crate) looks: bool,
}

impl Policy {
    /// Judges a command without running it: every simple command in it, and why. `None` if nobody
    /// can say where its paths lead.
    pub fn judge(&self, command: &str, folder: &str) -> Option<Judgement> {
        let places = self.places.as_deref()?;
        let shelter = places.shelter();
        let (own, tighter, mode) = (&self.own, &self.tighter, self.mode);
        Some(judge(command, folder, &Setting { own, tighter, places, mode, shelter }))
    }

    /// The verdict on a command, if that is what the access is.
    pub(crate) fn ruling(&self, access: &Access) -> Option<Ruling> {
        let Access::Run { command, folder } = access else { return None };
        let Some(judgement) = self.judge(command, folder) else {
            return Some(Ruling {
                level: Level::Ask,
                reason: "nobody can say what it would touch".to_owned(),
                wants: false,
                connects: false,
                offer: None,
                coverable: false,
                looks: false,
            });
        };
        let shelter = self.places.as_ref().map(|places| places.shelter()).unwrap_or_default();
        let strictest = judgement.segments.iter().rev().max_by_key(|judged| judged.level);
        let reason = match strictest.filter(|judged| judged.level == judgement.level) {
            Some(judged) => judged.reason.clone(),
            None => judgement.doubts.first().cloned().unwrap_or_default(),
        };
        let asks = judgement.level == Level::Ask;
        // A rule that asks means every time.
        let ruled = judgement.segments.iter().any(|it| it.level == Level::Ask && it.rule.is_some());
        let coverable = shelter == Shelter::Standing;
        // What one command may reach is not opened for others of its kind.
        let lasts = coverable && !ruled && !judgement.connects;
        let offer = judgement.template.filter(|_| lasts);
        let kept = coverable
            && !ruled
            && (self.approves(access)
                || offer.as_ref().is_some_and(|kind| self.approves_kind(kind)));
        let level = if asks && kept { Level::Allow } else { judgement.level };
        let reason = match shelter {
            Shelter::Missing if asks => format!("{reason}; there is no sandbox here"),
            Shelter::Off if asks => format!("{reason}; the sandbox is off"),
            Shelter::Standing | Shelter::Missing | Shelter::Off => reason,
        };
        let unruled = judgement.segments.iter().all(|judged| judged.rule.is_none());
        let strict = matches!(self.mode, Mode::Plan | Mode::Ask);
        let looks = strict && unruled && judgement.level == Level::Allow;
        let (wants, connects) = (judgement.connects, asks && judgement.connects);
        Some(Ruling { level, reason, wants, connects, offer, coverable, looks })
    }
}
