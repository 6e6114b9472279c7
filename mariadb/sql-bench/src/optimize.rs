//! `optimize`: OPTIMIZE TABLE of iiBench's table, compared with a copy of the table, beside a
//! writer, at a limited rate, and of a part. Then half of the rows are deleted from the left, and
//! the smallest key, the largest key and the count are read before and after OPTIMIZE.
//!
//! ```text
//!  load -> optimize -> copy              time, and the most space that the files took meanwhile
//!  every 20th row changed -> optimize    beside a writer of 20,000 rows a second
//!  every 20th row changed -> optimize    at a limit of leaves a second; of one half, then of all
//!  half deleted -> ends and count -> optimize half, one index, all; ends and count after each
//! ```

mod space;

use std::time::{Duration, Instant};

use frondb_bench::driver::Progress;
use frondb_bench::report::{Figure, Measurement};
use frondb_bench::{Error, Result};
use frondb_mariadb_harness::{Client, Value};

use crate::args::Args;
use crate::contender::Contender;
use crate::host::Host;
use crate::writer::{BATCH, Writer};
use crate::{delete_left, iibench, row};

use space::Watched;

/// Interval between two statements of the writer: 20,000 rows a second.
const EVERY: Duration = Duration::from_millis(50);
/// Seconds that the writer works alone, to measure its rate without OPTIMIZE.
const ALONE_SECONDS: f64 = 10.0;
/// Shortest time of an OPTIMIZE with a limited rate, in seconds and as a multiple of the time
/// without a limit, so that only the limit determines the rate.
const THROTTLED_SECONDS: f64 = 5.0;
const THROTTLED_TIMES: f64 = 4.0;

/// Measures one engine once.
pub(crate) fn measure(
    contender: Contender,
    args: &Args,
    progress: &Progress,
) -> Result<Measurement> {
    if contender != Contender::Frondb {
        return Err(Error::Usage(
            "optimize measures FronDB against its own copy; give ENGINES=frondb".to_owned(),
        ));
    }
    let host = Host::start(contender, args)?;
    let mut client = host.connect()?;
    iibench::create(&mut client, contender)?;
    let mut loading = Measurement::default();
    let rows = iibench::load(&host, &mut client, args, progress, &mut loading)?;
    let mut table = Table { host, client, rows, figures: Vec::new() };
    progress.say("optimize and copy");
    table.against_the_copy()?;
    progress.say("beside a writer");
    table.beside_a_writer(args.common.seed)?;
    progress.say("limits");
    table.limits()?;
    progress.say("deleting");
    table.after_deletes(progress)?;
    let Table { host, client, figures, .. } = table;
    drop(client);
    let disk_bytes = Some(host.stop()?);
    Ok(Measurement { rows: Some(rows), figures, disk_bytes, ..Measurement::default() })
}

/// The table with its server and a connection, and the figures so far.
struct Table {
    host: Host,
    client: Client,
    rows: u64,
    figures: Vec<Figure>,
}

impl Table {
    fn add(&mut self, figure: Figure) {
        self.figures.push(figure);
    }

    /// Measures the time and the extra disk space of an OPTIMIZE and of a copy.
    fn against_the_copy(&mut self) -> Result<()> {
        let (hot, hot_space) = self.watched("")?;
        self.host.settle()?;
        let (copy, copy_space) = self.watched("frondb_optimize_mode = copy")?;
        self.host.settle()?;
        self.add(Figure::plain("optimize of the loaded table", hot, "s"));
        self.add(Figure::plain("copy of it", copy, "s"));
        self.add(Figure::plain("optimize by copy: time", hot / copy, "x").at_most(1.5, Some(0.7)));
        self.add(Figure::plain("optimize: extra disk", hot_space, "%").at_most(10.0, Some(2.0)));
        self.add(Figure::plain("copy: extra disk", copy_space, "%"));
        Ok(())
    }

    /// Runs an OPTIMIZE; returns its seconds and by how many percent the files grew meanwhile.
    fn watched(&mut self, settings: &str) -> Result<(f64, f64)> {
        let watched = Watched::start(&self.host)?;
        let seconds = self.optimize(settings)?;
        Ok((seconds, watched.extra_percent()?))
    }

    /// Measures a writer's rate and longest batch with and without an OPTIMIZE.
    fn beside_a_writer(&mut self, seed: u64) -> Result<()> {
        self.change_rows()?;
        let mut next = self.rows;
        let writer = Writer::start(self.host.connect()?, EVERY, move |statement| {
            row::insert(statement, seed, next..next + BATCH);
            next += BATCH;
        });
        std::thread::sleep(Duration::from_secs_f64(ALONE_SECONDS));
        let alone = writer.lap();
        let seconds = self.optimize("")?;
        let beside = writer.lap();
        self.rows += writer.end()?;
        self.add(Figure::plain("beside a writer: optimize", seconds, "s"));
        let kept = beside.rows_per_s / alone.rows_per_s;
        self.add(Figure::plain("beside a writer: rate kept", kept, "x").at_least(0.95, 1.0));
        self.add(Figure::plain("worst batch without optimize", alone.worst_ms, "ms"));
        let worst = Figure::plain("worst batch beside it", beside.worst_ms, "ms");
        self.add(worst.at_most(100.0, Some(30.0)));
        Ok(())
    }

    /// Measures how far OPTIMIZE deviates from a limit of its rate, and from a fraction of the
    /// index.
    fn limits(&mut self) -> Result<()> {
        self.change_rows()?;
        let unlimited = self.optimize("")?;
        self.change_rows()?;
        let leaves = "SELECT SUM(leaves) FROM information_schema.frondb_trees \
                      WHERE table_name = 'purchases'";
        let leaves = self.number(leaves)?;
        let seconds = THROTTLED_SECONDS.max(unlimited * THROTTLED_TIMES);
        let wanted = ((leaves as f64 / seconds) as u64).max(1);
        let before = self.rewrites()?;
        let seconds = self.optimize(&format!("frondb_optimize_throttle = {wanted}"))?;
        // The first leaf of each of the four indexes does not wait.
        let rate = (self.rewrites()? - before).saturating_sub(4) as f64 / seconds;
        self.add(off("throttle: off by", rate, wanted as f64));
        self.change_rows()?;
        let before = self.rewrites()?;
        self.optimize("frondb_optimize_index_fraction = 0.5")?;
        let half = self.rewrites()? - before;
        self.optimize("")?;
        let all = self.rewrites()? - before;
        self.add(off("fraction: off by", half as f64 / all.max(1) as f64, 0.5));
        Ok(())
    }

    /// Reads after deletes, and after each kind of OPTIMIZE: the experiment of TokuDB's hot
    /// optimize.
    fn after_deletes(&mut self, progress: &Progress) -> Result<()> {
        let half = self.rows / 2;
        delete_left::delete_below(&mut self.client, half)?;
        self.ends("after the deletes", half)?;
        for (what, settings) in [
            ("half", "frondb_optimize_index_fraction = 0.5"),
            ("one index", "frondb_optimize_index_name = 'PRIMARY'"),
            ("all", ""),
        ] {
            progress.say("optimizing after the deletes");
            let seconds = self.optimize(settings)?;
            self.add(Figure::plain(format!("optimize of {what}"), seconds, "s"));
            self.ends(&format!("after optimize of {what}"), half)?;
        }
        Ok(())
    }

    /// Reads both ends of the primary key and counts the rows.
    fn ends(&mut self, when: &str, first: u64) -> Result<()> {
        let mut read = |query: &str, expected: u64| {
            let begin = Instant::now();
            let found = self.client.number(&format!("SELECT {query} FROM purchases"));
            let ms = begin.elapsed().as_secs_f64() * 1e3;
            match found.map_err(Error::engine)? {
                found if found == expected => Ok(ms),
                found => Err(Error::Wrong(format!("{query} is {found}, not {expected}"))),
            }
        };
        let min = read("MIN(id)", first)?;
        let max = read("MAX(id)", self.rows - 1)?;
        let count = read("COUNT(*)", self.rows - first)?;
        let min = Figure::plain(format!("{when}: min"), min, "ms");
        let is_first = when == "after the deletes";
        self.add(if is_first { min.at_most(10.0, Some(1.0)) } else { min });
        self.add(Figure::plain(format!("{when}: max"), max, "ms"));
        self.add(Figure::plain(format!("{when}: count"), count, "ms"));
        Ok(())
    }

    /// Changes every twentieth row and its index entries, so that OPTIMIZE has work in every leaf.
    fn change_rows(&mut self) -> Result<()> {
        let change = "UPDATE purchases SET price = price + 1 WHERE id % 20 = 0";
        self.client.query(change).map_err(Error::engine)?;
        self.host.settle()?;
        Ok(())
    }

    /// Runs OPTIMIZE with these settings of the session; returns its seconds.
    fn optimize(&mut self, settings: &str) -> Result<f64> {
        let statement = match settings {
            "" => "OPTIMIZE TABLE purchases".to_owned(),
            settings => format!("SET STATEMENT {settings} FOR OPTIMIZE TABLE purchases"),
        };
        let begin = Instant::now();
        let reply = self.client.query(&statement).map_err(Error::engine)?;
        let seconds = begin.elapsed().as_secs_f64();
        let is_ok =
            |row: &Vec<Value>| row.last().is_some_and(|text| text.as_deref() == Some(b"OK"));
        match reply.rows.last().is_some_and(is_ok) {
            true => Ok(seconds),
            false => Err(Error::Engine(format!("{statement}: {:?}", reply.rows))),
        }
    }

    /// Number of leaves that FronDB has rewritten so far.
    fn rewrites(&mut self) -> Result<u64> {
        self.number(
            "SELECT variable_value FROM information_schema.global_status \
             WHERE variable_name = 'frondb_rewrites'",
        )
    }

    fn number(&mut self, query: &str) -> Result<u64> {
        self.client.number(query).map_err(Error::engine)
    }
}

/// A figure: how far a value deviates from the wanted value, percent.
fn off(name: &str, value: f64, wanted: f64) -> Figure {
    Figure::plain(name, (value / wanted - 1.0).abs() * 100.0, "%").at_most(15.0, Some(5.0))
}
