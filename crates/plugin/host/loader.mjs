// Loads the modules of a tool file: provides `@opencode-ai/plugin`, `zod` and Bun's modules if they are not installed,
// runs compiled TypeScript, and keeps a project's files to what the user trusted. Start reading at `installShims`.

import fs from "node:fs";
import path from "node:path";
import module, { createRequire } from "node:module";
import { createHash } from "node:crypto";
import { addMetaFields, bunModules, createBun } from "./bun_shim.mjs";
import { ValidationError, Type, escapeRegExp, tool, z } from "./schema.mjs";

/** Returns the message of a thrown value, without its stack. */
export function messageOf(error) {
  try {
    const cause = error?.cause?.message ? ` (${error.cause.message})` : "";
    const text = typeof error === "string" ? error : error?.message ? `${error.message}${cause}` : error?.name ?? String(error);
    return String(text).slice(0, 65536) || "it failed without a message";
  } catch {
    return "it threw something that cannot be read";
  }
}

export const isBun = Boolean(process.versions.bun);
const MAX_SCANNED = 8 * 1024 * 1024;
const shimmed = { addMetaFields };
globalThis[Symbol.for("windlass.shim")] = shimmed;

function shimUrl(name, exports) {
  shimmed[name] = exports;
  const lines = Object.keys(exports).map((key, at) => `const x${at} = own[${JSON.stringify(key)}]; export { x${at} as ${key} };`);
  return `data:text/javascript,${encodeURIComponent(`const own = globalThis[Symbol.for("windlass.shim")][${JSON.stringify(name)}]; ${lines.join("")}`)}`;
}

/** Returns the specifiers to try, in order: as written, then with the extensions that bun adds, then the shim. Bun's modules are never looked for, and a project's files get each shim first, because a model may write in node_modules. */
function candidates(specifier, shims, isProject) {
  const isOwn = isProject ? !specifier.startsWith(".") : /^bun(:|$)/.test(specifier);
  if (isOwn && Object.hasOwn(shims, specifier)) return [shims[specifier]];
  const withExtension = /^\.{1,2}\//.test(specifier) ? [".ts", ".js", ".mjs", "/index.ts", "/index.js"].map((end) => specifier + end) : [];
  const typed = withExtension.length && specifier.endsWith(".js") ? [specifier.replace(/js$/, "ts")] : [];
  return [specifier, ...typed, ...withExtension, ...(Object.hasOwn(shims, specifier) ? [shims[specifier]] : [])];
}

export function installShims(file, compiled) {
  const types = { Plugin: undefined, PluginInput: undefined, Hooks: undefined, ToolContext: undefined, ToolDefinition: undefined, ToolResult: undefined };
  const isProject = /\/\.(windlass|opencode)\//.test(file);
  const plugin = { tool, ...types };
  const zod = { ...z, z, default: z, ZodError: ValidationError, ZodType: Type };
  const defined = { Tool: { define: (id, init) => ({ id, init }) }, ...types };
  const bun = isBun ? undefined : createBun();
  const forms = { "@opencode-ai/plugin": plugin, "@opencode-ai/plugin/tool": plugin, zod, "zod/v4": zod, "zod/v3": zod, "../tool": defined, "./tool": defined, "../tool/tool": defined, ...(bun && bunModules(bun)) };
  if (isBun) {
    if (file.includes("/.opencode/")) throw new Error(`${path.basename(file)} needs Node, because Bun cannot keep it to what you trusted`);
    const missing = Object.keys(forms).filter((name) => !name.startsWith(".") && !succeeds(() => Bun.resolveSync(name, path.dirname(file))));
    return Bun.plugin({ name: "windlass", setup: (build) => missing.forEach((name) => build.module(name, () => ({ exports: forms[name], loader: "object" }))) });
  }
  globalThis.Bun = bun;
  const { _load: load } = module;
  module._load = function (name, ...rest) {
    const resolve = () => createRequire(rest[0]?.filename ?? file).resolve(name);
    const isOwn = isProject ? !name.startsWith(".") : /^bun(:|$)/.test(name);
    const own = Object.hasOwn(forms, name) && (isOwn || !succeeds(() => resolve()));
    const parent = rest[0]?.filename ?? file;
    if (!own && !module.isBuiltin(name) && succeeds(() => isUntrusted(fs.realpathSync(resolve()), parent))) throw new Error(untrusted(name));
    return own ? forms[name] : load.call(this, name, ...rest);
  };
  const shims = Object.fromEntries(Object.entries(forms).map(([name, exports]) => [name, shimUrl(name, exports)]));
  if (compiled) process.setSourceMapsEnabled?.(true);
  // Before Node 24, these hooks break CommonJS packages: "request for './index.js' is not in cache".
  if (module.registerHooks && Number(process.versions.node.split(".")[0]) >= 24) {
    const load = (url, context, next) => textModule(url, context, fs) ?? compiledModule(url, compiled, fs, createHash) ?? withMetaFields(next(url, context), url);
    return void module.registerHooks({ resolve: (specifier, context, next) => resolveHere(specifier, context, next, shims, isProject), load });
  }
  // The thread of these hooks costs at least 20 ms, so a plain file without imports does not get one.
  if (!compiled && !/\b(import|from|require)\b/.test(fs.readFileSync(file, "utf8").slice(0, MAX_SCANNED))) return;
  module.register(`data:text/javascript,${encodeURIComponent(`import fs from "node:fs"; import { createHash } from "node:crypto";
    ${candidates} ${textModule} ${compiledModule} ${withMetaFields} ${isUntrusted} ${untrusted} const isProject = ${isProject}, shims = ${JSON.stringify(shims)}, compiled = ${JSON.stringify(compiled ?? null)};
    export async function resolve(specifier, context, next) {
      let first;
      for (const one of candidates(specifier, shims, isProject)) try {
        const found = await next(one, context);
        if (!isUntrusted(found.url, context.parentURL)) return found;
        first ??= new Error(untrusted(specifier));
      } catch (error) { first ??= error; }
      throw first;
    }
    export async function load(url, context, next) {
      return textModule(url, context, fs) ?? compiledModule(url, compiled, fs, createHash) ?? withMetaFields(await next(url, context), url);
    }`)}`);
}

/** Returns the JavaScript of a TypeScript file; undefined for other files, and for those that were not compiled. */
function compiledModule(url, compiled, fs, createHash) {
  if (!compiled || !/^file:.*\.m?ts$/.test(url)) return;
  try {
    const digest = createHash("sha256").update(fs.readFileSync(new URL(url))).digest("hex");
    const { code } = JSON.parse(fs.readFileSync(`${compiled}/${digest}.json`, "utf8"));
    return withMetaFields({ format: "module", shortCircuit: true, source: code }, url);
  } catch {}
}

/** Returns a module whose `import.meta` has Bun's fields if its text names one of them. They are set on the first line, so that source maps stay right. */
function withMetaFields(loaded, url) {
  if (loaded.format !== "module" || !url.startsWith("file:") || !loaded.source) return loaded;
  const text = typeof loaded.source === "string" ? loaded.source : new TextDecoder().decode(loaded.source);
  if (!/import\.meta\.(dir|dirname|path|filename|file|main|env|require)\b/.test(text)) return loaded;
  return { ...loaded, source: `globalThis[Symbol.for("windlass.shim")].addMetaFields(import.meta); ${text.replace(/^#!.*/, "")}` };
}

/** Returns the module of a file that Bun imports as text or as JSON, without an attribute. */
function textModule(url, context, fs) {
  const type = context.importAttributes?.type;
  const isText = type === "text" || (!type && /^file:.*\.txt$/.test(url));
  if (!isText && (type || !/^file:.*\.json$/.test(url) || context.conditions?.includes("require"))) return;
  const text = JSON.stringify(fs.readFileSync(new URL(url), "utf8"));
  return { format: "module", shortCircuit: true, source: `export default ${isText ? text : `JSON.parse(${text})`};` };
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
export function loadFailure(file, error) {
  const name = path.basename(file);
  if (error?.code === "ERR_UNKNOWN_FILE_EXTENSION") return `${name} could not be loaded: it imports a TypeScript file that was not compiled; import TypeScript from TypeScript files, by relative paths`;
  if (/Cannot find package '@opentui\//.test(error?.message)) return `${name} could not be loaded: it seems to be a plugin for OpenCode's terminal interface, which Windlass does not have`;
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
  return isBun ? "" : String(spawnSync(process.execPath, [...process.execArgv, "--check", file], { stdio: ["ignore", "ignore", "pipe"], timeout: 2000, maxBuffer: 65536 }).stderr);
}
