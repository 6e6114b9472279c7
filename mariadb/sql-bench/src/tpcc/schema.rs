//! The tables. Text has a binary collation, because MyRocks refuses keys with other collations.

pub(super) const DISTRICTS: u64 = 10;
/// Customers of a district, and its orders after the load.
pub(super) const CUSTOMERS: u64 = 3_000;
pub(super) const ITEMS: u64 = 100_000;
/// The first order of a district that is not delivered when the load ends.
pub(super) const FIRST_NEW_ORDER: u64 = 2_101;

const ADDRESS: &str = "street_1 VARCHAR(20) NOT NULL, @street_2 VARCHAR(20) NOT NULL, \
    @city VARCHAR(20) NOT NULL, @state CHAR(2) NOT NULL, @zip CHAR(9) NOT NULL";

/// Tables with their columns and keys. `#` stands for INT NOT NULL, `$` for DECIMAL(12,2) NOT NULL,
/// `%` for DECIMAL(4,4) NOT NULL, `ADDRESS:x` for the columns of an address with prefix x, `DISTS`
/// for a text of each district.
const TABLES: [(&str, &str); 9] = [
    (
        "warehouse",
        "w_id #, w_name VARCHAR(10) NOT NULL, ADDRESS:w_, w_tax %, w_ytd $, PRIMARY KEY (w_id)",
    ),
    (
        "district",
        "d_id #, d_w_id #, d_name VARCHAR(10) NOT NULL, ADDRESS:d_, d_tax %, d_ytd $, \
         d_next_o_id #, PRIMARY KEY (d_w_id, d_id)",
    ),
    (
        "customer",
        "c_id #, c_d_id #, c_w_id #, c_first VARCHAR(16) NOT NULL, c_middle CHAR(2) NOT NULL, \
         c_last VARCHAR(16) NOT NULL, ADDRESS:c_, c_phone CHAR(16) NOT NULL, \
         c_since DATETIME NOT NULL, c_credit CHAR(2) NOT NULL, c_credit_lim $, c_discount %, \
         c_balance $, c_ytd_payment $, c_payment_cnt #, c_delivery_cnt #, \
         c_data VARCHAR(500) NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id), \
         KEY c_name (c_w_id, c_d_id, c_last, c_first)",
    ),
    (
        "history",
        "h_c_id #, h_c_d_id #, h_c_w_id #, h_d_id #, h_w_id #, h_date DATETIME NOT NULL, \
         h_amount $, h_data VARCHAR(24) NOT NULL",
    ),
    ("new_order", "no_o_id #, no_d_id #, no_w_id #, PRIMARY KEY (no_w_id, no_d_id, no_o_id)"),
    (
        "orders",
        "o_id #, o_d_id #, o_w_id #, o_c_id #, o_entry_d DATETIME NOT NULL, o_carrier_id INT, \
         o_ol_cnt #, o_all_local #, PRIMARY KEY (o_w_id, o_d_id, o_id), \
         KEY o_customer (o_w_id, o_d_id, o_c_id, o_id)",
    ),
    (
        "order_line",
        "ol_o_id #, ol_d_id #, ol_w_id #, ol_number #, ol_i_id #, ol_supply_w_id #, \
         ol_delivery_d DATETIME, ol_quantity #, ol_amount $, ol_dist_info CHAR(24) NOT NULL, \
         PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number)",
    ),
    (
        "item",
        "i_id #, i_im_id #, i_name VARCHAR(24) NOT NULL, i_price $, i_data VARCHAR(50) NOT NULL, \
         PRIMARY KEY (i_id)",
    ),
    (
        "stock",
        "s_i_id #, s_w_id #, s_quantity #, DISTS, s_ytd #, s_order_cnt #, s_remote_cnt #, \
         s_data VARCHAR(50) NOT NULL, PRIMARY KEY (s_w_id, s_i_id)",
    ),
];

pub(super) fn names() -> [&'static str; 9] {
    TABLES.map(|(name, _)| name)
}

/// The statements that create the tables.
pub(super) fn create(engine: &str) -> [String; 9] {
    let dists = (1..=DISTRICTS).map(|d| format!("{} CHAR(24) NOT NULL", dist(d)));
    let dists = dists.collect::<Vec<_>>().join(", ");
    TABLES.map(|(name, columns)| {
        let mut columns = columns.replace("DISTS", &dists);
        for prefix in ["w_", "d_", "c_"] {
            let address = format!("{prefix}{}", ADDRESS.replace('@', prefix));
            columns = columns.replace(&format!("ADDRESS:{prefix}"), &address);
        }
        let columns = columns
            .replace('#', "INT NOT NULL")
            .replace('$', "DECIMAL(12,2) NOT NULL")
            .replace('%', "DECIMAL(4,4) NOT NULL");
        format!(
            "CREATE TABLE {name} ({columns}) ENGINE={engine} DEFAULT CHARSET=latin1 \
             COLLATE=latin1_bin"
        )
    })
}

/// The column of a stock with the text for a district.
pub(super) fn dist(district: u64) -> String {
    format!("s_dist_{district:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abbreviations_become_columns() {
        let all = create("X").join("\n");
        assert!(
            all.contains("w_street_1 VARCHAR(20) NOT NULL, w_street_2") && all.contains("c_zip")
        );
        assert!(all.contains("s_dist_10 CHAR(24)") && all.contains("w_tax DECIMAL(4,4) NOT NULL"));
        assert!(["#", "$", "%", "@", "ADDRESS", "DISTS"].iter().all(|mark| !all.contains(mark)));
    }
}
