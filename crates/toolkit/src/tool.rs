//! The tool contract: input, required accesses, preview and execution.

use crate::call_failure::CallFailure;
use crate::tool_caller::ToolCaller;
use crate::tool_definition::ToolDefinition;
use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use windlass_protocol::{
    AllowedCalls, CallAuthor, CallDescription, CallId, ModelToolDefinition, SessionId, ToolAccess,
    ToolOutput,
};
use windlass_sandbox::{CallWorkspace, WorkingFolder};

/// A tool that a model can call. `ToolRuntime::execute` runs it.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// The arguments of a call. The schema for the model is derived from this type.
    type Input: DeserializeOwned + JsonSchema + Send + Sync + 'static;

    /// Returns the name that the model uses, such as `read`.
    fn name(&self) -> &str;

    /// Returns the permission key of its calls; a key that is denied outright hides the tool.
    fn permission_key(&self) -> &str {
        self.name()
    }

    /// Returns false for a tool that this model is not offered and cannot call.
    fn is_offered(&self, _step: &StepContext) -> bool {
        true
    }

    /// Returns false for a tool that cannot be part of a batch: it waits for the user, is itself
    /// made of sub-calls, or has effects that are unknown here.
    fn allows_batching(&self) -> bool {
        true
    }

    /// Returns false for a tool that the model finds by a search instead of in the tool list. The
    /// value must not change while the process runs, because a definition that the model has seen
    /// never changes.
    fn is_listed(&self) -> bool {
        true
    }

    /// Returns true for a tool that other programs may call (`mcp serve`). Tools that are only
    /// useful to a model in a session, or to a user who is present, are not served.
    fn is_served(&self) -> bool {
        false
    }

    /// Returns false for a tool that a subagent has only if its agent lists it by name.
    fn is_for_subagents(&self) -> bool {
        true
    }

    /// Returns true for a tool whose output is state or instructions rather than findings, and
    /// stays in the context when old outputs are pruned.
    fn retains_output(&self) -> bool {
        false
    }

    /// Returns true for a tool whose calls have no effect that an unknown field could be meant to
    /// limit; unknown fields of its calls are removed. Calls that only read need no such method.
    fn ignores_unknown_fields(&self) -> bool {
        false
    }

    /// Returns the names of the tool in Claude Code, the most usual one first. A tool that changes
    /// files has every name that a hook guarding files may match.
    fn claude_names(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the arguments with other names in Claude Code: our name and theirs.
    fn claude_arguments(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Describes a call to the user. Paths below `root`, the folder of the project, are relative
    /// to it (`relative_path`). `None` stands for a description made of the name and the arguments.
    fn describe_call(&self, _input: &Self::Input, _root: &str) -> Option<CallDescription> {
        None
    }

    /// Returns the call that this call is an alias of. An alias tool never runs, and its input is
    /// `{"name": …, "arguments": {…}}`.
    fn alias_of(&self, _input: &Self::Input) -> Option<SubCall> {
        None
    }

    /// Returns the calls that a call consists of, for a tool that does nothing by itself.
    fn sub_calls(&self, _input: &Self::Input) -> Option<Vec<SubCall>> {
        None
    }

    /// Returns the definition for the model. Called at most once per step, so it may depend on
    /// `step`.
    async fn describe(&self, step: &StepContext) -> ToolDefinition;

    /// Replaces relative paths of a call by what they mean in the working folder.
    fn resolve_paths(&self, _input: &mut Self::Input, _folder: &WorkingFolder) {}

    /// Returns every `ToolAccess` that a call needs. Pure: it depends only on the input.
    fn access(&self, input: &Self::Input) -> Vec<ToolAccess>;

    /// Returns a preview of the call for the permission request. The workspace is read-only. A call
    /// that would fail anyway returns its failure here, and the user is not asked.
    async fn preview(
        &self,
        _input: &Self::Input,
        _cx: &CallContext<'_>,
    ) -> Result<Option<String>, CallFailure> {
        Ok(None)
    }

    /// Runs the call.
    async fn run(
        &self,
        input: Self::Input,
        cx: &CallContext<'_>,
    ) -> Result<ToolOutput, CallFailure>;
}

/// One of the calls from `Tool::sub_calls`, or the target of `Tool::alias_of`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubCall {
    /// The tool name, as the model spelled it.
    pub tool: String,
    /// The arguments as JSON.
    pub arguments: String,
}

/// The facts of a step that `Tool::describe` may depend on.
#[derive(Clone, Debug, Default)]
pub struct StepContext {
    /// The model that reads the description, as `provider/model`.
    pub model: String,
    /// The name of the agent that makes the calls; empty if no agent does.
    pub agent: String,
    /// True if the model accepts PDFs.
    pub supports_pdfs: bool,
    /// True if the user trusts the project, so that its instructions apply.
    pub trusted: bool,
    /// Tells if a user can be asked during the session.
    pub user: UserPresence,
    /// The available skills, sorted by name.
    pub skills: Arc<[SkillDefinition]>,
    /// Rules of the project that apply to some files.
    pub path_rules: Arc<[PathInstructions]>,
    /// The agents that a call can start.
    pub agents: Vec<AgentSummary>,
    /// The sources whose tools are searchable instead of listed. `Registry` fills it in, and the
    /// first value stays for the lifetime of the registry.
    pub searchable_sources: Arc<[SearchableSource]>,
}

/// A source of tools that are searchable instead of listed, such as an MCP server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchableSource {
    /// One line: the name and the number of tools, or why they are not known yet.
    pub summary: String,
    /// The names of its tools, without the name of the source; empty if they are not known yet.
    pub tool_names: Vec<String>,
}

/// Tells if a user can answer questions and approve calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserPresence {
    #[default]
    Present,
    Absent,
}

/// Instructions of a project for some of its files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathInstructions {
    /// The path of the file with the instructions.
    pub path: String,
    /// Globs of the files that they apply to.
    pub patterns: Vec<String>,
    pub text: String,
    /// The content of the file with the instructions.
    pub source: String,
}

/// A skill: written instructions for a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SkillDefinition {
    pub name: String,
    /// The purpose of the skill, and when to use it.
    pub description: String,
    /// The instructions.
    pub body: String,
    /// The folder of the skill, as the user and the model see it.
    pub folder: String,
    /// The other files in the folder, at least the first ones.
    pub files: Vec<String>,
    /// The tools that the skill names, as written; empty if it names none.
    pub tools: Vec<String>,
    /// The same as rules.
    pub allowed_calls: Option<AllowedCalls>,
}

/// An agent, as described to a model that may start it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentSummary {
    pub name: String,
    /// The description of when to use the agent.
    pub description: String,
}

/// The context of a running call. Only `ToolRuntime` creates one.
#[non_exhaustive]
pub struct CallContext<'a> {
    pub session: SessionId,
    pub call: CallId,
    pub author: CallAuthor,
    /// The workspace, limited to the grant of the call.
    pub world: Arc<CallWorkspace>,
    /// Fires when the call should stop.
    pub cancel: CancellationToken,
    /// The `ToolCaller` that made the call.
    pub caller: &'a dyn ToolCaller,
    /// The step, with the model that reads the result.
    pub step: &'a StepContext,
    /// True while a skill or command limits the calls of the turn.
    pub is_limited: bool,
    /// The finder behind `find_tools`.
    pub(crate) finder: &'a dyn ToolFinder,
}

/// A finder of the tools that are not listed, for `CallContext::find_tools`.
#[async_trait]
pub(crate) trait ToolFinder: Send + Sync {
    async fn find_tools(&self, step: &StepContext, query: &str, limit: usize) -> ToolSearchResults;
}

/// The result of `CallContext::find_tools`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolSearchResults {
    /// The matching tools, best first.
    pub tools: Vec<ModelToolDefinition>,
    /// The number of further matches.
    pub omitted: usize,
    /// Sources that are not available, with the reason; their tools were not searched.
    pub unavailable: Vec<String>,
}

impl CallContext<'_> {
    /// Searches the tools that are not listed, by name, description and parameters.
    pub async fn find_tools(&self, query: &str, limit: usize) -> ToolSearchResults {
        self.finder.find_tools(self.step, query, limit).await
    }

    /// Runs file operations on a blocking thread, so that they delay no other task.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        job: impl FnOnce(&CallWorkspace) -> Result<T, CallFailure> + Send + 'static,
    ) -> Result<T, CallFailure> {
        let workspace = Arc::clone(&self.world);
        match tokio::task::spawn_blocking(move || job(&workspace)).await {
            Ok(result) => result,
            Err(_) => Err(CallFailure::new("the tool failed unexpectedly")),
        }
    }
}

/// A `Tool` with its input type erased.
#[async_trait]
pub(crate) trait AnyTool: Send + Sync {
    fn name(&self) -> &str;
    fn permission_key(&self) -> &str;
    fn is_offered(&self, step: &StepContext) -> bool;
    fn allows_batching(&self) -> bool;
    fn is_listed(&self) -> bool;
    fn is_served(&self) -> bool;
    fn is_for_subagents(&self) -> bool;
    fn ignores_unknown_fields(&self) -> bool;
    fn claude_names(&self) -> &'static [&'static str];
    fn claude_arguments(&self) -> &'static [(&'static str, &'static str)];
    /// Describes a call with these arguments, if they are valid.
    fn describe_call(&self, arguments: &Value, root: &str) -> Option<CallDescription>;
    /// Returns the call that a call with these arguments is an alias of.
    fn alias_of(&self, arguments: &Value) -> Option<SubCall>;
    async fn describe(&self, step: &StepContext) -> ToolDefinition;
    fn prepare(
        self: Arc<Self>,
        arguments: Value,
        folder: &WorkingFolder,
    ) -> Result<Box<dyn PreparedCall>, CallFailure>;
}

/// A call with parsed arguments, from `AnyTool::prepare`.
#[async_trait]
pub(crate) trait PreparedCall: Send + Sync {
    fn access(&self) -> Vec<ToolAccess>;
    /// Returns each `SubCall` that it consists of, if any.
    fn sub_calls(&self) -> Option<Vec<SubCall>> {
        None
    }
    async fn preview(&self, cx: &CallContext<'_>) -> Result<Option<String>, CallFailure>;
    async fn run(self: Box<Self>, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure>;
}

struct TypedCall<T: Tool> {
    tool: Arc<T>,
    input: T::Input,
}

#[async_trait]
impl<T: Tool> AnyTool for T {
    fn name(&self) -> &str {
        Tool::name(self)
    }

    fn permission_key(&self) -> &str {
        Tool::permission_key(self)
    }

    fn is_offered(&self, step: &StepContext) -> bool {
        Tool::is_offered(self, step)
    }

    fn allows_batching(&self) -> bool {
        Tool::allows_batching(self)
    }

    fn is_listed(&self) -> bool {
        Tool::is_listed(self)
    }

    fn is_served(&self) -> bool {
        Tool::is_served(self)
    }

    fn is_for_subagents(&self) -> bool {
        Tool::is_for_subagents(self)
    }

    fn ignores_unknown_fields(&self) -> bool {
        Tool::ignores_unknown_fields(self)
    }

    fn claude_names(&self) -> &'static [&'static str] {
        Tool::claude_names(self)
    }

    fn claude_arguments(&self) -> &'static [(&'static str, &'static str)] {
        Tool::claude_arguments(self)
    }

    fn describe_call(&self, arguments: &Value, root: &str) -> Option<CallDescription> {
        let input = T::Input::deserialize(arguments).ok()?;
        Tool::describe_call(self, &input, root)
    }

    fn alias_of(&self, arguments: &Value) -> Option<SubCall> {
        let input = T::Input::deserialize(arguments).ok()?;
        Tool::alias_of(self, &input)
    }

    async fn describe(&self, step: &StepContext) -> ToolDefinition {
        Tool::describe(self, step).await
    }

    fn prepare(
        self: Arc<Self>,
        arguments: Value,
        folder: &WorkingFolder,
    ) -> Result<Box<dyn PreparedCall>, CallFailure> {
        match serde_json::from_value(arguments) {
            Ok(mut input) => {
                self.resolve_paths(&mut input, folder);
                Ok(Box::new(TypedCall { tool: self, input }))
            }
            Err(error) => Err(CallFailure::new(format!("invalid arguments: {error}"))),
        }
    }
}

#[async_trait]
impl<T: Tool> PreparedCall for TypedCall<T> {
    fn access(&self) -> Vec<ToolAccess> {
        self.tool.access(&self.input)
    }

    fn sub_calls(&self) -> Option<Vec<SubCall>> {
        self.tool.sub_calls(&self.input)
    }

    async fn preview(&self, cx: &CallContext<'_>) -> Result<Option<String>, CallFailure> {
        self.tool.preview(&self.input, cx).await
    }

    async fn run(self: Box<Self>, cx: &CallContext<'_>) -> Result<ToolOutput, CallFailure> {
        let mut output = self.tool.run(self.input, cx).await?;
        output.retained |= self.tool.retains_output();
        Ok(output)
    }
}
