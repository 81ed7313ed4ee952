//! Implements `windlass trust`: shows what a folder would make Windlass run or the model follow, and
//! asks the same question as the terminal UI.

use crate::setup::{LoadedProject, ProjectContext};
use crate::terminal::output;
use crate::{CliExit, args};
use windlass_project::{ConfigFlags, TrustDiff, TrustStore};
use windlass_protocol::{TrustDecision, TrustReview};

pub(crate) fn run_trust(args: &args::TrustArgs) -> anyhow::Result<CliExit> {
    let (dirs, root) = LoadedProject::find_dirs()?;
    let mut trust = TrustStore::read(&dirs)?;
    if args.revoke {
        let was_trusted = trust.decline(&root)?;
        let status = if was_trusted { "is no longer trusted" } else { "was not trusted" };
        output::print_note(&format!("{} {status}", root.display()));
        return Ok(CliExit::Done);
    }
    LoadedProject::check_root(&dirs, &root)?;
    let setup = LoadedProject::read_config(
        (dirs, root.clone()),
        ConfigFlags::default(),
        ProjectContext::default(),
    )?;
    let request = trust.prepare_request(&root)?;
    let review = setup.trust_review(&request);
    let name = root.display().to_string();
    print_review(&name, &review);
    let keeps_asking = setup.config.keeps_asking;
    if request.diff == TrustDiff::Unchanged && keeps_asking == args.keep_asking {
        output::print_note(&format!("{name} is already trusted and unchanged"));
        return Ok(CliExit::Done);
    }
    let decision = match (args.keep_asking, args.yes) {
        (true, true) => Some(TrustDecision::TrustAndAsk),
        (false, true) => Some(TrustDecision::Trust),
        (keep_asking, false) => ask(&review, keep_asking),
    };
    let keeps_asking = match decision {
        Some(TrustDecision::Trust) => false,
        Some(TrustDecision::TrustAndAsk) => true,
        // For a folder that was trusted before, the answer is "Not now".
        Some(TrustDecision::Decline) if request.diff == TrustDiff::NeverTrusted => {
            trust.decline(&root)?;
            output::print_note(&format!(
                "{name} is not trusted. Windlass asks again when it has other files to trust"
            ));
            return Ok(CliExit::Denied);
        }
        Some(TrustDecision::Decline) | None => {
            output::print_note("not trusted; use --yes to trust it without confirmation");
            return Ok(CliExit::Denied);
        }
    };
    trust.add(request, keeps_asking)?;
    let mode = if keeps_asking { review.untrusted_mode } else { review.trusted_mode };
    output::print_note(&format!("{name} is now trusted, until its settings change; mode {mode}"));
    Ok(CliExit::Done)
}

/// Asks the user; with `keep_asking`, only about trust in mode ask. An empty line is a no. Returns
/// `None` if no user can be asked, or if the answer is none of those offered.
fn ask(review: &TrustReview, keep_asking: bool) -> Option<TrustDecision> {
    let offered = match keep_asking {
        true => vec![TrustDecision::TrustAndAsk],
        false => review.answers(),
    };
    let key = |decision| match decision {
        TrustDecision::TrustAndAsk if !keep_asking => "a",
        TrustDecision::Trust | TrustDecision::TrustAndAsk => "y",
        TrustDecision::Decline => "N",
    };
    let answers = offered.iter().filter(|decision| **decision != TrustDecision::Decline);
    for decision in answers.clone() {
        output::print_note(&format!("  {}  {}", key(*decision), review.answer_label(*decision)));
    }
    output::print_note(&format!("  N  {}", review.answer_label(TrustDecision::Decline)));
    let answer = output::ask_line("Trust this folder? ")?.to_lowercase();
    if matches!(answer.as_str(), "" | "n" | "no") {
        return Some(TrustDecision::Decline);
    }
    let is_answer = |decision: &&TrustDecision| {
        answer == key(**decision) || (answer == "yes" && key(**decision) == "y")
    };
    { answers }.find(is_answer).copied()
}

fn print_review(name: &str, review: &TrustReview) {
    if let Some(warning) = review.warning() {
        output::print_note(warning);
    }
    output::print_note(&review.introduction(name));
    print_lines(&review.requested_actions);
    for effect in review.effects() {
        output::print_note(&effect);
    }
    if let Some(changes) = review.changes.as_ref().filter(|changes| !changes.is_empty()) {
        output::print_note(TrustReview::CHANGES_HEADING);
        print_lines(changes);
    }
}

fn print_lines(lines: &[String]) {
    for line in lines {
        output::print_note(&format!("  {line}"));
    }
}
