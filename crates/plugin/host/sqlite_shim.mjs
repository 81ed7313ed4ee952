// The module `bun:sqlite` for plugins that run on Node, over `node:sqlite`.

import { createRequire } from "node:module";

/** Returns Bun's `Database` over the SQLite of Node, which exists from 22.5 on. */
export function sqliteModule() {
  const open = (name, options) => {
    let sqlite;
    try {
      sqlite = createRequire(import.meta.url)("node:sqlite");
    } catch {
      throw new Error("bun:sqlite needs Bun, or Node 22.13 or newer");
    }
    return new sqlite.DatabaseSync(name, options);
  };
  const value = (one) => (one === undefined ? null : typeof one === "boolean" ? Number(one) : one);
  const bound = (given) => given.flat().map((one) => (one && Object.getPrototypeOf(one) === Object.prototype ? Object.fromEntries(Object.entries(one).map(([key, inner]) => [key, value(inner)])) : value(one)));
  const plainRow = (row) => (row === undefined ? null : { ...row });
  class Statement {
    constructor(inner, text) {
      Object.assign(this, { inner, text });
    }
    all = (...given) => this.inner.all(...bound(given)).map(plainRow);
    get = (...given) => plainRow(this.inner.get(...bound(given)));
    run = (...given) => this.inner.run(...bound(given));
    values = (...given) => this.inner.all(...bound(given)).map((row) => Object.values(row));
    *iterate(...given) {
      for (const row of this.inner.iterate(...bound(given))) yield plainRow(row);
    }
    finalize() {}
    toString = () => this.text;
  }
  class Database {
    constructor(filename = ":memory:", options = {}) {
      this.filename = filename || ":memory:";
      this.inner = open(this.filename, { readOnly: options?.readonly === true });
      this.depth = 0;
    }
    static open = (filename, options) => new Database(filename, options);
    prepare = (text) => new Statement(this.inner.prepare(text), text);
    query = (text) => this.prepare(text);
    run = (text, ...given) => (given.length ? this.prepare(text).run(...given) : this.inner.exec(text));
    exec = (text, ...given) => this.run(text, ...given);
    close = () => this.inner.close();
    get inTransaction() {
      return this.depth > 0;
    }
    transaction(body) {
      const wrapped = (begin) => (...given) => {
        const [start, commit, undo] = this.depth ? [`SAVEPOINT s${this.depth}`, `RELEASE s${this.depth}`, `ROLLBACK TO s${this.depth}`] : [begin, "COMMIT", "ROLLBACK"];
        this.inner.exec(start);
        this.depth += 1;
        try {
          const result = body(...given);
          this.inner.exec(commit);
          return result;
        } catch (error) {
          this.inner.exec(undo);
          throw error;
        } finally {
          this.depth -= 1;
        }
      };
      const kinds = ["deferred", "immediate", "exclusive"].map((kind) => [kind, wrapped(`BEGIN ${kind.toUpperCase()}`)]);
      return Object.assign(wrapped("BEGIN"), Object.fromEntries(kinds));
    }
  }
  return { Database, Statement, constants: {}, default: Database };
}
