//! Checks the invariant of the graph: the count of a node and link type is the number of its
//! visible links.

use frondb_bench::{Error, Result};
use frondb_mariadb_harness::{self as harness, Client};

use super::access::{Access, LINK_READS, LINK_WRITES, NODE_DELETES};
use crate::session::number;

/// Nodes of each access distribution that are checked: the most frequently used ones.
const SAMPLE: u64 = 1_000;
/// Nodes in a query.
const BATCH: usize = 100;

/// Compares the counts of a sample of nodes with their links: nodes that are often written, often
/// read, and others.
pub(super) fn counts(client: &mut Client, nodes: u64) -> Result<()> {
    let often = |kind| {
        let access = Access::new(nodes, kind);
        (0..SAMPLE.min(nodes)).map(move |rank| access.of_rank(rank))
    };
    let ids: Vec<u64> =
        [LINK_WRITES, LINK_READS, NODE_DELETES].into_iter().flat_map(often).collect();
    let mut links = 0;
    for ids in ids.chunks(BATCH) {
        let ids: Vec<String> = ids.iter().map(u64::to_string).collect();
        links += agree(client, &ids.join(","))?;
    }
    match links {
        0 => Err(Error::Wrong("no node of the sample has a link".to_owned())),
        _ => Ok(()),
    }
}

/// Compares the counts of these nodes with their links; returns the number of links.
fn agree(client: &mut Client, ids: &str) -> Result<u64> {
    let counts = rows(
        client,
        &format!(
            "SELECT id, link_type, count FROM counttable WHERE id IN ({ids}) AND count > 0 \
             ORDER BY id, link_type"
        ),
    )?;
    let links = rows(
        client,
        &format!(
            "SELECT id1, link_type, COUNT(*) FROM linktable FORCE INDEX (id1_type) \
             WHERE id1 IN ({ids}) AND visibility = 1 GROUP BY id1, link_type ORDER BY id1, link_type"
        ),
    )?;
    compare(&counts, &links)
}

/// Compares counts with numbers of links, both as (node, type, number); returns the sum of the
/// numbers.
fn compare(counts: &[[u64; 3]], links: &[[u64; 3]]) -> Result<u64> {
    if let Some(count) = counts.iter().find(|count| !links.contains(count)) {
        let [id, link_type, count] = count;
        let found = links.iter().find(|link| (link[0], link[1]) == (*id, *link_type));
        let found = found.map_or(0, |link| link[2]);
        return Err(Error::Wrong(format!(
            "node {id} has {found} visible links of type {link_type}, but its count is {count}"
        )));
    }
    if counts.len() != links.len() {
        return Err(Error::Wrong("a node with visible links has no count".to_owned()));
    }
    Ok(links.iter().map(|link| link[2]).sum())
}

fn rows(client: &mut Client, sql: &str) -> Result<Vec<[u64; 3]>> {
    let reply = client.query(sql).map_err(Error::engine)?;
    let numbers =
        reply.rows.iter().map(|row| Ok([number(row, 0)?, number(row, 1)?, number(row, 2)?]));
    numbers.collect::<harness::Result<_>>().map_err(Error::engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_that_differs_from_the_links_is_an_error() {
        let counts = [[1, 7, 3], [2, 7, 1]];
        assert_eq!(compare(&counts, &counts).unwrap(), 4);
        let error = compare(&counts, &[[1, 7, 3], [2, 7, 2]]).unwrap_err().to_string();
        assert!(error.contains("node 2 has 2 visible links of type 7, but its count is 1"));
        assert!(compare(&counts, &counts[..1]).is_err());
        assert!(compare(&counts[..1], &counts).is_err());
    }
}
