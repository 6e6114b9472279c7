'use strict';

const { runtime, call } = require('./calls.js');
const { bytes, strings, columnOf } = require('./bytes.js');
const { fromThrown, here } = require('./errors.js');
const { NATIVE, OWNER, checkInternal, hide, shownAs } = require('./internal.js');
const { keysOf, keysToDelete } = require('./keys.js');
const { number, optionsOf, settings, syncOf } = require('./options.js');
const { operand } = require('./counter.js');
const { Reads } = require('./reads.js');
const { KEYS, VALUES, ENTRIES, rangeOf } = require('./range.js');
const { snapshotOf } = require('./snapshot.js');

/** Values up to this size are copied here by the addon, which costs less than a buffer of its own. */
const SCRATCH_BYTES = 16 << 10;
const scratch = Buffer.allocUnsafeSlow(SCRATCH_BYTES);

/** Returns the bounds of a range as a pair: a prefix as the bounds of its keys. */
function boundsOf(native, range) {
  return native.bounds(...keysToDelete(range)).map((bound) => bound ?? undefined);
}

/** A tree of a database: an ordered index of keys with values. */
class Tree {
  #native;
  #owner;
  #writes;
  #reads;

  constructor(token, native, owner, writes) {
    checkInternal(token, 'tree', 'db.tree(name)');
    this.#native = native;
    this.#owner = owner;
    this.#writes = writes;
    this.#reads = new Reads(native, owner);
    hide(this, { [NATIVE]: native, [OWNER]: owner });
  }

  get name() {
    return this.#native.name;
  }

  // --- Reads ---

  get(key, options) {
    return this.#reads.get(key, options);
  }

  getSync(key, options) {
    const snapshot = options === undefined ? undefined : snapshotOf(optionsOf(options).snapshot);
    const wanted = bytes(key, 'key');
    try {
      const length = this.#native.getInto(wanted, scratch, snapshot);
      if (length < 0) return null;
      if (length > SCRATCH_BYTES) return this.#large(wanted, length, snapshot);
      const value = Buffer.allocUnsafe(length);
      scratch.copy(value, 0, 0, length);
      return value;
    } catch (error) {
      throw fromThrown(error);
    }
  }

  exists(key, options) {
    return this.#call((ticket) => {
      const snapshot = snapshotOf(optionsOf(options).snapshot);
      this.#native.existsLater(runtime, ticket, bytes(key, 'key'), snapshot);
    });
  }

  existsSync(key, options) {
    const snapshot = snapshotOf(optionsOf(options).snapshot);
    return here(() => this.#native.exists(bytes(key, 'key'), snapshot));
  }

  multiGet(keys, options) {
    return this.#call(
      (ticket) => {
        const snapshot = snapshotOf(optionsOf(options).snapshot);
        const [all, ends] = columnOf(keys, 'a key');
        this.#native.getMany(runtime, [ticket], Math.max(ends.length, 2), all, ends, snapshot);
      },
      (answer) => (Array.isArray(answer) ? strings(answer) : [answer]),
    );
  }

  entries(range) {
    return this.#rows(ENTRIES, range);
  }

  keys(range) {
    return this.#rows(KEYS, range);
  }

  values(range) {
    return this.#rows(VALUES, range);
  }

  [Symbol.asyncIterator]() {
    return this.entries()[Symbol.asyncIterator]();
  }

  first() {
    return this.#call((ticket) => this.#native.endRow(runtime, ticket, false));
  }

  last() {
    return this.#call((ticket) => this.#native.endRow(runtime, ticket, true));
  }

  estimate(range) {
    return this.#call((ticket) => this.#native.estimate(runtime, ticket, ...keysOf(range)), report);
  }

  stats() {
    return here(() => this.#native.stats());
  }

  // --- Writes ---

  put(key, value, options) {
    return this.#writes.add(options, (writes) => writes.put(this.#native, key, value));
  }

  putSync(key, value, options) {
    here(() => this.#native.put(bytes(key, 'key'), bytes(value, 'value'), syncOf(options)));
  }

  delete(key, options) {
    return this.#writes.add(options, (writes) => writes.delete(this.#native, key));
  }

  deleteSync(key, options) {
    here(() => this.#native.delete(bytes(key, 'key'), syncOf(options)));
  }

  async deleteRange(range, options) {
    const [lower, upper] = boundsOf(this.#native, range);
    return this.#writes.add(options, (writes) => writes.deleteRange(this.#native, lower, upper));
  }

  async clear(options) {
    return this.#writes.add(options, (writes) => writes.deleteRange(this.#native));
  }

  replace(key, value) {
    return this.#call((ticket) =>
      this.#native.replace(runtime, ticket, bytes(key, 'key'), bytes(value, 'value')),
    );
  }

  take(key) {
    return this.#call((ticket) => this.#native.replace(runtime, ticket, bytes(key, 'key'), undefined));
  }

  // --- Counters ---

  async add(key, number = 1, options = undefined) {
    const value = operand(number);
    return this.#writes.add(options, (writes) => writes.add(this.#native, key, value));
  }

  counter(key) {
    return this.#call((ticket) => this.#native.counter(runtime, ticket, bytes(key, 'key')));
  }

  // --- Options ---

  setOptions(options) {
    return this.#call((ticket) =>
      this.#native.setOptions(runtime, ticket, settings(optionsOf(options), [])),
    );
  }

  #call(start, convert) {
    return call(this.#owner, start, convert);
  }

  #rows(part, range) {
    const { reverse = false, limit, snapshot } = optionsOf(range);
    const keys = keysOf(range);
    const most = number('limit', limit, Infinity);
    const at = snapshotOf(snapshot);
    const native = this.#native;
    return rangeOf(this.#owner, part, () =>
      native.rows(part, Boolean(reverse), ...keys, most, at),
    );
  }

  /** Reads a value that does not fit `scratch`, which may have changed meanwhile. */
  #large(key, length, snapshot) {
    for (;;) {
      const value = Buffer.allocUnsafeSlow(length);
      const now = this.#native.getInto(key, value, snapshot);
      if (now < 0) return null;
      if (now <= length) return now === length ? value : value.subarray(0, now);
      length = now;
    }
  }
}

shownAs(Tree, ({ name }) => ({ name }));

/** Makes an object of a report of the addon: names and numbers. */
function report([numbers]) {
  const object = {};
  for (let at = 0; at < numbers.length; at += 2) object[numbers[at]] = numbers[at + 1];
  return object;
}

module.exports = { Tree, boundsOf, report };
