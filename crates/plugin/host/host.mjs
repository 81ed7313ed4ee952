// Runs one JavaScript or TypeScript file of custom tools: `node host.mjs FILE [COMPILED]`, `bun --no-install host.mjs FILE`.
// COMPILED is a folder with the JavaScript of TypeScript files, as JSON files named by the SHA-256 of the source.
//
// The host exchanges JSON lines over its stdin and stdout. The file's own code gets neither pipe: its output goes to
// stderr. The process that started the host decides about permissions. Modules that the file imports
// are found by loader.mjs. Start reading at `main`.

import fs from "node:fs";
import path from "node:path";
import module from "node:module";
import { AsyncLocalStorage } from "node:async_hooks";
import { fileURLToPath, pathToFileURL } from "node:url";
import { client, clientMethods } from "./client.mjs";
import { Conversation, requestMessages, revisedMessages } from "./conversation.mjs";
import { installShims, isBun, loadFailure, messageOf } from "./loader.mjs";
import { shell } from "./shell.mjs";
import { ValidationError, escapeRegExp, nameOf, note, isOmittable, plain, put, schemaOf } from "./schema.mjs";

const MAX_LINE = 8 * 1024 * 1024;
const { parse, stringify } = JSON;
// ---------------------------------------------------------------------------------------------------------------
// Arguments: the schema of a definition, and the values of a call.

const isType = (value) => value !== null && typeof value === "object" && ("_zod" in value || "_def" in value);
const declaredArgs = (definition) => definition.args ?? definition.parameters ?? definition.schema ?? {};
const isSchema = (args) => typeof args.type === "string" || typeof args.$schema === "string" || (plain(args.properties) && !isType(args.properties));

function argumentSchema(definition) {
  const args = declaredArgs(definition);
  if (isType(args)) return { additionalProperties: false, ...schemaOf(args) };
  if (isSchema(args)) return args;
  const schema = { type: "object", properties: {}, required: [], additionalProperties: false };
  for (const [key, type] of Object.entries(args)) {
    if (!isType(type) && !plain(type)) throw new Error(`the argument ${key} is ${nameOf(type)}, not a schema`);
    put(schema.properties, key, isType(type) ? schemaOf(type) : type);
    if (!isOmittable(type)) schema.required.push(key);
  }
  return schema;
}

async function parseArguments(definition, values = {}) {
  const args = declaredArgs(definition);
  if (!plain(values)) throw new Error(`the arguments must be an object, not ${nameOf(values)}`);
  if (isType(args)) return unwrapParsed(await args.safeParseAsync(values), []);
  const properties = isSchema(args) ? args.properties ?? {} : args;
  const parsed = isSchema(args) ? { ...values } : {};
  const missing = isSchema(args) && Array.isArray(args.required) ? args.required : [];
  for (const [key, type] of Object.entries(properties)) {
    const given = Object.hasOwn(values, key) ? values[key] : undefined;
    if (isType(type)) {
      const value = unwrapParsed(await type.safeParseAsync(given), [key]);
      if (value !== undefined || Object.hasOwn(values, key)) put(parsed, key, value);
    } else if (given !== undefined) put(parsed, key, given);
    else if ("default" in type) put(parsed, key, structuredClone(type.default));
    else if (missing.includes(key) || properties === args) throw new Error(`${key}: is required`);
  }
  return parsed;
}

function unwrapParsed(parsed, at) {
  if (parsed.success) return parsed.data;
  throw new ValidationError(parsed.error.issues.map(({ path, message }) => ({ path: [...at, ...path], message })));
}

// ---------------------------------------------------------------------------------------------------------------
// Results: the return value of a tool, as a line.

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
  if (line.length > MAX_LINE || Buffer.byteLength(line) >= MAX_LINE) throw new Error(tooLong(line.length));
  return line;
}

const tooLong = (length) => `its answer has ${length} characters; the limit is 8 MiB. Write it to a file and return the path`;

function resultOf(name, value, live) {
  const output = plain(value) ? value.output : value;
  const text = ["number", "boolean"].includes(typeof output) ? String(output) : output;
  if (typeof text !== "string") throw new Error(`${name} returned ${plain(value) ? `an object whose output is ${nameOf(output)}` : nameOf(value)}; return a string or {output: "..."}`);
  if (text.length > MAX_LINE) throw new Error(tooLong(text.length));
  const { title = live.title, metadata, attachments } = plain(value) ? value : {};
  if (metadata !== undefined && metadata !== null && !plain(metadata)) throw new Error(`${name} returned metadata that is ${nameOf(metadata)}, not an object`);
  const merged = { ...live.metadata, ...metadata };
  return {
    text,
    ...(title !== undefined && title !== null && { title: String(title) }),
    ...(Object.keys(merged).length && { metadata: merged }),
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
    const encoded = marks.includes("base64") ? body : Buffer.from(decodeURIComponent(body)).toString("base64");
    return { name: name ?? "attachment", mime: mime ?? (kind || "text/plain"), base64: encoded };
  }
  if (!url.startsWith("file:")) throw new Error(`an attachment's url must start with data: or file:, not ${url.slice(0, 40)}`);
  const file = fileURLToPath(url);
  const stat = fs.statSync(file);
  if (!stat.isFile() || stat.size > (MAX_LINE / 4) * 3) throw new Error(`the attachment ${file} is not a file, or is larger than 6 MiB`);
  return { name: name ?? path.basename(file), mime: mime ?? "application/octet-stream", base64: fs.readFileSync(file, "base64") };
}

// ---------------------------------------------------------------------------------------------------------------
// The file: its tools, and the hooks of a plugin.

const isTool = (value) => typeof value === "object" && value !== null && typeof value.execute === "function";
/** A tool whose definition is computed when it is loaded: `Tool.define("id", async () => ({...}))`. */
const isDefined = (value) => plain(value) && typeof value.id === "string" && (typeof value.init === "function" || plain(value.init));

/** Returns the exports of a module: those of the package that it stands for, and those of a CommonJS module that was an ES module. */
function exportsOf(module) {
  const own = module.default?.[Symbol.toStringTag] === "Module" ? module.default : module;
  return own.default?.__esModule ? { ...own.default } : own;
}

/** Returns the functions that make plugins, the main one first: all functions, as in OpenCode, unless the default export has a `server`. */
function factoriesOf(own, exports) {
  const isFactory = (value) => typeof value === "function" && !/^class\b/.test(Function.prototype.toString.call(value));
  if (isFactory(own.default?.server)) return [own.default.server];
  return [...new Set([own.default, ...exports.map(([, value]) => (isFactory(value) ? value : value?.server))].filter(isFactory))];
}

/** Loads the file: `{tools: name → definition, plugins: hooks of each}`. */
async function load(file, folder) {
  const own = exportsOf(await imported(file));
  if (typeof own.default?.tui === "function" && typeof own.default.server !== "function") {
    return { tools: new Map(), keptNames: new Set(), plugins: [], unsupported: [], notes: ["it is a plugin for OpenCode's terminal interface, and does nothing here"] };
  }
  const stem = path.basename(file, path.extname(file)).replace(/[^A-Za-z0-9_-]/g, "_");
  const tools = new Map();
  const keptNames = new Set();
  /** Adds a tool under the id that its author gave it. */
  const keep = (id, definition) => {
    const name = id.replace(/[^A-Za-z0-9_-]/g, "_");
    if (tools.has(name) && tools.get(name) !== definition) throw new Error(`${path.basename(file)} has two tools named ${name}; rename one`);
    tools.set(name, definition);
    keptNames.add(name);
  };
  const add = (key, definition) => {
    const plainKey = key.replace(/[^A-Za-z0-9_-]/g, "_");
    const name = key === "default" || key === stem || plainKey.startsWith(`${stem}_`) ? (key === "default" ? stem : plainKey) : `${stem}_${plainKey}`;
    if (tools.has(name) && tools.get(name) !== definition) throw new Error(`${path.basename(file)} has two tools named ${name}; rename one`);
    tools.set(name, definition);
  };
  const exports = Object.entries(own.default && !isTool(own.default) && plain(own.default) ? { ...own.default, ...own } : own);
  for (const [key, value] of exports) {
    if (isTool(value)) add(key, value);
    else if (isDefined(value)) keep(value.id, await (typeof value.init === "function" ? value.init() : value.init));
  }
  if (plain(own.tool) && !isTool(own.tool)) for (const [id, value] of Object.entries(own.tool)) if (isTool(value)) keep(id, value);
  const plugins = [];
  const unsupported = new Set();
  const notes = [];
  // Functions beside exported tools are helpers; a file with ids is a plugin.
  for (const make of exports.some(([, value]) => isTool(value)) ? [] : factoriesOf(own, exports)) {
    const input = { directory: folder, worktree: folder, project: { id: path.basename(folder), worktree: folder }, client: client(clientMethods(folder, openJob)), $: shell(folder), serverUrl: new URL("http://127.0.0.1:0/") };
    let hooks;
    try {
      hooks = await make(input, {});
    } catch (error) {
      // Beside a main function, another one may be a helper; the user is told of it.
      if (make === own.default || typeof own.default !== "function") throw error;
      notes.push(`the export ${make.name || "without a name"} is not used: ${messageOf(error).slice(0, 200)}`);
    }
    if (!plain(hooks)) continue;
    plugins.push(hooks);
    for (const [id, value] of Object.entries(hooks.tool ?? {})) if (isTool(value)) keep(id, value);
    for (const key of Object.keys(hooks)) if (!["tool", "config"].includes(key) && !Object.keys(POINTS).some((point) => methodsOf(point).includes(key))) unsupported.add(key.slice(0, 80));
  }
  if (!tools.size && !plugins.length) throw new Error(`${path.basename(file)} exports no tool; write: export default tool({ description, args, execute })`);
  return { tools, keptNames, plugins, unsupported: [...unsupported].slice(0, 20), notes: notes.slice(0, 20) };
}

const MAX_CONFIG = 700_000;
/** Time for all config hooks of a file together: the description, which waits for them, has 10 s. */
const CONFIG_TIMEOUT = 5000;
/** The config that a plugin may change, in OpenCode's form. The user's own is not shown. */
const emptyConfig = () => ({ agent: {}, command: {}, mcp: {}, permission: {}, provider: {}, tools: {}, instructions: [], plugin: [], experimental: {} });

/** Runs the `config` hooks, and returns the agents and commands they add, and the other keys they change. */
async function configOf(plugins, notes) {
  const hooks = plugins.filter(({ config }) => typeof config === "function");
  if (!hooks.length) return;
  const config = emptyConfig();
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no answer within ${CONFIG_TIMEOUT / 1000} s`)), CONFIG_TIMEOUT); });
  // It may reject while no hook is awaited.
  late.catch(() => {});
  for (const plugin of hooks) try {
    await Promise.race([plugin.config(config), late]);
  } catch (error) {
    notes.push(`its config hook failed: ${messageOf(error).slice(0, 200)}`);
  }
  clearTimeout(timer);
  const empty = emptyConfig();
  const ignored = Object.keys(config).filter((key) => !["agent", "command"].includes(key) && changed(empty[key], config[key])).map((key) => key.slice(0, 80)).slice(0, 20);
  try {
    const text = encode({ agent: config.agent ?? {}, command: config.command ?? {}, ...(ignored.length && { ignored }) });
    if (text.length > MAX_CONFIG) throw new Error(`${text.length} characters, and the limit is ${MAX_CONFIG}`);
    return parse(text);
  } catch (error) {
    notes.push(`what its config hook adds is not used: ${messageOf(error)}`);
  }
}

const cache = {};
const imported = (file) => (cache.module ??= cache.refusal ? Promise.reject(cache.refusal) : import(pathToFileURL(file).href).catch((error) => {
  note(error?.stack ?? String(error));
  throw new Error(loadFailure(file, error));
}));
const loaded = (file, folder) => (cache.loaded ??= load(file, folder));

// ---------------------------------------------------------------------------------------------------------------
// Hooks: point → [method of a plugin, its input and output, the part of the output to return].

const changed = (before, after) => stringify(before) !== stringify(after);
const textOf = (parts) => parts.filter(({ type }) => type === "text").map(({ text }) => text).join("\n");
/** OpenCode's name for the agent of a session that has chosen none. */
const DEFAULT_AGENT = "build";
const POINTS = {
  before_tool: ["tool.execute.before", (m) => [{ tool: m.tool, sessionID: m.session, callID: m.call }, { args: m.arguments }],
    (out, m) => changed(out.args, m.arguments) && { arguments: out.args }],
  after_tool: ["tool.execute.after", (m) => [{ tool: m.tool, sessionID: m.session, callID: m.call, args: m.arguments }, { title: m.title ?? "", output: m.output, metadata: m.metadata ?? {} }],
    (out, m) => ({ ...(out.output !== m.output && { output: String(out.output) }), ...(out.title !== (m.title ?? "") && { title: String(out.title) }), ...(changed(out.metadata, m.metadata ?? {}) && { metadata: out.metadata }) })],
  permission: ["permission.ask", (m) => [{ type: m.tool, title: m.reason, sessionID: m.session, callID: m.call, metadata: { accesses: m.accesses } }, { status: "ask" }],
    (out, m) => out.status === "deny" && { verdict: "refuse", reason: `the plugin denies ${m.tool}` }],
  prompt: ["chat.message", (m) => [{ sessionID: m.session, agent: m.agent ?? DEFAULT_AGENT }, { message: { role: "user", sessionID: m.session }, parts: [{ type: "text", text: m.prompt }] }],
    (out, m) => ((text) => text !== m.prompt && { prompt: text })(textOf(out.parts))],
  command: ["command.execute.before", (m) => [{ command: m.command, sessionID: m.session, arguments: m.arguments }, { parts: [{ type: "text", text: m.prompt }] }],
    (out, m) => ((text) => text !== m.prompt && { prompt: text })(textOf(out.parts))],
  params: ["chat.params", ({ params: p = {}, ...m }) => [{ sessionID: m.session, agent: m.agent ?? DEFAULT_AGENT }, { temperature: p.temperature, topP: p.top_p, topK: p.top_k, maxOutputTokens: p.max_output, options: {} }],
    (out, { params: p = {} }) => {
      // They would go to the provider with the user's API key.
      if (Object.keys(out.options ?? {}).length) note(`chat.params: the options ${Object.keys(out.options).join(", ")} are not used`);
      const next = { ...p, temperature: out.temperature, top_p: out.topP, top_k: out.topK, max_output: out.maxOutputTokens };
      return changed(next, p) && { params: next };
    }],
  messages: ["experimental.chat.messages.transform", (m) => [{ sessionID: m.session }, { messages: requestMessages(m) }],
    (out, m) => ((next) => changed(next, m.messages) && { messages: next })(revisedMessages(out.messages, m.messages))],
  system: ["experimental.chat.system.transform", (m) => [{ sessionID: m.session }, { system: [m.system] }],
    (out, m) => ((text) => text !== m.system && { system: text })(out.system.join("\n\n"))],
  compaction: ["experimental.session.compacting", (m) => [{ sessionID: m.session }, { context: [] }],
    (out) => out.context.length > 0 && { context: out.context.join("\n") }],
  tool_definition: ["tool.definition", (m) => [{ toolID: m.tool }, { description: m.description, parameters: m.parameters }],
    (out, m) => ({ ...(out.description !== m.description && { description: out.description }), ...(changed(out.parameters, m.parameters) && { parameters: out.parameters }) })],
  event: ["event"], session_end: ["event", "dispose"],
};
const methodsOf = (point) => POINTS[point].filter((one) => typeof one === "string");

/** Time after which event hooks go on in the background. As long as one does, no other is waited for: in OpenCode, nothing waits for them. */
const EVENT_TIMEOUT = 2000;
let slowEvents = 0;
const MAX_CONVERSATIONS = 100;
const conversations = new Map();

/** Tells the plugins the events that a recorded fact means. They cannot deny it. */
async function runEventHooks(plugins, point, { session, folder, what }) {
  if (!conversations.has(session)) {
    if (conversations.size >= MAX_CONVERSATIONS) conversations.delete(conversations.keys().next().value);
    conversations.set(session, new Conversation(session, folder ?? process.cwd()));
  }
  const conversation = conversations.get(session);
  const isEnd = point === "session_end";
  const events = isEnd ? [conversation.event("session.deleted", { sessionID: session, info: conversation.info })] : conversation.add(what);
  if (isEnd) conversations.delete(session);
  const run = async (method, ...given) => {
    for (const hooks of plugins) try {
      await hooks[method]?.(...given);
    } catch (error) {
      note(error?.stack ?? messageOf(error));
    }
  };
  const all = (async () => {
    for (const event of events) await run("event", { event: structuredClone(event) });
    if (isEnd) await run("dispose");
  })();
  if (slowEvents && !isEnd) return;
  let timer;
  const late = new Promise((settle) => (timer = setTimeout(settle, EVENT_TIMEOUT, true)));
  if (await Promise.race([all, late])) {
    slowEvents += 1;
    all.then(() => (slowEvents -= 1));
  }
  clearTimeout(timer);
}

async function runHooks(plugins, point, matter) {
  if (!Object.hasOwn(POINTS, point)) throw new Error(`no hook point is named ${point}`);
  if (methodsOf(point).includes("event")) return await runEventHooks(plugins, point, matter), { verdict: "pass" };
  const [method, toArguments, toResult] = POINTS[point];
  // It had one when it was described, and may exist to deny.
  if (!plugins.some((hooks) => typeof hooks[method] === "function")) throw new Error(`the plugin no longer has the hook ${method}`);
  const [input, output] = toArguments(structuredClone(matter));
  try {
    for (const hooks of plugins) await hooks[method]?.(input, output);
    const result = toResult(output, matter) || {};
    // Such a field would count as not given, and then what the plugin removed would stay.
    const removed = Object.keys(result).find((key) => [undefined, "null"].includes(stringify(result[key])));
    return removed ? { verdict: "refuse", reason: `the plugin removed ${removed}` } : { verdict: "pass", ...result };
  } catch (error) {
    return { verdict: "refuse", reason: messageOf(error) };
  }
}

// ---------------------------------------------------------------------------------------------------------------
// Lines.

const open = new Map();
const current = new AsyncLocalStorage();
const { exit: originalExit, reallyExit } = process;
let pipe = 1;

/** Ends this process; the file's code cannot call `process.exit`. */
function exit(code) {
  process.reallyExit = reallyExit;
  originalExit.call(process, code);
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
  settle(job, { error: job.abort.signal.aborted ? `canceled: ${messageOf(error)}` : messageOf(error) });
}

/** Handles a failure that no caller awaits: it fails the call it came from, or the only open call. */
function handleUnawaited(error) {
  const job = current.getStore() ?? (open.size === 1 ? [...open.values()][0] : undefined);
  if (job && open.get(job.id) === job) fail(job, error);
  else note(`unhandled failure: ${error?.stack ?? messageOf(error)}`);
}

/** Asks the user a question. A call asks one at a time, because answers have only the id of the call. */
function askQuestion(job, question) {
  const turn = job.asking.then(() => new Promise((answer, reject) => {
    if (job.abort.signal.aborted) return reject(job.abort.signal.reason);
    job.abort.signal.addEventListener("abort", () => reject(job.abort.signal.reason), { once: true });
    job.answered = answer;
    send(encode({ id: job.id, ask: question }));
  }));
  job.asking = turn.catch(() => {});
  return turn;
}

/** Returns the session of the open call or hook, in OpenCode's form. It is requested once for each of them, and only if it is used. */
function readSession(job) {
  return (job.conversation ??= new Promise((answer, reject) => {
    if (!job.session || open.get(job.id) !== job) return reject(new Error("a session can be read only while a tool or a hook runs"));
    job.abort.signal.addEventListener("abort", () => reject(job.abort.signal.reason), { once: true });
    job.read = answer;
    send(encode({ id: job.id, read: "session" }));
  }).then(({ facts, error }) => {
    if (!Array.isArray(facts)) throw new Error(typeof error === "string" ? error : "the session cannot be read");
    const conversation = new Conversation(job.session, job.folder, { keeps: true });
    for (const fact of facts) conversation.add(fact);
    return conversation;
  }));
}

/** What `client` needs of the open call or hook. */
function openJob() {
  const job = current.getStore();
  if (!job?.session) return;
  return {
    session: job.session, conversation: () => readSession(job),
    addContext(text) {
      if (!job.takesContext || open.get(job.id) !== job) throw new Error("text can be added to a session only in a tool, or in the hooks chat.message, event and experimental.session.compacting");
      job.context.push(text);
    },
  };
}

/** The permissions that the user gave for a session. The rules still decide first. */
const approved = new Set();
const matchesWildcard = (pattern, text) => new RegExp(`^${pattern.split("*").map(escapeRegExp).join("[^]*")}$`).test(text);
const metadataLine = ([key, value]) => (["string", "number", "boolean"].includes(typeof value) ? `${key}: ${value}` : "");

function contextOf(name, job, { session, call, folder, message, agent, mode, model = "", messages }, live) {
  const [providerID, ...rest] = model.split("/");
  let read;
  return {
    get messages() { return (read ??= messages()); }, extra: { model: { providerID, modelID: rest.join("/") } },
    sessionID: session, messageID: message ?? call, callID: call, agent: agent ?? mode, directory: folder, worktree: folder, abort: job.abort.signal,
    metadata({ title, metadata } = {}) {
      if (plain(metadata)) Object.assign(live.metadata, metadata);
      if (typeof title === "string") live.title = title;
      const text = [live.title, ...Object.entries(live.metadata).map(metadataLine)].filter(Boolean).join(", ").slice(0, 2000);
      if (!text || text === live.shown || open.get(job.id) !== job) return;
      live.shown = text;
      send(encode({ id: job.id, progress: text }));
    },
    async ask(request = {}) {
      if (typeof request.question === "string") return (await askQuestion(job, request)).answer;
      const key = String(request.permission ?? name);
      const patterns = (Array.isArray(request.patterns) ? request.patterns : []).map(String);
      const permission = [key, ...(patterns.length ? [patterns.join(", ")] : [])].join(": ");
      const always = (Array.isArray(request.always) ? request.always : []).map(String);
      const approval = (pattern) => `${session}\0${key}\0${pattern}`;
      const isApproved = (pattern) => [...approved].some((one) => matchesWildcard(one, approval(pattern)));
      const remembered = patterns.length > 0 && patterns.every(isApproved);
      const options = [{ label: "Yes" }, ...(always.length ? [{ label: "Always", description: "for this session" }] : []), { label: "No" }];
      const question = { header: key, question: `${name} asks for ${permission}. Allow it?`.slice(0, 2000), options, permission: { key, patterns, ...(remembered && { remembered }) } };
      const { answer: answers, reason } = await askQuestion(job, question);
      const [answer] = answers ?? [];
      if (answer === "Always") for (const pattern of [...always, ...patterns]) approved.add(approval(pattern));
      else if (answer !== "Yes") throw new Error(`The tool asked for permission \`${key}\`${patterns.length ? ` (${patterns.join(", ").slice(0, 400)})` : ""}; ${typeof reason === "string" ? reason : "it was denied"}.`);
    },
  };
}

const MAX_SCANNED_FILES = 100;
/** Returns true if a file, or one that it imports by its path, names `messages`. */
function namesMessages(file, seen = new Set()) {
  if (seen.has(file) || seen.size >= MAX_SCANNED_FILES) return false;
  let text;
  try {
    const stat = fs.statSync(file);
    if (!stat.isFile() || stat.size > MAX_LINE) return false;
    text = fs.readFileSync(file, "utf8");
  } catch {
    return false;
  }
  seen.add(file);
  if (/\bmessages\b/.test(text)) return true;
  const imported = [...text.matchAll(/\b(?:from|import|require)\s*\(?\s*["'](\.{0,2}\/[^"'\n]+)["']/g)].map(([, name]) => path.resolve(path.dirname(file), name));
  return imported.some((name) => ["", ".ts", ".js", ".mjs", "/index.ts", "/index.js"].some((end) => namesMessages(name + end, seen)) || namesMessages(name.replace(/\.js$/, ".ts"), seen));
}
/** Points at which a hook can add context for the model. */
const CONTEXT_POINTS = ["prompt", "compaction", "event"];

const METHODS = {
  async describe({ folder }, _job, file) {
    const { tools, keptNames, plugins, unsupported, notes: loadNotes } = await loaded(file, folder ?? process.cwd());
    const notes = [...loadNotes];
    const config = await configOf(plugins, notes);
    const hooks = Object.keys(POINTS).filter((point) => methodsOf(point).some((method) => plugins.some((hooks) => typeof hooks[method] === "function")));
    const described = [...tools].map(([name, definition]) => {
      const { description, access, timeout_ms, parallel } = definition;
      if (typeof description !== "string" || !description) throw new Error(`${path.basename(file)}: the tool ${name} has no description`);
      try {
        return { name, description, schema: argumentSchema(definition), access, timeout_ms, parallel, ...(keptNames.has(name) && { keeps_name: true }) };
      } catch (error) {
        throw new Error(`${path.basename(file)}: the tool ${name}: ${messageOf(error)}`);
      }
    });
    return { tools: described, ...(hooks.length && { hooks }), ...(config && { config }), ...(unsupported.length && { unsupported_hooks: unsupported }), ...(notes.length && { notes }) };
  },
  async call({ tool: name, arguments: given, context = {} }, job, file) {
    const folder = context.folder ?? process.cwd();
    Object.assign(job, { session: context.session, folder, takesContext: true });
    const { tools } = await loaded(file, folder);
    const definition = tools.get(name);
    if (!definition) throw new Error(`${path.basename(file)} has no tool named ${name}`);
    const live = { metadata: {} };
    const args = await parseArguments(definition, given);
    job.abort.signal.throwIfAborted();
    // `messages` is not a promise in OpenCode, so it is read first if the tool may use it.
    const messages = (cache.namesMessages ??= namesMessages(file)) ? await readSession(job).then(({ messages }) => () => structuredClone(messages), (error) => () => { throw error; }) : () => [];
    const value = await definition.execute(args, contextOf(name, job, { ...context, folder, messages }, live));
    const result = resultOf(name, value, live);
    return { result: { ...result, text: [result.text, ...job.context].join("\n\n") } };
  },
  async hook({ point, matter = {} }, job, file) {
    const folder = matter.folder ?? process.cwd();
    Object.assign(job, { session: matter.session, folder, takesContext: CONTEXT_POINTS.includes(point) });
    const { plugins } = await loaded(file, folder);
    const result = await runHooks(plugins, point, matter);
    const context = [result.context, ...job.context].filter(Boolean).join("\n");
    return { result: { ...result, ...(context && { context }) } };
  },
};

function handleLine(text, file) {
  let message;
  try {
    message = parse(text);
  } catch {
    return note(`ignored a line that is not JSON: ${text.slice(0, 80)}`);
  }
  if (!plain(message)) return note(`ignored a line that is not an object: ${text.slice(0, 80)}`);
  const { id, method } = message;
  if (method === "cancel") return open.get(id)?.abort.abort(new Error("the call was canceled"));
  if (method === undefined && ("facts" in message || "error" in message)) return open.get(id)?.read?.(message);
  if (method === undefined && "answer" in message) return open.get(id)?.answered?.(message);
  if (id === undefined || open.has(id)) return note(`ignored a line without a new id: ${text.slice(0, 80)}`);
  const job = { id, abort: new AbortController(), asking: Promise.resolve(), answered: undefined, context: [] };
  open.set(id, job);
  if (!Object.hasOwn(METHODS, method)) return fail(job, `no method is named ${method}`);
  current.run(job, () => METHODS[method](message, job, file).then((body) => settle(job, body), (error) => fail(job, error)));
}

/** Hides the two pipes from the file's code: descriptor 0 becomes /dev/null and descriptor 1 becomes stderr. */
function takePipes() {
  const at = process.platform === "linux" ? "/proc/self/fd" : "/dev/fd";
  let input;
  try {
    // Open all three before closing one, so that a failure leaves them unchanged.
    const [stdin, stdout, stderr] = [fs.openSync(`${at}/0`, "r"), fs.openSync(`${at}/1`, "a"), fs.openSync(`${at}/2`, "a")];
    fs.closeSync(0);
    fs.openSync("/dev/null", "r");
    fs.closeSync(1);
    fs.openSync(`${at}/2`, "a");
    fs.closeSync(stderr);
    [input, pipe] = [stdin, stdout];
  } catch {
    // Sockets cannot be opened again; then only output through node's own streams is redirected.
    const { stdin } = process;
    Object.defineProperty(process, "stdin", { value: fs.createReadStream("/dev/null"), configurable: true });
    input = stdin;
  }
  Object.defineProperty(process, "stdout", { get: () => process.stderr, configurable: true });
  const printMethods = ["log", "info", "debug", ...(isBun ? ["table", "dir", "group", "count", "timeEnd", "timeLog"] : [])];
  for (const name of printMethods) console[name] = console.error.bind(console);
  return input;
}

function blockExit() {
  const throwing = (name) => (code) => {
    throw new Error(`${name}(${code ?? ""}) was called; a tool returns or throws instead`);
  };
  process.exit = throwing("process.exit");
  process.reallyExit = throwing("process.reallyExit");
  process.abort = throwing("process.abort");
  process.on("uncaughtException", handleUnawaited);
  process.on("unhandledRejection", handleUnawaited);
  module.syncBuiltinESMExports?.();
}

async function listen(input, file) {
  const { Socket } = typeof input === "number" && fs.fstatSync(input).isFIFO() && !isBun ? await import("node:net") : {};
  const stream = typeof input !== "number" ? input : Socket ? new Socket({ fd: input, readable: true, writable: false }) : fs.createReadStream("", { fd: input });
  let partial = "";
  stream.setEncoding("utf8");
  stream.on("data", (chunk) => {
    const lines = chunk.split("\n");
    lines[0] = partial + lines[0];
    partial = lines.pop();
    if (partial.length > 2 * MAX_LINE) [partial] = ["", note("a line longer than 16 MiB was dropped")];
    for (const line of lines) if (line.trim()) handleLine(line, file);
  });
  const finish = () => {
    setTimeout(() => exit(0), 2000);
    setInterval(() => open.size || exit(0), 5);
  };
  stream.on("end", finish).on("error", finish);
}

function main(file, compiled) {
  const input = takePipes();
  blockExit();
  listen(input, file);
  try {
    installShims(file, compiled);
  } catch (error) {
    cache.refusal = error;
  }
  imported(file).catch(() => {});
}

if (process.argv[2]) main(path.resolve(process.argv[2]), process.argv[3]);
else note("usage: node host.mjs FILE"), exit(2);
