//! What `/proc` says, also by those who lie about their names.

use super::*;
use proptest::prelude::{any, proptest};
use std::process::{Command, Stdio};

#[test]
fn a_name_cannot_pretend_another_parent() {
    for name in ["sh", "a) S 1 1 1 (b", ") Z 9 9 9", "", "\n", "(((", ")))"] {
        let text = format!("7 ({name}) S 40 41 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99");
        let member = Member { pid: 7, parent: 40, group: 41, session: 42, lives: true };
        assert_eq!(read(7, text.as_bytes()), Some(member), "{name}");
    }
    let dead = |threads| format!("7 (x) Z 40 41 42 0 -1 4 1 2 3 4 5 6 7 8 20 0 {threads} 0 99");
    assert!(!read(7, dead(1).as_bytes()).unwrap().lives);
    assert!(read(7, dead(2).as_bytes()).unwrap().lives, "its first thread alone has ended");
}

proptest! {
    #[test]
    fn any_text_is_read_or_not(text in any::<Vec<u8>>()) {
        let _ = read(1, &text);
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
    // Both grandchildren are there when the first line is said, one perhaps not renamed yet.
    let mut line = [0; 1];
    child.stdout.take().unwrap().read_exact(&mut line).unwrap();
    let found: Vec<_> = beneath(me).into_iter().filter(|(_, top)| top.pid == pid).collect();
    let mut all: Vec<i32> = found.iter().map(|(member, _)| member.pid).collect();
    all.retain(|member| *member != pid);
    child.kill().unwrap();
    for pid in &all {
        let _ = Command::new("/bin/kill").args(["-9", &pid.to_string()]).status();
    }
    child.wait().unwrap();
    assert!(all.len() >= 2, "{found:?}");
}

#[test]
fn a_mark_is_found_and_a_system_has_threads() {
    let mut child = Command::new("/bin/sleep").arg("60").env(MARK, "12.34").spawn().unwrap();
    let pid = child.id() as i32;
    // For a moment after its start a process has no words yet.
    for _ in 0..1_000 {
        if mark(pid).is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let found = (mark(pid), marked("12."), marked("2."));
    let running = introduce(pid).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(found.0.as_deref(), Some("12.34"));
    assert!(found.1.contains(&pid) && !found.2.contains(&pid));
    assert_eq!((running.name.as_str(), running.line.as_str()), ("sleep", "/bin/sleep 60"));
    assert!(introduce(pid).is_none());
    assert!((1..1_000_000).contains(&total()));
}
