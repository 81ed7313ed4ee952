//! Tests of scrolling: visible rows stay in place, and a log of any length is a bounded window.

use super::*;
use crate::transcript::loaded_log_window::{MAX_RECORD_BYTES, MAX_RECORDS, PAGE_RECORDS};
use proptest::prelude::*;

/// Builds a log of `turns` turns, each with prompt, reasoning, text and calls.
fn build_log(turns: u32) -> Vec<FactRecord> {
    let mut log = Vec::new();
    let mut push = |fact: Fact| {
        let seq = log.len() as u64 + 1;
        log.push(FactRecord::new(session(), seq, UnixMillis(seq * 10), fact));
    };
    push(Fact::session_opened("/w", "0.9"));
    for turn in 1..=turns {
        let id = prompt(turn.into());
        let number = u128::from(turn) * 10;
        push(prompt_submitted(id, &format!("prompt {turn}\nwith a second line")));
        push(Fact::TurnStarted { turn, prompt: Some(id) });
        push(step_started(turn, 1));
        push(model_reasoning(&format!("thought {turn}")));
        push(model_text(&format!("text {turn}\n\nsecond paragraph of {turn}")));
        push(tool_called(number, "read", &format!(r#"{{"filePath":"src/{turn}.rs"}}"#)));
        push(tool_called(number + 1, "bash", &format!(r#"{{"command":"make {turn}"}}"#)));
        push(step_ended(turn, 1));
        push(call_started(number));
        push(call_settled(number, text_outcome("1: a\n2: b")));
        push(call_started(number + 1));
        push(call_settled(number + 1, command_outcome("fine", 0)));
        push(model_text(&format!("done with {turn}")));
        push(turn_completed(turn));
    }
    log
}

/// Returns the rows of a frame without the position line.
fn content_rows(env: &mut TestTranscript) -> Vec<String> {
    let mut lines = env.lines();
    if !env.transcript.is_following() {
        lines.pop();
    }
    lines
}

#[test]
fn the_viewport_stays_while_new_text_arrives_below() {
    let mut env = TestTranscript::resumed((60, 20), build_log(10));
    env.scroll_and_load(ScrollTarget::Lines(-15));
    let before = content_rows(&mut env);
    assert!(!env.transcript.is_following());
    env.start_turn(11, "more");
    env.fact(step_started(11, 1));
    for _ in 0..200 {
        env.stream_text("word ");
        assert_eq!(content_rows(&mut env), before);
    }
    env.fact(model_text(&"word ".repeat(200)));
    env.facts([
        tool_called(900, "read", "{}"),
        call_started(900),
        call_settled(900, text_outcome("x")),
    ]);
    assert_eq!(content_rows(&mut env), before);
    assert!(env.frame().contains("new"), "{}", env.frame());
    env.scroll_and_load(ScrollTarget::End);
    assert!(env.transcript.is_following());
    assert!(env.frame().contains("✓ Read"), "{}", env.frame());
}

#[test]
fn the_viewport_stays_when_streaming_text_is_finished() {
    let mut env = TestTranscript::open((40, 12));
    env.start_turn(1, "go");
    env.fact(step_started(1, 1));
    let text: String = (0..60).map(|line| format!("line {line}\n\n")).collect();
    env.stream_text(&text);
    env.frame();
    env.scroll_and_load(ScrollTarget::Lines(-30));
    let before = content_rows(&mut env);
    env.fact(model_text(&text));
    assert_eq!(content_rows(&mut env), before);
    env.facts([step_ended(1, 1), turn_completed(1)]);
    assert_eq!(content_rows(&mut env), before);
}

#[test]
fn the_top_row_stays_when_the_screen_is_resized() {
    let mut env = TestTranscript::resumed((60, 20), build_log(20));
    env.scroll_and_load(ScrollTarget::Lines(-40));
    let top = env.lines()[0].clone();
    for size in [(60, 10), (60, 30), (100, 30), (60, 20)] {
        env.resize(size.0, size.1);
        assert_eq!(env.lines()[0], top, "{size:?}");
    }
    env.scroll_and_load(ScrollTarget::End);
    env.frame();
    env.resize(30, 8);
    env.frame();
    assert!(env.transcript.is_following());
}

#[test]
fn loading_an_earlier_page_moves_no_row() {
    let mut env = TestTranscript::resumed((60, 20), build_log(100));
    let first_seq = |env: &TestTranscript| env.transcript.window.span().unwrap().0;
    let first_loaded = first_seq(&env);
    assert!(first_loaded > 1);
    for _ in 0..1_000 {
        env.scroll(ScrollTarget::Lines(-3));
        let before = env.lines();
        env.answer_requests();
        assert_eq!(env.lines(), before);
        if first_seq(&env) < first_loaded {
            return;
        }
    }
    panic!("no page was requested");
}

#[test]
fn a_long_session_is_a_bounded_window_that_reaches_every_row() {
    let log = build_log(7_200);
    assert!(log.len() > 100_000);
    let mut env = TestTranscript::resumed((60, 20), log);
    let assert_bounded = |env: &TestTranscript| {
        let (count, bytes) = env.transcript.window.record_count_and_bytes();
        assert!(count <= MAX_RECORDS + 2 * PAGE_RECORDS as usize, "{count} records are held");
        assert!(bytes <= MAX_RECORD_BYTES + (1 << 20), "{bytes} bytes are held");
        assert!(
            env.transcript.rendered_blocks.len() < 3_000 && env.transcript.rendered_rows < 20_000
        );
        let rows: usize = env.transcript.rendered_blocks.values().map(|block| block.len()).sum();
        assert_eq!(rows, env.transcript.rendered_rows, "`rendered_rows` counts the rendered rows");
    };
    // Up, a page at a time: every turn is seen.
    let mut turns: Vec<u32> = Vec::new();
    let mut collect_turns = |lines: &[String]| {
        let number = |line: &String| line.strip_prefix("› prompt ")?.parse::<u32>().ok();
        turns.extend(lines.iter().filter_map(number));
    };
    collect_turns(&content_rows(&mut env));
    for _ in 0..20_000 {
        env.scroll_and_load(ScrollTarget::Pages(-1));
        assert_bounded(&env);
        let lines = content_rows(&mut env);
        collect_turns(&lines);
        if lines[0] == "› prompt 1" {
            break;
        }
    }
    turns.dedup();
    turns.sort_unstable();
    turns.dedup();
    assert_eq!(turns, (1..=7_200).collect::<Vec<_>>());
    // Down again to the end.
    for _ in 0..20_000 {
        if env.transcript.is_following() {
            break;
        }
        env.scroll_and_load(ScrollTarget::Pages(1));
        assert_bounded(&env);
        env.frame();
    }
    assert!(env.transcript.is_following());
    assert!(env.frame().contains("done with 7200"), "{}", env.frame());
    env.scroll_and_load(ScrollTarget::Top);
    assert_eq!(env.lines()[0], "› prompt 1");
    env.scroll_and_load(ScrollTarget::End);
    assert!(env.frame().contains("done with 7200"));
}

#[test]
fn a_window_shows_the_same_rows_as_the_full_log() {
    let log = build_log(400);
    let mut full = TestTranscript::new((60, 20));
    full.frame();
    full.open_at(0);
    // A screen that is high enough for all rows receives the events one by one and drops none.
    full.resize(60, 9_000);
    full.frame();
    for record in &log {
        full.event(Event::Fact(record.clone()));
    }
    let all = full.frame();
    let all: Vec<&str> = all.lines().collect();
    assert_eq!(all[0], "› prompt 1");
    let mut env = TestTranscript::resumed((60, 20), log);
    let mut bottom = all.len();
    loop {
        let lines = content_rows(&mut env);
        let start = (0..=bottom.saturating_sub(lines.len()))
            .rev()
            .find(|at| all[*at..].iter().zip(&lines).all(|(one, other)| one == other));
        let start =
            start.unwrap_or_else(|| panic!("rows are not in the full transcript: {lines:#?}"));
        if start == 0 {
            break;
        }
        assert!(bottom - start <= 2 * lines.len(), "rows were skipped");
        bottom = start + lines.len() - 1;
        env.scroll_and_load(ScrollTarget::Pages(-1));
    }
}

#[test]
fn events_received_far_from_the_end_are_shown_at_the_end() {
    let mut env = TestTranscript::resumed((60, 20), build_log(300));
    env.scroll_and_load(ScrollTarget::Top);
    let before = content_rows(&mut env);
    env.start_turn(301, "while away");
    env.facts([model_text("and this"), turn_completed(301)]);
    assert_eq!(content_rows(&mut env), before);
    assert!(env.frame().contains("more below"), "{}", env.frame());
    env.scroll_and_load(ScrollTarget::End);
    assert!(env.frame().contains("and this"), "{}", env.frame());
    env.fact(model_text("and that"));
    assert!(env.frame().contains("and that"), "{}", env.frame());
}

#[test]
fn events_received_before_the_history_are_not_lost() {
    let log = build_log(50);
    let mut env = TestTranscript::new((60, 20));
    env.frame();
    env.log = log;
    let head = env.log.len() as u64;
    env.open_at(head);
    // The host reads the log before these facts and answers after them.
    let stale_log = env.log.clone();
    env.start_turn(51, "already");
    env.fact(model_text("going on"));
    let current_log = std::mem::replace(&mut env.log, stale_log);
    while let Some(message) = env.sent.pop_front() {
        env.answer(message);
        env.log.clone_from(&current_log);
    }
    assert!(env.frame().contains("going on"), "{}", env.frame());
    assert!(env.state.is_busy());
}

#[test]
fn prompt_keys_jump_between_prompts() {
    let mut env = TestTranscript::resumed((60, 12), build_log(120));
    for turn in (1..=120).rev() {
        env.scroll_and_load(ScrollTarget::PreviousPrompt);
        assert_eq!(env.lines()[0], format!("› prompt {turn}"));
    }
    env.scroll_and_load(ScrollTarget::PreviousPrompt);
    assert_eq!(env.lines()[0], "› prompt 1");
    for turn in 2..=119 {
        env.scroll_and_load(ScrollTarget::NextPrompt);
        assert_eq!(env.lines()[0], format!("› prompt {turn}"));
    }
}

#[test]
fn the_middle_block_is_expanded_and_collapsed() {
    let mut env = TestTranscript::resumed((60, 21), build_log(20));
    env.scroll_and_load(ScrollTarget::Lines(-30));
    let before = env.lines();
    env.transcript.toggle_details(DetailsTarget::MiddleBlock);
    let expanded = env.lines();
    assert_ne!(expanded, before);
    assert_eq!(expanded[0], before[0]);
    env.transcript.toggle_details(DetailsTarget::MiddleBlock);
    assert_eq!(env.lines(), before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn scrolling_up_and_down_again_shows_the_same_rows(
        start in 0i32..900,
        distance in 1i32..400,
        width in 20u16..100,
        height in 4u16..40,
    ) {
        let mut env = TestTranscript::resumed((width, height), build_log(80));
        env.scroll_and_load(ScrollTarget::Lines(-start));
        let before = env.lines();
        let start_anchor = env.transcript.anchor;
        env.scroll_and_load(ScrollTarget::Lines(-distance));
        let moved_anchor = env.transcript.anchor;
        env.scroll_and_load(ScrollTarget::Lines(distance));
        // Scrolling up stops at the first row, so the same distance down ends further down.
        let reached_top = moved_anchor.is_some_and(|anchor| anchor.key.0 <= 3);
        if !reached_top && moved_anchor != start_anchor {
            prop_assert_eq!(env.lines(), before);
        }
    }
}
