//! The applications whose schemas are loaded.

/// An application of Debian.
#[derive(Debug)]
pub struct App {
    /// Name of the application and of its databases.
    pub name: &'static str,
    /// Debian package with the scripts.
    pub package: &'static str,
    /// Paths of the scripts below the package's root, in the order of execution. A name that ends
    /// in `.gz` is a compressed script.
    pub scripts: &'static [&'static str],
    /// The clauses of CREATE DATABASE that the application's manual requires.
    pub charset: &'static str,
    /// Tables that FronDB refuses because they have a FULLTEXT index.
    pub refused: &'static [&'static str],
}

/// The applications. If a package has scripts for later changes of its schema, they follow the
/// schema.
pub const APPLICATIONS: [App; 8] = [
    App {
        name: "zabbix",
        package: "zabbix-server-mysql",
        scripts: &[
            "usr/share/zabbix-server-mysql/schema.sql.gz",
            "usr/share/zabbix-server-mysql/images.sql.gz",
            "usr/share/zabbix-server-mysql/data.sql.gz",
            "usr/share/zabbix-server-mysql/double.sql.gz",
            "usr/share/zabbix-server-mysql/history_pk_prepare.sql.gz",
        ],
        charset: "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
        refused: &[],
    },
    App {
        name: "roundcube",
        package: "roundcube-core",
        scripts: &["usr/share/roundcube/SQL/mysql.initial.sql"],
        charset: "CHARACTER SET utf8mb4",
        refused: &[],
    },
    App {
        name: "cacti",
        package: "cacti",
        scripts: &["usr/share/cacti/conf_templates/cacti.sql"],
        charset: "CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci",
        refused: &[],
    },
    App {
        name: "powerdns",
        package: "pdns-backend-mysql",
        scripts: &[
            "usr/share/pdns-backend-mysql/schema/schema.mysql.sql",
            "usr/share/pdns-backend-mysql/schema/enable-foreign-keys.mysql.sql",
        ],
        charset: "CHARACTER SET utf8mb4",
        refused: &[],
    },
    App {
        name: "mediawiki",
        package: "mediawiki",
        scripts: &["usr/share/mediawiki/maintenance/tables-generated.sql"],
        charset: "CHARACTER SET binary",
        refused: &["searchindex"],
    },
    App {
        name: "kea",
        package: "kea-admin",
        scripts: &["usr/share/kea/scripts/mysql/dhcpdb_create.mysql"],
        charset: "CHARACTER SET utf8mb4",
        refused: &[],
    },
    App {
        name: "icingadb",
        package: "icingadb",
        scripts: &["usr/share/icingadb/schema/mysql/schema.sql"],
        charset: "CHARACTER SET utf8mb4",
        refused: &[],
    },
    App {
        name: "ulogd",
        package: "ulogd2",
        scripts: &["usr/share/doc/ulogd2/mysql-ulogd2.sql.gz"],
        charset: "CHARACTER SET utf8mb4",
        refused: &[],
    },
];
