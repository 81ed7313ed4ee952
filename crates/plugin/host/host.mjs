// Runs one JavaScript or TypeScript file of custom tools: `node host.mjs FILE`, `bun --no-install host.mjs FILE`.
//
// It speaks JSON lines on the two pipes it is started with and gives the file's own code neither of them: what that
// code prints goes to stderr. It takes no decision about permission; whoever started it does. `@opencode-ai/plugin`
// and `zod` are answered by the small schema language of schema.mjs when they are not installed. Start reading at `main`.

import fs from "node:fs";
import path from "node:path";
import module, { createRequire } from "node:module";
import { AsyncLocalStorage } from "node:async_hooks";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Invalid, Type, literally, nameOf, note, omissible, plain, put, schemaOf, tool, z } from "./schema.mjs";

const LINE = 8 * 1024 * 1024;
const { parse, stringify } = JSON;
// ---------------------------------------------------------------------------------------------------------------
// Arguments: what a definition asks for, and what a call brought.

const isType = (value) => value !== null && typeof value === "object" && ("_zod" in value || "_def" in value);
const asked = (definition) => definition.args ?? definition.parameters ?? definition.schema ?? {};
const isSchema = (args) => typeof args.type === "string" || typeof args.$schema === "string" || (plain(args.properties) && !isType(args.properties));

function argumentSchema(definition) {
  const args = asked(definition);
  if (isType(args)) return { additionalProperties: false, ...schemaOf(args) };
  if (isSchema(args)) return args;
  const schema = { type: "object", properties: {}, required: [], additionalProperties: false };
  for (const [key, type] of Object.entries(args)) {
    if (!isType(type) && !plain(type)) throw new Error(`the argument ${key} is ${nameOf(type)}, not a schema`);
    put(schema.properties, key, isType(type) ? schemaOf(type) : type);
    if (!omissible(type)) schema.required.push(key);
  }
  return schema;
}

async function understand(definition, values = {}) {
  const args = asked(definition);
  if (!plain(values)) throw new Error(`the arguments must be an object, not ${nameOf(values)}`);
  if (isType(args)) return checked(await args.safeParseAsync(values), []);
  const properties = isSchema(args) ? args.properties ?? {} : args;
  const made = isSchema(args) ? { ...values } : {};
  const missing = isSchema(args) && Array.isArray(args.required) ? args.required : [];
  for (const [key, type] of Object.entries(properties)) {
    const given = Object.hasOwn(values, key) ? values[key] : undefined;
    if (isType(type)) {
      const value = checked(await type.safeParseAsync(given), [key]);
      if (value !== undefined || Object.hasOwn(values, key)) put(made, key, value);
    } else if (given !== undefined) put(made, key, given);
    else if ("default" in type) put(made, key, structuredClone(type.default));
    else if (missing.includes(key) || properties === args) throw new Error(`${key}: is required`);
  }
  return made;
}

function checked(read, at) {
  if (read.success) return read.data;
  throw new Invalid(read.error.issues.map(({ path, message }) => ({ path: [...at, ...path], message })));
}

// ---------------------------------------------------------------------------------------------------------------
// Results: what a tool returned, as a line.

function encode(body) {
  let line;
  try {
    line = stringify(body, (_key, value) => {
      if (typeof value === "symbol") throw new TypeError("it holds a Symbol");
      return value;
    });
  } catch (error) {
    throw new Error(`its answer cannot be written as JSON: ${String(error.message).split("\n")[0]}`);
  }
  if (line.length > LINE || Buffer.byteLength(line) >= LINE) throw new Error(tooLong(line.length));
  return line;
}

const tooLong = (length) => `its answer has ${length} characters, and 8 MiB are the most; write it to a file and return the path`;

function resultOf(name, value, live) {
  const output = plain(value) ? value.output : value;
  const text = ["number", "boolean"].includes(typeof output) ? String(output) : output;
  if (typeof text !== "string") throw new Error(`${name} returned ${plain(value) ? `an object whose output is ${nameOf(output)}` : nameOf(value)}; return a string or {output: "..."}`);
  if (text.length > LINE) throw new Error(tooLong(text.length));
  const { title = live.title, metadata, attachments } = plain(value) ? value : {};
  if (metadata !== undefined && metadata !== null && !plain(metadata)) throw new Error(`${name} returned metadata that is ${nameOf(metadata)}, not an object`);
  const known = { ...live.metadata, ...metadata };
  return {
    text,
    ...(title !== undefined && title !== null && { title: String(title) }),
    ...(Object.keys(known).length && { metadata: known }),
    ...(attachments?.length && { attachments: Array.from(attachments, attachmentOf) }),
  };
}

function attachmentOf(given) {
  const { url = "", mime, filename, name = filename, base64 } = given ?? {};
  if (typeof base64 === "string") return { name: name ?? "attachment", mime: mime ?? "application/octet-stream", base64 };
  if (url.startsWith("data:")) {
    const comma = url.indexOf(",");
    const [kind, ...marks] = url.slice(5, comma).split(";");
    const body = url.slice(comma + 1);
    const held = marks.includes("base64") ? body : Buffer.from(decodeURIComponent(body)).toString("base64");
    return { name: name ?? "attachment", mime: mime ?? (kind || "text/plain"), base64: held };
  }
  if (!url.startsWith("file:")) throw new Error(`an attachment's url must start with data: or file:, not ${url.slice(0, 40)}`);
  const file = fileURLToPath(url);
  const stat = fs.statSync(file);
  if (!stat.isFile() || stat.size > (LINE / 4) * 3) throw new Error(`the attachment ${file} is no file, or larger than 6 MiB`);
  return { name: name ?? path.basename(file), mime: mime ?? "application/octet-stream", base64: fs.readFileSync(file, "base64") };
}

/** The message of whatever was thrown, without its stack. */
function messageOf(error) {
  try {
    const cause = error?.cause?.message ? ` (${error.cause.message})` : "";
    const text = typeof error === "string" ? error : error?.message ? `${error.message}${cause}` : error?.name ?? String(error);
    return String(text).slice(0, 65536) || "it failed without a word";
  } catch {
    return "it threw something that cannot be read";
  }
}

// ---------------------------------------------------------------------------------------------------------------
// The file: its tools, and the hooks of a plugin.

const shimmed = {};
globalThis[Symbol.for("windlass.shim")] = shimmed;

function shimUrl(name, exports) {
  shimmed[name] = exports;
  const lines = Object.keys(exports).map((key, at) => `const x${at} = own[${stringify(key)}]; export { x${at} as ${key} };`);
  return `data:text/javascript,${encodeURIComponent(`const own = globalThis[Symbol.for("windlass.shim")][${stringify(name)}]; ${lines.join("")}`)}`;
}

/** What to try for a specifier, in order: as written, then as bun would find it, then the shim. */
function candidates(specifier, shims) {
  const near = /^\.{1,2}\//.test(specifier) ? [".ts", ".js", ".mjs", "/index.ts", "/index.js"].map((end) => specifier + end) : [];
  const typed = near.length && specifier.endsWith(".js") ? [specifier.replace(/js$/, "ts")] : [];
  return [specifier, ...typed, ...near, ...(Object.hasOwn(shims, specifier) ? [shims[specifier]] : [])];
}

function lendShims(file) {
  const types = { Plugin: undefined, PluginInput: undefined, Hooks: undefined, ToolContext: undefined, ToolDefinition: undefined, ToolResult: undefined };
  const plugin = { tool, ...types };
  const zod = { ...z, z, default: z, ZodError: Invalid, ZodType: Type };
  const forms = { "@opencode-ai/plugin": plugin, "@opencode-ai/plugin/tool": plugin, zod, "zod/v4": zod, "zod/v3": zod };
  if (globalThis.Bun) {
    const missing = Object.keys(forms).filter((name) => !found(() => Bun.resolveSync(name, path.dirname(file))));
    return Bun.plugin({ name: "windlass", setup: (build) => missing.forEach((name) => build.module(name, () => ({ exports: forms[name], loader: "object" }))) });
  }
  const { _load: load } = module;
  module._load = function (name, ...rest) {
    const own = Object.hasOwn(forms, name) && !found(() => createRequire(rest[0]?.filename ?? file).resolve(name));
    return own ? forms[name] : load.call(this, name, ...rest);
  };
  const shims = Object.fromEntries(Object.entries(forms).map(([name, exports]) => [name, shimUrl(name, exports)]));
  if (module.registerHooks) return void module.registerHooks({ resolve: (specifier, context, next) => resolveHere(specifier, context, next, shims) });
  // The thread that these hooks live in costs 20 ms and more, so a file that imports nothing goes without.
  if (!/\b(import|from|require)\b/.test(fs.readFileSync(file, "utf8").slice(0, LINE))) return;
  module.register(`data:text/javascript,${encodeURIComponent(`${candidates} const shims = ${stringify(shims)};
    export async function resolve(specifier, context, next) {
      let first;
      for (const one of candidates(specifier, shims)) try { return await next(one, context); } catch (error) { first ??= error; }
      throw first;
    }`)}`);
}

function resolveHere(specifier, context, next, shims) {
  let first;
  for (const one of context.conditions?.includes("require") ? [specifier] : candidates(specifier, shims)) {
    try {
      return next(one, context);
    } catch (error) {
      first ??= error;
    }
  }
  throw first;
}

function found(look) {
  try {
    return Boolean(look());
  } catch {
    return false;
  }
}

/** A sentence about a file that could not be loaded, with its line where the runtime tells. */
function loadFailure(file, error) {
  const name = path.basename(file);
  if (error?.code === "ERR_UNKNOWN_FILE_EXTENSION") return `${name} needs node 22.6 or bun; this is node ${process.versions.node}`;
  const inner = error?.errors?.[0] ?? error;
  const message = messageOf(inner);
  const stack = String(inner?.stack ?? "");
  const missing = /Cannot find (?:package|module) '([^']+)'/.exec(message)?.[1];
  const mentioned = missing ? fs.readFileSync(file, "utf8").split("\n").findIndex((text) => text.includes(path.basename(missing))) + 1 : 0;
  const escaped = literally(name);
  const told = (text) => new RegExp(`${escaped}:(\\d+)`).exec(text)?.[1];
  const line = inner?.position?.line ?? told(stack) ?? told(message) ?? (inner instanceof SyntaxError ? told(checkedApart(file)) : mentioned);
  return `${name}${Number(line) ? `:${line}` : ""} could not be loaded: ${message.trim().split("\n")[0]}`;
}

/** Node keeps the line of a syntax error to itself, except when it prints one. */
function checkedApart(file) {
  const { spawnSync } = createRequire(import.meta.url)("node:child_process");
  return globalThis.Bun ? "" : String(spawnSync(process.execPath, [...process.execArgv, "--check", file], { stdio: ["ignore", "ignore", "pipe"], timeout: 2000, maxBuffer: 65536 }).stderr);
}

const absent = (name) => new Proxy(function () {}, {
  get: (_target, key) => (typeof key === "symbol" || key === "then" ? undefined : refuse(name)),
  apply: () => refuse(name),
});
function refuse(name) {
  throw new Error(`a plugin has no ${name} here; use node's own modules instead`);
}

const isTool = (value) => typeof value === "object" && value !== null && typeof value.execute === "function";

/** Loads the file: `{tools: name → definition, plugins: hooks of each}`. */
async function load(file, folder) {
  const own = await imported(file);
  const stem = path.basename(file, path.extname(file)).replace(/[^A-Za-z0-9_-]/g, "_");
  const tools = new Map();
  const add = (key, definition) => {
    const plainKey = key.replace(/[^A-Za-z0-9_-]/g, "_");
    const name = key === "default" || key === stem || plainKey.startsWith(`${stem}_`) ? (key === "default" ? stem : plainKey) : `${stem}_${plainKey}`;
    if (tools.has(name) && tools.get(name) !== definition) throw new Error(`${path.basename(file)} has two tools named ${name}; rename one`);
    tools.set(name, definition);
  };
  const exports = Object.entries(own.default && !isTool(own.default) && plain(own.default) ? { ...own.default, ...own } : own);
  for (const [key, value] of exports) if (isTool(value)) add(key, value);
  const makers = tools.size ? [] : [...new Set(exports.map(([, value]) => (typeof value === "function" ? value : value?.server)).filter((value) => typeof value === "function"))];
  const plugins = [];
  for (const make of makers) {
    const input = { directory: folder, worktree: folder, project: { id: path.basename(folder), worktree: folder }, client: absent("client"), $: absent("$"), serverUrl: absent("serverUrl") };
    const hooks = await make(input, {});
    if (!plain(hooks)) continue;
    plugins.push(hooks);
    for (const [key, value] of Object.entries(hooks.tool ?? {})) if (isTool(value)) add(key, value);
    const idle = Object.keys(hooks).filter((key) => key !== "tool" && !Object.values(POINTS).some(([method]) => method === key));
    if (idle.length) note(`${path.basename(file)}: nothing calls ${idle.join(", ")} here`);
  }
  if (!tools.size && !plugins.length) throw new Error(`${path.basename(file)} exports no tool; write: export default tool({ description, args, execute })`);
  return { tools, plugins };
}

const once = {};
const imported = (file) => (once.module ??= import(pathToFileURL(file).href).catch((error) => {
  note(error?.stack ?? String(error));
  throw new Error(loadFailure(file, error));
}));
const loaded = (file, folder) => (once.loaded ??= load(file, folder));

// ---------------------------------------------------------------------------------------------------------------
// Hooks: point → [method of a plugin, input and output as it expects them, what of the output is ours].

const changed = (before, after) => stringify(before) !== stringify(after);
const told = (type) => ["event", (m) => [{ event: { type: type ?? m.what?.type ?? "unknown", properties: { sessionID: m.session, ...m.what } } }, {}], () => ({})];
const POINTS = {
  before_tool: ["tool.execute.before", (m) => [{ tool: m.tool, sessionID: m.session, callID: m.call }, { args: m.arguments }],
    (out, m) => changed(out.args, m.arguments) && { arguments: out.args }],
  after_tool: ["tool.execute.after", (m) => [{ tool: m.tool, sessionID: m.session, callID: m.call, args: m.arguments }, { title: m.title ?? "", output: m.output, metadata: m.metadata ?? {} }],
    (out, m) => out.output !== m.output && { output: out.output }],
  permission: ["permission.ask", (m) => [{ type: m.tool, title: m.reason, sessionID: m.session, callID: m.call, metadata: { accesses: m.accesses } }, { status: "ask" }],
    (out, m) => out.status === "deny" && { verdict: "refuse", reason: `the plugin denies ${m.tool}` }],
  prompt: ["chat.message", (m) => [{ sessionID: m.session, agent: m.mode }, { message: { role: "user", sessionID: m.session }, parts: [{ type: "text", text: m.prompt }] }],
    (out, m) => ((text) => text !== m.prompt && { prompt: text })(out.parts.filter(({ type }) => type === "text").map(({ text }) => text).join("\n"))],
  params: ["chat.params", ({ params: p = {}, ...m }) => [{ sessionID: m.session, agent: m.mode }, { temperature: p.temperature, topP: p.top_p, maxOutputTokens: p.max_output, options: p.options ?? {} }],
    (out, { params: p = {} }) => ((next) => changed(next, { ...p, options: p.options ?? {} }) && { params: next })({ ...p, temperature: out.temperature, top_p: out.topP, max_output: out.maxOutputTokens, options: out.options })],
  system: ["experimental.chat.system.transform", (m) => [{ sessionID: m.session }, { system: [m.system] }],
    (out, m) => ((text) => text !== m.system && { system: text })(out.system.join("\n\n"))],
  compaction: ["experimental.session.compacting", (m) => [{ sessionID: m.session }, { context: [] }],
    (out) => out.context.length > 0 && { context: out.context.join("\n") }],
  tool_definition: ["tool.definition", (m) => [{ toolID: m.tool }, { description: m.definition?.description, parameters: m.definition?.parameters }],
    (out, m) => ({ ...(out.description !== m.definition?.description && { description: out.description }), ...(changed(out.parameters, m.definition?.parameters) && { parameters: out.parameters }) })],
  session_start: told("session.created"), session_end: told("session.deleted"), turn_end: told("session.idle"), event: told(),
};

async function fire(plugins, point, matter) {
  if (!Object.hasOwn(POINTS, point)) throw new Error(`no hook point is named ${point}`);
  const [method, given, ours] = POINTS[point];
  const [input, output] = given(structuredClone(matter));
  try {
    for (const hooks of plugins) await hooks[method]?.(input, output);
    return { verdict: "pass", ...(ours(output, matter) || {}) };
  } catch (error) {
    return { verdict: "refuse", reason: messageOf(error) };
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Lines.

const open = new Map();
const current = new AsyncLocalStorage();
const { exit: leave, reallyExit } = process;
let pipe = 1;

/** Ends this process; `process.exit` is taken from the file's code. */
function exit(code) {
  process.reallyExit = reallyExit;
  leave.call(process, code);
}

function send(line) {
  let rest = Buffer.from(`${line}\n`);
  while (rest.length) {
    try {
      rest = rest.subarray(fs.writeSync(pipe, rest));
    } catch (error) {
      if (error.code !== "EAGAIN") exit(1);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function settle(job, body) {
  if (open.get(job.id) !== job) return;
  let line;
  try {
    line = encode({ id: job.id, ...body });
  } catch (error) {
    line = encode({ id: job.id, error: messageOf(error) });
  }
  open.delete(job.id);
  send(line);
}

function fail(job, error) {
  if (error?.stack) note(error.stack);
  settle(job, { error: job.abort.signal.aborted ? `cancelled: ${messageOf(error)}` : messageOf(error) });
}

/** Something failed where nobody waits for it: the call it came from pays, or the only one there is. */
function blame(error) {
  const job = current.getStore() ?? (open.size === 1 ? [...open.values()][0] : undefined);
  if (job && open.get(job.id) === job) fail(job, error);
  else note(`nobody waits for this failure: ${error?.stack ?? messageOf(error)}`);
}

/** Puts a question to the person; one at a time a call, since answers carry the call's id alone. */
function putQuestion(job, question) {
  const turn = job.asking.then(() => new Promise((answer, reject) => {
    if (job.abort.signal.aborted) return reject(job.abort.signal.reason);
    job.abort.signal.addEventListener("abort", () => reject(job.abort.signal.reason), { once: true });
    job.answered = answer;
    send(encode({ id: job.id, ask: question }));
  }));
  job.asking = turn.catch(() => {});
  return turn;
}

function contextOf(name, job, { session, call, folder, message, agent, mode }, live) {
  return {
    sessionID: session, messageID: message ?? call, callID: call, agent: agent ?? mode, directory: folder, worktree: folder, abort: job.abort.signal,
    metadata({ title, metadata } = {}) {
      if (plain(metadata)) Object.assign(live.metadata, metadata);
      if (typeof title !== "string" || title === live.title || open.get(job.id) !== job) return;
      live.title = title;
      send(encode({ id: job.id, progress: title.slice(0, 2000) }));
    },
    async ask(wish = {}) {
      if (typeof wish.question === "string") return putQuestion(job, wish);
      const what = [wish.permission ?? "a permission", ...(wish.patterns?.length ? [wish.patterns.join(", ")] : [])].join(": ");
      const question = { header: wish.permission ?? name, question: `${name} asks for ${what}. Allow it?`.slice(0, 2000), options: [{ label: "Yes" }, { label: "No" }] };
      const answer = await putQuestion(job, question);
      if (answer?.[0] !== "Yes") throw new Error(`${what} was not allowed`);
    },
  };
}

const METHODS = {
  async describe({ folder }, _job, file) {
    const { tools, plugins } = await loaded(file, folder ?? process.cwd());
    const hooks = Object.entries(POINTS).filter(([, [method]]) => plugins.some((hooks) => typeof hooks[method] === "function")).map(([point]) => point);
    const described = [...tools].map(([name, definition]) => {
      const { description, access, timeout_ms, parallel } = definition;
      if (typeof description !== "string" || !description) throw new Error(`${path.basename(file)}: the tool ${name} has no description`);
      try {
        return { name, description, schema: argumentSchema(definition), access, timeout_ms, parallel };
      } catch (error) {
        throw new Error(`${path.basename(file)}: the tool ${name}: ${messageOf(error)}`);
      }
    });
    return { tools: described, ...(hooks.length && { hooks }) };
  },
  async call({ tool: name, arguments: given, context = {} }, job, file) {
    const folder = context.folder ?? process.cwd();
    const { tools } = await loaded(file, folder);
    const definition = tools.get(name);
    if (!definition) throw new Error(`${path.basename(file)} has no tool named ${name}`);
    const live = { metadata: {} };
    const args = await understand(definition, given);
    job.abort.signal.throwIfAborted();
    const value = await definition.execute(args, contextOf(name, job, { ...context, folder }, live));
    return { result: resultOf(name, value, live) };
  },
  async hook({ point, matter = {} }, _job, file) {
    const { plugins } = await loaded(file, matter.folder ?? process.cwd());
    return { result: await fire(plugins, point, matter) };
  },
};

function take(text, file) {
  let message;
  try {
    message = parse(text);
  } catch {
    return note(`a line that is not JSON was passed over: ${text.slice(0, 80)}`);
  }
  if (!plain(message)) return note(`a line that is no object was passed over: ${text.slice(0, 80)}`);
  const { id, method } = message;
  if (method === "cancel") return open.get(id)?.abort.abort(new Error("the call was cancelled"));
  if (method === undefined && "answer" in message) return open.get(id)?.answered?.(message.answer);
  if (id === undefined || open.has(id)) return note(`a line without an id of its own was passed over: ${text.slice(0, 80)}`);
  const job = { id, abort: new AbortController(), asking: Promise.resolve(), answered: undefined };
  open.set(id, job);
  if (!Object.hasOwn(METHODS, method)) return fail(job, `no method is named ${method}`);
  current.run(job, () => METHODS[method](message, job, file).then((body) => settle(job, body), (error) => fail(job, error)));
}

/** Takes the two pipes away from the file's code: descriptors 0 and 1 become nothing and stderr. */
function keepPipes() {
  const at = process.platform === "linux" ? "/proc/self/fd" : "/dev/fd";
  let input;
  try {
    // All three are opened before one is closed, so that a failure leaves them as they were.
    const [from, to, spare] = [fs.openSync(`${at}/0`, "r"), fs.openSync(`${at}/1`, "a"), fs.openSync(`${at}/2`, "a")];
    fs.closeSync(0);
    fs.openSync("/dev/null", "r");
    fs.closeSync(1);
    fs.openSync(`${at}/2`, "a");
    fs.closeSync(spare);
    [input, pipe] = [from, to];
  } catch {
    // Sockets cannot be opened again; then only what goes through node's own streams is kept apart.
    const { stdin } = process;
    Object.defineProperty(process, "stdin", { value: fs.createReadStream("/dev/null"), configurable: true });
    input = stdin;
  }
  Object.defineProperty(process, "stdout", { get: () => process.stderr, configurable: true });
  const printing = ["log", "info", "debug", ...(globalThis.Bun ? ["table", "dir", "group", "count", "timeEnd", "timeLog"] : [])];
  for (const name of printing) console[name] = console.error.bind(console);
  return input;
}

function forbidLeaving() {
  const leaving = (name) => (code) => {
    throw new Error(`${name}(${code ?? ""}) was called; a tool returns or throws instead`);
  };
  process.exit = leaving("process.exit");
  process.reallyExit = leaving("process.reallyExit");
  process.abort = leaving("process.abort");
  process.on("uncaughtException", blame);
  process.on("unhandledRejection", blame);
  module.syncBuiltinESMExports?.();
}

async function listen(input, file) {
  const { Socket } = typeof input === "number" && fs.fstatSync(input).isFIFO() && !globalThis.Bun ? await import("node:net") : {};
  const stream = typeof input !== "number" ? input : Socket ? new Socket({ fd: input, readable: true, writable: false }) : fs.createReadStream("", { fd: input });
  let held = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk) => {
    const lines = chunk.split("\n");
    lines[0] = held + lines[0];
    held = lines.pop();
    if (held.length > 2 * LINE) [held] = ["", note("a line longer than 16 MiB was dropped")];
    for (const line of lines) if (line.trim()) take(line, file);
  });
  const finish = () => {
    setTimeout(() => exit(0), 2000);
    setInterval(() => open.size || exit(0), 5);
  };
  stream.on("end", finish).on("error", finish);
}

function main(file) {
  const input = keepPipes();
  forbidLeaving();
  listen(input, file);
  lendShims(file);
  imported(file).catch(() => {});
}

if (process.argv[2]) main(path.resolve(process.argv[2]));
else note("usage: node host.mjs FILE"), exit(2);
