//! The words of Windlass: what a session is made of, and what a log of events means.
//!
//! It is data and one fold; it opens no file, reads no clock and starts nothing.
//! It keeps the invariant that what must survive is decided by type: a [`Fact`] is stored, a
//! [`Live`] never is. Start reading at [`event`], which is the published interface, then
//! [`transcript`], which says what a log means.

pub mod access;
pub mod call;
pub mod event;
pub mod fault;
pub mod files;
pub mod find;
pub mod hook;
pub mod id;
pub mod inquiry;
pub mod live;
pub mod message;
pub mod messages;
pub mod mode;
pub mod op;
pub mod options;
pub mod rows;
pub mod step;
pub mod text;
pub mod todo;
pub mod transcript;
pub mod wire;

pub use access::Access;
pub use call::{
    Answer, Approval, Attachment, Author, BlobRef, Display, Lasting, Outcome, Output, Repair,
};
pub use event::{BUILD, Event, Fact, Glimpse, Record, Seq};
pub use fault::{Fault, Tries};
pub use files::{Change, Changed, Files, Scope, Sight, Undo, Version, View};
pub use find::{Finder, Needle, Place};
pub use hook::{Point, Verdict};
pub use id::{CallId, Millis, PromptId, SessionId};
pub use inquiry::{Inquiry, Suggestion};
pub use live::{Live, Stream};
pub use message::{CallPart, Message, Part, Role};
pub use messages::Messages;
pub use mode::Mode;
pub use op::{Delivery, Hit, Op, Query, Reply, SessionSummary, ToolSummary};
pub use options::{Choice, Effort, Options};
pub use rows::{ContextPart, JobRow, PromptRow};
pub use step::{Cost, Finish, Parent, Purpose, TurnEnd, Usage};
pub use todo::Todo;
pub use transcript::Transcript;
