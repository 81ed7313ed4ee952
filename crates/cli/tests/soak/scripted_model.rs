//! The scripted model. A prompt contains a plan, and the plan's seed selects the calls of each
//! step.

use crate::random::SoakRng;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::sync::Mutex;

/// The number of files in `src`.
pub(crate) const FILE_COUNT: u64 = 40;

/// The plan of a turn. Its text form is a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SoakTurnPlan {
    pub(crate) seed: u64,
    pub(crate) steps: u64,
    /// The number of the folder that is changed; `None` for a subagent, which only reads.
    pub(crate) folder: Option<u64>,
}

impl fmt::Display for SoakTurnPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SoakTurnPlan { seed, steps, folder } = self;
        let folder = folder.map(|folder| folder.to_string()).unwrap_or_default();
        write!(f, "plan:{seed}:{steps}:{folder};")
    }
}

impl SoakTurnPlan {
    /// Returns the last plan in a request.
    fn from_request(request: &Value) -> Option<SoakTurnPlan> {
        let messages = request["messages"].as_array()?;
        let prompts = messages.iter().rev().filter(|message| message["role"] == "user");
        prompts.filter_map(|message| SoakTurnPlan::parse(&message["content"].to_string())).next()
    }

    fn parse(text: &str) -> Option<SoakTurnPlan> {
        let (plan, _) = text.rsplit_once("plan:")?.1.split_once(';')?;
        let mut numbers = plan.split(':');
        let mut number = || numbers.next()?.parse().ok();
        Some(SoakTurnPlan { seed: number()?, steps: number()?, folder: number() })
    }

    /// Returns the calls of one step.
    fn step(self, rng: &mut SoakRng) -> String {
        let Some(folder) = self.folder else { return read_only_call(rng) };
        let file = format!("made/{folder}/{}.txt", rng.below(4));
        match rng.below(16) {
            0..=4 => read_only_call(rng),
            5 => read_only_call(rng) + &read_only_call(rng) + &read_only_call(rng),
            6 | 7 => {
                let lines = "A line with a tick in it.\n".repeat(20 + rng.below(60) as usize);
                let (first, number) = ("tick", rng.below(1_000));
                let second = format!("tock {number}");
                // A file that another session has changed must be read before it is written.
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
                let number = rng.below(1_000);
                let command = match rng.below(6) {
                    0 => format!("echo {number}; seq 1 300 | tail -n 3"),
                    1 => "for i in 1 2 3; do echo $i; sleep 0.05; done".to_owned(),
                    2 => "seq 1 30000".to_owned(),
                    3 => format!("touch made/{folder}/touched-{}", number % 4),
                    4 => "sleep 0.5; echo late; exit 3".to_owned(),
                    _ => format!("echo {number} > {file}; wc -c {file}"),
                };
                call("bash", json!({"command": command}))
            }
            10 => {
                let command = ["sleep 60", "seq 1 100; sleep 0.3", "cat"];
                let command = command[rng.below(3) as usize];
                call("bash", json!({"command": command, "background": true}))
            }
            11 => {
                let inner = |path: u64| json!({"tool": "read", "parameters": {"filePath": format!("src/{path}.txt"), "limit": 20}});
                let calls: Vec<Value> = (0..3).map(|_| inner(rng.below(FILE_COUNT))).collect();
                call("batch", json!({"tool_calls": calls}))
            }
            12 => {
                let todo = |number: u64| json!({"content": format!("thing {number}"), "status": "pending", "priority": "low"});
                let todos: Vec<Value> = (0..rng.below(6)).map(todo).collect();
                call("todowrite", json!({"todos": todos}))
            }
            13 => {
                let options = json!([{"label": "this"}, {"label": "that"}]);
                let question = json!({"header": "Way", "question": "Which?", "options": options});
                call("question", json!({"questions": [question]}))
            }
            _ => {
                let plan = SoakTurnPlan { seed: rng.next(), steps: 1 + rng.below(5), folder: None };
                let background = rng.one_in(2);
                let arguments = json!({
                    "description": "looks around",
                    "prompt": plan.to_string(),
                    "subagent_type": "scout",
                    "background": background,
                });
                call("task", arguments)
            }
        }
    }
}

fn call(tool: &str, arguments: Value) -> String {
    format!("call {tool} {arguments}\n")
}

/// Returns a call without side effects.
fn read_only_call(rng: &mut SoakRng) -> String {
    let path = format!("src/{}.txt", rng.below(FILE_COUNT));
    match rng.below(6) {
        0..=2 => {
            let (offset, limit) = (1 + rng.below(60), 10 + rng.below(100));
            call("read", json!({"filePath": path, "offset": offset, "limit": limit}))
        }
        3 => call("grep", json!({"pattern": format!("line {}", rng.below(90)), "path": "src"})),
        4 => call("glob", json!({"pattern": "**/*.txt"})),
        _ => call("bash", json!({"command": format!("head -n {} {path}", 1 + rng.below(40))})),
    }
}

/// Returns the id of the background job that the last call started.
fn background_job(request: &Value) -> Option<u64> {
    let last = request["messages"].as_array()?.last()?;
    let text = last["content"].to_string();
    let (before, _) = text.split_once(" runs in the background")?;
    before.rsplit_once("Job ")?.1.parse().ok()
}

/// Returns the model as a function from request to reply. It counts the steps of each plan itself,
/// because a compaction may have removed them from the request.
pub(crate) fn scripted_model() -> impl Fn(&Value) -> String + Send + Sync {
    let step_counts: Mutex<HashMap<u64, u64>> = Mutex::default();
    move |request| {
        let usage = format!("usage {} 20\n", request.to_string().len() / 4);
        if request.get("tools").is_none() {
            return usage + "say The work goes on, and nothing was left open.";
        }
        let Some(plan) = SoakTurnPlan::from_request(request) else {
            return usage + "say There is nothing to do.";
        };
        let step = {
            let mut step_counts = step_counts.lock().unwrap();
            let step = step_counts.entry(plan.seed).or_default();
            *step += 1;
            *step
        };
        let mut rng = SoakRng::for_actor(plan.seed, step);
        if step > plan.steps {
            let words = "and so it was done ".repeat(1 + rng.below(200) as usize);
            return format!("{usage}say {words}\n");
        }
        let pause = match rng.below(40) {
            0..=9 => format!("stall {}\n", rng.below(60)),
            10 => "think It is as it is.\n".to_owned(),
            11 if step == 1 => "say It begins\ncut\n".to_owned(),
            _ => String::new(),
        };
        let calls = match background_job(request) {
            Some(id) if !rng.one_in(4) => {
                call("job", json!({"id": id, "action": "wait", "timeout": 100}))
                    + &call("job", json!({"id": id, "action": "output"}))
                    + &call("job", json!({"id": id, "action": "kill"}))
            }
            Some(_) | None => plan.step(&mut rng),
        };
        usage + &pause + &calls
    }
}
