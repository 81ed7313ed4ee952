// Translates the recorded facts of a session to OpenCode's events and messages. One fact may give several events. Start
// reading at `Conversation.add`.

import path from "node:path";

const idOf = (prefix, number) => `${prefix}_${String(number).padStart(10, "0")}`;
/** Costs are recorded in millionths. */
const COST_UNIT = 1e6;

function argumentsOf(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? value : {};
  } catch {
    return {};
  }
}

const tokensOf = (usage = {}) => ({ input: usage.input ?? 0, output: usage.output ?? 0, reasoning: usage.reasoning ?? 0, cache: { read: usage.cache_reads ?? 0, write: usage.cache_writes ?? 0 } });
const messageOfFault = (fault) => String(fault?.message ?? fault?.fault ?? fault?.kind ?? "it failed");
const errorOf = (name, message) => ({ name, data: { message } });

/** The subject of an access, as OpenCode's permission patterns have it. */
const patternOf = (access) => String(access?.path ?? access?.command ?? access?.url ?? access?.host ?? access?.name ?? access?.tool ?? "*");

/** The state of one session. With `keeps`, its messages are whole; without, only what their removal needs is kept. */
export class Conversation {
  constructor(session, folder, { keeps = false } = {}) {
    const time = { created: 0, updated: 0 };
    this.info = { id: session, projectID: path.basename(folder), directory: folder, title: "", version: "", time };
    this.keeps = keeps;
    this.messages = [];
    this.calls = new Map();
    this.agent = "build";
    this.todos = [];
  }

  /** Adds a recorded fact and returns the events that it means, in order. */
  add(fact) {
    const translate = Object.hasOwn(FACTS, fact?.kind) ? FACTS[fact.kind] : undefined;
    this.info.time.updated = fact?.at ?? this.info.time.updated;
    return translate?.call(this, fact) ?? [];
  }

  event(type, properties) {
    return { type, properties };
  }

  /** Starts a message and returns its event. */
  start(info, fact) {
    const { seq, prompt } = fact;
    const message = { info: { ...info, sessionID: this.info.id }, parts: [], seq, prompt };
    this.messages.push(this.keeps ? message : { info: { id: info.id }, seq, prompt });
    if (info.role === "user") this.user = message;
    else this.assistant = message;
    return this.event("message.updated", { sessionID: this.info.id, info: message.info });
  }

  /** Removes messages and returns their events. */
  remove(isRemoved) {
    const removed = this.messages.filter(isRemoved);
    this.messages = this.messages.filter((message) => !isRemoved(message));
    return removed.map(({ info }) => this.event("message.removed", { sessionID: this.info.id, messageID: info.id }));
  }

  /** Adds a part to a message and returns its event. */
  part(message, part) {
    if (!message) return [];
    const whole = { id: part.id, sessionID: this.info.id, messageID: message.info.id, ...part };
    if (this.keeps) message.parts.push(whole);
    return [this.event("message.part.updated", { sessionID: this.info.id, part: whole })];
  }

  /** Changes the state of a call and returns the event of its part. */
  call(id, change) {
    const call = this.calls.get(id);
    if (!call) return [];
    call.part.state = { ...call.part.state, ...change };
    return [this.event("message.part.updated", { sessionID: this.info.id, part: structuredClone(call.part) })];
  }

  text(type) {
    return ({ text, seq, at }) => this.part(this.assistant, { id: idOf("prt", seq), type, text, time: { start: at, end: at } });
  }
}

const FACTS = {
  session_opened({ at, version, agent, parent }) {
    Object.assign(this.info, { version, time: { created: at, updated: at }, ...(parent && { parentID: parent.session }) });
    this.agent = agent ?? this.agent;
    return [this.event("session.created", { sessionID: this.info.id, info: this.info })];
  },
  session_renamed({ title }) {
    this.info.title = title;
    return [this.event("session.updated", { sessionID: this.info.id, info: this.info })];
  },
  context_compacted() {
    return [this.event("session.compacted", { sessionID: this.info.id })];
  },
  rewound({ to }) {
    return this.remove(({ seq }) => seq > to);
  },
  prompt_withdrawn({ prompt }) {
    return this.remove((message) => message.prompt !== undefined && message.prompt === prompt);
  },
  prompt_submitted(fact) {
    const id = idOf("msg", fact.seq);
    const [providerID, modelID] = this.model ?? [];
    const started = this.start({ id, role: "user", agent: this.agent, time: { created: fact.at }, ...(modelID && { model: { providerID, modelID } }) }, fact);
    const { name, arguments: given } = fact.settings?.command ?? {};
    const executed = name === undefined ? [] : [this.event("command.executed", { name, sessionID: this.info.id, arguments: given, messageID: id })];
    return [started, ...this.part(this.user, { id: idOf("prt", fact.seq), type: "text", text: fact.text }), ...executed];
  },
  turn_started() {
    return [this.event("session.status", { sessionID: this.info.id, status: { type: "busy" } })];
  },
  step_started(fact) {
    const [providerID, ...rest] = fact.model.split("/");
    this.model = [providerID, rest.join("/")];
    const info = {
      id: idOf("msg", fact.seq), role: "assistant", parentID: this.user?.info.id ?? "", providerID, modelID: rest.join("/"), mode: this.agent, agent: this.agent,
      path: { cwd: this.info.directory, root: this.info.directory }, cost: 0, tokens: tokensOf(), time: { created: fact.at }, ...(fact.purpose === "summary" && { summary: true }),
    };
    return [this.start(info, fact), ...this.part(this.assistant, { id: idOf("prt", fact.seq), type: "step-start" })];
  },
  step_retrying({ attempt, fault, wait_ms, at }) {
    return [this.event("session.status", { sessionID: this.info.id, status: { type: "retry", attempt, message: messageOfFault(fault), next: at + wait_ms } })];
  },
  model_text(fact) {
    return this.text("text")(fact);
  },
  model_reasoning(fact) {
    return this.text("reasoning")(fact);
  },
  tool_called({ call, tool, arguments: given, seq }) {
    // A call that a user makes belongs to no message of the model.
    const message = this.assistant ?? { info: { id: idOf("msg", seq) }, parts: [] };
    const part = { id: idOf("prt", seq), type: "tool", callID: call, tool, state: { status: "pending", input: argumentsOf(given), raw: given } };
    const events = this.part(message, part);
    this.calls.set(call, { part: this.keeps ? message.parts.at(-1) : { ...events[0].properties.part }, files: [] });
    return events;
  },
  call_started({ call, at }) {
    const open = this.calls.get(call);
    return this.call(call, { status: "running", time: { start: open?.part.state.time?.start ?? at } });
  },
  permission_asked({ call, reason, accesses, at }) {
    const part = this.calls.get(call)?.part;
    const patterns = (accesses ?? []).map(patternOf);
    const asked = {
      id: call, sessionID: this.info.id, messageID: part?.messageID ?? "", callID: call, type: part?.tool ?? "", permission: part?.tool ?? "", title: reason, pattern: patterns, patterns, always: [],
      metadata: { accesses }, tool: { messageID: part?.messageID ?? "", callID: call }, time: { created: at },
    };
    return ["permission.asked", "permission.updated"].map((type) => this.event(type, asked));
  },
  permission_answered({ call, answer }) {
    const reply = { once: "once", session: "always", project: "always", kind: "always" }[answer?.answer] ?? "reject";
    return [this.event("permission.replied", { sessionID: this.info.id, permissionID: call, requestID: call, response: reply, reply })];
  },
  files_changing({ call, changes }) {
    if (this.calls.has(call)) this.calls.get(call).files = changes.map((change) => path.resolve(this.info.directory, change.path));
    return [];
  },
  files_unchanged({ call }) {
    if (this.calls.has(call)) this.calls.get(call).files = [];
    return [];
  },
  call_settled({ call, outcome, at }) {
    const open = this.calls.get(call);
    if (!open) return [];
    const time = { start: open.part.state.time?.start ?? at, end: at };
    const { output } = outcome;
    const events = outcome.status === "completed"
      ? this.call(call, { status: "completed", output: output.text, title: output.title, metadata: output.metadata ?? {}, time })
      : this.call(call, { status: "error", error: String(outcome.text ?? "its result is not known"), time });
    this.calls.delete(call);
    const files = output ? open.files.map((file) => this.event("file.edited", { file })) : [];
    this.todos = output?.todos?.map((todo, at) => ({ id: String(at + 1), ...todo })) ?? this.todos;
    const todos = output?.todos ? [this.event("todo.updated", { sessionID: this.info.id, todos: this.todos })] : [];
    return [...events, ...files, ...todos];
  },
  step_ended({ usage, cost, finish_reason, seq, at }) {
    if (!this.assistant) return [];
    const { info } = this.assistant;
    const finish = { stop: "stop", tool_calls: "tool-calls", length: "length", content_filtered: "content-filter" }[finish_reason?.reason] ?? "other";
    Object.assign(info, { tokens: tokensOf(usage), cost: (cost ?? 0) / COST_UNIT, finish, time: { ...info.time, completed: at } });
    if (finish_reason?.reason === "interrupted") info.error = errorOf("MessageAbortedError", "it was interrupted");
    if (finish_reason?.reason === "failed") info.error = errorOf("APIError", messageOfFault(finish_reason.fault));
    const part = this.part(this.assistant, { id: idOf("prt", seq), type: "step-finish", reason: finish, cost: info.cost, tokens: info.tokens });
    return [...part, this.event("message.updated", { sessionID: this.info.id, info })];
  },
  turn_ended({ end }) {
    const sessionID = this.info.id;
    this.assistant = undefined;
    const error = { failed: ["UnknownError", messageOfFault(end?.fault)], interrupted: ["MessageAbortedError", "it was interrupted"] }[end?.end];
    return [
      ...(error ? [this.event("session.error", { sessionID, error: errorOf(...error) })] : []),
      this.event("session.status", { sessionID, status: { type: "idle" } }),
      this.event("session.idle", { sessionID }),
    ];
  },
};

const partId = (index, at) => `prt_${index}_${at}`;

/** Returns the messages of a request in OpenCode's form. Their parts are found again by their ids. */
export function requestMessages({ session, messages }) {
  const partOf = (part, index, at) => {
    const common = { id: partId(index, at), sessionID: session, messageID: idOf("msg", index) };
    if (part.type !== "tool") return { ...common, ...part };
    const state = { input: argumentsOf(part.arguments), time: { start: 0, end: 0 }, ...(part.failed ? { status: "error", error: part.output ?? "" } : { status: "completed", output: part.output ?? "", title: "", metadata: {} }) };
    return { ...common, type: "tool", tool: part.tool, callID: part.call, state };
  };
  const last = messages.findLast(({ model }) => model)?.model ?? "";
  const modelOf = ([providerID, ...rest]) => ({ providerID, modelID: rest.join("/") });
  const infoOf = (role, model) => (role === "assistant" ? { role, ...model, mode: "build", parentID: "", cost: 0, tokens: tokensOf(), path: {} } : { role: "user", model });
  return messages.map(({ role, model, parts }, index) => ({
    info: { id: idOf("msg", index), sessionID: session, agent: "build", time: { created: 0, completed: 0 }, ...infoOf(role, modelOf((model ?? last).split("/"))) },
    parts: parts.map((part, at) => partOf(part, index, at)),
  }));
}

/** Returns the messages of a request with the changes of a plugin. What a plugin removes stays as a mark, because calls and answers must match. */
export function revisedMessages(after, before) {
  const byId = new Map(after.flatMap(({ parts }) => parts.map((part) => [part.id, part])));
  const known = new Set(before.flatMap(({ parts }, index) => parts.map((_part, at) => partId(index, at))));
  const revise = (part, id) => {
    const found = byId.get(id);
    if (part.type === "text") return { ...part, text: String(found?.text ?? "") };
    if (part.type !== "tool" || part.output === null) return part;
    return { ...part, output: found ? String(found.state?.output ?? found.state?.error ?? "") : "(removed)" };
  };
  const revised = before.map((message, index) => ({ ...message, parts: message.parts.map((part, at) => revise(part, partId(index, at))) }));
  const lastUser = revised.findLast(({ role }) => role === "user") ?? revised[0];
  for (const { info, parts } of after) {
    const own = revised.find((_message, index) => idOf("msg", index) === info?.id) ?? lastUser;
    for (const part of parts) if (!known.has(part.id) && part.type === "text" && part.text) own?.parts.push({ type: "text", text: String(part.text) });
  }
  return revised;
}
