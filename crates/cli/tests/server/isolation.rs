//! Commands in the sandbox cannot reach the server that runs them (N5), neither over its socket nor
//! over TCP: otherwise a command could approve itself.

use crate::support::server::{TestServer, socket_path};
use crate::support::{TestEnv, decode_output};
use serde_json::json;

/// Prints a line for each way that leads to the server.
const PROBE: &str = r#"
import os, socket, sys
def attempt(name, connect):
    try:
        connect()
        print("REACHED", name)
    except Exception as error:
        print("refused", name, type(error).__name__)
def unix(address):
    s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect(address)
    s.sendall(b"GET /v1 HTTP/1.1\r\nhost: localhost\r\n\r\n"); assert s.recv(100)
def tcp(host, port):
    s = socket.create_connection((host, port), 5)
    s.sendall(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n"); assert s.recv(100)
path, port = open("probe.txt").read().split()
port = int(port)
attempt("socket", lambda: unix(path))
attempt("abstract", lambda: unix("\0" + path))
attempt("list", lambda: os.listdir(os.path.dirname(path)))
attempt("tcp", lambda: tcp("127.0.0.1", port))
attempt("tcp6", lambda: tcp("::1", port))
attempt("name", lambda: tcp("localhost", port))
proxy = os.environ.get("http_proxy") or os.environ.get("HTTP_PROXY")
if proxy:
    import urllib.request
    attempt("proxy", lambda: urllib.request.urlopen("http://127.0.0.1:%d/healthz" % port, timeout=5).read())
"#;

fn check(wrapper: &[&str], expected_backend: &str) {
    let env = TestEnv::new(&[], r#""mode": "auto""#);
    let server = TestServer::start(&env, &["--listen", "127.0.0.1:0"]);
    let address = server.tcp_address();
    let port = address.rsplit(':').next().unwrap();
    std::fs::write(env.root().join("probe.py"), PROBE).unwrap();
    let socket = socket_path(&env);
    // The command does not name the path, which alone would be a reason to refuse it.
    std::fs::write(env.root().join("probe.txt"), format!("{} {port}", socket.display())).unwrap();
    let outside = std::process::Command::new("python3")
        .arg("probe.py")
        .current_dir(env.root())
        .output()
        .unwrap();
    let outside = String::from_utf8(outside.stdout).unwrap();
    assert!(outside.contains("REACHED socket") && outside.contains("REACHED tcp\n"), "{outside}");

    let mut doctor = env.wrapped(wrapper, &["doctor"]);
    let (_, report, _) = decode_output(&doctor.output().unwrap());
    assert!(report.contains(expected_backend), "{report}");
    let arguments = json!({ "command": "python3 probe.py" }).to_string();
    let mut call = env.wrapped(wrapper, &["tool", "call", "bash", "--yes", &arguments]);
    let (code, output, stderr) = decode_output(&call.output().unwrap());
    assert_eq!(code, 0, "{output}{stderr}");
    assert!(output.contains("refused socket") && output.contains("refused tcp"), "{output}");
    assert!(!output.contains("REACHED"), "{expected_backend}: {output}");
}

#[test]
fn a_command_in_bubblewrap_cannot_reach_the_server() {
    check(&[], "bubblewrap");
}

#[test]
fn a_command_in_landlock_cannot_reach_the_server() {
    let wrapper = ["bwrap", "--dev-bind", "/", "/", "--bind", "/dev/null", "/usr/bin/bwrap", "--"];
    check(&wrapper, "Landlock");
}
