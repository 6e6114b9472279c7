//! From arguments to exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};
use serde_json::json;

use crate::args::{Command, CommandLine, Common};
use crate::commands;
use crate::failure::Failure;
use crate::fields;

/// Returns the definition of the command line, for manual pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    fields::documented(CommandLine::command())
}

/// Runs the command of the process's arguments. Results go to standard output; progress, notes and
/// the error go to standard error.
#[must_use]
pub fn run() -> ExitCode {
    let parsed =
        command().try_get_matches().and_then(|found| CommandLine::from_arg_matches(&found));
    let line = match parsed {
        Ok(line) => line,
        Err(error) => return refuse(&error),
    };
    match dispatch(&line.common, &line.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.broken_pipe {
                report(line.common.json, &failure);
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Reports wrong arguments. Also prints help and the version, which clap returns as errors.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let failure = Failure::usage(text.trim().trim_start_matches("error: "));
    // Parsing failed, so search the arguments for --json. Arguments after `--` are keys or names.
    let json = std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if json {
        report(true, &failure);
    } else {
        let _ = error.print();
    }
    ExitCode::from(failure.code())
}

fn dispatch(common: &Common, command: &Command) -> Result<(), Failure> {
    match command {
        Command::Create(args) => commands::trees::create(common, args),
        Command::Trees(args) => commands::trees::list(common, args),
        Command::Alter(args) => commands::trees::alter(common, args),
        Command::Rename(args) => commands::trees::rename(common, args),
        Command::Drop(args) => commands::trees::drop(common, args),
        Command::Get(args) => commands::entries::get(common, args),
        Command::Put(args) => commands::entries::put(common, args),
        Command::Del(args) => commands::entries::del(common, args),
        Command::Scan(args) => commands::scan::scan(common, args),
        Command::Load(args) => commands::load::load(common, args),
        Command::Dump(args) => commands::dump::dump(common, args),
        Command::Prepared(args) => commands::prepared::prepared(common, args),
        Command::Stats(args) => commands::inspect::stats(common, args),
        Command::Optimize(args) => commands::optimize::optimize(common, args),
        Command::Verify(args) => commands::inspect::verify(common, args),
        Command::Backup(args) => commands::backup::backup(common, args),
        Command::Restore(args) => commands::backup::restore(common, args),
        Command::VerifyBackup(args) => commands::backup::verify(common, args),
        Command::Salvage(args) => commands::salvage::salvage(common, args),
        Command::Device(args) => commands::device::device(common, args),
        Command::ExitCodes => commands::inspect::exit_codes(common),
    }
}

/// Reports a failure on standard error. Errors while writing the report are ignored.
fn report(json: bool, failure: &Failure) {
    let mut err = std::io::stderr().lock();
    if json {
        let mut error = json!({
            "kind": failure.kind,
            "message": failure.message,
            "exit_code": failure.code(),
            "hint": failure.hint(),
        });
        if let (Some(place), Some(error)) = (&failure.place, error.as_object_mut()) {
            error.insert("place".into(), json!(place));
        }
        let _ = writeln!(err, "{}", json!({ "error": error }));
    } else {
        let _ = writeln!(err, "error: {}", failure.sentence());
        if let Some(hint) = failure.hint() {
            let _ = writeln!(err, "hint: {hint}");
        }
    }
}
