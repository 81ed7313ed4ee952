//! Symbol queries: the symbols of a file and of the workspace.

use crate::documents::MAX_DOCUMENT_BYTES;
use crate::documents::file_watch;
use crate::documents::lsp_client::LspClient;
use crate::pool::server::LspServer;
use crate::positions::LineIndex;
use crate::query::code_query::CodeQueryAnswer;
use crate::query::locations::{self, LocationOrder};
use crate::query::symbol_name_ranking::rank_symbols;
use crate::query::{
    LspRequest, MAX_RETRIES, QueryOperation, QueryRunner, RetryAllowance, describe_error,
};
use futures_util::future::join_all;
use serde_json::json;
use std::sync::Arc;
use windlass_sandbox::CallWorkspace;
use windlass_toolkit::CallFailure;

/// Limit for the servers that one `workspace/symbol` search starts.
const MAX_STARTED_SERVERS: usize = 3;

impl QueryRunner<'_> {
    /// Queries the symbols of a file.
    pub(super) async fn document_symbols(
        &self,
        path: &str,
    ) -> Result<CodeQueryAnswer, CallFailure> {
        let operation = QueryOperation {
            name: "documentSymbol",
            method: "textDocument/documentSymbol",
            fallback_hint: "use grep",
        };
        let mut target = self.open_target(path, operation).await?;
        let uri = target.connection.documents().uri(&target.path);
        let params = json!({"textDocument": {"uri": uri}});
        let request = LspRequest { method: operation.method, params };
        let mut raws = locations::parse_document_symbols(
            &self.send_request(&mut target, &request).await?,
            &uri,
        );
        while raws.is_empty()
            && self.wait_for_retry(&mut target.retry, &target.server, &target.connection).await
        {
            raws = locations::parse_document_symbols(
                &self.send_request(&mut target, &request).await?,
                &uri,
            );
        }
        if raws.is_empty() {
            return Ok(self.empty_answer(&target, operation.name));
        }
        self.resolve_locations(target.connection.encoding(), LocationOrder::AsGiven, raws).await
    }

    /// Queries the symbols of the workspace, at one server or at all.
    pub(super) async fn workspace_symbols(
        &self,
        path: Option<&str>,
        query: &str,
    ) -> Result<CodeQueryAnswer, CallFailure> {
        let operation = QueryOperation {
            name: "workspaceSymbol",
            method: "workspace/symbol",
            fallback_hint: "use documentSymbol or grep",
        };
        if let Some(path) = path {
            let mut target = self.open_target(path, operation).await?;
            let request = LspRequest { method: operation.method, params: json!({"query": query}) };
            let mut raws = locations::parse_workspace_symbols(
                &self.send_request(&mut target, &request).await?,
            );
            while raws.is_empty()
                && self.wait_for_retry(&mut target.retry, &target.server, &target.connection).await
            {
                raws = locations::parse_workspace_symbols(
                    &self.send_request(&mut target, &request).await?,
                );
            }
            if raws.is_empty() {
                return Ok(self.empty_answer(&target, operation.name));
            }
            let raws = rank_symbols(query, raws);
            return self
                .resolve_locations(target.connection.encoding(), LocationOrder::AsGiven, raws)
                .await;
        }
        let servers = self.symbol_servers();
        if servers.is_empty() {
            return Err(CallFailure::new(
                "No language server matches the files at the workspace root. Set filePath to a \
                 file whose server to ask, or use grep",
            ));
        }
        let searches = servers.iter().map(|server| self.search_symbols(server, operation, query));
        let mut combined = CodeQueryAnswer::default();
        for answer in join_all(searches).await {
            match answer {
                Ok(answer) => {
                    combined.locations.extend(answer.locations);
                    combined.notes.extend(answer.notes);
                }
                Err(failure) => combined.notes.push(failure.text),
            }
        }
        Ok(combined)
    }

    /// Returns the running servers, and a few that would serve the workspace root.
    fn symbol_servers(&self) -> Vec<Arc<LspServer>> {
        let mut servers = self.pool.running_servers();
        let mut started = 0;
        for server in self.pool.root_servers(&self.cx.world) {
            if started < MAX_STARTED_SERVERS
                && !servers.iter().any(|other| Arc::ptr_eq(other, &server))
            {
                started += 1;
                servers.push(server);
            }
        }
        servers
    }

    async fn search_symbols(
        &self,
        server: &Arc<LspServer>,
        operation: QueryOperation,
        query: &str,
    ) -> Result<CodeQueryAnswer, CallFailure> {
        let connection = self.connect(server).await?;
        let server_name = &server.config().name;
        let QueryOperation { name, method, fallback_hint } = operation;
        if !connection.supports(method) {
            return Err(CallFailure::new(format!(
                "{server_name} does not support {name}; {fallback_hint}"
            )));
        }
        let mut retry = RetryAllowance {
            retries_left: self.open_any_file(server, &connection).await?,
            may_wait_for_idle: true,
        };
        let limit = self.pool.timeouts().answer;
        let raws = loop {
            let answer = connection.request(method, json!({"query": query}), limit).await;
            let answer = answer
                .map_err(|error| CallFailure::new(describe_error(server_name, error, limit)))?;
            let raws = locations::parse_workspace_symbols(&answer);
            if !raws.is_empty() || !self.wait_for_retry(&mut retry, server, &connection).await {
                break raws;
            }
        };
        self.resolve_locations(
            connection.encoding(),
            LocationOrder::AsGiven,
            rank_symbols(query, raws),
        )
        .await
    }

    /// Opens some file of the project at a server without open documents, because many servers
    /// index nothing before. Returns the number of retries that this allows.
    async fn open_any_file(
        &self,
        server: &LspServer,
        connection: &Arc<LspClient>,
    ) -> Result<u32, CallFailure> {
        if !connection.documents().recent_paths().is_empty() {
            return Ok(0);
        }
        let config = server.config().clone();
        let workspace = self.pool.workspace().clone();
        let find_file = move |granted: &CallWorkspace| {
            let file = workspace
                .list_files(&|path| config.language_id(path).is_some(), 1)
                .into_iter()
                .next();
            let text =
                file.and_then(|(path, _)| Some((file_watch::read_text(granted, &path)?, path)));
            Ok(text.filter(|(text, _)| text.len() <= MAX_DOCUMENT_BYTES))
        };
        let Some((text, path)) = self.cx.run_blocking(find_file).await? else { return Ok(0) };
        self.sync_document(connection, &path, &LineIndex::new(text));
        Ok(3 * MAX_RETRIES)
    }
}
