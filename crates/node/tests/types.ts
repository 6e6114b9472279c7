// Programs that must compile with the types of the package, and, below `@ts-expect-error`, some that
// must not. `make node` checks this file; nothing runs it.

import { open, restore, verifyBackup, FrondbError } from 'frondb';
import type { Batch, Db, ErrorCode, Row, Snapshot, Transaction, Tree } from 'frondb';

async function all(): Promise<void> {
  const db: Db = await open('data', { memory: '256MiB', commitSync: false, backgroundThreads: 2 });
  const tree: Tree = await db.tree('t', { preset: 'secondary', codec: 'zstd:3' });
  await tree.put('a', new Uint8Array([1]));
  await tree.put(Buffer.from('b'), 'text', { sync: true });
  const value: Buffer | null = await tree.get('a');
  const here: Buffer | null = tree.getSync('a');
  for await (const [key, of] of tree.entries({ gte: 'a', reverse: true, limit: 5 })) key.equals(of);
  for (const key of tree.keys({ prefix: 'a' })) key.toString();
  const rows: Row[] = await tree.entries().toArray();

  const snapshot: Snapshot = db.snapshot();
  await tree.get('a', { snapshot });
  snapshot.close();

  const batch: Batch = db.batch().put(tree, 'a', '').delete(tree, 'b').deleteRange(tree, { prefix: 'c' });
  await db.write(batch, { sync: false });

  const count: number = await db.transaction(
    async (tx: Transaction) => {
      await tx.getForUpdate(tree, 'a', { wait: 'nowait' });
      for await (const key of tx.keys(tree, { lock: 'update', wait: 'skip-locked' })) key.toString();
      return 1;
    },
    { isolation: 'serializable', retries: 5 },
  );

  const load = await db.bulkLoad({ duplicates: 'fail' });
  await load.putMany(tree, rows);
  const { entries } = await load.finish({ progress: ({ done, total }) => done < total });
  await db.backup('sunday', { signal: AbortSignal.timeout(1000) });
  const faults: string[] = (await verifyBackup('sunday')).faults;
  await restore(['sunday', new URL('file:///monday')], 'copy');

  try {
    await db.close();
  } catch (error) {
    if (error instanceof FrondbError) {
      const code: ErrorCode = error.code;
      console.log(code, value, here, count, entries, faults);
    }
  }
}

async function wrong(db: Db, tree: Tree, tx: Transaction): Promise<void> {
  // @ts-expect-error: a value is bytes
  await tree.put('a', 1);
  // @ts-expect-error: an isolation level of this name does not exist
  db.begin({ isolation: 'snapshot' });
  // @ts-expect-error: only a transaction locks rows
  tree.entries({ lock: 'update' });
  // @ts-expect-error: rows of a transaction may wait for a lock, so they have no synchronous form
  for (const row of tx.entries(tree)) row.toString();
  // @ts-expect-error: only the package makes a database
  new (await import('frondb')).Db();
}

void [all, wrong];
