//! Tests of clicks and of the selection of a block.

use super::*;

fn transcript_with_calls() -> TestTranscript {
    let mut env = TestTranscript::open((60, 20));
    env.start_turn(1, "go");
    for number in 1..=3 {
        let arguments = format!(r#"{{"command": "echo {number}"}}"#);
        env.facts([
            tool_called(number, "bash", &arguments),
            call_started(number),
            call_settled(number, command_outcome(&format!("output {number}\nsecond\n"), 0)),
        ]);
    }
    env.frame();
    env
}

/// Clicks on the first row that contains a text.
fn click(env: &mut TestTranscript, text: &str) {
    let row = env.lines().iter().position(|line| line.contains(text)).expect(text);
    env.transcript.click(row);
}

#[test]
fn a_click_opens_a_call_and_its_headline_closes_it() {
    let mut env = transcript_with_calls();
    assert!(!env.frame().contains("output 2"), "{}", env.frame());
    click(&mut env, "echo 2");
    assert!(env.frame().contains("output 2"), "{}", env.frame());
    assert!(!env.frame().contains("output 3"), "{}", env.frame());
    click(&mut env, "output 2");
    assert!(env.frame().contains("output 2"), "a click into the text changes nothing");
    click(&mut env, "echo 2");
    assert!(!env.frame().contains("output 2"), "{}", env.frame());
    env.transcript.click(999);
}

#[test]
fn a_call_is_selected_with_keys_and_opened() {
    let mut env = transcript_with_calls();
    assert!(!env.transcript.toggle_selected());
    let move_up = |env: &mut TestTranscript| {
        env.with(|transcript, cx| transcript.move_selection(SelectionStep::Up, cx));
    };
    move_up(&mut env);
    assert!(env.transcript.toggle_selected());
    assert!(env.frame().contains("output 3"), "{}", env.frame());
    move_up(&mut env);
    move_up(&mut env);
    env.with(|transcript, cx| transcript.move_selection(SelectionStep::Down, cx));
    env.transcript.toggle_selected();
    let frame = env.frame();
    assert!(frame.contains("output 2") && !frame.contains("output 1"), "{frame}");
    env.transcript.clear_selection();
    assert!(!env.transcript.has_selection());
}

#[test]
fn the_selected_call_is_marked_without_colors() {
    let mut env = transcript_with_calls();
    env.with(|transcript, cx| transcript.move_selection(SelectionStep::Up, cx));
    env.appearance.theme.color_depth = crate::theme::ColorDepth::Monochrome;
    let area = Rect::new(0, 0, 60, 20);
    let mut buffer = Buffer::empty(area);
    env.transcript.draw(area, &mut buffer, &env.appearance, &env.state);
    let is_reversed = |y: u16| buffer[(0, y)].modifier.contains(ratatui::style::Modifier::REVERSED);
    assert_eq!((0..20).filter(|y| is_reversed(*y)).count(), 1);
}

#[test]
fn a_selected_call_outside_the_screen_is_scrolled_to() {
    let mut env = transcript_with_calls();
    let text: String = (0..60).map(|line| format!("line {line}\n\n")).collect();
    env.fact(model_text(&text));
    env.frame();
    env.with(|transcript, cx| transcript.move_selection(SelectionStep::Up, cx));
    assert!(env.frame().contains("echo 3"), "{}", env.frame());
    env.with(|transcript, cx| {
        transcript.move_selection(SelectionStep::Up, cx);
        transcript.move_selection(SelectionStep::Up, cx);
    });
    env.answer_requests();
    assert!(env.frame().contains("echo 1"), "{}", env.frame());
}
