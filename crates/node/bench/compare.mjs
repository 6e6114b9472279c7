// Compares puts, gets and scans with lmdb and classic-level, in one run.
//
//   cargo xtask node-bench rows=300000 memory=512MiB rounds=5
//   cargo xtask node-bench rows=3000000 memory=128MiB limit=256MiB rounds=3 gets=20000
//
// The engines take turns: in each round every engine, in a process of its own, puts all rows in
// random order without a sync, settles its background work, gets keys in random order, and scans. So
// a slow minute of the machine affects all engines. Prints the median and the quartiles of the
// rounds, microseconds for each row.
//
// `limit` is the memory of the process and of the system's cache for its files, by a control group
// (version 1, as root). That is the only limit that lmdb has.

import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** Calls that a program makes before it waits for them. */
const AT_ONCE = 1000;
/** What is measured, in this order; `Here` reads or writes on the thread of JavaScript. */
const KINDS = ['put', 'putHere', 'get', 'getHere', 'scan', 'scanHere'];

const settings = {
  rows: '300000',
  gets: '',
  value: '100',
  memory: '512MiB',
  limit: '',
  rounds: '5',
  dir: os.tmpdir(),
  engines: 'frondb,lmdb,level',
  one: '',
};

/** Returns the bytes of a size such as 64MiB. */
function bytesOf(text) {
  const [, number, unit] = /^(\d+)(KiB|MiB|GiB)?$/.exec(text) ?? [];
  if (number === undefined) throw new Error(`${text} is no size: write 64MiB`);
  return Number(number) * 1024 ** ['', 'KiB', 'MiB', 'GiB'].indexOf(unit ?? '');
}

/** A generator of random numbers from a seed: xorshift. */
function randomOf(seed) {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>>= 0);
  };
}

/** Returns the numbers from 0 on in random order. */
function shuffled(count, seed) {
  const numbers = new Uint32Array(count);
  for (let number = 0; number < count; number++) numbers[number] = number;
  const random = randomOf(seed);
  for (let at = count - 1; at > 0; at--) {
    const other = random() % (at + 1);
    [numbers[at], numbers[other]] = [numbers[other], numbers[at]];
  }
  return numbers;
}

const keyOf = (number) => Buffer.from(String(number).padStart(16, '0'));

/** Returns a value of which half is random. */
function valueMaker(size) {
  const random = randomOf(7);
  const value = Buffer.alloc(size, 'v');
  return () => {
    for (let at = 0; at + 4 <= size / 2; at += 4) value.writeUInt32LE(random(), at);
    return value;
  };
}

/** Makes calls, many before it waits for them. */
async function all(numbers, call) {
  for (let first = 0; first < numbers.length; first += AT_ONCE) {
    const calls = [];
    for (const number of numbers.subarray(first, first + AT_ONCE)) calls.push(call(number));
    await Promise.all(calls);
  }
}

/** Measures one engine once: microseconds for each row. */
async function measure(name, directory) {
  const { ENGINES } = await import('./engines.mjs');
  const [rows, size] = [Number(settings.rows), Number(settings.value)];
  const gets = Math.min(Number(settings.gets) || rows, rows);
  const engine = await ENGINES[name](directory, bytesOf(settings.memory));
  const [numbers, others] = [shuffled(rows, 1), shuffled(rows, 2)];
  // With few gets, the second kind gets other keys, which the first has not brought into memory.
  const [wanted, wantedHere] = [others.subarray(0, gets), others.subarray(rows - gets)];
  const value = valueMaker(size);
  const found = (got) => {
    if (got?.length !== size) throw new Error(`${name} has lost a row`);
  };
  const half = rows >> 1;
  const works = {
    put: [half, () => all(numbers.subarray(0, half), (n) => engine.put(keyOf(n), value()))],
    putHere: [
      rows - half,
      async () => {
        // What has no synchronous call puts the second half as the first.
        for (const n of numbers.subarray(half)) engine.putHere(keyOf(n), value());
      },
    ],
    get: [gets, () => all(wanted, async (n) => found(await engine.get(keyOf(n))))],
    getHere: [gets, async () => wantedHere.forEach((n) => found(engine.getHere(keyOf(n))))],
    scan: [rows, () => counted(name, rows, engine.scan?.bind(engine))],
    scanHere: [rows, () => countedHere(name, rows, engine.scanHere)],
  };
  const times = {};
  for (const kind of KINDS) {
    const [count, work] = works[kind];
    if (engine[kind] === undefined) {
      if (kind === 'putHere') await all(numbers.subarray(half), (n) => engine.put(keyOf(n), value()));
      if (kind === 'putHere') await engine.settle();
      continue;
    }
    const start = process.hrtime.bigint();
    await work();
    times[kind] = Number(process.hrtime.bigint() - start) / 1000 / count;
    if (kind === 'putHere') await engine.settle();
  }
  await engine.close();
  console.log(JSON.stringify(times));
}

async function counted(name, rows, scan) {
  let count = 0;
  for await (const [key, value] of scan()) count += key.length > 0 && value.length > 0 ? 1 : 0;
  if (count !== rows) throw new Error(`${name} scanned ${count} of ${rows} rows`);
}

async function countedHere(name, rows, scan) {
  let count = 0;
  for (const [key, value] of scan()) count += key.length > 0 && value.length > 0 ? 1 : 0;
  if (count !== rows) throw new Error(`${name} scanned ${count} of ${rows} rows`);
}

/** Makes a control group with the limit, and returns its directory; undefined without a limit. */
function limited() {
  if (settings.limit === '') return undefined;
  const own = /memory:(.*)/.exec(fs.readFileSync('/proc/self/cgroup', 'utf8'))?.[1] ?? '';
  const group = path.join('/sys/fs/cgroup/memory', own, `frondb-bench-${process.pid}`);
  fs.mkdirSync(group);
  fs.writeFileSync(path.join(group, 'memory.limit_in_bytes'), String(bytesOf(settings.limit)));
  return group;
}

/** Runs one engine in a process of its own. */
function turn(name, group) {
  const directory = fs.mkdtempSync(path.join(settings.dir, `frondb-bench-${name}-`));
  const program = fileURLToPath(import.meta.url);
  const given = Object.entries({ ...settings, one: name, dir: directory });
  const enter = group ? `echo $$ > '${group}/cgroup.procs'; ` : '';
  const command = `${enter}exec "$0" "$@"`;
  const args = ['-c', command, process.execPath, program, ...given.map(([k, v]) => `${k}=${v}`)];
  try {
    const { stdout, status, signal } = spawnSync('sh', args, { stdio: ['ignore', 'pipe', 'inherit'] });
    if (status !== 0) throw new Error(`${name} ended with ${status ?? signal}`);
    return JSON.parse(stdout);
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

const at = (sorted, part) => sorted[Math.round((sorted.length - 1) * part)];

function show(results) {
  console.log(`us for each row: median (quartiles) of ${settings.rounds} rounds`);
  for (const kind of KINDS) {
    const line = Object.entries(results).map(([name, rounds]) => {
      const times = rounds.map((times) => times[kind]).filter((time) => time !== undefined);
      if (times.length === 0) return `${name} -`;
      const sorted = times.sort((a, b) => a - b);
      const [low, middle, high] = [0.25, 0.5, 0.75].map((part) => at(sorted, part).toFixed(2));
      return `${name} ${middle} (${low}-${high})`;
    });
    console.log(`${kind.padEnd(9)} ${line.join('   ')}`);
  }
}

for (const argument of process.argv.slice(2)) {
  const [name, value] = argument.split('=');
  if (!(name in settings) || value === undefined) throw new Error(`unknown setting ${argument}`);
  settings[name] = value;
}
if (settings.one !== '') {
  await measure(settings.one, settings.dir);
} else {
  const results = Object.fromEntries(settings.engines.split(',').map((name) => [name, []]));
  const group = limited();
  for (let round = 0; round < Number(settings.rounds); round++) {
    for (const name of Object.keys(results)) {
      const times = turn(name, group);
      results[name].push(times);
      console.error(`round ${round + 1} ${name} ${JSON.stringify(times)}`);
    }
  }
  if (group) fs.rmdirSync(group);
  show(results);
}
