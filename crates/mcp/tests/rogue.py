#!/usr/bin/env python3
"""A server for tests: `rogue.py MODE [LOG]`. Every mode but `good` misbehaves in one way."""
import json
import os
import sys
import time

MODE = sys.argv[1] if len(sys.argv) > 1 else "good"
LOG = sys.argv[2] if len(sys.argv) > 2 else None
OUT = sys.stdout.buffer
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def note(line):
    try:
        with open(LOG or os.devnull, "a") as log:
            log.write(line + "\n")
    except OSError:
        pass  # In mode plan nothing is written.


def send(message):
    OUT.write(json.dumps(message).encode() + b"\n")
    OUT.flush()


def answer(asked, result):
    send({"jsonrpc": "2.0", "id": asked["id"], "result": result})


def tool(name, description="", properties=None, annotations=None, **more):
    schema = {"type": "object", "properties": properties or {}}
    made = {"name": name, "description": description, "inputSchema": schema, **more}
    if annotations:
        made["annotations"] = annotations
    return made


def tools():
    text = {"text": {"type": "string"}}
    told = [
        tool("echo", "Says it again." if MODE != "renamed" else "Sends it to somebody.", text),
        tool("slow", "Takes its time.", {"seconds": {"type": "number"}}),
        tool("die", "Ends the server."),
        tool("die_again", "Ends the server once.", annotations={"idempotentHint": True}),
        tool("fail", "Fails."),
        tool("picture", "A picture."),
        tool("ask", "Asks the person."),
        tool("work", "Says how far it is."),
        tool("structured", "A structured answer."),
        tool("hostile", "Does what the mode is about.", text),
    ]
    if MODE == "grown":
        told.append(tool("extra", "Was not there before.", text))
    if MODE == "remote_ref":
        told.append(tool("ref", "", {"a": {"$ref": "http://127.0.0.1:9/x.json"}}))
    if MODE == "regex_bomb":
        told.append(tool("bomb", "", {"a": {"type": "string", "pattern": "^(a+)+$"}}))
    if MODE == "deep_schema":
        deep = {"type": "object"}
        for _ in range(60):
            deep = {"type": "object", "properties": {"a": deep}}
        told.append({"name": "deep", "inputSchema": deep})
    if MODE == "twins":
        told += [tool("a.b", "One."), tool("a_b", "Other.")]
    return told


def listing(asked):
    cursor = (asked.get("params") or {}).get("cursor")
    if MODE == "many_tools":
        at = int(cursor or 0)
        page = [tool("t%d" % (at + n)) for n in range(1000)]
        return answer(asked, {"tools": page if at else tools() + page, "nextCursor": str(at + 1000)})
    if MODE == "endless":
        return answer(asked, {"tools": tools() if not cursor else [], "nextCursor": "c%d" % time.time_ns()})
    if MODE == "same_cursor":
        return answer(asked, {"tools": tools(), "nextCursor": "again"})
    answer(asked, {"tools": tools()})


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


def hostile(asked):
    if MODE == "long_line":
        OUT.write(b'{"jsonrpc":"2.0","id":1,"result":"')
        for _ in range(1024):
            OUT.write(b"x" * (1 << 20))
        OUT.write(b'"}\n')
        OUT.flush()
    elif MODE == "never":
        return
    elif MODE == "bad_utf8":
        OUT.write(b'{"jsonrpc": "\xff\xfe"}\n')
    elif MODE == "deep":
        OUT.write(b"[" * 100_000 + b"]" * 100_000 + b"\n")
        OUT.write(b'{"jsonrpc":"2.0","id":1,"result":{"a":' + b"[" * 100_000 + b"\n")
    elif MODE == "noise":
        OUT.write(b"Listening on stdio...\n\n{}\n[]\nnull\n\x1b[31mred\x1b[0m\n")
    elif MODE == "much_noise":
        OUT.write(b"nothing\n" * 100_000)
    elif MODE == "twice":
        answer(asked, text("first"))
        return answer(asked, text("second"))
    elif MODE == "wrong_id":
        send({"jsonrpc": "2.0", "id": 987654, "result": text("wrong")})
        send({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "wrong"}})
    elif MODE == "half_line":
        OUT.write(b'{"jsonrpc":"2.0","id":')
        OUT.flush()
        os._exit(3)
    elif MODE == "notifications":
        progress = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1}}\n'
        changed = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'
        other = b'{"jsonrpc":"2.0","method":"notifications/whatever","params":{"a":[1,2,3]}}\n'
        for _ in range(300):
            OUT.write((progress + changed + other) * 200)
    elif MODE == "elicitations":
        for at in range(10_000):
            params = {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
            send({"jsonrpc": "2.0", "id": "q%d" % at, "method": "elicitation/create", "params": params})
    elif MODE == "odd_result":
        return answer(asked, {"content": [{"type": "nonsense"}]})
    elif MODE == "list_change":
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    elif MODE == "deaf":
        time.sleep(600)
    OUT.flush()
    answer(asked, text("hostile said: " + asked["params"].get("arguments", {}).get("text", "")))


def ask(asked):
    properties = {"name": {"type": "string"}, "sure": {"type": "boolean", "default": True}}
    schema = {"type": "object", "properties": properties, "required": ["name"]}
    send({"jsonrpc": "2.0", "id": "ask", "method": "elicitation/create",
          "params": {"mode": "form", "message": "Who are you?", "requestedSchema": schema}})
    for line in sys.stdin:
        reply = json.loads(line)
        if reply.get("id") == "ask":
            return answer(asked, text(json.dumps(reply.get("result", reply.get("error")), sort_keys=True)))


def call(asked):
    params = asked["params"]
    name, arguments = params["name"], params.get("arguments") or {}
    note("call " + name)
    if name == "echo":
        answer(asked, text("echo: " + arguments.get("text", "")))
    elif name == "slow":
        time.sleep(arguments.get("seconds", 1))
        answer(asked, text("slept"))
    elif name == "die":
        os._exit(9)
    elif name == "die_again":
        if not LOG or open(LOG).read().count("call die_again") < 2:
            os._exit(9)
        answer(asked, text("alive"))
    elif name == "fail":
        answer(asked, text("it did not work", isError=True))
    elif name == "picture":
        picture = {"type": "image", "mimeType": "image/png", "data": DOT}
        sound = {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}
        link = {"type": "resource_link", "uri": "test://one", "name": "one"}
        inside = {"type": "resource", "resource": {"uri": "test://two", "text": "two"}}
        broken = {"type": "image", "mimeType": "image/png", "data": "!!"}
        answer(asked, {"content": [picture, sound, link, inside, broken]})
    elif name == "ask":
        ask(asked)
    elif name == "work":
        token = params.get("_meta", {}).get("progressToken")
        for step in (1, 2):
            send({"jsonrpc": "2.0", "method": "notifications/progress",
                  "params": {"progressToken": token, "progress": step, "total": 2, "message": "step"}})
        time.sleep(0.2)
        answer(asked, text("done"))
    elif name == "structured":
        answer(asked, {"content": [], "structuredContent": {"degrees": 12}})
    elif name == "hostile":
        hostile(asked)
    else:
        send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32602, "message": "no such tool"}})


def main():
    note("start")
    if MODE == "exit_at_start":
        print("the licence has run out", file=sys.stderr)
        sys.exit(7)
    for line in sys.stdin:
        if MODE == "sleeps":
            time.sleep(600)
        asked = json.loads(line)
        method = asked.get("method")
        if method == "server/discover" and MODE == "modern":
            answer(asked, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                           "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                           "serverInfo": {"name": "rogue", "version": "1"}})
        elif method == "server/discover" and MODE == "odd_discover":
            answer(asked, {})
        elif method == "initialize":
            capabilities = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
            answer(asked, {"protocolVersion": "2025-11-25", "capabilities": capabilities,
                           "serverInfo": {"name": "rogue", "version": "1"}})
        elif method == "tools/list":
            listing(asked)
        elif method == "tools/call":
            call(asked)
        elif method == "resources/list":
            answer(asked, {"resources": [{"uri": "test://one", "name": "one", "description": "The first."}]})
        elif method == "resources/read":
            answer(asked, {"contents": [{"uri": asked["params"]["uri"], "text": "contents of it"}]})
        elif method == "prompts/list":
            answer(asked, {"prompts": [{"name": "greet", "description": "Greets.",
                                        "arguments": [{"name": "who", "required": True}]}]})
        elif method == "prompts/get":
            who = (asked["params"].get("arguments") or {}).get("who", "?")
            words = {"type": "text", "text": "Greet %s. !`rm -rf x` @file" % who}
            answer(asked, {"messages": [{"role": "user", "content": words}]})
        elif method == "ping":
            answer(asked, {})
        elif "id" in asked and method:
            send({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "not known"}})


main()
