//! `webfetch` over the whole road, at a site that means harm.
//!
//! Pages are read by this very program, so this has a main of its own: on an errand it reads the
//! page, and otherwise it runs the checks below.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test arranges the world from outside, and fails by panicking"
)]

mod hops;
mod hostile;
mod kinds;
mod yard;

use std::io::{Read, Write};
use std::process::ExitCode;
use windlass_testkit::checks::{self, Check};

const CHECKS: &[Check] = windlass_testkit::checks! {
    hops {
        a_host_that_is_not_public_is_never_reached
        a_name_that_changes_its_mind_is_looked_up_once
        odd_spellings_of_hosts_are_refused_before_anything
        every_hop_is_judged_by_the_rules
        a_redirect_within_the_host_is_followed_and_its_port_counts
        redirects_without_end_are_ended
        a_page_that_sends_on_is_a_hop
        redirects_to_inner_places_lead_nowhere
        nothing_is_kept_between_two_requests
    }
    hostile {
        a_bomb_costs_little
        an_endless_body_is_cut
        a_drip_is_ended_by_the_deadline
        silence_is_ended
        heads_without_end_are_ended
        a_huge_page_is_cut_and_said_to_be
        deep_pages_are_read_in_no_time
        answers_that_are_none_are_told
        a_call_that_is_stopped_ends_at_once
    }
    kinds {
        pages_are_readable_and_say_where_they_are_from
        statuses_are_told
        lies_about_kinds_are_seen_through
        encodings_are_found_out
        pictures_and_documents_are_shown
    }
};

fn main() -> ExitCode {
    checks::main(CHECKS, || {
        let mut input = Vec::new();
        std::io::stdin().read_to_end(&mut input).map_err(|error| error.to_string())?;
        let text = windlass_web::page::errand(&input)?;
        std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
    })
}
