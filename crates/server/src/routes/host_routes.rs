//! Routes of the host and of the server itself: status, reports, settings, tokens and logins.

use super::table::{ADMIN, DONE, READ, get, in_path, optional, response};
use super::{
    ParameterType, Route, RouteAccess, RouteAnswer, RouteBody, RouteKind, RouteParameter,
    ServerRoute,
};
use crate::metrics::OPEN_METRICS;
use crate::server_messages::{
    LoginCode, NewTokenRequest, NewTokenSecret, PageLoginRequest, ServerInfo, TokenList, schema_of,
};
use axum::http::Method;

/// Names of `ListedItemKind`.
const LISTS: &[&str] =
    &["files", "models", "agents", "subagents", "skills", "hooks", "config", "commands"];
/// Names of `ReportKind`.
const REPORTS: &[&str] =
    &["mcp_servers", "permissions", "language_servers", "plugins", "statistics"];

const REPORT_KIND: RouteParameter =
    in_path("kind", "report.kind", ParameterType::Choice(REPORTS), "The report.");
const REPORT_SESSION: RouteParameter =
    optional("session", "report.session", ParameterType::Session, "Session of the approvals.");
const REPORT_DAYS: RouteParameter =
    optional("days", "report.days", ParameterType::Number32, "Number of days up to today.");

/// Routes of the host and of the server itself.
pub(super) static HOST_ROUTES: &[Route] = &[
    get(
        RouteKind::Server(ServerRoute::ServerInfo),
        "/v1",
        &[],
        &[],
        RouteAnswer::ServerJson { status: 200, schema: schema_of::<ServerInfo> },
    ),
    get(
        RouteKind::Status,
        "/v1/status",
        &[("request", "status")],
        &[
            optional("model", "model", ParameterType::Text, "Model to report, `provider/model`."),
            optional("effort", "effort", ParameterType::Text, "Reasoning effort to report."),
        ],
        response(&["status"]),
    ),
    get(
        RouteKind::List,
        "/v1/lists/{list}",
        &[("request", "list")],
        &[in_path("list", "list", ParameterType::Choice(LISTS), "Kind of the items.")],
        response(&["rows", "models"]),
    ),
    get(
        RouteKind::Report,
        "/v1/reports/{kind}",
        &[("request", "report")],
        &[
            REPORT_KIND,
            REPORT_SESSION,
            REPORT_DAYS,
            optional(
                "settled",
                "settled",
                ParameterType::Flag,
                "`true` to answer only when no MCP server is starting.",
            ),
        ],
        response(&["report"]),
    ),
    Route {
        kind: RouteKind::RunReportAction,
        method: Method::POST,
        path: "/v1/reports/{kind}/actions",
        access: ADMIN,
        parameters: &[REPORT_KIND, REPORT_SESSION, REPORT_DAYS],
        tags: &[("request", "run_report_action")],
        body: RouteBody::Json,
        answer: response(&["report"]),
    },
    Route {
        kind: RouteKind::Doctor,
        method: Method::GET,
        path: "/v1/doctor",
        access: ADMIN,
        parameters: &[],
        tags: &[("request", "doctor")],
        body: RouteBody::None,
        answer: response(&["rows"]),
    },
    Route {
        kind: RouteKind::ReviewTrust,
        method: Method::GET,
        path: "/v1/trust",
        access: ADMIN,
        parameters: &[],
        tags: &[("request", "review_trust")],
        body: RouteBody::None,
        answer: response(&["trust_review"]),
    },
    Route {
        kind: RouteKind::SetTrust,
        method: Method::POST,
        path: "/v1/trust",
        access: ADMIN,
        parameters: &[],
        tags: &[("request", "set_trust")],
        body: RouteBody::Json,
        answer: response(&["status"]),
    },
    Route {
        kind: RouteKind::SetDefaultModel,
        method: Method::PUT,
        path: "/v1/default-model",
        access: ADMIN,
        parameters: &[],
        tags: &[("request", "set_default_model")],
        body: RouteBody::Json,
        answer: DONE,
    },
    Route {
        kind: RouteKind::DiscoverProviders,
        method: Method::GET,
        path: "/v1/providers",
        access: ADMIN,
        parameters: &[],
        tags: &[("request", "discover_providers")],
        body: RouteBody::None,
        answer: response(&["providers"]),
    },
    Route {
        kind: RouteKind::AddProvider,
        method: Method::POST,
        path: "/v1/providers",
        access: ADMIN,
        parameters: &[],
        tags: &[("request", "add_provider")],
        body: RouteBody::Json,
        answer: response(&["login"]),
    },
    Route {
        kind: RouteKind::SaveKey,
        method: Method::PUT,
        path: "/v1/keys",
        access: ADMIN,
        parameters: &[],
        tags: &[("request", "login")],
        body: RouteBody::Json,
        answer: response(&["login"]),
    },
    Route {
        kind: RouteKind::SetConfig,
        method: Method::PUT,
        path: "/v1/settings",
        access: ADMIN,
        parameters: &[],
        tags: &[("request", "set_config")],
        body: RouteBody::Json,
        answer: DONE,
    },
    get(RouteKind::HostEvents, "/v1/events", &[], &[], RouteAnswer::HostEvents),
    Route {
        kind: RouteKind::Server(ServerRoute::Tokens),
        method: Method::GET,
        path: "/v1/tokens",
        access: ADMIN,
        parameters: &[],
        tags: &[],
        body: RouteBody::None,
        answer: RouteAnswer::ServerJson { status: 200, schema: schema_of::<TokenList> },
    },
    Route {
        kind: RouteKind::Server(ServerRoute::NewToken),
        method: Method::POST,
        path: "/v1/tokens",
        access: ADMIN,
        parameters: &[],
        tags: &[],
        body: RouteBody::ServerJson(schema_of::<NewTokenRequest>),
        answer: RouteAnswer::ServerJson { status: 201, schema: schema_of::<NewTokenSecret> },
    },
    Route {
        kind: RouteKind::Server(ServerRoute::RevokeToken),
        method: Method::DELETE,
        path: "/v1/tokens/{name}",
        access: ADMIN,
        parameters: &[in_path("name", "", ParameterType::TokenName, "Name of the token.")],
        tags: &[],
        body: RouteBody::None,
        answer: RouteAnswer::Empty,
    },
    Route {
        kind: RouteKind::Server(ServerRoute::NewLoginCode),
        method: Method::POST,
        path: "/v1/links",
        access: ADMIN,
        parameters: &[],
        tags: &[],
        body: RouteBody::None,
        answer: RouteAnswer::ServerJson { status: 201, schema: schema_of::<LoginCode> },
    },
    Route {
        kind: RouteKind::Server(ServerRoute::PageLogin),
        method: Method::POST,
        path: "/v1/login",
        access: RouteAccess::Public,
        parameters: &[],
        tags: &[],
        body: RouteBody::ServerJson(schema_of::<PageLoginRequest>),
        answer: RouteAnswer::Empty,
    },
    Route {
        kind: RouteKind::Server(ServerRoute::PageLogout),
        method: Method::POST,
        path: "/v1/logout",
        access: READ,
        parameters: &[],
        tags: &[],
        body: RouteBody::None,
        answer: RouteAnswer::Empty,
    },
    get(
        RouteKind::Server(ServerRoute::Metrics),
        "/metrics",
        &[],
        &[],
        RouteAnswer::Text(OPEN_METRICS),
    ),
    get(
        RouteKind::Server(ServerRoute::OpenApi),
        "/openapi.json",
        &[],
        &[],
        RouteAnswer::Text("application/json"),
    ),
    Route {
        kind: RouteKind::Server(ServerRoute::Health),
        method: Method::GET,
        path: "/healthz",
        access: RouteAccess::Public,
        parameters: &[],
        tags: &[],
        body: RouteBody::None,
        answer: RouteAnswer::Empty,
    },
];
