//! Checks the consistency conditions 1 to 4 of clause 3.3.2.

use frondb_bench::{Error, Result};
use frondb_mariadb_harness::Client;

use super::schema::DISTRICTS;

/// The conditions. Each query returns the number of warehouses or districts that it compares, and
/// the number of those that violate the condition.
const CONDITIONS: [(&str, u64, &str); 4] = [
    (
        "1: the payments of a warehouse are those of its districts",
        1,
        "SELECT COUNT(*), COALESCE(SUM(w_ytd <> ytd), 0) FROM warehouse JOIN \
         (SELECT d_w_id, SUM(d_ytd) ytd FROM district GROUP BY d_w_id) d ON d_w_id = w_id",
    ),
    (
        "2: the next order of a district follows its last order and its last new order",
        DISTRICTS,
        "SELECT COUNT(*), COALESCE(SUM(d_next_o_id - 1 <> last_order \
         OR d_next_o_id - 1 <> COALESCE(last_new, last_order)), 0) FROM district JOIN \
         (SELECT o_w_id, o_d_id, MAX(o_id) last_order FROM orders GROUP BY o_w_id, o_d_id) o \
         ON o_w_id = d_w_id AND o_d_id = d_id LEFT JOIN \
         (SELECT no_w_id, no_d_id, MAX(no_o_id) last_new FROM new_order GROUP BY no_w_id, no_d_id) n \
         ON no_w_id = d_w_id AND no_d_id = d_id",
    ),
    (
        "3: the numbers of the new orders of a district have no gap",
        DISTRICTS,
        "SELECT COUNT(*), COALESCE(SUM(last_new - first_new + 1 <> orders), 0) FROM district \
         LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) last_new, MIN(no_o_id) first_new, \
         COUNT(*) orders FROM new_order GROUP BY no_w_id, no_d_id) n \
         ON no_w_id = d_w_id AND no_d_id = d_id",
    ),
    (
        "4: the orders of a district have as many lines as they say",
        DISTRICTS,
        "SELECT COUNT(*), COALESCE(SUM(expected <> found), 0) FROM \
         (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) expected FROM orders GROUP BY o_w_id, o_d_id) o \
         JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) found FROM order_line GROUP BY ol_w_id, ol_d_id) l \
         ON ol_w_id = o_w_id AND ol_d_id = o_d_id",
    ),
];

pub(super) fn conditions(client: &mut Client, warehouses: u64) -> Result<()> {
    for (condition, each, sql) in CONDITIONS {
        let reply = client.query(sql).map_err(Error::engine)?;
        let found = reply.rows.first().map_or(&[][..], Vec::as_slice);
        let compared = crate::session::number::<u64>(found, 0).map_err(Error::engine)?;
        let violated = crate::session::number::<u64>(found, 1).map_err(Error::engine)?;
        let expected = warehouses * each;
        if compared != expected || violated > 0 {
            return Err(Error::Wrong(format!(
                "condition {condition}: {compared} of {expected} were found, and {violated} of \
                 them violate it"
            )));
        }
    }
    Ok(())
}
