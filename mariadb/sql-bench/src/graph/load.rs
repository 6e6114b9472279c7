//! Fills the tables, each in the order of its primary key.

use std::fmt::Write;

use frondb_bench::{Error, Result};
use frondb_core::prng::Prng;
use frondb_mariadb_harness::Client;

use super::links::Links;
use super::payload::{LINK, NODE};
use super::schema::{self, FIRST_MS, LINK_TYPES, NODE_TYPE};
use crate::bulk::Bulk;
use crate::contender::Contender;

/// Creates and fills the tables.
pub(super) fn fill(
    client: &mut Client,
    contender: Contender,
    links: Links,
    seed: u64,
) -> Result<()> {
    let analyze = "ANALYZE TABLE nodetable, linktable, counttable".to_owned();
    client.run(schema::create(contender.engine().name())).map_err(Error::engine)?;
    let mut prng = Prng::new(seed ^ 0x10AD);
    nodes(client, links, &mut prng)?;
    for kind in 0..LINK_TYPES.len() {
        links_of(client, links, kind, &mut prng)?;
    }
    counts(client, links)?;
    client.run([analyze]).map_err(Error::engine)
}

// Writing to a string cannot fail, so the results of `write!` are dropped.

fn nodes(client: &mut Client, links: Links, prng: &mut Prng) -> Result<()> {
    let mut bulk = Bulk::new(client, "nodetable", "(id,type,version,time,data)");
    for id in 1..=links.nodes() {
        bulk.row(|row| {
            let _ = write!(row, "{id},{NODE_TYPE},0,{},", FIRST_MS / 1_000);
            NODE.append(row, prng);
        })?;
    }
    bulk.finish()
}

/// Inserts all links of one type.
fn links_of(client: &mut Client, links: Links, kind: usize, prng: &mut Prng) -> Result<()> {
    let columns = "(id1,id2,link_type,visibility,data,time,version)";
    let mut bulk = Bulk::new(client, "linktable", columns);
    let mut to = Vec::new();
    for id1 in 1..=links.nodes() {
        to.clear();
        to.extend((0..links.degrees(id1)[kind]).map(|link| links.id2(id1, kind, link)));
        to.sort_unstable();
        for id2 in &to {
            let time = FIRST_MS + prng.below(1_000_000_000);
            bulk.row(|row| {
                let _ = write!(row, "{id1},{id2},{},1,", LINK_TYPES[kind]);
                LINK.append(row, prng);
                let _ = write!(row, ",{time},0");
            })?;
        }
    }
    bulk.finish()
}

fn counts(client: &mut Client, links: Links) -> Result<()> {
    let mut bulk = Bulk::new(client, "counttable", "(id,link_type,count,time,version)");
    for id in 1..=links.nodes() {
        let of_types = links.degrees(id).into_iter().zip(LINK_TYPES);
        for (count, link_type) in of_types.filter(|(count, _)| *count > 0) {
            bulk.row(|row| {
                let _ = write!(row, "{id},{link_type},{count},{FIRST_MS},0");
            })?;
        }
    }
    bulk.finish()
}
