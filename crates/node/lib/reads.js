'use strict';

// Gets. All gets that a program makes before it returns to the event loop go to the addon as one
// call: the passage to another thread and back costs as much as several gets, and the engine reads
// the blocks of several keys at the same time.

const { runtime, beginAll } = require('./calls.js');
const { Arena, forEach } = require('./bytes.js');
const { optionsOf } = require('./options.js');
const { snapshotOf } = require('./snapshot.js');

/** Most keys that one thread reads; fewer if there are enough threads for all. */
const KEYS_MAX = 64;
const KEYS_MIN = 16;
/** As in src/pool.rs. */
const THREADS = 4;

/** Gets that wait for the end of the current operation of JavaScript. */
class Reads {
  #tree;
  #owner;
  /** By snapshot; undefined stands for the newest state. */
  #groups = new Map();

  constructor(tree, owner) {
    this.#tree = tree;
    this.#owner = owner;
  }

  get(key, options) {
    return new Promise((resolve, reject) => {
      this.#owner.check();
      const snapshot =
        options === undefined ? undefined : snapshotOf(optionsOf(options).snapshot);
      let group = this.#groups.get(snapshot);
      if (group === undefined) {
        group = { keys: new Arena(), ends: [], waiting: [] };
        if (this.#groups.size === 0) process.nextTick(() => this.#start());
        this.#groups.set(snapshot, group);
      }
      group.ends.push(group.keys.append(key, 'key'));
      group.waiting.push(resolve, reject);
    });
  }

  #start() {
    const groups = [...this.#groups];
    this.#groups.clear();
    for (const [snapshot, group] of groups) this.#read(snapshot, group);
  }

  #read(snapshot, { keys, ends, waiting }) {
    const each = Math.ceil(ends.length / THREADS);
    const size = Math.min(Math.max(each, KEYS_MIN), KEYS_MAX);
    const calls = [];
    for (let first = 0; first < ends.length; first += size) {
      calls.push(this.#part(waiting.slice(first * 2, (first + size) * 2)));
    }
    beginAll(calls, (tickets) => {
      this.#tree.getMany(runtime, tickets, size, keys.bytes(), new Uint32Array(ends), snapshot);
    });
  }

  /** Returns the call of one thread: `waiting` has the two ends of each promise. */
  #part(waiting) {
    return {
      owner: this.#owner,
      done(answer) {
        if (!Array.isArray(answer)) waiting[0](answer);
        else forEach(answer, (value, index) => waiting[index * 2](value));
      },
      failed(error) {
        for (let index = 1; index < waiting.length; index += 2) waiting[index](error);
      },
    };
  }
}

module.exports = { Reads };
