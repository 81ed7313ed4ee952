//! Tests of the resource limits of commands, and of the cost of supervising them.

use crate::support::{
    block_on, environment, is_soak, marked_pids, run_command, sandbox_profiles, sleep_marker,
    spawn_spec, start_command,
};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use windlass_sandbox::{JobLimits, ProcessExit, SandboxProfile, SpawnSpec, SupervisorClient};

/// Returns a fork bomb whose processes all have `marker` in their command line.
fn fork_bomb(marker: &str) -> String {
    format!("exec bash -c ':(){{ :|:& }}; : & sleep 30; true' {marker}")
}

pub fn a_fork_bomb_is_stopped() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        let other = start_command(&jobs, "sleep 600; true").await;
        let began = Instant::now();
        let job = start_command(&jobs, &fork_bomb(&marker)).await;
        let report = job.wait_for_exit().await;
        assert!(matches!(report.exit, ProcessExit::TooManyProcesses(2000)), "{report:?}");
        job.wait_until_gone().await;
        println!("the bomb ended after {:?}", began.elapsed());
        assert!(
            began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(30)),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(marked_pids(&marker), [0; 0]);
        assert!(other.exit_report().is_none(), "other jobs keep running");
        assert_eq!(run_command(&jobs, "echo on").await.0, "on\n");
        jobs.end_all().await;
    });
}

pub fn a_fork_bomb_in_the_background_is_stopped() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        let script = format!("setsid bash -c ':(){{ :|:& }}; sleep 0.3; :' {marker} & exit 0");
        let job = start_command(&jobs, &script).await;
        let first = job.wait_for_exit().await;
        assert_eq!(first.exit, ProcessExit::Code(0));
        job.wait_until_gone().await;
        let exit = job.wait_for_exit().await.exit;
        assert!(matches!(exit, ProcessExit::TooManyProcesses(_)), "{exit:?}");
        assert_eq!(marked_pids(&marker), [0; 0]);
    });
}

pub fn file_sizes_and_core_dumps_are_limited() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let (text, _) = run_command(&jobs, "ulimit -c; ulimit -f; ulimit -Hc").await;
        assert_eq!(text, format!("0\n{}\n0\n", (4u64 << 30) / 1024));
        let folder = tempfile::tempdir().unwrap();
        let mut spec = spawn_spec("truncate -s 5G large; echo $?; ls -s");
        spec.folder = folder.path().into();
        let job = jobs.start(spec).await.unwrap();
        job.wait_for_exit().await;
        let large = folder.path().join("large");
        assert!(std::fs::metadata(large).map_or(0, |data| data.len()) <= 4 << 30);
    });
}

/// Creates a workspace and a temp folder, and returns a profile for each sandbox backend.
fn create_sandboxed_workspace() -> (tempfile::TempDir, Vec<SandboxProfile>) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (work, temp) = (folder.path().join("work"), folder.path().join("temp"));
    std::fs::create_dir(&work).unwrap();
    std::fs::create_dir(&temp).unwrap();
    let profiles = sandbox_profiles(&work, &temp);
    (folder, profiles)
}

fn sandboxed_spec(profile: &SandboxProfile, command: &str) -> SpawnSpec {
    SpawnSpec { sandbox: profile.clone(), folder: profile.root.clone(), ..spawn_spec(command) }
}

pub fn a_sandbox_limits_file_sizes() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let (_folder, profiles) = create_sandboxed_workspace();
        for profile in profiles {
            let script = "truncate -s 10G big; echo $?; fallocate -l 10G large; echo $?; \
                          head -c 1 /dev/zero | dd of=far bs=1 seek=10G 2>&1; echo $?; \
                          truncate -s 10G \"$TMPDIR/big\"; echo $?; echo small > small";
            let job = jobs.start(sandboxed_spec(&profile, script)).await.unwrap();
            job.wait_for_exit().await;
            let output = String::from_utf8_lossy(&job.output().head).into_owned();
            for path in ["big", "large", "far"].map(|name| profile.root.join(name)) {
                let size = std::fs::metadata(&path).map_or(0, |data| data.len());
                assert!(size <= 4 << 30, "{:?}: {path:?} {size}: {output}", profile.backend);
                let _ = std::fs::remove_file(path);
            }
            let size = std::fs::metadata(profile.temp_dir.join("big")).map_or(0, |data| data.len());
            assert!(size <= 4 << 30, "{:?}: {size}: {output}", profile.backend);
            assert!(!output.lines().any(|line| line == "0"), "{:?}: {output}", profile.backend);
            let small = std::fs::read_to_string(profile.root.join("small"));
            assert_eq!(small.unwrap(), "small\n", "{:?}: {output}", profile.backend);
        }
    });
}

pub fn a_job_that_uses_up_the_memory_is_killed_and_others_are_not() {
    block_on(async {
        let (_folder, profiles) = create_sandboxed_workspace();
        for profile in profiles {
            let jobs = SupervisorClient::new();
            let small = jobs.start(sandboxed_spec(&profile, "sleep 600; true")).await.unwrap();
            // As if the machine had only 300 MB more than are used now.
            let limits = JobLimits {
                min_free_memory: available_memory() - (300 << 20),
                ..Default::default()
            };
            let script = "cat /proc/self/oom_score_adj; \
                          python3 -c 'import time; x = bytearray(900 << 20); time.sleep(600)'";
            let hog = SpawnSpec { limits, ..sandboxed_spec(&profile, script) };
            let hog = jobs.start(hog).await.unwrap();
            let report = hog.wait_for_exit().await;
            assert_eq!(report.exit, ProcessExit::OutOfMemory, "{:?}", profile.backend);
            assert_eq!(hog.output().head, b"500\n", "{:?}", profile.backend);
            hog.wait_until_gone().await;
            assert!(small.exit_report().is_none(), "{:?}", profile.backend);
            jobs.end_all().await;
        }
    });
}

fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|line| line.starts_with("MemAvailable:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

pub fn a_job_that_fills_the_disk_is_killed() {
    block_on(async {
        let (folder, profiles) = create_sandboxed_workspace();
        for profile in profiles {
            let jobs = SupervisorClient::new();
            let disk = rustix::fs::statvfs(folder.path()).unwrap();
            let free = disk.f_bavail * disk.f_frsize;
            // As if the disk were almost full.
            let limits = JobLimits { min_free_disk: free, ..Default::default() };
            let few = sandboxed_spec(&profile, "head -c 9M /dev/zero > x; sleep 0.5");
            let report =
                jobs.start(SpawnSpec { limits, ..few }).await.unwrap().wait_for_exit().await;
            assert_eq!(report.exit, ProcessExit::Code(0), "{:?}", profile.backend);
            let filler = sandboxed_spec(
                &profile,
                "for i in {1..300}; do head -c 9M /dev/zero >> filler; sleep 0.02; done",
            );
            let report =
                jobs.start(SpawnSpec { limits, ..filler }).await.unwrap().wait_for_exit().await;
            assert_eq!(report.exit, ProcessExit::DiskFull, "{:?}", profile.backend);
            std::fs::remove_file(profile.root.join("filler")).unwrap();
        }
    });
}

pub fn shared_memory_is_private_and_limited() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let (_folder, profiles) = create_sandboxed_workspace();
        let profile = profiles.into_iter().next().unwrap();
        let script = "echo x > /dev/shm/mine && df --output=size -B1 /dev/shm | tail -1; \
                      ls /dev/shm; echo y > /dev/unbounded; echo $?; echo z > /dev/null; echo $?";
        let job = jobs.start(sandboxed_spec(&profile, script)).await.unwrap();
        job.wait_for_exit().await;
        let output = String::from_utf8_lossy(&job.output().head).into_owned();
        let lines: Vec<&str> = output.lines().filter(|line| !line.contains("bash:")).collect();
        assert_eq!(lines, ["1073741824", "mine", "1", "0"], "{output}");
        assert!(!std::path::Path::new("/dev/shm/mine").exists());
    });
}

pub fn a_fork_bomb_in_a_sandbox_is_stopped() {
    block_on(async {
        let (_folder, profiles) = create_sandboxed_workspace();
        for profile in profiles {
            let (marker, jobs) = (sleep_marker(), SupervisorClient::new());
            let began = Instant::now();
            let job = jobs.start(sandboxed_spec(&profile, &fork_bomb(&marker))).await.unwrap();
            let report = job.wait_for_exit().await;
            assert!(
                matches!(report.exit, ProcessExit::TooManyProcesses(2000)),
                "{:?}: {report:?}",
                profile.backend
            );
            job.wait_until_gone().await;
            println!("{:?}: the bomb ended after {:?}", profile.backend, began.elapsed());
            assert!(
                began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(40)),
                "{:?}",
                began.elapsed()
            );
            assert_eq!(marked_pids(&marker), [0; 0]);
        }
    });
}

/// Returns the resident memory of this process in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

pub fn a_flood_from_a_sandbox_costs_little() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let (_folder, profiles) = create_sandboxed_workspace();
        for profile in profiles {
            let before = resident_bytes();
            let job =
                jobs.start(sandboxed_spec(&profile, "timeout 2 yes; echo over")).await.unwrap();
            let report = job.wait_for_exit().await;
            let output = job.output();
            assert_eq!(report.exit, ProcessExit::Code(0));
            assert!(output.total_bytes > 50_000_000, "{}", output.total_bytes);
            assert!(output.tail.ends_with(b"y\nover\n") || output.tail.ends_with(b"over\n"));
            let grown = resident_bytes().saturating_sub(before);
            println!("{:?}: {} bytes, grown by {grown}", profile.backend, output.total_bytes);
            assert!(grown < 8 << 20, "{grown}");
        }
    });
}

pub fn a_supervised_command_costs_little_more_than_a_plain_one() {
    // A busy machine gives higher figures, so outside the soak this only catches what a mistake
    // would add, such as a pause in the event loop or a walk over all processes. The best of three
    // rounds counts, because other load rarely disturbs all three.
    let limit = if is_soak() { 2.0 } else { 4.0 };
    let mut best = f64::MAX;
    for _ in 0..3 {
        best = best.min(block_on(relative_command_cost()));
        if best < limit {
            return;
        }
    }
    panic!("a supervised command takes {best} times as long");
}

/// Returns the duration of a supervised command relative to a plain one, at the 10th percentile of
/// 200 runs.
async fn relative_command_cost() -> f64 {
    let jobs = SupervisorClient::new();
    run_command(&jobs, "true").await;
    let (mut plain, mut starts, mut supervised) = (Vec::new(), Vec::new(), Vec::new());
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
        plain.push(began.elapsed());
        let began = Instant::now();
        let job = start_command(&jobs, "true").await;
        starts.push(began.elapsed());
        job.wait_for_exit().await;
        supervised.push(began.elapsed());
    }
    plain.sort();
    starts.sort();
    supervised.sort();
    let ratio = supervised[100].as_secs_f64() / plain[100].as_secs_f64();
    let best = supervised[20].as_secs_f64() / plain[20].as_secs_f64();
    println!("plain {:?}, supervised {:?}: {ratio:.2} times", plain[100], supervised[100]);
    println!("of which start: {:?}", starts[100]);
    println!(
        "10th percentile: plain {:?}, supervised {:?}: {best:.2} times",
        plain[20], supervised[20]
    );
    best
}
