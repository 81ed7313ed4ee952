//! Connections to a session server: for `windlass attach`, `windlass run --attach` and `windlass ps`.

use crate::args::ServerAddressArgs;
use crate::setup::LoadedProject;
use anyhow::{Context, bail};
use secrecy::SecretString;
use std::path::PathBuf;
use std::sync::Arc;
use windlass_project::{Dirs, ServerFiles};
use windlass_protocol::frontend_messages::{FrontendRequest, HostResponse, HostStatus};
use windlass_protocol::{
    AccessRight, ClientKind, QueryReply, RequestError, SessionId, SessionQuery, SessionSummary,
};
use windlass_server::{Caller, FrontendService, RemoteHost, ServerAddress};

/// Name of the environment variable with a token.
const TOKEN_VARIABLE: &str = "WINDLASS_TOKEN";
/// Limit for a file with a token.
const MAX_TOKEN_FILE_BYTES: u64 = 4096;

/// A connection to a server.
pub(crate) struct ServerConnection {
    pub(crate) host: RemoteHost,
    pub(crate) caller: Caller,
}

impl ServerConnection {
    /// Connects to the server that the arguments name, and chooses the folder to work in: the one
    /// that was named, the project `root`, or the first folder of the server.
    pub(crate) async fn open(
        args: &ServerAddressArgs,
        (dirs, root): (&Dirs, &std::path::Path),
        kind: ClientKind,
    ) -> anyhow::Result<ServerConnection> {
        let host = connect(args, dirs).await?;
        let client = crate::local_client(kind);
        let mut caller = Caller::new(client, AccessRight::Admin);
        let is_named = args.workspace.is_some();
        let own = || windlass_protocol::display_text::workspace_name(root);
        caller.workspace = Some(args.workspace.clone().unwrap_or_else(own));
        let status = match request_status(&host, &caller).await {
            Err(RequestError::NotFound { .. }) if !is_named => {
                let own = caller.workspace.take().unwrap_or_default();
                let status = request_status(&host, &caller).await?;
                if kind != ClientKind::Terminal {
                    // The screen of a terminal shows the folder; a script would not see that its
                    // command works in another one.
                    bail!(
                        "the server does not work in {own}. Choose one of its folders, such as \
                         `--workspace {}`",
                        status.root
                    );
                }
                status
            }
            status => status?,
        };
        // The server's name of the folder, which its notices bear.
        caller.workspace = Some(status.root);
        caller.right = status.right.unwrap_or(AccessRight::Admin);
        Ok(ServerConnection { host, caller })
    }

    /// Returns the host as a service for a front end.
    pub(crate) fn service(&self) -> Arc<dyn FrontendService> {
        Arc::new(self.host.clone())
    }

    /// Finds a session of the server by its ID, or by a part of it.
    pub(crate) async fn find_session(&self, id: &str) -> anyhow::Result<SessionId> {
        if let Ok(session) = id.parse() {
            return Ok(session);
        }
        crate::session_lookup::match_session(&self.sessions(None).await?, id)
    }

    /// Returns the last session of the folder that a user worked in.
    pub(crate) async fn last_session(&self) -> anyhow::Result<SessionId> {
        let sessions = self.sessions(self.caller.workspace.clone()).await?;
        let session = sessions.iter().find(|row| row.parent.is_none()).map(|row| row.session);
        session.context("this folder has no session yet. `windlass attach` starts one")
    }

    async fn sessions(&self, workspace: Option<String>) -> anyhow::Result<Vec<SessionSummary>> {
        let request = FrontendRequest::Query { query: SessionQuery::Sessions { workspace } };
        let response = self.host.request(&self.caller, request).await?;
        let HostResponse::Reply { reply: QueryReply::Sessions { sessions } } = response else {
            bail!("the server did not answer with its sessions");
        };
        Ok(sessions)
    }
}

async fn request_status(host: &RemoteHost, caller: &Caller) -> Result<HostStatus, RequestError> {
    match host.request(caller, FrontendRequest::status()).await? {
        HostResponse::Status { status } => Ok(*status),
        _ => {
            let text = "the server did not answer with its status".to_owned();
            Err(RequestError::Unavailable { text })
        }
    }
}

/// Connects to the server that the arguments name.
pub(crate) async fn connect(args: &ServerAddressArgs, dirs: &Dirs) -> anyhow::Result<RemoteHost> {
    let address = match args.address.as_deref() {
        Some(url) if url.starts_with("http://") || url.starts_with("https://") => {
            let parsed = url.parse().with_context(|| format!("invalid URL {url}"))?;
            ServerAddress::Url(parsed, read_token(args)?)
        }
        Some(address) if !address.contains('/') && address.contains(':') => {
            bail!("a URL begins with `http://` or `https://`: http://{address}")
        }
        Some(url) if url.contains("://") => {
            bail!("a URL begins with `http://` or `https://`, not {url}")
        }
        Some(path) => ServerAddress::Socket(PathBuf::from(path)),
        None => match ServerFiles::new(dirs).running_server()? {
            Some(running) => ServerAddress::Socket(running.socket),
            None => bail!(
                "no server runs on this machine. Start one in a project folder: `windlass serve`"
            ),
        },
    };
    let socket = match &address {
        ServerAddress::Socket(path) => Some(path.clone()),
        ServerAddress::Url(..) | ServerAddress::Node(..) => None,
    };
    match (RemoteHost::connect(address).await, socket) {
        (Ok(host), _) => Ok(host),
        (Err(RequestError::Unavailable { .. }), Some(socket)) => bail!(
            "no server runs at {}. Start it in a project folder: `windlass serve`",
            socket.display()
        ),
        (Err(error), _) => Err(error.into()),
    }
}

fn read_token(args: &ServerAddressArgs) -> anyhow::Result<SecretString> {
    let token = match &args.token_file {
        Some(file) => {
            LoadedProject::check_private(file)?;
            let bytes = LoadedProject::read_file(&file.to_string_lossy(), MAX_TOKEN_FILE_BYTES)?;
            String::from_utf8(bytes).context("the token is not valid UTF-8")?
        }
        None => LoadedProject::env_variable(TOKEN_VARIABLE).with_context(|| {
            format!("a server at a URL needs a token: use --token-file, or set {TOKEN_VARIABLE}")
        })?,
    };
    let token = token.trim();
    crate::redact::add_secret(token);
    Ok(SecretString::from(token.to_owned()))
}
