#!/usr/bin/env python3
"""A language server for tests: `rogue.py MODE TAG`. Every mode but `good` and `symbols` misbehaves in one way, most
of them on the request `hostile`. TAG only identifies the process in `/proc`."""
import json
import os
import signal
import sys
import threading
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
IN, OUT = sys.stdin.buffer, sys.stdout.buffer
LOCK = threading.Lock()
FOREVER = 600
STARTED = time.monotonic_ns()


def write(*chunks):
    with LOCK:
        for chunk in chunks:
            OUT.write(chunk)
        OUT.flush()


def send(message):
    body = json.dumps(message).encode()
    write(b"Content-Length: %d\r\n\r\n" % len(body), body)


def notify(method, params):
    send({"jsonrpc": "2.0", "method": method, "params": params})


def respond(request, result):
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def read():
    length = None
    while True:
        line = IN.readline()
        if not line:
            sys.exit(0)
        line = line.strip().lower()
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        elif not line and length is not None:
            return json.loads(IN.read(length))


def diagnostic(start, end, **fields):
    span = {"start": dict(zip(("line", "character"), start)), "end": dict(zip(("line", "character"), end))}
    return {"range": span, "severity": 1, "message": "x" * 200} | fields


def flood():
    body = [diagnostic((1, 1), (1, 2)) for _ in range(3)]
    end, number = time.time() + 3, 0
    while time.time() < end:
        number += 1
        uri = "file:///w/%d.x" % (number % 50000)
        notify("textDocument/publishDiagnostics", {"uri": uri, "diagnostics": body})


def odd_diagnostics():
    for start, end in [((9, 9), (1, 1)), ((-1, -5), (2, 2)), ((10**12, 0), (10**18, 7)), ((0, 1.5), (None, "x"))]:
        uri = "file://" + os.getcwd() + "/a.x"
        params = {"uri": uri, "version": -7, "diagnostics": [diagnostic(start, end, code={"a": []})]}
        notify("textDocument/publishDiagnostics", params)
    for invalid in [None, 7, [], {"uri": 3}, {"uri": "https://a.test/x", "diagnostics": {}}]:
        notify("textDocument/publishDiagnostics", invalid)


def hostile(request):
    if MODE == "dies":
        sys.stderr.write("the license has run out\n")
        sys.stderr.flush()
        os._exit(9)
    elif MODE == "half_header":
        write(b"Content-Len")
    elif MODE == "half_body":
        write(b'Content-Length: 100\r\n\r\n{"jsonrpc"')
    elif MODE == "huge_header":
        for _ in range(1 << 20):
            write(b"X" * 1024)
    elif MODE == "many_lines":
        for _ in range(1 << 20):
            write(b"Content-Length: 5\r\n" * 64)
    elif MODE == "announced":
        write(b"Content-Length: 104857600\r\n\r\n", b"x" * 100000)
    elif MODE == "sent":
        write(b"Content-Length: %d\r\n\r\n" % (17 << 20))
        for _ in range(17):
            write(b"y" * (1 << 20))
    elif MODE == "many_parts":
        body = b'{"jsonrpc":"2.0","id":%d,"result":[%s0]}' % (request["id"], b"0," * (7 << 20))
        write(b"Content-Length: %d\r\n\r\n" % len(body), body)
    elif MODE == "deep":
        body = b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (request["id"], b"[" * 1000000)
        write(b"Content-Length: %d\r\n\r\n" % len(body), body)
        respond(request, "alive")
    elif MODE == "floods":
        threading.Thread(target=flood, daemon=True).start()
        time.sleep(0.2)
        respond(request, "alive")
    elif MODE == "odd_diagnostics":
        odd_diagnostics()
        respond(request, "alive")
    elif MODE == "asks":
        for number in range(10000):
            send({"jsonrpc": "2.0", "id": number, "method": "workspace/configuration", "params": {"items": [{}] * 60}})
        respond(request, "alive")
    elif MODE == "twice":
        for result in ["alive", "again", None]:
            respond(request, result)
        for wrong_id in [0, -1, 999999, "x", None, 1.5, [1], request["id"]]:
            send({"jsonrpc": "2.0", "id": wrong_id, "result": "wrong"})
    elif MODE == "unknown":
        for number in range(1000):
            send({"jsonrpc": "2.0", "id": 5000 + number, "result": None})
        respond(request, "alive")
    elif MODE == "forks":
        if os.fork() == 0:
            os.setsid()
            time.sleep(FOREVER)
        os._exit(3)
    elif MODE == "closes":
        OUT.close()
        os.close(1)
        time.sleep(FOREVER)
    elif MODE == "hangs":
        time.sleep(FOREVER)
    elif MODE == "never_reads":
        respond(request, "alive")
        time.sleep(FOREVER)
    elif MODE == "grows":
        global ALLOCATED
        ALLOCATED = [os.urandom(1 << 20) for _ in range(200)]
        respond(request, "alive")
    else:
        respond(request, "alive")


def start():
    if MODE == "exits":
        sys.stderr.write("the license has run out\n")
        sys.exit(7)
    if MODE == "shim":
        sys.stderr.write("error: Unknown binary 'rogue' in official toolchain\n")
        sys.exit(1)
    if MODE == "silent":
        time.sleep(FOREVER)
    if MODE == "slow_start":
        time.sleep(2.5)
    if MODE == "garbage":
        for _ in range(1 << 20):
            write(b"Starting up, please wait a moment\n")
    if MODE == "stubborn":
        for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(each, signal.SIG_IGN)
    if MODE == "talks":
        write(b"Welcome to rogue 1.0\n", b"no end of line")


RECEIVED = []
CAPABILITIES = {
    "definitionProvider": True, "referencesProvider": True, "hoverProvider": True, "implementationProvider": True,
    "documentSymbolProvider": True, "workspaceSymbolProvider": True, "callHierarchyProvider": True,
    "diagnosticProvider": {"identifier": "rogue", "interFileDependencies": True, "workspaceDiagnostics": False},
    "textDocumentSync": {"openClose": True, "change": 2, "save": {"includeText": True}},
}
WATCH = {"watchers": [{"globPattern": "**/*"}]}
SERVER_REQUESTS = [
    ("client/registerCapability", {"registrations": [
        {"id": "1", "method": "workspace/didChangeWatchedFiles", "registerOptions": WATCH}]}),
    ("workspace/workspaceFolders", None),
    ("workspace/configuration", {"items": [{"section": "rogue"}]}),
    ("workspace/applyEdit", {"edit": {}}),
    ("window/showDocument", {"uri": "https://a.test"}),
    ("window/workDoneProgress/create", {"token": 1}),
]


def record(request):
    """Records all messages, sends every kind of server request, and answers every request."""
    method = request.get("method")
    RECEIVED.append(request)
    if method == "initialize":
        respond(request, {"capabilities": CAPABILITIES})
    elif method == "initialized":
        for method, params in SERVER_REQUESTS:
            send({"jsonrpc": "2.0", "id": method, "method": method, "params": params})
    elif method == "received":
        respond(request, RECEIVED[:-1])
    elif method == "textDocument/diagnostic":
        respond(request, {"kind": "full", "items": []})
    elif method == "textDocument/prepareCallHierarchy":
        span = {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 1}}
        uri = request["params"]["textDocument"]["uri"]
        respond(request, [{"name": "f", "kind": 12, "uri": uri, "range": span, "selectionRange": span}])
    elif method == "exit":
        sys.exit(0)
    elif method is not None and "id" in request:
        respond(request, None)


def late(document, version):
    """Publishes a diagnostic long after the change, as a compiler does."""
    time.sleep(3.6)
    params = {"uri": document["uri"], "version": version, "diagnostics": [diagnostic((0, 0), (0, 4), message="it is late")]}
    notify("textDocument/publishDiagnostics", params)


start()
while True:
    request = read()
    method = request.get("method")
    if MODE == "records":
        record(request)
        continue
    if MODE == "late" and method == "textDocument/didOpen":
        notify("textDocument/publishDiagnostics", {"uri": request["params"]["textDocument"]["uri"], "diagnostics": []})
    if MODE == "slow_start" and method == "textDocument/didOpen":
        document = request["params"]["textDocument"]
        errors = [diagnostic((0, 0), (0, 4), message="it was there")]
        notify("textDocument/publishDiagnostics", {"uri": document["uri"], "diagnostics": errors})
    if MODE == "late" and method == "textDocument/didChange":
        document = request["params"]["textDocument"]
        threading.Thread(target=late, args=(document, document["version"]), daemon=True).start()
    if "id" not in request or method is None:
        if method == "exit" and MODE != "stubborn":
            sys.exit(1)
    elif method == "initialize":
        if request["params"]["processId"] is not None:
            sys.exit(5)
        respond(request, {"capabilities": {"hoverProvider": True, "workspaceSymbolProvider": MODE == "symbols"}})
    elif method == "workspace/symbol":
        span = {"start": {"line": 1, "character": 0}, "end": {"line": 1, "character": 1}}
        location = {"uri": "file://%s/a.mine" % os.getcwd(), "range": span}
        respond(request, [{"name": request["params"]["query"], "kind": 12, "location": location}])
    elif method == "shutdown":
        if MODE != "stubborn":
            respond(request, None)
    elif method == "hostile":
        hostile(request)
    elif method == "pid":
        respond(request, {"cwd": os.getcwd(), "cache": os.environ.get("ROGUE_CACHE"), "arguments": sys.argv, "started": STARTED})
    elif method == "touch":
        try:
            open(request["params"]["path"], "w").close()
            respond(request, "written")
        except OSError as error:
            respond(request, error.strerror)
    else:
        respond(request, request.get("params"))
