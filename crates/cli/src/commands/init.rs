//! Implements `windlass init`: the model analyzes the project and writes `AGENTS.md`, its
//! instructions for later sessions. It may change only that file and runs no commands.

use crate::CliExit;
use crate::args::{InitArgs, RunOutputFormat};
use crate::commands::run::{RunOptions, run_turn};
use crate::setup::{EngineOptions, LoadedProject};
use crate::terminal::output;
use serde_json::json;
use windlass_permission::PermissionRules;
use windlass_project::ConfigFlags;
use windlass_protocol::{INIT_ADDITION, INIT_PROMPT_START, PermissionMode, SessionOp};

/// Continues [`INIT_PROMPT_START`].
const INIT_PROMPT_REST: &str = " what a new contributor must know to work here, and nothing else. If the file exists, improve it: keep what is still true, correct what is not, add what is missing.

First look around: the README, the manifests and lock files, the folders, the CI config, the config of linters and formatters, rules for other agents (CLAUDE.md, .cursor/rules, .cursorrules, .github/copilot-instructions.md), and some typical source and test files. Read what the project says; do not guess.

Then write, in this order and only as far as it applies:
1. One or two sentences: what this project is.
2. The commands to build, test, lint and format, each on one line, including how to run a single test.
3. The layout: the important folders and what each is for, in a few lines.
4. Conventions that cannot be seen in one file: names, errors, tests, what must never be done.

Keep it short: 20 to 60 lines, plain Markdown. Only what is specific to this project; nothing that applies to every project, no list of every file, nothing invented. Change no other file. When it is written, say in two or three sentences what it contains and what you could not find out.";

/// Returns the prompt of `init`, followed by the user's additions in `more`.
pub(crate) fn init_prompt(more: &str) -> String {
    match more.trim() {
        "" => format!("{INIT_PROMPT_START}{INIT_PROMPT_REST}"),
        more => format!("{INIT_PROMPT_START}{INIT_PROMPT_REST}{INIT_ADDITION}{more}"),
    }
}

/// Returns the rules for the model: it may read, and edit `AGENTS.md`.
fn init_rules() -> anyhow::Result<PermissionRules> {
    let rules = json!({
        "edit": {"*": "ask", "AGENTS.md": "allow"},
        "bash": "deny",
        "webfetch": "deny",
        "websearch": "deny",
        "codesearch": "deny",
    });
    Ok(PermissionRules::parse(&rules)?)
}

/// Runs the `init` prompt like any other prompt.
pub(crate) async fn run_init(args: InitArgs) -> anyhow::Result<CliExit> {
    // The user asked for the file, so writing it needs no further approval.
    let mode = Some(PermissionMode::Auto);
    let setup =
        LoadedProject::load(ConfigFlags { model: args.model, mode, ..ConfigFlags::default() })?;
    let model = setup.choose_model(None)?.into_client()?;
    let engine_options = EngineOptions {
        rules: Some(init_rules()?),
        user: output::user_presence(RunOutputFormat::Text),
        ..EngineOptions::default()
    };
    let engine = setup.build_model_engine(model, engine_options).await?;
    let options = RunOptions::new(RunOutputFormat::Text, false);
    let op = SessionOp::prompt(init_prompt(args.instructions.as_deref().unwrap_or_default()));
    let exit = run_turn(&engine, None, Some(op), options).await?;
    if exit == CliExit::Done && !LoadedProject::path_exists(&setup.root.join("AGENTS.md")) {
        output::print_note("AGENTS.md was not written; run `windlass init` again");
        return Ok(CliExit::Failed);
    }
    Ok(exit)
}
