// The shell of plugins: `$` runs a command with `sh` in the sandbox of this process, with the methods of Bun's shell that
// plugins use. Values are quoted, so that no text can become a second command. Start reading at `shell`.

import { spawn } from "node:child_process";

const MAX_OUTPUT = 8 * 1024 * 1024;

class ShellOutput {
  constructor(exitCode, stdout, stderr) {
    Object.assign(this, { exitCode, stdout, stderr });
  }
  text(encoding = "utf8") {
    return this.stdout.toString(encoding);
  }
  json() {
    return JSON.parse(this.text());
  }
  bytes() {
    return new Uint8Array(this.stdout);
  }
  arrayBuffer() {
    return this.bytes().buffer;
  }
  blob() {
    return new Blob([this.stdout]);
  }
}

class ShellError extends Error {
  constructor(output) {
    super(`the command failed with exit code ${output.exitCode}: ${output.stderr.toString().trim().slice(0, 2000)}`);
    Object.assign(this, { exitCode: output.exitCode, stdout: output.stdout, stderr: output.stderr, text: () => output.text(), json: () => output.json() });
  }
}

const quote = (text) => `'${String(text).replaceAll("'", `'\\''`)}'`;

function quoted(value) {
  if (Array.isArray(value)) return value.map(quoted).join(" ");
  if (value instanceof ShellOutput) return quote(value.text().trimEnd());
  if (!["string", "number", "boolean", "bigint"].includes(typeof value)) throw new TypeError(`a command cannot contain ${value === null ? "null" : typeof value}; use a string or a list of strings`);
  return quote(value);
}

/** Ends a command with everything that it started. */
function endGroup(child) {
  try {
    process.kill(-child.pid, "SIGKILL");
  } catch {}
}

function run(command, { cwd, env }) {
  return new Promise((settle, reject) => {
    const child = spawn("sh", ["-c", command], { cwd, env: env ?? process.env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    const parts = { stdout: [], stderr: [] };
    let bytes = 0;
    for (const name of ["stdout", "stderr"]) child[name].on("data", (part) => {
      bytes += part.length;
      if (bytes > MAX_OUTPUT) return endGroup(child);
      parts[name].push(part);
    });
    child.on("error", reject);
    child.on("close", (code) => {
      if (bytes > MAX_OUTPUT) return reject(new Error("the output of a command is longer than 8 MiB"));
      settle(new ShellOutput(code ?? 1, Buffer.concat(parts.stdout), Buffer.concat(parts.stderr)));
    });
  });
}

/** A command that starts when it is awaited, so that it can be changed before. */
class ShellCommand {
  #command;
  #options;
  #throws;
  #started;
  constructor(command, { throws, ...options }) {
    this.#command = command;
    this.#options = { ...options };
    this.#throws = throws;
  }
  #start() {
    return (this.#started ??= run(this.#command, this.#options).then((output) => {
      if (this.#throws && output.exitCode !== 0) throw new ShellError(output);
      return output;
    }));
  }
  then(settle, reject) {
    return this.#start().then(settle, reject);
  }
  catch(reject) {
    return this.#start().catch(reject);
  }
  finally(settle) {
    return this.#start().finally(settle);
  }
  run() {
    return this.#start();
  }
  quiet() {
    return this;
  }
  nothrow() {
    return this.throws(false);
  }
  throws(throws) {
    this.#throws = throws;
    return this;
  }
  cwd(cwd) {
    this.#options.cwd = cwd;
    return this;
  }
  env(env) {
    this.#options.env = env;
    return this;
  }
  text(encoding) {
    return this.#start().then((output) => output.text(encoding));
  }
  json() {
    return this.#start().then((output) => output.json());
  }
  bytes() {
    return this.#start().then((output) => output.bytes());
  }
  arrayBuffer() {
    return this.#start().then((output) => output.arrayBuffer());
  }
  blob() {
    return this.#start().then((output) => output.blob());
  }
  async *lines() {
    yield* (await this.text()).split("\n").filter((line, at, all) => line || at < all.length - 1);
  }
}

/** Returns a `$` whose commands run in a folder. */
export function shell(folder) {
  const options = { cwd: folder, env: undefined, throws: true };
  const $ = (strings, ...values) => new ShellCommand(strings.raw.map((text, at) => text + (at < values.length ? quoted(values[at]) : "")).join(""), options);
  return Object.assign($, {
    escape: quote,
    cwd: (cwd) => (Object.assign(options, { cwd }), $),
    env: (env) => (Object.assign(options, { env }), $),
    nothrow: () => (Object.assign(options, { throws: false }), $),
    throws: (throws) => (Object.assign(options, { throws }), $),
    ShellError,
  });
}
