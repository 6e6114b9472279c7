//! The program as a script sees it: arguments and standard input in; standard output, standard
//! error and the exit code out. One file for each behaviour, but one binary, because linking takes
//! longer than running.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod against_fio;
mod attached;
mod backups;
mod damage;
mod devices;
mod dump_targets;
mod files;
mod functions;
mod hints;
mod keys;
mod killed_loads;
mod pages;
mod program;
mod refusals;
mod tables;
mod trees;
