//! The tables of the graph, as published.
//!
//! Text has a binary collation, because MyRocks refuses keys with other collations.

/// The link types. A node can have links of both.
pub(super) const LINK_TYPES: [u64; 2] = [123_456_789, 123_456_790];
/// The node type; all nodes have the same.
pub(super) const NODE_TYPE: u64 = 2_048;
/// The time of the first link, milliseconds. The times of nodes are in seconds.
pub(super) const FIRST_MS: u64 = 1_300_000_000_000;

/// The statements that create the tables.
pub(super) fn create(engine: &str) -> [String; 3] {
    let end = format!("ENGINE={engine} DEFAULT CHARSET=latin1 COLLATE=latin1_bin");
    [
        format!(
            "CREATE TABLE nodetable (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, \
             type INT UNSIGNED NOT NULL, version BIGINT UNSIGNED NOT NULL, \
             time INT UNSIGNED NOT NULL, data MEDIUMTEXT NOT NULL, PRIMARY KEY (id)) {end}"
        ),
        format!(
            "CREATE TABLE linktable (id1 BIGINT UNSIGNED NOT NULL, id2 BIGINT UNSIGNED NOT NULL, \
             link_type BIGINT UNSIGNED NOT NULL, visibility TINYINT NOT NULL, \
             data VARCHAR(255) NOT NULL, time BIGINT UNSIGNED NOT NULL, \
             version INT UNSIGNED NOT NULL, PRIMARY KEY (link_type, id1, id2), \
             KEY id1_type (id1, link_type, visibility, time, id2, version, data)) {end}"
        ),
        format!(
            "CREATE TABLE counttable (id BIGINT UNSIGNED NOT NULL, \
             link_type BIGINT UNSIGNED NOT NULL, count INT UNSIGNED NOT NULL, \
             time BIGINT UNSIGNED NOT NULL, version BIGINT UNSIGNED NOT NULL, \
             PRIMARY KEY (id, link_type)) {end}"
        ),
    ]
}
