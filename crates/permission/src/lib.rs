//! May this call touch that? Rules and accesses in, a decision out.
//!
//! It is pure: it opens nothing and asks nobody. It keeps the invariant that a [`Grant`] exists
//! only where a rule or a person said yes, because nothing outside this crate can make one.
//! Start reading at [`Policy::decide`].

mod grant;
mod protected;
mod rules;

pub use grant::Grant;
pub use rules::{Level, RuleError, Rules};

use rules::Subject;
use std::path::Path;
use std::sync::Arc;
use windlass_protocol::{Access, Answer};

/// Everything that decides: what the person's rules say, tightened by what others say.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    own: Arc<Rules>,
    tighter: Vec<Arc<Rules>>,
    /// The last parts of the workspace's own path.
    above: Arc<[String]>,
}

/// What comes of a request.
#[derive(Debug)]
pub enum Decision {
    /// It may go on.
    Allowed(Grant),
    /// Somebody must be asked.
    Ask(Question),
    /// It may not.
    Denied {
        /// The rule behind it, in words.
        reason: String,
    },
}

/// A request that waits for an answer.
#[derive(Debug)]
pub struct Question {
    accesses: Vec<Access>,
    reason: String,
    policy: Policy,
}

impl Question {
    /// Why somebody must be asked.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// What a yes would open.
    pub fn accesses(&self) -> &[Access] {
        &self.accesses
    }

    /// Lets the asker read what the question is about, to show what would change.
    pub fn preview(&self) -> Grant {
        let looking = self.accesses.iter().map(|access| match access {
            Access::Read { path } | Access::Edit { path } => Access::Read { path: path.clone() },
            Access::Search { .. } | Access::Recall { .. } | Access::Use { .. } => access.clone(),
        });
        Grant::over(looking.collect(), self.policy.clone(), Level::Allow)
    }

    /// True if everything it is about may be read without asking: then what went wrong while it
    /// was looked at may be told before it is answered.
    pub fn reveals(&self) -> bool {
        self.accesses.iter().all(|access| match access {
            Access::Read { path } | Access::Search { path } | Access::Edit { path } => {
                self.policy.shows(path, Level::Allow)
            }
            Access::Recall { .. } | Access::Use { .. } => true,
        })
    }

    /// What the answer opens: everything that was asked for, or nothing.
    pub fn answered(self, answer: &Answer) -> Option<Grant> {
        answer.is_yes().then(|| Grant::over(self.accesses, self.policy, Level::Ask))
    }
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

    /// Adds rules that can only make a verdict stricter, such as a repository's.
    #[must_use]
    pub fn tightened_by(mut self, rules: Rules) -> Policy {
        self.tighter.push(Arc::new(rules));
        self
    }

    /// Decides on all accesses of a call at once: the strictest verdict counts. `spelled` is the
    /// same accesses, in the same order, before their paths were resolved; a rule may name either
    /// form, and either may be the name of a file of secrets.
    pub fn decide(&self, accesses: Vec<Access>, spelled: &[Access]) -> Decision {
        let mut strictest = (Level::Allow, String::new());
        let resolved = accesses.iter().map(|access| self.verdict(access));
        let hidden = |at: usize| !accesses.get(at).is_some_and(shows_secrets);
        let named = spelled.iter().enumerate().filter_map(|(at, access)| {
            let secret = || (shows_secrets(access) && hidden(at)).then(|| unnamed(access));
            self.ruled(access).or_else(secret)
        });
        // A change shows what stands there, so whatever is said about reading holds for it too.
        let looks = accesses.iter().chain(spelled).filter_map(|access| match access {
            Access::Edit { path } => self.ruled(&Access::Read { path: path.clone() }),
            Access::Read { .. }
            | Access::Search { .. }
            | Access::Recall { .. }
            | Access::Use { .. } => None,
        });
        for verdict in resolved.chain(named).chain(looks) {
            if verdict.0 > strictest.0 {
                strictest = verdict;
            }
        }
        let (level, reason) = strictest;
        match level {
            Level::Allow => Decision::Allowed(Grant::over(accesses, self.clone(), level)),
            Level::Ask => Decision::Ask(Question { accesses, reason, policy: self.clone() }),
            Level::Deny => Decision::Denied { reason },
        }
    }

    /// True if no call under this permission key, or of the tool of this name, could ever be
    /// allowed. Such a tool is neither offered nor run.
    pub fn denies_outright(&self, key: &str) -> bool {
        let all = std::iter::once(&self.own).chain(&self.tighter);
        all.into_iter().any(|rules| rules.denies_outright(key))
    }

    /// What the rules say, or what holds where none speaks.
    fn verdict(&self, access: &Access) -> (Level, String) {
        let default = default_level(access);
        let unruled = || {
            let (key, subject) = (access.key(), access.subject());
            (default, format!("{key} {subject} is not allowed by any rule"))
        };
        self.ruled(access).unwrap_or_else(unruled)
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
                true => unnamed(access),
                false => (rule.level, format!("your rule {} says {}", rule.written, rule.level)),
            }
        });
        let floor = own.as_ref().map_or_else(|| default_level(access), |own| own.0);
        let mut verdict = own;
        for rule in self.tighter.iter().filter_map(|rules| rules.level(key, subject)) {
            if rule.level > verdict.as_ref().map_or(floor, |verdict| verdict.0) {
                let reason = format!("the rule {} says {}", rule.written, rule.level);
                verdict = Some((rule.level, reason));
            }
        }
        verdict
    }

    /// Why a change is out of the question, whatever is allowed. Only a rule of the person's own
    /// that names the very path opens it: a wildcard is not meant to.
    fn guarded(&self, access: &Access) -> Option<String> {
        let Access::Edit { path } = access else { return None };
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
}

/// What happens where no rule speaks: looking is free, changing is asked about, and so is looking
/// at files that are made to hold secrets.
fn default_level(access: &Access) -> Level {
    match access {
        Access::Read { .. } | Access::Search { .. } if shows_secrets(access) => Level::Ask,
        Access::Read { .. } | Access::Search { .. } | Access::Recall { .. } => Level::Allow,
        Access::Edit { .. } | Access::Use { .. } => Level::Ask,
    }
}

/// The verdict on a file of secrets that no rule names.
fn unnamed(access: &Access) -> (Level, String) {
    let subject = access.subject();
    (Level::Ask, format!("{subject} is made to hold secrets, and no rule names it"))
}

/// True for an access that shows what a file made to hold secrets says. A change does: what does
/// not fit is told with what stands there.
fn shows_secrets(access: &Access) -> bool {
    match access {
        Access::Read { path } | Access::Search { path } | Access::Edit { path } => {
            holds_secrets(path)
        }
        Access::Recall { .. } | Access::Use { .. } => false,
    }
}

/// True for `.env`, `.envrc`, `prod.env` and the like, but not their examples.
fn holds_secrets(path: &str) -> bool {
    // Nearly all paths are plain, and a search asks this of every file.
    let folded = (!path.is_ascii()).then(|| protected::fold(path));
    let path = folded.as_deref().unwrap_or(path);
    let name = path.rsplit('/').next().unwrap_or(path);
    // What stands behind a colon may be a stream of NTFS, and the file is what stands before it.
    let file = name.split_once(':').map(|(file, _)| file);
    std::iter::once(name).chain(file).any(|name| {
        let name = name.trim_end_matches(['.', ' ']).as_bytes();
        let ends = |end: &str| {
            let tail = name.len().checked_sub(end.len()).and_then(|from| name.get(from..));
            tail.is_some_and(|tail| tail.eq_ignore_ascii_case(end.as_bytes()))
        };
        let begins = name.get(..4).is_some_and(|head| head.eq_ignore_ascii_case(b".env"));
        (begins || ends(".env")) && ![".example", ".sample", ".template"].into_iter().any(ends)
    })
}

#[cfg(test)]
mod tests;
