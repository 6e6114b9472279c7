//! All sections of the page, in its order.
//!
//! | module | sections |
//! |---|---|
//! | [`library`] | the library beside RocksDB |
//! | [`alone`] | the library alone: functions that the other engines do not have |
//! | [`sql`] | a MariaDB server: loads of rows |
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
    use super::*;
    use crate::report::steps::STEPS;

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
        use crate::report::bench_page::row::Quantity;
        let source = crate::workspace::root().join("crates/bench/src/report");
        let read = |name: &str| crate::workspace::read(&source.join(name)).unwrap();
        let (measurement, case) = (read("measurement.rs"), read("read_case.rs"));
        let has = |text: &str, name: &str| {
            assert!(text.contains(&format!("    pub {name}: ")), "{name} is unknown");
        };
        for row in sections().flat_map(|section| section.rows) {
            match row.what {
                Quantity::Member(name) => has(&measurement, name),
                Quantity::Per(one, other) | Quantity::PerThousand(one, other) => {
                    has(&measurement, one);
                    has(&measurement, other);
                }
                Quantity::Case(_, name) => has(&case, name),
                _ => {}
            }
        }
    }
}
