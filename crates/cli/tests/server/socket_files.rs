//! Files of the server (N4): modes, other users, stale sockets, links, and a second server.

use crate::support::TestEnv;
use crate::support::server::{TestServer, connect, socket_path};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

fn mode(path: &std::path::Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn socket_and_folder_belong_to_the_user_alone() {
    let env = TestEnv::new(&[], "");
    let folder = env.data().join("server");
    // An earlier folder may have been open to others.
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
    let _server = TestServer::start(&env, &[]);
    assert_eq!((mode(&folder), mode(&socket_path(&env))), (0o700, 0o600));
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

/// The modes keep other users out; if they did not, the user id of the peer would.
#[test]
fn a_process_of_another_user_is_refused() {
    let env = TestEnv::new(&[], "");
    let _server = TestServer::start(&env, &[]);
    let socket = socket_path(&env);
    if socket.metadata().unwrap().uid() != 0 {
        println!("not run: only root can become another user");
        return;
    }
    let request = |uid: &str| {
        let output = Command::new("setpriv")
            .args([format!("--reuid={uid}").as_str(), "--clear-groups"])
            .args(["curl", "--silent", "--max-time", "10", "--unix-socket"])
            .arg(&socket)
            .args(["--write-out", "%{http_code}", "--output", "/dev/null", "http://localhost/v1"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(request("0"), "200");
    assert_eq!(request("65534"), "000", "the modes keep it out");
    for path in socket.ancestors().skip(1).take_while(|path| *path != std::path::Path::new("/tmp"))
    {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(request("0"), "200");
    assert_eq!(request("65534"), "000", "its user id keeps it out");
}

#[tokio::test]
async fn a_server_replaces_the_socket_of_one_that_was_killed() {
    let env = TestEnv::new(&[], "");
    TestServer::start(&env, &[]).kill();
    assert!(socket_path(&env).exists(), "the socket is left");
    let server = TestServer::start(&env, &[]);
    connect(&env).await;
    assert_eq!(server.stop(), Some(0));
    assert!(!socket_path(&env).exists(), "an orderly stop removes it");
}

#[tokio::test]
async fn a_second_server_does_not_start_and_leaves_the_first_alone() {
    let env = TestEnv::new(&[], "");
    let _server = TestServer::start(&env, &[]);
    let (code, _, stderr) = env.run(&["serve"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("already") && stderr.contains("windlass serve stop"), "{stderr}");
    connect(&env).await;
}

#[test]
fn a_link_or_a_file_in_the_place_of_the_socket_is_kept() {
    let env = TestEnv::new(&[], "");
    TestServer::start(&env, &[]).stop();
    let (socket, target) = (socket_path(&env), env.home().join("target"));
    std::fs::write(&target, "mine").unwrap();
    std::os::unix::fs::symlink(&target, &socket).unwrap();
    let (code, _, stderr) = env.run(&["serve"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("not a socket"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "mine");
    assert!(socket.is_symlink());
}

#[test]
fn the_socket_of_another_program_is_kept() {
    let env = TestEnv::new(&[], "");
    let path = env.home().join("other.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let (code, _, stderr) = env.run(&["serve", "--socket", path.to_str().unwrap()]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("another program listens") && stderr.contains("--socket"), "{stderr}");
    assert!(path.exists());
    drop(listener);
}

/// Clients find the socket from wherever they are started.
#[test]
fn a_relative_path_of_the_socket_is_found_from_other_folders() {
    let env = TestEnv::new(&[], "");
    let server = TestServer::start(&env, &["--socket", "near.sock"]);
    assert!(env.root().join("near.sock").exists());
    let output = env.windlass(&["ps"]).current_dir(env.home()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(server.stop(), Some(0));
    assert!(!env.root().join("near.sock").exists());
}

/// Only a command opens a listener (N2): a run and the terminal UI do not.
#[test]
fn a_run_opens_no_listener_and_no_socket_file() {
    let env = TestEnv::new(&["say Hi"], "");
    let trace = env.home().join("trace");
    let wrapper = ["strace", "-f", "-e", "trace=bind,listen", "-o", trace.to_str().unwrap()];
    let output = env.wrapped(&wrapper, &["run", "hello"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let calls = std::fs::read_to_string(&trace).unwrap();
    // The supervisor of commands may bind netlink sockets; nothing may listen.
    let listens: Vec<&str> = calls.lines().filter(|line| line.contains("listen(")).collect();
    assert!(listens.is_empty(), "{listens:?}");
    assert!(!socket_path(&env).exists());
}
