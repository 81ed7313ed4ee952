//! `lsp`: what language servers know of code. They are asked by `windlass_lsp`; here is the tool,
//! and what their answers look like. It is offered only where there are servers.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use std::fmt::Write as _;
use windlass_lsp::{Answer, At, Code, Located, Question};
use windlass_protocol::{Access, Output};
use windlass_toolkit::{Cx, Definition, Failure, Scene, Tool};

/// The tool.
pub struct Lsp {
    pub(crate) code: Option<Code>,
}

/// What it is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Input {
    /// The question.
    operation: Operation,
    /// The file.
    file_path: Option<String>,
    /// Its line.
    line: Option<u32>,
    /// The character.
    character: Option<u32>,
    /// A name.
    query: Option<String>,
}

// A model is told the names alone, so they have no words of their own.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
enum Operation {
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

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Operation::GoToDefinition => "goToDefinition",
            Operation::GoToImplementation => "goToImplementation",
            Operation::FindReferences => "findReferences",
            Operation::Hover => "hover",
            Operation::DocumentSymbol => "documentSymbol",
            Operation::WorkspaceSymbol => "workspaceSymbol",
            Operation::PrepareCallHierarchy => "prepareCallHierarchy",
            Operation::IncomingCalls => "incomingCalls",
            Operation::OutgoingCalls => "outgoingCalls",
            Operation::Symbols => "symbols",
        }
    }

    /// What is asked of a place, if it is a place that is asked about.
    fn at(self) -> Option<At> {
        match self {
            Operation::GoToDefinition => Some(At::Definition),
            Operation::GoToImplementation => Some(At::Implementation),
            Operation::FindReferences => Some(At::References),
            Operation::Hover => Some(At::Hover),
            Operation::PrepareCallHierarchy => Some(At::Calls),
            Operation::IncomingCalls => Some(At::Incoming),
            Operation::OutgoingCalls => Some(At::Outgoing),
            Operation::DocumentSymbol | Operation::WorkspaceSymbol | Operation::Symbols => None,
        }
    }
}

impl Input {
    fn path(&self) -> Option<&str> {
        self.file_path.as_deref().filter(|path| !path.is_empty())
    }

    fn query(&self) -> Option<&str> {
        self.query.as_deref().map(str::trim).filter(|query| !query.is_empty())
    }

    /// The question, or why there is none.
    fn question(&self) -> Result<Question, Failure> {
        let operation = self.operation;
        let lacks = |what: &str, example: &str| {
            let name = operation.name();
            let example = format!("{{\"operation\": \"{name}\", {example}}}");
            Failure::new(format!("{name} needs {what}, such as {example}"))
        };
        if let Some(what) = operation.at() {
            let (Some(path), Some(line @ 1..), Some(character @ 1..)) =
                (self.path(), self.line, self.character)
            else {
                return Err(lacks(
                    "filePath, line and character, which count from 1",
                    "\"filePath\": \"src/main.rs\", \"line\": 12, \"character\": 5",
                ));
            };
            return Ok(Question::At { what, path: path.to_owned(), line, character });
        }
        if operation == Operation::DocumentSymbol {
            let path =
                self.path().ok_or_else(|| lacks("filePath", "\"filePath\": \"src/main.rs\""))?;
            return Ok(Question::Outline { path: path.to_owned() });
        }
        let query = self.query().ok_or_else(|| lacks("query", "\"query\": \"parse\""))?.to_owned();
        let path = self.path().filter(|_| operation == Operation::WorkspaceSymbol);
        Ok(Question::Symbols { path: path.map(str::to_owned), query })
    }

    fn title(&self) -> String {
        let about = match (self.path(), self.line, self.query()) {
            (Some(path), Some(line), _) => format!("{path}:{line}"),
            (Some(path), None, None) => path.to_owned(),
            (_, _, Some(query)) => query.to_owned(),
            (None, _, None) => String::new(),
        };
        format!("{} {about}", self.operation.name())
    }
}

#[async_trait]
impl Tool for Lsp {
    type Input = Input;

    fn name(&self) -> &str {
        "lsp"
    }

    fn offered(&self, _scene: &Scene) -> bool {
        self.code.is_some()
    }

    async fn describe(&self, _scene: &Scene) -> Definition {
        Definition::of::<Input>(include_str!("description.md"))
    }

    fn access(&self, input: &Input) -> Vec<Access> {
        let everywhere = || Access::Search { path: ".".to_owned() };
        let file = input.path().map(|path| Access::Read { path: path.to_owned() });
        match input.operation {
            Operation::Symbols => vec![everywhere()],
            Operation::WorkspaceSymbol => std::iter::once(everywhere()).chain(file).collect(),
            Operation::GoToDefinition
            | Operation::GoToImplementation
            | Operation::FindReferences
            | Operation::Hover
            | Operation::DocumentSymbol
            | Operation::PrepareCallHierarchy
            | Operation::IncomingCalls
            | Operation::OutgoingCalls => file.into_iter().collect(),
        }
    }

    async fn run(&self, input: Input, cx: &Cx<'_>) -> Result<Output, Failure> {
        let question = input.question()?;
        let Some(code) = &self.code else {
            return Err(Failure::new("There are no language servers here. Use grep and read."));
        };
        let answer = code.ask(cx, question).await?;
        let text = render(&input, &answer);
        Ok(Output { title: input.title(), text, ..Output::default() })
    }
}

/// What a model reads of an answer.
fn render(input: &Input, answer: &Answer) -> String {
    let mut text = match input.operation {
        Operation::DocumentSymbol => answer.found.iter().map(outlined).collect(),
        Operation::WorkspaceSymbol => answer.found.iter().map(named).collect(),
        Operation::Symbols => grouped(&answer.found),
        Operation::Hover => format!("{}\n", answer.prose),
        Operation::GoToDefinition
        | Operation::GoToImplementation
        | Operation::FindReferences
        | Operation::PrepareCallHierarchy
        | Operation::IncomingCalls
        | Operation::OutgoingCalls => answer.found.iter().map(placed).collect::<String>(),
    };
    let text_is_empty = text.trim().is_empty();
    if text_is_empty && answer.notes.is_empty() {
        let query = input.query().unwrap_or_default();
        return format!("Nothing is called {query}. Try a part of the name, or grep.");
    }
    for note in &answer.notes {
        let _ = match text_is_empty {
            true => writeln!(text, "{note}"),
            false => writeln!(text, "[{note}]"),
        };
    }
    text.trim().to_owned()
}

/// `src/a.rs:12:5: let x = parse(text);`
fn placed(located: &Located) -> String {
    let Located { path, line, character, what, source, .. } = located;
    let place = format!("{path}:{line}:{character}");
    match (path.starts_with('/'), what.as_str(), source.as_str()) {
        (true, "", _) => format!("{place} (outside of the project)\n"),
        (true, what, _) => format!("{place}: {what} (outside of the project)\n"),
        (false, "", "") => format!("{place}\n"),
        (false, "", source) => format!("{place}: {source}\n"),
        (false, what, "") => format!("{place}: {what}\n"),
        (false, what, source) => format!("{place}: {what}\n    {source}\n"),
    }
}

/// `12: fn parse`, as deep as it lies.
fn outlined(located: &Located) -> String {
    format!("{}{}: {}\n", "  ".repeat(located.depth), located.line, located.what)
}

/// `src/a.rs:12: fn parse  (in Parser)`
fn named(located: &Located) -> String {
    format!("{}:{}: {}\n", located.path, located.line, located.what)
}

/// Lines under the files they stand in, as `grep` has them.
fn grouped(found: &[Located]) -> String {
    let mut files: Vec<(&str, String)> = Vec::new();
    for Located { path, line, what, source, .. } in found {
        let shown = if source.is_empty() { what } else { source };
        let entry = format!("{line}: {shown}\n");
        match files.iter_mut().find(|(known, _)| known == path) {
            Some((_, lines)) => lines.push_str(&entry),
            None => files.push((path, entry)),
        }
    }
    files.into_iter().map(|(path, lines)| format!("{path}\n{lines}")).collect()
}

#[cfg(test)]
mod tests;
