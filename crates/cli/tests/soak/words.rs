//! What the model says. A prompt names a plan; the plan's seed decides each step of the turn.

use crate::chance::Chance;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

/// How many files there are to look at.
pub(crate) const FILES: u64 = 40;

/// What a turn is to do. As text it is a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    /// The folder that is changed; none where an agent only looks.
    pub(crate) place: Option<u64>,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Plan { seed, steps, place } = self;
        let place = place.map(|place| place.to_string()).unwrap_or_default();
        write!(f, "plan:{seed}:{steps}:{place};")
    }
}

impl Plan {
    /// The last one that a request tells of.
    fn of(request: &Value) -> Option<Plan> {
        let messages = request["messages"].as_array()?;
        let asked = messages.iter().rev().filter(|message| message["role"] == "user");
        asked.filter_map(|message| Plan::parse(&message["content"].to_string())).next()
    }

    fn parse(text: &str) -> Option<Plan> {
        let (plan, _) = text.rsplit_once("plan:")?.1.split_once(';')?;
        let mut numbers = plan.split(':');
        let mut number = || numbers.next()?.parse().ok();
        Some(Plan { seed: number()?, steps: number()?, place: number() })
    }

    /// One step: a call or several.
    fn step(self, chance: &mut Chance) -> String {
        let Some(place) = self.place else { return look(chance) };
        let file = format!("made/{place}/{}.txt", chance.below(4));
        match chance.below(16) {
            0..=4 => look(chance),
            5 => look(chance) + &look(chance) + &look(chance),
            6 | 7 => {
                let lines = "A line with a tick in it.\n".repeat(20 + chance.below(60) as usize);
                let (first, number) = ("tick", chance.below(1_000));
                let second = format!("tock {number}");
                // What another session wrote since is not written over unseen.
                call("read", json!({"filePath": file, "limit": 5}))
                    + &call(
                        "write",
                        json!({"filePath": file, "content": format!("{number}\n{lines}")}),
                    )
                    + &call(
                        "edit",
                        json!({"filePath": file, "oldString": first, "newString": second, "replaceAll": true}),
                    )
            }
            8 | 9 => {
                let number = chance.below(1_000);
                let command = match chance.below(6) {
                    0 => format!("echo {number}; seq 1 300 | tail -n 3"),
                    1 => "for i in 1 2 3; do echo $i; sleep 0.05; done".to_owned(),
                    2 => "seq 1 30000".to_owned(),
                    3 => format!("touch made/{place}/touched-{}", number % 4),
                    4 => "sleep 0.5; echo late; exit 3".to_owned(),
                    _ => format!("echo {number} > {file}; wc -c {file}"),
                };
                call("bash", json!({"command": command}))
            }
            10 => {
                let command = ["sleep 60", "seq 1 100; sleep 0.3", "cat"];
                let command = command[chance.below(3) as usize];
                call("bash", json!({"command": command, "background": true}))
            }
            11 => {
                let inner = |path: u64| json!({"tool": "read", "parameters": {"filePath": format!("src/{path}.txt"), "limit": 20}});
                let calls: Vec<Value> = (0..3).map(|_| inner(chance.below(FILES))).collect();
                call("batch", json!({"tool_calls": calls}))
            }
            12 => {
                let todo = |number: u64| json!({"content": format!("thing {number}"), "status": "pending", "priority": "low"});
                let todos: Vec<Value> = (0..chance.below(6)).map(todo).collect();
                call("todowrite", json!({"todos": todos}))
            }
            13 => {
                let options = json!([{"label": "this"}, {"label": "that"}]);
                let question = json!({"header": "Way", "question": "Which?", "options": options});
                call("question", json!({"questions": [question]}))
            }
            _ => {
                let plan = Plan { seed: chance.next(), steps: 1 + chance.below(5), place: None };
                let background = chance.one_in(2);
                let order = json!({
                    "description": "looks around",
                    "prompt": plan.to_string(),
                    "subagent_type": "scout",
                    "background": background,
                });
                call("task", order)
            }
        }
    }
}

fn call(tool: &str, arguments: Value) -> String {
    format!("call {tool} {arguments}\n")
}

/// A call that changes nothing.
fn look(chance: &mut Chance) -> String {
    let path = format!("src/{}.txt", chance.below(FILES));
    match chance.below(6) {
        0..=2 => {
            let (offset, limit) = (1 + chance.below(60), 10 + chance.below(100));
            call("read", json!({"filePath": path, "offset": offset, "limit": limit}))
        }
        3 => call("grep", json!({"pattern": format!("line {}", chance.below(90)), "path": "src"})),
        4 => call("glob", json!({"pattern": "**/*.txt"})),
        _ => call("bash", json!({"command": format!("head -n {} {path}", 1 + chance.below(40))})),
    }
}

/// The job that the last call left in the background.
fn job(request: &Value) -> Option<u64> {
    let last = request["messages"].as_array()?.last()?;
    let text = last["content"].to_string();
    let (before, _) = text.split_once(" runs in the background")?;
    before.rsplit_once("Job ")?.1.parse().ok()
}

/// The model, as a function of what it is shown. It remembers how often each plan was gone on with,
/// as a summary may have taken its steps out of sight.
pub(crate) fn reply() -> impl Fn(&Value) -> String + Send + Sync {
    let given: Mutex<HashMap<u64, u64>> = Mutex::default();
    move |request| {
        let usage = format!("usage {} 20\n", request.to_string().len() / 4);
        if request.get("tools").is_none() {
            return usage + "say The work goes on, and nothing was left open.";
        }
        let Some(plan) = Plan::of(request) else { return usage + "say There is nothing to do." };
        let step = {
            let mut given = given.lock().unwrap();
            let step = given.entry(plan.seed).or_default();
            *step += 1;
            *step
        };
        let mut chance = Chance::of(plan.seed, step);
        if step > plan.steps {
            let words = "and so it was done ".repeat(1 + chance.below(200) as usize);
            return format!("{usage}say {words}\n");
        }
        let pause = match chance.below(40) {
            0..=9 => format!("stall {}\n", chance.below(60)),
            10 => "think It is as it is.\n".to_owned(),
            11 if step == 1 => "say It begins\ncut\n".to_owned(),
            _ => String::new(),
        };
        let act = match job(request) {
            Some(id) if !chance.one_in(4) => {
                call("job", json!({"id": id, "action": "wait", "timeout": 100}))
                    + &call("job", json!({"id": id, "action": "output"}))
                    + &call("job", json!({"id": id, "action": "kill"}))
            }
            Some(_) | None => plan.step(&mut chance),
        };
        usage + &pause + &act
    }
}
