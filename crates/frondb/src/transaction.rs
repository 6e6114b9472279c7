//! The types of transactions, with examples.

/// A transaction; begun by [`Db::begin`](crate::Db::begin). For example, a transfer between two
/// accounts:
///
/// ```
/// use frondb::{Isolation, TransactionOptions, Wait};
///
/// # use frondb::{Db, Options, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// # example(&db)?;
/// # example(&db) // A program is started more than once.
/// # }
/// # fn example(db: &Db) -> frondb::Result<()> {
/// let accounts = db.open_or_create_tree("accounts", TreeOptions::default())?;
/// let amount = |value: Option<Vec<u8>>| -> u64 {
///     value.and_then(|v| v.try_into().ok()).map_or(0, u64::from_be_bytes)
/// };
///
/// let options = TransactionOptions::new().isolation(Isolation::Serializable);
/// let transfer = db.begin(options)?;
/// // The lock keeps other transactions from changing the row before the write.
/// let ada = amount(transfer.get_for_update(&accounts, "ada", Wait::Timeout)?);
/// let bob = amount(transfer.get_for_update(&accounts, "bob", Wait::Timeout)?);
/// let paid = ada.min(30);
/// transfer.put(&accounts, "ada", (ada - paid).to_be_bytes())?;
/// transfer.put(&accounts, "bob", (bob + paid).to_be_bytes())?;
/// transfer.commit()?;
///
/// assert_eq!(amount(accounts.get("bob")?), bob + paid);
/// # Ok(())
/// # }
/// ```
///
/// The iterators of a transaction see its writes:
///
/// ```
/// # use frondb::{Db, Options, TransactionOptions, TreeOptions};
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let words = db.open_or_create_tree("words", TreeOptions::default())?;
/// let txn = db.begin(TransactionOptions::new())?;
/// txn.put(&words, "fern", "1")?;
/// txn.put(&words, "frond", "2")?;
/// for entry in txn.range(&words, "f"..)? {
///     let (key, value) = entry?;
///     println!("{} {}", key.escape_ascii(), value.escape_ascii());
/// }
/// # assert_eq!(txn.range(&words, "f"..)?.count(), 2);
/// # Ok(())
/// # }
/// ```
///
/// Workers that take different entries of a queue:
///
/// ```
/// use frondb::{Db, Options, TransactionOptions, TreeOptions, Wait};
///
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let jobs = db.open_or_create_tree("jobs", TreeOptions::default())?;
/// jobs.put("1", "sweep")?;
/// jobs.put("2", "water")?;
/// let (one, two) = (db.begin(TransactionOptions::new())?, db.begin(TransactionOptions::new())?);
/// let first = one.pop_first(&jobs, Wait::SkipLocked)?;
/// assert_eq!(first, Some((b"1".to_vec(), b"sweep".to_vec())));
/// assert!(two.pop_first(&jobs, Wait::SkipLocked)?.is_some_and(|(key, _)| key == b"2"));
/// two.commit()?;
/// one.rollback()?; // the job is there again
/// assert_eq!(jobs.first()?, first);
/// # db.close()
/// # }
/// ```
#[doc(inline)]
pub use frondb_txn::Transaction;

/// A bulk load within a transaction; begun by [`Transaction::begin_bulk`].
///
/// ```
/// use frondb::{Db, Options, TransactionOptions, TreeOptions};
///
/// # fn main() -> frondb::Result<()> {
/// # let dir = frondb_testkit::TempDir::new("doc");
/// # let db = Db::open(dir.path(), Options::default())?;
/// let words = db.create_tree("words", TreeOptions::default())?;
/// let txn = db.begin(TransactionOptions::new())?;
/// let before = txn.set_savepoint()?;
/// match txn.begin_bulk(&[&words])? {
///     Some(mut bulk) => {
///         for word in ["leaf", "frond", "fern"] {
///             bulk.put(&words, word.as_bytes(), b"1")?;
///         }
///         let report = bulk.finish(&mut |_| true)?;
///         if report.duplicates > 0 {
///             txn.roll_back_to(before)?;
///         }
///     }
///     None => txn.insert(&words, b"fern", b"1")?,
/// }
/// assert!(txn.exists(&words, b"fern")?);
/// assert!(!words.exists(b"fern")?);
/// txn.commit()?;
/// assert!(words.exists(b"fern")?);
/// # db.close()
/// # }
/// ```
#[doc(inline)]
pub use frondb_txn::BulkStatement;

#[doc(inline)]
pub use frondb_txn::{
    Committing, Isolation, Savepoint, TransactionCursor, TransactionCursorOptions, TransactionInfo,
    TransactionOptions, TransactionRange, Wait,
};
