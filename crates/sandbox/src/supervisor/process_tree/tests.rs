//! Tests of the process tree, also with misleading process names.

use super::*;
use proptest::prelude::{any, proptest};
use std::process::{Command, Stdio};

#[test]
fn a_process_name_cannot_fake_another_parent() {
    for name in ["sh", "a) S 1 1 1 (b", ") Z 9 9 9", "", "\n", "(((", ")))"] {
        let text = format!("7 ({name}) S 40 41 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99");
        let process =
            ProcessInfo { pid: 7, parent_pid: 40, process_group: 41, session: 42, is_alive: true };
        assert_eq!(parse_stat(7, text.as_bytes()), Some(process), "{name}");
    }
    let zombie = |threads| format!("7 (x) Z 40 41 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 {threads} 0 99");
    assert!(!parse_stat(7, zombie(1).as_bytes()).unwrap().is_alive);
    assert!(
        parse_stat(7, zombie(2).as_bytes()).unwrap().is_alive,
        "only its main thread has exited"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_rejected(text in any::<Vec<u8>>()) {
        let _ = parse_stat(1, &text);
    }
}

#[test]
fn a_grandchild_is_found_with_the_child_it_descends_from() {
    let mut child = Command::new("/bin/bash")
        .args(["-c", "(exec -a 'odd) name' sleep 60) & /bin/sleep 60 & echo; wait"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id() as i32;
    let me = std::process::id() as i32;
    // Both grandchildren exist when the first line arrives; one may not be renamed yet.
    let mut line = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    let found: Vec<_> = descendants(me).into_iter().filter(|(_, top)| top.pid == pid).collect();
    let mut all: Vec<i32> = found.iter().map(|(process, _)| process.pid).collect();
    all.retain(|process| *process != pid);
    assert_eq!(count_descendants(pid, 10), 2);
    assert_eq!(count_descendants(pid, 1), 1);
    assert_eq!(count_descendants(i32::MAX, 9), 0, "a process that does not exist");
    child.kill().unwrap();
    for pid in &all {
        let _ = Command::new("/bin/kill").args(["-9", &pid.to_string()]).status();
    }
    child.wait().unwrap();
    assert!(all.len() >= 2, "{found:?}");
}

#[test]
fn a_process_whose_parent_exited_while_proc_was_read_is_found_by_its_session() {
    let process = |pid, parent_pid, session| ProcessInfo {
        pid,
        parent_pid,
        process_group: session,
        session,
        is_alive: true,
    };
    let top = process(10, 2, 10);
    let processes = [
        process(1, 0, 1),
        process(2, 1, 2),
        process(3, 2, 2),
        top,
        process(11, 10, 10),
        // The parent 12 exited before it was read.
        process(13, 12, 10),
        process(14, 13, 10),
        // Other processes of the user, one of them in the session of the ancestor.
        process(20, 1, 20),
        process(21, 19, 2),
    ];
    let mut found: Vec<_> = select_descendants(2, processes.into_iter())
        .into_iter()
        .map(|(process, top)| (process.pid, top.pid))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [(3, 3), (10, 10), (11, 10), (13, 10), (14, 10)]);
}

#[test]
fn a_job_mark_is_found_and_threads_are_counted() {
    let mark = JobMark::new(rustix::process::Pid::from_raw(4_194_303).unwrap(), 34);
    let mut command = Command::new("/bin/bash");
    command.args(["-c", "echo; exec /bin/sleep 60"]).stdout(Stdio::piped()).env_clear();
    #[allow(unsafe_code, reason = "marks the child the way the supervisor does")]
    // SAFETY: `apply` makes plain system calls.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, move || mark.apply());
    }
    let mut child = command.spawn().unwrap();
    let pid = child.id() as i32;
    child.stdout.take().unwrap().read_exact(&mut [0; 1]).unwrap();
    // For a moment during `exec` a process has no command line.
    for _ in 0..1_000 {
        if describe_process(pid).is_some_and(|process| process.command_line == "/bin/sleep 60") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let found = (JobMark::of_process(pid), find_marked(4_194_303), find_marked(4_194_302));
    let running = describe_process(pid).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found.0, Some(mark));
    assert!(found.1.contains(&pid) && !found.2.contains(&pid));
    assert_eq!((running.name.as_str(), running.command_line.as_str()), ("sleep", "/bin/sleep 60"));
    assert!(describe_process(pid).is_none());
    assert!((1..1_000_000).contains(&system_thread_count()));
    assert_eq!(JobMark::of_process(std::process::id() as i32), None, "this process is no job");
}
