// Bun's names for plugins that run on Node: the global `Bun`, the modules `bun`, `bun:sqlite` and `bun:ffi`, and the
// fields of `import.meta` that only Bun has. What only Bun can do throws when it is used, not when the plugin is loaded.
// Start reading at `createBun`.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { createRequire } from "node:module";
import { createHash, randomUUID } from "node:crypto";
import { isDeepStrictEqual, inspect } from "node:util";
import { Readable } from "node:stream";
import { spawn as spawnChild, spawnSync as spawnChildSync } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { sqliteModule } from "./sqlite_shim.mjs";
import { shell } from "./shell.mjs";

const lacking = (name) => () => {
  throw new Error(`${name} needs Bun, and this plugin runs on Node`);
};
const pathOf = (file) => (file instanceof BunFile ? file.name : file instanceof URL || String(file).startsWith("file:") ? fileURLToPath(file) : String(file));

class BunFile {
  constructor(name, { type } = {}) {
    Object.assign(this, { name: pathOf(name), type: type ?? "application/octet-stream" });
  }
  get size() {
    return fs.statSync(this.name, { throwIfNoEntry: false })?.size ?? 0;
  }
  get lastModified() {
    return fs.statSync(this.name, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  }
  async exists() {
    return fs.statSync(this.name, { throwIfNoEntry: false })?.isFile() ?? false;
  }
  stat() {
    return fs.promises.stat(this.name);
  }
  text() {
    return fs.promises.readFile(this.name, "utf8");
  }
  async json() {
    return JSON.parse(await this.text());
  }
  async bytes() {
    return new Uint8Array(await fs.promises.readFile(this.name));
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
  stream() {
    return Readable.toWeb(fs.createReadStream(this.name));
  }
  write(data) {
    return write(this, data);
  }
  delete() {
    return fs.promises.unlink(this.name);
  }
  unlink() {
    return this.delete();
  }
  /** Returns a sink that writes to the file from its beginning. */
  writer() {
    fs.mkdirSync(path.dirname(this.name), { recursive: true });
    return sinkOf(fs.createWriteStream(this.name));
  }
}

async function bytesOf(data) {
  if (data instanceof BunFile) return data.bytes();
  if (data instanceof Blob || data instanceof Response) return Buffer.from(await data.arrayBuffer());
  if (data instanceof ArrayBuffer || data instanceof SharedArrayBuffer) return Buffer.from(data);
  if (ArrayBuffer.isView(data)) return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (Array.isArray(data)) return Buffer.concat(await Promise.all(data.map(bytesOf)));
  return Buffer.from(String(data));
}

async function write(file, data) {
  const bytes = await bytesOf(data);
  await fs.promises.mkdir(path.dirname(pathOf(file)), { recursive: true });
  await fs.promises.writeFile(pathOf(file), bytes);
  return bytes.length;
}

function sinkOf(stream) {
  stream.on("error", () => {});
  return { write: (data) => (stream.write(data), data.length), flush: async () => {}, end: () => new Promise((done) => stream.end(done)) };
}

/** Returns the path of a program, or null. */
function which(name, { PATH = process.env.PATH ?? "", cwd = process.cwd() } = {}) {
  const endings = process.platform === "win32" ? (process.env.PATHEXT ?? ".EXE").split(";") : [""];
  const folders = /[\\/]/.test(name) ? [""] : PATH.split(path.delimiter).filter(Boolean);
  for (const folder of folders) for (const ending of endings) {
    const file = path.resolve(cwd, folder, name + ending);
    try {
      fs.accessSync(file, fs.constants.X_OK);
      if (fs.statSync(file).isFile()) return file;
    } catch {}
  }
  return null;
}

/** Returns the program, its arguments and Node's options for `spawn(["ls", "-l"], {...})` or `spawn({cmd: [...], ...})`. */
function spawnArguments(given, given2 = {}) {
  const { cmd = given, ...options } = Array.isArray(given) ? given2 : given;
  const { cwd, env = process.env, timeout, signal, killSignal, argv0, detached } = options;
  const [program, ...args] = cmd.map(String);
  const file = which(program, { PATH: env.PATH ?? process.env.PATH, cwd });
  if (!file) throw Object.assign(new Error(`Executable not found in $PATH: "${program}"`), { code: "ENOENT" });
  const [stdin, stdout, stderr] = options.stdio ?? [];
  const streams = [options.stdin ?? stdin ?? "ignore", options.stdout ?? stdout ?? "pipe", options.stderr ?? stderr ?? "inherit"];
  // The program's standard output is not the one of this process, which carries answers.
  const stdio = streams.map((one, at) => (one === "inherit" ? (at === 0 ? "ignore" : 2) : one === "ignore" || one === null ? "ignore" : typeof one === "number" ? one : "pipe"));
  return { file, args, streams, nodeOptions: { cwd, env, timeout, signal, killSignal, argv0: argv0 ?? program, detached, stdio, windowsHide: true }, onExit: options.onExit };
}

function spawn(given, options) {
  const { file, args, streams, nodeOptions, onExit } = spawnArguments(given, options);
  const child = spawnChild(file, args, nodeOptions);
  const output = (at) => {
    if (nodeOptions.stdio[at] !== "pipe") return undefined;
    const stream = Readable.toWeb(child.stdio[at]);
    const read = async () => Buffer.from(await new Response(stream).arrayBuffer());
    if (streams[at] instanceof BunFile) return void read().then((bytes) => write(streams[at], bytes));
    return Object.assign(stream, { text: async () => String(await read()), json: async () => JSON.parse(String(await read())), bytes: async () => new Uint8Array(await read()) });
  };
  const sink = child.stdin ? sinkOf(child.stdin) : undefined;
  if (sink && streams[0] !== "pipe") bytesOf(streams[0]).then((bytes) => child.stdin.end(bytes));
  const process = {
    pid: child.pid, stdin: sink && streams[0] === "pipe" ? sink : undefined, stdout: output(1), stderr: output(2), exitCode: null, signalCode: null, killed: false,
    kill: (signal) => (process.killed = child.kill(signal)), ref: () => child.ref(), unref: () => child.unref(),
  };
  process.readable = process.stdout;
  process.exited = new Promise((settle) => {
    child.on("error", () => settle(1));
    child.on("exit", (code, signal) => {
      Object.assign(process, { exitCode: code, signalCode: signal });
      settle(code ?? 128 + (os.constants.signals[signal] ?? 0));
      onExit?.(process, code, signal, undefined);
    });
  });
  return process;
}

function spawnSync(given, options) {
  const { file, args, streams, nodeOptions } = spawnArguments(given, options);
  const input = nodeOptions.stdio[0] === "pipe" && streams[0] !== "pipe" ? streams[0] : undefined;
  const { pid, status, signal, stdout, stderr, error } = spawnChildSync(file, args, { ...nodeOptions, input, maxBuffer: 64 << 20 });
  if (error && status === null && !signal) throw error;
  return { pid, exitCode: status ?? 1, signalCode: signal ?? undefined, success: status === 0, stdout: stdout ?? undefined, stderr: stderr ?? undefined };
}

/** The first 64 bits of a SHA-256: stable, but other values than Bun's. */
const hash = (data, seed = 0) => createHash("sha256").update(`${seed}\0`).update(typeof data === "string" || ArrayBuffer.isView(data) ? data : new Uint8Array(data)).digest().readBigUInt64LE();

class CryptoHasher {
  #hash;
  constructor(algorithm) {
    this.#hash = createHash(algorithm);
  }
  update(data, encoding) {
    return this.#hash.update(data, encoding), this;
  }
  digest(encoding) {
    return this.#hash.digest(encoding);
  }
  static hash = (algorithm, data, encoding) => createHash(algorithm).update(data).digest(encoding);
}

/** Translates a pattern with `*`, `**`, `?`, `[…]` and `{…,…}` to the text of a regular expression. */
function globExpression(pattern) {
  let depth = 0;
  return pattern.replace(/\\(.)|\/\*\*$|\*\*\/|\*\*|\*|\?|\[(!|\^)?(\]?[^\]]*)\]|[{},]|[.+^$()|[\]\\]/g, (found, escaped, not, set) => {
    if (escaped !== undefined) return escaped.replace(/\W/, "\\$&");
    if (found === "/**") return "(?:/.*)?";
    if (found === "**/") return "(?:[^/]+/)*";
    if (found === "**") return ".*";
    if (found === "*") return "[^/]*";
    if (found === "?") return "[^/]";
    if (set !== undefined) return `[${not ? "^/" : ""}${set.replace(/[\\[\]]/g, "\\$&")}]`;
    if (found === "{") return (depth += 1), "(?:";
    if (found === "}" && depth) return (depth -= 1), ")";
    if (found === "," && depth) return "|";
    return found === "," ? "," : `\\${found}`;
  }) + ")".repeat(depth);
}

const MAX_GLOB_ENTRIES = 1_000_000;

class Glob {
  #pattern;
  #expression;
  #isNegated;
  constructor(pattern) {
    this.#isNegated = pattern.startsWith("!");
    this.#pattern = pattern.replace(/^!/, "").replace(/^\.\//, "");
    this.#expression = new RegExp(`^${globExpression(this.#pattern)}$`, "s");
  }
  match(name) {
    return this.#expression.test(name) !== this.#isNegated;
  }
  *scanSync(options = {}) {
    const { cwd = process.cwd(), dot = false, absolute = false, onlyFiles = true, followSymlinks = false } = typeof options === "string" ? { cwd: options } : options;
    const root = path.resolve(String(cwd));
    const isDeep = this.#pattern.includes("**");
    const maxDepth = this.#pattern.split("/").length;
    const pending = [""];
    for (let seen = 0; pending.length && seen < MAX_GLOB_ENTRIES; ) {
      const folder = pending.pop();
      let entries;
      try {
        entries = fs.readdirSync(path.join(root, folder), { withFileTypes: true });
      } catch {
        continue;
      }
      for (const entry of entries) {
        seen += 1;
        const name = folder ? `${folder}/${entry.name}` : entry.name;
        if (entry.name.startsWith(".") && !dot && !this.#pattern.split("/").some((part) => part.startsWith("."))) continue;
        const isFolder = entry.isDirectory() || (followSymlinks && entry.isSymbolicLink() && fs.statSync(path.join(root, name), { throwIfNoEntry: false })?.isDirectory());
        if (isFolder && (isDeep || name.split("/").length < maxDepth)) pending.push(name);
        if ((!isFolder || !onlyFiles) && this.match(name)) yield absolute ? path.join(root, name) : name;
      }
    }
  }
  async *scan(options) {
    yield* this.scanSync(options);
  }
}

/** Returns the fields of Bun's `import.meta` that Node does not have. */
export function addMetaFields(meta) {
  const file = fileURLToPath(meta.url);
  Object.assign(meta, { dir: path.dirname(file), dirname: path.dirname(file), path: file, filename: file, file: path.basename(file), main: false, env: process.env, require: createRequire(meta.url) });
}

/** Returns the global `Bun`. */
export function createBun() {
  const read = (kind) => async (stream) => new Response(stream)[kind]();
  return {
    $: shell(process.cwd()), file: (name, options) => new BunFile(name, options), write, spawn, spawnSync, which, Glob, CryptoHasher,
    hash: Object.assign(hash, { wyhash: hash, xxHash64: hash }), sleep: (until) => new Promise((done) => setTimeout(done, until - (until instanceof Date ? Date.now() : 0))),
    sleepSync: (ms) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms),
    env: process.env, argv: process.argv, main: process.argv[2], cwd: () => process.cwd(), version: "1.0.0", revision: "", hostname: os.hostname(),
    fileURLToPath, pathToFileURL, inspect, deepEquals: isDeepStrictEqual, randomUUIDv7: () => randomUUID(), nanoseconds: () => Number(process.hrtime.bigint()), gc() {},
    resolveSync: (name, from) => createRequire(path.join(from, "x.js")).resolve(name),
    readableStreamToText: read("text"), readableStreamToJSON: read("json"), readableStreamToArrayBuffer: read("arrayBuffer"),
    ...Object.fromEntries(["serve", "listen", "connect", "udpSocket", "build"].map((name) => [name, lacking(`Bun.${name}`)])),
  };
}

/** Returns the modules that only Bun has, by name. */
export function bunModules(bun) {
  const ffi = ["dlopen", "linkSymbols", "CString", "JSCallback", "CFunction", "ptr", "toArrayBuffer", "toBuffer", "viewSource"];
  return {
    bun: { ...bun, default: bun },
    "bun:sqlite": sqliteModule(),
    "bun:ffi": { FFIType: {}, read: {}, suffix: process.platform === "darwin" ? "dylib" : "so", ...Object.fromEntries(ffi.map((name) => [name, lacking("bun:ffi")])) },
  };
}
