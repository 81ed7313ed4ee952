//! What a front end and its host say to each other: requests up, answers and events down.
//!
//! A front end knows nothing else. It is given two channels, or a socket, and whatever it does
//! another one could do from elsewhere. Every request is answered exactly once, by its number;
//! events come when they come.

use crate::call::{Attachment, BlobRef};
use crate::event::{Event, Seq};
use crate::fault::Fault;
use crate::id::SessionId;
use crate::mode::Mode;
use crate::op::{Op, Query, Reply};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request and its number, which the front end chooses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Up {
    /// Names it in the answer.
    pub id: u64,
    /// What is wanted.
    #[serde(flatten)]
    pub request: Request,
}

/// What a host sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "down", rename_all = "snake_case")]
pub enum Down {
    /// Something happened in a session that is open, or in one that it began.
    Event {
        /// What.
        event: Box<Event>,
    },
    /// The answer to a request.
    Answer {
        /// The request.
        id: u64,
        /// What came of it.
        answer: Result<Answered, Fault>,
    },
    /// Something a person should know.
    Note {
        /// One or a few sentences.
        text: String,
    },
    /// A session has stopped by itself; it takes nothing more until it is opened again.
    Stopped {
        /// The session.
        session: SessionId,
        /// Why.
        fault: Fault,
    },
}

/// What a front end wants of its host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// How things stand here: [`Answered::Standing`].
    Standing,
    /// A question that changes nothing: [`Answered::Reply`].
    Query {
        /// The question.
        query: Query,
    },
    /// Says something to an open session: [`Answered::Done`].
    Do {
        /// The session.
        session: SessionId,
        /// What.
        op: Op,
    },
    /// Begins a session: [`Answered::Opened`]. The one that was open before is closed.
    Begin {
        /// The agent that works in it; the usual one if none is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
    },
    /// Opens a session, and goes on with what was under way in it: [`Answered::Opened`].
    Open {
        /// The session.
        session: SessionId,
    },
    /// Begins a session with a copy of another up to the end of a turn: [`Answered::Opened`].
    Fork {
        /// The other one.
        session: SessionId,
        /// The turn; the last one that has ended if none is named.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u32>,
    },
    /// Removes a session for good: [`Answered::Done`].
    Delete {
        /// The session.
        session: SessionId,
    },
    /// Keeps bytes that are to go with a prompt: [`Answered::Kept`].
    Keep {
        /// A name, for people and models.
        name: String,
        /// The bytes, in base64.
        bytes: String,
    },
    /// Keeps a file of the project that is to go with a prompt, an image or a document, likewise.
    KeepFile {
        /// Its path.
        path: String,
    },
    /// Gives back bytes that were kept: [`Answered::Bytes`].
    Recall {
        /// Which.
        blob: BlobRef,
    },
    /// The pixels of a small copy of a picture that was kept: [`Answered::Pixels`].
    Thumbnail {
        /// Which.
        blob: BlobRef,
        /// At most so many pixels wide.
        width: u32,
        /// At most so many high.
        height: u32,
    },
    /// What can be chosen from: [`Answered::Rows`].
    List {
        /// Of what.
        what: Listing,
    },
    /// Asks another model from now on: [`Answered::Standing`].
    Model {
        /// As `provider/model`.
        model: String,
        /// For how long.
        keep: Keep,
    },
    /// What a command of the person's own asks, once what it wants run first has run in the session
    /// that is open: [`Answered::Prompt`], or [`Answered::Done`] if the model is not to be asked.
    Command {
        /// Its name.
        name: String,
        /// What it is given.
        arguments: String,
    },
    /// What there is to work with, and what is missing: [`Answered::Rows`].
    Doctor,
    /// Writes a session into a file of the working folder: [`Answered::Path`].
    Export {
        /// The session.
        session: SessionId,
        /// As what.
        form: Form,
    },
    /// What this folder would have us run or obey: [`Answered::Trust`].
    LookAtTrust,
    /// Trusts this folder as it was when it was looked at last, or does not, also if it did before:
    /// [`Answered::Standing`].
    Trust {
        /// The person's word.
        yes: bool,
    },
    /// What models could be asked here, found by looking around: [`Answered::Found`].
    LookAround,
    /// Keeps a provider's key: [`Answered::Done`].
    Login {
        /// The provider.
        provider: String,
        /// The key. It is never sent back, logged or shown.
        key: Key,
    },
    /// Keeps a look or the like in the person's config: [`Answered::Done`].
    Set {
        /// `tui.theme`, for example.
        name: String,
        /// A JSON value.
        value: serde_json::Value,
    },
}

/// A key on its way to where keys are kept. It cannot be printed by mistake.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Key(pub String);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(…)")
    }
}

/// How long a choice holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Until the front end is closed.
    Now,
    /// It goes into the person's config.
    Always,
}

/// What a session is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// A page for a browser.
    Page,
    /// JSON lines that can be taken in again.
    Log,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Listing {
    /// The files of the project, as far as they are not ignored; [`Row::name`] is the path.
    Files,
    /// The models that can be asked with the keys there are, the last ones used first.
    Models,
    /// The agents.
    Agents,
    /// The person's, the project's and the plugins' commands.
    Commands,
}

/// Something that can be chosen, or was found out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// What it is called.
    pub name: String,
    /// What is to be known of it, on one line.
    #[serde(default)]
    pub note: String,
    /// Whether it is well.
    #[serde(default)]
    pub health: Health,
}

/// How something that was looked at is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Health {
    /// As it should be.
    #[default]
    Good,
    /// It works, with less.
    Less,
    /// It is missing or broken.
    Bad,
}

/// What comes of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answered", rename_all = "snake_case")]
pub enum Answered {
    /// It was done, or handed on.
    Done,
    /// How things stand.
    Standing {
        /// All of it.
        standing: Box<Standing>,
    },
    /// To a query.
    Reply {
        /// What.
        reply: Reply,
    },
    /// A session is open, and its events from after `head` on are sent from now on.
    Opened {
        /// The session.
        session: SessionId,
        /// How many facts it has.
        head: Seq,
    },
    /// Something was kept.
    Kept {
        /// How a prompt names it.
        attachment: Attachment,
    },
    /// Bytes.
    Bytes {
        /// In base64.
        bytes: String,
    },
    /// A picture, small.
    Pixels {
        /// How many pixels wide it is.
        width: u32,
        /// Red, green and blue of each, row by row, in base64.
        bytes: String,
        /// What it is a copy of.
        of: PictureSize,
    },
    /// A list.
    Rows {
        /// In order.
        rows: Vec<Row>,
    },
    /// What a command asks, ready to be said.
    Prompt {
        /// The text.
        text: String,
    },
    /// A file was written.
    Path {
        /// Which.
        path: String,
    },
    /// What trusting this folder means.
    Trust {
        /// What it would have us run or obey; empty if nothing.
        would: Vec<String>,
        /// What of that is other than when the folder was trusted last.
        #[serde(default)]
        since: Option<Vec<String>>,
    },
    /// The models that could be asked.
    Found {
        /// The likeliest first.
        found: Vec<Found>,
    },
}

/// How large a picture is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PictureSize {
    /// How many pixels wide.
    pub width: u32,
    /// How many high.
    pub height: u32,
    /// How many bytes its file has.
    pub bytes: u64,
}

/// A provider that could be asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// Its name, as config has it.
    pub provider: String,
    /// How that is known: "ANTHROPIC_API_KEY is set", "ollama answers at 127.0.0.1:11434".
    pub how: String,
    /// True if nothing more is needed to ask one of its models; else a key is.
    pub ready: bool,
    /// Its models that suit, as `provider/model`, the best first.
    pub models: Vec<String>,
}

/// How things stand where a host works.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Standing {
    /// The version of Windlass.
    pub version: String,
    /// The folder, as a person writes it.
    pub workspace: String,
    /// The folder as sessions record it.
    pub root: String,
    /// The branch that is checked out, if that is known.
    #[serde(default)]
    pub branch: Option<String>,
    /// The model that is asked, as `provider/model`; none before the first run has chosen one.
    #[serde(default)]
    pub model: Option<String>,
    /// How many tokens it takes, if that is known.
    #[serde(default)]
    pub window: Option<u64>,
    /// The agent that works in a new session.
    pub agent: String,
    /// The mode a new session is in.
    pub mode: Mode,
    /// The most lax one that can be chosen.
    pub laxest: Mode,
    /// Whether the folder is trusted.
    pub trust: Trusted,
    /// How commands are held: "bubblewrap", "Landlock", or what is missing.
    pub sandbox: String,
    /// What a person should know before they begin.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Whether a folder is trusted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trusted {
    /// Yes, as it is now.
    Yes,
    /// No, and nobody was asked yet.
    #[default]
    Unasked,
    /// It was, and has changed since.
    Changed,
    /// The person said no.
    No,
}
