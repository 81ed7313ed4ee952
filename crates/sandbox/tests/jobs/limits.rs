//! What a command may use, and what it costs.

use crate::yard::{alive, cages, environment, nap, order, run, said, soak, start, until};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use windlass_sandbox::{Cage, Exit, Jobs, Order};

/// Everything the bomb starts has the word in its command line.
fn bomb(word: &str) -> String {
    format!("exec bash -c ':(){{ :|:& }}; : & sleep 30; true' {word}")
}

pub fn a_fork_bomb_is_stopped() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        let other = start(&jobs, "sleep 600; true").await;
        let began = Instant::now();
        let job = start(&jobs, &bomb(&nap)).await;
        let ending = job.ended().await;
        assert!(matches!(ending.exit, Exit::Crowded(2000)), "{ending:?}");
        job.left().await;
        println!("the bomb was over after {:?}", began.elapsed());
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
        assert_eq!(alive(&nap), [0; 0]);
        assert!(other.ending().is_none(), "the others go on");
        assert_eq!(said(&jobs, "echo on").await.0, "on\n");
        jobs.end_all().await;
    });
}

pub fn a_bomb_in_the_background_is_stopped() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        let script = format!("setsid bash -c ':(){{ :|:& }}; sleep 0.3; :' {nap} & exit 0");
        let job = start(&jobs, &script).await;
        let first = job.ended().await;
        assert_eq!(first.exit, Exit::Code(0));
        job.left().await;
        // Where the system itself runs out of processes first, the bomb dies by that.
        let exit = job.ended().await.exit;
        assert!(matches!(exit, Exit::Crowded(_) | Exit::Code(0)), "{exit:?}");
        until("the end of the bomb", || alive(&nap).is_empty()).await;
    });
}

pub fn files_and_cores_are_bounded() {
    run(async {
        let jobs = Jobs::new();
        let (text, _) = said(&jobs, "ulimit -c; ulimit -f; ulimit -Hc").await;
        assert_eq!(text, format!("0\n{}\n0\n", (4u64 << 30) / 1024));
        let folder = tempfile::tempdir().unwrap();
        let mut order = order("truncate -s 5G large; echo $?; ls -s");
        order.folder = folder.path().into();
        let job = jobs.start(order).await.unwrap();
        job.ended().await;
        let large = folder.path().join("large");
        assert!(std::fs::metadata(large).map_or(0, |data| data.len()) <= 4 << 30);
    });
}

/// A folder to work in, one for temporary files, and the cages around them.
fn caged() -> (tempfile::TempDir, Vec<Cage>) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (work, temp) = (folder.path().join("work"), folder.path().join("temp"));
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&temp).unwrap();
    let cages = cages(&work, &temp);
    (folder, cages)
}

fn order_in(cage: &Cage, command: &str) -> Order {
    Order { cage: cage.clone(), folder: cage.root.clone(), ..order(command) }
}

pub fn a_cage_bounds_files() {
    run(async {
        let jobs = Jobs::new();
        let (_folder, cages) = caged();
        for cage in cages {
            let script = "truncate -s 10G big; echo $?; fallocate -l 10G large; echo $?; \
                          head -c 1 /dev/zero | dd of=far bs=1 seek=10G 2>&1; echo $?; \
                          truncate -s 10G \"$TMPDIR/big\"; echo $?; echo small > small";
            let job = jobs.start(order_in(&cage, script)).await.unwrap();
            job.ended().await;
            let heard = String::from_utf8_lossy(&job.read().head).into_owned();
            for path in ["big", "large", "far"].map(|name| cage.root.join(name)) {
                let size = std::fs::metadata(&path).map_or(0, |data| data.len());
                assert!(size <= 4 << 30, "{:?}: {path:?} {size}: {heard}", cage.backend);
                let _ = std::fs::remove_file(path);
            }
            let size = std::fs::metadata(cage.temp.join("big")).map_or(0, |data| data.len());
            assert!(size <= 4 << 30, "{:?}: {size}: {heard}", cage.backend);
            assert!(!heard.lines().any(|line| line == "0"), "{:?}: {heard}", cage.backend);
            let small = std::fs::read_to_string(cage.root.join("small"));
            assert_eq!(small.unwrap(), "small\n", "{:?}: {heard}", cage.backend);
        }
    });
}

pub fn a_cage_does_not_hide_a_fork_bomb() {
    run(async {
        let (_folder, cages) = caged();
        for cage in cages {
            let (nap, jobs) = (nap(), Jobs::new());
            let began = Instant::now();
            let job = jobs.start(order_in(&cage, &bomb(&nap))).await.unwrap();
            let ending = job.ended().await;
            assert!(matches!(ending.exit, Exit::Crowded(2000)), "{:?}: {ending:?}", cage.backend);
            job.left().await;
            println!("{:?}: the bomb was over after {:?}", cage.backend, began.elapsed());
            assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
            assert_eq!(alive(&nap), [0; 0]);
        }
    });
}

/// How much memory this process takes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

pub fn a_flood_from_a_cage_costs_little() {
    run(async {
        let jobs = Jobs::new();
        let (_folder, cages) = caged();
        for cage in cages {
            let before = resident();
            let job = jobs.start(order_in(&cage, "timeout 2 yes; echo over")).await.unwrap();
            let ending = job.ended().await;
            let heard = job.read();
            assert_eq!(ending.exit, Exit::Code(0));
            assert!(heard.bytes > 50_000_000, "{}", heard.bytes);
            assert!(heard.tail.ends_with(b"y\nover\n") || heard.tail.ends_with(b"over\n"));
            let grown = resident().saturating_sub(before);
            println!("{:?}: {} bytes, grown by {grown}", cage.backend, heard.bytes);
            assert!(grown < 8 << 20, "{grown}");
        }
    });
}

pub fn a_command_costs_little_more_than_itself() {
    // A busy machine gives other figures, as a session of its own queues anew; so only what a
    // mistake would add, a pause of the loop or a walk over everybody, is caught always: whatever
    // else the machine does, it does not do it three times in a row.
    let most = if soak() { 2.0 } else { 4.0 };
    let mut least = f64::MAX;
    for _ in 0..3 {
        least = least.min(run(cost_of_a_command()));
        if least < most {
            return;
        }
    }
    panic!("{least}");
}

/// How much longer a command takes that is kept, in the best tenth of two hundred.
async fn cost_of_a_command() -> f64 {
    let jobs = Jobs::new();
    said(&jobs, "true").await;
    let (mut bare, mut begun, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..200 {
        let began = Instant::now();
        let status = Command::new("/bin/bash")
            .args(["-c", "true"])
            .env_clear()
            .envs(environment())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        bare.push(began.elapsed());
        let began = Instant::now();
        let job = start(&jobs, "true").await;
        begun.push(began.elapsed());
        job.ended().await;
        kept.push(began.elapsed());
    }
    bare.sort();
    begun.sort();
    kept.sort();
    let ratio = kept[100].as_secs_f64() / bare[100].as_secs_f64();
    let best = kept[20].as_secs_f64() / bare[20].as_secs_f64();
    println!("bare {:?}, kept {:?}: {ratio:.2} times", bare[100], kept[100]);
    println!("of which until it was started: {:?}", begun[100]);
    println!("best tenth: bare {:?}, kept {:?}: {best:.2} times", bare[20], kept[20]);
    best
}
