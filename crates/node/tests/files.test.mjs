// Backups, checks, errors with a place, options.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { test } from 'node:test';
import { FrondbError, code, database, directory, frondb, open, texts } from './helpers.mjs';

const { restore, verifyBackup } = frondb;

async function filled(t, rows = 2000) {
  const db = await database(t);
  const tree = await db.tree('t');
  await Promise.all(Array.from({ length: rows }, (_, n) => tree.put(`k${n}`, `${n}`.repeat(20))));
  await db.checkpoint();
  return { db, tree };
}

test('a backup and its continuation are restored', async (t) => {
  const { db, tree } = await filled(t);
  const base = directory();
  const [full, next, copy] = ['full', 'next', 'copy'].map((name) => path.join(base, name));
  const told = [];
  const report = await db.backup(full, { progress: (progress) => void told.push(progress) });
  assert.ok(report.bytes > 0 && report.isIncremental === false);
  assert.ok(told.length > 0 && told.every(({ done }) => typeof done === 'number'));
  await tree.put('more', '1');
  const second = await db.backup(pathToFileURL(next), { since: full });
  assert.equal(second.isIncremental, true);
  assert.deepEqual((await verifyBackup(full)).faults, []);
  await restore([full, next], copy);
  const restored = await open(copy, { memory: '32MiB' });
  assert.equal(String(await (await restored.openTree('t')).get('more')), '1');
  await restored.close();
  await assert.rejects(db.backup(full), code('Exists'));
  await assert.rejects(db.backup(path.join(db.path, 'inside')), code('Invalid'));
  await assert.rejects(restore(path.join(base, 'none'), copy), code('NotFound'));
  await assert.rejects(restore(5, copy), { code: 'ERR_INVALID_ARG_TYPE' });
});

test('long calls are cancelled by their function or a signal', async (t) => {
  const { db } = await filled(t);
  const base = directory();
  await assert.rejects(db.backup(path.join(base, '1'), { progress: () => false }), code('Cancelled'));
  const thrown = new Error('thrown');
  const throwing = db.backup(path.join(base, '2'), { progress: () => { throw thrown; } });
  await assert.rejects(throwing, (error) => error === thrown);
  const controller = new AbortController();
  const abort = () => controller.abort();
  const slow = db.backup(path.join(base, '3'), { bytesPerSecond: 1000, signal: controller.signal, progress: abort });
  await assert.rejects(slow, { name: 'AbortError' });
  await assert.rejects(db.verify({ signal: AbortSignal.abort() }), { name: 'AbortError' });
  await assert.rejects(db.verify({ progress: 5 }), { code: 'ERR_INVALID_ARG_TYPE' });
  const report = await db.verify();
  assert.ok(report.entries >= 2000 && report.faults.length === 0);
});

test('damage is an error with file and offset', async (t) => {
  const { db } = await filled(null, 20_000);
  await db.close();
  const files = fs.readdirSync(db.path).filter((name) => name.endsWith('.fdb'));
  for (const name of files) {
    const file = path.join(db.path, name);
    const bytes = fs.readFileSync(file);
    for (let at = 8192; at < bytes.length; at += 512) bytes[at] ^= 0x55;
    fs.writeFileSync(file, bytes);
  }
  const damaged = await open(db.path, { memory: '32MiB' });
  t.after(() => damaged.close());
  const tree = await damaged.openTree('t');
  const isPlaced = (error) => {
    assert.ok(error instanceof FrondbError && error instanceof Error);
    assert.equal(error.code, 'Corruption');
    assert.match(error.file, /fdb$/);
    assert.ok(Number.isSafeInteger(error.offset) && error.what.length > 0);
    assert.ok(error.message.includes(`at offset ${error.offset} of ${error.file}`));
    return true;
  };
  await assert.rejects(tree.get('k1'), isPlaced);
  assert.throws(() => tree.getSync('k1'), isPlaced);
  await assert.rejects(tree.keys().toArray(), isPlaced);
  assert.throws(() => [...tree.keys()], isPlaced);
  await assert.rejects(damaged.transaction((tx) => tx.get(tree, 'k1')), isPlaced);
  assert.ok((await damaged.verify()).faults.length > 0);
});

test('options by name', async () => {
  const at = path.join(directory(), 'db');
  await assert.rejects(open(at, { create: false }), code('NotFound'));
  await assert.rejects(open(at, { memory: 1000 }), code('Invalid', /memory/));
  await assert.rejects(open(at, { colour: 'red' }), code('Invalid', /colour/));
  await assert.rejects(open(at, { colour: {} }), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(open(5), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(open(at, { commitSync: 'no' }), { code: 'ERR_INVALID_ARG_TYPE' });
  await assert.rejects(open('/proc/nothing/db'), FrondbError);
  const options = {
    memory: 64n << 20n, sync: 100, fileMode: 0o640, checkpointPeriod: 60_000, backgroundThreads: 2, verifyFastCodecs: true,
  };
  const db = await open(pathToFileURL(at), options);
  await (await db.tree('t')).put('a', '1');
  assert.equal(db.memory, 64 << 20);
  await db.close();
  const modes = fs.readdirSync(at, { withFileTypes: true }).filter((it) => it.isFile());
  assert.ok(modes.every(({ name }) => (fs.statSync(path.join(at, name)).mode & 0o777) === 0o640));
  const reader = await open(at, { memory: '32MiB', readOnly: true });
  const tree = await reader.openTree('t');
  assert.deepEqual(texts([await tree.get('a')]), ['1']);
  await assert.rejects(tree.put('a', '2'), code('Invalid'));
  await reader.close();
});
