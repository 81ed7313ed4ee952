//! Messages between a front end and its host: requests up, responses and events down.
//!
//! A front end knows nothing else. It gets two channels or a socket, and another front end
//! elsewhere could do everything that it does. The host answers every request exactly once, by its
//! `id`; events arrive at any time.

use crate::call_approval_and_outcome::{Attachment, BlobRef};
use crate::client_info::ClientInfo;
use crate::event::{Event, FactRecord};
use crate::fault::Fault;
pub use crate::frontend_request_types::{
    DoctorCheckStatus, ListRow, ListedItemKind, LoginResult, MAX_LISTED_FILES, ModelChoiceScope,
    ProviderKey, SessionExportFormat,
};
pub use crate::host_status::{
    HostStatus, ImageSize, ModelListItem, ProviderListItem, ServerKind, ServerStatus,
    StatusLineInput, TrustState,
};
use crate::ids_and_timestamps::{LogSeq, OpId, SessionId};
use crate::op_request::OpError;
use crate::ops_and_queries::{QueryReply, SessionOp, SessionQuery};
use crate::prompt_settings::PromptSettings;
use crate::report::{ReportAction, ReportKind, ReportRow};
use crate::session_stream::OpenSessionState;
use crate::transcript::ModelChoice;
use crate::trust_review::{TrustDecision, TrustReview};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request and its `id`, which the front end chooses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FrontendRequestMessage {
    /// Number that the [`HostMessage::Response`] repeats.
    pub id: u64,
    /// The request itself.
    #[serde(flatten)]
    pub request: FrontendRequest,
}

/// A message from the host to the front end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "down", rename_all = "snake_case")]
pub enum HostMessage {
    /// An event of an open session, or of a session that it started.
    Event {
        /// The event itself.
        event: Box<Event>,
    },
    /// The response to a request.
    Response {
        /// Number from [`FrontendRequestMessage::id`].
        id: u64,
        /// Response, or the reason why the request failed.
        response: Result<HostResponse, Fault>,
    },
    /// A notice for the user.
    Notice {
        /// Text of the notice, one or a few sentences.
        text: String,
    },
    /// A session stopped by itself; it accepts nothing more until it is opened again.
    SessionStopped {
        /// ID of the session.
        session: SessionId,
        /// Cause of the stop.
        fault: Fault,
    },
    /// The states of servers have changed.
    Servers {
        /// All servers, as in [`HostStatus::servers`].
        servers: Vec<ServerStatus>,
    },
    /// The connection to the server was lost, and is being made again.
    Disconnected {
        /// Reason of the loss.
        reason: String,
    },
    /// The connection to the server is back; nothing was missed.
    Reconnected,
    /// Questions of the open session that were asked before it was opened here.
    OpenQuestions {
        /// Facts that ask them, of the session and its subagents.
        records: Vec<FactRecord>,
    },
    /// The clients of the open session have changed.
    Clients {
        /// ID of the session.
        session: SessionId,
        /// All clients that watch it, with this one.
        clients: Vec<ClientInfo>,
        /// False if another process runs the session, which can only be watched here.
        is_live: bool,
    },
}

/// A request from the front end to its host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum FrontendRequest {
    /// Returns the state of the host: [`HostResponse::Status`].
    Status {
        /// Model whose properties to report, as `provider/model`; the one of the config if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Effort to report, one of [`HostStatus::efforts`]; the one of the config if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<String>,
    },
    /// Runs a read-only query: [`HostResponse::Reply`].
    Query {
        /// The query; [`QueryReply`] has one variant for each.
        query: SessionQuery,
    },
    /// Lists the sessions that are open in the host: [`HostResponse::OpenSessions`].
    ListOpenSessions,
    /// Sends an operation to an open session: [`HostResponse::OpAccepted`] or
    /// [`HostResponse::OpRejected`].
    SessionOp {
        /// Session ID from `HostResponse::SessionOpened`.
        session: SessionId,
        /// ID of the operation, which makes it safe to send again; a new one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<OpId>,
        /// The operation itself.
        #[serde(flatten)]
        op: SessionOp,
    },
    /// Starts a session: [`HostResponse::SessionOpened`].
    NewSession {
        /// Agent of the session; the default agent if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// Model of the session, as `provider/model`; the one of the config if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Reasoning effort or variant of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<String>,
    },
    /// Closes a session: [`HostResponse::Done`]. A turn under way resumes when it is opened again.
    CloseSession {
        /// ID of the session.
        session: SessionId,
    },
    /// Hands an open session over to the server of this machine, where it goes on:
    /// [`HostResponse::Done`].
    DetachSession {
        /// ID of the session.
        session: SessionId,
    },
    /// Opens a session and resumes its unfinished work: [`HostResponse::SessionOpened`].
    OpenSession {
        /// Session ID from `SessionQuery::Sessions`.
        session: SessionId,
        /// True to go on with a turn that was under way. Otherwise it is interrupted, for a user
        /// who looks at the session first.
        #[serde(default)]
        resume: bool,
    },
    /// Starts a session with a copy of another one up to the end of a turn:
    /// [`HostResponse::SessionOpened`].
    ForkSession {
        /// ID of the session to copy, from `SessionQuery::Sessions`.
        session: SessionId,
        /// Last turn to copy; the last finished turn if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn: Option<u32>,
    },
    /// Removes a session permanently: [`HostResponse::Done`].
    DeleteSession {
        /// Session ID from `SessionQuery::Sessions`.
        session: SessionId,
    },
    /// Stores bytes to attach to a prompt: [`HostResponse::BlobStored`].
    PutBlob {
        /// File name, shown to the user and the model.
        name: String,
        /// Content in base64.
        bytes: String,
    },
    /// Stores an image or document of the project to attach to a prompt:
    /// [`HostResponse::BlobStored`].
    AttachFile {
        /// Path of the file.
        path: String,
    },
    /// Reads the files and folders that a prompt mentions as `@PATH`, and checks its attachments:
    /// [`HostResponse::PreparedPrompt`].
    PreparePrompt {
        /// Text of the prompt.
        text: String,
        /// Files that are attached to it already.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        attachments: Vec<Attachment>,
        /// Model that will get the prompt, as `provider/model`; the one of the config if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// Returns the bytes of a blob that a session names: [`HostResponse::Bytes`].
    GetBlob {
        /// The session, or one that started it.
        session: SessionId,
        /// Reference from `Attachment::blob`, for example.
        blob: BlobRef,
    },
    /// Returns the pixels of a scaled-down copy of an image that a session names:
    /// [`HostResponse::Thumbnail`].
    Thumbnail {
        /// The session, or one that started it.
        session: SessionId,
        /// Reference to the image, from `Attachment::blob`.
        blob: BlobRef,
        /// Maximum width in pixels.
        width: u32,
        /// Maximum height in pixels.
        height: u32,
    },
    /// Lists the items that the user can choose from: [`HostResponse::Rows`].
    List {
        /// Kind of items to list.
        list: ListedItemKind,
    },
    /// Switches the open session, and later ones of this front end, to another model:
    /// [`HostResponse::Status`].
    SetModel {
        /// Model, as `provider/model`.
        model: String,
        /// Duration of the choice.
        persist: ModelChoiceScope,
    },
    /// Switches the reasoning effort or variant of the model, until the front end closes:
    /// [`HostResponse::Status`].
    SetEffort {
        /// One of [`HostStatus::efforts`]; absent for the setting of the config.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        effort: Option<String>,
    },
    /// Expands a custom command into a prompt, after running the command's shell steps in the open
    /// session: [`HostResponse::Prompt`], or [`HostResponse::Done`] if the model must not be
    /// prompted.
    ExpandCommand {
        /// Session that runs the shell steps; the open one of this front end if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<SessionId>,
        /// Name of the custom command, from `ListedItemKind::Commands`.
        name: String,
        /// Arguments of the command.
        arguments: String,
    },
    /// Checks the installation, including missing parts: [`HostResponse::Rows`].
    Doctor,
    /// Runs the user's own status line command (`tui.status_line`): [`HostResponse::StatusLine`].
    RunStatusLine {
        /// State of the session, which the command reads as JSON.
        input: StatusLineInput,
    },
    /// Exports a session to a new file: [`HostResponse::Path`].
    ExportSession {
        /// Session ID from `SessionQuery::Sessions`.
        session: SessionId,
        /// Path of the file. Its extension decides the format: `.html`, `.md`, `.json` or `.jsonl`;
        /// a bare `md` is a format without a name. A web page in the working folder if empty.
        file: String,
    },
    /// Returns a session in a format for people or other programs: [`HostResponse::Export`].
    RenderSession {
        /// Session ID from `SessionQuery::Sessions`.
        session: SessionId,
        /// The format.
        format: SessionExportFormat,
    },
    /// Sets the title of any session: [`HostResponse::Done`].
    RenameSession {
        /// Session ID from `SessionQuery::Sessions`.
        session: SessionId,
        /// The new title.
        title: String,
    },
    /// Returns a report: [`HostResponse::Report`].
    Report {
        /// The report to return.
        report: ReportKind,
        /// True to answer only when no MCP server is starting.
        #[serde(default)]
        settled: bool,
    },
    /// Runs an action on an item of a report: [`HostResponse::Report`] with the new rows.
    RunReportAction {
        /// Report that contains the item.
        report: ReportKind,
        /// ID of the item, from [`ReportRow::id`].
        item: String,
        /// The action to run.
        action: ReportAction,
    },
    /// Lists what this folder would make Windlass run or follow: [`HostResponse::TrustReview`].
    ReviewTrust,
    /// Trusts this folder in the state of its last review, or declines or revokes trust:
    /// [`HostResponse::Status`].
    SetTrust {
        /// Decision of the user.
        decision: TrustDecision,
        /// [`TrustReview::digest`] of the review that the user saw. If the folder has changed
        /// since, the decision is refused.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seen: Option<String>,
    },
    /// Saves the model of new sessions in the user's config: [`HostResponse::Done`].
    SetDefaultModel {
        /// Model, as `provider/model`.
        model: String,
    },
    /// Searches this machine for usable providers and models: [`HostResponse::Providers`].
    DiscoverProviders,
    /// Checks and saves the API key of a provider: [`HostResponse::Login`].
    Login {
        /// Name of the provider, as in config.
        provider: String,
        /// API key. It is never sent back, logged or shown.
        key: ProviderKey,
        /// True to save a key even if the provider rejects it.
        #[serde(default)]
        save_rejected: bool,
    },
    /// Adds an OpenAI-compatible server to the user's config: [`HostResponse::Login`].
    AddProvider {
        /// Name of the provider in the config.
        name: String,
        /// Base URL, for example `https://models.example.com/v1`.
        base_url: String,
        /// API key; empty if the server needs none.
        key: ProviderKey,
        /// Model to use; if empty, the server is asked for its models.
        model: String,
    },
    /// Saves a setting, such as the theme, in the user's config: [`HostResponse::Done`].
    SetConfig {
        /// Name of the setting, for example `tui.theme`.
        name: String,
        /// JSON value of the setting.
        value: serde_json::Value,
    },
}

impl FrontendRequest {
    /// Returns a request for the state of the host with the model of the config.
    pub fn status() -> FrontendRequest {
        FrontendRequest::Status { model: None, effort: None }
    }

    /// Returns a request for a session with this agent and the model of the config.
    pub fn new_session(agent: Option<String>) -> FrontendRequest {
        FrontendRequest::NewSession { agent, model: None, effort: None }
    }
}

/// A response to a [`FrontendRequest`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "answered", rename_all = "snake_case")]
pub enum HostResponse {
    /// The request was carried out or passed on.
    Done,
    /// Response to [`FrontendRequest::SessionOp`]: the facts of the operation are on record.
    OpAccepted {
        /// Last position of the log with all of them.
        seq: LogSeq,
    },
    /// Response to [`FrontendRequest::SessionOp`]: the operation is stored, and the next node of the
    /// fleet that runs the session does it. Its facts bear its ID.
    OpQueued,
    /// Response to [`FrontendRequest::SessionOp`]: the operation changed nothing.
    OpRejected {
        /// The reason.
        error: OpError,
    },
    /// Response to [`FrontendRequest::Status`]: the state of the host.
    Status {
        /// The complete state.
        status: Box<HostStatus>,
    },
    /// Response to [`FrontendRequest::Query`].
    Reply {
        /// Reply to the [`SessionQuery`].
        reply: QueryReply,
    },
    /// Response to [`FrontendRequest::ListOpenSessions`].
    OpenSessions {
        /// Open sessions, those that wait for the user first.
        sessions: Vec<OpenSessionState>,
    },
    /// A session is open, and the host sends its events after `head` from now on.
    SessionOpened {
        /// ID of the session.
        session: SessionId,
        /// Number of facts in the session's log.
        head: LogSeq,
        /// Model that the user chose for the session, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelChoice>,
    },
    /// Response to [`FrontendRequest::PutBlob`] and [`FrontendRequest::AttachFile`]: the content was
    /// stored.
    BlobStored {
        /// Attachment to add to `SessionOp::Prompt`.
        attachment: Attachment,
    },
    /// Response to [`FrontendRequest::PreparePrompt`].
    PreparedPrompt {
        /// Contents of the mentioned files and folders, to attach to the prompt.
        attachments: Vec<Attachment>,
        /// Attachments that the model would not get, and why. Empty if all is well.
        warnings: Vec<String>,
    },
    /// Response to [`FrontendRequest::GetBlob`]: the bytes of a blob.
    Bytes {
        /// Content in base64.
        bytes: String,
    },
    /// Response to [`FrontendRequest::Thumbnail`]: a scaled-down image.
    Thumbnail {
        /// Width of the thumbnail in pixels.
        width: u32,
        /// Red, green and blue of each pixel, row by row, in base64.
        bytes: String,
        /// Size of the original image.
        original_size: ImageSize,
    },
    /// Response to [`FrontendRequest::List`] and [`FrontendRequest::Doctor`]: a list.
    Rows {
        /// Rows in display order.
        rows: Vec<ListRow>,
    },
    /// Response to [`FrontendRequest::List`] for [`ListedItemKind::Models`].
    Models {
        /// Models in display order.
        models: Vec<ModelListItem>,
    },
    /// Response to [`FrontendRequest::ExpandCommand`]: a prompt that is ready to send.
    Prompt {
        /// Text of the prompt.
        text: String,
        /// Settings of the command, to send with the prompt.
        #[serde(default, skip_serializing_if = "PromptSettings::is_default")]
        settings: PromptSettings,
    },
    /// Response to [`FrontendRequest::ExportSession`]: a file was written.
    Path {
        /// Path of the written file.
        path: String,
    },
    /// Response to [`FrontendRequest::RenderSession`].
    Export {
        /// Name for a file with this content, without an extension.
        name: String,
        /// The content.
        text: String,
    },
    /// Response to [`FrontendRequest::Report`] and [`FrontendRequest::RunReportAction`].
    Report {
        /// Rows in display order, those of a group together.
        rows: Vec<ReportRow>,
    },
    /// Response to [`FrontendRequest::Login`] and [`FrontendRequest::AddProvider`].
    Login {
        /// Result of checking and saving the key.
        result: LoginResult,
    },
    /// Response to [`FrontendRequest::RunStatusLine`]: the output of the command.
    StatusLine {
        /// First line of the output.
        text: String,
    },
    /// Response to [`FrontendRequest::ReviewTrust`]: the effects of trusting this folder.
    TrustReview {
        /// Content of the folder and the effect of each answer.
        review: Box<TrustReview>,
    },
    /// Response to [`FrontendRequest::DiscoverProviders`]: the usable providers.
    Providers {
        /// Providers, most likely first.
        providers: Vec<ProviderListItem>,
    },
}
