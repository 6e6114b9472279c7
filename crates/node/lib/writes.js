'use strict';

// Writes that are not committed yet, and the queue of calls that write. src/writes.rs is the other
// side.

const { runtime, begin } = require('./calls.js');
const { Arena } = require('./bytes.js');
const { fromText } = require('./errors.js');
const { syncOf } = require('./options.js');

// Kinds of writes, as in src/writes.rs.
const PUT = 0;
const DELETE = 1;
const DELETE_RANGE = 2;
const DELETE_FROM = 3;
const ADD = 4;

/** Bytes and calls after which a group takes no more calls. */
const BYTES_MAX = 4 << 20;
const CALLS_MAX = 8192;

/** Writes to any number of trees. */
class Writes {
  bytes = new Arena();
  /** Four numbers for each write: kind, tree, end of the key, end of the value. */
  numbers = [];
  trees = [];
  #last = undefined;
  #lastIndex = 0;

  get length() {
    return this.numbers.length / 4;
  }

  put(tree, key, value) {
    this.#add(PUT, tree, key, value);
  }

  delete(tree, key) {
    this.#add(DELETE, tree, key, '');
  }

  /** The bounds are those that lib/keys.js returns, without a prefix. */
  deleteRange(tree, lower = '', upper = undefined) {
    this.#add(upper === undefined ? DELETE_FROM : DELETE_RANGE, tree, lower, upper ?? '');
  }

  add(tree, key, number) {
    this.#add(ADD, tree, key, number);
  }

  #add(kind, tree, key, value) {
    const start = this.bytes.length;
    try {
      const keyEnd = this.bytes.append(key, 'key');
      const end = this.bytes.append(value, 'value');
      this.numbers.push(kind, this.#indexOf(tree), keyEnd, end);
    } catch (error) {
      this.bytes.length = start;
      throw error;
    }
  }

  /** Appends the writes of another. */
  addAll({ bytes, numbers, trees }) {
    const indexes = trees.map((tree) => this.#indexOf(tree));
    const start = this.bytes.length;
    this.bytes.append(bytes.bytes());
    for (let at = 0; at < numbers.length; at += 4) {
      const [kind, tree, keyEnd, end] = numbers.slice(at, at + 4);
      this.numbers.push(kind, indexes[tree], start + keyEnd, start + end);
    }
  }

  #indexOf(tree) {
    if (tree === this.#last) return this.#lastIndex;
    let index = this.trees.indexOf(tree);
    if (index < 0) index = this.trees.push(tree) - 1;
    this.#last = tree;
    this.#lastIndex = index;
    return index;
  }
}

/** Calls whose writes are committed together. */
class Group {
  writes = new Writes();
  /** The number of writes up to the end of each call. */
  calls = [];
  /** The two ends of the promise of each call; undefined once it has ended. */
  waiting = [];

  constructor(sync) {
    this.sync = sync;
  }

  get isFull() {
    return this.writes.bytes.length >= BYTES_MAX || this.calls.length >= CALLS_MAX;
  }

  end(call, error) {
    const [resolve, reject] = this.waiting.slice(call * 2, call * 2 + 2);
    if (resolve === undefined) return;
    this.waiting[call * 2] = this.waiting[call * 2 + 1] = undefined;
    if (error === undefined) resolve();
    else reject(error);
  }

  endAll(error) {
    for (let call = 0; call < this.calls.length; call++) this.end(call, error);
  }
}

/**
 * The calls of a database that write. While a commit runs, further calls collect in a group, which
 * the next commit takes. So a program that does not wait for each write pays for few syncs.
 */
class WriteQueue {
  #db;
  #owner;
  #groups = [];
  #committing = 0;
  #isScheduled = false;

  constructor(db, owner) {
    this.#db = db;
    this.#owner = owner;
  }

  /** Adds a call: `fill` adds its writes. Calls are committed in the order in which they were added. */
  add(options, fill) {
    return new Promise((resolve, reject) => {
      this.#owner.check();
      const group = this.#groupFor(options === undefined ? undefined : syncOf(options));
      fill(group.writes);
      group.calls.push(group.writes.length);
      group.waiting.push(resolve, reject);
      if (this.#isScheduled) return;
      this.#isScheduled = true;
      process.nextTick(() => {
        this.#isScheduled = false;
        this.start();
      });
    });
  }

  #groupFor(sync) {
    const last = this.#groups.at(-1);
    if (last !== undefined && last.sync === sync && !last.isFull) return last;
    const group = new Group(sync);
    this.#groups.push(group);
    return group;
  }

  /** Commits the next group, unless a commit runs that it should wait for. */
  start() {
    while (this.#groups.length > 0) {
      // While a transaction is active, a commit may wait for its lock, and the transaction for a
      // write that waits here.
      if (this.#committing > 0 && !this.#db.hasLocks) return;
      this.#commit(this.#groups.shift());
    }
  }

  #commit(group) {
    // `fill` of the only call has failed.
    if (group.calls.length === 0) return;
    let isApart = false;
    const end = () => {
      if (isApart) return;
      this.#committing--;
      this.start();
    };
    const done = (failures) => {
      for (let at = 0; at < failures.length; at += 2) {
        group.end(failures[at], fromText(failures[at + 1]));
      }
      group.endAll();
      end();
    };
    const failed = (error) => {
      group.endAll(error);
      end();
    };
    const part = ([call, text]) => group.end(call, text === '' ? undefined : fromText(text));
    this.#committing++;
    const { bytes, numbers, trees } = group.writes;
    const calls = new Uint32Array(group.calls);
    const start = (ticket) =>
      this.#db.commit(runtime, ticket, trees, new Uint32Array(numbers), calls, bytes.bytes(), group.sync);
    // An answer comes in a later operation of JavaScript, so the result is known before it.
    if (begin(this.#owner, start, done, failed, part) === true) {
      isApart = true;
      this.#committing--;
    }
  }

  /** Waits until all calls have ended. */
  async settle() {
    this.start();
    while (this.#groups.length > 0 || this.#committing > 0) {
      await this.#owner.settle();
      this.start();
    }
  }
}

module.exports = { Writes, WriteQueue };
