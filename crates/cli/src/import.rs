//! `windlass import`: shows what would become of another program's config, and asks.

use crate::{Exit, screen, setup::Setup};
use anyhow::bail;
use clap::ValueEnum;
use serde_json::Value;
use std::path::Path;
use windlass_llm::catalog;
use windlass_permission::Rules;
use windlass_project::import::{Import, Plan, Program, Sense, Side};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The program.
    program: Name,
    /// What stands in this folder, into the project's windlass.jsonc and .windlass. It counts once the
    /// folder is trusted.
    #[arg(long)]
    project: bool,
    /// Only shows it.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// Does not ask.
    #[arg(long, short)]
    yes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// OpenCode: opencode.json, .opencode.
    #[value(name = "opencode")]
    OpenCode,
    /// Claude Code: .claude.json, .claude.
    Claude,
}

/// What the other crates make of a config.
struct Others;

impl Sense for Others {
    fn rules(&self, rules: &Value) -> Option<String> {
        Rules::parse(rules).err().map(|error| error.to_string())
    }

    fn matcher(&self, pattern: &str) -> Option<String> {
        windlass_plugin::hook::objection(pattern)
    }

    fn provider(&self, name: &str) -> Option<&'static str> {
        catalog::provider(name).map(|row| row.id)
    }
}

/// Does the command.
pub(crate) fn import(args: &Args) -> anyhow::Result<Exit> {
    let (places, root) = Setup::places()?;
    let program = match args.program {
        Name::OpenCode => Program::OpenCode,
        Name::Claude => Program::Claude,
    };
    let side = if args.project { Side::Project } else { Side::Own };
    if args.project {
        Setup::check_root(&places, &root)?;
        if places.home.starts_with(&root) {
            bail!(
                "{} is no project. Leave out --project to take over what is your own, or go to the \
                 folder of a project",
                root.display()
            );
        }
    }
    let import = Import { program, side, places: &places, root: &root, sense: &Others };
    let plan = import.plan()?;
    if plan.found.is_empty() {
        return Ok(nothing(program, side, &root));
    }
    show(&plan, &places.home, program);
    if !plan.is_new() {
        screen::note("nothing new to carry over");
        return Ok(Exit::Done);
    }
    if args.dry_run {
        screen::note("nothing was written; leave out --dry-run to do it");
        return Ok(Exit::Done);
    }
    let agreed = args.yes || screen::agrees("Do it? [y/N] ");
    if !agreed {
        screen::note("nothing was written; use --yes to do it without being asked");
        return Ok(Exit::Denied);
    }
    plan.carry_out()?;
    screen::note("done");
    match side {
        Side::Project => screen::note("It counts once this folder is trusted: windlass trust"),
        Side::Own => screen::note("`windlass config show` shows what is in force now"),
    }
    Ok(Exit::Done)
}

fn nothing(program: Program, side: Side, root: &Path) -> Exit {
    let name = program.name();
    let (whose, other) = match side {
        Side::Own => ("your home folder".to_owned(), "--project looks in this folder instead"),
        Side::Project => {
            (root.display().to_string(), "without --project, what is your own is looked for")
        }
    };
    screen::note(&format!("there is nothing of {name} in {whose}; {other}"));
    Exit::Done
}

/// What would be done, in lists.
fn show(plan: &Plan, home: &Path, program: Program) {
    let short = |path: &Path| match path.strip_prefix(home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.display().to_string(),
    };
    screen::line(&format!("Read from {}: {}", program.name(), plan.found.join(", ")));
    list(&format!("Into {}:", short(&plan.file)), plan.settings.clone());
    let copies = plan.copies.iter();
    let copies = copies.map(|(to, from)| format!("{}  from {from}", short(to)));
    list("New files:", copies.collect());
    list("There already, and left as it is:", plan.kept.iter().map(reason).collect());
    list("Not carried over:", plan.left.iter().map(reason).collect());
    if plan.is_new() {
        list("Good to know:", plan.remarks.clone());
    }
}

fn reason((what, why): &(String, String)) -> String {
    if why.is_empty() { what.clone() } else { format!("{what}: {why}") }
}

fn list(title: &str, lines: Vec<String>) {
    if lines.is_empty() {
        return;
    }
    screen::line("");
    screen::line(title);
    for line in lines {
        // What others wrote must not look like a line of ours.
        screen::line(&format!("  {}", line.replace('\n', " ")));
    }
}
