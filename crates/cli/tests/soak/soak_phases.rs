//! The phases of the process that runs the engine: warm-up, work, idle sessions, and the checks.

use crate::random::SoakRng;
use crate::resource_usage::{ResourceSample, cpu_seconds, median_memory};
use crate::simulated_user::{NextSessionChoice, SimulatedUser};
use crate::support::{SoakCounters, SoakEnv};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

/// The number of simulated users. The first one stays with a session for long.
const USER_COUNT: u64 = 6;

/// The calls that half an hour must reach.
const MIN_CALLS_PER_HALF_HOUR: f64 = 10_000.0;

/// Kinds of facts that a long run must contain.
const REQUIRED_FACTS: &[&str] = &[
    "permission_asked",
    "permission_answered",
    "question_asked",
    "question_answered",
    "subagent_started",
    "turn_interrupted",
    "prompt_steered",
    "context_compacted",
    "files_changing",
    "step_retrying",
];
/// Tools that a long run must call successfully.
const REQUIRED_TOOLS: &[&str] = &[
    "bash",
    "batch",
    "edit",
    "glob",
    "grep",
    "job",
    "question",
    "read",
    "task",
    "todowrite",
    "write",
];

/// The durations of the phases.
struct SoakDurations {
    warm_up: Duration,
    work: Duration,
    idle: Duration,
    sample_interval: Duration,
    /// The value of `WINDLASS_SOAK_MINUTES`, if it is set.
    minutes: Option<f64>,
}

impl SoakDurations {
    fn from_env() -> SoakDurations {
        let minutes = std::env::var("WINDLASS_SOAK_MINUTES").ok();
        match minutes.map(|minutes| minutes.parse::<f64>().unwrap()) {
            Some(minutes) => SoakDurations {
                warm_up: Duration::from_secs_f64(minutes * 6.0),
                work: Duration::from_secs_f64(minutes * 54.0),
                idle: Duration::from_secs(20),
                sample_interval: Duration::from_secs(2),
                minutes: Some(minutes),
            },
            None => SoakDurations {
                warm_up: Duration::from_millis(1_500),
                work: Duration::from_millis(3_500),
                idle: Duration::from_secs(5),
                sample_interval: Duration::from_millis(100),
                minutes: None,
            },
        }
    }
}

/// Runs all phases, and panics if resources are leaked.
pub(crate) fn run(url: &str, folder: &Path) {
    let given = std::env::var("WINDLASS_SEED").ok().map(|seed| seed.parse().unwrap());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = given.unwrap_or_else(|| SoakRng::for_actor(now.as_nanos() as u64, 0).next());
    println!("soak: WINDLASS_SEED={seed} repeats this run");
    // Like in the binary, except that idle threads end soon, so that they are not counted as leaks.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(Duration::from_millis(500))
        .build();
    runtime.unwrap().block_on(run_phases(url, folder, seed));
}

async fn run_phases(url: &str, folder: &Path, seed: u64) {
    let durations = SoakDurations::from_env();
    let env = Arc::new(SoakEnv::open(folder, url).await);
    work(&env, seed, durations.warm_up, None).await;
    let before = wait_until_stable(None).await;
    println!("soak: after warm-up: {before}");
    let samples = work(&env, seed + 1, durations.work, Some(durations.sample_interval)).await;
    let [first, second, third] = thirds(&samples);
    let idle = measure_idle(&env, seed + 2, durations.idle).await;
    let after = wait_until_stable(Some(&before)).await;

    println!("soak: memory in each third: {first:.1}, {second:.1}, {third:.1} MB");
    println!("soak: after warm-up: {before}\nsoak: at the end: {after}");
    println!("soak: {:.2} % of a CPU with {USER_COUNT} idle sessions", idle * 100.0);
    env.counters(|counters| {
        print_counters(counters);
        if let Some(minutes) = durations.minutes {
            check_coverage(counters, minutes);
        }
    });
    assert!(third <= second * 1.10 + 4.0, "memory grows: {second:.1} MB, then {third:.1} MB");
    assert!(after.is_within(&before), "resources are leaked: {before}; at the end {after}");
    assert!(idle < 0.01, "{:.2} % of a CPU while idle", idle * 100.0);
    assert!(
        env.log.list(&Default::default()).await.unwrap().is_empty(),
        "sessions are not deleted"
    );
    let locks = std::fs::read_dir(folder.join("data/locks")).unwrap().count();
    assert_eq!(locks, 0, "locks of deleted sessions are left");
}

/// Lets all users work for `time`, and returns samples of the resource usage.
async fn work(
    env: &Arc<SoakEnv>,
    seed: u64,
    time: Duration,
    sample_interval: Option<Duration>,
) -> Vec<ResourceSample> {
    let (engine, start) = (env.create_engine(), Instant::now());
    let until = start + time;
    let mut users = JoinSet::new();
    for user in 0..USER_COUNT {
        let habit = if user == 0 { NextSessionChoice::Stay } else { NextSessionChoice::Switch };
        users.spawn(SimulatedUser::new(env, &engine, user, seed).work(habit, until));
    }
    let mut samples = Vec::new();
    let mut printed_minutes = 0;
    while Instant::now() < until {
        tokio::time::sleep(sample_interval.unwrap_or(Duration::from_millis(100)).min(time)).await;
        while let Some(ended) = users.try_join_next() {
            ended.unwrap();
        }
        if sample_interval.is_none() {
            continue;
        }
        let sample = ResourceSample::take();
        samples.push(sample);
        let minutes = start.elapsed().as_secs() / 60;
        if minutes > printed_minutes {
            printed_minutes = minutes;
            let calls = env.counters(|counters| counters.calls());
            println!("soak: {minutes} min: {calls} calls, {sample}");
        }
    }
    while let Some(ended) = users.join_next().await {
        ended.unwrap();
    }
    samples
}

fn thirds(samples: &[ResourceSample]) -> [f64; 3] {
    let third = samples.len() / 3;
    [0, 1, 2].map(|part| median_memory(&samples[part * third..(part + 1) * third]))
}

/// Returns the share of a CPU that open, idle sessions use.
async fn measure_idle(env: &Arc<SoakEnv>, seed: u64, time: Duration) -> f64 {
    let engine = env.create_engine();
    let mut handles = Vec::new();
    for user in 0..USER_COUNT {
        handles.push(SimulatedUser::new(env, &engine, user, seed).open_idle_session().await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (start, before) = (Instant::now(), cpu_seconds());
    tokio::time::sleep(time).await;
    let share = (cpu_seconds() - before) / start.elapsed().as_secs_f64();
    for handle in handles {
        let session = handle.session;
        handle.close().await.unwrap();
        env.delete(&engine, session).await;
    }
    share
}

/// Waits until the resource usage is stable and, if `known` is given, not higher, and returns it.
async fn wait_until_stable(known: Option<&ResourceSample>) -> ResourceSample {
    let start = Instant::now();
    let mut last = ResourceSample::take();
    let mut same = 0;
    while start.elapsed() < Duration::from_secs(30) {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let now = ResourceSample::take();
        same = if now.is_within(&last) && last.is_within(&now) { same + 1 } else { 0 };
        last = now;
        if same >= 4 && known.is_none_or(|known| now.is_within(known)) {
            break;
        }
    }
    last
}

fn print_counters(counters: &SoakCounters) {
    println!("soak: {} calls", counters.calls());
    println!("soak: completed, of all: {:?}", counters.calls);
    println!("soak: actions: {:?}", counters.actions);
    println!("soak: ends of turns: {:?}", counters.ends);
    println!("soak: facts: {:?}", counters.facts);
}

/// Panics if a long run did not contain all required facts and tools.
fn check_coverage(counters: &SoakCounters, minutes: f64) {
    let facts = REQUIRED_FACTS.iter().filter(|fact| !counters.facts.contains_key(**fact));
    let has_completed =
        |tool: &str| counters.calls.get(tool).map_or(0, |(completed, _)| *completed) > 0;
    let tools = REQUIRED_TOOLS.iter().filter(|tool| !has_completed(tool));
    let missing: Vec<_> = facts.chain(tools).collect();
    assert!(missing.is_empty() || minutes < 3.0, "missing: {missing:?}");
    assert!(
        counters.calls() as f64 >= MIN_CALLS_PER_HALF_HOUR * minutes / 30.0,
        "only {} calls",
        counters.calls()
    );
}
