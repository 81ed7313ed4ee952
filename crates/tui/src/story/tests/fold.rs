//! Every kind of fact has its place, or none.

use super::*;
use crate::story::fold::What;
use windlass_protocol::{Answer, Fault, Inquiry, Point, Purpose, Verdict};

/// The blocks that facts become, by name.
fn blocks(facts: impl IntoIterator<Item = Fact>) -> Vec<&'static str> {
    let mut scene = Scene::open((80, 24));
    scene.facts(facts);
    names(&scene)
}

fn names(scene: &Scene) -> Vec<&'static str> {
    let name = |what: &What| match what {
        What::Prompt { asked: Some(_), steered: false } => "prompt",
        What::Prompt { asked: Some(_), steered: true } => "steered",
        What::Prompt { asked: None, .. } => "prompt elsewhere",
        What::Said => "said",
        What::Thought => "thought",
        What::Call(_) => "call",
        What::End { .. } => "end",
        What::Mode(_) => "mode",
        What::Compacted => "compacted",
        What::Forked => "forked",
        What::Back => "back",
        What::Hooked => "hooked",
        What::Retrying => "retrying",
        What::Lost => "lost",
        What::Told => "told",
        What::Note(_) => "note",
    };
    scene.story.fold.blocks.iter().map(|block| name(&block.what)).collect()
}

fn hooked(call: Option<CallId>, verdict: Verdict) -> Fact {
    Fact::Hooked { call, hook: "guard".into(), point: Point::Prompt, took_ms: 1, verdict }
}

fn retrying(attempt: u32) -> Fact {
    let fault = Fault::Network { message: "reset".into() };
    Fact::Retrying { turn: 1, step: attempt, attempt, fault, wait_ms: 2_000 }
}

fn ended(end: TurnEnd) -> Fact {
    Fact::TurnEnded { turn: 1, end }
}

#[test]
fn every_fact_becomes_what_it_is_or_nothing() {
    let reason = || "no".to_owned();
    let lost = Fact::StepEnded {
        turn: 1,
        step: 1,
        finish: Finish::Lost,
        usage: Usage::default(),
        cost: None,
    };
    let purpose = Purpose::Summary;
    let summary = Fact::StepStarted { turn: 1, step: 1, model: "m".into(), purpose };
    let nothing = [
        Fact::opened("/w", "0.9"),
        Fact::Briefed { text: "be good".into() },
        Fact::renamed("a title".into()),
        Fact::Pruned { calls: vec![call(1)] },
        prompted(prompt(1), "waits"),
        Fact::Withdrawn { prompt: prompt(1) },
        Fact::TurnStarted { turn: 1, prompt: None },
        step(1, 1),
        summary,
        step_ended(1, 1),
        Fact::Interrupted { turn: 1 },
        ended(TurnEnd::Done),
        said("  \n"),
        thought(""),
        asked(1),
        Fact::Answered { call: call(1), answer: Answer::Once },
        started(1),
        Fact::Inquired { call: call(1), inquiries: Vec::<Inquiry>::new() },
        Fact::Replied { call: call(1), replies: Vec::new() },
        Fact::Spawned { call: call(1), session: session(), agent: "explore".into() },
        Fact::Changing { call: call(1), changes: Vec::new() },
        Fact::Unchanged { call: call(1) },
        settled(1, gave("x")),
        hooked(None, Verdict::Passed),
        hooked(None, Verdict::Rewrote),
        hooked(None, Verdict::Asks { reason: reason() }),
        hooked(Some(call(1)), Verdict::Refused { reason: reason() }),
    ];
    for fact in nothing {
        let kind = fact.kind();
        assert_eq!(blocks([fact]), [""; 0], "{kind}");
    }
    let something = [
        (Fact::ModeChanged { mode: Mode::Auto }, "mode"),
        (Fact::Forked { from: session(), through: 3 }, "forked"),
        (Fact::Compacted { through: 3, summary: "all".into() }, "compacted"),
        (Fact::Reverted { to: 0 }, "back"),
        (Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) }, "prompt elsewhere"),
        (Fact::Steered { turn: 1, prompt: prompt(1) }, "prompt elsewhere"),
        (lost, "lost"),
        (retrying(1), "retrying"),
        (ended(TurnEnd::Interrupted), "end"),
        (ended(TurnEnd::Denied), "end"),
        (ended(TurnEnd::Limit { what: "steps".into() }), "end"),
        (ended(TurnEnd::Looped { what: "read".into() }), "end"),
        (ended(TurnEnd::Failed { fault: Fault::Network { message: "x".into() } }), "end"),
        (said("hello"), "said"),
        (thought("hm"), "thought"),
        (called(1, "read", "{}"), "call"),
        (hooked(None, Verdict::Refused { reason: reason() }), "hooked"),
        (hooked(None, Verdict::Failed { reason: reason() }), "hooked"),
        (Fact::ContextChanged { text: "a file changed".into() }, "told"),
    ];
    for (fact, name) in something {
        let kind = fact.kind();
        assert_eq!(blocks([fact]), [name], "{kind}");
    }
}

#[test]
fn a_prompt_stands_where_the_model_heard_of_it() {
    let facts = [
        prompted(prompt(1), "first"),
        Fact::TurnStarted { turn: 1, prompt: Some(prompt(1)) },
        prompted(prompt(2), "no, that way"),
        said("one"),
        Fact::Steered { turn: 1, prompt: prompt(2) },
        said("two"),
    ];
    assert_eq!(blocks(facts), ["prompt", "said", "steered", "said"]);
}

#[test]
fn only_the_last_of_several_tries_and_modes_in_a_row_is_told() {
    let facts = [retrying(1), retrying(2), retrying(3), said("well")];
    assert_eq!(blocks(facts), ["retrying", "said"]);
    let mode = |mode| Fact::ModeChanged { mode };
    assert_eq!(blocks([mode(Mode::Plan), mode(Mode::Ask), mode(Mode::Auto)]), ["mode"]);
}

#[test]
fn what_was_taken_back_is_gone_also_when_it_is_read_again() {
    let mut scene = Scene::open((80, 24));
    scene.ask(1, "first");
    scene.facts([said("one"), done(1)]);
    let to = scene.log.len() as u64;
    scene.ask(2, "second");
    scene.facts([said("two"), called(1, "read", "{}"), done(2), Fact::Reverted { to }]);
    assert_eq!(names(&scene), ["prompt", "said", "back"]);
    scene.fact(settled(1, gave("late")));
    scene.ask(3, "third");
    assert_eq!(names(&scene), ["prompt", "said", "back", "prompt"]);
    let again = Scene::resumed((80, 24), scene.log);
    assert_eq!(names(&again), ["prompt", "said", "back", "prompt"]);
}

#[test]
fn a_turn_that_took_long_says_so() {
    let mut scene = Scene::open((80, 24));
    scene.ask(1, "go");
    scene.now += 65_000;
    scene.facts([step_ended(1, 1), done(1)]);
    assert_eq!(names(&scene), ["prompt", "end"]);
    assert!(scene.frame().contains("1 m 05 s · $0.01"), "{}", scene.frame());
}

#[test]
fn an_outcome_without_its_call_is_nothing_and_stays_nothing() {
    let facts = [started(9), settled(9, gave("x")), said("hello")];
    assert_eq!(blocks(facts), ["said"]);
}

#[test]
fn a_note_stays_where_it_was_said() {
    let mut scene = Scene::open((80, 24));
    scene.fact(said("one"));
    scene.story.note("take care");
    scene.story.note("and more");
    scene.fact(said("two"));
    scene.story.fold.anew(&scene.story.window);
    assert_eq!(names(&scene), ["said", "note", "note", "said"]);
    scene.live(Live::Noticed { text: "a server went away".into() });
    assert_eq!(names(&scene), ["said", "note", "note", "said", "note"]);
}
