// Schemas: a subset of zod for files without an installed zod, and the conversion of its schemas and those of zod 3 and
// zod 4 to JSON Schema (2020-12). Nothing here reads a pipe or a file. Start reading at `schemaOf`.

import fs from "node:fs";

const MAX_NODES = 5000;
const MAX_DEPTH = 32;
const { parse, stringify } = JSON;
const note = (text) => fs.writeSync(2, `host: ${text}\n`);
const nameOf = (value) => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);
const plain = (value) => nameOf(value) === "object";
const put = (object, key, value) => Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });

class ValidationError extends Error {
  constructor(issues) {
    super(issues.map(({ path, message }) => (path.length ? `${path.join(".")}: ${message}` : message)).join("; "));
    this.name = "ZodError";
    this.issues = this.errors = issues;
  }
}

const typeError = (expected) => (value, tell) => (tell(`expected ${expected}, got ${nameOf(value)}`), value);
const only = (expected, fits) => (_def, value, tell) => (fits(value) ? value : typeError(expected)(value, tell));
const safe = (value) => (typeof value === "bigint" ? Number(value) : value);
const choices = (entries) => Object.entries(entries).filter(([key]) => !Object.values(entries).some((value) => typeof value === "number" && String(value) === key)).map(([, value]) => value);

/** Parsers by kind of schema. `tell` reports a problem; `into` parses a part of the value. */
const PARSERS = {
  string: only("string", (value) => typeof value === "string"),
  number: only("number", (value) => typeof value === "number" && Number.isFinite(value)),
  boolean: only("boolean", (value) => typeof value === "boolean"),
  null: only("null", (value) => value === null),
  undefined: only("nothing", (value) => value === undefined),
  never: only("nothing", () => false),
  any: (_def, value) => value,
  bigint(_def, value, tell) {
    if (typeof value === "bigint") return value;
    return Number.isSafeInteger(value) || /^-?\d{1,4096}$/.test(typeof value === "string" ? value : "") ? BigInt(value) : typeError("integer")(value, tell);
  },
  date(_def, value, tell) {
    const date = typeof value === "string" || value instanceof Date ? new Date(value) : null;
    return date && !Number.isNaN(date.getTime()) ? date : typeError("date, as 2026-01-31T12:00:00Z")(value, tell);
  },
  literal: ({ values }, value, tell) => (values.includes(value) ? value : (tell(`must be ${values.map(safe).map((one) => stringify(one)).join(" or ")}`), value)),
  enum: ({ entries }, value, tell) => (choices(entries).includes(value) ? value : (tell(`must be one of ${choices(entries).map((one) => stringify(one)).join(", ")}`), value)),
  optional: ({ innerType }, value, _tell, into) => (value === undefined ? value : into(innerType, value)),
  nullable: ({ innerType }, value, _tell, into) => (value === null ? value : into(innerType, value)),
  default: ({ innerType, make }, value, _tell, into) => (value === undefined ? make() : into(innerType, value)),
  catch({ innerType, make }, value) {
    const read = innerType.safeParse(value);
    return read.success ? read.data : make();
  },
  array: ({ element }, value, tell, into) => (Array.isArray(value) ? value.map((one, at) => into(element, one, at)) : typeError("array")(value, tell)),
  tuple({ items, rest }, value, tell, into) {
    if (!Array.isArray(value)) return typeError("array")(value, tell);
    const minItems = items.findLastIndex((item) => !isOmittable(item)) + 1;
    if (value.length < minItems || (!rest && value.length > items.length)) return tell(`expected ${items.length} items, got ${value.length}`), value;
    return value.map((one, at) => into(items[at] ?? rest, one, at));
  },
  object({ shape, catchall }, value, tell, into) {
    if (!plain(value)) return typeError("object")(value, tell);
    const result = {};
    for (const [key, type] of Object.entries(shape)) {
      const read = into(type, Object.hasOwn(value, key) ? value[key] : undefined, key);
      if (read !== undefined || Object.hasOwn(value, key)) put(result, key, read);
    }
    const others = Object.keys(value).filter((key) => !Object.hasOwn(shape, key));
    if (catchall?._def.type === "never" && others.length) tell(`has unknown keys: ${others.join(", ")}`);
    else if (catchall) for (const key of others) put(result, key, into(catchall, value[key], key));
    return result;
  },
  record({ keyType, valueType }, value, tell, into) {
    if (!plain(value)) return typeError("object")(value, tell);
    const result = {};
    for (const [key, one] of Object.entries(value)) put(result, into(keyType, key, key), into(valueType, one, key));
    if (keyType._def.type === "enum") for (const key of choices(keyType._def.entries)) if (!Object.hasOwn(result, key)) put(result, key, into(valueType, undefined, key));
    return result;
  },
  union({ options }, value, tell) {
    const messages = [];
    for (const option of options) {
      const read = option.safeParse(value);
      if (read.success) return read.data;
      messages.push(new ValidationError(read.error.issues).message);
    }
    return tell(`fits none of its ${options.length} forms (${messages.join(" | ")})`), value;
  },
  intersection({ left, right }, value, _tell, into) {
    const [a, b] = [into(left, value), into(right, value)];
    return plain(a) && plain(b) ? { ...a, ...b } : b;
  },
  pipe: ({ in: first, out }, value, _tell, into) => into(out, into(first, value)),
  lazy: ({ getter }, value, _tell, into) => into(getter(), value),
};

function read(type, value, at, issues) {
  if (!(type instanceof Type)) {
    const parsed = type.safeParse(value);
    if (!parsed.success) issues.push(...parsed.error.issues.map((issue) => ({ ...issue, path: [...at, ...issue.path] })));
    return parsed.data;
  }
  const { _def: def } = type;
  const before = issues.length;
  const tell = (message) => issues.push({ code: "custom", path: at, message });
  const into = (inner, part, key) => read(inner, part, key === undefined ? at : [...at, key], issues);
  let result = PARSERS[def.type](def, def.coerce ? def.coerce(value) : value, tell, into);
  for (const step of def.steps) if (issues.length === before) result = step(result, tell);
  return result;
}

const PATTERNS = {
  email: /^[^\s@.]+(\.[^\s@.]+)*@[^\s@.]+(\.[^\s@.]+)+$/,
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  datetime: /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?Z$/,
  date: /^\d{4}-\d\d-\d\d$/,
};

class Type {
  constructor(def) {
    this._def = { steps: [], bag: {}, ...def };
  }
  get description() { return this._def.description; }
  get shape() { return this._def.shape; }
  get element() { return this._def.element; }
  get options() { return this._def.type === "enum" ? choices(this._def.entries) : this._def.options; }
  get enum() { return this._def.entries; }
  with(more) { return new Type({ ...this._def, ...more }); }
  step(step, bag) { return this.with({ steps: [...this._def.steps, step], bag: { ...this._def.bag, ...bag } }); }
  /** Adds a check that JSON Schema can express too. */
  check(holds, message, bag) {
    return this.step((value, tell) => (holds(value) || tell(message), value), bag);
  }
  need(method, ...kinds) {
    if (!kinds.includes(this._def.type)) throw new TypeError(`a schema of kind ${this._def.type} has no ${method}()`);
    return this._def.type;
  }
  bound(method, limit, side, holds, words, given) {
    const kind = this.need(method, "string", "array", "number", "bigint", "date");
    const isSized = kind === "string" || kind === "array";
    const unit = kind === "string" ? " characters" : kind === "array" ? " items" : "";
    const says = typeof given === "string" ? given : given?.message ?? `must ${isSized ? "have" : "be"} ${words} ${limit instanceof Date ? limit.toISOString() : limit}${unit}`;
    return this.check((value) => holds(isSized ? value.length : value, limit), says, kind === "date" ? {} : { [side]: safe(limit) });
  }

  describe(description) { return this.with({ description }); }
  meta(meta) { return meta === undefined ? { description: this.description } : this.with({ description: meta.description ?? this.description }); }
  optional() { return new Type({ type: "optional", innerType: this }); }
  nullable() { return new Type({ type: "nullable", innerType: this }); }
  nullish() { return this.nullable().optional(); }
  default(value) { return new Type({ type: "default", innerType: this, make: typeof value === "function" ? value : () => structuredClone(value) }); }
  prefault(value) { return this.default(value); }
  catch(value) { return new Type({ type: "catch", innerType: this, make: typeof value === "function" ? value : () => structuredClone(value) }); }
  array() { return z.array(this); }
  or(other) { return z.union([this, other]); }
  and(other) { return z.intersection(this, other); }
  pipe(out) { return new Type({ type: "pipe", in: this, out }); }
  brand() { return this; }
  readonly() { return this; }
  unwrap() { return this._def.innerType ?? this; }

  min(n, says) { return this.bound("min", n, "minimum", (value, limit) => value >= limit, "at least", says); }
  max(n, says) { return this.bound("max", n, "maximum", (value, limit) => value <= limit, "at most", says); }
  gte(n, says) { return this.min(n, says); }
  lte(n, says) { return this.max(n, says); }
  gt(n, says) { return this.bound("gt", n, "exclusiveMinimum", (value, limit) => value > limit, "more than", says); }
  lt(n, says) { return this.bound("lt", n, "exclusiveMaximum", (value, limit) => value < limit, "less than", says); }
  positive(says) { return this.gt(0, says); }
  negative(says) { return this.lt(0, says); }
  nonnegative(says) { return this.min(0, says); }
  nonpositive(says) { return this.max(0, says); }
  length(n, says) { return this.min(n, says).max(n, says); }
  nonempty(says) { return this.min(1, says); }
  int() { return this.need("int", "number"), this.check(Number.isSafeInteger, "must be a whole number", { integer: true }); }
  finite() { return this; }
  safe() { return this.int(); }
  multipleOf(n) { return this.need("multipleOf", "number"), this.check((value) => Math.abs(value / n - Math.round(value / n)) < 1e-9, `must be a multiple of ${n}`, { multipleOf: n }); }

  regex(pattern, says) {
    this.need("regex", "string");
    const fits = (value) => new RegExp(pattern.source, pattern.flags.replace(/[gy]/g, "")).test(value);
    return this.check(fits, says?.message ?? says ?? `must match ${pattern}`, { patterns: [...(this._def.bag.patterns ?? []), pattern] });
  }
  format(name, says, fits = (value) => PATTERNS[name].test(value)) {
    return this.need(name, "string"), this.check(fits, says?.message ?? says ?? `must be a ${name}`, { format: name });
  }
  email(says) { return this.format("email", says); }
  uuid(says) { return this.format("uuid", says); }
  url(says) { return this.format("url", says, URL.canParse); }
  datetime(says) { return this.format("datetime", says?.message); }
  date(says) { return this.format("date", says); }
  startsWith(text) { return this.regex(new RegExp(`^${escapeRegExp(text)}`), `must start with ${text}`); }
  endsWith(text) { return this.regex(new RegExp(`${escapeRegExp(text)}$`), `must end with ${text}`); }
  includes(text) { return this.regex(new RegExp(escapeRegExp(text)), `must contain ${text}`); }
  trim() { return this.step((value) => value.trim()); }
  toLowerCase() { return this.step((value) => value.toLowerCase()); }
  toUpperCase() { return this.step((value) => value.toUpperCase()); }

  rest(rest) { return this.need("rest", "tuple"), this.with({ rest }); }
  strict() { return this.catchall(z.never()); }
  passthrough() { return this.catchall(z.unknown()); }
  loose() { return this.passthrough(); }
  strip() { return this.with({ catchall: undefined }); }
  catchall(catchall) { return this.need("catchall", "object"), this.with({ catchall }); }
  extend(shape) { return this.need("extend", "object"), this.with({ shape: { ...this.shape, ...shape } }); }
  merge(other) { return this.extend(other.shape); }
  pick(keys) { return this.with({ shape: Object.fromEntries(Object.entries(this.shape).filter(([key]) => keys[key])) }); }
  omit(keys) { return this.with({ shape: Object.fromEntries(Object.entries(this.shape).filter(([key]) => !keys[key])) }); }
  partial(keys) { return this.with({ shape: Object.fromEntries(Object.entries(this.shape).map(([key, type]) => [key, !keys || keys[key] ? type.optional() : type])) }); }
  required() { return this.with({ shape: Object.fromEntries(Object.entries(this.shape).map(([key, type]) => [key, type._def.type === "optional" ? type.unwrap() : type])) }); }
  keyof() { return z.enum(Object.keys(this.shape)); }

  refine(holds, says) { return noteUnsupported("refine"), this.check(holds, (typeof says === "string" ? says : says?.message) ?? "is not valid"); }
  superRefine(look) { return noteUnsupported("superRefine"), this.step((value, tell) => (look(value, { addIssue: (issue) => tell(issue.message ?? issue), path: [] }), value)); }
  transform(change) { return noteUnsupported("transform"), this.step((value, tell) => change(value, { addIssue: (issue) => tell(issue.message ?? issue) })); }

  safeParse(value) {
    const issues = [];
    const data = read(this, value, [], issues);
    return issues.length ? { success: false, error: new ValidationError(issues) } : { success: true, data };
  }
  parse(value) {
    const { success, data, error } = this.safeParse(value);
    if (!success) throw error;
    return data;
  }
  async safeParseAsync(value) { return this.safeParse(value); }
  async parseAsync(value) { return this.parse(value); }
  isOptional() { return isOmittable(this); }
  json() { return schemaOf(this); }
  toJSONSchema() { return schemaOf(this); }
}

const escapeRegExp = (text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
const notedTexts = new Set();
const noteOnce = (text) => notedTexts.has(text) || (notedTexts.add(text), note(text));
const noteUnsupported = (method) => noteOnce(`${method}() is checked before the tool runs, but the schema for the model cannot express it`);
const newType = (type, more) => new Type({ type, ...more });
const object = (shape = {}, catchall) => newType("object", { shape, catchall });
const z = {
  string: () => newType("string"), number: () => newType("number"), boolean: () => newType("boolean"), bigint: () => newType("bigint"), date: () => newType("date"),
  int: () => newType("number").int(), null: () => newType("null"), undefined: () => newType("undefined"), void: () => newType("undefined"),
  any: () => newType("any"), unknown: () => newType("any"), never: () => newType("never"), custom: (holds) => (holds ? newType("any").refine(holds) : newType("any")),
  email: () => z.string().email(), url: () => z.string().url(), uuid: () => z.string().uuid(),
  literal: (value) => newType("literal", { values: [value].flat() }),
  enum: (values) => newType("enum", { entries: Array.isArray(values) ? Object.fromEntries(values.map((value) => [value, value])) : values }),
  nativeEnum: (values) => z.enum(values),
  array: (element) => newType("array", { element }), tuple: (items, rest) => newType("tuple", { items, rest }),
  object: (shape) => object(shape), strictObject: (shape) => object(shape, z.never()), looseObject: (shape) => object(shape, z.unknown()),
  record: (keyType, valueType) => newType("record", valueType ? { keyType, valueType } : { keyType: z.string(), valueType: keyType }),
  union: (options) => newType("union", { options }), discriminatedUnion: (_key, options) => newType("union", { options }),
  intersection: (left, right) => newType("intersection", { left, right }), lazy: (getter) => newType("lazy", { getter }),
  optional: (type) => type.optional(), nullable: (type) => type.nullable(), nullish: (type) => type.nullish(),
  preprocess: (change, type) => newType("any").transform(change).pipe(type),
  coerce: {
    string: () => newType("string", { coerce: String }), number: () => newType("number", { coerce: Number }), boolean: () => newType("boolean", { coerce: Boolean }),
    date: () => newType("date", { coerce: (value) => (typeof value === "number" ? new Date(value) : value) }), bigint: () => newType("bigint"),
  },
};
const tool = (definition) => definition;
tool.schema = z;

/** Returns the definition and kind of a schema: our own, of zod 3 (`typeName`) or of zod 4 (`_zod`). */
function definitionOf(type) {
  const def = type._zod?.def ?? type._def;
  return { def, kind: def.typeName ? def.typeName.replace(/^Zod/, "").toLowerCase() : def.type };
}

/** Returns the bounds of a schema from any of these libraries. */
function bounds(type, def) {
  if (type instanceof Type) return def.bag;
  const bag = { patterns: [] };
  if (type._zod) {
    for (const check of [def, ...(def.checks ?? []).map((one) => one._zod.def)]) {
      const { check: kind, value, inclusive, minimum, maximum, length } = check;
      if (kind === "greater_than") bag[inclusive ? "minimum" : "exclusiveMinimum"] = value;
      else if (kind === "less_than") bag[inclusive ? "maximum" : "exclusiveMaximum"] = value;
      else if (kind === "multiple_of") bag.multipleOf = value;
      else if (kind === "number_format") bag.integer = /int/.test(check.format);
      else if (kind === "min_length") bag.minimum = minimum;
      else if (kind === "max_length") bag.maximum = maximum;
      else if (kind === "length_equals") bag.minimum = bag.maximum = length;
      else if (check.format in FORMATS) bag.format = check.format;
      else if (check.check === "string_format" && check.pattern) bag.patterns.push(check.pattern);
    }
    return bag;
  }
  for (const { kind, value, inclusive, regex } of def.checks ?? []) {
    if (kind === "min") bag[inclusive === false ? "exclusiveMinimum" : "minimum"] = value;
    else if (kind === "max") bag[inclusive === false ? "exclusiveMaximum" : "maximum"] = value;
    else if (kind === "length") bag.minimum = bag.maximum = value;
    else if (kind === "multipleOf") bag.multipleOf = value;
    else if (kind === "int") bag.integer = true;
    else if (kind === "regex") bag.patterns.push(regex);
    else if (kind === "startsWith") bag.patterns.push(new RegExp(`^${escapeRegExp(value)}`));
    else if (kind === "endsWith") bag.patterns.push(new RegExp(`${escapeRegExp(value)}$`));
    else if (kind === "includes") bag.patterns.push(new RegExp(escapeRegExp(value)));
    else if (kind in FORMATS) bag.format = kind;
  }
  if (def.exactLength) bag.minimum = bag.maximum = def.exactLength.value;
  if (def.minLength) bag.minimum = def.minLength.value;
  if (def.maxLength) bag.maximum = def.maxLength.value;
  return bag;
}

const FORMATS = { email: "email", url: "uri", uuid: "uuid", guid: "uuid", datetime: "date-time", date: "date", ipv4: "ipv4", ipv6: "ipv6" };
const countLimits = (unit, { minimum, maximum }) => ({ ...(minimum > 0 && { [`min${unit}`]: minimum }), ...(maximum !== undefined && { [`max${unit}`]: maximum }) });
const pick = (bag, ...keys) => Object.fromEntries(keys.filter((key) => bag[key] !== undefined && Math.abs(safe(bag[key])) < Number.MAX_SAFE_INTEGER).map((key) => [key, safe(bag[key])]));
const numberSchema = (bag) => ({ type: bag.integer ? "integer" : "number", ...pick(bag, "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf") });
const innerSchema = (def, _bag, inner) => inner(def.innerType ?? def.type ?? def.schema);
function enumSchema(values) {
  const known = values.filter((value) => value !== undefined).map(safe);
  const [kind, ...others] = new Set(known.map(nameOf));
  return { ...(kind && !others.length && { type: kind }), ...(known.length === 1 ? { const: known[0] } : { enum: known }) };
}
function stringSchema(bag) {
  const [first, ...others] = (bag.patterns ?? []).filter(({ flags }) => !/[ims]/.test(flags)).map(({ source }) => source);
  const all = others.map((pattern) => ({ pattern }));
  return { type: "string", ...countLimits("Length", bag), ...(bag.format && { format: FORMATS[bag.format] }), ...(first && { pattern: first }), ...(all.length && { allOf: all }) };
}
function withDefault(def, _bag, inner) {
  const value = def.make ? def.make() : typeof def.defaultValue === "function" ? def.defaultValue() : def.defaultValue;
  try {
    return { ...inner(def.innerType), ...(stringify(value) !== undefined && { default: parse(stringify(value)) }) };
  } catch {
    return inner(def.innerType);
  }
}

/** JSON Schema (2020-12) of each kind; a kind that is missing here allows any value. */
const SCHEMAS = {
  string: (_def, bag) => stringSchema(bag), number: (_def, bag) => numberSchema(bag), bigint: (_def, bag) => numberSchema({ ...bag, integer: true }),
  boolean: () => ({ type: "boolean" }), null: () => ({ type: "null" }), date: () => ({ type: "string", format: "date-time" }),
  any: () => ({}), unknown: () => ({}), undefined: () => ({ not: {} }), void: () => ({ not: {} }), never: () => ({ not: {} }),
  literal: (def) => enumSchema(def.values ?? [def.value]), enum: (def) => enumSchema(def.values ?? choices(def.entries)), nativeenum: (def) => enumSchema(choices(def.values)),
  array: (def, bag, inner) => ({ type: "array", ...countLimits("Items", bag), items: inner(def.element ?? def.type) }),
  tuple: ({ items, rest }, _bag, inner) => ({ type: "array", prefixItems: items.map(inner), items: rest ? inner(rest) : false, minItems: items.findLastIndex((item) => !isOmittable(item)) + 1 }),
  object(def, _bag, inner) {
    const shape = typeof def.shape === "function" ? def.shape() : def.shape;
    const other = def.unknownKeys === "strict" || (def.catchall && definitionOf(def.catchall).kind === "never" && !def.unknownKeys) ? false : undefined;
    const required = Object.keys(shape).filter((key) => !isOmittable(shape[key]));
    const properties = Object.entries(shape).reduce((result, [key, type]) => put(result, key, inner(type)), {});
    const open = def.catchall && !["never", "unknown", "any"].includes(definitionOf(def.catchall).kind) ? inner(def.catchall) : other;
    return { type: "object", properties, ...(required.length && { required }), ...(open !== undefined && { additionalProperties: open }) };
  },
  record(def, _bag, inner) {
    const names = inner(def.keyType);
    const exhaustive = !def.typeName && definitionOf(def.keyType).kind === "enum" && !isOmittable(def.valueType);
    return { type: "object", ...(Object.keys(names).length > 1 && { propertyNames: names }), additionalProperties: inner(def.valueType), ...(exhaustive && { required: [names.enum ?? names.const].flat() }) };
  },
  union: (def, _bag, inner) => ({ anyOf: [...def.options.values()].filter((option) => definitionOf(option).kind !== "undefined").map(inner) }),
  discriminatedunion: (def, bag, inner) => SCHEMAS.union(def, bag, inner),
  intersection: (def, _bag, inner) => ({ allOf: [inner(def.left), inner(def.right)] }),
  nullable: (def, _bag, inner) => ({ anyOf: [inner(def.innerType), { type: "null" }] }),
  default: withDefault, prefault: withDefault,
  optional: innerSchema, nonoptional: innerSchema, readonly: innerSchema, catch: innerSchema, branded: innerSchema, effects: (def, _bag, inner) => inner(def.schema),
  pipe: (def, _bag, inner) => inner(definitionOf(def.in).kind === "transform" ? def.out : def.in), pipeline: (def, _bag, inner) => inner(def.in),
  lazy: (def, _bag, inner) => inner(def.getter()),
};

function schemaOf(type, stack = [], budget = { left: MAX_NODES }) {
  if (stack.includes(type) || stack.length > MAX_DEPTH || budget.left-- <= 0) return noteOnce("a recursive schema allows any value at that point"), {};
  const { def, kind } = definitionOf(type);
  const inner = (part) => schemaOf(part, [...stack, type], budget);
  if (!SCHEMAS[kind]) return noteOnce(`the schema cannot express ${kind}; that part allows any value`), {};
  const result = SCHEMAS[kind](def, bounds(type, def), inner);
  return type.description ? { ...result, description: type.description } : result;
}

/** Returns true if a key may be missing. */
function isOmittable(type, depth = 0) {
  if (!type._def && !type._zod) return "default" in type;
  const { def, kind } = definitionOf(type);
  if (["optional", "default", "prefault", "catch", "undefined", "void"].includes(kind)) return true;
  if (depth > MAX_DEPTH) return false;
  if (kind === "union") return def.options.some((option) => isOmittable(option, depth + 1));
  const inner = { nullable: def.innerType, readonly: def.innerType, branded: def.type, effects: def.schema, pipe: def.in, pipeline: def.in }[kind];
  return inner ? isOmittable(inner, depth + 1) : false;
}

export { ValidationError, Type, escapeRegExp, nameOf, note, isOmittable, plain, put, schemaOf, tool, z };
