//! The examples of docs/guides/serde.md, which the documentation tests compile and run. No build
//! contains this module.
//!
//! Values:
//!
//! ```
//! use frondb::{Error, ErrorKind, Result, Tree};
//! use serde::{Deserialize, Serialize, de::DeserializeOwned};
//!
//! #[derive(Serialize, Deserialize, PartialEq, Debug)]
//! struct User {
//!     name: String,
//!     born: u16,
//! }
//!
//! fn put<T: Serialize>(tree: &Tree, key: impl AsRef<[u8]>, value: &T) -> Result<()> {
//!     tree.put(key, postcard::to_allocvec(value).map_err(invalid)?)
//! }
//!
//! fn get<T: DeserializeOwned>(tree: &Tree, key: impl AsRef<[u8]>) -> Result<Option<T>> {
//!     let value = tree.get(key)?;
//!     value.map(|bytes| postcard::from_bytes(&bytes).map_err(invalid)).transpose()
//! }
//!
//! fn invalid(error: postcard::Error) -> Error {
//!     Error::new(ErrorKind::Invalid, format!("a value cannot be converted: {error}"))
//! }
//!
//! # use frondb::{Db, Options, TreeOptions};
//! # fn main() -> Result<()> {
//! # let dir = frondb_testkit::TempDir::new("doc");
//! # let db = Db::open(dir.path(), Options::default())?;
//! # let users = db.create_tree("users", TreeOptions::new())?;
//! let ada = User { name: "Ada".to_owned(), born: 1815 };
//! put(&users, "ada", &ada)?;
//! assert_eq!(get::<User>(&users, "ada")?, Some(ada));
//! # users.put("bad", [0xff])?;
//! # assert_eq!(get::<User>(&users, "bad").unwrap_err().kind(), ErrorKind::Invalid);
//! # db.close()
//! # }
//! ```
//!
//! Values that borrow:
//!
//! ```
//! # use frondb::{Db, Options, TreeOptions};
//! # use serde::{Deserialize, Serialize};
//! #[derive(Serialize, Deserialize)]
//! struct Line<'a> {
//!     level: u8,
//!     text: &'a str,
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = frondb_testkit::TempDir::new("doc");
//! # let db = Db::open(dir.path(), Options::default())?;
//! # let lines = db.create_tree("lines", TreeOptions::new())?;
//! # for n in 0..3_u32 {
//! #     let line = Line { level: n as u8, text: "started" };
//! #     lines.put(n.to_be_bytes(), postcard::to_allocvec(&line)?)?;
//! # }
//! let (mut cursor, mut errors) = (lines.cursor()?, 0);
//! while cursor.next()? {
//!     // `text` lies in the memory of the cursor.
//!     let line: Line = postcard::from_bytes(cursor.value()?)?;
//!     errors += usize::from(line.level > 1 && line.text.starts_with("st"));
//! }
//! # assert_eq!(errors, 1);
//! # drop(cursor);
//! # db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Keys:
//!
//! ```
//! use frondb::tuple::{self, Tuple};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The bytes of a serde format do not sort as the values do.
//! assert!(postcard::to_allocvec(&255_u32)? > postcard::to_allocvec(&300_u32)?);
//! assert!(Tuple::new().with(255_u32).as_bytes() < Tuple::new().with(300_u32).as_bytes());
//!
//! /// A key of two columns.
//! #[derive(PartialEq, Debug)]
//! struct OrderKey {
//!     customer: String,
//!     number: u64,
//! }
//!
//! impl From<&OrderKey> for Tuple {
//!     fn from(key: &OrderKey) -> Self {
//!         Tuple::new().with(&*key.customer).with(key.number)
//!     }
//! }
//!
//! impl TryFrom<&[u8]> for OrderKey {
//!     type Error = frondb::Error;
//!
//!     fn try_from(bytes: &[u8]) -> frondb::Result<Self> {
//!         let (customer, number) = tuple::decode_as(bytes)?;
//!         Ok(Self { customer, number })
//!     }
//! }
//!
//! let key = OrderKey { customer: "Ada".to_owned(), number: 300 };
//! assert_eq!(OrderKey::try_from(Tuple::from(&key).as_bytes())?, key);
//! # Ok(())
//! # }
//! ```
//!
//! Versions:
//!
//! ```
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! enum Stored {
//!     V1 { name: String },
//!     V2 { name: String, born: Option<u16> },
//! }
//!
//! #[derive(PartialEq, Debug)]
//! struct User {
//!     name: String,
//!     born: Option<u16>,
//! }
//!
//! impl From<Stored> for User {
//!     fn from(stored: Stored) -> Self {
//!         match stored {
//!             Stored::V1 { name } => User { name, born: None },
//!             Stored::V2 { name, born } => User { name, born },
//!         }
//!     }
//! }
//!
//! # fn main() -> postcard::Result<()> {
//! let old = postcard::to_allocvec(&Stored::V1 { name: "Ada".to_owned() })?;
//! let user: User = postcard::from_bytes::<Stored>(&old)?.into();
//! assert_eq!(user, User { name: "Ada".to_owned(), born: None });
//! # let new = Stored::V2 { name: "Bob".to_owned(), born: Some(1900) };
//! # let new: User = postcard::from_bytes::<Stored>(&postcard::to_allocvec(&new)?)?.into();
//! # assert_eq!(new.born, Some(1900));
//! # Ok(())
//! # }
//! ```
