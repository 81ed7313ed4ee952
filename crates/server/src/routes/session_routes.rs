//! Routes of sessions: their list, events, queries, operations and files.

use super::table::{
    ADMIN, CREATED, DONE, OPENED, WRITE, get, in_path, optional, query, required, response,
    with_default,
};
use super::{ParameterType, Route, RouteAnswer, RouteBody, RouteKind, RouteParameter};
use axum::http::Method;

const fn session(field: &'static str) -> RouteParameter {
    in_path("id", field, ParameterType::Session, "ID of the session.")
}

const fn limit() -> RouteParameter {
    optional("limit", "query.limit", ParameterType::Number32, "Maximum number of items.")
}

const fn folder() -> RouteParameter {
    optional("folder", "query.workspace", ParameterType::Text, "Only sessions in this folder.")
}

const SESSION: RouteParameter = session("session");
const QUERIED_SESSION: RouteParameter = session("query.session");
const BLOB: RouteParameter =
    in_path("blob", "blob", ParameterType::Blob, "SHA-256 digest of the content.");

/// Routes of sessions.
pub(super) static SESSION_ROUTES: &[Route] = &[
    query(
        RouteKind::Sessions,
        "/v1/sessions",
        &[("request", "query"), ("query.query", "sessions")],
        &[folder()],
    ),
    get(
        RouteKind::OpenSessions,
        "/v1/open-sessions",
        &[("request", "list_open_sessions")],
        &[],
        response(&["open_sessions"]),
    ),
    Route {
        kind: RouteKind::NewSession,
        method: Method::POST,
        path: "/v1/sessions",
        access: WRITE,
        parameters: &[],
        tags: &[("request", "new_session")],
        body: RouteBody::OptionalJson,
        answer: CREATED,
    },
    Route {
        kind: RouteKind::DeleteSession,
        method: Method::DELETE,
        path: "/v1/sessions/{id}",
        access: ADMIN,
        parameters: &[SESSION],
        tags: &[("request", "delete_session")],
        body: RouteBody::None,
        answer: DONE,
    },
    Route {
        kind: RouteKind::RenameSession,
        method: Method::PUT,
        path: "/v1/sessions/{id}/title",
        access: WRITE,
        parameters: &[SESSION],
        tags: &[("request", "rename_session")],
        body: RouteBody::Json,
        answer: DONE,
    },
    Route {
        kind: RouteKind::OpenSession,
        method: Method::POST,
        path: "/v1/sessions/{id}/open",
        access: WRITE,
        parameters: &[SESSION],
        tags: &[("request", "open_session")],
        body: RouteBody::OptionalJson,
        answer: OPENED,
    },
    Route {
        kind: RouteKind::CloseSession,
        method: Method::POST,
        path: "/v1/sessions/{id}/close",
        access: WRITE,
        parameters: &[SESSION],
        tags: &[("request", "close_session")],
        body: RouteBody::None,
        answer: DONE,
    },
    Route {
        kind: RouteKind::ForkSession,
        method: Method::POST,
        path: "/v1/sessions/{id}/fork",
        access: WRITE,
        parameters: &[SESSION],
        tags: &[("request", "fork_session")],
        body: RouteBody::OptionalJson,
        answer: CREATED,
    },
    Route {
        kind: RouteKind::SessionOp,
        method: Method::POST,
        path: "/v1/sessions/{id}/ops",
        access: WRITE,
        parameters: &[SESSION],
        tags: &[("request", "session_op")],
        body: RouteBody::Json,
        answer: RouteAnswer::OpResult,
    },
    get(
        RouteKind::SessionEvents,
        "/v1/sessions/{id}/events",
        &[("request", "query"), ("query.query", "events")],
        &[
            QUERIED_SESSION,
            optional(
                "after",
                "query.after",
                ParameterType::Cursor,
                "Only events after this position. A stream without it starts now.",
            ),
            optional(
                "limit",
                "query.limit",
                ParameterType::Number32,
                "Maximum number of facts; a stream ignores it.",
            ),
            optional(
                "live",
                "",
                ParameterType::Choice(&["all", "none"]),
                "`none` for a stream of facts without live events.",
            ),
            optional(
                "until",
                "",
                ParameterType::Choice(&["turn"]),
                "`turn` to end the stream with the turn.",
            ),
            optional(
                "user",
                "",
                ParameterType::Flag,
                "`true` if a user is present to answer questions while the stream lasts; `false` to have \
                 them declined while no client has a user. It needs the right `write`.",
            ),
        ],
        RouteAnswer::SessionEvents,
    ),
    query(
        RouteKind::SessionPrompts,
        "/v1/sessions/{id}/prompts",
        &[("request", "query"), ("query.query", "prompts")],
        &[QUERIED_SESSION, limit()],
    ),
    query(
        RouteKind::WorkspacePrompts,
        "/v1/prompts",
        &[("request", "query"), ("query.query", "prompts")],
        &[limit()],
    ),
    query(
        RouteKind::Context,
        "/v1/sessions/{id}/context",
        &[("request", "query"), ("query.query", "context")],
        &[QUERIED_SESSION],
    ),
    query(
        RouteKind::Jobs,
        "/v1/sessions/{id}/jobs",
        &[("request", "query"), ("query.query", "jobs")],
        &[QUERIED_SESSION],
    ),
    query(
        RouteKind::Transcript,
        "/v1/sessions/{id}/transcript",
        &[("request", "query"), ("query.query", "transcript")],
        &[QUERIED_SESSION],
    ),
    query(
        RouteKind::Changes,
        "/v1/sessions/{id}/changes",
        &[("request", "query"), ("query.query", "changes")],
        &[
            QUERIED_SESSION,
            required(
                "scope",
                "query.scope",
                ParameterType::Choice(&["last_turn", "all", "last_undo", "since"]),
                "Changes to include.",
            ),
            with_default(
                "seq",
                "0",
                "query.seq",
                ParameterType::Number64,
                "Position in the log, for the scope `since`.",
            ),
            optional(
                "direction",
                "query.direction",
                ParameterType::Choice(&["reverse", "forward"]),
                "The changes, or their undo.",
            ),
        ],
    ),
    query(
        RouteKind::FindText,
        "/v1/sessions/{id}/find",
        &[("request", "query"), ("query.query", "find_text")],
        &[QUERIED_SESSION, required("text", "query.text", ParameterType::Text, "Text to find.")],
    ),
    get(
        RouteKind::RenderSession,
        "/v1/sessions/{id}/export",
        &[("request", "render_session")],
        &[
            SESSION,
            required(
                "format",
                "format",
                ParameterType::Choice(&["html", "markdown", "json_lines"]),
                "The format.",
            ),
        ],
        response(&["export"]),
    ),
    query(
        RouteKind::SearchSessions,
        "/v1/search",
        &[("request", "query"), ("query.query", "search_sessions")],
        &[
            required(
                "words",
                "query.words",
                ParameterType::Text,
                "Words that must all occur in the same text.",
            ),
            folder(),
        ],
    ),
    query(RouteKind::Tools, "/v1/tools", &[("request", "query"), ("query.query", "tools")], &[]),
    Route {
        kind: RouteKind::PutBlob,
        method: Method::POST,
        path: "/v1/blobs",
        access: WRITE,
        parameters: &[required(
            "name",
            "name",
            ParameterType::Text,
            "File name, shown to the user and the model.",
        )],
        tags: &[("request", "put_blob")],
        body: RouteBody::Bytes,
        answer: response(&["blob_stored"]),
    },
    get(
        RouteKind::GetBlob,
        "/v1/sessions/{id}/blobs/{blob}",
        &[("request", "get_blob")],
        &[SESSION, BLOB],
        RouteAnswer::Bytes,
    ),
    get(
        RouteKind::Thumbnail,
        "/v1/sessions/{id}/blobs/{blob}/thumbnail",
        &[("request", "thumbnail")],
        &[
            SESSION,
            BLOB,
            required("width", "width", ParameterType::Number32, "Maximum width in pixels."),
            required("height", "height", ParameterType::Number32, "Maximum height in pixels."),
        ],
        response(&["thumbnail"]),
    ),
    Route {
        kind: RouteKind::PreparePrompt,
        method: Method::POST,
        path: "/v1/prompts/prepare",
        access: WRITE,
        parameters: &[],
        tags: &[("request", "prepare_prompt")],
        body: RouteBody::Json,
        answer: response(&["prepared_prompt"]),
    },
    Route {
        kind: RouteKind::ExpandCommand,
        method: Method::POST,
        path: "/v1/commands/expand",
        access: WRITE,
        parameters: &[],
        tags: &[("request", "expand_command")],
        body: RouteBody::Json,
        answer: response(&["prompt", "done"]),
    },
];
