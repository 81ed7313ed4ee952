//! Tests of commands with their own terminal.

use crate::support::{
    block_on, marked_pids, output_text, sleep_marker, spawn_spec_with_stdin, wait_until,
};
use windlass_sandbox::{ProcessExit, StdinMode, SupervisorClient};

const TERMINAL: StdinMode = StdinMode::Terminal { rows: 31, cols: 97 };

pub fn a_command_gets_a_terminal_of_the_requested_size() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let script = "tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo all; \
                      echo x >/dev/tty; exit 5";
        let job = jobs.start(spawn_spec_with_stdin(TERMINAL, script)).await.unwrap();
        let report = job.wait_for_exit().await;
        let output = output_text(&job);
        assert_eq!(report.exit, ProcessExit::Code(5), "{output}");
        let lines: Vec<&str> = output.split("\r\n").collect();
        assert!(lines[0].starts_with("/dev/pts/"), "{output}");
        assert_eq!(&lines[1..], ["31 97", "all", "x", ""], "a terminal ends lines with CR LF");
        wait_until("the end of all processes", || job.is_gone()).await;
    });
}

pub fn an_interactive_program_can_be_used() {
    block_on(async {
        let jobs = SupervisorClient::new();
        let job = jobs
            .start(spawn_spec_with_stdin(TERMINAL, "python3 -i -c 'print(1+1)'"))
            .await
            .unwrap();
        wait_until("the prompt", || output_text(&job).contains(">>>")).await;
        job.write_stdin(b"6*7*1000\n").await.unwrap();
        wait_until("the answer", || output_text(&job).contains("42000")).await;
        let offset = job.output().total_bytes;
        job.write_stdin(b"import sys; sys.stdout.isatty()\n").await.unwrap();
        // Python reads Ctrl+D only at its prompt: before, the terminal is in another mode.
        let is_at_prompt = || {
            let text = job.output_since(offset).text;
            text.split_once("True").is_some_and(|(_, rest)| rest.contains(">>>"))
        };
        wait_until("the answer and the prompt", is_at_prompt).await;
        job.write_stdin(b"\x04").await.unwrap();
        assert_eq!(job.wait_for_exit().await.exit, ProcessExit::Code(0));
    });
}

pub fn ctrl_c_interrupts_the_command() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        let job = jobs
            .start(spawn_spec_with_stdin(TERMINAL, &format!("echo on; sleep {marker}")))
            .await
            .unwrap();
        wait_until("the start", || {
            output_text(&job).contains("on") && !marked_pids(&marker).is_empty()
        })
        .await;
        job.write_stdin(b"\x03").await.unwrap();
        assert!(matches!(
            job.wait_for_exit().await.exit,
            ProcessExit::Signal(2) | ProcessExit::Code(130)
        ));
        assert!(output_text(&job).contains("^C"));
        wait_until("the end of the sleep process", || marked_pids(&marker).is_empty()).await;
    });
}

pub fn processes_started_in_a_terminal_end_with_the_job() {
    block_on(async {
        let marker = sleep_marker();
        let jobs = SupervisorClient::new();
        let script =
            format!("setsid -f sleep {marker}; bash -i -c 'sleep {marker} & sleep {marker}'; true");
        let job = jobs.start(spawn_spec_with_stdin(TERMINAL, &script)).await.unwrap();
        wait_until("the start of the sleep processes", || marked_pids(&marker).len() >= 5).await;
        job.kill_after(std::time::Duration::from_millis(300)).await;
        assert!(job.is_gone());
        assert_eq!(marked_pids(&marker), [0; 0]);
        job.wait_for_exit().await;
    });
}
