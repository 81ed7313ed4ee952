#!/usr/bin/env python3
"""A mock MCP server with the HTTP+SSE transport of 2024-11-05: `sse_server.py MODE`. It prints its
port. Every mode but `good` misbehaves in one way."""
import json
import queue
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODE = sys.argv[1]
STREAMS = {}
CALLS = []


def answer(request):
    method = request.get("method")
    if method == "initialize":
        return {"protocolVersion": "2024-11-05", "capabilities": {"tools": {}},
                "serverInfo": {"name": "old", "version": "1"}}
    if method == "tools/list":
        schema = {"type": "object", "properties": {"text": {"type": "string"}}}
        return {"tools": [{"name": "echo", "description": "Says it again.", "inputSchema": schema}]}
    if method == "tools/call":
        said = "echo: " + request["params"]["arguments"]["text"]
        return {"content": [{"type": "text", "text": said}]}
    return None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def reply(self, status, body=b"", kind="text/plain"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def event(self, name, data):
        self.wfile.write(f"event: {name}\ndata: {data}\n\n".encode())
        self.wfile.flush()

    def do_GET(self):
        if self.path == "/calls":
            return self.reply(200, str(len(CALLS)).encode())
        if self.path != "/sse" or MODE == "not_found":
            return self.reply(404)
        if MODE == "login" and self.headers.get("authorization") != "Bearer right":
            return self.reply(401)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        if MODE == "ends":
            return
        if MODE == "no_endpoint":
            while True:
                self.wfile.write(b": ping\n\n")
                time.sleep(0.01)
        name, messages = str(len(STREAMS)), queue.Queue()
        STREAMS[name] = messages
        path = "/messages?session=" + name
        host = "http://127.0.0.2:9" if MODE == "other_origin" else ""
        self.event("endpoint", host + path)
        while True:
            message = messages.get()
            if MODE == "flood" and message["id"] is not None:
                noise = {"jsonrpc": "2.0", "method": "notifications/whatever", "params": {"a": [1, 2, 3]}}
                noise = f"data: {json.dumps(noise)}\n\n: ping\n\nevent: other\ndata: x\n\n".encode()
                for _ in range(200):
                    self.wfile.write(noise * 200)
            if MODE == "long_event" and "tools" in message.get("result", {}):
                for _ in range(64):
                    self.wfile.write(b"data: " + b"x" * (1 << 20) + b"\n")
            # Several `data` lines are one message.
            self.event("message", json.dumps(message, indent=1).replace("\n", "\ndata: "))

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        path, _, session = self.path.partition("?session=")
        if path != "/messages" or session not in STREAMS:
            return self.reply(404 if MODE == "not_found" else 405)
        if MODE == "login" and self.headers.get("authorization") != "Bearer right":
            return self.reply(401)
        request = json.loads(body)
        is_call = request.get("method") == "tools/call"
        if is_call:
            CALLS.append(request)
        if MODE == "drops_calls" and is_call:
            self.close_connection = True
            return
        if MODE == "slow_posts" and is_call and request["params"]["arguments"]["text"] == "slow":
            time.sleep(30)
        if MODE == "refuses_calls" and request.get("method") == "tools/call":
            return self.reply(403, b"no")
        if MODE == "fails_calls" and is_call:
            return self.reply(502, b"bad gateway")
        if MODE == "says_ok" and is_call:
            self.reply(200, b'{"ok": true}', "application/json")
        else:
            self.reply(202, b"Accepted")
        result = answer(request)
        if "id" in request and result is not None:
            STREAMS[session].put({"jsonrpc": "2.0", "id": request["id"], "result": result})


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_port, flush=True)
server.serve_forever()
