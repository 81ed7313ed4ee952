//! More than the keeper can take: questions without end, and no descriptors.

use crate::yard::{alive, cage, keepers, nap, order, run, said, until};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::time::{Duration, Instant};
use windlass_sandbox::{Backend, Cage, Jobs, Network};

pub fn one_that_keeps_asking_is_ended_all_the_same() {
    run(async {
        let (nap, folder) = (nap(), tempfile::tempdir().unwrap());
        let root = std::fs::canonicalize(folder.path()).unwrap();
        let temp = root.join("temp");
        std::fs::create_dir(&temp).unwrap();
        let walls = Cage {
            backend: Backend::Landlock,
            root: root.clone(),
            temp,
            network: Network::None,
            ..cage()
        };
        let jobs = Jobs::new();
        let script = format!(
            "for i in {{1..100}}; do bash -c 'while :; do : > f$0; done' {nap} & done; wait"
        );
        let mut order = order(&script);
        (order.folder, order.cage) = (root, walls);
        let job = jobs.start(order).await.unwrap();
        until("the crowd", || alive(&nap).len() > 50).await;
        let began = Instant::now();
        job.kill_after(Duration::from_millis(100)).await;
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        until("the end of the crowd", || alive(&nap).is_empty()).await;
    });
}

pub fn a_keeper_without_descriptors_goes_on() {
    run(async {
        let jobs = Jobs::new();
        let (text, _) = said(&jobs, "ulimit -n").await;
        let own = rustix::process::getrlimit(Resource::Nofile);
        assert_eq!(text.trim(), own.current.map_or("unlimited".into(), |most| most.to_string()));
        let keeper = keepers();
        let pid = Pid::from_raw(keeper[0]);
        let mut failed = 0;
        for most in 4..24 {
            let few = Rlimit { current: Some(most), maximum: own.maximum };
            prlimit(pid, Resource::Nofile, few).unwrap();
            match jobs.start(order("true")).await {
                Ok(job) => drop(job.ended().await),
                Err(_) => failed += 1,
            }
            assert_eq!(keepers(), keeper, "with {most}");
        }
        assert!(failed > 0);
        prlimit(pid, Resource::Nofile, own).unwrap();
        assert_eq!(said(&jobs, "echo on").await.0, "on\n");
    });
}
