//! `device`: measures the device of a directory, and prints its model, the advised sizes and its
//! lifetime.
//!
//! | module | role |
//! |---|---|
//! | `findings` | all results of the command |
//! | `smart` | the wear of a device, from the JSON of two tools |
//! | `tables`, `units` | the findings as tables for people |
//! | `table` | a table, as text and as HTML |
//! | `json` | the findings for programs |
//! | `chart` | the chart as SVG, and the page with chart and tables |

mod chart;
mod findings;
mod json;
mod smart;
mod table;
mod tables;
mod units;

use std::fs::{self, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use frondb::device::{self, MeasureOptions, Wear};

use self::chart::ChartFile;
use self::findings::Findings;
use crate::args::{Common, Device};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;

/// Bytes of a terabyte, the unit of endurance in datasheets.
const TERABYTE: f64 = 1e12;

/// Measures a device.
pub(crate) fn device(common: &Common, args: &Device) -> Result<(), Failure> {
    if common.read_only {
        return Err(Failure::usage("--read-only: a measurement writes a file"));
    }
    let chart = args.chart.as_deref().map(ChartFile::of).transpose()?;
    let wear = wear_of(args)?;
    let budget = Duration::try_from_secs_f64(args.seconds)
        .map_err(|_| Failure::usage("--seconds: give 0.1 to 86400"))?;
    let mut options =
        MeasureOptions::new().budget(budget).threads(&args.threads).writes(args.write);
    if let Some(bytes) = args.size {
        options = options.file_bytes(bytes);
    }
    let decoding = device::decode_times()?;
    let mut progress = Progress::time(common);
    progress.say("measuring");
    let measured = device::measure(&args.dir, &options, &mut |done, all| {
        progress.of(done, all);
        true
    })?;
    progress.end();
    let findings = Findings::new(args, measured, &decoding, wear);
    if let Some(chart) = &chart {
        write_file(common, chart.path, &chart.contents(&findings)?)?;
    }
    let mut out = Output::new(common);
    out.line(&json::object(&findings), |_| tables::text(&findings))?;
    out.finish()
}

/// Returns the wear of the device that the options give; `None` if no option asks for it.
fn wear_of(args: &Device) -> Result<Option<Wear>, Failure> {
    let mut wear = match &args.smart {
        Some(path) => smart::wear(&text_of(path)?).map_err(|e| e.context(path.display()))?,
        None => Wear::default(),
    };
    wear.rated_bytes = args.tbw.map(|terabytes| terabytes * TERABYTE);
    let asked = args.smart.is_some() || args.tbw.is_some();
    if !asked && args.bytes_per_day.is_some() {
        return Err(Failure::usage("--bytes-per-day needs --smart or --tbw"));
    }
    Ok(asked.then_some(wear))
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    if path == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes)?;
    } else {
        bytes = fs::read(path).map_err(|e| Failure::from(e).about(path).context(path.display()))?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Writes a file. A new file gets the mode of --file-mode; a file that is replaced keeps its mode.
fn write_file(common: &Common, path: &Path, text: &str) -> Result<(), Failure> {
    let write = || {
        let is_new = !path.exists();
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
        file.write_all(text.as_bytes())?;
        if is_new {
            file.set_permissions(Permissions::from_mode(common.file_mode))?;
        }
        std::io::Result::Ok(())
    };
    write().map_err(|error| Failure::from(error).about(path).context(path.display()))
}
