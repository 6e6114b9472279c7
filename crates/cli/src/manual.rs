//! docs/operating/command-line.md: written from the definitions of the command line and the table
//! of exit codes, so that the page and the program cannot differ. `REWRITE=1 cargo test -p
//! frondb-cli manual` writes it anew.

use std::fmt::Write as _;
use std::path::Path;

use clap::CommandFactory;

use crate::args::CommandLine;
use crate::failure::EXIT_CODES;

const HEAD: &str = "\
# The command `frondb`

Written by a test of `crates/cli` from the program's own texts: do not edit it, change those and run
`REWRITE=1 cargo test -p frondb-cli manual`.

A database is a directory, and one process uses it at a time: a command on a directory that is open elsewhere fails
with exit code 4 and says which process has it. Results go to standard output, everything else to standard error.

## Keys and values

Keys and values are bytes. `--keys` and `--values` say how they are written on the command line, in JSON and in the
cells of a table; what is printed is read back to the same bytes. In a table, `text` has escapes only with `--escapes`.

| encoding | how |
|---|---|
| `text` | UTF-8 as it is; every other byte as `\\xHH`; `\\\\`, `\\n`, `\\r`, `\\t` and `\\0` for those five |
| `hex` | two hexadecimal digits a byte |
| `base64` | RFC 4648 with padding |

## Files

`load` and `dump` know tables (`csv`, `tsv`) and a binary form. The binary form is exact, checksummed, and says how many
entries it has: a file that was cut short or changed is refused. What `dump` writes in any form, `load` with the same
options reads back to the same bytes.

A table is UTF-8 with a key and a value column. Cells are literal: `C:\\temp` is those seven characters. A cell with the
delimiter, a quote or the end of a line stands in quotes, and a quote in it is doubled, in both forms; a byte order mark
at the start of the file is skipped, and so are empty lines. Bytes that are not UTF-8, and NUL, have no literal cell:
`dump` fails with exit code 2, `load` with 10. `--escapes` writes and reads such cells as on the command line, hex and
base64 have them anyway.

A header row without rows is a table without rows. A file without a byte is refused (exit code 10), so what `dump` writes of
a tree without entries with `--no-header` is the one file that `load` does not take.

A dump is of one moment, and the file has its name only when it is complete. A load sorts what it reads and
attaches it with one commit, whole or not at all; a new tree comes with that commit, so a load that fails or is killed
leaves none. With `--batch` it commits as it goes, a new tree comes with the first batch, and one that failed can be run
again.

With `--quiet` a command that did what it was told prints nothing but what was asked for: `create`, `load`, `dump` to a
file and `verify` without a fault are silent. JSON is printed all the same.

## JSON

With `--json` a command prints one object, or one a line where there are many (`scan`, `trees`, `exit-codes`). An error
is `{\"error\": {\"kind\", \"message\", \"exit_code\", \"hint\"}}` on standard error, also if the arguments are wrong, with `place` (`file`, `offset`, `what`)
if a byte is damaged; `hint` is null where the message says what to do.

| command | object |
|---|---|
| `create` | `database`, `created` (false: it was there), `trees` |
| `trees` | a line for each: `tree` |
| `rename`, `drop` | `tree` and `was`; `dropped` |
| `get`, `scan` | `key`, `value`; `scan --count`: `count` |
| `put`, `del` | `key`, `value_bytes`; `keys`, `range` |
| `load` | `tree`, `entries` stored, `read` from the file, `replaced` (entries whose key came again), `batches`; with `--batch` `replaced` is null and `entries` counts a key in each batch that has it |
| `dump` | `file`, `entries` |
| `prepared` | a line for each: `transaction`; when one is decided: `transaction`, `committed` |
| `stats` | `database` and `trees`, figures by name as in [status.md](status.md) |
| `verify` | `trees`, `runs`, `entries`, `values` (large ones), `bytes`, `faults` (each with `tree`, `kind`, `message`, `place`) |
| `salvage` | `repaired` and `cut` (each with `message`, `place`), `trees` (each with `tree`, `saved_as` or null, `entries`, and `lost`: ranges with `from`, `to` or null, `message`, `place`), `prepared` (names) |

## Exit codes

| code | kind of error | what to do |
|---|---|---|
";

fn page() -> String {
    let mut page = String::from(HEAD);
    for (code, kinds, hint) in EXIT_CODES {
        let _ = writeln!(page, "| {code} | {kinds} | {hint} |");
    }
    page.push_str("\n## Commands\n");
    let mut command = CommandLine::command().term_width(100);
    let _ = write!(page, "\n```text\n{}```\n", trimmed(&command.render_long_help().to_string()));
    command.build();
    for subcommand in command.get_subcommands_mut() {
        let name = subcommand.get_name().to_owned();
        if name == "help" {
            continue;
        }
        // Options of all commands stand once, above.
        let mut own = subcommand.clone().disable_help_flag(true);
        for id in [
            "json",
            "keys",
            "values",
            "memory",
            "log_dir",
            "file_mode",
            "quiet",
            "read_only",
            "version",
        ] {
            if own.get_arguments().any(|arg| arg.get_id() == id) {
                own = own.mut_arg(id, |arg| arg.hide(true));
            }
        }
        let help = trimmed(&own.render_help().to_string());
        let _ = write!(page, "\n### {name}\n\n```text\n{help}```\n");
    }
    page
}

/// Without blanks at the ends of lines.
fn trimmed(help: &str) -> String {
    help.trim_end().lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

#[test]
fn the_manual_is_what_the_program_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating/command-line.md");
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == page(), "docs/operating/command-line.md: write it anew with REWRITE=1");
}
