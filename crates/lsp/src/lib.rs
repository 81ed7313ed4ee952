//! Language servers: what they know of code, and what they make of a change.
//!
//! A server is a row of data until somebody looks at a file of its kind. Then it is engaged as a
//! servant, which can neither change the project nor reach the network, is told what files hold,
//! and is asked. It keeps the invariant that nobody waits for a server longer than the limit of
//! what they asked, whatever the server does. Start reading at [`Code`].

mod after;
mod ask;
mod code;
mod desk;
mod document;
mod estate;
#[doc(hidden)]
pub mod frame;
mod hear;
mod house;
mod judge;
mod late;
mod name;
mod offer;
mod place;
mod pull;
mod reply;
mod rows;
mod say;
mod server;
mod show;
pub mod sign;
mod start;
mod sweep;
mod talk;
mod work;

pub use after::Before;
pub use code::{Answer, At, Code, Keeping, Located, Patience, Question, Review, Spec};
pub use rows::{Row, known};
pub use sign::Sign;
