//! `lsp`: queries language servers about code. `windlass_lsp` talks to the servers; this tool
//! parses the input and renders the answers. It is offered only where there are language servers.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write as _;
use windlass_lsp::{CodeLocation, CodeQuery, CodeQueryAnswer, LanguageServers, PositionQuery};
use windlass_protocol::{CallDescription, ToolAccess, ToolOutput};
use windlass_sandbox::WorkingFolder;
use windlass_toolkit::{
    CallContext, CallFailure, StepContext, Tool, ToolDefinition, relative_path,
};

/// The `lsp` tool.
pub struct LspTool {
    pub(crate) language_servers: Option<LanguageServers>,
}

/// Input of the `lsp` tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LspInput {
    /// Operation.
    operation: LspOperation,
    /// The file.
    file_path: Option<String>,
    /// The line.
    line: Option<u32>,
    /// The character.
    character: Option<u32>,
    /// A name.
    query: Option<String>,
}

// The schema lists only the names of the operations, so the variants have no doc comments.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
enum LspOperation {
    GoToDefinition,
    GoToImplementation,
    FindReferences,
    Hover,
    DocumentSymbol,
    WorkspaceSymbol,
    PrepareCallHierarchy,
    IncomingCalls,
    OutgoingCalls,
    Symbols,
}

impl LspOperation {
    fn name(self) -> &'static str {
        match self {
            LspOperation::GoToDefinition => "goToDefinition",
            LspOperation::GoToImplementation => "goToImplementation",
            LspOperation::FindReferences => "findReferences",
            LspOperation::Hover => "hover",
            LspOperation::DocumentSymbol => "documentSymbol",
            LspOperation::WorkspaceSymbol => "workspaceSymbol",
            LspOperation::PrepareCallHierarchy => "prepareCallHierarchy",
            LspOperation::IncomingCalls => "incomingCalls",
            LspOperation::OutgoingCalls => "outgoingCalls",
            LspOperation::Symbols => "symbols",
        }
    }

    /// Returns the `PositionQuery` of an operation on a position; `None` for the others.
    fn position_query(self) -> Option<PositionQuery> {
        match self {
            LspOperation::GoToDefinition => Some(PositionQuery::Definition),
            LspOperation::GoToImplementation => Some(PositionQuery::Implementation),
            LspOperation::FindReferences => Some(PositionQuery::References),
            LspOperation::Hover => Some(PositionQuery::Hover),
            LspOperation::PrepareCallHierarchy => Some(PositionQuery::CallHierarchy),
            LspOperation::IncomingCalls => Some(PositionQuery::IncomingCalls),
            LspOperation::OutgoingCalls => Some(PositionQuery::OutgoingCalls),
            LspOperation::DocumentSymbol
            | LspOperation::WorkspaceSymbol
            | LspOperation::Symbols => None,
        }
    }
}

impl LspInput {
    fn path(&self) -> Option<&str> {
        self.file_path.as_deref().filter(|path| !path.is_empty())
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref().map(str::trim).filter(|query| !query.is_empty())
    }

    /// Converts the input to a `CodeQuery`, or fails with the missing fields and an example.
    fn to_code_query(&self) -> Result<CodeQuery, CallFailure> {
        let operation = self.operation;
        let missing_fields = |fields: &str, example: &str| {
            let name = operation.name();
            let example = format!("{{\"operation\": \"{name}\", {example}}}");
            CallFailure::new(format!("{name} requires {fields}, for example {example}"))
        };
        if let Some(query) = operation.position_query() {
            let (Some(path), Some(line @ 1..), Some(character @ 1..)) =
                (self.path(), self.line, self.character)
            else {
                return Err(missing_fields(
                    "filePath, line and character (both counted from 1)",
                    "\"filePath\": \"src/main.rs\", \"line\": 12, \"character\": 5",
                ));
            };
            return Ok(CodeQuery::Position { query, path: path.to_owned(), line, character });
        }
        if operation == LspOperation::DocumentSymbol {
            let path = self
                .path()
                .ok_or_else(|| missing_fields("filePath", "\"filePath\": \"src/main.rs\""))?;
            return Ok(CodeQuery::DocumentSymbols { path: path.to_owned() });
        }
        let query =
            self.query().ok_or_else(|| missing_fields("query", "\"query\": \"parse\""))?.to_owned();
        let path = self.path().filter(|_| operation == LspOperation::WorkspaceSymbol);
        Ok(CodeQuery::WorkspaceSymbols { path: path.map(str::to_owned), query })
    }
}

#[async_trait]
impl Tool for LspTool {
    type Input = LspInput;

    fn name(&self) -> &str {
        "lsp"
    }

    fn is_served(&self) -> bool {
        true
    }

    fn describe_call(&self, input: &LspInput, root: &str) -> Option<CallDescription> {
        let path = input.file_path.as_deref().map(|path| relative_path(path, root));
        let target = match (path, input.line) {
            (Some(path), Some(line)) => format!("{path}:{line}"),
            (Some(path), None) => path.to_owned(),
            (None, _) => input.query.clone().unwrap_or_default(),
        };
        let object = format!("{} {target}", input.operation.name());
        Some(CallDescription::new("Look up", "looking up", object))
    }

    fn is_offered(&self, _context: &StepContext) -> bool {
        self.language_servers.is_some()
    }

    async fn describe(&self, _context: &StepContext) -> ToolDefinition {
        ToolDefinition::for_input::<LspInput>(include_str!("description.md"))
    }

    fn resolve_paths(&self, input: &mut LspInput, folder: &WorkingFolder) {
        if let Some(path) = &mut input.file_path {
            *path = folder.resolve(path).into_owned();
        }
    }

    fn access(&self, input: &LspInput) -> Vec<ToolAccess> {
        let search = || ToolAccess::Search { path: ".".to_owned() };
        let file = input.path().map(|path| ToolAccess::Read { path: path.to_owned() });
        match input.operation {
            LspOperation::Symbols => vec![search()],
            LspOperation::WorkspaceSymbol => std::iter::once(search()).chain(file).collect(),
            LspOperation::GoToDefinition
            | LspOperation::GoToImplementation
            | LspOperation::FindReferences
            | LspOperation::Hover
            | LspOperation::DocumentSymbol
            | LspOperation::PrepareCallHierarchy
            | LspOperation::IncomingCalls
            | LspOperation::OutgoingCalls => file.into_iter().collect(),
        }
    }

    async fn run(
        &self,
        mut input: LspInput,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure> {
        if input.operation == LspOperation::WorkspaceSymbol && input.query().is_none() {
            input.query = symbol_at_position(&input, cx);
        }
        let query = input.to_code_query()?;
        let Some(language_servers) = &self.language_servers else {
            return Err(CallFailure::new("No language servers are available. Use grep and read."));
        };
        let answer = language_servers.query(cx, query).await?;
        let text = render_answer(&input, &answer);
        Ok(ToolOutput { text, ..ToolOutput::default() })
    }
}

/// Returns the name at the position that the input gives in place of a query.
fn symbol_at_position(input: &LspInput, cx: &CallContext<'_>) -> Option<String> {
    let (line, character) = (input.line?.checked_sub(1)?, input.character?.checked_sub(1)?);
    let path = cx.world.resolve_path(input.path()?).ok()?;
    let bytes = cx.world.read_unasked(&path)?;
    let text = String::from_utf8_lossy(&bytes);
    name_at(text.lines().nth(line as usize)?, character as usize)
}

/// Returns the name in a line that includes or ends before the character at an index.
fn name_at(line: &str, index: usize) -> Option<String> {
    let is_name_char = |c: &char| c.is_alphanumeric() || *c == '_';
    let chars: Vec<char> = line.chars().collect();
    let (before, after) = chars.split_at_checked(index)?;
    let start: Vec<char> = before.iter().rev().copied().take_while(is_name_char).collect();
    let end = after.iter().copied().take_while(is_name_char);
    let name: String = start.into_iter().rev().chain(end).collect();
    (!name.is_empty()).then_some(name)
}

/// Renders a `CodeQueryAnswer` for the model.
fn render_answer(input: &LspInput, answer: &CodeQueryAnswer) -> String {
    let mut text = match input.operation {
        LspOperation::DocumentSymbol => answer.locations.iter().map(render_outline_entry).collect(),
        LspOperation::WorkspaceSymbol => answer.locations.iter().map(render_symbol).collect(),
        LspOperation::Symbols => render_by_file(&answer.locations),
        LspOperation::Hover => format!("{}\n", answer.prose),
        LspOperation::GoToDefinition
        | LspOperation::GoToImplementation
        | LspOperation::FindReferences
        | LspOperation::PrepareCallHierarchy
        | LspOperation::IncomingCalls
        | LspOperation::OutgoingCalls => {
            answer.locations.iter().map(render_location).collect::<String>()
        }
    };
    let text_is_empty = text.trim().is_empty();
    if text_is_empty && answer.notes.is_empty() {
        let query = input.query().unwrap_or_default();
        return format!("No symbol matches {query}. Try part of the name, or grep.");
    }
    for note in &answer.notes {
        let _ = match text_is_empty {
            true => writeln!(text, "{note}"),
            false => writeln!(text, "[{note}]"),
        };
    }
    text.trim().to_owned()
}

/// Renders `src/a.rs:12:5: let x = parse(text);`.
fn render_location(location: &CodeLocation) -> String {
    let CodeLocation { path, line, character, label, source_line, .. } = location;
    let position = format!("{path}:{line}:{character}");
    match (path.starts_with('/'), label.as_str(), source_line.as_str()) {
        (true, "", _) => format!("{position} (outside the project)\n"),
        (true, label, _) => format!("{position}: {label} (outside the project)\n"),
        (false, "", "") => format!("{position}\n"),
        (false, "", source_line) => format!("{position}: {source_line}\n"),
        (false, label, "") => format!("{position}: {label}\n"),
        (false, label, source_line) => format!("{position}: {label}\n    {source_line}\n"),
    }
}

/// Renders `12: fn parse`, indented by its depth.
fn render_outline_entry(location: &CodeLocation) -> String {
    format!("{}{}: {}\n", "  ".repeat(location.depth), location.line, location.label)
}

/// Renders `src/a.rs:12: fn parse  (in Parser)`.
fn render_symbol(location: &CodeLocation) -> String {
    format!("{}:{}: {}\n", location.path, location.line, location.label)
}

/// Groups lines by file, in the layout of `grep`.
fn render_by_file(locations: &[CodeLocation]) -> String {
    let mut files: Vec<(&str, String)> = Vec::new();
    for CodeLocation { path, line, label, source_line, .. } in locations {
        let text = if source_line.is_empty() { label } else { source_line };
        let entry = format!("{line}: {text}\n");
        match files.iter_mut().find(|(file, _)| file == path) {
            Some((_, lines)) => lines.push_str(&entry),
            None => files.push((path, entry)),
        }
    }
    files.into_iter().map(|(path, lines)| format!("{path}\n{lines}")).collect()
}

#[cfg(test)]
mod tests;
