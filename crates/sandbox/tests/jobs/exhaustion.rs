//! Tests of a supervisor under pressure: endless path requests and no file descriptors.

use crate::support::{
    block_on, marked_pids, run_command, sleep_marker, spawn_spec, supervisor_pids,
    unconfined_profile, wait_until,
};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::time::{Duration, Instant};
use windlass_sandbox::{NetworkAccess, SandboxBackend, SandboxProfile, SupervisorClient};

pub fn a_job_with_endless_path_requests_can_be_ended() {
    block_on(async {
        let (marker, folder) = (sleep_marker(), tempfile::tempdir().unwrap());
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let temp = root.join("temp");
        std::fs::create_dir(&temp).unwrap();
        let sandbox = SandboxProfile {
            backend: SandboxBackend::Landlock,
            root: root.clone(),
            temp_dir: temp,
            network: NetworkAccess::None,
            ..unconfined_profile()
        };
        let jobs = SupervisorClient::new();
        let script = format!(
            "for i in {{1..100}}; do bash -c 'while :; do : > f$0; done' {marker} & done; wait"
        );
        let mut spec = spawn_spec(&script);
        (spec.folder, spec.sandbox) = (root, sandbox);
        let job = jobs.start(spec).await.unwrap();
        wait_until("the start of the processes", || marked_pids(&marker).len() > 50).await;
        let began = Instant::now();
        job.kill_after(Duration::from_millis(100)).await;
        assert!(
            began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(5)),
            "{:?}",
            began.elapsed()
        );
        wait_until("the end of the processes", || marked_pids(&marker).is_empty()).await;
    });
}

pub fn a_supervisor_without_descriptors_keeps_running() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let (text, _) = run_command(&jobs, "ulimit -n").await;
        let own_limit = rustix::process::getrlimit(Resource::Nofile);
        assert_eq!(
            text.trim(),
            own_limit.current.map_or("unlimited".into(), |limit| limit.to_string())
        );
        let supervisor = supervisor_pids();
        let pid = Pid::from_raw(supervisor[0]);
        let mut failed = 0;
        for limit in 4..24 {
            let low_limit = Rlimit { current: Some(limit), maximum: own_limit.maximum };
            prlimit(pid, Resource::Nofile, low_limit).unwrap();
            match jobs.start(spawn_spec("true")).await {
                Ok(job) => drop(job.wait_for_exit().await),
                Err(_) => failed += 1,
            }
            assert_eq!(supervisor_pids(), supervisor, "with a limit of {limit}");
        }
        assert!(failed > 0);
        prlimit(pid, Resource::Nofile, own_limit).unwrap();
        assert_eq!(run_command(&jobs, "echo on").await.0, "on\n");
    });
}
