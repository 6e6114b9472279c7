//! The fields that each command prints with `--json`: for the help of the command and the table of
//! the manual.

use clap::Command;

/// The commands, each with the fields of the objects that it prints.
pub(crate) const FIELDS: &[(&str, &str)] = &[
    ("create", "`database`, `created` (false if it existed), `trees`"),
    ("trees", "for each: `tree`"),
    ("rename", "`tree` (its name now), `was`"),
    ("alter", "`tree`, `codec` (now), `was`"),
    ("drop", "`dropped`"),
    ("get", "`key`, `value` (--raw has no JSON)"),
    ("put", "`key`, `value_bytes`"),
    ("del", "`keys` (how many were named), `range` (whether a range was)"),
    (
        "scan",
        "for each: `key`, `value`; with --keys-only `key`; with --count one object with `count`",
    ),
    (
        "load",
        "`tree`, `entries` stored, `read` from the file, `replaced` (entries whose key came again), `batches`; \
         in batches `replaced` is null, and `entries` counts a key in each batch that has it; how the file was \
         read: `format`, `delimiter` (null if it is no table), `header` (the names, or null if the first row \
         is data), `key`, `value`, and `kept_as_text` (cells that are texts in columns of numbers or booleans)",
    ),
    ("dump", "to a file: `file`, `entries`; to standard output the dump itself"),
    ("prepared", "for each: `transaction`; after a decision: `transaction`, `committed`"),
    (
        "stats",
        "`database` (statistics and latencies) and `trees` (by name), with the names of status.md; with --wear: \
         `since` and `until` (seconds since 1970), `last_hour` and `total`, each with `seconds`, `user_bytes`, \
         `all` and `causes` (each with `bytes`, `requests`), `amplification` and `bytes_per_second` (or null), \
         and with --tbw `tbw` and `lifetimes` (each with `drive_amplification`, `days` or null)",
    ),
    (
        "optimize",
        "`trees`, by name: `leaves`, `rewritten`, `held` (leaves that keep old rows or updates: a snapshot needs them, or an update could not be applied), `failed`, `failures` \
         (sentences with keys, file and offset), `disk_bytes_before`, `disk_bytes_after`",
    ),
    (
        "verify",
        "`trees`, `runs`, `entries`, `values` (large ones), `bytes`, `faults` (each with `tree`, `kind`, \
         `message`, `place`)",
    ),
    (
        "backup",
        "`bytes` copied, `database_bytes`, `log_bytes`, `log_end` (the position in the log up to which commits \
         are in it), `incremental`",
    ),
    ("restore", "`bytes`, `log_end`"),
    ("verify-backup", "`bytes`, `database_bytes`, `log_end`, `incremental`, `faults` (sentences)"),
    (
        "salvage",
        "`repaired` and `cut` (each with `message`, `place`), `trees` (each with `tree`, `saved_as` or null, \
         `entries`, and `lost`: ranges with `from`, `to` or null, `message`, `place`), `prepared` (names)",
    ),
    ("device", "see docs/operating/devices.md"),
    ("exit-codes", "for each: `code`, `kinds`, `hint`"),
];

/// Adds the fields to the help of each command.
pub(crate) fn documented(command: Command) -> Command {
    FIELDS.iter().fold(command, |command, (name, fields)| {
        command.mut_subcommand(name, |sub| sub.after_help(format!("With --json: {fields}")))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::CommandLine;

    #[test]
    fn every_command_says_what_its_json_has() {
        let command = documented(CommandLine::command());
        for sub in command.get_subcommands() {
            let help = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.starts_with("With --json: "), "{}: {help}", sub.get_name());
        }
    }
}
