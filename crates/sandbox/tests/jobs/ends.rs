//! How commands end, and everything they start.

use crate::yard::{
    TEMP, alive, detached, keepers, kill, name, nap, order, run, said, soak, start, text, until,
    with,
};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use windlass_sandbox::{Exit, Jobs, Stdin};

pub fn a_command_tells_how_it_ended() {
    run(async {
        let jobs = Jobs::new();
        for (command, exit) in [
            ("true", Exit::Code(0)),
            ("exit 7", Exit::Code(7)),
            ("exit 255", Exit::Code(255)),
            ("no-such-program", Exit::Code(127)),
            ("kill -SEGV $$", Exit::Signal(11)),
            ("bash -c 'kill -SEGV $$'; exit $?", Exit::Code(139)),
            ("kill -KILL $$", Exit::Signal(9)),
            ("kill -TERM $$", Exit::Signal(15)),
            ("kill -PIPE $$", Exit::Signal(13)),
            ("kill -INT $$", Exit::Signal(2)),
            ("yes | head -1 >/dev/null; exit ${PIPESTATUS[0]}", Exit::Code(141)),
        ] {
            let (_, ending) = said(&jobs, command).await;
            assert_eq!(ending.exit, exit, "{command}");
            assert!(ending.still.is_empty(), "{command}");
        }
        let job = start(&jobs, "sleep 0.3").await;
        assert!(job.ending().is_none() && !job.gone());
        let took = job.ended().await.took;
        assert!((300..2000).contains(&took.as_millis()), "{took:?}");
        until("its leaving", || job.gone()).await;
    });
}

pub fn what_detaches_is_named_and_ended() {
    run(async {
        let jobs = Jobs::new();
        for command in detached("NAP") {
            let nap = nap();
            let command = command.replace("NAP", &nap);
            let began = Instant::now();
            let job = start(&jobs, &command).await;
            let ending = job.ended().await;
            assert!(began.elapsed() < Duration::from_secs(1), "{command}: {:?}", began.elapsed());
            assert_eq!((ending.exit, text(&job).as_str()), (Exit::Code(0), "done\n"), "{command}");
            // A daemon may be between two of its steps.
            until("its nap", || !alive(&nap).is_empty()).await;
            assert!(!ending.still.is_empty(), "{command}");
            assert!(!job.gone());
            let named =
                ending.still.iter().any(|one| one.line.contains(&nap) && !one.name.is_empty());
            assert!(named || command.contains("perl"), "{command}: {:?}", ending.still);
            job.kill_after(Duration::from_millis(200)).await;
            assert!(job.gone() && alive(&nap).is_empty(), "{command}: {:?}", alive(&nap));
        }
    });
}

pub fn a_job_is_gone_when_its_last_process_is() {
    run(async {
        let jobs = Jobs::new();
        let job = start(&jobs, "(sleep 0.3; bash -c 'sleep 0.4 & exit') & exit 3").await;
        let ending = job.ended().await;
        assert_eq!(ending.exit, Exit::Code(3));
        assert!(!job.gone());
        let began = Instant::now();
        job.left().await;
        let took = began.elapsed();
        assert!((Duration::from_millis(500)..Duration::from_secs(2)).contains(&took), "{took:?}");
        assert!(jobs.list().iter().all(|job| job.gone()));
    });
}

pub fn nothing_outlives_the_session() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        for command in detached(&nap) {
            start(&jobs, &command).await.ended().await;
        }
        start(&jobs, &format!("sleep {nap}; true")).await;
        assert!(alive(&nap).len() >= 8);
        jobs.end_all().await;
        assert_eq!(alive(&nap), [0; 0]);
        // And it can go on.
        assert_eq!(said(&jobs, "echo on").await.0, "on\n");

        for command in detached(&nap) {
            start(&jobs, &command).await.ended().await;
        }
        let keeper = keepers();
        assert_eq!(keeper.len(), 1);
        drop(jobs);
        until("the end of everything", || alive(&nap).is_empty()).await;
        until("the end of the keeper", || keepers().is_empty()).await;
    });
}

pub fn nothing_outlives_an_owner_that_was_killed() {
    let tries = if soak() { 100 } else { 10 };
    let mut slowest = Duration::ZERO;
    for round in 0..tries {
        let nap = nap();
        let mut commands = detached(&nap);
        commands.push(format!("sleep {nap} | sleep {nap} & wait"));
        let mut owner = Command::new("/proc/self/exe")
            .arg("owner")
            .args(&commands)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let before = alive(&nap).len();
        owner.kill().unwrap();
        owner.wait().unwrap();
        assert_eq!(line, "ready\n", "try {round}");
        assert!(before >= 8, "{before}");
        let took = run(until("the end of everything", || alive(&nap).is_empty()));
        slowest = slowest.max(took);
        assert!(took < Duration::from_secs(2), "try {round}: {took:?}");
    }
    println!("{tries} owners killed; the slowest end of everything took {slowest:?}");
}

pub fn a_folder_goes_with_its_owner_and_nothing_else_does() {
    use std::os::unix::fs::symlink;
    for (round, signal) in [Signal::KILL, Signal::TERM, Signal::KILL].into_iter().enumerate() {
        let place = tempfile::tempdir().unwrap();
        let (temp, other) = (place.path().join("temp"), place.path().join("other"));
        for folder in [&temp, &other] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("file"), "x").unwrap();
        }
        symlink(&other, temp.join("link")).unwrap();
        let nap = nap();
        let mut owner = Command::new("/proc/self/exe")
            .args(["owner", &format!("sleep {nap} & wait")])
            .env(TEMP, &temp)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let swapped = round == 2;
        if swapped {
            // Something else bears its name by then.
            std::fs::rename(&temp, place.path().join("moved")).unwrap();
            symlink(&other, &temp).unwrap();
        }
        kill(owner.id().cast_signed(), signal);
        owner.wait().unwrap();
        run(async {
            until("the end of everything", || alive(&nap).is_empty()).await;
            match swapped {
                false => drop(until("the end of the folder", || !temp.exists()).await),
                true => tokio::time::sleep(Duration::from_millis(300)).await,
            }
        });
        assert!(other.join("file").exists(), "a link is not followed");
        assert_eq!(temp.is_symlink(), swapped);
    }
}

pub fn one_that_ignores_the_request_is_killed() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        let job = start(&jobs, &format!("trap '' TERM; echo on; sleep {nap}; sleep {nap}")).await;
        until("its start", || text(&job) == "on\n").await;
        let began = Instant::now();
        job.kill().await;
        let took = began.elapsed();
        assert!((2900..4000).contains(&took.as_millis()), "{took:?}");
        assert_eq!(job.ended().await.exit, Exit::Signal(9));
        assert_eq!(alive(&nap), [0; 0]);

        // One that wants to tidy up can.
        let script = format!("trap 'echo bye; exit 4' TERM; echo on; sleep {nap} & wait");
        let job = start(&jobs, &script).await;
        until("its start", || text(&job) == "on\n").await;
        job.kill().await;
        assert_eq!((job.ended().await.exit, text(&job).as_str()), (Exit::Code(4), "on\nbye\n"));
    });
}

pub fn a_stopped_one_is_ended_too() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        let job = start(&jobs, &format!("sleep {nap} & kill -STOP $!; kill -STOP $$; true")).await;
        until("its start", || alive(&nap).len() == 2).await;
        let began = Instant::now();
        job.kill().await;
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert_eq!(alive(&nap), [0; 0]);
    });
}

/// Its first thread has ended, so the system calls it a zombie, without a name or an environment.
pub fn one_that_looks_dead_is_ended_too() {
    run(async {
        let script = "import ctypes, os, threading, time\n\
            print(os.getpid(), flush=True)\n\
            threading.Thread(target=time.sleep, args=(600,)).start()\n\
            ctypes.CDLL(None).pthread_exit(0)";
        let command = format!("setsid -f python3 -c '{script}' 2>/dev/null; sleep 0.7");
        let threads = |pid: &str| std::fs::read_dir(format!("/proc/{pid}/task")).is_ok();
        let jobs = Jobs::new();
        let job = start(&jobs, &command).await;
        let ending = job.ended().await;
        let pid = text(&job).trim().to_owned();
        assert!(threads(&pid) && !ending.still.is_empty(), "{ending:?}");
        assert!(!job.gone());
        job.kill().await;
        assert!(job.gone() && !threads(&pid));

        let job = start(&jobs, &command).await;
        job.ended().await;
        let pid = text(&job).trim().to_owned();
        drop((job, jobs));
        until("its end", || !threads(&pid)).await;
    });
}

pub fn a_kill_is_quick() {
    run(async {
        let jobs = Jobs::new();
        let mut slowest = Duration::ZERO;
        for _ in 0..10 {
            let nap = nap();
            let job = start(&jobs, &format!("sleep {nap} | sleep {nap} & sleep {nap}; true")).await;
            until("its start", || alive(&nap).len() >= 4).await;
            let began = Instant::now();
            job.kill().await;
            slowest = slowest.max(began.elapsed());
            assert_eq!(alive(&nap), [0; 0]);
        }
        println!("the slowest kill took {slowest:?}");
        assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    });
}

pub fn one_job_ends_without_the_others() {
    run(async {
        let (one, two) = (nap(), nap());
        let jobs = Jobs::new();
        let first = start(&jobs, &format!("setsid -f sleep {one}; sleep {one}; true")).await;
        let second =
            start(&jobs, &format!("setsid -f sleep {two}; nohup sleep {two} & true")).await;
        let ending = second.ended().await;
        assert!(ending.still.iter().all(|one| one.line.contains(&two)), "{:?}", ending.still);
        assert_eq!(ending.still.len(), 2);
        until("the first one's naps", || alive(&one).len() >= 3).await;
        second.kill().await;
        assert_eq!((alive(&one).len(), alive(&two).len()), (3, 0));
        assert!(first.ending().is_none());
        first.kill().await;
        assert_eq!(alive(&one), [0; 0]);
    });
}

pub fn a_keeper_that_was_killed_is_told_and_replaced() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        let done = start(&jobs, "echo fine").await;
        done.ended().await;
        let running: Vec<_> =
            [format!("exec sleep {nap}"), format!("echo half; sleep {nap}; true")]
                .into_iter()
                .map(|command| order(&command))
                .collect();
        let mut lost = Vec::new();
        for order in running {
            lost.push(jobs.start(order).await.unwrap());
        }
        until("the naps", || alive(&nap).len() == 3).await;
        kill(keepers()[0], Signal::KILL);
        for job in &lost {
            assert_eq!(job.ended().await.exit, Exit::Lost);
            job.left().await;
            job.kill().await;
        }
        assert_eq!(text(&lost[1]), "half\n");
        assert_eq!(done.ended().await.exit, Exit::Code(0), "what is known stays known");
        until("the end of the naps", || alive(&nap).is_empty()).await;
        assert_eq!(said(&jobs, "echo again").await.0, "again\n");
        assert_eq!(keepers().len(), 1);
    });
}

pub fn what_a_killed_keeper_left_is_cleared_up() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        let command = format!("setsid -f sleep {nap}; nohup sleep {nap} & echo on; wait");
        let job = start(&jobs, &command).await;
        until("its start", || text(&job).contains("on") && alive(&nap).len() == 3).await;
        kill(keepers()[0], Signal::KILL);
        job.left().await;
        until("the end of the naps", || alive(&nap).is_empty()).await;
    });
}

pub fn a_start_that_nobody_waits_for_is_ended() {
    run(async {
        let nap = nap();
        let jobs = Jobs::new();
        said(&jobs, "true").await;
        for _ in 0..20 {
            let start = jobs.start(order(&format!("sleep {nap}; true")));
            // It is asked once, and then nobody asks any more.
            let mut start = std::pin::pin!(start);
            let asked = |cx: &mut std::task::Context<'_>| {
                std::task::Poll::Ready(start.as_mut().poll(cx).is_pending())
            };
            assert!(std::future::poll_fn(asked).await, "it cannot be started without a pause");
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        until("the end of the naps", || alive(&nap).is_empty()).await;
        assert!(jobs.list().iter().all(|job| job.command() == "true"));
    });
}

pub fn the_keeper_survives_what_a_terminal_sends() {
    run(async {
        let jobs = Jobs::new();
        let job = start(&jobs, "sleep 0.5; echo on").await;
        let keeper = keepers()[0];
        assert_eq!(name(keeper), "pawl");
        for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1] {
            kill(keeper, signal);
        }
        assert_eq!(job.ended().await.exit, Exit::Code(0));
        assert_eq!(text(&job), "on\n");
        // It has left our group, so that what a terminal sends does not reach it at all.
        let group = rustix::process::getpgid(rustix::process::Pid::from_raw(keeper)).unwrap();
        assert_eq!(group.as_raw_pid(), keeper);
        let open = std::fs::read_dir(format!("/proc/{keeper}/fd")).unwrap().count();
        assert!(open <= 4, "three of nothing and the socket, not {open}");
    });
}

pub fn what_cannot_be_started_says_so() {
    run(async {
        let jobs = Jobs::new();
        let mut nowhere = order("true");
        nowhere.folder = "/no/such/folder".into();
        let words = jobs.start(nowhere).await.unwrap_err().to_string();
        assert!(words.contains("/no/such/folder"), "{words}");
        let mut shell = order("true");
        shell.shell = "/no/such/shell".into();
        let words = jobs.start(shell).await.unwrap_err().to_string();
        assert!(words.contains("shell"), "{words}");
        let words = jobs.start(order("echo \0")).await.unwrap_err().to_string();
        assert!(words.contains("not started"), "{words}");
        let long = "x".repeat(200 << 10);
        let words = jobs.start(order(&format!("echo {long}"))).await.unwrap_err().to_string();
        assert!(words.contains("too long") && words.contains("file"), "{words}");
        assert!(jobs.list().is_empty());
        let job = jobs.start(with(Stdin::Closed, "true")).await.unwrap();
        assert!(job.write(b"x").await.is_err());
        assert_eq!(jobs.list().iter().map(|job| job.id()).collect::<Vec<_>>(), [job.id()]);
        // What was never started does not stay with the keeper, or its pipes with us.
        for _ in 0..50 {
            assert!(jobs.start(order("\0")).await.is_err());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
        assert!(open < 40, "{open}");
    });
}
