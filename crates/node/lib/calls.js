'use strict';

// Calls that run on a thread of the addon. Each has a ticket, a number under which its answer
// comes back; src/runtime.rs is the other side.

const native = require('./native.js');
const { fromText, fromThrown, closed } = require('./errors.js');

// Kinds of items, as in src/runtime.rs.
const RESULT = 0;
const PART = 2;

/** What ends each call that runs, by ticket: `{ owner, done, failed, part }`. */
const running = [];
/** Tickets that are free again. */
const free = [];
let count = 0;

// The event loop must go on while a call runs, and must not because a database is open. A timer that
// is referred to while calls run does both, and changing that costs less than a call of the addon.
const alive = setInterval(() => {}, 0x7fffffff);
alive.unref();

const runtime = new native.Runtime(take);

/** Ends the calls whose answers have come. */
function take() {
  const items = runtime.take();
  for (let at = 0; at < items.length; at += 3) {
    const call = running[items[at]];
    const kind = items[at + 1];
    const content = items[at + 2];
    if (kind === PART) {
      call.part(content);
      continue;
    }
    forget(items[at]);
    if (kind === RESULT) call.done(content);
    else call.failed(fromText(content));
  }
}

/** Notes a call, and returns its ticket. */
function note(call) {
  const ticket = free.length > 0 ? free.pop() : running.length;
  running[ticket] = call;
  if (count++ === 0) alive.ref();
  call.owner.begun();
  return ticket;
}

function forget(ticket) {
  const { owner } = running[ticket];
  running[ticket] = undefined;
  free.push(ticket);
  if (--count === 0) alive.unref();
  owner.ended();
}

/** The calls of a database, so that its close can wait for them. */
class Owner {
  isClosing = false;
  #running = 0;
  #settled = [];

  begun() {
    this.#running++;
  }

  ended() {
    if (--this.#running > 0) return;
    for (const settled of this.#settled.splice(0)) settled();
  }

  /** Waits until no call runs. */
  async settle() {
    while (this.#running > 0) await new Promise((resolve) => this.#settled.push(resolve));
  }

  check() {
    if (this.isClosing) throw closed('database');
  }
}

/** The owner of calls without a database. */
const nobody = new Owner();

/**
 * Makes a call: `start` gets the ticket, and `convert` the answer. `part` gets what the call tells
 * before its end. A call that fails to start rejects as one that fails later.
 */
function call(owner, start, convert = identity, part = undefined) {
  return new Promise((resolve, reject) => {
    owner.check();
    begin(owner, start, (answer) => resolve(convert(answer)), reject, part);
  });
}

/** Makes a call whose end is told to functions. */
function begin(owner, start, done, failed, part) {
  const ticket = note({ owner, done, failed, part });
  try {
    return start(ticket);
  } catch (error) {
    forget(ticket);
    failed(fromThrown(error));
    return undefined;
  }
}

/** Notes calls that one start begins together. `start` gets their tickets. */
function beginAll(calls, start) {
  const tickets = calls.map(note);
  try {
    start(tickets);
  } catch (error) {
    tickets.forEach(forget);
    for (const { failed } of calls) failed(fromThrown(error));
  }
}

const identity = (answer) => answer;

module.exports = { runtime, Owner, nobody, call, begin, beginAll };
