//! The day of the process that embeds the engine: warm-up, work, rest, and what it comes to.

use crate::chance::Chance;
use crate::gauge::{Sample, median, worked};
use crate::seat::{Habit, Seat};
use crate::yard::{Tally, Yard};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::task::JoinSet;

/// How many people are at work at once. The first stays with a session for long.
const SEATS: u64 = 6;

/// Calls in half an hour, at least.
const CALLS: f64 = 10_000.0;

/// What has to happen in a long day.
const FACTS: &[&str] = &[
    "asked",
    "answered",
    "inquired",
    "replied",
    "spawned",
    "interrupted",
    "steered",
    "compacted",
    "changing",
    "retrying",
];
const TOOLS: &[&str] = &[
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

/// How long things last.
struct Hours {
    warm: Duration,
    work: Duration,
    rest: Duration,
    between: Duration,
    /// Set if somebody said how long.
    minutes: Option<f64>,
}

impl Hours {
    fn read() -> Hours {
        let minutes = std::env::var("WINDLASS_SOAK_MINUTES").ok();
        match minutes.map(|minutes| minutes.parse::<f64>().unwrap()) {
            Some(minutes) => Hours {
                warm: Duration::from_secs_f64(minutes * 6.0),
                work: Duration::from_secs_f64(minutes * 54.0),
                rest: Duration::from_secs(20),
                between: Duration::from_secs(2),
                minutes: Some(minutes),
            },
            None => Hours {
                warm: Duration::from_millis(1_500),
                work: Duration::from_millis(3_500),
                rest: Duration::from_secs(5),
                between: Duration::from_millis(100),
                minutes: None,
            },
        }
    }
}

/// Lives it through, and fails if something of it stays.
pub(crate) fn live(url: &str, folder: &Path) {
    let given = std::env::var("WINDLASS_SEED").ok().map(|seed| seed.parse().unwrap());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = given.unwrap_or_else(|| Chance::of(now.as_nanos() as u64, 0).next());
    println!("soak: WINDLASS_SEED={seed} does the same again");
    // As in the binary, but for threads that wait for other work: those are not waited for.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(Duration::from_millis(500))
        .build();
    runtime.unwrap().block_on(day(url, folder, seed));
}

async fn day(url: &str, folder: &Path, seed: u64) {
    let hours = Hours::read();
    let yard = Arc::new(Yard::open(folder, url).await);
    work(&yard, seed, hours.warm, None).await;
    let before = settled(None).await;
    println!("soak: warm: {before}");
    let samples = work(&yard, seed + 1, hours.work, Some(hours.between)).await;
    let [first, second, third] = thirds(&samples);
    let idle = rest(&yard, seed + 2, hours.rest).await;
    let after = settled(Some(&before)).await;

    println!("soak: memory in each third: {first:.1}, {second:.1}, {third:.1} MB");
    println!("soak: warm: {before}\nsoak: afterwards: {after}");
    println!("soak: {:.2} % of a processor with {SEATS} sessions idle", idle * 100.0);
    yard.tally(|tally| {
        print_all(tally);
        if let Some(minutes) = hours.minutes {
            missing(tally, minutes);
        }
    });
    assert!(third <= second * 1.10 + 4.0, "memory grows: {second:.1} MB, then {third:.1} MB");
    assert!(after.is_within(&before), "something is kept: {before}; afterwards {after}");
    assert!(idle < 0.01, "{:.2} % of a processor for nothing", idle * 100.0);
    assert!(yard.log.list().await.unwrap().is_empty(), "sessions are left");
    let locks = std::fs::read_dir(folder.join("data/locks")).unwrap().count();
    assert_eq!(locks, 0, "locks of sessions that are gone");
}

/// Everybody works for a while; what the process takes meanwhile.
async fn work(
    yard: &Arc<Yard>,
    seed: u64,
    time: Duration,
    between: Option<Duration>,
) -> Vec<Sample> {
    let (engine, began) = (yard.engine(), Instant::now());
    let until = began + time;
    let mut seats = JoinSet::new();
    for place in 0..SEATS {
        let habit = if place == 0 { Habit::Faithful } else { Habit::Fickle };
        seats.spawn(Seat::new(yard, &engine, place, seed).work(habit, until));
    }
    let mut samples = Vec::new();
    let mut told = 0;
    while Instant::now() < until {
        tokio::time::sleep(between.unwrap_or(Duration::from_millis(100)).min(time)).await;
        while let Some(ended) = seats.try_join_next() {
            ended.unwrap();
        }
        if between.is_none() {
            continue;
        }
        let sample = Sample::take();
        samples.push(sample);
        let minutes = began.elapsed().as_secs() / 60;
        if minutes > told {
            told = minutes;
            let calls = yard.tally(|tally| tally.calls());
            println!("soak: {minutes} min: {calls} calls, {sample}");
        }
    }
    while let Some(ended) = seats.join_next().await {
        ended.unwrap();
    }
    samples
}

fn thirds(samples: &[Sample]) -> [f64; 3] {
    let third = samples.len() / 3;
    [0, 1, 2].map(|part| median(&samples[part * third..(part + 1) * third]))
}

/// Sessions that are open and have nothing to do; how much of a processor that takes.
async fn rest(yard: &Arc<Yard>, seed: u64, time: Duration) -> f64 {
    let engine = yard.engine();
    let mut handles = Vec::new();
    for place in 0..SEATS {
        handles.push(Seat::new(yard, &engine, place, seed).rest().await);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (began, before) = (Instant::now(), worked());
    tokio::time::sleep(time).await;
    let share = (worked() - before) / began.elapsed().as_secs_f64();
    for handle in handles {
        let session = handle.session;
        handle.close().await.unwrap();
        yard.remove(&engine, session).await;
    }
    share
}

/// What the process takes when nothing is open: what it is known to have taken before, or what stays
/// the same for a while.
async fn settled(known: Option<&Sample>) -> Sample {
    let began = Instant::now();
    let mut last = Sample::take();
    let mut same = 0;
    while began.elapsed() < Duration::from_secs(30) {
        tokio::time::sleep(Duration::from_millis(250)).await;
        let now = Sample::take();
        same = if now.is_within(&last) && last.is_within(&now) { same + 1 } else { 0 };
        last = now;
        if same >= 4 && known.is_none_or(|known| now.is_within(known)) {
            break;
        }
    }
    last
}

fn print_all(tally: &Tally) {
    println!("soak: {} calls", tally.calls());
    println!("soak: completed, of all: {:?}", tally.calls);
    println!("soak: acts: {:?}", tally.acts);
    println!("soak: ends of turns: {:?}", tally.ends);
    println!("soak: facts: {:?}", tally.facts);
}

/// Fails if a long day went by without something that belongs to it.
fn missing(tally: &Tally, minutes: f64) {
    let facts = FACTS.iter().filter(|fact| !tally.facts.contains_key(**fact));
    let came_well = |tool: &str| tally.calls.get(tool).map_or(0, |(well, _)| *well) > 0;
    let tools = TOOLS.iter().filter(|tool| !came_well(tool));
    let missing: Vec<_> = facts.chain(tools).collect();
    assert!(missing.is_empty() || minutes < 3.0, "nothing was seen of {missing:?}");
    assert!(tally.calls() as f64 >= CALLS * minutes / 30.0, "only {} calls", tally.calls());
}
