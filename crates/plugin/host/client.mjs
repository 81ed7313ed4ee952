// OpenCode's client, for what a plugin may do: write to the log, and read the session that it works for. Other methods
// answer with an error, as a server would. Start reading at `clientMethods`.

import path from "node:path";
import { note } from "./schema.mjs";

/** Returns the client. Properties can be read, and a method without an implementation answers with an error. */
export const client = (methods, name = "") => new Proxy(function () {}, {
  get: (_target, key) => (typeof key === "symbol" || ["then", "toJSON"].includes(key) ? undefined : client(methods, name ? `${name}.${key}` : key)),
  apply: async (_target, _self, args) => {
    try {
      if (!Object.hasOwn(methods, name)) throw Object.assign(new Error(`a plugin has no client.${name} here`), { status: 501 });
      return { data: await methods[name](args[0] ?? {}), error: undefined, response: { ok: true, status: 200 } };
    } catch (error) {
      if (args.some((one) => one?.throwOnError)) throw error;
      return { data: undefined, error: { name: "NotSupported", message: error.message, data: { message: error.message } }, response: { ok: false, status: error.status ?? 400 } };
    }
  },
});

/** Returns the methods by name. `openJob` returns the call or hook from which a method is called. */
export function clientMethods(folder, openJob) {
  const log = ({ body = {} }) => (note([body.service, body.title, body.message].filter(Boolean).join(": ")), true);
  const project = { id: path.basename(folder), worktree: folder, vcs: "git", time: { created: 0, updated: 0 } };
  const job = (request) => {
    const found = openJob();
    if (!found) throw new Error("a session can be used only while a tool or a hook runs");
    const id = request.path?.id ?? request.path?.sessionID ?? request.sessionID ?? request.id ?? found.session;
    if (id !== found.session) throw Object.assign(new Error("a plugin can use only the session that it works for"), { status: 404 });
    return found;
  };
  const read = (select) => async (request) => select(await job(request).conversation(), request);
  const messages = ({ messages }, { query = {}, limit = query.limit }) => messages.slice(limit > 0 ? -limit : 0).map(({ info, parts }) => ({ info, parts }));
  const prompt = async (request) => {
    const { noReply, parts = [] } = request.body ?? request;
    const text = parts.filter(({ type, text }) => type === "text" && typeof text === "string").map(({ text }) => text).join("\n");
    if (noReply !== true) throw new Error("a plugin cannot make the model answer; use noReply: true to add text to the session");
    job(request).addContext(text);
    return undefined;
  };
  return {
    "app.log": log, "tui.showToast": log,
    "path.get": () => ({ home: process.env.HOME ?? "", state: "", config: "", directory: folder, worktree: folder }),
    "project.current": () => project, "project.list": () => [project],
    "session.messages": read(messages),
    "session.message": read((conversation, request) => messages(conversation, {}).find(({ info }) => info.id === (request.path?.messageID ?? request.messageID))),
    "session.get": read(({ info }) => info), "session.list": read(({ info }) => [info]), "session.children": read(() => []),
    "session.todo": read(({ todos }) => todos),
    "session.prompt": prompt, "session.promptAsync": prompt,
  };
}
