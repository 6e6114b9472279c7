//! All sections of the page. `sections()` has their order.
//!
//! | module | sections |
//! |---|---|
//! | [`library`] | the library beside RocksDB |
//! | [`alone`] | the library alone: functions that the other engines do not have |
//! | [`sql`] | a MariaDB server: loads of rows, then reads, OPTIMIZE, deletes and ALTER |
//! | [`clients`] | a MariaDB server: many clients, statements of reports, memory |

mod alone;
mod clients;
mod library;
mod sql;

use super::row::Section;

pub(super) fn sections() -> impl Iterator<Item = &'static Section> {
    [sql::SECTIONS, clients::SECTIONS, library::SECTIONS, alone::SECTIONS].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::row::Quantity;
    use super::*;
    use crate::report::steps::STEPS;
    use crate::workspace::{read, root, rust_files_below};

    #[test]
    fn sections_show_steps_that_exist() {
        let known = |step: &str| STEPS.iter().any(|known| known.name == step);
        for section in sections() {
            assert!(section.steps.iter().all(|step| known(step)), "{}", section.title);
            let places = section.rows.iter().filter_map(|row| row.place);
            for (step, _) in places {
                assert!(section.steps.contains(&step), "{}: {step}", section.title);
            }
        }
    }

    #[test]
    fn members_are_those_of_a_measurement() {
        let source = root().join("crates/bench/src/report");
        let [measurement, case] =
            ["measurement.rs", "read_case.rs"].map(|name| read(&source.join(name)).unwrap());
        let has = |text: &str, name: &str| {
            assert!(text.contains(&format!("    pub {name}: ")), "{name} is unknown");
        };
        for row in sections().flat_map(|section| section.rows) {
            match row.what {
                Quantity::Member(name) => has(&measurement, name),
                Quantity::Per(one, other)
                | Quantity::PerThousand(one, other)
                | Quantity::Less(one, other) => {
                    has(&measurement, one);
                    has(&measurement, other);
                }
                Quantity::Case(_, name) => has(&case, name),
                _ => {}
            }
        }
    }

    /// Without this test, a renamed figure would show only after a run of more than an hour.
    #[test]
    fn names_of_figures_are_in_the_source_of_the_benchmarks() {
        let folders = ["crates/bench/src/workload", "mariadb/sql-bench/src"];
        let source: String = folders
            .iter()
            .flat_map(|folder| rust_files_below(&root().join(folder)).unwrap())
            .map(|file| file.text)
            .collect();
        for row in sections().flat_map(|section| section.rows) {
            match row.what {
                Quantity::Figure(name) | Quantity::Listed(name) | Quantity::Highest(name) => {
                    assert!(is_made_of(name, &source), "{name} is unknown");
                }
                _ => {}
            }
        }
        assert!(!is_made_of("points of hot rows, renamed, updated tree to other", &source));
    }

    /// Whether a name is a sequence of texts in the source: the code joins many names from parts.
    fn is_made_of(name: &str, source: &str) -> bool {
        const LEAST: usize = 5;
        // In names of figures the workload `compression` puts the kind of data first.
        let mut rest = name.trim_start_matches("json: ").trim_start_matches(": ");
        while !rest.is_empty() {
            let longest = (LEAST..=rest.len()).rev().find(|end| source.contains(&rest[..*end]));
            let Some(end) = longest else { return false };
            rest = &rest[end..];
        }
        true
    }
}
