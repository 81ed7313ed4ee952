//! The state of a checkout: what a machine knows about it, and the message of a checkpoint.

use serde::{Deserialize, Serialize};
use std::fmt::{self, Display};
use windlass_protocol::display_text::to_one_line;
use windlass_protocol::{LogSeq, SessionId, UnixMillis};

/// Maximum number of epochs that a machine remembers.
const MAX_EPOCHS: usize = 16;

/// The state of a checkout on one machine, in a file beside it.
#[derive(Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct CheckoutState {
    /// Epochs of claims that worked in the folder since it was made here, oldest first.
    #[serde(default)]
    pub(super) epochs: Vec<u64>,
    /// Digest of what was saved last.
    #[serde(default)]
    pub(super) saved: Option<String>,
    /// The last attempt to save it has failed.
    #[serde(default)]
    pub(super) has_failed: bool,
}

impl CheckoutState {
    pub(super) fn add_epoch(&mut self, epoch: u64) {
        self.epochs.push(epoch);
        let excess = self.epochs.len().saturating_sub(MAX_EPOCHS);
        self.epochs.drain(..excess);
    }
}

/// The branch or commit that a checkout is at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CheckoutHead {
    Branch(String),
    Commit(String),
}

impl CheckoutHead {
    /// Reads the file `HEAD` of a repository.
    pub(super) fn parse(text: &str) -> Option<CheckoutHead> {
        let text = text.trim();
        if let Some(branch) = text.strip_prefix("ref: refs/heads/") {
            return is_branch_name(branch).then(|| CheckoutHead::Branch(branch.to_owned()));
        }
        let is_commit = text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_commit.then(|| CheckoutHead::Commit(text.to_owned()))
    }
}

impl Display for CheckoutHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckoutHead::Branch(branch) => write!(f, "ref: refs/heads/{branch}"),
            CheckoutHead::Commit(commit) => f.write_str(commit),
        }
    }
}

/// Returns true for the name of a branch that means nothing else to git.
fn is_branch_name(name: &str) -> bool {
    let is_plain =
        |part: &str| !part.is_empty() && !part.starts_with(['.', '-']) && !part.ends_with(".lock");
    let has_special = name.contains("..")
        || name.contains("@{")
        || name.contains(|c: char| c.is_whitespace() || c.is_control() || "~^:?*[\\".contains(c));
    !has_special && name.split('/').all(is_plain)
}

/// The message of the commit that has all files of a checkout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CheckpointMessage {
    pub(super) head: CheckoutHead,
    /// The last fact whose change is in the files.
    pub(super) position: LogSeq,
    pub(super) at: UnixMillis,
    /// Files that are not in the commit.
    pub(super) omitted: Vec<String>,
}

const HEAD: &str = "Windlass-Head: ";
const POSITION: &str = "Windlass-Position: ";
const TIME: &str = "Windlass-Time: ";
const OMITTED: &str = "Windlass-Omitted: ";

impl CheckpointMessage {
    pub(super) fn to_text(&self, session: SessionId) -> String {
        let CheckpointMessage { head, position, at, omitted } = self;
        let omitted = omitted.iter().map(|name| format!("{OMITTED}{}\n", to_one_line(name)));
        format!(
            "Files of session {session}\n\n{HEAD}{head}\n{POSITION}{position}\n{TIME}{}\n{}",
            at.0,
            omitted.collect::<String>()
        )
    }

    /// Reads the text of a commit.
    pub(super) fn parse(commit: &str) -> Option<CheckpointMessage> {
        let values =
            |name: &'static str| commit.lines().filter_map(move |line| line.strip_prefix(name));
        Some(CheckpointMessage {
            head: CheckoutHead::parse(values(HEAD).next()?)?,
            position: values(POSITION).next()?.parse().ok()?,
            at: UnixMillis(values(TIME).next()?.parse().ok()?),
            omitted: values(OMITTED).map(str::to_owned).collect(),
        })
    }

    /// Describes for the model the files that a restored folder does not have. The last changes of those
    /// in `lost` are no longer stored.
    pub(super) fn describe_restore(&self, lost: &[String]) -> String {
        let mut text = "This session has moved to another machine, and its folder was restored from \
            git with the recorded changes. Files that git ignores are missing, such as build outputs \
            and installed packages, and so may be what a command changed that was cut off. Branches \
            are restored; nothing is staged. Processes do not run any more."
            .to_owned();
        if !self.omitted.is_empty() {
            text.push_str(&format!(" These were not saved: {}.", self.omitted.join(", ")));
        }
        if !lost.is_empty() {
            text.push_str(&format!(" The last changes of these are lost: {}.", lost.join(", ")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckoutHead, CheckoutState, CheckpointMessage};
    use windlass_protocol::{SessionId, UnixMillis};

    #[test]
    fn a_head_is_a_plain_branch_or_a_commit() {
        let commit = "0123456789abcdef0123456789abcdef01234567";
        for (text, head) in [
            ("ref: refs/heads/main\n", Some(CheckoutHead::Branch("main".into()))),
            ("ref: refs/heads/fix/a-b\n", Some(CheckoutHead::Branch("fix/a-b".into()))),
            (commit, Some(CheckoutHead::Commit(commit.into()))),
            ("ref: refs/remotes/x", None),
            ("ref: refs/heads/../../etc", None),
            ("ref: refs/heads/-x", None),
            ("ref: refs/heads/a b", None),
            ("ref: refs/heads/a^{commit}", None),
            ("ref: refs/heads/", None),
            ("0123", None),
            ("secret of another file", None),
        ] {
            assert_eq!(CheckoutHead::parse(text), head, "{text}");
        }
    }

    #[test]
    fn the_message_of_a_checkpoint_is_read_back() {
        let message = CheckpointMessage {
            head: CheckoutHead::Branch("main".into()),
            position: 42,
            at: UnixMillis(7),
            omitted: vec!["a big\nfile".into(), "b".into()],
        };
        let text = format!("tree x\n\n{}", message.to_text(SessionId(uuid::Uuid::nil())));
        let read = CheckpointMessage::parse(&text).unwrap();
        assert_eq!((read.head, read.position, read.at), (message.head, 42, UnixMillis(7)));
        assert_eq!(read.omitted.len(), 2);
        assert_eq!(CheckpointMessage::parse("tree x\n\nother"), None);
    }

    #[test]
    fn only_the_last_epochs_are_remembered() {
        let mut state = CheckoutState::default();
        (0..40).for_each(|epoch| state.add_epoch(epoch));
        assert_eq!(state.epochs, (24..40).collect::<Vec<_>>());
    }
}
