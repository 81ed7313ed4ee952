//! Code queries and their answers, as callers see them.

/// A query for [`LanguageServers::query`](crate::LanguageServers::query).
#[derive(Clone, Debug)]
pub enum CodeQuery {
    /// Query about the symbol at a position, such as `textDocument/definition`.
    Position {
        /// Kind of query.
        query: PositionQuery,
        /// File that contains the position.
        path: String,
        /// Line, counted from 1.
        line: u32,
        /// Character in the line, counted from 1.
        character: u32,
    },
    /// Lists the symbols of a file (`textDocument/documentSymbol`).
    DocumentSymbols {
        /// File to list.
        path: String,
    },
    /// Searches the symbols of the workspace by name (`workspace/symbol`).
    WorkspaceSymbols {
        /// File whose server is queried; `None` queries all servers.
        path: Option<String>,
        /// Name to search for.
        query: String,
    },
}

/// Kind of a [`CodeQuery::Position`] query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionQuery {
    /// Definition of the symbol.
    Definition,
    /// Uses of the symbol.
    References,
    /// Type and documentation of the symbol.
    Hover,
    /// Implementations of the symbol.
    Implementation,
    /// Call hierarchy items at the position.
    CallHierarchy,
    /// Callers of the symbol.
    IncomingCalls,
    /// Functions that the symbol calls.
    OutgoingCalls,
}

impl PositionQuery {
    /// Returns the name that the model uses, such as `goToDefinition`.
    pub(super) fn name(self) -> &'static str {
        match self {
            PositionQuery::Definition => "goToDefinition",
            PositionQuery::References => "findReferences",
            PositionQuery::Hover => "hover",
            PositionQuery::Implementation => "goToImplementation",
            PositionQuery::CallHierarchy => "prepareCallHierarchy",
            PositionQuery::IncomingCalls => "incomingCalls",
            PositionQuery::OutgoingCalls => "outgoingCalls",
        }
    }

    /// Returns the LSP method.
    pub(super) fn method(self) -> &'static str {
        match self {
            PositionQuery::Definition => "textDocument/definition",
            PositionQuery::References => "textDocument/references",
            PositionQuery::Hover => "textDocument/hover",
            PositionQuery::Implementation => "textDocument/implementation",
            PositionQuery::CallHierarchy
            | PositionQuery::IncomingCalls
            | PositionQuery::OutgoingCalls => "textDocument/prepareCallHierarchy",
        }
    }

    /// Returns the alternative to suggest if a server does not support the query, such as `grep`.
    pub(super) fn fallback_hint(self) -> &'static str {
        match self {
            PositionQuery::Definition => "use grep",
            PositionQuery::References | PositionQuery::Hover => "use goToDefinition or grep",
            PositionQuery::Implementation
            | PositionQuery::CallHierarchy
            | PositionQuery::IncomingCalls => "use findReferences or grep",
            PositionQuery::OutgoingCalls => "use goToDefinition or read",
        }
    }
}

/// Answer of servers to a [`CodeQuery`].
#[derive(Clone, Debug, Default)]
pub struct CodeQueryAnswer {
    /// Locations found.
    pub locations: Vec<CodeLocation>,
    /// Answer as prose, such as the text of a hover.
    pub prose: String,
    /// Remarks for the model, such as omitted results.
    pub notes: Vec<String>,
}

/// A location in the workspace, with the symbol or source line found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeLocation {
    /// Path relative to the workspace, or absolute outside of it.
    pub path: String,
    /// Line, counted from 1.
    pub line: u32,
    /// Character, counted from 1.
    pub character: u32,
    /// Kind and name of the symbol, such as `fn parse`; empty if only the position is known.
    pub label: String,
    /// Source line at the location; empty if the file may not be shown.
    pub source_line: String,
    /// Nesting depth within other symbols.
    pub depth: usize,
}
