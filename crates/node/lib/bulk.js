'use strict';

const { runtime, call } = require('./calls.js');
const { Arena } = require('./bytes.js');
const { closed } = require('./errors.js');
const { long } = require('./files.js');
const { INTERNAL, checkInternal, nativeOf } = require('./internal.js');
const { ofTree, string } = require('./options.js');
const { Tree, report } = require('./tree.js');

/** Bytes of rows that go to the addon at once. */
const PIECE_BYTES = 256 << 10;
/** Pieces on their way; a program that waits for its puts does not get further ahead. */
const PIECES_MAX = 4;

const DONE = Promise.resolve();

/** Rows of one tree that are not at the addon yet. */
class Piece {
  keys = new Arena();
  values = new Arena();
  keyEnds = [];
  valueEnds = [];

  constructor(tree) {
    this.tree = tree;
  }

  put(key, value) {
    const start = this.keys.length;
    const keyEnd = this.keys.append(key, 'key');
    try {
      this.valueEnds.push(this.values.append(value, 'value'));
    } catch (error) {
      this.keys.length = start;
      throw error;
    }
    this.keyEnds.push(keyEnd);
  }

  get size() {
    return this.keys.length + this.values.length;
  }
}

/** A bulk load: much data, in any order, with less work than batches. */
class BulkLoad {
  #native;
  #owner;
  #writes;
  #piece = undefined;
  #sent = new Set();
  #error = undefined;
  #ended = false;

  constructor(token, native, owner, writes) {
    checkInternal(token, 'bulk load', 'db.bulkLoad()');
    this.#native = native;
    this.#owner = owner;
    this.#writes = writes;
  }

  async newTree(name, options) {
    this.#check();
    const made = await call(this.#owner, (ticket) =>
      this.#native.newTree(runtime, ticket, string('name', name), ...ofTree(options)),
    );
    return new Tree(INTERNAL, made, this.#owner, this.#writes);
  }

  /** Adds a row. The promise waits while the engine is far behind. */
  put(tree, key, value) {
    try {
      this.#check();
      const native = nativeOf(tree, Tree, 'tree');
      if (this.#piece?.tree !== native) {
        this.#send();
        this.#piece = new Piece(native);
      }
      this.#piece.put(key, value);
    } catch (error) {
      return Promise.reject(error);
    }
    if (this.#piece.size < PIECE_BYTES) return DONE;
    this.#send();
    return this.#sent.size < PIECES_MAX ? DONE : this.#room();
  }

  /** Adds the rows of an iterable of pairs, which may be asynchronous. */
  async putMany(tree, rows) {
    for await (const [key, value] of rows) await this.put(tree, key, value);
  }

  async finish(options) {
    this.#check();
    this.#ended = true;
    this.#send();
    await Promise.allSettled(this.#sent);
    if (this.#error !== undefined) {
      this.#native.cancel();
      throw this.#error;
    }
    return long(
      this.#owner,
      options,
      (ticket, told) => this.#native.finish(runtime, ticket, told),
      report,
    );
  }

  cancel() {
    this.#ended = true;
    this.#native.cancel();
  }

  duplicate() {
    return this.#native.duplicate();
  }

  async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {
    if (!this.#ended) this.cancel();
  }

  #check() {
    if (this.#error !== undefined) throw this.#error;
    if (this.#ended) throw closed('bulk load');
  }

  #send() {
    const piece = this.#piece;
    this.#piece = undefined;
    if (piece === undefined) return;
    const { tree, keys, keyEnds, values, valueEnds } = piece;
    const sent = call(this.#owner, (ticket) =>
      this.#native.put(
        runtime, ticket, tree,
        keys.bytes(), new Uint32Array(keyEnds), values.bytes(), new Uint32Array(valueEnds),
      ),
    );
    this.#sent.add(sent);
    // The next call, or `finish`, reports the error.
    const ended = (error) => {
      this.#error ??= error;
      this.#sent.delete(sent);
    };
    sent.then(() => ended(undefined), ended);
  }

  /** Waits until the engine has taken some of the rows. */
  async #room() {
    while (this.#sent.size >= PIECES_MAX) await Promise.race(this.#sent).catch(() => {});
    if (this.#error !== undefined) throw this.#error;
  }
}

module.exports = { BulkLoad };
