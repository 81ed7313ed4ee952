//! May this call touch that? Rules and accesses in, a decision out.
//!
//! It is pure: it opens nothing and asks nobody. It keeps the invariant that a [`Grant`] exists
//! only where a rule or a person said yes, because nothing outside this crate can make one.
//! Start reading at [`Policy::decide`].

mod grant;
mod rules;

pub use grant::Grant;
pub use rules::{Level, RuleError, Rules};

use windlass_protocol::{Access, Answer};

/// Everything that decides: what the person's rules say, tightened by what others say.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    own: Rules,
    tighter: Vec<Rules>,
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
        Grant::over(self.accesses.iter().map(|access| match access {
            Access::Read { path } | Access::Edit { path } => Access::Read { path: path.clone() },
            Access::Recall { .. } | Access::Use { .. } => access.clone(),
        }))
    }

    /// What the answer opens: everything that was asked for, or nothing.
    pub fn answered(self, answer: &Answer) -> Option<Grant> {
        answer.is_yes().then(|| Grant::over(self.accesses))
    }
}

impl Policy {
    /// The policy of a person's own rules.
    pub fn new(own: Rules) -> Policy {
        Policy { own, tighter: Vec::new() }
    }

    /// Adds rules that can only make a verdict stricter, such as a repository's.
    #[must_use]
    pub fn tightened_by(mut self, rules: Rules) -> Policy {
        self.tighter.push(rules);
        self
    }

    /// Decides on all accesses of a call at once: the strictest verdict counts. `spelled` is the
    /// same accesses before their paths were resolved; a rule may name either form.
    pub fn decide(&self, accesses: Vec<Access>, spelled: &[Access]) -> Decision {
        let mut strictest = (Level::Allow, String::new());
        let resolved = accesses.iter().map(|access| self.verdict(access));
        let named = spelled.iter().filter_map(|access| self.ruled(access));
        for verdict in resolved.chain(named) {
            if verdict.0 > strictest.0 {
                strictest = verdict;
            }
        }
        let (level, reason) = strictest;
        match level {
            Level::Allow => Decision::Allowed(Grant::over(accesses)),
            Level::Ask => Decision::Ask(Question { accesses, reason }),
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

    /// What the rules say, if any speaks.
    fn ruled(&self, access: &Access) -> Option<(Level, String)> {
        let (key, subject) = (access.key(), access.subject());
        let own = self.own.level(key, subject).map(|rule| {
            // A rule for everything does not mean what is made to hold secrets.
            let secret = rule.sweeping && rule.level == Level::Allow && holds_secrets(access);
            let level = if secret { Level::Ask } else { rule.level };
            let reason = match secret {
                true => format!("{subject} is made to hold secrets, and no rule names it"),
                false => format!("your rule {} says {level}", rule.written),
            };
            (level, reason)
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
}

/// What happens where no rule speaks: looking is free, changing is asked about, and so is looking
/// at files that are made to hold secrets.
fn default_level(access: &Access) -> Level {
    match access {
        Access::Read { .. } if holds_secrets(access) => Level::Ask,
        Access::Read { .. } | Access::Recall { .. } => Level::Allow,
        Access::Edit { .. } | Access::Use { .. } => Level::Ask,
    }
}

/// True for reading `.env`, `.envrc`, `prod.env` and the like, but not their examples.
fn holds_secrets(access: &Access) -> bool {
    let Access::Read { path } = access else { return false };
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let example = [".example", ".sample", ".template"].iter().any(|end| name.ends_with(end));
    (name.starts_with(".env") || name.ends_with(".env")) && !example
}

#[cfg(test)]
mod tests;
