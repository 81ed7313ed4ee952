//! A minimal language client for comparison: one server, one file, and the time until its
//! diagnostics arrive.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use windlass_lsp::LspServerConfig;

pub struct BareClient {
    child: Child,
    input: ChildStdin,
    output: Receiver<Value>,
    root: PathBuf,
    language: String,
    next_id: i64,
    version: i64,
    supports_pull: bool,
}

impl BareClient {
    pub fn start(servers_folder: &Path, config: &LspServerConfig, root: &Path) -> BareClient {
        let path: Vec<String> =
            ["npm/node_modules/.bin", "language-servers/bin", "npm/node_modules/node/bin"]
                .iter()
                .map(|part| servers_folder.join(part).display().to_string())
                .chain(std::env::var("PATH"))
                .collect();
        let mut command = Command::new("/usr/bin/env");
        command.arg(format!("PATH={}", path.join(":"))).args(&config.command).current_dir(root);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            while let Some(message) = read_frame(&mut output) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let language = config.language.clone();
        let language = if language == "c" { "cpp".to_owned() } else { language };
        let root = root.to_owned();
        let mut client = BareClient {
            child,
            input,
            output: receiver,
            root,
            language,
            next_id: 1,
            version: 0,
            supports_pull: false,
        };
        let uri = format!("file://{}", client.root.display());
        let params = json!({
            "processId": null, "rootUri": uri, "workspaceFolders": [{"uri": uri, "name": "w"}],
            "capabilities": {
                "general": {"positionEncodings": ["utf-8", "utf-16"]},
                "textDocument": {
                    "synchronization": {"didSave": true},
                    "publishDiagnostics": {"versionSupport": true},
                    "diagnostic": {"dynamicRegistration": true, "relatedDocumentSupport": true},
                },
                "workspace": {"configuration": true, "workspaceFolders": true, "diagnostics": {"refreshSupport": true}},
            },
        });
        let answer = client.request("initialize", params);
        client.supports_pull |= !answer["capabilities"]["diagnosticProvider"].is_null();
        client.send(&json!({"jsonrpc": "2.0", "method": "initialized", "params": {}}));
        client
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        let frame = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.input.write_all(frame.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Returns the next response or notification. Answers requests of the server.
    fn next_message(&mut self) -> Value {
        loop {
            let message = self
                .output
                .recv_timeout(Duration::from_secs(60))
                .expect("the server sends a message");
            let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
                return message;
            };
            if method == "client/registerCapability" {
                let all =
                    message["params"]["registrations"].as_array().cloned().unwrap_or_default();
                self.supports_pull |=
                    all.iter().any(|one| one["method"] == "textDocument/diagnostic");
            }
            let result = match method {
                "workspace/configuration" => {
                    let items = message["params"]["items"].as_array().map_or(0, Vec::len);
                    Value::Array(vec![Value::Null; items])
                }
                _ => Value::Null,
            };
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            self.send(&answer);
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.next_message();
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    fn uri(&self, path: &str) -> String {
        format!("file://{}", self.root.join(path).display())
    }

    /// Opens a file, and waits until the server can be asked for diagnostics.
    pub fn open(&mut self, path: &str, text: &str) {
        self.version += 1;
        let item = json!({"uri": self.uri(path), "languageId": self.language, "version": self.version, "text": text});
        self.send(&json!({"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": {"textDocument": item}}));
        // A server may register pull diagnostics some time after `initialized`.
        if !self.supports_pull {
            std::thread::sleep(Duration::from_secs(2));
            while let Ok(message) = self.output.try_recv() {
                if message["method"] == "client/registerCapability" {
                    self.supports_pull |= message.to_string().contains("textDocument/diagnostic");
                }
                if let (Some(_), Some(id)) = (message["method"].as_str(), message.get("id")) {
                    let items = message["params"]["items"].as_array().map_or(0, Vec::len);
                    let result = if items > 0 {
                        Value::Array(vec![Value::Null; items])
                    } else {
                        Value::Null
                    };
                    let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                    self.send(&answer);
                }
            }
        }
    }

    /// Edits the file, and returns the time until its diagnostics arrived and the number of errors.
    pub fn edit(&mut self, path: &str, text: &str) -> (Duration, usize) {
        let uri = self.uri(path);
        std::fs::write(self.root.join(path), text).unwrap();
        let started_at = Instant::now();
        self.version += 1;
        let version = self.version;
        let params = json!({"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]});
        self.send(&json!({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": params}));
        let list = if self.supports_pull {
            let report =
                self.request("textDocument/diagnostic", json!({"textDocument": {"uri": uri}}));
            report["items"].clone()
        } else {
            loop {
                let message = self.next_message();
                let params = &message["params"];
                let is_current =
                    params["version"].as_i64().is_none_or(|published| published >= version);
                if message["method"] == "textDocument/publishDiagnostics"
                    && params["uri"] == uri
                    && is_current
                {
                    break params["diagnostics"].clone();
                }
            }
        };
        let errors = list
            .as_array()
            .map_or(0, |list| list.iter().filter(|one| one["severity"] == 1).count());
        (started_at.elapsed(), errors)
    }

    pub fn stop(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_frame(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim() {
            "" => break,
            line => {
                if let Some(value) = line.strip_prefix("Content-Length:") {
                    length = value.trim().parse().ok()?;
                }
            }
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
