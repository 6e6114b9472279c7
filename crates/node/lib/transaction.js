'use strict';

const { runtime, call } = require('./calls.js');
const { bytes, strings, columnOf } = require('./bytes.js');
const { FrondbError, closed } = require('./errors.js');
const { checkInternal, nativeOf, shownAs } = require('./internal.js');
const { operand } = require('./counter.js');
const { keysOf, keysToDelete } = require('./keys.js');
const { number, optionsOf, string } = require('./options.js');
const { KEYS, VALUES, ENTRIES, rangeInTransaction } = require('./range.js');
const { Tree } = require('./tree.js');

const NO_KEY = Buffer.alloc(0);

/** Reads and writes over any number of trees that take effect together. */
class Transaction {
  #native;
  #owner;
  /** How many results the program has seen; src/transaction.rs says why. */
  #seen = 0;
  #ended = false;
  #savepoints = 0;

  constructor(token, native, owner) {
    checkInternal(token, 'transaction', 'db.begin() or db.transaction()');
    this.#native = native;
    this.#owner = owner;
  }

  get id() {
    return this.#native.id;
  }

  get ended() {
    return this.#ended;
  }

  // --- Reads ---

  get(tree, key) {
    return this.#read('get', tree, key);
  }

  exists(tree, key) {
    return this.#read('exists', tree, key);
  }

  getForUpdate(tree, key, options) {
    return this.#read('getForUpdate', tree, key, options);
  }

  getForShare(tree, key, options) {
    return this.#read('getForShare', tree, key, options);
  }

  multiGet(tree, keys) {
    return this.#call(
      (ticket) =>
        this.#native.multiGet(runtime, ticket, nativeOf(tree, Tree, 'tree'), ...columnOf(keys, 'a key')),
      strings,
    );
  }

  entries(tree, range) {
    return this.#rows(ENTRIES, tree, range);
  }

  keys(tree, range) {
    return this.#rows(KEYS, tree, range);
  }

  values(tree, range) {
    return this.#rows(VALUES, tree, range);
  }

  // --- Writes ---

  put(tree, key, value) {
    return this.#write('put', tree, key, value);
  }

  insert(tree, key, value) {
    return this.#write('insert', tree, key, value);
  }

  delete(tree, key) {
    return this.#write('delete', tree, key, NO_KEY);
  }

  async add(tree, key, number = 1) {
    return this.#write('add', tree, key, operand(number));
  }

  async deleteRange(tree, range) {
    const keys = keysToDelete(range);
    return this.#call((ticket) =>
      this.#native.deleteRange(runtime, ticket, nativeOf(tree, Tree, 'tree'), ...keys),
    );
  }

  replace(tree, key, value) {
    return this.#call((ticket) =>
      this.#native.replace(
        runtime, ticket, nativeOf(tree, Tree, 'tree'), bytes(key, 'key'), bytes(value, 'value'),
      ),
    );
  }

  take(tree, key) {
    return this.#read('take', tree, key);
  }

  popFirst(tree, options) {
    return this.#read('popFirst', tree, NO_KEY, options);
  }

  popLast(tree, options) {
    return this.#read('popLast', tree, NO_KEY, options);
  }

  // --- Savepoints and the end ---

  async savepoint() {
    const number = this.#savepoints++;
    await this.#call((ticket) => this.#native.setSavepoint(runtime, ticket, number));
    const end = (back) =>
      this.#call((ticket) => this.#native.endSavepoint(runtime, ticket, number, back));
    return new Savepoint(end);
  }

  commit() {
    return this.#end((ticket) => this.#native.commit(runtime, ticket, this.#seen));
  }

  rollback() {
    return this.#end((ticket) => this.#native.rollback(runtime, ticket));
  }

  prepare(xid) {
    return this.#end((ticket) => this.#native.prepare(runtime, ticket, bytes(xid, 'xid')));
  }

  cancel() {
    this.#native.cancel();
  }

  async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {
    // After a close of the database the transaction is rolled back already.
    if (!this.#ended && !this.#owner.isClosing) await this.rollback();
  }

  async #end(start) {
    await this.#call(start);
    this.#ended = true;
  }

  #read(how, tree, key, options) {
    return this.#call((ticket) => {
      const { wait = 'timeout' } = optionsOf(options);
      const native = nativeOf(tree, Tree, 'tree');
      this.#native.read(runtime, ticket, how, native, bytes(key, 'key'), string('the option wait', wait));
    });
  }

  #write(how, tree, key, value) {
    return this.#call((ticket) => {
      const native = nativeOf(tree, Tree, 'tree');
      this.#native.write(runtime, ticket, how, native, bytes(key, 'key'), bytes(value, 'value'));
    });
  }

  #rows(part, tree, range) {
    const { reverse = false, limit, lock = '', wait = 'timeout' } = optionsOf(range);
    const keys = keysOf(range);
    const most = number('limit', limit, Infinity);
    const native = nativeOf(tree, Tree, 'tree');
    return rangeInTransaction(this.#owner, part, () =>
      this.#call((ticket) =>
        this.#native.rows(runtime, ticket, native, part, Boolean(reverse), ...keys, most, lock, wait),
      ),
    );
  }

  #call(start, convert = (answer) => answer) {
    if (this.#ended) return Promise.reject(closed('transaction'));
    const seen = () => this.#seen++;
    const called = call(this.#owner, start, (answer) => (seen(), convert(answer)));
    // Only the addon's own errors count: an argument of a wrong type made no call.
    return called.catch((error) => {
      if (error instanceof FrondbError) seen();
      throw error;
    });
  }
}

shownAs(Transaction, ({ id, ended }) => ({ id, ended }));

/** A savepoint of a transaction. */
class Savepoint {
  #end;

  constructor(end) {
    this.#end = end;
  }

  rollback() {
    return this.#end(true);
  }

  release() {
    return this.#end(false);
  }
}

module.exports = { Transaction, Savepoint };
