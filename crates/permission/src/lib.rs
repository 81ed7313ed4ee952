//! May this call touch that? Rules and accesses in, a decision out.
//!
//! It is pure: it opens nothing and asks nobody. It keeps the invariant that a [`Grant`] exists
//! only where a rule or a person said yes, because nothing outside this crate can make one.
//! Start reading at [`Policy::decide`].

mod command;
mod glob;
mod grant;
mod judge;
mod protected;
mod question;
mod rules;
mod secrets;
mod shell;

pub use command::{Beneath, Places};
pub use grant::Grant;
pub use judge::{Judged, Judgement};
pub use protected::closed as protected;
pub use question::{Decision, Question};
pub use rules::{Level, RuleError, Rules};
pub use secrets::HOME_SECRETS;
pub use shell::quote;

use command::Ruling;
use rules::Subject;
use secrets::holds_secrets;
use std::path::Path;
use std::sync::Arc;
use windlass_protocol::{Access, Approval, Mode};

/// Everything that decides: what the person's rules say, tightened by what others say.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    own: Arc<Rules>,
    tighter: Vec<Arc<Rules>>,
    /// The last parts of the workspace's own path.
    above: Arc<[String]>,
    mode: Mode,
    /// The laxest mode there may be.
    most_lax: Option<Mode>,
    places: Option<Arc<dyn Places>>,
    approvals: Arc<[Approval]>,
    /// Tools that are not there, by name.
    missing: Vec<String>,
}

/// Whether commands run in a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shelter {
    /// They do.
    Standing,
    /// They do not, because the person turned it off.
    Off,
    /// They would not, because this machine has none. Then nothing runs without being asked about.
    #[default]
    Missing,
}

impl Policy {
    /// The policy of a person's own rules.
    pub fn new(own: Rules) -> Policy {
        Policy { own: Arc::new(own), ..Policy::default() }
    }

    /// Tells where the workspace is, so that `git/config` is known for what it is in `~/.config`.
    #[must_use]
    pub fn rooted(mut self, workspace: &Path) -> Policy {
        self.above = protected::above(workspace).into();
        self
    }

    /// Sets how much is done without asking, up to the laxest mode there may be.
    #[must_use]
    pub fn in_mode(mut self, mode: Mode) -> Policy {
        self.mode = self.most_lax.map_or(mode, |most| mode.min(most));
        self
    }

    /// Sets the laxest mode there may be, from now on. It can be set again, but only stricter.
    #[must_use]
    pub fn at_most(mut self, most: Mode) -> Policy {
        let most = self.most_lax.map_or(most, |before| before.min(most));
        self.most_lax = Some(most);
        self.mode = self.mode.min(most);
        self
    }

    /// Takes tools away, by name. Others that fall under the same key stay.
    #[must_use]
    pub fn without(mut self, tools: impl IntoIterator<Item = String>) -> Policy {
        self.missing.extend(tools);
        self
    }

    /// True if a tool was taken away. Such a tool is neither offered nor run.
    pub fn lacks(&self, tool: &str) -> bool {
        self.missing.iter().any(|name| name == tool)
    }

    /// The mode it decides in.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Gives it a way to look where a command's paths lead. Without one every command is asked
    /// about.
    #[must_use]
    pub fn placed(mut self, places: Arc<dyn Places>) -> Policy {
        self.places = Some(places);
        self
    }

    /// Adds what the person allowed for this project for good. It answers what would be asked, and
    /// lifts no deny and no rule of others.
    #[must_use]
    pub fn approved(mut self, approvals: Vec<Approval>) -> Policy {
        self.approvals = approvals.into();
        self
    }

    /// Adds rules that can only make a verdict stricter, such as a repository's.
    #[must_use]
    pub fn tightened_by(mut self, rules: Rules) -> Policy {
        self.tighter.push(Arc::new(rules));
        self
    }

    /// Decides on all accesses of a call at once: the strictest verdict counts. `spelled` is the
    /// same accesses, in the same order, before their paths were resolved; a rule may name either
    /// form, and either may be the name of a file of secrets.
    pub fn decide(&self, mut accesses: Vec<Access>, spelled: &[Access]) -> Decision {
        let mut strictest = (Level::Allow, String::new());
        let commands: Vec<Ruling> = accesses.iter().filter_map(|a| self.ruling(a)).collect();
        let resolved = accesses.iter().filter_map(|access| self.verdict(access));
        let hidden = |at: usize| !accesses.get(at).is_some_and(shows_secrets);
        let named = spelled.iter().enumerate().filter_map(|(at, access)| {
            let secret = || (shows_secrets(access) && hidden(at)).then(|| self.unnamed(access));
            // A command is judged by what it says, wherever it runs.
            let judged = matches!(access, Access::Run { .. } | Access::Leave { .. });
            if judged { None } else { self.ruled(access).or_else(secret) }
        });
        // A change shows what stands there, so whatever is said about reading holds for it too.
        let looks = accesses.iter().chain(spelled).filter_map(|access| match access {
            Access::Edit { path } => self.ruled(&Access::Read { path: path.clone() }),
            Access::Read { .. }
            | Access::Search { .. }
            | Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Run { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Leave { .. }
            | Access::Task { .. }
            | Access::Use { .. }
            | Access::Engage { .. }
            | Access::Accept { .. } => None,
        });
        let leaving = accesses.iter().find(|access| leaves(access)).map(|it| self.leaving(it));
        let wants = commands.iter().any(|ruling| ruling.wants);
        let reaching = wants.then(|| self.strictest("network", &Subject::new("*"))).flatten();
        let judged = commands.iter().map(|ruling| (ruling.level, ruling.reason.clone()));
        let first = leaving.iter().cloned().chain(judged);
        for verdict in first.chain(reaching).chain(resolved).chain(named).chain(looks) {
            if verdict.0 > strictest.0 {
                strictest = verdict;
            }
        }
        let (level, mut reason) = strictest;
        let asking = commands.iter().find(|ruling| ruling.level == Level::Ask);
        if let (Level::Ask, Some(_), Some(ruling)) = (level, &leaving, asking) {
            reason = format!("{reason}; {}", ruling.reason);
        }
        let connects = commands.iter().any(|ruling| ruling.connects);
        // No rule opens the network: a yes does, for one command, and the list of hosts.
        if connects || (wants && level == Level::Ask) {
            accesses.push(Access::Connect { host: "*".to_owned() });
        }
        let offer = match (&*commands, &leaving) {
            ([ruling], None) => ruling.offer.clone(),
            ([_], Some(_)) | ([] | [_, _, ..], _) => None,
        };
        let coverable = leaving.is_none() && commands.iter().all(|ruling| ruling.coverable);
        let looks = !commands.is_empty() && commands.iter().all(|ruling| ruling.looks);
        let policy = self.clone();
        match level {
            Level::Allow if looks => {
                Decision::Allowed(Grant::over(accesses, policy, level).only_looking())
            }
            Level::Allow => Decision::Allowed(Grant::over(accesses, policy, level)),
            Level::Ask => Decision::Ask(Question { accesses, reason, offer, coverable, policy }),
            Level::Deny => Decision::Denied { reason },
        }
    }

    /// Asks about what would be allowed, because somebody wants that: a hook. A yes that was given
    /// before does not answer it. Where nobody is asked it is a no.
    pub fn doubt(&self, accesses: Vec<Access>, reason: String) -> Decision {
        match self.mode {
            Mode::Full => {
                Decision::Denied { reason: format!("{reason}; in mode full nobody is asked") }
            }
            Mode::Plan | Mode::Ask | Mode::Auto => {
                let (offer, coverable, policy) = (None, false, self.clone());
                Decision::Ask(Question { accesses, reason, offer, coverable, policy })
            }
        }
    }

    /// True if no call under this permission key, or of the tool of this name, could ever be
    /// allowed. Such a tool is neither offered nor run.
    pub fn denies_outright(&self, key: &str) -> bool {
        let all = std::iter::once(&self.own).chain(&self.tighter);
        all.into_iter().any(|rules| rules.denies_outright(key))
    }

    /// What the rules say, or what holds where none speaks. Commands are judged apart.
    fn verdict(&self, access: &Access) -> Option<(Level, String)> {
        if matches!(access, Access::Run { .. } | Access::Leave { .. }) {
            return None;
        }
        let subject = access.subject();
        let unruled = || match (self.mode, self.default_level(access)) {
            (_, level) if matches!(access, Access::Accept { .. }) => (level, unseen(subject)),
            (Mode::Plan, Level::Deny) => {
                (Level::Deny, format!("in mode plan nothing is changed, so {subject} is not"))
            }
            _ if shows_secrets(access) => self.unnamed(access),
            (_, level) => (level, format!("no rule allows it, as {} would", rule_for(access))),
        };
        let (level, reason) = self.ruled(access).unwrap_or_else(unruled);
        let lifted = level == Level::Ask && self.approves(access);
        Some(if lifted { (Level::Allow, String::new()) } else { (level, reason) })
    }

    /// Leaving the sandbox is never a rule's to allow, but it may deny it.
    fn leaving(&self, access: &Access) -> (Level, String) {
        let subject = Subject::new(access.subject());
        let ruled = self.strictest(access.key(), &subject).filter(|it| it.0 == Level::Deny);
        ruled.unwrap_or_else(|| match self.mode {
            Mode::Ask | Mode::Auto => {
                (Level::Ask, "it would run outside of the sandbox, with all your rights".into())
            }
            Mode::Plan | Mode::Full => {
                let mode = self.mode;
                (Level::Deny, format!("in mode {mode} nothing runs outside of the sandbox"))
            }
        })
    }

    /// What rules say about something that is no access, such as `doom_loop`.
    pub fn says(&self, key: &str) -> Option<Level> {
        self.strictest(key, &Subject::new("*")).map(|(level, _)| level)
    }

    /// The strictest that is said under a key: by the person, or beyond that by others.
    fn strictest(&self, key: &str, subject: &Subject<'_>) -> Option<(Level, String)> {
        let own = self.own.level(key, subject).map(|rule| (rule.level, rule.says("your")));
        self.tightened(key, subject, own, Level::Allow)
    }

    /// What holds once others have spoken: they are heard where they are stricter than what was
    /// said, or than what holds where nothing was.
    fn tightened(
        &self,
        key: &str,
        subject: &Subject<'_>,
        said: Option<(Level, String)>,
        unsaid: Level,
    ) -> Option<(Level, String)> {
        let mut verdict = said;
        for rule in self.tighter.iter().filter_map(|rules| rules.level(key, subject)) {
            if rule.level > verdict.as_ref().map_or(unsaid, |verdict| verdict.0) {
                verdict = Some((rule.level, rule.says("the")));
            }
        }
        verdict
    }

    /// True if the person allowed exactly this for good, and no rule of others asks.
    pub(crate) fn approves(&self, access: &Access) -> bool {
        let wanted = Approval::of(access);
        self.approvals.contains(&wanted) && self.lax(access.key(), access.subject())
    }

    /// True if the person allowed all commands of this kind for good, and no rule of others asks.
    pub(crate) fn approves_kind(&self, kind: &str) -> bool {
        let kept = |it: &Approval| it.key == Approval::LIKE && it.subject == kind;
        self.approvals.iter().any(kept) && self.lax("bash", kind)
    }

    fn lax(&self, key: &str, subject: &str) -> bool {
        let subject = Subject::new(subject);
        let lax = |rules: &Arc<Rules>| {
            rules.level(key, &subject).is_none_or(|rule| rule.level == Level::Allow)
        };
        self.tighter.iter().all(lax)
    }

    /// True if a path may be read by whoever has got past so strict a verdict. What is made to hold
    /// secrets has to be asked for by name.
    pub(crate) fn shows(&self, path: &str, level: Level) -> bool {
        self.reading(path) <= level && !holds_secrets(path)
    }

    /// How strict the rules are about reading a path, without the words.
    fn reading(&self, path: &str) -> Level {
        let path = Subject::new(path);
        let level = |rules: &Arc<Rules>| rules.level("read", &path).map(|rule| rule.level);
        let own = level(&self.own).unwrap_or(Level::Allow);
        self.tighter.iter().filter_map(level).fold(own, Level::max)
    }

    /// What the rules say, if any speaks. What is protected is denied before they are heard.
    fn ruled(&self, access: &Access) -> Option<(Level, String)> {
        if let Some(reason) = self.guarded(access) {
            return Some((Level::Deny, reason));
        }
        let (key, subject) = (access.key(), access.subject());
        let subject = &Subject::new(subject);
        let own = self.own.level(key, subject).map(|rule| {
            // A wildcard that does not speak of secrets does not mean them.
            match rule.level == Level::Allow && !rule.opens_secrets && shows_secrets(access) {
                true => self.unnamed(access),
                false => (rule.level, rule.says("your")),
            }
        });
        self.tightened(key, subject, own, self.default_level(access))
    }

    /// Why a change is out of the question, whatever is allowed. Only a rule of the person's own
    /// that names the very path opens it: a wildcard is not meant to.
    fn guarded(&self, access: &Access) -> Option<String> {
        let Access::Edit { path } = access else { return None };
        if self.mode == Mode::Plan {
            return Some(format!("in mode plan nothing is changed, so {path} is not"));
        }
        let why = protected::protected(&self.above, path)?;
        if self.own.names(access.key(), path) {
            return None;
        }
        let rule = serde_json::json!({"edit": {path: "allow"}});
        Some(format!(
            "{path} is protected, because {why}. Only the person can open it, by its exact path \
             in the permission rules of their own config: {rule}"
        ))
    }

    /// What happens where no rule speaks: looking is free, changing is asked about in all but the
    /// lax modes, and so is looking at files that are made to hold secrets.
    fn default_level(&self, access: &Access) -> Level {
        match access {
            _ if shows_secrets(access) => self.unnamed(access).0,
            Access::Read { .. }
            | Access::Search { .. }
            | Access::Recall { .. }
            | Access::Skill { .. }
            | Access::Task { .. } => Level::Allow,
            Access::Edit { .. } => match self.mode {
                Mode::Plan => Level::Deny,
                Mode::Ask => Level::Ask,
                Mode::Auto | Mode::Full => Level::Allow,
            },
            Access::Run { .. }
            | Access::Connect { .. }
            | Access::Fetch { .. }
            | Access::Leave { .. }
            | Access::Use { .. } => match self.mode {
                Mode::Plan | Mode::Ask | Mode::Auto => Level::Ask,
                Mode::Full => Level::Allow,
            },
            // Whoever wrote the config wants it. Nobody is there to be asked when it starts.
            Access::Engage { .. } => Level::Allow,
            Access::Accept { .. } => match self.mode {
                Mode::Plan | Mode::Ask | Mode::Auto => Level::Ask,
                Mode::Full => Level::Deny,
            },
        }
    }

    /// The verdict on a file of secrets that no rule names. Where nobody is asked it is a no.
    fn unnamed(&self, access: &Access) -> (Level, String) {
        let level = if self.mode == Mode::Full { Level::Deny } else { Level::Ask };
        let subject = access.subject();
        (level, format!("{subject} is made to hold secrets, and no rule names it"))
    }
}

/// The rule that would allow exactly this, as it is written in the config.
fn rule_for(access: &Access) -> String {
    let (key, subject) = (access.key(), access.subject());
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    match subject {
        "*" => format!("{}: \"allow\"", quoted(key)),
        _ => format!("{}: {{{}: \"allow\"}}", quoted(key), quoted(subject)),
    }
}

/// True for an access that shows what a file made to hold secrets says. A change does: what does
/// not fit is told with what stands there.
fn shows_secrets(access: &Access) -> bool {
    match access {
        Access::Read { path } | Access::Search { path } | Access::Edit { path } => {
            holds_secrets(path)
        }
        Access::Recall { .. }
        | Access::Skill { .. }
        | Access::Run { .. }
        | Access::Connect { .. }
        | Access::Fetch { .. }
        | Access::Leave { .. }
        | Access::Task { .. }
        | Access::Use { .. }
        | Access::Engage { .. }
        | Access::Accept { .. } => false,
    }
}

/// Why a definition that nobody looked at is not simply used.
fn unseen(what: &str) -> String {
    let tool = what.split_once('@').map_or(what, |(tool, _)| tool);
    format!("what {tool} says of itself is not what was looked at before")
}

/// True for leaving the sandbox.
fn leaves(access: &Access) -> bool {
    match access {
        Access::Leave { .. } => true,
        Access::Read { .. }
        | Access::Search { .. }
        | Access::Edit { .. }
        | Access::Recall { .. }
        | Access::Skill { .. }
        | Access::Run { .. }
        | Access::Connect { .. }
        | Access::Fetch { .. }
        | Access::Task { .. }
        | Access::Use { .. }
        | Access::Engage { .. }
        | Access::Accept { .. } => false,
    }
}

/// For the fuzzer: reads any text as a command, and tells what must hold of it.
#[doc(hidden)]
pub fn probe_shell(text: &str) -> bool {
    shell::holds(text)
}

#[cfg(test)]
mod tests;
