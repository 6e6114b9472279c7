// The package: its types, its version, its errors, and the examples of its pages.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { createRequire } from 'node:module';
import { FrondbError, PACKAGE, directory, frondb } from './helpers.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const TYPES = fs.readFileSync(path.join(PACKAGE, 'index.d.ts'), 'utf8');

/** Returns the classes of the types, each with the names of its members. */
function declared() {
  const classes = {};
  let members;
  for (const line of TYPES.split('\n')) {
    const [, name] = /^export class (\w+)/.exec(line) ?? [];
    if (name) members = classes[name] = [];
    else if (line === '}') members = undefined;
    const [, member] = /^ {2}(?:readonly )?(\w+)\??[(<:]/.exec(line) ?? [];
    if (member && member !== 'constructor') members?.push(member);
  }
  return classes;
}

test('the types declare what the package exports', () => {
  const classes = declared();
  const functions = [...TYPES.matchAll(/^export function (\w+)/gm)].map(([, name]) => name);
  assert.deepEqual(Object.keys(frondb).sort(), [...Object.keys(classes), ...functions].sort());
  for (const [name, members] of Object.entries(classes)) {
    // An error has its members only if they say something.
    if (name === 'FrondbError') continue;
    const { prototype } = frondb[name];
    const has = Object.getOwnPropertyNames(prototype).filter((member) => member !== 'constructor');
    const inherited = Object.getOwnPropertyNames(Object.getPrototypeOf(prototype));
    for (const member of has) assert.ok(members.includes(member), `${name}.${member} has no type`);
    for (const member of members) assert.ok([...has, ...inherited].includes(member), `${name}.${member} is missing`);
  }
});

test('only the package makes its objects', () => {
  for (const [name, made] of Object.entries(frondb)) {
    if (!/^[A-Z]/.test(name) || ['FrondbError', 'AsyncRange', 'Range', 'Savepoint'].includes(name)) continue;
    assert.throws(() => new made(), { name: 'TypeError', message: /not by new/ }, name);
  }
});

test('every kind of error is a code of the types', () => {
  const page = fs.readFileSync(path.join(ROOT, 'docs/operating/errors.md'), 'utf8');
  const kinds = [...page.matchAll(/^\| `(\w+)` \|/gm)].map(([, kind]) => kind);
  assert.ok(kinds.length >= 16);
  for (const kind of kinds) assert.ok(TYPES.includes(`| '${kind}'`), `${kind} is no ErrorCode`);
  const error = new FrondbError('Corruption', 'bad block', { file: 'data-0000.fdb', offset: 7, what: 'data block' });
  assert.deepEqual([error.name, error.code, error.file, error.offset], ['FrondbError', 'Corruption', 'data-0000.fdb', 7]);
});

test('the version is that of the project', () => {
  const { version } = JSON.parse(fs.readFileSync(path.join(PACKAGE, 'package.json'), 'utf8'));
  assert.ok(fs.readFileSync(path.join(ROOT, 'Cargo.toml'), 'utf8').includes(`version = "${version}"`));
});

test('the package is loaded by import as by require', async () => {
  const imported = await import(path.join(PACKAGE, 'index.js'));
  assert.equal(imported.open, frondb.open);
});

for (const [name, least] of [['docs/operating/node.md', 8], ['README.md', 1]]) {
  test(`the examples of ${name} run`, async () => {
    const text = fs.readFileSync(path.join(ROOT, name), 'utf8');
    const examples = [...text.matchAll(/^```js\n([^]*?)^```/gm)];
    assert.ok(examples.length >= least);
    // Errors name the line of the page.
    const source = examples.reduce((before, example) => {
      const lines = text.slice(0, example.index).split('\n').length;
      return before + '\n'.repeat(lines - before.split('\n').length + 1) + example[1];
    }, '');
    const here = createRequire(import.meta.url);
    const require = (wanted) => (wanted === 'frondb' ? frondb : here(wanted));
    const before = process.cwd();
    process.chdir(directory());
    try {
      const body = vm.compileFunction(`return (async () => {${source}\n})()`, ['require'], { filename: name });
      await body(require);
    } finally {
      process.chdir(before);
    }
  });
}
