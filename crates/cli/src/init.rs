//! `windlass init`: has the model look at the project and write AGENTS.md, which advises it from then
//! on. It may change that one file and run nothing.

use crate::args::{Init, Output};
use crate::run::{Manner, turn};
use crate::setup::{Setup, Wishes};
use crate::{Exit, screen};
use serde_json::json;
use windlass_permission::Rules;
use windlass_project::Flags;
use windlass_protocol::{Mode, Op};

/// What the model is asked.
const PROMPT: &str = "\
Look at this project and write AGENTS.md at its root: what a newcomer has to know before they can \
work here, and nothing else. If the file is there, improve it: keep what is still true, correct what \
is not, add what is missing.

First look around: the README, the manifests and lock files, the folders, the CI config, the config \
of linters and formatters, rules for other agents (CLAUDE.md, .cursor/rules, .cursorrules, \
.github/copilot-instructions.md), and some typical source and test files. Read what the project \
says; do not guess.

Then write, in this order and as far as the project has it:
1. One or two sentences: what this is.
2. The commands to build, test, lint and format, each in one line, with how a single test is run.
3. The layout: the folders that matter and what each is for, in a few lines.
4. Conventions that cannot be seen in one file: names, errors, tests, what must never be done.

Keep it short: 20 to 60 lines, plain Markdown. Only what is special to this project; nothing that \
holds for every project, no list of every file, nothing invented. Change no other file. When it is \
written, say in two or three sentences what it holds and what you could not find out.";

/// What the model is asked, with what the person adds to it.
pub(crate) fn prompt(more: &str) -> String {
    match more.trim() {
        "" => PROMPT.to_owned(),
        more => format!("{PROMPT}\n\nBesides: {more}"),
    }
}

/// What the model may do: AGENTS.md, and looking.
fn rules() -> anyhow::Result<Rules> {
    let only = json!({
        "edit": {"*": "ask", "AGENTS.md": "allow"},
        "bash": "deny",
        "webfetch": "deny",
        "websearch": "deny",
        "codesearch": "deny",
    });
    Ok(Rules::parse(&only)?)
}

/// Runs it like any prompt.
pub(crate) async fn init(args: Init) -> anyhow::Result<Exit> {
    // Whoever asks for the file has said yes to it.
    let mode = Some(Mode::Auto);
    let setup = Setup::read(Flags { model: args.model, mode, ..Flags::default() })?;
    let model = setup.choose(None)?.asked(None)?;
    let wishes = Wishes { rules: Some(rules()?), ..Wishes::default() };
    let engine = setup.host_with(model, wishes).await?;
    let manner = Manner { output: Output::Text, yes: false, shape: None, mode: None };
    let op = Op::prompt(prompt(args.more.as_deref().unwrap_or_default()));
    let exit = turn(&engine, None, Some(op), manner).await?;
    if exit == Exit::Done && !Setup::is_there(&setup.root.join("AGENTS.md")) {
        screen::note("AGENTS.md was not written; `windlass run --continue` goes on with it");
        return Ok(Exit::Failed);
    }
    Ok(exit)
}
