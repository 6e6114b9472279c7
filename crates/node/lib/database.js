'use strict';

const { setTimeout: sleep } = require('node:timers/promises');
const native = require('./native.js');
const { runtime, Owner, call } = require('./calls.js');
const { bytes } = require('./bytes.js');
const { here, wrongType } = require('./errors.js');
const { INTERNAL, checkInternal, shownAs } = require('./internal.js');
const { number, ofTree, optionsOf, path, settings, string, syncOf } = require('./options.js');
const { Batch, WRITES } = require('./batch.js');
const { BulkLoad } = require('./bulk.js');
const { backup, long, withFaults } = require('./files.js');
const { Snapshot } = require('./snapshot.js');
const { Transaction } = require('./transaction.js');
const { Tree, report } = require('./tree.js');
const { WriteQueue } = require('./writes.js');

/** Codes after which the same transaction can succeed. */
const RETRIED = new Set(['Conflict', 'Deadlock', 'LockTimeout']);
/** The longest pause before a retry, ms. */
const PAUSE_MAX = 100;

/** An open database. */
class Db {
  #native;
  #path;
  #owner;
  #writes;
  #closing = undefined;

  constructor(token, opened, directory, owner) {
    checkInternal(token, 'database', 'open(path)');
    this.#native = opened;
    this.#path = directory;
    this.#owner = owner;
    this.#writes = new WriteQueue(opened, owner);
  }

  get path() {
    return this.#path;
  }

  get closed() {
    return this.#closing !== undefined;
  }

  // --- Trees ---

  tree(name, options) {
    return this.#tree('either', name, options);
  }

  createTree(name, options) {
    return this.#tree('create', name, options);
  }

  openTree(name) {
    return this.#tree('open', name);
  }

  listTrees() {
    return here(() => this.#native.listTrees());
  }

  renameTree(from, to) {
    return this.#call((ticket) =>
      this.#native.renameTree(runtime, ticket, string('from', from), string('to', to)),
    );
  }

  dropTree(name) {
    return this.#call((ticket) => this.#native.dropTree(runtime, ticket, string('name', name)));
  }

  // --- Reads and writes of several trees ---

  batch() {
    this.#owner.check();
    return new Batch(INTERNAL, this.#owner);
  }

  async write(batch, options) {
    const writes = this.#writesOf(batch);
    if (writes.length === 0) return undefined;
    return this.#writes.add(options, (all) => all.addAll(writes));
  }

  writeSync(batch, options) {
    const { bytes: arena, numbers, trees } = this.#writesOf(batch);
    const sync = syncOf(options);
    here(() => this.#native.commitHere(trees, new Uint32Array(numbers), arena.bytes(), sync));
  }

  begin(options) {
    const { isolation = 'repeatable-read', snapshotIsolation = false, lockTimeout } =
      optionsOf(options);
    const timeout = number('lockTimeout', lockTimeout, 10_000);
    const sync = syncOf(options);
    this.#owner.check();
    const begun = here(() =>
      this.#native.begin(string('the option isolation', isolation), Boolean(snapshotIsolation), timeout, sync),
    );
    // Writes that wait for a commit must not wait for one that may wait for this transaction.
    this.#writes.start();
    return new Transaction(INTERNAL, begun, this.#owner);
  }

  async transaction(body, options) {
    if (typeof body !== 'function') throw wrongType('body', 'a function', body);
    const { retries: given, ...others } = optionsOf(options);
    const retries = number('retries', given, 0);
    for (let attempt = 0; ; attempt++) {
      const transaction = this.begin(others);
      try {
        const result = await body(transaction);
        if (!transaction.ended) await transaction.commit();
        return result;
      } catch (error) {
        // The error of the body says what happened; that of the rollback has nothing to add.
        if (!transaction.ended) await transaction.rollback().catch(() => {});
        if (attempt >= retries || !RETRIED.has(error?.code)) throw error;
      }
      await sleep(Math.random() * Math.min(2 ** attempt, PAUSE_MAX));
    }
  }

  snapshot() {
    this.#owner.check();
    return new Snapshot(INTERNAL, here(() => this.#native.snapshot()));
  }

  async bulkLoad(options) {
    const { duplicates = 'replace', memory, lockTimeout } = optionsOf(options);
    const timeout = number('lockTimeout', lockTimeout, 60_000);
    const sync = syncOf(options);
    const load = await this.#call((ticket) =>
      this.#native.bulkLoad(
        runtime, ticket, string('the option duplicates', duplicates), number('memory', memory, 0), sync, timeout,
      ),
    );
    return new BulkLoad(INTERNAL, load, this.#owner, this.#writes);
  }

  // --- Prepared transactions ---

  prepared() {
    return here(() => this.#native.prepared());
  }

  commitPrepared(xid, options) {
    return this.#call((ticket) =>
      this.#native.commitPrepared(runtime, ticket, bytes(xid, 'xid'), syncOf(options)),
    );
  }

  rollbackPrepared(xid) {
    return this.#call((ticket) => this.#native.rollbackPrepared(runtime, ticket, bytes(xid, 'xid')));
  }

  // --- Maintenance ---

  sync() {
    return this.#maintain('sync');
  }

  flush() {
    return this.#maintain('flush');
  }

  checkpoint() {
    return this.#maintain('checkpoint');
  }

  waitSettled() {
    return this.#maintain('waitSettled');
  }

  verify(options) {
    const start = (ticket, told) => this.#native.verify(runtime, ticket, told);
    return long(this.#owner, options, start, withFaults);
  }

  async backup(to, options) {
    const { since, bytesPerSecond, fileMode } = optionsOf(options);
    const directory = path('to', to);
    const before = since === undefined ? undefined : path('since', since);
    const rate = number('bytesPerSecond', bytesPerSecond, 0);
    const start = (ticket, told) =>
      this.#native.backup(runtime, ticket, told, directory, before, rate, fileMode);
    return long(this.#owner, options, start, (content) => backup(report(content)));
  }

  get memory() {
    return this.#native.memory;
  }

  setMemory(memory) {
    const size = number('memory', memory, 0);
    return this.#call((ticket) => this.#native.setMemory(runtime, ticket, size));
  }

  stats() {
    return here(() => this.#native.stats());
  }

  prometheus() {
    return here(() => this.#native.prometheus());
  }

  // --- The end ---

  close() {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {
    return this.close();
  }

  async #close() {
    this.#owner.isClosing = true;
    this.#native.cancelTransactions();
    await this.#writes.settle();
    await this.#owner.settle();
    if (!this.#native.end()) return;
    const last = new Owner();
    await call(last, (ticket) => this.#native.close(runtime, ticket));
  }

  async #tree(how, name, options) {
    const tree = await this.#call((ticket) =>
      this.#native.tree(runtime, ticket, how, string('name', name), ...ofTree(options)),
    );
    return new Tree(INTERNAL, tree, this.#owner, this.#writes);
  }

  #writesOf(batch) {
    if (!(batch instanceof Batch)) throw wrongType('batch', 'a Batch', batch);
    this.#owner.check();
    return batch[WRITES];
  }

  #maintain(what) {
    return this.#call((ticket) => this.#native.maintain(runtime, ticket, what));
  }

  #call(start, convert) {
    return call(this.#owner, start, convert);
  }
}

shownAs(Db, ({ path: directory, closed }) => ({ path: directory, closed }));

/** Opens the database in a directory, and creates it if there is none. */
async function open(directory, options) {
  const { memory, commitSync = true } = optionsOf(options);
  if (typeof commitSync !== 'boolean') throw wrongType('the option commitSync', 'a boolean', commitSync);
  const where = path('path', directory);
  const named = settings({ ...options, memoryBytes: memory ?? options?.memoryBytes }, ['memory', 'commitSync']);
  const owner = new Owner();
  const opened = await call(owner, (ticket) => native.open(runtime, ticket, where, named, commitSync));
  return new Db(INTERNAL, opened, where, owner);
}

module.exports = { Db, open };
