//! Expands the custom commands of `windlass run --command` into prompts.

use crate::setup::LoadedProject;
use anyhow::bail;
use serde_json::json;
use windlass_engine::Engine;
use windlass_project::{CustomCommand, ExpandedPrompt, TemplateShellCommand, allowed_calls};
use windlass_protocol::{
    AgentRole, AllowedCallsSource, CallOutcome, PromptCommand, PromptSettings, ToolOutput,
};

/// Limit for all `@` files that a command inserts into its prompt, in bytes.
const MAX_FILES_BYTES: usize = 256 << 10;

/// Maximum number of `TemplateShellCommand`s that run before a prompt.
const MAX_SHELL_STEPS: usize = 16;

/// Limit for the output of one shell command inserted into a prompt, in bytes.
const MAX_OUTPUT_BYTES: usize = 30 << 10;

/// Suffix of a successful command's output; `command_output` strips it, because it carries no
/// information.
const SUCCESS_SUFFIX: &str = "\n(exit code 0)";

/// Limit for the first line of a prompt when it becomes the session title.
const MAX_TITLE_CHARS: usize = 80;

/// A custom command as a prompt that is ready to send, after its `shell_steps`.
#[derive(Default)]
pub(crate) struct PreparedCommand {
    pub(crate) text: String,
    pub(crate) shell_steps: Vec<TemplateShellCommand>,
    pub(crate) settings: PromptSettings,
}

/// Returns the model that a command names. Only the user's own commands choose the model.
pub(crate) fn command_model(setup: &LoadedProject, command: &CustomCommand) -> Option<String> {
    let model = command.model.as_ref()?;
    if !model.contains('/') {
        setup.context.notes.send(&format!(
            "note: the command's model `{model}` is not PROVIDER/MODEL; it is ignored"
        ));
        return None;
    }
    if !command.is_own {
        setup
            .context
            .notes
            .send(&format!("note: only your own commands choose the model; {model} is ignored"));
        return None;
    }
    Some(model.clone())
}

/// Returns the custom command of this name; `None` for the prompt of an MCP server.
pub(crate) async fn find_command(
    setup: &LoadedProject,
    name: &str,
) -> anyhow::Result<Option<CustomCommand>> {
    if name.contains(':') {
        return Ok(None);
    }
    let commands = setup.load_commands().await?;
    for diagnostic in &commands.diagnostics {
        setup.context.notes.send(&format!("note: {diagnostic}"));
    }
    if let Some(command) = commands.find(name) {
        return Ok(Some(command.clone()));
    }
    let names: Vec<&str> = commands.all.iter().map(|command| command.name.as_str()).collect();
    match names.as_slice() {
        [] => bail!(
            "unknown command `{name}`; no commands are defined. Create one: {}",
            setup.dirs.config.join("commands").join(format!("{name}.md")).display()
        ),
        names => bail!("unknown command `{name}`; available: {}", names.join(", ")),
    }
}

/// Expands a custom command into its prompt and the shell commands to run first. Appends the files
/// that the command names, if they may be read without approval. `agent` is the one that gets the
/// prompt; if the command names another one, that is started as a subagent.
pub(crate) async fn expand_command(
    setup: &LoadedProject,
    engine: &Engine,
    (name, arguments): (&str, Option<&str>),
    agent: &str,
) -> anyhow::Result<PreparedCommand> {
    let Some(command) = find_command(setup, name).await? else {
        let (server, prompt) = name.split_once(':').unwrap_or_default();
        let text = mcp_prompt(setup, server, prompt, arguments).await?;
        return Ok(PreparedCommand { text, ..PreparedCommand::default() });
    };
    let arguments = arguments.unwrap_or_default();
    let ExpandedPrompt { mut text, files, shell_steps, missing_arguments } =
        command.expand(arguments);
    if shell_steps.len() > MAX_SHELL_STEPS {
        bail!(
            "the command `{name}` runs {} shell commands first, but at most {MAX_SHELL_STEPS} \
             are allowed. Combine some of them in a script",
            shell_steps.len()
        );
    }
    let mut notes: Vec<String> = missing_arguments
        .iter()
        .map(|placeholder| {
            format!("the command uses {placeholder}, but no such argument was given")
        })
        .collect();
    let mut size = 0;
    for file in files {
        let arguments = json!({"filePath": file}).to_string();
        match engine.call_read_only("read", arguments).await {
            CallOutcome::Completed { output: ToolOutput { text: content, .. } } => {
                size += content.len();
                if size > MAX_FILES_BYTES {
                    bail!(
                        "the files that `{name}` includes are larger than {} KiB in total",
                        MAX_FILES_BYTES >> 10
                    );
                }
                text.push_str(&format!(
                    "\n\n<file path={}>\n{}\n</file>",
                    json!(file),
                    content.trim_end()
                ));
            }
            CallOutcome::Denied { text: reason } => bail!("cannot include @{file}: {reason}"),
            // Not every word after an `@` is a file.
            CallOutcome::Failed { text: reason } => {
                notes.push(format!("@{file} is not a readable file: {reason}"))
            }
            CallOutcome::Interrupted { .. } | CallOutcome::ResultUnknown => {
                bail!("cannot read @{file}")
            }
        }
    }
    // The model would not know why a part of its prompt is empty.
    for note in notes {
        setup.context.notes.send(&format!("note: {note}"));
        text.push_str(&format!("\n\n[Note: {note}]"));
    }
    let revised = engine.run_command_hooks(name, arguments, text.clone()).await?;
    if revised != text && !shell_steps.is_empty() {
        bail!(
            "a hook changed the prompt of the command `{name}`, which runs shell commands, so \
             their output has no place. Remove the shell commands or the hook"
        );
    }
    let mut text = revised;
    if let Some(subagent) = command.agent.as_ref().filter(|it| command.is_subtask || *it != agent) {
        let agents = setup.load_agent_configs().await?;
        match agents.find(subagent).map(|agent| agent.role) {
            Some(AgentRole::Subagent | AgentRole::All) => text.push_str(&format!(
                "\n\n[Start the agent `{subagent}` with the tool `task` for this, with the text \
                 above as its prompt, and report its result.]"
            )),
            Some(AgentRole::Primary) => bail!(
                "the command `{name}` is for the agent `{subagent}`, which starts no subagent \
                 sessions. Start a session with it, or run `windlass run --agent {subagent} \
                 --command {name}`"
            ),
            None => {
                bail!("the command `{name}` is for the agent `{subagent}`, which does not exist")
            }
        }
    }
    let source = (AllowedCallsSource::Command, name);
    let allowed_calls = allowed_calls(source, &command.tools).into_iter().collect();
    let command = PromptCommand { name: name.to_owned(), arguments: arguments.to_owned() };
    let settings =
        PromptSettings { command: Some(command), allowed_calls, ..PromptSettings::default() };
    Ok(PreparedCommand { text, shell_steps, settings })
}

/// Fetches a prompt from an MCP server. The result is plain text: no placeholder in it is expanded
/// and no command in it is run.
async fn mcp_prompt(
    setup: &LoadedProject,
    server: &str,
    prompt: &str,
    arguments: Option<&str>,
) -> anyhow::Result<String> {
    crate::commands::mcp::find_server(setup, server)?;
    let (_runtime, servers) = setup.open_servers_only()?;
    setup.context.notes.send(&format!("Requesting prompt `{prompt}` from `{server}`…"));
    let text = servers.get_prompt(server, prompt, arguments.unwrap_or_default()).await;
    servers.close().await;
    text.map_err(|failure| anyhow::anyhow!(failure.text))
}

/// Returns the session title for a prompt: its first non-empty line, truncated.
pub(crate) fn session_title(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(windlass_protocol::display_text::truncate_chars(line, MAX_TITLE_CHARS))
}

/// Returns the part of a command's `ToolOutput` that goes into the prompt.
pub(crate) fn command_output(output: &ToolOutput) -> String {
    let succeeded = output.exit_code() == Some(0);
    let text = output.text.trim_end();
    let text = text.strip_suffix(SUCCESS_SUFFIX).filter(|_| succeeded).unwrap_or(text).trim_end();
    if text.len() <= MAX_OUTPUT_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_OUTPUT_BYTES);
    let (head, rest) = text.split_at_checked(end).unwrap_or_default();
    format!("{head}\n({} bytes omitted)", rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(text: &str, exit: i64) -> ToolOutput {
        let metadata = serde_json::Map::from_iter([("exit".to_owned(), exit.into())]);
        ToolOutput { text: text.to_owned(), metadata, ..ToolOutput::default() }
    }

    #[test]
    fn the_exit_code_is_kept_unless_it_is_zero() {
        assert_eq!(command_output(&output("main\n(exit code 0)", 0)), "main");
        assert_eq!(command_output(&output("oh\n(exit code 1)", 1)), "oh\n(exit code 1)");
        let text = "it says\n(exit code 0)\n(exit code 3)";
        assert_eq!(command_output(&output(text, 3)), text);
        assert_eq!(
            command_output(&output("a\n(exit code 0)", 3)),
            "a\n(exit code 0)",
            "printed by the command itself"
        );
    }

    #[test]
    fn long_output_is_truncated_between_characters() {
        let long = "é".repeat(MAX_OUTPUT_BYTES);
        let text = command_output(&output(&format!("x{long}"), 0));
        let (head, note) = text.split_once('\n').unwrap();
        assert!(
            head.len() <= MAX_OUTPUT_BYTES && head.len() > MAX_OUTPUT_BYTES - 3,
            "{}",
            head.len()
        );
        assert!(
            note.contains(&format!("{} bytes", 2 * MAX_OUTPUT_BYTES + 1 - head.len())),
            "{note}"
        );
    }
}
