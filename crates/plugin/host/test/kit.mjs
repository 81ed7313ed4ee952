// Starts a host for a test, over pipes as Windlass does or over sockets as node does.
import { spawn } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
export const here = (name) => fileURLToPath(new URL(name, import.meta.url));
export const RUNTIME = process.env.HOST_RUNTIME ?? process.execPath;
const FLAGS = /bun$/.test(RUNTIME) ? ["--no-install"] : [];
/** The temporary folder of the hosts, which are killed and so cannot remove what they write. */
export const TEMP = fs.mkdtempSync(path.join(os.tmpdir(), "windlass-host-"));
process.on("exit", () => fs.rmSync(TEMP, { recursive: true, force: true }));
export class Host {
  constructor(file, { sockets } = {}) {
    const argv = [RUNTIME, ...FLAGS, here("../host.mjs"), here(file)];
    const command = sockets ? argv : ["sh", "-c", 'cat | { "$@" 2>&1 1>&3 | cat >&2; } 3>&1 | cat', "sh", ...argv];
    this.process = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "pipe"], detached: true, env: { ...process.env, TMPDIR: TEMP } });
    this.lines = []; this.stderr = ""; this.partial = ""; this.waiting = []; this.last = 0;
    this.process.stderr.setEncoding("utf8").on("data", (text) => { this.stderr = (this.stderr + text).slice(-1e6); });
    this.process.stdin.on("error", () => {});
    this.process.stdout.setEncoding("utf8").on("data", (text) => {
      const lines = (this.partial + text).split("\n");
      this.partial = lines.pop();
      for (const line of lines) { this.lines.push(JSON.parse(line)); for (const look of this.waiting) look(); }
    });
    this.ended = new Promise((go) => this.process.on("close", go));
  }
  /** Waits until stderr matches a pattern; stderr and answers are separate pipes. */
  async waitForStderr(pattern) {
    for (let tries = 0; tries < 100 && !pattern.test(this.stderr); tries++) await new Promise((go) => setTimeout(go, 20));
    if (!pattern.test(this.stderr)) throw new Error(`stderr never matched ${pattern}: ${this.stderr.slice(-600)}`);
  }
  send(message) { this.process.stdin.write(`${JSON.stringify(message)}\n`); }
  async line(matches, ms = 15000) {
    let timer, look;
    try {
      return await new Promise((go, no) => {
        look = () => { const at = this.lines.findIndex(matches); if (at >= 0) { this.waiting = this.waiting.filter((one) => one !== look); go(this.lines.splice(at, 1)[0]); } };
        timer = setTimeout(() => no(new Error(`no such line; stderr: ${this.stderr.slice(-600)}`)), ms);
        this.waiting.push(look);
        look();
      });
    } finally {
      clearTimeout(timer);
      this.waiting = this.waiting.filter((one) => one !== look);
    }
  }
  request(method, rest) {
    const id = ++this.last;
    this.send({ id, method, ...rest });
    return { id, settled: this.line((line) => line.id === id && ("result" in line || "error" in line || "tools" in line)) };
  }
  describe() { return this.request("describe", { windlass: 1, folder: "/w" }).settled; }
  start(tool, args = {}, context = {}) { return this.request("call", { tool, arguments: args, context: { session: "s1", call: "c1", folder: "/w", mode: "auto", ...context } }); }
  call(tool, args) { return this.start(tool, args).settled; }
  /** Calls a tool of a file that names `messages`, so that the session is read first. */
  callWithSession(tool, facts) {
    const { id, settled } = this.start(tool);
    this.line((line) => line.id === id && line.read === "session").then(() => this.send({ id, facts }));
    return settled;
  }
  hook(point, matter) { return this.request("hook", { point, matter: { session: "s1", call: "c1", folder: "/w", mode: "auto", ...matter } }).settled; }
  end() { try { process.kill(-this.process.pid, "SIGKILL"); } catch {} return this.ended; }
}
