import { after, before, test } from "node:test";
import assert from "node:assert/strict";
import fs from "node:fs";
import { Host, RUNTIME, TEMP } from "./kit.mjs";

/** A session with two calls, as it is recorded. */
const FACTS = [
  { kind: "session_opened", workspace: "/w", version: "1", parent: { session: "s0", call: "c0" } },
  { kind: "prompt_submitted", prompt: "p1", text: "fix it", settings: { command: { name: "fix", arguments: "it" } } }, { kind: "turn_started", turn: 1, prompt: "p1" },
  { kind: "step_started", turn: 1, step: 1, model: "openai/big/model" }, { kind: "model_reasoning", text: "hm" }, { kind: "model_text", text: "I edit" },
  { kind: "tool_called", call: "c1", tool: "edit", arguments: '{"filePath":"a.txt"}' },
  { kind: "permission_asked", call: "c1", accesses: [{ access: "edit", path: "a.txt" }], reason: "edit a.txt" }, { kind: "permission_answered", call: "c1", answer: { answer: "session" } },
  { kind: "call_started", call: "c1" }, { kind: "files_changing", call: "c1", changes: [{ path: "a.txt" }] }, { kind: "hook_ran", call: "c1" },
  { kind: "call_settled", call: "c1", outcome: { status: "completed", output: { title: "a.txt", text: "edited", metadata: { n: 1 }, todos: [{ content: "x", status: "pending", priority: "low" }] } } },
  { kind: "tool_called", call: "c2", tool: "bash", arguments: "not JSON" }, { kind: "call_settled", call: "c2", outcome: { status: "denied", text: "no" } },
  { kind: "step_ended", turn: 1, step: 1, finish_reason: { reason: "tool_calls" }, usage: { input: 5, output: 7 }, cost: 250000 },
  { kind: "session_renamed", title: "T" }, { kind: "context_compacted" }, { kind: "step_retrying", attempt: 1, fault: { fault: "rate_limited", message: "slow" }, wait_ms: 5 },
  { kind: "turn_ended", turn: 1, end: { end: "failed", fault: { fault: "auth", message: "out of money" } } },
].map((fact, at) => ({ session: "s1", seq: at, at: at ? at : 1, ...fact }));
const bun = /bun$/.test(RUNTIME);
const typed = bun || process.versions.node.split(".")[0] >= 22;
let odd;
before(() => { odd = new Host("fixtures/odd.mjs"); });
after(() => odd.end());
const withHost = async (file, use, options) => { const host = new Host(file, options); try { return await use(host); } finally { await host.end(); } };

test("output of the file's code and of its children never reaches the pipe", async () => {
  assert.deepEqual(await odd.call("odd_noisy"), { id: odd.last, result: { text: "quiet" } });
  assert.equal((await odd.call("odd_echo", { city: "Oslo" })).error, undefined);
  assert.deepEqual(odd.lines, []);
  for (const word of ["OUT1", "OUT2", "OUT3", "OUT4", "forged"]) await odd.waitForStderr(new RegExp(word));
});
test("output is redirected to stderr over sockets too", () => withHost("fixtures/odd.mjs", async (host) => {
  assert.equal((await host.call("odd_printing")).result.text, "quiet");
  assert.deepEqual(host.lines, []);
  await host.waitForStderr(/OUT1/);
}, { sockets: true }));

const failures = {
  throws: /^no such city$/, fetches: /^fetch failed \(ENOTFOUND\)$/, throwsText: /^just words$/, throwsNothing: /./, throwsTrap: /cannot be read/,
  leaves: /process\.exit\(3\)/, leavesByName: /process\.exit\(3\)/, leavesLater: /process\.exit\(3\)/, aborts: /process\.abort/,
  rejects: /^floating$/, throwsLater: /^from a timer$/, gigabyte: /./, large: /500000000 characters|[Ii]nvalid string length|[Oo]ut of memory/, wide: /8 MiB/, cyclic: /JSON/, big: /JSON/, bigAlone: /bigint/,
  nothing: /undefined/, symbol: /symbol/, symbolInside: /Symbol/, nullish: /null/, noOutput: /output is undefined/, listed: /array/, trap: /^trapped$/,
  farAttachment: /data: or file:/, deviceAttachment: /not a file/, missing: /no tool named odd_missing/,
};
for (const [name, error] of Object.entries(failures)) test(`${name} is answered with an error, and the next call works`, async () => {
  const answer = await odd.call(`odd_${name}`);
  assert.match(answer.error ?? `none, but ${JSON.stringify(answer).slice(0, 200)}`, error);
  assert.doesNotMatch(answer.error, /\n\s+at /);
  assert.equal((await odd.call("odd_slow", { ms: 1 })).result?.text, "slept 1");
});
test("metadata 100,000 levels deep does not end the host", async () => {
  const answer = await odd.call("odd_deep");
  assert.ok(answer.error || answer.result);
  assert.equal((await odd.call("odd_slow", { ms: 1 })).result.text, "slept 1");
});
test("a full result carries title, metadata and attachments, after its progress", async () => {
  const { id, settled } = odd.start("odd_full");
  const { result } = await settled;
  assert.deepEqual(result, { text: "done", title: "T", metadata: { seen: 1, n: 2 }, attachments: [{ name: "a.png", mime: "image/png", base64: "AAAA" }, { name: "attachment", mime: "text/plain", base64: "aCBp" }] });
  assert.deepEqual(odd.lines.splice(0), [{ id, progress: "half, seen: 1" }]);
});
test("the context has the fields that OpenCode's tools expect", async () => {
  const { settled } = odd.start("odd_context", {}, { message: "msg_0000000007" });
  assert.deepEqual(JSON.parse((await settled).result.text), { sessionID: "s1", messageID: "msg_0000000007", callID: "c1", agent: "auto", directory: "/w", worktree: "/w", messages: [], extra: { model: { providerID: "", modelID: "" } }, aborted: false });
});
const refusals = [[["No"], undefined, "it was denied"], [["No"], "a rule denies it", "a rule denies it"], [null, undefined, "it was denied"], [["yes, and more"], undefined, "it was denied"], [[], "no user is there to approve it", "no user is there to approve it"]];
for (const [answer, reason, refusal] of [[["Yes"]], ...refusals]) test(`ask answered ${JSON.stringify({ answer, reason })}`, async () => {
  const { id, settled } = odd.start("odd_permit");
  const { ask } = await odd.line((line) => line.id === id && line.ask);
  assert.deepEqual(ask, { header: "edit", question: "odd_permit asks for edit: a.txt. Allow it?", options: [{ label: "Yes" }, { label: "No" }], permission: { key: "edit", patterns: ["a.txt"] } });
  odd.send({ id, answer, reason });
  const settledLine = await settled;
  assert.equal(settledLine.result?.text, refusal ? undefined : "went on");
  if (refusal) assert.equal(settledLine.error, `The tool asked for permission \`edit\` (a.txt); ${refusal}.`);
});
test("an answer for the session covers the patterns that the tool names", async () => {
  const remembered = [];
  for (const [path, answer] of [["src/a.js", "Always"], ["src/b.js", "Yes"], ["docs/c.md", "Yes"]]) {
    const { id, settled } = odd.start("odd_repeats", { path });
    const { ask } = await odd.line((line) => line.id === id && line.ask);
    remembered.push(ask.permission.remembered ?? false);
    odd.send({ id, answer: [answer] });
    assert.equal((await settled).result?.text, "went on");
  }
  assert.deepEqual(remembered, [false, true, false]);
});
test("a tool receives the answer to its own question", async () => {
  const { id, settled } = odd.start("odd_wonder");
  await odd.line((line) => line.ask?.question === "Which?");
  odd.send({ id, answer: ["C"] });
  assert.equal((await settled).result.text, "C");
});
test("two questions of one call are asked one after the other", async () => {
  const { id, settled } = odd.start("odd_twice");
  assert.equal((await odd.line((line) => line.ask)).ask.question, "A?");
  assert.deepEqual(odd.lines, []);
  odd.send({ id, answer: ["1"] });
  assert.equal((await odd.line((line) => line.ask)).ask.question, "B?");
  odd.send({ id, answer: ["2"] });
  assert.equal((await settled).result.text, "1,2");
});
test("cancel aborts ctx.abort and an open question", async () => {
  for (const name of ["odd_waits", "odd_permit"]) {
    const { id, settled } = odd.start(name);
    if (name === "odd_permit") await odd.line((line) => line.ask);
    odd.send({ method: "cancel", id });
    assert.match((await settled).error, /canceled/);
  }
});
test("calls run in parallel, and an unawaited failure fails the call it came from", async () => {
  const slow = odd.start("odd_slow", { ms: 300 });
  const bad = odd.start("odd_throwsLater");
  assert.equal((await bad.settled).error, "from a timer");
  assert.equal((await slow.settled).result.text, "slept 300");
});
test("arguments are validated, and defaults are set before execute", async () => {
  assert.deepEqual(JSON.parse((await odd.call("odd_echo", { city: "Oslo", unit: "K", extra: 1 })).result.text), { city: "Oslo", days: 3, unit: "C", trimmed: " a " });
  assert.match((await odd.call("odd_echo", { city: "O" })).error, /^city: must have at least 2 characters$/);
  assert.match((await odd.call("odd_echo", { city: "Oslo", days: 8 })).error, /^days: must be at most 7$/);
  assert.match((await odd.call("odd_echo", { city: "Oslo", tags: ["a", 1] })).error, /^tags\.1: expected string, got number$/);
  assert.match((await odd.call("odd_echo", {})).error, /^city: expected string/);
  assert.match((await odd.call("odd_echo", [])).error, /must be an object/);
});
test("plain JSON Schema is used unchanged", async () => {
  assert.deepEqual(JSON.parse((await odd.call("odd_plainSchema", { q: "a" })).result.text), { q: "a", n: 4 });
  assert.match((await odd.call("odd_plainSchema", {})).error, /^q: is required/);
  const { tools } = await odd.describe();
  const named = (name) => tools.find((one) => one.name === name);
  assert.deepEqual(named("odd_plainSchema").schema.required, ["q"]);
  assert.deepEqual(named("odd_plainShape").schema, { type: "object", properties: { q: { type: "string" } }, required: ["q"], additionalProperties: false });
  assert.equal(named("odd_helper"), undefined);
  assert.equal(named("odd_alsoNoTool"), undefined);
});
test("invalid lines are ignored", async () => {
  for (const line of ["", "nonsense", "null", "[]", "7", '{"method":"call"}', '{"method":"cancel","id":99}', '{"id":98,"answer":["x"]}']) odd.process.stdin.write(`${line}\n`);
  assert.match((await odd.request("dance", {}).settled).error, /no method is named dance/);
  assert.match((await odd.request("constructor", {}).settled).error, /no method is named constructor/);
  odd.process.stdin.write('{"id":500,"method":"call","tool":"odd_echo","arguments":{"city":"Oslo","__proto__":{"x":1}}}\n');
  assert.equal(JSON.parse((await odd.line((line) => line.id === 500)).result.text).x, undefined);
});
test("a line may arrive in pieces", async () => {
  const text = Buffer.from(`{"id":600,"method":"call","tool":"odd_echo","arguments":{"city":"Zürich €"}}\n`);
  for (const byte of text) { odd.process.stdin.write(Buffer.from([byte])); await new Promise((go) => setImmediate(go)); }
  assert.equal(JSON.parse((await odd.line((line) => line.id === 600)).result.text).city, "Zürich €");
});
test("the host ends after its pipe is closed and open calls are done", () => withHost("fixtures/odd.mjs", async (host) => {
  const { settled } = host.start("odd_slow", { ms: 200 });
  host.process.stdin.end();
  assert.equal((await settled).result.text, "slept 200");
  await host.ended;
}));
test("the host ends within seconds after its pipe is closed, even if a call never ends", { timeout: 10000 }, () => withHost("fixtures/odd.mjs", async (host) => {
  host.start("odd_waits").settled.catch(() => {});
  await host.describe();
  host.process.stdin.end();
  await host.ended;
}));

const broken = {
  "broken.mjs": /^broken\.mjs:3 could not be loaded: /, "empty.mjs": /^empty\.mjs exports no tool/, "crash.mjs": /^crash\.mjs:3 could not be loaded: /, "lacking.mjs": /^lacking\.mjs(:1)? could not be loaded: .*left-pad/,
  "gone.mjs": /^gone\.mjs:1 could not be loaded: process\.exit/, "mute.mjs": /mute has no description/, "number.mjs": /the argument a is number/, "not-there.mjs": /not-there\.mjs/,
  ...(typed && !bun && { "enum.ts": /^enum\.ts:2 could not be loaded: .*enum/ }),
};
for (const [file, error] of Object.entries(broken)) test(`${file} fails at describe`, () => withHost(`fixtures/${file}`, async (host) => {
  assert.match((await host.describe()).error, error);
}));
test("a CommonJS file gets the shim too", () => withHost("fixtures/old.cjs", async (host) => {
  assert.equal((await host.call("old", { a: "x" })).result?.text, "x");
}));
test("every builder is exported by the zod shim, and a relative import needs no extension", () => withHost("fixtures/star.mjs", async (host) => {
  assert.deepEqual((await host.describe()).tools?.[0].schema.properties, { a: { type: "string", const: "x" }, b: { type: "null" } });
  assert.equal((await host.call("star", { a: "x", b: null })).result.text, "from near");
}));
test("TypeScript", { skip: !typed }, () => withHost("fixtures/math.ts", async (host) => {
  assert.deepEqual((await host.describe()).tools.map(({ name }) => name).sort(), ["math", "math_add"]);
  assert.equal((await host.call("math_add", { a: 2, b: 3 })).result.text, "5");
}));
test("Bun's names exist on Node", { skip: bun }, () => withHost("fixtures/bun.mjs", async (host) => {
  const rows = [
    ["meta", ["fixtures", "bun.mjs", "bun.mjs", "/", false]], ["imports", ["some words", "data"]],
    ["files", [7, true, 7, { a: 1 }, false, true]],
    ["programs", ["hello", 3, "blob", "now\n", false, "ENOENT", "a b", "sh", null]],
    ["globs", [["a.ts", "src/c.ts", "src/deep/d.ts"], ["a.ts", "b.js"], ["src/deep/SKILL.md"], 4, true, false, true, false, false]],
    ["hashes", ["bigint", true, false, "ca978112", true, true]],
  ];
  for (const [name, expected] of rows) {
    const answer = await host.call(`bun_${name}`);
    assert.deepEqual(JSON.parse(answer.result?.text ?? JSON.stringify(answer)), expected, name);
  }
  // That folder is removed when the tests end.
  assert.ok(fs.readdirSync(TEMP).some((name) => name.startsWith("windlass-bun-")));
  const stored = await host.call("bun_sqlite");
  if (stored.error) assert.match(stored.error, /^bun:sqlite needs Bun, or Node 22\.13 or newer$/);
  else assert.deepEqual(JSON.parse(stored.result.text), [[{ name: "a", done: 1 }, { name: "b", done: 1 }], { name: "b" }, null, [[1], [2]]]);
  assert.equal((await host.call("bun_serve")).error, "Bun.serve needs Bun, and this plugin runs on Node");
  assert.equal((await host.call("bun_native")).error, "bun:ffi needs Bun, and this plugin runs on Node");
}));
test("a plugin for OpenCode's terminal interface is named as such", () => withHost("fixtures/interface.mjs", async (host) => {
  assert.deepEqual(await host.describe(), { id: 1, tools: [], notes: ["it is a plugin for OpenCode's terminal interface, and does nothing here"] });
}));
test("what a config hook adds is part of the description", () => withHost("fixtures/config.mjs", async (host) => {
  for (const round of [1, 2]) {
    const { config, notes, unsupported_hooks } = await host.describe();
    assert.deepEqual(config, { agent: { Reviewer: { description: "Reviews.", mode: "subagent", prompt: "Review." } }, command: { check: { template: "Check $ARGUMENTS", description: "Checks." } }, ignored: ["mcp", "default_agent"] }, `round ${round}`);
    assert.deepEqual([notes, unsupported_hooks], [["its config hook failed: no config today"], undefined]);
  }
}));
test("the config hooks of a file have one time limit together", () => withHost("fixtures/slow_config.mjs", async (host) => {
  const started = Date.now();
  const { config, notes } = await host.describe();
  assert.ok(Date.now() - started < 9000, `${Date.now() - started} ms`);
  assert.deepEqual(config.command, { check: { template: "Check" } });
  assert.deepEqual(notes, Array(2).fill("its config hook failed: no answer within 5 s"));
}));
test("a plugin module provides tools and hooks", () => withHost("fixtures/guard.mjs", async (host) => {
  const { tools, hooks, unsupported_hooks, notes } = await host.describe();
  assert.deepEqual(notes, ["the export helper is not used: a helper, not a plugin"]);
  assert.deepEqual(unsupported_hooks, ["auth"]);
  assert.deepEqual(tools.map(({ name, keeps_name }) => [name, keeps_name]), [["count", true]]);
  assert.deepEqual([...hooks].sort(), ["after_tool", "before_tool", "command", "compaction", "event", "params", "permission", "prompt", "session_end", "system", "tool_definition"]);
  await host.waitForStderr(/guard: loaded/);
  const rows = [
    ["before_tool", { tool: "bash", arguments: { command: "rm -rf /" } }, { verdict: "refuse", reason: "not that one" }],
    ["before_tool", { tool: "bash", arguments: { command: "ls" } }, { verdict: "pass" }],
    ["before_tool", { tool: "edit", arguments: { filePath: "a" } }, { verdict: "pass", arguments: { filePath: "/w/a" } }],
    ["before_tool", { tool: "client", arguments: {} }, { verdict: "refuse", reason: "a plugin has no client.pty.list here" }],
    ["event", { what: { kind: "session_renamed", title: "bad" } }, { verdict: "pass" }],
    ["event", { what: { kind: "constructor" } }, { verdict: "pass" }], ["event", {}, { verdict: "pass" }],
    ["before_tool", { tool: "second", arguments: {} }, { verdict: "refuse", reason: "the second plugin" }],
    ["before_tool", { tool: "shell", arguments: { text: "it's; echo $HOME" }, folder: undefined }, { verdict: "pass", arguments: { text: "it's; echo $HOME|a b|3|line1,line2" } }],
    ["after_tool", { tool: "read", arguments: {}, output: "a secret" }, { verdict: "pass", output: "a ***" }],
    ["after_tool", { tool: "read", arguments: {}, output: "open" }, { verdict: "pass" }],
    ["after_tool", { tool: "glob", arguments: {}, output: "a", title: "b", metadata: { n: 1 } }, { verdict: "pass", title: "b!", metadata: { n: 1, seen: true } }],
    ["permission", { tool: "bash", reason: "r", accesses: [] }, { verdict: "refuse", reason: "the plugin denies bash" }],
    ["permission", { tool: "edit", reason: "r", accesses: [] }, { verdict: "pass" }],
    ["prompt", { prompt: "x" }, { verdict: "pass", prompt: "y" }], ["prompt", { prompt: "z" }, { verdict: "pass" }],
    ["command", { command: "add", arguments: "x", prompt: "Do it" }, { verdict: "pass", prompt: "Do it\nwith x" }], ["command", { command: "stop", arguments: "", prompt: "y" }, { verdict: "refuse", reason: "handled" }],
    ["params", { params: { temperature: 1, top_p: 0.5 } }, { verdict: "pass", params: { temperature: 0, top_p: 0.5 } }],
    ["system", { system: "Brief." }, { verdict: "pass", system: "Brief.\n\nBe kind." }],
    ["compaction", {}, { verdict: "pass", context: "Keep the plan." }],
    ["tool_definition", { tool: "grep", description: "Greps.", parameters: {} }, { verdict: "pass", description: "Greps. Quickly." }],
    ["tool_definition", { tool: "read", description: "Reads.", parameters: {} }, { verdict: "pass" }],
    ["event", { what: { kind: "turn_ended", end: { end: "completed" } } }, { verdict: "pass" }],
  ];
  for (const [point, matter, result] of rows) assert.deepEqual((await host.hook(point, matter)).result, result, `${point} ${JSON.stringify(matter)}`);
  assert.match((await host.hook("toString", {})).error, /no hook point/);
  assert.match((await host.hook("messages", { messages: [] })).error, /no longer has the hook experimental/);
  await host.waitForStderr(/IDLE/);
}));
test("recorded facts become OpenCode's events", () => withHost("fixtures/events.mjs", async (host) => {
  const { hooks } = await host.describe();
  assert.deepEqual(hooks, ["prompt", "messages", "event", "session_end"]);
  for (const fact of FACTS) assert.deepEqual((await host.hook("event", { session: "s1", folder: "/w", what: fact })).result, { verdict: "pass" }, fact.kind);
  const { events } = JSON.parse((await host.callWithSession("seen", FACTS)).result.text);
  assert.deepEqual(events.map(({ type }) => type), [
    "session.created", "message.updated", "message.part.updated", "command.executed", "session.status", "message.updated", "message.part.updated", "message.part.updated", "message.part.updated", "message.part.updated",
    "permission.asked", "permission.updated", "permission.replied", "message.part.updated", "message.part.updated", "file.edited", "todo.updated", "message.part.updated", "message.part.updated",
    "message.part.updated", "message.updated", "session.updated", "session.compacted", "session.status", "session.error", "session.status", "session.idle",
  ]);
  const of = (type) => events.filter((event) => event.type === type).map(({ properties }) => properties);
  assert.deepEqual(of("session.created")[0].info, { id: "s1", projectID: "w", directory: "/w", title: "", version: "1", time: { created: 1, updated: 1 }, parentID: "s0" });
  assert.deepEqual(of("command.executed"), [{ name: "fix", sessionID: "s1", arguments: "it", messageID: "msg_0000000001" }]);
  assert.deepEqual(of("message.updated").map(({ info }) => [info.role, info.modelID, info.finish]), [["user", undefined, undefined], ["assistant", "big/model", undefined], ["assistant", "big/model", "tool-calls"]]);
  const parts = of("message.part.updated").map(({ part }) => part);
  assert.deepEqual(parts.map(({ type, text, state }) => state?.status ?? text ?? type), ["fix it", "step-start", "hm", "I edit", "pending", "running", "completed", "pending", "error", "step-finish"]);
  assert.deepEqual(parts[6].state, { status: "completed", input: { filePath: "a.txt" }, raw: '{"filePath":"a.txt"}', time: { start: 9, end: 12 }, output: "edited", title: "a.txt", metadata: { n: 1 } });
  assert.deepEqual(of("file.edited"), [{ file: "/w/a.txt" }]);
  assert.deepEqual(of("permission.replied")[0].response, "always");
  assert.equal(of("session.error")[0].error.data.message, "out of money");
  assert.deepEqual(of("message.updated")[2].info.tokens, { input: 5, output: 7, reasoning: 0, cache: { read: 0, write: 0 } });
  assert.equal(of("message.updated")[2].info.cost, 0.25);
  await host.hook("session_end", { session: "s1", folder: "/w" });
  await host.waitForStderr(/DELETED s1 s0/);
  await host.waitForStderr(/DISPOSED/);
}));
test("messages that a rewind or a withdrawal removes are events, and are not in the session", () => withHost("fixtures/events.mjs", async (host) => {
  await host.describe();
  const facts = [
    ...FACTS, { kind: "prompt_submitted", prompt: "p2", text: "taken back", seq: 101 }, { kind: "prompt_withdrawn", prompt: "p2", seq: 102 },
    { kind: "prompt_submitted", prompt: "p3", text: "rewound", seq: 103 }, { kind: "rewound", to: 102, seq: 104 },
  ];
  for (const fact of facts) await host.hook("event", { session: "s1", folder: "/w", what: fact });
  const { events } = JSON.parse((await host.callWithSession("seen", FACTS)).result.text);
  const removed = events.filter(({ type }) => type === "message.removed").map(({ properties }) => properties.messageID);
  assert.deepEqual(removed, ["msg_0000000101", "msg_0000000103"]);
  const { id, settled } = host.start("history", {}, { session: "s1", folder: "/w", model: "p/m" });
  await host.line((line) => line.id === id && line.read === "session");
  host.send({ id, facts });
  assert.deepEqual(JSON.parse((await settled).result.text.split("\n\n")[0]).texts, ["fix it", "hm", "I edit"]);
}));
test("a plugin reads its own session, on request, and adds context", () => withHost("fixtures/events.mjs", async (host) => {
  await host.describe();
  const { id, settled } = host.start("history", {}, { session: "s1", folder: "/w", model: "p/m" });
  assert.deepEqual(await host.line((line) => line.id === id), { id, read: "session" });
  host.send({ id, facts: FACTS });
  const { text } = (await settled).result;
  const [answer, context] = text.split("\n\n");
  assert.deepEqual(JSON.parse(answer), { texts: ["fix it", "hm", "I edit"], limited: 1, other: "a plugin can use only the session that it works for", title: "T", answer: "a plugin cannot make the model answer; use noReply: true to add text to the session", missing: "a plugin has no client.pty.create here", provider: "p" });
  assert.equal(context, "Remember this.");
  const listed = host.start("messages", {}, { session: "s1", folder: "/w" });
  await host.line((line) => line.id === listed.id && line.read === "session");
  host.send({ id: listed.id, error: "not now" });
  assert.equal((await listed.settled).error, "not now");
  assert.deepEqual((await host.hook("prompt", { session: "s1", prompt: "x" })).result, { verdict: "pass", context: "From a hook." });
}));
test("messages are read for a tool that hands its context to a helper, in its file or in another", async () => {
  for (const file of ["fixtures/helper.mjs", "fixtures/far_helper.mjs"]) await withHost(file, async (host) => {
    const { tools: [{ name }] } = await host.describe();
    const { id, settled } = host.start(name, {}, { session: "s1", folder: "/w" });
    await host.line((line) => line.id === id && line.read === "session");
    host.send({ id, facts: FACTS });
    assert.deepEqual(JSON.parse((await settled).result.text), ["user", "assistant"], file);
    const unread = host.start(name, { only: "the agent" }, { session: "s1", folder: "/w", agent: "plan" });
    await host.line((line) => line.id === unread.id && line.read === "session");
    host.send({ id: unread.id, error: "not now" });
    assert.equal((await unread.settled).result.text, "plan", "a session that cannot be read matters only to a tool that uses it");
  });
});
test("chat.params and chat.message get the name of the agent", () => withHost("fixtures/agent.mjs", async (host) => {
  await host.describe();
  for (const [agent, expected] of [["reviewer", "reviewer"], [undefined, "build"]]) {
    assert.deepEqual((await host.hook("params", { params: {}, agent })).result, { verdict: "refuse", reason: `params of ${expected}` });
    assert.deepEqual((await host.hook("prompt", { prompt: "x", agent })).result, { verdict: "refuse", reason: `message to ${expected}` });
  }
}));
test("a plugin changes the texts of a request, and not its structure", () => withHost("fixtures/events.mjs", async (host) => {
  await host.describe();
  const call = { type: "tool", tool: "bash", call: "c1", arguments: "{}", output: "done", failed: false };
  const messages = [
    { role: "user", seq: 1, parts: [{ type: "text", text: "mail a@b.c" }] }, { role: "assistant", seq: 2, parts: [{ type: "reasoning", text: "a@b.c" }, call, { ...call, output: "no", failed: true }, { ...call, output: null, failed: true }] },
    { role: "assistant", seq: 3, parts: [{ type: "text", text: "gone" }, call] }, { role: "user", seq: 4, parts: [{ type: "text", text: "go on" }, { type: "file", name: "a.png" }] },
  ];
  const { result } = await host.hook("messages", { messages });
  assert.deepEqual(result.messages, [
    { role: "user", seq: 1, parts: [{ type: "text", text: "mail MAIL" }, { type: "text", text: "Be brief." }] }, { ...messages[1], parts: [messages[1].parts[0], { ...call, output: "DONE" }, ...messages[1].parts.slice(2)] },
    { role: "assistant", seq: 3, parts: [{ type: "text", text: "" }, { ...call, output: "(removed)" }] }, { ...messages[3], parts: [...messages[3].parts, { type: "text", text: "And kind." }] },
  ]);
}));
test("tools keep the ids that their author gave them", () => withHost("fixtures/defined.mjs", async (host) => {
  const { tools } = await host.describe();
  const later = tools.find(({ name }) => name === "later");
  assert.deepEqual(tools.map(({ name, keeps_name }) => [name, keeps_name]).sort(), [["jira-create", true], ["later", true]]);
  assert.equal((await host.call("jira-create", { title: "x" })).result.text, "created x");
  assert.equal(later.description, "From a file");
  assert.deepEqual((await host.call("later", { n: 2 })).result, { text: "4", title: "Twice", metadata: { n: 2 } });
}));
test("an endless loop ends with the process", () => withHost("fixtures/odd.mjs", async (host) => {
  host.start("odd_spin").settled.catch(() => {});
  await assert.rejects(host.line((line) => "result" in line, 500));
}));
