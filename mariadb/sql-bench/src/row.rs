//! iiBench's row as SQL, with the same content as the rows of the library's own benchmark.

use std::io::Write;

use frondb_bench::rows::TableRow;

/// The statement that creates the table. Raw bytes of a row: 88 + 8 in the primary entry, 16 + 20 +
/// 24 in the secondary entries.
pub(crate) fn create(engine: &str) -> String {
    format!(
        "CREATE TABLE purchases (id BIGINT UNSIGNED NOT NULL, date BIGINT UNSIGNED NOT NULL, \
         register INT UNSIGNED NOT NULL, customer INT UNSIGNED NOT NULL, product INT UNSIGNED NOT NULL, \
         price INT UNSIGNED NOT NULL, data VARBINARY(64) NOT NULL, PRIMARY KEY (id), \
         KEY price_customer (price, customer), KEY register_price_customer (register, price, customer), \
         KEY price_date_customer (price, date, customer)) ENGINE={engine}"
    )
}

/// Bytes of keys and values of a row in all its trees.
pub(crate) const RAW_BYTES: u64 = 156;

/// Replaces `statement` by an INSERT of `rows`, whose values depend on `seed`.
pub(crate) fn insert(statement: &mut Vec<u8>, seed: u64, rows: std::ops::Range<u64>) {
    statement.clear();
    statement.extend_from_slice(b"INSERT INTO purchases VALUES ");
    for id in rows {
        let row = TableRow::new(seed, id, 0);
        let (date, [register, customer, product, price]) = row.numbers();
        // Writing to a vector cannot fail.
        let _ = write!(statement, "({id},{date},{register},{customer},{product},{price},'");
        for &byte in row.random() {
            if matches!(byte, b'\'' | b'\\' | 0) {
                statement.push(b'\\');
            }
            statement.push(if byte == 0 { b'0' } else { byte });
        }
        statement.extend_from_slice(&[b'x'; 32]);
        statement.extend_from_slice(b"'),");
    }
    statement.pop();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_has_all_rows_and_no_comma_at_its_end() {
        let mut statement = Vec::new();
        insert(&mut statement, 1, 10..13);
        let text = String::from_utf8_lossy(&statement).into_owned();
        for start in ["VALUES (10,0,", ",(11,0,", ",(12,0,"] {
            assert!(text.contains(start), "{start}: {text}");
        }
        assert!(text.ends_with("xxx')"));
    }
}
