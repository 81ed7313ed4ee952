//! A draft gives the bytes that writing everything anew gives, whatever a conversation does.

use super::{SEAL, conversation, request};
use crate::Request;
use crate::catalog::{Model, PROVIDERS, Quirks, plain};
use crate::wire::Format;
use crate::wire::draft::Draft;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::sync::Arc;
use windlass_protocol::{
    Attachment, Author, BlobRef, CallId, CallPart, Message, Messages, Options, Outcome, Output,
    Part, Role,
};

/// Something that happens to a conversation between two requests.
#[derive(Clone, Debug)]
enum Twist {
    Said(Role, Vec<Piece>),
    /// A message is told otherwise: pruned, settled late.
    Changed(usize),
    Cut(usize),
    Files(bool),
    Model(bool),
    System(bool),
}

#[derive(Clone, Debug)]
enum Piece {
    Text(&'static str),
    Thought,
    File(u8),
    Call(Author, &'static str, u8),
}

fn piece() -> impl Strategy<Value = Piece> {
    let author = prop_oneof![9 => Just(Author::Model), 1 => Just(Author::Person)];
    let reference = prop::sample::select(vec!["call_1", "call_2", "", "so odd!", "123456789"]);
    prop_oneof![
        3 => prop::sample::select(vec!["hello", "", " ", "\u{2028}\"\\"]).prop_map(Piece::Text),
        1 => Just(Piece::Thought),
        1 => (0..3_u8).prop_map(Piece::File),
        3 => (author, reference, 0..5_u8).prop_map(|(by, name, end)| Piece::Call(by, name, end)),
    ]
}

fn twist() -> impl Strategy<Value = Twist> {
    let role = prop::sample::select(vec![
        Role::User,
        Role::Context,
        Role::Assistant,
        Role::Assistant,
        Role::Assistant,
    ]);
    prop_oneof![
        20 => (role, prop::collection::vec(piece(), 0..4)).prop_map(|(r, p)| Twist::Said(r, p)),
        1 => (0..40_usize).prop_map(Twist::Changed),
        1 => (0..40_usize).prop_map(Twist::Cut),
        1 => any::<bool>().prop_map(Twist::Files),
        1 => any::<bool>().prop_map(Twist::Model),
        1 => any::<bool>().prop_map(Twist::System),
    ]
}

fn blob(number: u8) -> BlobRef {
    BlobRef::of_digest([number; 32])
}

fn file(number: u8) -> Attachment {
    let mime = if number == 0 { "application/pdf" } else { "image/png" };
    Attachment { name: format!("f{number}"), mime: mime.into(), blob: blob(number) }
}

fn part(piece: &Piece) -> Part {
    match piece {
        Piece::Text(text) => Part::text(*text),
        Piece::Thought => Part::Reasoning { text: "hm".into(), seal: Some(SEAL.into()) },
        Piece::File(number) => Part::File(file(*number)),
        Piece::Call(by, reference, end) => {
            let attachments = if *end == 1 { vec![file(1)] } else { Vec::new() };
            let outcome = match end {
                0 => None,
                1 | 2 => Some(Outcome::Completed {
                    output: Output { text: "out".into(), attachments, ..Output::default() },
                }),
                3 => Some(Outcome::Unknown),
                _ => Some(Outcome::Failed { text: "no".into() }),
            };
            Part::Call(Box::new(CallPart {
                call: CallId(Default::default()),
                reference: (*reference).into(),
                tool: "read".into(),
                arguments: "{\"a\": 1}".into(),
                by: *by,
                seal: None,
                outcome,
                pruned: false,
            }))
        }
    }
}

fn happen(request: &mut Request, twist: &Twist) {
    match twist {
        Twist::Said(role, pieces) => {
            let seq = request.messages.len() as u64 + 1;
            let model = (*role == Role::Assistant).then(|| "p/m".to_owned());
            let parts = pieces.iter().map(part).collect();
            request.messages.push(Message { role: *role, seq, model, parts });
        }
        Twist::Changed(place) => {
            let seq = *place as u64;
            if let Some(message) = request.messages.change_last(|m| m.seq == seq) {
                message.parts.pop();
            }
        }
        Twist::Cut(place) => request.messages.keep_through(*place as u64),
        Twist::Files(there) => {
            request.files.clear();
            if *there {
                request.files.extend((0..3).map(|number| (blob(number), vec![number; 9].into())));
            }
        }
        Twist::Model(sees) => {
            request.model =
                Arc::new(Model { images: *sees, pdfs: true, ..(*request.model).clone() });
        }
        Twist::System(there) => request.system = if *there { "be brief" } else { "" }.into(),
    }
}

fn check(format: Format, quirks: &Quirks, draft: &Draft, request: &Request, keep: bool) {
    let plain = format.body(request, quirks).to_string();
    let drafted = draft.write(format, request, quirks);
    assert_eq!(std::str::from_utf8(&drafted).unwrap(), plain);
    // A request that is still being sent keeps its bytes.
    if keep {
        let before = drafted.clone();
        let mut longer = request.clone();
        happen(&mut longer, &Twist::Said(Role::User, vec![Piece::Text("more")]));
        draft.write(format, &longer, quirks);
        assert_eq!(before, plain.as_bytes());
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "whoever runs the tests says how long they may take")]
fn a_draft_is_what_would_be_written_anew() {
    // Each is tried with every provider, so there are fewer than of other things.
    let cases = if std::env::var_os("WINDLASS_SOAK").is_some() { 1_500 } else { 128 };
    let mut runner = TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let twists = prop::collection::vec((twist(), any::<bool>()), 1..60);
    let tried = runner.run(&(twists, any::<bool>()), |(twists, claude)| {
        let id = if claude { "claude-x" } else { "m" };
        let rows = PROVIDERS.iter().map(|row| (row.format, row.quirks));
        let plain = Format::NAMES.iter().map(|(_, f)| (*f, plain(*f, false).quirks));
        for (format, quirks) in rows.chain(plain) {
            let mut request = request();
            request.model = Arc::new(Model { images: true, ..Model::assumed(id) });
            let draft = Draft::default();
            for (twist, keep) in &twists {
                happen(&mut request, twist);
                check(format, &quirks, &draft, &request, *keep);
            }
        }
        Ok(())
    });
    tried.unwrap();
}

/// Drafts a conversation as it grows.
pub(super) fn grow(format: Format, quirks: &Quirks, whole: &Request) {
    let draft = Draft::default();
    for length in 0..=whole.messages.len() {
        let messages: Messages = whole.messages.iter().take(length).cloned().collect();
        check(format, quirks, &draft, &Request { messages, ..whole.clone() }, false);
    }
}

#[test]
fn a_conversation_with_everything_in_it_is_drafted_at_every_length() {
    for (_, format) in Format::NAMES {
        for marks in [true, false] {
            let quirks = Quirks { cache_marks: marks, ..plain(*format, false).quirks };
            grow(*format, &quirks, &conversation());
        }
    }
}

#[test]
fn a_persons_own_setting_may_stand_in_the_conversations_place() {
    for (_, format) in Format::NAMES {
        let quirks = plain(*format, false).quirks;
        let extra = [("messages", json!([1])), ("zeal", json!({"a": "\n"}))];
        let extra = extra.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        let options = Arc::new(Options { extra, ..Options::default() });
        check(*format, &quirks, &Draft::default(), &Request { options, ..conversation() }, true);
    }
}

/// What is new is written, and nothing else: a conversation of thousands of messages costs no more
/// than one of few.
#[test]
fn a_long_conversation_is_not_written_again() {
    for (name, format) in Format::NAMES {
        let quirks = plain(*format, false).quirks;
        let (mut request, draft) = (request(), Draft::default());
        let mut places = Vec::new();
        for _ in 0..2_000 {
            happen(&mut request, &Twist::Said(Role::User, vec![Piece::Text("hello")]));
            let body = draft.write(*format, &request, &quirks);
            places.push(body.as_ptr());
            drop(body);
            let call = Piece::Call(Author::Model, "call_1", 2);
            happen(&mut request, &Twist::Said(Role::Assistant, vec![Piece::Text("so"), call]));
        }
        // The buffer grows now and then; it is not made for each request.
        places.dedup();
        assert!(places.len() < 40, "{name}: {} buffers", places.len());
        check(*format, &quirks, &draft, &request, false);
    }
}
