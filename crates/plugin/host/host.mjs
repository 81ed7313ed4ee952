// Runs one JavaScript or TypeScript file of custom tools: `node host.mjs FILE [COMPILED]`, `bun --no-install host.mjs FILE`.
// COMPILED is a folder with the JavaScript of TypeScript files, as JSON files named by the SHA-256 of the source.
//
// The host exchanges JSON lines over its stdin and stdout. The file's own code gets neither pipe: its output goes to
// stderr. The process that started the host decides about permissions. If `@opencode-ai/plugin` and `zod` are not
// installed, the schema library in schema.mjs replaces them. Start reading at `main`.

import fs from "node:fs";
import path from "node:path";
import module, { createRequire } from "node:module";
import { AsyncLocalStorage } from "node:async_hooks";
import { createHash } from "node:crypto";
import { fileURLToPath, pathToFileURL } from "node:url";
import { shell } from "./shell.mjs";
import { ValidationError, Type, escapeRegExp, nameOf, note, isOmittable, plain, put, schemaOf, tool, z } from "./schema.mjs";

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

/** Returns the message of a thrown value, without its stack. */
function messageOf(error) {
  try {
    const cause = error?.cause?.message ? ` (${error.cause.message})` : "";
    const text = typeof error === "string" ? error : error?.message ? `${error.message}${cause}` : error?.name ?? String(error);
    return String(text).slice(0, 65536) || "it failed without a message";
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

/** Returns the specifiers to try, in order: as written, then with the extensions that bun adds, then the shim. A project's files get the shim first, because a model may write in node_modules. */
function candidates(specifier, shims, isProject) {
  if (isProject && !specifier.startsWith(".") && Object.hasOwn(shims, specifier)) return [shims[specifier]];
  const withExtension = /^\.{1,2}\//.test(specifier) ? [".ts", ".js", ".mjs", "/index.ts", "/index.js"].map((end) => specifier + end) : [];
  const typed = withExtension.length && specifier.endsWith(".js") ? [specifier.replace(/js$/, "ts")] : [];
  return [specifier, ...typed, ...withExtension, ...(Object.hasOwn(shims, specifier) ? [shims[specifier]] : [])];
}

function installShims(file, compiled) {
  const types = { Plugin: undefined, PluginInput: undefined, Hooks: undefined, ToolContext: undefined, ToolDefinition: undefined, ToolResult: undefined };
  const isProject = /\/\.(windlass|opencode)\//.test(file);
  const plugin = { tool, ...types };
  const zod = { ...z, z, default: z, ZodError: ValidationError, ZodType: Type };
  const defined = { Tool, ...types };
  const forms = { "@opencode-ai/plugin": plugin, "@opencode-ai/plugin/tool": plugin, zod, "zod/v4": zod, "zod/v3": zod, "../tool": defined, "./tool": defined, "../tool/tool": defined };
  if (globalThis.Bun) {
    if (file.includes("/.opencode/")) throw new Error(`${path.basename(file)} needs Node, because Bun cannot keep it to what you trusted`);
    const missing = Object.keys(forms).filter((name) => !succeeds(() => Bun.resolveSync(name, path.dirname(file))));
    return Bun.plugin({ name: "windlass", setup: (build) => missing.forEach((name) => build.module(name, () => ({ exports: forms[name], loader: "object" }))) });
  }
  const { _load: load } = module;
  module._load = function (name, ...rest) {
    const resolve = () => createRequire(rest[0]?.filename ?? file).resolve(name);
    const own = Object.hasOwn(forms, name) && ((isProject && !name.startsWith(".")) || !succeeds(() => resolve()));
    const parent = rest[0]?.filename ?? file;
    if (!own && !module.isBuiltin(name) && succeeds(() => isUntrusted(fs.realpathSync(resolve()), parent))) throw new Error(untrusted(name));
    return own ? forms[name] : load.call(this, name, ...rest);
  };
  const shims = Object.fromEntries(Object.entries(forms).map(([name, exports]) => [name, shimUrl(name, exports)]));
  if (compiled) process.setSourceMapsEnabled?.(true);
  // Before Node 24, these hooks break CommonJS packages: "request for './index.js' is not in cache".
  if (module.registerHooks && Number(process.versions.node.split(".")[0]) >= 24) {
    const load = (url, context, next) => compiledModule(url, compiled, fs, createHash) ?? next(url, context);
    return void module.registerHooks({ resolve: (specifier, context, next) => resolveHere(specifier, context, next, shims, isProject), load });
  }
  // The thread of these hooks costs at least 20 ms, so a plain file without imports does not get one.
  if (!compiled && !/\b(import|from|require)\b/.test(fs.readFileSync(file, "utf8").slice(0, MAX_LINE))) return;
  module.register(`data:text/javascript,${encodeURIComponent(`import fs from "node:fs"; import { createHash } from "node:crypto";
    ${candidates} ${compiledModule} ${isUntrusted} ${untrusted} const isProject = ${isProject}, shims = ${stringify(shims)}, compiled = ${stringify(compiled ?? null)};
    export async function resolve(specifier, context, next) {
      let first;
      for (const one of candidates(specifier, shims, isProject)) try {
        const found = await next(one, context);
        if (!isUntrusted(found.url, context.parentURL)) return found;
        first ??= new Error(untrusted(specifier));
      } catch (error) { first ??= error; }
      throw first;
    }
    export async function load(url, context, next) { return compiledModule(url, compiled, fs, createHash) ?? next(url, context); }`)}`);
}

/** Returns the JavaScript of a TypeScript file; undefined for other files, and for those that were not compiled. */
function compiledModule(url, compiled, fs, createHash) {
  if (!compiled || !/^file:.*\.m?ts$/.test(url)) return;
  try {
    const digest = createHash("sha256").update(fs.readFileSync(new URL(url))).digest("hex");
    const { code } = JSON.parse(fs.readFileSync(`${compiled}/${digest}.json`, "utf8"));
    // Bun's names; on the first line, so that the source map stays right.
    const names = "import.meta.dir = import.meta.dirname; import.meta.path = import.meta.filename; ";
    return { format: "module", shortCircuit: true, source: names + code.replace(/^#!.*/, "") };
  } catch {}
}

/** Trust in a project covers what is in `.opencode`, without the packages that a package manager put there. */
function isUntrusted(found, parent = "") {
  const at = parent.lastIndexOf("/.opencode/");
  if (at < 0 || !/^(file:|\/)/.test(found)) return false;
  const root = parent.slice(0, at + "/.opencode/".length);
  const file = found.split(/[?#]/)[0];
  return !file.startsWith(root) || file.startsWith(`${root}node_modules/`);
}
function untrusted(name) {
  return `${name} is not part of what you trusted, which is .opencode without node_modules; for a package, add a plugin of your own`;
}

function resolveHere(specifier, context, next, shims, isProject) {
  let first;
  for (const one of context.conditions?.includes("require") ? [specifier] : candidates(specifier, shims, isProject)) {
    try {
      const found = next(one, context);
      if (!isUntrusted(found.url, context.parentURL)) return found;
      first ??= new Error(untrusted(specifier));
    } catch (error) {
      first ??= error;
    }
  }
  throw first;
}

function succeeds(look) {
  try {
    return Boolean(look());
  } catch {
    return false;
  }
}

/** Describes a file that could not be loaded, with the line if the runtime reports it. */
function loadFailure(file, error) {
  const name = path.basename(file);
  if (error?.code === "ERR_UNKNOWN_FILE_EXTENSION") return `${name} could not be loaded: it imports a TypeScript file that was not compiled; import TypeScript from TypeScript files, by relative paths`;
  const inner = error?.errors?.[0] ?? error;
  const message = messageOf(inner);
  const stack = String(inner?.stack ?? "");
  const missing = /Cannot find (?:package|module) '([^']+)'/.exec(message)?.[1];
  const mentioned = missing ? fs.readFileSync(file, "utf8").split("\n").findIndex((text) => text.includes(path.basename(missing))) + 1 : 0;
  const escaped = escapeRegExp(name);
  const lineIn = (text) => new RegExp(`${escaped}:(\\d+)`).exec(text)?.[1];
  const line = inner?.position?.line ?? lineIn(stack) ?? lineIn(message) ?? (inner instanceof SyntaxError ? lineIn(syntaxCheckOutput(file)) : mentioned);
  return `${name}${Number(line) ? `:${line}` : ""} could not be loaded: ${message.trim().split("\n")[0]}`;
}

/** Returns the output of `node --check`, because Node reports the line of a syntax error only when it prints one. */
function syntaxCheckOutput(file) {
  const { spawnSync } = createRequire(import.meta.url)("node:child_process");
  return globalThis.Bun ? "" : String(spawnSync(process.execPath, [...process.execArgv, "--check", file], { stdio: ["ignore", "ignore", "pipe"], timeout: 2000, maxBuffer: 65536 }).stderr);
}

const logged = async ({ body = {} } = {}) => (note([body.service, body.title, body.message].filter(Boolean).join(": ")), { data: true });
/** The methods of OpenCode's client that need no server: messages for the log. */
const CLIENT = { "client.app.log": logged, "client.tui.showToast": logged };
/** OpenCode's client. A method that does not exist here answers with an error, as a server would, and throws if its caller asks for that. */
const client = (name = "client") => new Proxy(function () {}, {
  get: (_target, key) => (typeof key === "symbol" || ["then", "toJSON"].includes(key) ? undefined : client(`${name}.${key}`)),
  apply: async (_target, _self, args) => {
    if (Object.hasOwn(CLIENT, name)) return CLIENT[name](...args);
    const error = new Error(`a plugin has no ${name} here`);
    if (args.some((one) => one?.throwOnError)) throw error;
    return { data: undefined, error: { name: "NotSupported", message: error.message }, response: { ok: false, status: 501 } };
  },
});

const isTool = (value) => typeof value === "object" && value !== null && typeof value.execute === "function";
/** A tool whose definition is computed when it is loaded: `Tool.define("id", async () => ({...}))`. */
const isDefined = (value) => plain(value) && typeof value.id === "string" && (typeof value.init === "function" || plain(value.init));
const Tool = { define: (id, init) => ({ id, init }) };

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
    const input = { directory: folder, worktree: folder, project: { id: path.basename(folder), worktree: folder }, client: client(), $: shell(folder), serverUrl: new URL("http://127.0.0.1:0/") };
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
    for (const key of Object.keys(hooks)) if (key !== "tool" && !Object.values(POINTS).some(([method]) => method === key)) unsupported.add(key.slice(0, 80));
  }
  if (!tools.size && !plugins.length) throw new Error(`${path.basename(file)} exports no tool; write: export default tool({ description, args, execute })`);
  return { tools, keptNames, plugins, unsupported: [...unsupported].slice(0, 20), notes: notes.slice(0, 20) };
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
const eventPoint = (type) => ["event", (m) => [{ event: { type: type ?? m.what?.type ?? "unknown", properties: { sessionID: m.session, ...m.what } } }, {}], () => ({})];
const POINTS = {
  before_tool: ["tool.execute.before", (m) => [{ tool: m.tool, sessionID: m.session, callID: m.call }, { args: m.arguments }],
    (out, m) => changed(out.args, m.arguments) && { arguments: out.args }],
  after_tool: ["tool.execute.after", (m) => [{ tool: m.tool, sessionID: m.session, callID: m.call, args: m.arguments }, { title: m.title ?? "", output: m.output, metadata: m.metadata ?? {} }],
    (out, m) => ({ ...(out.output !== m.output && { output: String(out.output) }), ...(out.title !== (m.title ?? "") && { title: String(out.title) }), ...(changed(out.metadata, m.metadata ?? {}) && { metadata: out.metadata }) })],
  permission: ["permission.ask", (m) => [{ type: m.tool, title: m.reason, sessionID: m.session, callID: m.call, metadata: { accesses: m.accesses } }, { status: "ask" }],
    (out, m) => out.status === "deny" && { verdict: "refuse", reason: `the plugin denies ${m.tool}` }],
  prompt: ["chat.message", (m) => [{ sessionID: m.session, agent: m.mode }, { message: { role: "user", sessionID: m.session }, parts: [{ type: "text", text: m.prompt }] }],
    (out, m) => ((text) => text !== m.prompt && { prompt: text })(out.parts.filter(({ type }) => type === "text").map(({ text }) => text).join("\n"))],
  params: ["chat.params", ({ params: p = {}, ...m }) => [{ sessionID: m.session, agent: m.mode }, { temperature: p.temperature, topP: p.top_p, topK: p.top_k, maxOutputTokens: p.max_output, options: p.options ?? {} }],
    (out, { params: p = {} }) => ((next) => changed(next, p) && { params: next })({ ...p, temperature: out.temperature, top_p: out.topP, top_k: out.topK, max_output: out.maxOutputTokens, ...((p.options || Object.keys(out.options ?? {}).length) && { options: out.options }) })],
  system: ["experimental.chat.system.transform", (m) => [{ sessionID: m.session }, { system: [m.system] }],
    (out, m) => ((text) => text !== m.system && { system: text })(out.system.join("\n\n"))],
  compaction: ["experimental.session.compacting", (m) => [{ sessionID: m.session }, { context: [] }],
    (out) => out.context.length > 0 && { context: out.context.join("\n") }],
  tool_definition: ["tool.definition", (m) => [{ toolID: m.tool }, { description: m.description, parameters: m.parameters }],
    (out, m) => ({ ...(out.description !== m.description && { description: out.description }), ...(changed(out.parameters, m.parameters) && { parameters: out.parameters }) })],
  session_start: eventPoint("session.created"), session_end: eventPoint("session.deleted"), turn_end: eventPoint("session.idle"), event: eventPoint(),
};

async function runHooks(plugins, point, matter) {
  if (!Object.hasOwn(POINTS, point)) throw new Error(`no hook point is named ${point}`);
  const [method, toArguments, toResult] = POINTS[point];
  const [input, output] = toArguments(structuredClone(matter));
  try {
    for (const hooks of plugins) await hooks[method]?.(input, output);
    const result = toResult(output, matter) || {};
    // Such a field would count as not given, and then what the plugin removed would stay.
    const removed = Object.keys(result).find((key) => [undefined, "null"].includes(stringify(result[key])));
    return removed ? { verdict: "refuse", reason: `the plugin removed ${removed}` } : { verdict: "pass", ...result };
  } catch (error) {
    // A plugin that is only told of something cannot deny it.
    if (method === "event") return note(error?.stack ?? messageOf(error)), { verdict: "pass" };
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

/** The permissions that the user gave for a session. The rules still decide first. */
const approved = new Set();
const metadataLine = ([key, value]) => (["string", "number", "boolean"].includes(typeof value) ? `${key}: ${value}` : "");

function contextOf(name, job, { session, call, folder, message, agent, mode }, live) {
  return {
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
      if (typeof request.question === "string") return askQuestion(job, request);
      const key = String(request.permission ?? name);
      const patterns = (Array.isArray(request.patterns) ? request.patterns : []).map(String);
      const permission = [key, ...(patterns.length ? [patterns.join(", ")] : [])].join(": ");
      const always = (Array.isArray(request.always) ? request.always : []).map(String);
      const approval = (pattern) => `${session}\0${key}\0${pattern}`;
      const remembered = patterns.length > 0 && patterns.every((pattern) => approved.has(approval(pattern)));
      const options = [{ label: "Yes" }, ...(always.length ? [{ label: "Always", description: "for this session" }] : []), { label: "No" }];
      const question = { header: key, question: `${name} asks for ${permission}. Allow it?`.slice(0, 2000), options, permission: { key, patterns, ...(remembered && { remembered }) } };
      const [answer] = (await askQuestion(job, question)) ?? [];
      if (answer === "Always") for (const pattern of [...always, ...patterns]) approved.add(approval(pattern));
      else if (answer !== "Yes") throw new Error(`${permission} was not allowed`);
    },
  };
}

const METHODS = {
  async describe({ folder }, _job, file) {
    const { tools, keptNames, plugins, unsupported, notes } = await loaded(file, folder ?? process.cwd());
    const hooks = Object.entries(POINTS).filter(([, [method]]) => plugins.some((hooks) => typeof hooks[method] === "function")).map(([point]) => point);
    const described = [...tools].map(([name, definition]) => {
      const { description, access, timeout_ms, parallel } = definition;
      if (typeof description !== "string" || !description) throw new Error(`${path.basename(file)}: the tool ${name} has no description`);
      try {
        return { name, description, schema: argumentSchema(definition), access, timeout_ms, parallel, ...(keptNames.has(name) && { keeps_name: true }) };
      } catch (error) {
        throw new Error(`${path.basename(file)}: the tool ${name}: ${messageOf(error)}`);
      }
    });
    return { tools: described, ...(hooks.length && { hooks }), ...(unsupported.length && { unsupported_hooks: unsupported }), ...(notes.length && { notes }) };
  },
  async call({ tool: name, arguments: given, context = {} }, job, file) {
    const folder = context.folder ?? process.cwd();
    const { tools } = await loaded(file, folder);
    const definition = tools.get(name);
    if (!definition) throw new Error(`${path.basename(file)} has no tool named ${name}`);
    const live = { metadata: {} };
    const args = await parseArguments(definition, given);
    job.abort.signal.throwIfAborted();
    const value = await definition.execute(args, contextOf(name, job, { ...context, folder }, live));
    return { result: resultOf(name, value, live) };
  },
  async hook({ point, matter = {} }, _job, file) {
    const { plugins } = await loaded(file, matter.folder ?? process.cwd());
    return { result: await runHooks(plugins, point, matter) };
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
  if (method === undefined && "answer" in message) return open.get(id)?.answered?.(message.answer);
  if (id === undefined || open.has(id)) return note(`ignored a line without a new id: ${text.slice(0, 80)}`);
  const job = { id, abort: new AbortController(), asking: Promise.resolve(), answered: undefined };
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
  const printMethods = ["log", "info", "debug", ...(globalThis.Bun ? ["table", "dir", "group", "count", "timeEnd", "timeLog"] : [])];
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
  const { Socket } = typeof input === "number" && fs.fstatSync(input).isFIFO() && !globalThis.Bun ? await import("node:net") : {};
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
