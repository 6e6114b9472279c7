//! A table of users with two secondary indexes: a unique one by e-mail address, and one by city
//! that is not unique. Every change writes a row and its entries in one transaction.
//!
//! `cargo run --release -p frondb --example secondary_indexes`
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program")]

use frondb::tuple::{Tuple, decode_as};
use frondb::{Db, ErrorKind, Options, Result, Transaction, TransactionOptions, Tree, TreeOptions};
use frondb::{Error, Wait};

/// Columns of a row, besides its id.
#[derive(Clone, PartialEq, Debug)]
struct User {
    email: String,
    city: String,
}

struct Users {
    db: Db,
    /// id -> row
    rows: Tree,
    /// email -> id
    by_email: Tree,
    /// (city, id) -> nothing
    by_city: Tree,
}

impl User {
    fn encode(&self) -> Vec<u8> {
        Tuple::new().with(&*self.email).with(&*self.city).into_bytes()
    }

    fn decode(row: &[u8]) -> Result<Self> {
        let (email, city) = decode_as(row)?;
        Ok(Self { email, city })
    }
}

fn city_key(city: &str, id: u64) -> Tuple {
    Tuple::new().with(city).with(id)
}

impl Users {
    fn create(db: Db) -> Result<Self> {
        let rows = db.create_tree("users", TreeOptions::new())?;
        // A unique index is searched for whole keys at every insert, so it has filters.
        let by_email = db.create_tree("users.email", TreeOptions::new())?;
        let by_city = db.create_tree("users.city", TreeOptions::secondary())?;
        Ok(Self { db, rows, by_email, by_city })
    }

    /// Runs `change` in a transaction, which commits if it succeeds. An error rolls back.
    fn change(&self, change: impl FnOnce(&Transaction) -> Result<()>) -> Result<()> {
        let txn = self.db.begin(TransactionOptions::new())?;
        change(&txn)?;
        txn.commit()
    }

    /// Inserts a row. Fails with `Exists` if the id or the address is taken.
    fn insert(&self, id: u64, user: &User) -> Result<()> {
        self.change(|txn| {
            txn.insert(&self.rows, Tuple::new().with(id), user.encode())?;
            txn.insert(&self.by_email, &user.email, id.to_be_bytes())?;
            // A blind write, which reads nothing: the id makes the key unique.
            txn.put(&self.by_city, city_key(&user.city, id), "")
        })
    }

    /// Moves a user to another city. The lock keeps the row as it is until the commit.
    fn move_to(&self, id: u64, city: &str) -> Result<()> {
        self.change(|txn| {
            let row = txn.get_for_update(&self.rows, Tuple::new().with(id), Wait::Timeout)?;
            let not_found = || Error::new(ErrorKind::NotFound, format!("no user {id}"));
            let old = User::decode(&row.ok_or_else(not_found)?)?;
            let new = User { city: city.to_owned(), ..old.clone() };
            txn.put(&self.rows, Tuple::new().with(id), new.encode())?;
            txn.delete(&self.by_city, city_key(&old.city, id))?;
            txn.put(&self.by_city, city_key(&new.city, id), "")
        })
    }

    fn by_email(&self, email: &str) -> Result<Option<User>> {
        let Some(id) = self.by_email.get(email)? else { return Ok(None) };
        let id = id.try_into().map_or(0, u64::from_be_bytes);
        self.rows.get(Tuple::new().with(id))?.as_deref().map(User::decode).transpose()
    }

    /// Returns the ids of the users in a city, in order, from the index alone.
    fn in_city(&self, city: &str) -> Result<Vec<u64>> {
        let ids = self.by_city.prefix(Tuple::new().with(city))?.map(|entry| {
            let (_city, id): (String, u64) = decode_as(&entry?.0)?;
            Ok(id)
        });
        ids.collect()
    }
}

fn main() -> Result<()> {
    let path = std::env::temp_dir().join(format!("frondb-indexes-{}", std::process::id()));
    let users = Users::create(Db::open(&path, Options::default().create_new(true))?)?;
    let user = |id: u64, city: &str| User { email: format!("u{id}@x.org"), city: city.to_owned() };
    for id in 0..30 {
        users.insert(id, &user(id, ["Bern", "Bergen", "Bonn"][id as usize % 3]))?;
    }
    // The address exists, so nothing of the row is inserted.
    let twice = users.insert(30, &user(7, "Bern")).expect_err("the address is taken");
    assert_eq!(twice.kind(), ErrorKind::Exists);
    assert!(!users.rows.exists(Tuple::new().with(30_u64))?);

    users.move_to(3, "Bonn")?;
    assert_eq!(users.by_email("u3@x.org")?, Some(user(3, "Bonn")));
    assert_eq!(users.in_city("Bern")?, [0, 6, 9, 12, 15, 18, 21, 24, 27]);
    assert_eq!(users.in_city("Bonn")?.len(), 11);
    println!("users in Bonn: {:?}", users.in_city("Bonn")?);
    users.db.close()?;
    std::fs::remove_dir_all(&path).expect("the folder can be removed");
    Ok(())
}

/// `make test` runs the program.
#[test]
fn runs() -> Result<()> {
    main()
}
