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
            Access::Use { tool } => Access::Use { tool: tool.clone() },
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
        for access in accesses.iter().chain(spelled) {
            let verdict = self.verdict(access);
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

    /// True if no call under this permission key could ever be allowed, so that a model need not
    /// be offered its tools.
    pub fn hides(&self, key: &str) -> bool {
        self.own.denies_outright(key) || self.tighter.iter().any(|rules| rules.denies_outright(key))
    }

    fn verdict(&self, access: &Access) -> (Level, String) {
        let (key, subject) = (access.key(), access.subject());
        let mut verdict = match self.own.level(key, subject) {
            Some((level, rule)) => (level, format!("your rule {rule} says {level}")),
            None => (default_level(access), format!("{key} {subject} is not allowed by any rule")),
        };
        for rules in &self.tighter {
            if let Some((level, rule)) = rules.level(key, subject)
                && level > verdict.0
            {
                verdict = (level, format!("the project's rule {rule} says {level}"));
            }
        }
        verdict
    }
}

/// What happens where no rule speaks: looking is free, changing is asked about, and so is looking
/// at files that are made to hold secrets.
fn default_level(access: &Access) -> Level {
    match access {
        Access::Read { path } if holds_secrets(path) => Level::Ask,
        Access::Read { .. } => Level::Allow,
        Access::Edit { .. } | Access::Use { .. } => Level::Ask,
    }
}

fn holds_secrets(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let env = name == ".env" || name.starts_with(".env.") || name.ends_with(".env");
    env && !name.ends_with(".example") && !name.ends_with(".sample")
}

#[cfg(test)]
mod tests;
