//! A run in a server (`windlass run --attach`): the same turn, printer and exit codes, with the
//! config of the server.

use super::printer::TurnPrinter;
use super::run_session::RunSession;
use super::{RunOptions, op_of_resumed, read_prompt, turn_goal};
use crate::CliExit;
use crate::args::{RunArgs, ServerAddressArgs};
use crate::attachments::{PromptAttachments, read_attachments};
use crate::commands::server_connection::ServerConnection;
use crate::output_schema::OutputSchema;
use crate::setup::LoadedProject;
use crate::terminal::output;
use anyhow::{Context, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::sync::Arc;
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse};
use windlass_protocol::{
    ClientKind, Fault, LogPosition, LogSeq, PromptDelivery, PromptSettings, QueryReply, SessionId,
    SessionOp, SessionQuery, Transcript, TurnEndReason,
};
use windlass_server::{Caller, ClientAttendance, FrontendService, WatchOptions};
use windlass_toolkit::UserPresence;

/// Runs `windlass run --attach`.
pub(super) async fn run_attached(
    args: RunArgs,
    server: ServerAddressArgs,
) -> anyhow::Result<CliExit> {
    let resumes = args.session.is_some() || args.r#continue;
    let typed = args.prompt.clone().unwrap_or_default();
    if server.address.is_none() && is_url(&typed) {
        bail!("the server's URL belongs to the option: `--attach={typed} PROMPT`");
    }
    let prompt = read_prompt(args.prompt, resumes)?;
    if prompt.is_none() && !args.file.is_empty() {
        bail!("--file needs a prompt, and none was given");
    }
    let output_schema = args.output_schema.as_deref().map(OutputSchema::read).transpose()?;
    let (dirs, root) = LoadedProject::find_dirs()?;
    let kind = ClientKind::CommandLine;
    let connection = ServerConnection::open(&server, (&dirs, &root), kind).await?;
    let options = RunOptions {
        output_schema,
        mode: args.mode_args.mode,
        limits: args.limits.to_prompt_limits(),
        is_attached: true,
        ..RunOptions::new(args.output, args.yes)
    };
    let goal = turn_goal(args.until, args.goal);
    let settings = PromptSettings { goal, ..options.prompt_settings() };
    let session = match (&args.session, args.r#continue) {
        (Some(id), _) => Some(connection.find_session(id).await?),
        (None, true) => Some(connection.last_session().await?),
        (None, false) => None,
    };
    let server = ServerSession { service: connection.service(), caller: connection.caller };
    let op = match prompt {
        Some(text) => Some(server.prompt(text, &typed, &args.file, settings).await?),
        None => None,
    };
    let open = match session {
        Some(session) => FrontendRequest::OpenSession { session, resume: true },
        None => FrontendRequest::NewSession {
            agent: args.agent,
            model: args.model.clone(),
            effort: args.variant.clone(),
        },
    };
    server.run((open, args.model, args.variant), op, options).await
}

/// Returns true for a prompt that is only a URL.
fn is_url(prompt: &str) -> bool {
    let is_web = prompt.starts_with("http://") || prompt.starts_with("https://");
    is_web && !prompt.contains(char::is_whitespace)
}

/// A server and this client of it.
struct ServerSession {
    service: Arc<dyn FrontendService>,
    caller: Caller,
}

impl ServerSession {
    async fn request(&self, request: FrontendRequest) -> Result<HostResponse, Fault> {
        Ok(self.service.request(&self.caller, request).await?)
    }

    /// Returns the prompt with the files that the user names and mentions.
    async fn prompt(
        &self,
        text: String,
        typed: &str,
        files: &[String],
        settings: PromptSettings,
    ) -> anyhow::Result<SessionOp> {
        let store = async |name: String, bytes: Vec<u8>| {
            let bytes = STANDARD.encode(bytes);
            match self.request(FrontendRequest::PutBlob { name, bytes }).await? {
                HostResponse::BlobStored { attachment } => Ok(attachment),
                _ => bail!("the server did not store the file"),
            }
        };
        let PromptAttachments { mut attachments, texts } = read_attachments(store, files).await?;
        let mentioned = FrontendRequest::PreparePrompt {
            text: typed.to_owned(),
            attachments: attachments.clone(),
            model: None,
        };
        if let HostResponse::PreparedPrompt { attachments: more, warnings } =
            self.request(mentioned).await?
        {
            warnings.iter().for_each(|warning| output::print_note(&format!("note: {warning}")));
            attachments.extend(more);
        }
        let (text, delivery) = (text + &texts, PromptDelivery::default());
        Ok(SessionOp::Prompt { text, attachments, delivery, settings })
    }

    /// Opens the session, sends `op` and watches until it is done. The session stays open.
    async fn run(
        &self,
        (open, model, effort): (FrontendRequest, Option<String>, Option<String>),
        op: Option<SessionOp>,
        options: RunOptions,
    ) -> anyhow::Result<CliExit> {
        let is_new = matches!(open, FrontendRequest::NewSession { .. });
        let HostResponse::SessionOpened { session, head, .. } = self.request(open).await? else {
            bail!("the server did not open the session");
        };
        let transcript = self.transcript(session, head).await?;
        let op = if is_new { op } else { op_of_resumed(session, &transcript, (op, &options))? };
        // With `--yes`, the printer answers like a user.
        let is_attended =
            options.yes || output::user_presence(options.output) == UserPresence::Present;
        let watch = WatchOptions {
            after: Some(LogPosition::unchecked(head).into()),
            user: if is_attended { ClientAttendance::Present } else { ClientAttendance::Absent },
            without_live_events: false,
        };
        let items = self.service.watch_session(&self.caller, session, watch).await;
        let items = items.map_err(Fault::from)?;
        let server = (Arc::clone(&self.service), self.caller.clone());
        let (run_session, events) = RunSession::attached(server, session, items);
        let is_other_mode = |mode: &_| transcript.mode != Some(*mode);
        if let Some(mode) = options.mode.filter(is_other_mode) {
            // An error is that of the prompt, too.
            let _ = run_session.queue_op(SessionOp::SetMode { mode }).await.await;
        }
        if !is_new && (model.is_some() || effort.is_some()) {
            let recorded = || transcript.model_choice.as_ref().map(|choice| choice.model.clone());
            let model = match model.or_else(recorded) {
                Some(model) => model,
                None => self.default_model().await?,
            };
            let answer = run_session.queue_op(SessionOp::SetModel { model, effort }).await;
            if let Ok(Err(error)) = answer.await {
                bail!("{error}");
            }
        }
        let mut printer = TurnPrinter::new(options, transcript);
        let end = match printer.run_to_end(&run_session, events, (&[], op)).await {
            Ok(Some(end)) => end,
            Ok(None) => TurnEndReason::Interrupted,
            // The session refused the prompt.
            Err(fault @ (Fault::Config { .. } | Fault::Refused { .. }))
                if printer.turn.is_none() =>
            {
                return Err(fault.into());
            }
            Err(fault) => TurnEndReason::Failed { fault },
        };
        Ok(printer.print_end(session, end))
    }

    /// Returns the model of the folder.
    async fn default_model(&self) -> anyhow::Result<String> {
        match self.request(FrontendRequest::status()).await? {
            HostResponse::Status { status } => {
                status.model.context("--variant needs a model, and none is set. Add --model")
            }
            _ => bail!("the server did not answer with its status"),
        }
    }

    /// Returns the transcript of a session up to a position.
    async fn transcript(&self, session: SessionId, head: LogSeq) -> anyhow::Result<Transcript> {
        let (mut transcript, mut last) = (Transcript::default(), 0);
        while last < head {
            let query = SessionQuery::Events { session, after: last, limit: None };
            let HostResponse::Reply { reply: QueryReply::Events { events } } =
                self.request(FrontendRequest::Query { query }).await?
            else {
                bail!("the server did not answer with the facts of the session");
            };
            if events.is_empty() {
                break;
            }
            for record in events.iter().filter(|record| record.seq <= head) {
                transcript.push(record.seq, &record.fact);
            }
            last = events.last().map_or(head, |record| record.seq);
        }
        Ok(transcript)
    }
}
