//! What holds for every wire format: streams read the same however they are cut, real recordings
//! replay, and our requests mean what theirs mean.

mod draft;
mod lift;
mod recordings;
mod torment;

pub(crate) use torment::{check_case, read};

use super::{Format, overlay};
use crate::catalog::{Model, plain};
use crate::{Request, catalog};
use serde_json::json;
use std::sync::Arc;
use windlass_protocol::{
    Attachment, Author, BlobRef, CallId, CallPart, Choice, Message, Messages, Options, Outcome,
    Output, Part, Role, ToolSummary,
};

/// A request that says nothing.
pub(crate) fn request() -> Request {
    Request {
        model: Arc::new(Model::assumed("m")),
        name: "p/m".into(),
        system: "be brief".into(),
        messages: Messages::default(),
        files: Default::default(),
        tools: Vec::new(),
        options: Arc::default(),
        cache_key: None,
        draft: Arc::default(),
    }
}

/// A conversation with everything in it that a conversation can have.
pub(crate) fn conversation() -> Request {
    let mut request = request();
    let image = BlobRef::of_digest([1; 32]);
    request.files.insert(image.clone(), b"png".to_vec().into());
    let file = |name: &str, mime: &str, blob: &BlobRef| Attachment {
        name: name.into(),
        mime: mime.into(),
        blob: blob.clone(),
    };
    let seen = file("a.png", "image/png", &image);
    let lost = file("b.pdf", "application/pdf", &BlobRef::of_digest([2; 32]));
    let output =
        Output { text: "one line".into(), attachments: vec![seen.clone()], ..Output::default() };
    let done = Some(Outcome::Completed { output });
    let failed = Some(Outcome::Failed { text: "no such file".into() });
    let own = Some("p/m".to_owned());
    let other = Some("q/other".to_owned());
    let thought = |seal: &str| Part::Reasoning { text: "hm".into(), seal: Some(seal.into()) };
    let said = |text: &str, seal: Option<&str>| Part::Text {
        text: text.into(),
        seal: seal.map(str::to_owned),
    };
    let say = |role, model: &Option<String>, parts| {
        Arc::new(Message { role, seq: 1, model: model.clone(), parts })
    };
    let messages = vec![
        say(
            Role::User,
            &None,
            vec![Part::text("what is in a?"), Part::File(seen), Part::File(lost)],
        ),
        say(
            Role::Assistant,
            &own,
            vec![
                thought(SEAL),
                call(Author::Model, "call_1", "{\"filePath\": \"a\"}", done),
                call(Author::Model, "call_1", "{\"filePath\": \"b", failed),
            ],
        ),
        say(Role::Context, &None, vec![Part::text("a was changed")]),
        say(Role::Assistant, &own, vec![call(Author::Person, "x", "{}", Some(Outcome::Unknown))]),
        say(Role::Assistant, &own, vec![thought(SEAL)]),
        say(
            Role::Assistant,
            &other,
            vec![thought(SEAL), call(Author::Model, "so odd an id!", "{}", None)],
        ),
        say(Role::User, &None, vec![Part::text("")]),
        say(Role::Assistant, &own, vec![said("done", Some("{\"phase\": \"final_answer\"}"))]),
        say(Role::User, &None, vec![Part::text("thanks")]),
    ];
    request.messages = messages.into();
    request.model = Arc::new(Model { images: true, ..Model::assumed("m") });
    request.tools = vec![ToolSummary {
        name: "read".into(),
        description: "Reads.".into(),
        schema: json!({
            "$schema": "x",
            "type": "object",
            "properties": {"filePath": {"type": "string"}, "limit": {"type": ["integer", "null"], "format": "uint"}},
            "required": ["filePath"],
            "additionalProperties": false,
        }),
    }];
    request.options = Arc::new(Options {
        temperature: Some(0.5),
        max_output: Some(1_000),
        tool_choice: Some(Choice::Required),
        answer: Some(json!({"type": "object", "properties": {"x": {"type": "integer"}}})),
        ..Options::default()
    });
    request.cache_key = Some("session".into());
    request
}

/// A seal that makes sense in every format.
const SEAL: &str = r#"{"signature": "sig", "type": "reasoning", "encrypted_content": "enc"}"#;

fn call(by: Author, reference: &str, arguments: &str, outcome: Option<Outcome>) -> Part {
    Part::Call(Box::new(CallPart {
        call: CallId(Default::default()),
        reference: reference.into(),
        tool: "read".into(),
        arguments: arguments.into(),
        by,
        seal: None,
        outcome,
        pruned: false,
    }))
}

/// That conversation in a format.
pub(crate) fn written(format: Format, quirks: catalog::Quirks) -> String {
    serde_json::to_string_pretty(&format.body(&conversation(), &quirks)).unwrap() + "\n"
}

#[test]
fn every_format_has_a_name_and_a_place() {
    for (name, format) in Format::NAMES {
        assert_eq!(Format::named(name), Some(*format));
        assert!(format.path("m").starts_with('/'));
    }
    assert_eq!(Format::named("openai"), None);
}

#[test]
fn a_model_cannot_change_where_its_request_goes() {
    let path = Format::Gemini.path("../../v1/files?x=#");
    assert_eq!(path, "/models/..%2F..%2Fv1%2Ffiles%3Fx%3D%23:streamGenerateContent?alt=sse");
}

#[test]
fn a_person_can_add_what_only_the_provider_knows() {
    let mut body = json!({"a": 1, "text": {"format": 1}});
    overlay(&mut body, "text", &json!({"verbosity": "low"}));
    overlay(&mut body, "a", &json!([2]));
    overlay(&mut body, "new", &json!(true));
    let expected = json!({"a": [2], "text": {"format": 1, "verbosity": "low"}, "new": true});
    assert_eq!(body, expected);
}

#[test]
fn the_same_request_gives_the_same_bytes_and_a_longer_one_begins_with_them() {
    for (name, format) in Format::NAMES {
        let quirks = catalog::Quirks { cache_marks: false, ..plain(*format, false).quirks };
        let mut request = request();
        let say = |role, text: &str| {
            Arc::new(Message { role, seq: 1, model: None, parts: vec![Part::text(text)] })
        };
        request.messages.push(say(Role::User, "one"));
        let list = |request: &Request| {
            let body = format.body(request, &quirks);
            let list = ["messages", "input", "contents"].iter().find_map(|key| body.get(key));
            list.unwrap().to_string()
        };
        let short = list(&request);
        assert_eq!(short, list(&request), "{name}");
        request.messages.push(say(Role::Assistant, "two"));
        assert!(list(&request).starts_with(short.trim_end_matches(']')), "{name}");
    }
}
