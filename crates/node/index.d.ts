/**
 * FronDB: an embedded storage engine for data with many writes and many indexes.
 *
 * Methods that may wait for the disk or for a lock return promises. Their forms that end in `Sync`
 * wait on the thread that calls them. All errors of the engine are {@link FrondbError}.
 *
 * @example
 * const db = await open('data', { memory: '256MiB' });
 * const users = await db.tree('users');
 * await users.put('ada', '1815');
 * console.log(String(await users.get('ada')));
 * await db.close();
 *
 * @module
 */

/** A key or a value as an argument; of a string, its UTF-8. The call copies it. */
export type Bytes = Uint8Array | string;

/** A row: key and value. The rows of an iterator may share their memory with up to 64 KiB of others. */
export type Row = [key: Buffer, value: Buffer];

/** The path of a file or directory. */
export type Path = string | URL;

/** The kind of an error, which says what to do. docs/operating/errors.md has more. */
export type ErrorCode =
  /** Another transaction changed the row: run the transaction again. */
  | 'Conflict'
  /** The transaction was the victim of a deadlock and is rolled back: run it again. */
  | 'Deadlock'
  /** Another transaction keeps a row or range locked: try again. */
  | 'LockTimeout'
  /** Another process, call or prepared transaction uses the database or object: try again. */
  | 'Busy'
  /** The call is wrong: the message says which key, value or option, and the limit. */
  | 'Invalid'
  /** The database, tree or key does not exist. */
  | 'NotFound'
  /** The database, tree or key exists already. */
  | 'Exists'
  /** The disk is full: free space. Reads and deletes work meanwhile. */
  | 'NoSpace'
  /** Stored bytes have changed: `file` and `offset` say where. Check the disk, restore the data. */
  | 'Corruption'
  /** It is unknown which bytes are on the disk: close and open the database. */
  | 'Poisoned'
  /** The operating system reported an error; `errno` is its number. */
  | 'Io'
  /** The database or the object was closed. */
  | 'Closed'
  /** The call was cancelled. */
  | 'Cancelled'
  /** A newer version of FronDB wrote the data. */
  | 'Unsupported'
  /** A bug in FronDB: please report it. */
  | 'Internal'
  /** The locks of all transactions take a quarter of the memory: write fewer rows in one. */
  | 'TooManyLocks';

/** An error of FronDB. An argument of a wrong type is a `TypeError` instead. */
export class FrondbError extends Error {
  constructor(
    code: ErrorCode,
    message: string,
    details?: { file?: string; offset?: number; what?: string; errno?: number; cause?: unknown },
  );
  readonly name: 'FrondbError';
  readonly code: ErrorCode;
  /** The damaged file, relative to the directory of the database. */
  readonly file?: string;
  /** The place in that file, bytes. */
  readonly offset?: number;
  /** What is at that place, for example `data block`. */
  readonly what?: string;
  /** The error number of the operating system. */
  readonly errno?: number;
}

/** Options by name; docs/operating/options.md lists them. `undefined` stands for the default. */
export interface NamedOptions {
  [name: string]: string | number | bigint | boolean | URL | undefined;
}

/**
 * Options of {@link open}. Every option of docs/operating/options.md is one, in camel case:
 * `backgroundThreads: 2`, `sync: '100ms'`, `readOnly: true`, `fileMode: 0o640`.
 */
export interface OpenOptions extends NamedOptions {
  /** Memory for caches and buffers: bytes, or a text such as `'256MiB'`. Default: a quarter of the machine's. */
  memory?: number | bigint | string;
  /** Whether writes wait by default until they survive a power failure. Default true. */
  commitSync?: boolean;
}

/** Options of a new tree; further ones, such as `codec: 'zstd:3'`, by name. */
export interface TreeOptions extends NamedOptions {
  /** `secondary` for an index that is scanned by prefix, `aggressive` for the smallest files. */
  preset?: 'secondary' | 'aggressive';
  /** Whether {@link Tree.add} is allowed: values are then numbers of 64 bits. Default false. */
  counters?: boolean;
}

export interface WriteOptions {
  /** Whether to wait until the write survives a power failure. Default: `commitSync` of the database. */
  sync?: boolean;
}

export interface ReadOptions {
  /** Reads the state of a snapshot instead of the newest one. */
  snapshot?: Snapshot;
}

/** A range of keys. All given bounds hold. */
export interface KeyRange {
  gt?: Bytes;
  gte?: Bytes;
  lt?: Bytes;
  lte?: Bytes;
  /** Only keys that begin with these bytes. */
  prefix?: Bytes;
}

export interface RangeOptions extends KeyRange {
  /** From the largest key to the smallest. Default false. */
  reverse?: boolean;
  /** The most rows. Default: no limit. */
  limit?: number;
}

/** What a call does if another transaction holds the lock. */
export type Wait =
  /** Waits, up to `lockTimeout`. */
  | 'timeout'
  /** Fails with `Busy`. */
  | 'nowait'
  /** An iterator or a pop skips locked rows; a get fails with `Busy`. */
  | 'skip-locked'
  /** An iterator shows locked rows as last committed, below repeatable read; a get fails with `Busy`. */
  | 'show-locked';

/** What a transaction sees of others; docs/design/transactions.md describes the levels. */
export type Isolation = 'read-uncommitted' | 'read-committed' | 'repeatable-read' | 'serializable';

export interface TransactionOptions extends WriteOptions {
  /** Default `repeatable-read`. */
  isolation?: Isolation;
  /**
   * Whether a write of a row that was changed since the transaction's snapshot fails with
   * `Conflict`. Only at repeatable read. Default false.
   */
  snapshotIsolation?: boolean;
  /** The longest wait for a lock, ms. Default 10,000. */
  lockTimeout?: number;
}

export interface Progress {
  /** How much is done, and how much there is to do, as far as it is known: bytes or rows. */
  done: number;
  total: number;
  /** The tree, for calls that work on one tree after the other. */
  tree?: string;
}

export interface LongOptions {
  /** Called every 50 ms at most. Returning false cancels the call. */
  progress?: (progress: Progress) => unknown;
  /** Cancels the call, which then rejects with the signal's reason. */
  signal?: AbortSignal;
}

export interface BulkOptions extends WriteOptions {
  /** What happens to a key that is given twice: the last one wins, or the load fails. Default `replace`. */
  duplicates?: 'replace' | 'fail';
  /** Memory for sorting, bytes. Default: a quarter of the memory of the database. */
  memory?: number;
  /** How long the commit waits for transactions that hold locks on the trees, ms. Default 60,000. */
  lockTimeout?: number;
}

export interface BackupOptions extends LongOptions {
  /** The directory of an earlier backup: this one then has only what is new since. */
  since?: Path;
  /** The most bytes per second that are read. Default: no limit. */
  bytesPerSecond?: number;
  /** The permission bits of the files. Default 0o600. */
  fileMode?: number;
}

export interface BackupReport {
  /** Bytes that were copied. */
  bytes: number;
  /** Bytes of the database that the backup stands for. */
  databaseBytes: number;
  logBytes: number;
  isIncremental: boolean;
}

export interface BackupContents {
  bytes: number;
  databaseBytes: number;
  isIncremental: boolean;
  /** What is damaged; empty for a good backup. */
  faults: string[];
}

export interface VerifyReport {
  runs: number;
  entries: number;
  values: number;
  bytes: number;
  /** What is damaged; empty for a good database. */
  faults: string[];
}

export interface BulkReport {
  /** Rows loaded, without duplicates. */
  entries: number;
  duplicates: number;
  rawBytes: number;
  sortedRuns: number;
}

export interface Estimate {
  entries: number;
  diskBytes: number;
}

/**
 * Opens the database in a directory, and creates it if there is none. Threads of one process that
 * open the same directory share the database; they must pass the same options.
 *
 * @throws FrondbError `Busy` if another process has it open; `Invalid` for an unknown option or a
 * value out of range; `NotFound` with `create: false`; `Corruption`; `Unsupported`; `Io`.
 * @example
 * const db = await open('data', { memory: '256MiB', commitSync: false });
 */
export function open(path: Path, options?: OpenOptions): Promise<Db>;

/**
 * Makes a database in the directory `to` of a full backup and the incremental ones after it.
 *
 * @throws FrondbError `NotFound` if a directory has no complete backup; `Exists` if `to` has files;
 * `Invalid` if the backups do not continue each other; `Corruption`; `Cancelled`.
 * @example
 * await restore(['full', 'monday'], 'restored');
 */
export function restore(backups: Path | Path[], to: Path, options?: LongOptions): Promise<{ bytes: number }>;

/**
 * Reads a backup and checks all its bytes with their checksums.
 *
 * @throws FrondbError `NotFound` if there is no complete backup; `Corruption` if its list is
 * damaged; `Cancelled`.
 */
export function verifyBackup(backup: Path, options?: LongOptions): Promise<BackupContents>;

/** An open database; {@link open} makes one. One that is not closed loses nothing. */
export class Db implements AsyncDisposable {
  private constructor();

  /** The directory, as it was given. */
  readonly path: string;
  readonly closed: boolean;
  /** The memory budget, bytes. */
  readonly memory: number;

  /**
   * Returns the tree of this name, and creates it if there is none. The options are for a new tree.
   *
   * @throws FrondbError `Invalid` for a bad name or option, or for `counters` if the tree has none.
   * @example
   * const log = await db.tree('log', { codec: 'zstd:3' });
   */
  tree(name: string, options?: TreeOptions): Promise<Tree>;
  /** Creates an empty tree, durably. @throws FrondbError `Exists`; `Invalid`. */
  createTree(name: string, options?: TreeOptions): Promise<Tree>;
  /** Returns the tree of this name. @throws FrondbError `NotFound`. */
  openTree(name: string): Promise<Tree>;
  /** Returns the names of all trees, sorted. */
  listTrees(): string[];
  /** Renames a tree, durably; its objects stay valid. @throws FrondbError `NotFound`; `Exists`. */
  renameTree(from: string, to: string): Promise<void>;
  /**
   * Removes a tree and its data, durably.
   *
   * @throws FrondbError `NotFound`; `Busy` if a prepared transaction has written to the tree.
   */
  dropTree(name: string): Promise<void>;

  /** Makes an empty batch: writes to any number of trees that {@link write} commits together. */
  batch(): Batch;
  /**
   * Commits a batch. The batch keeps its writes; {@link Batch.clear} empties it.
   *
   * @throws FrondbError `LockTimeout` or `Deadlock` if transactions hold locks on its keys;
   * `Invalid` for a batch above a quarter of the memory; `NotFound` if a tree was dropped; `NoSpace`.
   * @example
   * await db.write(db.batch().put(users, 'ada', '1815').put(byYear, '1815ada', ''), { sync: false });
   */
  write(batch: Batch, options?: WriteOptions): Promise<void>;
  /** As {@link write}, on this thread. Waits for a lock that a transaction of this thread holds end with `LockTimeout`. */
  writeSync(batch: Batch, options?: WriteOptions): void;

  /**
   * Runs `body` in a transaction, commits at its end, and rolls back if it throws. With `retries`,
   * runs it again after `Conflict`, `Deadlock` and `LockTimeout`, up to so many times.
   *
   * @returns what `body` returns.
   * @throws what `body` throws; FrondbError of the commit.
   * @example
   * await db.transaction(async (tx) => {
   *   const balance = Number(await tx.getForUpdate(accounts, 'ada'));
   *   await tx.put(accounts, 'ada', String(balance - 30));
   * }, { retries: 5 });
   */
  transaction<T>(
    body: (transaction: Transaction) => Promise<T> | T,
    options?: TransactionOptions & { retries?: number },
  ): Promise<T>;
  /** Begins a transaction that the program ends itself. @throws FrondbError `Invalid` for options that contradict each other. */
  begin(options?: TransactionOptions): Transaction;
  /** Takes a snapshot of the whole database. Space that it can see is not freed, so close it. */
  snapshot(): Snapshot;
  /** Begins a bulk load: much data, in any order, with less work than batches. */
  bulkLoad(options?: BulkOptions): Promise<BulkLoad>;

  /** Returns the names of all prepared transactions, sorted. */
  prepared(): Buffer[];
  /** Commits a prepared transaction. @throws FrondbError `NotFound`. */
  commitPrepared(xid: Bytes, options?: WriteOptions): Promise<void>;
  /** Rolls back a prepared transaction, durably. @throws FrondbError `NotFound`. */
  rollbackPrepared(xid: Bytes): Promise<void>;

  /** Makes everything that was committed so far durable. */
  sync(): Promise<void>;
  /** Writes all memtables to the data files. */
  flush(): Promise<void>;
  /** Writes all memtables to the data files and frees the log, so that the next open replays nothing. */
  checkpoint(): Promise<void>;
  /** Waits until background work has caught up. */
  waitSettled(): Promise<void>;
  /** Reads all data and checks it; the report has the faults. @throws FrondbError `Cancelled`. */
  verify(options?: LongOptions): Promise<VerifyReport>;
  /**
   * Copies the database into the directory `to`, which must be empty or missing, while others read
   * and write it. The backup has everything that was committed before the call.
   *
   * @throws FrondbError `Exists` if `to` has files; `Invalid` if `to` overlaps the database; `Busy`
   * if another backup is being made; `Corruption`; `Cancelled`; `NoSpace`.
   */
  backup(to: Path, options?: BackupOptions): Promise<BackupReport>;
  /** Changes the memory budget, bytes; 0 means a quarter of the machine's. @throws FrondbError `Invalid` below 16 MiB. */
  setMemory(bytes: number): Promise<void>;
  /** Returns the statistics by name; docs/operating/status.md explains each. */
  stats(): Record<string, number>;
  /** Returns the statistics and latencies in the text format of Prometheus. */
  prometheus(): string;

  /**
   * Closes the database: waits for calls in progress, and rolls back transactions. Later calls on
   * trees, iterators and transactions fail with `Closed`. Another call returns the same promise.
   *
   * @throws FrondbError `NoSpace`, `Io` or `Poisoned` if something could not be written. The
   * database is closed nevertheless, and durable commits stay durable.
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Rows of a range that `for await` reads. Each iteration begins anew, with the state at its begin. */
export class AsyncRange<T> implements AsyncIterable<T> {
  protected constructor();
  [Symbol.asyncIterator](): AsyncIterableIterator<T, undefined> & AsyncDisposable;
  /** Reads all rows. */
  toArray(): Promise<T[]>;
}

/** As {@link AsyncRange}; `for` without `await` reads the rows on this thread. */
export class Range<T> extends AsyncRange<T> implements Iterable<T> {
  private constructor();
  [Symbol.iterator](): IterableIterator<T, undefined>;
}

/** A tree of a database: keys in the order of their bytes, each with a value. */
export class Tree implements AsyncIterable<Row> {
  private constructor();

  readonly name: string;

  /**
   * Returns the value of a key; null if it has none. Gets that a program makes before it waits for
   * one of them are read together.
   *
   * @throws FrondbError `Corruption` for a damaged block on the way; `NotFound` if the tree was
   * dropped; `Io`; `Closed`.
   * @example
   * const [ada, bob] = await Promise.all([users.get('ada'), users.get('bob')]);
   */
  get(key: Bytes, options?: ReadOptions): Promise<Buffer | null>;
  /** As {@link get}, on this thread. */
  getSync(key: Bytes, options?: ReadOptions): Buffer | null;
  /** Returns whether a key has a value. */
  exists(key: Bytes, options?: ReadOptions): Promise<boolean>;
  /** As {@link exists}, on this thread. */
  existsSync(key: Bytes, options?: ReadOptions): boolean;
  /** Returns the values of several keys, all as of one moment, in the order of the keys. */
  multiGet(keys: Iterable<Bytes>, options?: ReadOptions): Promise<(Buffer | null)[]>;

  /**
   * Returns the rows of a range, in the order of their keys.
   *
   * @example
   * for await (const [key, value] of users.entries({ prefix: 'a', limit: 10 })) console.log(key, value);
   */
  entries(range?: RangeOptions & ReadOptions): Range<Row>;
  /** Returns the keys of a range. */
  keys(range?: RangeOptions & ReadOptions): Range<Buffer>;
  /** Returns the values of a range. */
  values(range?: RangeOptions & ReadOptions): Range<Buffer>;
  [Symbol.asyncIterator](): AsyncIterableIterator<Row, undefined> & AsyncDisposable;
  /** Returns the row with the smallest key; null if the tree is empty. */
  first(): Promise<Row | null>;
  /** Returns the row with the largest key; null if the tree is empty. */
  last(): Promise<Row | null>;
  /** Estimates the rows and the bytes on disk of a range, usually within a factor of two. */
  estimate(range?: KeyRange): Promise<Estimate>;
  /** Returns the statistics of the tree by name. */
  stats(): Record<string, number>;

  /**
   * Sets the value of a key. Writes that a program makes before it waits for one of them are
   * committed together, in the order of the calls, and share one sync. While a transaction is active
   * there is no such order: await a write before one that must come after it.
   *
   * @throws FrondbError as {@link Db.write}.
   */
  put(key: Bytes, value: Bytes, options?: WriteOptions): Promise<void>;
  /** As {@link put}, on this thread, before writes that are not awaited yet. */
  putSync(key: Bytes, value: Bytes, options?: WriteOptions): void;
  /** Removes a key, which need not exist. */
  delete(key: Bytes, options?: WriteOptions): Promise<void>;
  /** As {@link delete}, on this thread, before writes that are not awaited yet. */
  deleteSync(key: Bytes, options?: WriteOptions): void;
  /** Removes all keys of a range at the cost of one write. @throws FrondbError `Invalid` without a bound. */
  deleteRange(range: KeyRange, options?: WriteOptions): Promise<void>;
  /** Removes all keys at the cost of one write. */
  clear(options?: WriteOptions): Promise<void>;
  /** Sets the value of a key and returns its former value; null if it had none. */
  replace(key: Bytes, value: Bytes): Promise<Buffer | null>;
  /** Removes a key and returns its value; null if it had none. */
  take(key: Bytes): Promise<Buffer | null>;

  /**
   * Adds a number to a counter without reading it. The sum wraps around at 2^63.
   *
   * @throws FrondbError `Invalid` if the tree was created without `counters`.
   */
  add(key: Bytes, number?: number | bigint, options?: WriteOptions): Promise<void>;
  /** Returns the number of a counter; 0 if the key has no value. */
  counter(key: Bytes): Promise<bigint>;
  /** Changes options that are not fixed, durably. New data uses them at once, existing data later. */
  setOptions(options: NamedOptions): Promise<void>;
}

/** Writes to any number of trees that {@link Db.write} commits together; {@link Db.batch} makes one. */
export class Batch {
  private constructor();
  /** The number of writes. */
  readonly length: number;
  /** The bytes of keys and values. */
  readonly bytes: number;
  put(tree: Tree, key: Bytes, value: Bytes): this;
  delete(tree: Tree, key: Bytes): this;
  deleteRange(tree: Tree, range: KeyRange): this;
  add(tree: Tree, key: Bytes, number?: number | bigint): this;
  /** Removes the writes. */
  clear(): this;
}

/**
 * Reads and writes over any number of trees that take effect together; {@link Db.transaction} runs
 * one, {@link Db.begin} begins one. Its calls run in the order in which they were made, also
 * without `await`. A commit fails if a write that was not awaited has failed. A transaction that is
 * forgotten is rolled back when it is collected as garbage.
 *
 * Reads and writes throw FrondbError `LockTimeout`, `Deadlock`, `Conflict`, `Busy` or `TooManyLocks`
 * for locks of others.
 */
export class Transaction implements AsyncDisposable {
  private constructor();
  /** Its number; numbers ascend in the order of the begins. */
  readonly id: number;
  /** Whether it was committed, rolled back or prepared. */
  readonly ended: boolean;

  /** Returns the value of a key as the isolation level shows it, with own writes. */
  get(tree: Tree, key: Bytes): Promise<Buffer | null>;
  exists(tree: Tree, key: Bytes): Promise<boolean>;
  /** Locks a key, which need not exist, for writing, and returns its newest value. */
  getForUpdate(tree: Tree, key: Bytes, options?: { wait?: Wait }): Promise<Buffer | null>;
  /** Locks a key against writes of others, and returns its newest value. */
  getForShare(tree: Tree, key: Bytes, options?: { wait?: Wait }): Promise<Buffer | null>;
  multiGet(tree: Tree, keys: Iterable<Bytes>): Promise<(Buffer | null)[]>;

  /** Returns the rows of a range, which `lock` locks as the iterator gets to them. */
  entries(tree: Tree, range?: RangeOptions & LockOptions): AsyncRange<Row>;
  keys(tree: Tree, range?: RangeOptions & LockOptions): AsyncRange<Buffer>;
  values(tree: Tree, range?: RangeOptions & LockOptions): AsyncRange<Buffer>;

  put(tree: Tree, key: Bytes, value: Bytes): Promise<void>;
  /** Sets the value of a key that must not have one. @throws FrondbError `Exists`. */
  insert(tree: Tree, key: Bytes, value: Bytes): Promise<void>;
  delete(tree: Tree, key: Bytes): Promise<void>;
  deleteRange(tree: Tree, range: KeyRange): Promise<void>;
  add(tree: Tree, key: Bytes, number?: number | bigint): Promise<void>;
  replace(tree: Tree, key: Bytes, value: Bytes): Promise<Buffer | null>;
  take(tree: Tree, key: Bytes): Promise<Buffer | null>;
  /**
   * Removes the row with the smallest key and returns it; null if there is none.
   *
   * @example
   * // Several workers take different jobs.
   * const job = await tx.popFirst(jobs, { wait: 'skip-locked' });
   */
  popFirst(tree: Tree, options?: { wait?: Wait }): Promise<Row | null>;
  popLast(tree: Tree, options?: { wait?: Wait }): Promise<Row | null>;

  /** Sets a savepoint, to which the transaction can roll back. Savepoints nest. */
  savepoint(): Promise<Savepoint>;
  /** Commits: all writes take effect together. */
  commit(): Promise<void>;
  /** Undoes all writes and releases all locks. */
  rollback(): Promise<void>;
  /** Prepares the transaction under a name of 1 to 256 bytes, the first phase of two-phase commit. */
  prepare(xid: Bytes): Promise<void>;
  /** Makes the wait of its call in progress, or its next one, fail with `Cancelled`. */
  cancel(): void;
  /** Rolls back, unless the transaction has ended. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface LockOptions {
  /** Locks the rows for writing, or against writes of others. Default: only as the isolation level does. */
  lock?: 'update' | 'share';
  /** Default `timeout`. */
  wait?: Wait;
}

/** A savepoint; {@link Transaction.savepoint} sets one. */
export class Savepoint {
  private constructor();
  /** Undoes all writes since the savepoint, which stays set. The locks stay, too. */
  rollback(): Promise<void>;
  /** Removes the savepoint and later ones, and keeps the writes. */
  release(): Promise<void>;
}

/** A moment of the whole database; {@link Db.snapshot} takes one. */
export class Snapshot implements Disposable, AsyncDisposable {
  private constructor();
  readonly closed: boolean;
  /** Lets the database free what only this snapshot sees. Iterators that have begun go on. */
  close(): void;
  [Symbol.dispose](): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * A bulk load; {@link Db.bulkLoad} begins one. Its rows are in the trees after {@link finish}; until
 * then, and after an error or a cancel, the trees are unchanged.
 *
 * @example
 * const load = await db.bulkLoad();
 * for await (const line of lines) await load.put(events, line.id, line.text);
 * console.log((await load.finish()).entries);
 */
export class BulkLoad implements AsyncDisposable {
  private constructor();
  /** Makes a tree that exists from the end of the load on. @throws FrondbError `Exists`. */
  newTree(name: string, options?: TreeOptions): Promise<Tree>;
  /** Adds a row. The promise waits only while the engine is far behind. */
  put(tree: Tree, key: Bytes, value: Bytes): Promise<void>;
  /** Adds the rows of an iterable. */
  putMany(tree: Tree, rows: Iterable<[Bytes, Bytes]> | AsyncIterable<[Bytes, Bytes]>): Promise<void>;
  /**
   * Commits the load.
   *
   * @throws FrondbError `Exists` for a key that was given twice, under `duplicates: 'fail'`, or a
   * name that was taken; `LockTimeout`; `Cancelled`; `NoSpace`.
   */
  finish(options?: LongOptions): Promise<BulkReport>;
  /** Ends the load without its rows, also during {@link finish}. */
  cancel(): void;
  /** Returns a key that was given twice; null if there is none. */
  duplicate(): Buffer | null;
  /** Cancels the load, unless it was finished. */
  [Symbol.asyncDispose](): Promise<void>;
}
