//! Tests of the end of commands and of every process they start.

use crate::support::{
    OWNER_SANDBOX_VARIABLE, OWNER_TEMP_VARIABLE, block_on, child_pids_named, detaching_commands,
    is_soak, marked_pids, output_text, process_name, run_command, send_signal, sleep_marker,
    spawn_spec, spawn_spec_with_stdin, start_command, supervisor_pids, wait_until,
};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use windlass_sandbox::{ProcessExit, StdinMode, SupervisorClient};

pub fn the_exit_of_a_command_is_reported() {
    block_on(async {
        let jobs = SupervisorClient::new();
        for (command, exit) in [
            ("true", ProcessExit::Code(0)),
            ("exit 7", ProcessExit::Code(7)),
            ("exit 255", ProcessExit::Code(255)),
            ("no-such-program", ProcessExit::Code(127)),
            ("kill -SEGV $$", ProcessExit::Signal(11)),
            ("bash -c 'kill -SEGV $$'; exit $?", ProcessExit::Code(139)),
            ("kill -KILL $$", ProcessExit::Signal(9)),
            ("kill -TERM $$", ProcessExit::Signal(15)),
            ("kill -PIPE $$", ProcessExit::Signal(13)),
            ("kill -INT $$", ProcessExit::Signal(2)),
            ("yes | head -1 >/dev/null; exit ${PIPESTATUS[0]}", ProcessExit::Code(141)),
        ] {
            let (_, report) = run_command(&jobs, command).await;
            assert_eq!(report.exit, exit, "{command}");
            assert!(report.leftover.is_empty(), "{command}");
        }
        let job = start_command(&jobs, "sleep 0.3").await;
        assert!(job.exit_report().is_none() && !job.is_gone());
        let took = job.wait_for_exit().await.duration;
        assert!((300..2000).contains(&took.as_millis()), "{took:?}");
        wait_until("the end of all processes", || job.is_gone()).await;
    });
}

pub fn detached_processes_are_reported_and_ended() {
    block_on(async {
        let jobs = SupervisorClient::new();
        for command in detaching_commands("MARKER") {
            let marker = sleep_marker();
            let command = command.replace("MARKER", &marker);
            let began = Instant::now();
            let job = start_command(&jobs, &command).await;
            let report = job.wait_for_exit().await;
            assert!(
                began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(1)),
                "{command}: {:?}",
                began.elapsed()
            );
            assert_eq!(
                (report.exit, output_text(&job).as_str()),
                (ProcessExit::Code(0), "done\n"),
                "{command}"
            );
            // A daemon may still be between two forks.
            wait_until("the start of a detached process", || !marked_pids(&marker).is_empty())
                .await;
            assert!(!report.leftover.is_empty(), "{command}");
            assert!(!job.is_gone());
            let reported = report
                .leftover
                .iter()
                .any(|one| one.command_line.contains(&marker) && !one.name.is_empty());
            assert!(reported || command.contains("perl"), "{command}: {:?}", report.leftover);
            job.kill_after(Duration::from_millis(200)).await;
            assert!(
                job.is_gone() && marked_pids(&marker).is_empty(),
                "{command}: {:?}",
                marked_pids(&marker)
            );
        }
    });
}

pub fn a_job_is_gone_when_its_last_process_exits() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let job = start_command(&jobs, "(sleep 0.3; bash -c 'sleep 0.4 & exit') & exit 3").await;
        let report = job.wait_for_exit().await;
        assert_eq!(report.exit, ProcessExit::Code(3));
        assert!(!job.is_gone());
        let began = Instant::now();
        job.wait_until_gone().await;
        let took = began.elapsed();
        assert!((Duration::from_millis(500)..Duration::from_secs(2)).contains(&took), "{took:?}");
        assert!(jobs.list().iter().all(|job| job.is_gone()));
    });
}

pub fn nothing_outlives_the_session() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        for command in detaching_commands(&marker) {
            start_command(&jobs, &command).await.wait_for_exit().await;
        }
        start_command(&jobs, &format!("sleep {marker}; true")).await;
        assert!(marked_pids(&marker).len() >= 8);
        jobs.end_all().await;
        assert_eq!(marked_pids(&marker), [0; 0]);
        // New commands can be started.
        assert_eq!(run_command(&jobs, "echo on").await.0, "on\n");

        for command in detaching_commands(&marker) {
            start_command(&jobs, &command).await.wait_for_exit().await;
        }
        let supervisor = supervisor_pids();
        assert_eq!(supervisor.len(), 1);
        drop(jobs);
        wait_until("the end of all processes", || marked_pids(&marker).is_empty()).await;
        wait_until("the end of the supervisor", || supervisor_pids().is_empty()).await;
    });
}

pub fn nothing_outlives_an_owner_that_was_killed() {
    let tries = if is_soak() { 100 } else { 10 };
    let mut slowest = Duration::ZERO;
    for round in 0..tries {
        let marker = sleep_marker();
        let mut commands = detaching_commands(&marker);
        commands.push(format!("sleep {marker} | sleep {marker} & wait"));
        let mut owner = Command::new("/proc/self/exe")
            .arg("owner")
            .args(&commands)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let before = marked_pids(&marker).len();
        owner.kill().unwrap();
        owner.wait().unwrap();
        assert_eq!(line, "ready\n", "try {round}");
        assert!(before >= 8, "{before}");
        let took =
            block_on(wait_until("the end of all processes", || marked_pids(&marker).is_empty()));
        slowest = slowest.max(took);
        assert!(
            took < windlass_testkit::time_limits::limit(Duration::from_secs(2)),
            "try {round}: {took:?}"
        );
    }
    println!("{tries} owners killed; the slowest cleanup took {slowest:?}");
}

/// Kills an owner and its supervisor at the same time: after the commands have started, or at a
/// random moment of their start.
pub fn nothing_outlives_an_owner_that_was_killed_with_its_supervisor() {
    let tries = if is_soak() { 500 } else { 24 };
    let mut slowest = Duration::ZERO;
    for round in 0..tries {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let (temp, work) = (folder.path().join("temp"), folder.path().join("work"));
        std::fs::create_dir(&temp).unwrap();
        std::fs::create_dir(&work).unwrap();
        let marker = sleep_marker();
        let mut commands = detaching_commands(&marker);
        commands.push(format!("sleep {marker} & sleep {marker} & wait"));
        let is_ready_awaited = round % 2 == 0;
        if !is_ready_awaited {
            commands.drain(..commands.len() - 1);
        }
        let mut command = Command::new("/proc/self/exe");
        command.arg("owner").args(&commands).env(OWNER_TEMP_VARIABLE, &temp);
        match round / 2 % 3 {
            2 => {}
            index => _ = command.env(OWNER_SANDBOX_VARIABLE, index.to_string()),
        }
        let mut owner = command.stdout(Stdio::piped()).spawn().unwrap();
        match is_ready_awaited {
            true => {
                let mut line = String::new();
                BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
                assert_eq!(line, "ready\n", "try {round}");
                assert!(marked_pids(&marker).len() >= 8);
            }
            false => std::thread::sleep(Duration::from_millis(round * 7 % 60)),
        }
        let supervisors = child_pids_named(owner.id().cast_signed(), "windlass-super");
        for pid in supervisors.into_iter().chain([owner.id().cast_signed()]) {
            send_signal(pid, Signal::KILL);
        }
        owner.wait().unwrap();
        let took = block_on(wait_until("the end of all processes and folders", || {
            marked_pids(&marker).is_empty() && (!is_ready_awaited || !temp.exists())
        }));
        slowest = slowest.max(took);
        let limit = windlass_testkit::time_limits::limit(Duration::from_secs(2));
        assert!(took < limit, "try {round}: {took:?}");
    }
    println!("{tries} double kills; the slowest cleanup took {slowest:?}");
}

pub fn only_the_temp_folder_is_removed_with_its_owner() {
    use std::os::unix::fs::symlink;
    for (round, signal) in [Signal::KILL, Signal::TERM, Signal::KILL].into_iter().enumerate() {
        let parent = tempfile::tempdir().unwrap();
        let (temp, other) = (parent.path().join("temp"), parent.path().join("other"));
        for folder in [&temp, &other] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("file"), "x").unwrap();
        }
        symlink(&other, temp.join("link")).unwrap();
        let marker = sleep_marker();
        let mut owner = Command::new("/proc/self/exe")
            .args(["owner", &format!("sleep {marker} & wait")])
            .env(OWNER_TEMP_VARIABLE, &temp)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(owner.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let swapped = round == 2;
        if swapped {
            // Another folder has the name when the owner is killed.
            std::fs::rename(&temp, parent.path().join("moved")).unwrap();
            symlink(&other, &temp).unwrap();
        }
        send_signal(owner.id().cast_signed(), signal);
        owner.wait().unwrap();
        block_on(async {
            wait_until("the end of all processes", || marked_pids(&marker).is_empty()).await;
            match swapped {
                false => {
                    wait_until("the removal of the temp folder", || !temp.exists()).await;
                }
                true => tokio::time::sleep(Duration::from_millis(300)).await,
            }
        });
        assert!(other.join("file").exists(), "a symbolic link is not followed");
        assert_eq!(temp.is_symlink(), swapped);
    }
}

pub fn a_process_that_ignores_sigterm_is_killed() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        let job =
            start_command(&jobs, &format!("trap '' TERM; echo on; sleep {marker}; sleep {marker}"))
                .await;
        wait_until("the start", || output_text(&job) == "on\n").await;
        let began = Instant::now();
        job.kill().await;
        let took = began.elapsed();
        assert!((2900..4000).contains(&took.as_millis()), "{took:?}");
        assert_eq!(job.wait_for_exit().await.exit, ProcessExit::Signal(9));
        assert_eq!(marked_pids(&marker), [0; 0]);

        // A process can clean up when it receives SIGTERM.
        let script = format!("trap 'echo bye; exit 4' TERM; echo on; sleep {marker} & wait");
        let job = start_command(&jobs, &script).await;
        wait_until("the start", || output_text(&job) == "on\n").await;
        job.kill().await;
        assert_eq!(
            (job.wait_for_exit().await.exit, output_text(&job).as_str()),
            (ProcessExit::Code(4), "on\nbye\n")
        );
    });
}

pub fn a_stopped_process_is_ended() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        let job =
            start_command(&jobs, &format!("sleep {marker} & kill -STOP $!; kill -STOP $$; true"))
                .await;
        wait_until("the start", || marked_pids(&marker).len() == 2).await;
        let began = Instant::now();
        job.kill().await;
        assert!(
            began.elapsed() < windlass_testkit::time_limits::limit(Duration::from_secs(1)),
            "{:?}",
            began.elapsed()
        );
        assert_eq!(marked_pids(&marker), [0; 0]);
    });
}

/// After its main thread exited, the system reports a process as a zombie without a command line or
/// an environment, although other threads run.
pub fn a_process_whose_main_thread_exited_is_ended() {
    block_on(async {
        let script = "import ctypes, os, threading, time\n\
            print(os.getpid(), flush=True)\n\
            threading.Thread(target=time.sleep, args=(600,)).start()\n\
            ctypes.CDLL(None).pthread_exit(0)";
        let command = format!("setsid -f python3 -c '{script}' 2>/dev/null; sleep 0.7");
        let is_running = |pid: &str| std::fs::read_dir(format!("/proc/{pid}/task")).is_ok();
        let jobs = SupervisorClient::new();
        let job = start_command(&jobs, &command).await;
        let report = job.wait_for_exit().await;
        let pid = output_text(&job).trim().to_owned();
        assert!(is_running(&pid) && !report.leftover.is_empty(), "{report:?}");
        assert!(!job.is_gone());
        job.kill().await;
        assert!(job.is_gone() && !is_running(&pid));

        let job = start_command(&jobs, &command).await;
        job.wait_for_exit().await;
        let pid = output_text(&job).trim().to_owned();
        drop((job, jobs));
        wait_until("the end of all processes", || !is_running(&pid)).await;
    });
}

pub fn a_kill_is_quick() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let mut slowest = Duration::ZERO;
        for _ in 0..10 {
            let marker = sleep_marker();
            let job = start_command(
                &jobs,
                &format!("sleep {marker} | sleep {marker} & sleep {marker}; true"),
            )
            .await;
            wait_until("the start", || marked_pids(&marker).len() >= 4).await;
            let began = Instant::now();
            job.kill().await;
            slowest = slowest.max(began.elapsed());
            assert_eq!(marked_pids(&marker), [0; 0]);
        }
        println!("the slowest kill took {slowest:?}");
        assert!(slowest < Duration::from_millis(500), "{slowest:?}");
    });
}

pub fn ending_one_job_leaves_the_others_running() {
    block_on(async {
        let (one, two) = (sleep_marker(), sleep_marker());
        let jobs = SupervisorClient::new();
        let first =
            start_command(&jobs, &format!("setsid -f sleep {one}; sleep {one}; true")).await;
        let second =
            start_command(&jobs, &format!("setsid -f sleep {two}; nohup sleep {two} & true")).await;
        let report = second.wait_for_exit().await;
        assert!(
            report.leftover.iter().all(|one| one.command_line.contains(&two)),
            "{:?}",
            report.leftover
        );
        assert_eq!(report.leftover.len(), 2);
        wait_until("the start of the first job's sleep processes", || marked_pids(&one).len() >= 3)
            .await;
        second.kill().await;
        assert_eq!((marked_pids(&one).len(), marked_pids(&two).len()), (3, 0));
        assert!(first.exit_report().is_none());
        first.kill().await;
        assert_eq!(marked_pids(&one), [0; 0]);
    });
}

pub fn a_killed_supervisor_is_reported_and_replaced() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        let done = start_command(&jobs, "echo fine").await;
        done.wait_for_exit().await;
        let specs: Vec<_> =
            [format!("exec sleep {marker}"), format!("echo half; sleep {marker}; true")]
                .into_iter()
                .map(|command| spawn_spec(&command))
                .collect();
        let mut lost = Vec::new();
        for spec in specs {
            lost.push(jobs.start(spec).await.unwrap());
        }
        wait_until("the start of the sleep processes", || marked_pids(&marker).len() == 3).await;
        send_signal(supervisor_pids()[0], Signal::KILL);
        for job in &lost {
            assert_eq!(job.wait_for_exit().await.exit, ProcessExit::SupervisorLost);
            job.wait_until_gone().await;
            job.kill().await;
        }
        assert_eq!(output_text(&lost[1]), "half\n");
        assert_eq!(
            done.wait_for_exit().await.exit,
            ProcessExit::Code(0),
            "a known exit stays known"
        );
        wait_until("the end of the sleep processes", || marked_pids(&marker).is_empty()).await;
        assert_eq!(run_command(&jobs, "echo again").await.0, "again\n");
        assert_eq!(supervisor_pids().len(), 1);
    });
}

pub fn processes_of_a_killed_supervisor_are_ended() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        let command = format!("setsid -f sleep {marker}; nohup sleep {marker} & echo on; wait");
        let job = start_command(&jobs, &command).await;
        wait_until("the start", || {
            output_text(&job).contains("on") && marked_pids(&marker).len() == 3
        })
        .await;
        send_signal(supervisor_pids()[0], Signal::KILL);
        job.wait_until_gone().await;
        wait_until("the end of the sleep processes", || marked_pids(&marker).is_empty()).await;
    });
}

pub fn a_command_whose_start_was_canceled_is_ended() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        run_command(&jobs, "true").await;
        for _ in 0..20 {
            let start = jobs.start(spawn_spec(&format!("sleep {marker}; true")));
            // Polls the start once and then drops it.
            let mut start = std::pin::pin!(start);
            let poll_once = |cx: &mut std::task::Context<'_>| {
                std::task::Poll::Ready(start.as_mut().poll(cx).is_pending())
            };
            assert!(
                std::future::poll_fn(poll_once).await,
                "a start is never ready at the first poll"
            );
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
        wait_until("the end of the sleep processes", || marked_pids(&marker).is_empty()).await;
        assert!(jobs.list().iter().all(|job| job.command() == "true"));
    });
}

pub fn the_supervisor_survives_terminal_signals() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let job = start_command(&jobs, "sleep 0.5; echo on").await;
        let supervisor = supervisor_pids()[0];
        assert_eq!(process_name(supervisor), "windlass-super");
        for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT, Signal::USR1] {
            send_signal(supervisor, signal);
        }
        assert_eq!(job.wait_for_exit().await.exit, ProcessExit::Code(0));
        assert_eq!(output_text(&job), "on\n");
        // The supervisor leads its own process group, so signals of a terminal do not reach it.
        let group = rustix::process::getpgid(rustix::process::Pid::from_raw(supervisor)).unwrap();
        assert_eq!(group.as_raw_pid(), supervisor);
        let open = std::fs::read_dir(format!("/proc/{supervisor}/fd")).unwrap().count();
        assert!(
            open <= 5,
            "{open} descriptors are open, not only /dev/null three times, the socket and the guard"
        );
    });
}

pub fn a_failed_start_is_reported() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let mut missing_folder = spawn_spec("true");
        missing_folder.folder = "/no/such/folder".into();
        let error = jobs.start(missing_folder).await.unwrap_err().to_string();
        assert!(error.contains("/no/such/folder"), "{error}");
        let mut missing_shell = spawn_spec("true");
        missing_shell.shell = "/no/such/shell".into();
        let error = jobs.start(missing_shell).await.unwrap_err().to_string();
        assert!(error.contains("shell"), "{error}");
        let error = jobs.start(spawn_spec("echo \0")).await.unwrap_err().to_string();
        assert!(error.contains("not started"), "{error}");
        let long = "x".repeat(200 << 10);
        let error = jobs.start(spawn_spec(&format!("echo {long}"))).await.unwrap_err().to_string();
        assert!(error.contains("too long") && error.contains("file"), "{error}");
        assert!(jobs.list().is_empty());
        let job = jobs.start(spawn_spec_with_stdin(StdinMode::Closed, "true")).await.unwrap();
        assert!(job.write_stdin(b"x").await.is_err());
        assert_eq!(jobs.list().iter().map(|job| job.id()).collect::<Vec<_>>(), [job.id()]);
        // A failed start leaves nothing in the supervisor and no pipes in this process.
        for _ in 0..50 {
            assert!(jobs.start(spawn_spec("\0")).await.is_err());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
        assert!(open < 40, "{open}");
    });
}
