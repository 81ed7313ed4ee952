//! Every fact of every case lost to damage: the session opens, runs no call twice, answers another
//! prompt, and sends the model complete calls only.

use super::crash::cases;
use super::simulation::SessionSimulation;
use std::collections::HashSet;
use windlass_protocol::{Fact, MessagePart, MessageRole};

#[test]
fn a_session_goes_on_without_any_one_of_its_facts() {
    let mut trials = 0;
    for case in cases() {
        let mut whole = SessionSimulation::new(&case);
        whole.run();
        for index in 1..whole.facts().len() {
            let lost = whole.facts()[index].kind();
            let mut simulation = whole.clone();
            let requests = simulation.requests.len();
            simulation.run_with_lost_fact(index);
            trials += 1;
            let at = format!("{}: fact {} ({lost})", case.sentence, index + 1);
            let transcript = simulation.transcript();
            assert_eq!(transcript.lost_facts, 1, "{at}");
            let mut runs = HashSet::new();
            assert!(simulation.journal.iter().all(|call| runs.insert(*call)), "{at}: twice");
            for messages in &simulation.requests[requests..] {
                for message in messages.iter().filter(|m| m.role == MessageRole::Assistant) {
                    for part in &message.parts {
                        let MessagePart::Call(call) = part else { continue };
                        assert!(call.outcome.is_some(), "{at}: {} has no outcome", call.tool);
                    }
                }
            }
            let is_end = |fact: &Fact| matches!(fact, Fact::TurnEnded { .. });
            let ends = |facts: &[Fact]| facts.iter().filter(|fact| is_end(fact)).count();
            let before = ends(whole.facts()) - usize::from(is_end(&whole.facts()[index]));
            assert!(ends(simulation.facts()) > before, "{at}: no turn ended");
        }
    }
    println!("{trials} lost facts");
    assert!(trials > 500, "{trials}");
}
