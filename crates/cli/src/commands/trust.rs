//! Implements `windlass trust`: shows what a folder would make Windlass run or follow, and asks for
//! confirmation.

use crate::setup::LoadedProject;
use crate::terminal::output;
use crate::{CliExit, args};
use windlass_project::{TrustDiff, TrustRequest, TrustStore};

pub(crate) fn run_trust(args: &args::TrustArgs) -> anyhow::Result<CliExit> {
    let (dirs, root) = LoadedProject::find_dirs()?;
    let mut trust = TrustStore::read(&dirs)?;
    if args.revoke {
        let was_trusted = trust.remove(&root)?;
        let status = if was_trusted { "is no longer trusted" } else { "was not trusted" };
        output::print_note(&format!("{} {status}", root.display()));
        return Ok(CliExit::Done);
    }
    LoadedProject::check_root(&dirs, &root)?;
    let request = trust.prepare_request(&root)?;
    let name = root.display();
    print_request(&name.to_string(), &request);
    if request.diff == TrustDiff::Unchanged {
        output::print_note(&format!("{name} is already trusted and unchanged"));
        return Ok(CliExit::Done);
    }
    let confirmed = args.yes || output::confirm("Trust this folder? [y/N] ");
    if !confirmed {
        output::print_note("not trusted; use --yes to trust it without confirmation");
        return Ok(CliExit::Denied);
    }
    trust.add(request)?;
    output::print_note(&format!("{name} is now trusted, until its settings change"));
    Ok(CliExit::Done)
}

fn print_request(name: &str, request: &TrustRequest) {
    if request.shown_files.is_empty() {
        output::print_note(&format!("{name} contains nothing that Windlass would run or follow"));
    } else {
        output::print_note(&format!("{name} contains files that Windlass would run or follow:"));
        print_lines(&request.shown_files);
        output::print_note("Its settings:");
        if request.settings_lines.is_empty() {
            output::print_note("  nothing");
        }
        print_lines(&request.settings_lines);
    }
    output::print_note(
        "Trusting this folder makes Windlass use its settings, read its AGENTS.md, start language \
         servers and formatters (they cannot change the folder or use the network), and use mode \
         auto (edits and sandboxed commands run without asking) unless your config sets another \
         mode",
    );
    match &request.diff {
        TrustDiff::NeverTrusted | TrustDiff::Unchanged => {}
        TrustDiff::ChangedUnknown => output::print_note(
            "It has changed since you trusted it. The previous state was not saved, so review \
             all of it",
        ),
        TrustDiff::Changed(lines) => {
            output::print_note("Changes since you trusted it:");
            print_lines(lines);
        }
    }
}

fn print_lines(lines: &[String]) {
    for line in lines {
        output::print_note(&format!("  {line}"));
    }
}
