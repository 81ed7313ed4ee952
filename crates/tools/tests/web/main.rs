//! End-to-end tests of `webfetch` against a hostile site.
//!
//! `webfetch` converts pages in a helper process, which is this program. So it has its own `main`:
//! as a helper it converts a page, otherwise it runs the tests below.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "tests create files directly and fail by panicking"
)]

mod content_kinds;
mod hostile_responses;
mod redirects;
mod support;

use std::io::{Read, Write};
use std::process::ExitCode;
use windlass_testkit::test_main::{self, NamedTest};

const CHECKS: &[NamedTest] = windlass_testkit::test_list! {
    redirects {
        a_host_that_is_not_public_is_never_reached
        a_name_is_resolved_once_per_call
        unusual_spellings_of_hosts_are_refused_first
        the_rules_apply_to_every_redirect
        a_redirect_to_the_same_host_and_port_is_followed
        endless_redirects_are_stopped
        a_meta_refresh_is_a_redirect
        redirects_to_private_addresses_are_refused
        no_state_is_kept_between_requests
    }
    hostile_responses {
        a_compression_bomb_uses_little_memory
        an_endless_body_is_truncated
        a_slow_body_is_stopped_by_the_timeout
        a_silent_server_is_stopped_by_the_timeout
        endless_headers_are_refused
        the_beginning_of_a_huge_page_is_shown
        deeply_nested_pages_are_converted_quickly
        invalid_responses_are_reported
        a_canceled_call_ends_at_once
    }
    content_kinds {
        pages_are_converted_and_name_their_source
        error_statuses_are_reported
        wrong_content_types_are_detected
        encodings_are_detected
        images_are_attached
    }
};

fn main() -> ExitCode {
    test_main::main(CHECKS, || {
        let mut input = Vec::new();
        std::io::stdin().read_to_end(&mut input).map_err(|error| error.to_string())?;
        let text = windlass_web::html_conversion::run_page_helper(&input)?;
        std::io::stdout().write_all(text.as_bytes()).map_err(|error| error.to_string())
    })
}
