//! The operations on links. An operation that writes is a transaction of several statements, which
//! also changes the count of links.

use std::fmt::Write;

use frondb_bench::{Error, Result};
use frondb_mariadb_harness as harness;

use super::payload::LINK;
use super::requester::Requester;
use super::schema::LINK_TYPES;
use crate::session::{Batch, number};

/// Most links that a list returns.
const LIST_MAX: usize = 10_000;
/// After each link of a multiget, another link follows with probability 0.618: 2.6 links on
/// average.
const MULTIGET_MORE: (u64, u64) = (618, 1_000);
const MULTIGET_MAX: usize = 128;
/// How often each operation uses a link that the load created, percent. Otherwise it uses one of
/// the next `OTHERS` links, which operations add and delete.
const KNOWN_ADDED: u64 = 10;
const KNOWN_DELETED: u64 = 70;
const KNOWN_UPDATED: u64 = 90;
const KNOWN_READ: u64 = 70;
const OTHERS: u64 = 100;

/// The primary key of a link.
#[derive(Clone, Copy)]
struct Key {
    id1: u64,
    kind: usize,
    id2: u64,
}

impl Key {
    /// The SQL condition that selects the link.
    fn is_key(&self) -> String {
        let Self { id1, kind, id2 } = self;
        format!("link_type = {} AND id1 = {id1} AND id2 = {id2}", LINK_TYPES[*kind])
    }
}

impl Requester {
    pub(super) fn add_link(&mut self) -> Result<()> {
        self.write_link(KNOWN_ADDED)
    }

    pub(super) fn update_link(&mut self) -> Result<()> {
        self.write_link(KNOWN_UPDATED)
    }

    /// Adds a link, or updates the link if it exists; raises the count if the link was not visible
    /// before.
    fn write_link(&mut self, known: u64) -> Result<()> {
        let key = self.link(known);
        let Key { id1, kind, id2 } = key;
        self.data.clear();
        LINK.append(&mut self.data, &mut self.prng);
        let (link_type, data, now) = (LINK_TYPES[kind], &self.data, self.now);
        let insert = format!(
            "INSERT INTO linktable (id1,id2,link_type,visibility,data,time,version) \
             VALUES ({id1},{id2},{link_type},1,{data},{now},0) \
             ON DUPLICATE KEY UPDATE visibility = 1"
        );
        let update = format!(
            "UPDATE linktable SET data = {data}, time = {now}, version = version + 1 WHERE {}",
            key.is_key()
        );
        let added = count(key, now, 1);
        self.session.transaction(|client| {
            let replies = Batch::begin().add(&insert).run(client)?;
            // The server reports 1 for a new link, 2 for one that was hidden, and 0 for one that
            // was visible.
            let affected = replies.last().map_or(0, |reply| reply.affected);
            let mut rest = Batch::next();
            if affected != 1 {
                rest.add(&update);
            }
            if affected != 0 {
                rest.add(&added);
            }
            rest.add("COMMIT").run(client).map(drop)
        })
    }

    /// Hides a link and lowers the count, if the link is visible.
    pub(super) fn delete_link(&mut self) -> Result<()> {
        let key = self.link(KNOWN_DELETED);
        let now = self.now;
        let is_key = key.is_key();
        let select = format!("SELECT visibility FROM linktable WHERE {is_key} FOR UPDATE");
        let hide = format!("UPDATE linktable SET visibility = 0 WHERE {is_key}");
        let removed = count(key, now, -1);
        self.session.transaction(|client| {
            let replies = Batch::begin().add(&select).run(client)?;
            let found = replies.last().and_then(|reply| reply.rows.first());
            let visible = found.map(|row| number::<u8>(row, 0)).transpose()?;
            let mut rest = Batch::next();
            if visible == Some(1) {
                rest.add(&hide).add(&removed);
            }
            rest.add("COMMIT").run(client).map(drop)
        })
    }

    pub(super) fn count_links(&mut self) -> Result<()> {
        let id1 = self.link_reads.id(&mut self.prng);
        let link_type = LINK_TYPES[self.prng.index(LINK_TYPES.len())];
        let sql =
            format!("SELECT count FROM counttable WHERE id = {id1} AND link_type = {link_type}");
        self.session.query(&sql).map(drop)
    }

    pub(super) fn multiget_links(&mut self) -> Result<()> {
        let id1 = self.link_reads.id(&mut self.prng);
        let kind = self.prng.index(LINK_TYPES.len());
        let mut sql = format!(
            "SELECT id1,id2,link_type,visibility,data,time,version FROM linktable \
             WHERE link_type = {} AND id1 = {id1} AND id2 IN (",
            LINK_TYPES[kind]
        );
        for _ in 0..MULTIGET_MAX {
            let _ = write!(sql, "{},", self.id2(id1, kind, KNOWN_READ));
            if !self.prng.chance(MULTIGET_MORE.0, MULTIGET_MORE.1) {
                break;
            }
        }
        sql.pop();
        sql.push(')');
        self.session.query(&sql).map(drop)
    }

    pub(super) fn get_link_list(&mut self) -> Result<()> {
        let id1 = self.link_reads.id(&mut self.prng);
        let link_type = LINK_TYPES[self.prng.index(LINK_TYPES.len())];
        let found = self.session.query(&format!(
            "SELECT id1,id2,link_type,visibility,data,time,version FROM linktable \
             FORCE INDEX (id1_type) WHERE id1 = {id1} AND link_type = {link_type} \
             AND visibility = 1 AND time BETWEEN 0 AND {} ORDER BY time DESC LIMIT {LIST_MAX}",
            u64::MAX
        ))?;
        let times = found.rows.iter().map(|row| number::<u64>(row, 5));
        let times = times.collect::<harness::Result<Vec<_>>>().map_err(Error::engine)?;
        match times.is_sorted_by(|newer, older| newer >= older) {
            true => Ok(()),
            false => Err(Error::Wrong(format!("the list of links of {id1} is not in order"))),
        }
    }

    /// Draws a link to write.
    fn link(&mut self, known: u64) -> Key {
        let id1 = self.link_writes.id(&mut self.prng);
        let kind = self.prng.index(LINK_TYPES.len());
        Key { id1, kind, id2: self.id2(id1, kind, known) }
    }

    /// Draws the target of a link of node `id1`; with a probability of `known` percent, of a link
    /// that the load created.
    fn id2(&mut self, id1: u64, kind: usize, known: u64) -> u64 {
        let degree = self.links.degrees(id1)[kind];
        let link = if degree > 0 && self.prng.chance(known, 100) {
            self.prng.below(degree)
        } else {
            degree + self.prng.below(OTHERS)
        };
        self.links.id2(id1, kind, link)
    }
}

/// The statement that adds `change` to the link count of a node and type.
fn count(key: Key, now: u64, change: i64) -> String {
    let Key { id1, kind, .. } = key;
    format!(
        "INSERT INTO counttable (id,link_type,count,time,version) VALUES ({id1},{},{},{now},0) \
         ON DUPLICATE KEY UPDATE count = count + ({change}), time = {now}, version = version + 1",
        LINK_TYPES[kind],
        change.max(0)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_change_by_one_and_do_not_begin_below_zero() {
        let key = Key { id1: 5, kind: 0, id2: 9 };
        assert!(count(key, 7, 1).contains("VALUES (5,123456789,1,7,0)"));
        let fewer = count(key, 7, -1);
        assert!(fewer.contains("VALUES (5,123456789,0,7,0)") && fewer.contains("count + (-1)"));
    }
}
