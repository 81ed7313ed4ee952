//! Terminal input and output of the command line: printing, permission requests, user questions and
//! secrets.

pub(crate) mod environment;
pub(crate) mod output;
pub(crate) mod permission_question;
pub(crate) mod question_queue;
pub(crate) mod secret_input;
pub(crate) mod user_question;
