//! Tests that requests and their HTTP form are the same, and that routes and rights fit together.

use super::{
    HttpRequestParts, RequestBody, Route, RouteAccess, RouteKind, RouteLookup, all_routes,
    find_route, parse, required_right, to_http,
};
use axum::http::Method;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use proptest::prelude::*;
use proptest::strategy::{BoxedStrategy, Union, ValueTree};
use proptest::test_runner::TestRunner;
use uuid::Uuid;
use windlass_protocol::frontend_messages::{
    FrontendRequest, ListedItemKind, ModelChoiceScope, ProviderKey, SessionExportFormat,
};
use windlass_protocol::report::{ReportAction, ReportKind};
use windlass_protocol::{
    AccessRight, Attachment, BlobRef, CallId, DiffDirection, OpId, PermissionAnswer,
    PermissionMode, PromptDelivery, PromptId, PromptSettings, RequestError, SessionId, SessionOp,
    SessionQuery, TrustDecision, UndoScope,
};

fn text() -> BoxedStrategy<String> {
    prop_oneof![Just(String::new()), "(?s).{0,24}", "[a-z/%&=+ #?.]{1,12}"].boxed()
}

fn session() -> BoxedStrategy<SessionId> {
    any::<u128>().prop_map(|id| SessionId(Uuid::from_u128(id))).boxed()
}

fn blob() -> BoxedStrategy<BlobRef> {
    any::<[u8; 32]>().prop_map(BlobRef::from_digest).boxed()
}

fn maybe<T: Strategy + 'static>(value: T) -> BoxedStrategy<Option<T::Value>>
where
    T::Value: Clone,
{
    proptest::option::of(value).boxed()
}

fn attachments() -> BoxedStrategy<Vec<Attachment>> {
    let attachment = (text(), text(), blob()).prop_map(|(name, mime_type, blob)| Attachment {
        name,
        mime_type,
        blob,
    });
    prop::collection::vec(attachment, 0..3).boxed()
}

fn one_of<T: Clone + std::fmt::Debug + 'static>(values: &[T]) -> BoxedStrategy<T> {
    prop::sample::select(values.to_vec()).boxed()
}

fn op() -> BoxedStrategy<SessionOp> {
    let call = || any::<u128>().prop_map(|id| CallId(Uuid::from_u128(id)));
    Union::new([
        (text(), attachments(), one_of(&[PromptDelivery::Steer, PromptDelivery::Queue]))
            .prop_map(|(text, attachments, delivery)| SessionOp::Prompt {
                text,
                attachments,
                delivery,
                settings: PromptSettings::default(),
            })
            .boxed(),
        (text(), text())
            .prop_map(|(tool, arguments)| SessionOp::CallTool { tool, arguments })
            .boxed(),
        text().prop_map(|command| SessionOp::RunPromptCommand { command }).boxed(),
        (call(), maybe(any::<u64>()))
            .prop_map(|(call, asked)| SessionOp::AnswerPermission {
                call,
                answer: PermissionAnswer::Once,
                asked,
            })
            .boxed(),
        (call(), prop::collection::vec(prop::collection::vec(text(), 0..3), 0..3))
            .prop_map(|(call, answers)| SessionOp::answer_question(call, answers))
            .boxed(),
        Just(SessionOp::Compact).boxed(),
        one_of(&PermissionMode::ALL).prop_map(|mode| SessionOp::SetMode { mode }).boxed(),
        text().prop_map(|agent| SessionOp::SetAgent { agent }).boxed(),
        (text(), maybe(text()))
            .prop_map(|(model, effort)| SessionOp::SetModel { model, effort })
            .boxed(),
        maybe(any::<u32>()).prop_map(|turn| SessionOp::Interrupt { turn }).boxed(),
        prop::collection::vec(any::<u64>(), 0..4)
            .prop_map(|facts| SessionOp::Undo { facts })
            .boxed(),
        any::<u128>()
            .prop_map(|id| SessionOp::WithdrawPrompt { prompt: PromptId(Uuid::from_u128(id)) })
            .boxed(),
        any::<u64>().prop_map(|to| SessionOp::Rewind { to }).boxed(),
        any::<u64>().prop_map(|job| SessionOp::EndJob { job }).boxed(),
        text().prop_map(|title| SessionOp::RenameSession { title }).boxed(),
        Just(SessionOp::RevokeApprovals).boxed(),
    ])
    .boxed()
}

fn query() -> BoxedStrategy<SessionQuery> {
    let scope = Union::new([
        one_of(&[UndoScope::LastTurn, UndoScope::All, UndoScope::LastUndo]),
        any::<u64>().prop_map(|seq| UndoScope::Since { seq }).boxed(),
    ]);
    let direction = one_of(&[DiffDirection::Reverse, DiffDirection::Forward]);
    Union::new([
        maybe(text()).prop_map(|workspace| SessionQuery::Sessions { workspace }).boxed(),
        (session(), any::<u64>(), maybe(any::<u32>()))
            .prop_map(|(session, after, limit)| SessionQuery::Events { session, after, limit })
            .boxed(),
        (maybe(session()), maybe(any::<u32>()))
            .prop_map(|(session, limit)| SessionQuery::Prompts { session, limit })
            .boxed(),
        session().prop_map(|session| SessionQuery::Context { session }).boxed(),
        session().prop_map(|session| SessionQuery::Jobs { session }).boxed(),
        session().prop_map(|session| SessionQuery::Transcript { session }).boxed(),
        (session(), scope, direction)
            .prop_map(|(session, scope, direction)| SessionQuery::Changes {
                session,
                scope,
                direction,
            })
            .boxed(),
        (text(), maybe(text()))
            .prop_map(|(words, workspace)| SessionQuery::SearchSessions { words, workspace })
            .boxed(),
        (session(), text())
            .prop_map(|(session, text)| SessionQuery::FindText { session, text })
            .boxed(),
        Just(SessionQuery::Tools).boxed(),
    ])
    .boxed()
}

fn report() -> BoxedStrategy<ReportKind> {
    Union::new([
        one_of(&[ReportKind::McpServers, ReportKind::LanguageServers, ReportKind::Plugins]),
        maybe(session()).prop_map(|session| ReportKind::Permissions { session }).boxed(),
        maybe(any::<u32>()).prop_map(|days| ReportKind::Statistics { days }).boxed(),
    ])
    .boxed()
}

fn session_request() -> BoxedStrategy<FrontendRequest> {
    let op_id = || maybe(any::<u128>().prop_map(|id| OpId(Uuid::from_u128(id))));
    let formats =
        [SessionExportFormat::Html, SessionExportFormat::Markdown, SessionExportFormat::JsonLines];
    Union::new([
        query().prop_map(|query| FrontendRequest::Query { query }).boxed(),
        Just(FrontendRequest::ListOpenSessions).boxed(),
        (session(), op_id(), op())
            .prop_map(|(session, id, op)| FrontendRequest::SessionOp { session, id, op })
            .boxed(),
        (maybe(text()), maybe(text()), maybe(text()))
            .prop_map(|(agent, model, effort)| FrontendRequest::NewSession { agent, model, effort })
            .boxed(),
        session().prop_map(|session| FrontendRequest::CloseSession { session }).boxed(),
        (session(), any::<bool>())
            .prop_map(|(session, resume)| FrontendRequest::OpenSession { session, resume })
            .boxed(),
        (session(), maybe(any::<u32>()))
            .prop_map(|(session, turn)| FrontendRequest::ForkSession { session, turn })
            .boxed(),
        session().prop_map(|session| FrontendRequest::DeleteSession { session }).boxed(),
        (session(), one_of(&formats))
            .prop_map(|(session, format)| FrontendRequest::RenderSession { session, format })
            .boxed(),
        (session(), text())
            .prop_map(|(session, title)| FrontendRequest::RenameSession { session, title })
            .boxed(),
    ])
    .boxed()
}

fn file_and_prompt_request() -> BoxedStrategy<FrontendRequest> {
    Union::new([
        (text(), prop::collection::vec(any::<u8>(), 0..64))
            .prop_map(|(name, bytes)| FrontendRequest::PutBlob {
                name,
                bytes: BASE64.encode(bytes),
            })
            .boxed(),
        (text(), attachments(), maybe(text()))
            .prop_map(|(text, attachments, model)| FrontendRequest::PreparePrompt {
                text,
                attachments,
                model,
            })
            .boxed(),
        (session(), blob())
            .prop_map(|(session, blob)| FrontendRequest::GetBlob { session, blob })
            .boxed(),
        (session(), blob(), any::<u32>(), any::<u32>())
            .prop_map(|(session, blob, width, height)| FrontendRequest::Thumbnail {
                session,
                blob,
                width,
                height,
            })
            .boxed(),
        (maybe(session()), text(), text())
            .prop_map(|(session, name, arguments)| FrontendRequest::ExpandCommand {
                session,
                name,
                arguments,
            })
            .boxed(),
    ])
    .boxed()
}

fn host_request() -> BoxedStrategy<FrontendRequest> {
    use ListedItemKind as List;
    let lists = [
        List::Files,
        List::Models,
        List::Agents,
        List::Subagents,
        List::Skills,
        List::Hooks,
        List::Config,
        List::Commands,
    ];
    let decisions = [TrustDecision::Trust, TrustDecision::TrustAndAsk, TrustDecision::Decline];
    let json = prop_oneof![
        Just(serde_json::json!({ "a": [1, null] })),
        text().prop_map(serde_json::Value::from)
    ];
    Union::new([
        (maybe(text()), maybe(text()))
            .prop_map(|(model, effort)| FrontendRequest::Status { model, effort })
            .boxed(),
        one_of(&lists).prop_map(|list| FrontendRequest::List { list }).boxed(),
        Just(FrontendRequest::Doctor).boxed(),
        (report(), any::<bool>())
            .prop_map(|(report, settled)| FrontendRequest::Report { report, settled })
            .boxed(),
        (report(), text(), one_of(&[ReportAction::Restart, ReportAction::Revoke]))
            .prop_map(|(report, item, action)| FrontendRequest::RunReportAction {
                report,
                item,
                action,
            })
            .boxed(),
        Just(FrontendRequest::ReviewTrust).boxed(),
        (one_of(&decisions), maybe(text()))
            .prop_map(|(decision, seen)| FrontendRequest::SetTrust { decision, seen })
            .boxed(),
        text().prop_map(|model| FrontendRequest::SetDefaultModel { model }).boxed(),
        Just(FrontendRequest::DiscoverProviders).boxed(),
        (text(), text(), any::<bool>())
            .prop_map(|(provider, key, save_rejected)| FrontendRequest::Login {
                provider,
                key: ProviderKey(key),
                save_rejected,
            })
            .boxed(),
        (text(), text(), text(), text())
            .prop_map(|(name, base_url, key, model)| FrontendRequest::AddProvider {
                name,
                base_url,
                key: ProviderKey(key),
                model,
            })
            .boxed(),
        (text(), json).prop_map(|(name, value)| FrontendRequest::SetConfig { name, value }).boxed(),
    ])
    .boxed()
}

/// Requests that a server answers.
fn request() -> BoxedStrategy<FrontendRequest> {
    Union::new_weighted(vec![
        (3, session_request()),
        (1, file_and_prompt_request()),
        (2, host_request()),
    ])
    .boxed()
}

fn body_bytes(parts: &HttpRequestParts) -> &[u8] {
    match &parts.body {
        RequestBody::None => &[],
        RequestBody::Json(bytes) | RequestBody::Bytes(bytes) => bytes,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_request_survives_its_http_form(request in request()) {
        let parts = to_http(&request).expect("a server answers it");
        let query = Some(parts.query.as_str()).filter(|query| !query.is_empty());
        let parsed = parse(&parts.method, &parts.path, query, body_bytes(&parts));
        prop_assert_eq!(parsed, Ok(request));
    }

    #[test]
    fn a_request_needs_at_least_the_right_of_its_route(request in request()) {
        let parts = to_http(&request).expect("a server answers it");
        let RouteLookup::Found(route, _) = find_route(&parts.method, &parts.path) else {
            panic!("{parts:?}");
        };
        let needed = required_right(&request);
        let is_full_mode = matches!(
            &request,
            FrontendRequest::SessionOp {
                op: SessionOp::SetMode { mode: PermissionMode::Full },
                ..
            }
        );
        match is_full_mode {
            true => prop_assert_eq!(needed, AccessRight::Admin),
            false => prop_assert_eq!(route.access, RouteAccess::Needs(needed)),
        }
    }

    #[test]
    fn no_input_panics(
        index in 0usize..60,
        path in "[/a-z0-9{}%-]{0,40}",
        query in "[a-z=&%0-9]{0,40}",
        body in "(?s).{0,60}",
    ) {
        let route = all_routes().nth(index);
        let (method, path) = match route {
            Some(route) => (route.method.clone(), route.path.replace("{id}", &path)),
            None => (Method::GET, path),
        };
        let _ = parse(&method, &path, Some(&query), body.as_bytes());
    }
}

#[test]
fn the_generated_requests_reach_every_route_of_the_host() {
    let mut runner = TestRunner::deterministic();
    let mut missing: Vec<&Route> = all_routes().filter(|route| !route.tags.is_empty()).collect();
    assert!(missing.len() > 30);
    for _ in 0..5_000 {
        let request = request().new_tree(&mut runner).unwrap().current();
        let parts = to_http(&request).unwrap();
        let RouteLookup::Found(found, _) = find_route(&parts.method, &parts.path) else {
            panic!("{parts:?}");
        };
        missing.retain(|route| route.kind != found.kind);
    }
    let missing: Vec<RouteKind> = missing.iter().map(|route| route.kind).collect();
    assert_eq!(missing, []);
}

#[test]
fn no_two_routes_have_the_same_kind_or_the_same_method_and_path() {
    for (index, route) in all_routes().enumerate() {
        for other in all_routes().skip(index + 1) {
            assert_ne!(route.kind, other.kind);
            assert!(route.method != other.method || route.path != other.path, "{}", route.path);
        }
    }
}

#[test]
fn requests_of_the_own_process_have_no_http_form() {
    for request in [
        FrontendRequest::SetModel { model: "a/b".to_owned(), persist: ModelChoiceScope::Session },
        FrontendRequest::SetEffort { effort: None },
        FrontendRequest::AttachFile { path: "a".to_owned() },
        FrontendRequest::RunStatusLine { input: Default::default() },
        FrontendRequest::ExportSession { session: SessionId(Uuid::nil()), file: String::new() },
    ] {
        assert_eq!(to_http(&request), None, "{request:?}");
    }
}

#[test]
fn unknown_fields_are_ignored_and_unknown_values_refused() {
    let id = Uuid::from_u128(7);
    let post = |path: &str, body: &str| parse(&Method::POST, path, None, body.as_bytes());
    let ops = format!("/v1/sessions/{id}/ops");
    let expected =
        FrontendRequest::SessionOp { session: SessionId(id), id: None, op: SessionOp::Compact };
    assert_eq!(post(&ops, r#"{"op":"compact","new":1}"#), Ok(expected.clone()));
    // The path decides, whatever the body says.
    let other = Uuid::from_u128(8);
    let body = format!(r#"{{"op":"compact","session":"{other}","request":"doctor"}}"#);
    assert_eq!(post(&ops, &body), Ok(expected));
    // As in JSON Schema, `3.0` is an integer.
    let fork = post(&format!("/v1/sessions/{id}/fork"), r#"{"turn":3.0}"#);
    assert_eq!(fork, Ok(FrontendRequest::ForkSession { session: SessionId(id), turn: Some(3) }));
    let get = |path: &str, query: &str| parse(&Method::GET, path, Some(query), &[]);
    let changes = get(&format!("/v1/sessions/{id}/changes"), "scope=since");
    assert!(changes.is_ok(), "{changes:?}");
    for refused in [
        post(&format!("/v1/sessions/{id}/fork"), r#"{"turn":3.5}"#),
        post(&format!("/v1/sessions/{id}/fork"), r#"{"turn":-3.0}"#),
        post(&ops, r#"{"op":"explode"}"#),
        post(&ops, r#"{"op":"set_mode","mode":"god"}"#),
        post(&ops, "[]"),
        post(&ops, ""),
        post("/v1/sessions/x/ops", r#"{"op":"compact"}"#),
        get("/v1/lists/secrets", ""),
        get("/v1/search", ""),
        get("/v1/prompts", "limit=-1"),
        get("/v1/prompts", "limit=1&limit=2"),
        get(&format!("/v1/sessions/{id}/events"), "live=some"),
    ] {
        assert!(matches!(refused, Err(RequestError::Invalid { .. })), "{refused:?}");
    }
    assert!(get("/v1/prompts", "limit=1&new=2&new=3").is_ok());
    assert!(matches!(get("/v1/status/", ""), Err(RequestError::NotFound { .. })));
}
