//! Whether the headers that the plugin is built with describe the installed server: the check after
//! the build of the plugin.
//!
//! ```text
//!   headers of a nearby release  --compiled, layout.cc-->  layouts  \
//!                                                                     compared, member by member
//!   libmariadbd.a, exact release --debug information-->    layouts  /
//! ```
//! A server loads only plugins with its own `mysql_version.h`, but no package has `handler.h`, so
//! most headers may come from another patch release (`source.rs`). Debian builds `libmariadbd.a`
//! from the server's source, and leaves the debug information in it. That library is compiled for
//! programs that embed a server, so this comparison compiles the headers for them too. The few
//! members that only the embedded or only the normal server has are the same in all releases.
//!
//! Macros of the headers that no package has are not compared: debug information lacks their
//! values.

mod compare;
mod debug_info;
mod used;

use std::fs;
use std::path::{Path, PathBuf};

use super::{folder, source};
use crate::Result;
use crate::step::Cmd;
use crate::workspace::{read, root};

use compare::Drift;

/// The source file that includes the headers to compare.
const PROBE: &str = "mariadb/tests/layout.cc";

/// At least so many classes and enumerators must be in both; today 3,100 are. A library without
/// debug information has none.
const FEWEST: usize = 2500;

/// The object files of the library whose classes are compared. Debug information describes a class
/// in the object file that has its virtual functions.
const MEMBERS: [&str; 20] = [
    "create_options.cc.o",
    "field.cc.o",
    "handler.cc.o",
    "item.cc.o",
    "item_func.cc.o",
    "key.cc.o",
    "log.cc.o",
    "mdl.cc.o",
    "multi_range_read.cc.o",
    "partition_info.cc.o",
    "sql_alter.cc.o",
    "sql_base.cc.o",
    "sql_class.cc.o",
    "sql_lex.cc.o",
    "sql_show.cc.o",
    "sql_string.cc.o",
    "sql_table.cc.o",
    "set_var.cc.o",
    "table.cc.o",
    "xa.cc.o",
];

/// Compares headers and server after the build of `plugin`, and writes the result for `abi.cc`,
/// which is compiled again if the result has changed. Compares nothing if the headers are the
/// server's own.
///
/// # Errors
/// The differences in what the plugin uses: such a plugin must not be loaded.
pub(super) fn check(plugin: &Path) -> Result {
    let (headers, server) = (source::version_of_headers()?, source::installed_version()?);
    let result = folder().join("build/generated/frondb_layouts.h");
    if headers == server {
        eprintln!("headers of MariaDB {headers}, the server's version");
        return write(&result, "");
    }
    let library = library();
    if !Path::new(&library).exists() {
        eprintln!("{library} is missing: the headers of {headers} are not compared with {server}");
        return write(&result, "");
    }
    let drifts = drifts(&format!("{headers} {server}"))?;
    let used = used::find(plugin, &root().join("mariadb/src"), &source::get()?)?;
    let concerning: Vec<&str> =
        drifts.iter().filter(|drift| used.concerns(drift)).map(|d| d.sentence.as_str()).collect();
    if !concerning.is_empty() {
        write(&result, "")?;
        return Err(format!(
            "the headers of MariaDB {headers} do not describe the server, {server}:\n{}",
            concerning.join("\n")
        ));
    }
    eprintln!(
        "headers of MariaDB {headers} for the server {server}: nothing that the plugin uses differs \
         ({} differences elsewhere)",
        drifts.len()
    );
    write(&result, &format!("#define FRONDB_LAYOUTS_COMPARED_WITH \"{server}\"\n"))
}

/// Writes a file, unless it has this text already: a newer file would be compiled again.
fn write(file: &Path, text: &str) -> Result {
    if fs::read_to_string(file).is_ok_and(|found| found == text) {
        return Ok(());
    }
    fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))
}

/// All differences of headers and server. Kept in a file, because finding them takes half a minute.
fn drifts(versions: &str) -> Result<Vec<Drift>> {
    let place = folder().join("layout");
    fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let kept = place.join("drifts");
    // The file begins with what was compared: the versions, and the probe's list of headers.
    let first = format!("{versions}\n{}", read(&root().join(PROBE))?);
    if let Some(drifts) = fs::read_to_string(&kept).ok().and_then(|text| Drift::list(&text, &first))
    {
        return Ok(drifts);
    }
    let headers = debug_info::read(&compile(&place, "headers", &source::get()?.join("sql"))?)?;
    let server = debug_info::read(&server(&place)?)?;
    let (compared, drifts) = compare::compare(&headers, &server);
    if compared < FEWEST {
        return Err(format!("{} describes only {compared} of the headers' classes", library()));
    }
    write(&kept, &Drift::text(&drifts, &first))?;
    Ok(drifts)
}

/// Compiles the headers for their debug information. `sql` is the folder of those of the server.
fn compile(place: &Path, name: &str, sql: &Path) -> Result<PathBuf> {
    let to = place.join(format!("{name}.so"));
    let command = with_headers(
        "-DMYSQL_DYNAMIC_PLUGIN -g -O0 -shared -nostdlib -fno-eliminate-unused-debug-types -femit-class-debug-always",
        sql,
    )?;
    let probe = root().join(PROBE);
    command.arg(&probe.display().to_string()).arg("-o").arg(&to.display().to_string()).run()?;
    Ok(to)
}

/// A command of the C++ compiler that finds the headers, with the macros of the embedded server.
fn with_headers(options: &str, sql: &Path) -> Result<Cmd> {
    let source = source::get()?;
    let mut command = Cmd::new(
        "g++",
        "-std=gnu++17 -w -fPIC -DHAVE_CONFIG_H -DDBUG_OFF -DMYSQL_SERVER=1 \
         -DEMBEDDED_LIBRARY -D_GNU_SOURCE",
    );
    command = options.split_whitespace().fold(command, Cmd::arg);
    let parts = ["include", "wsrep-lib/include", "wsrep-lib/wsrep-API/v26"];
    let folders = parts.map(|part| source.join(part));
    let generated = folder().join("build/generated");
    let first = [generated, PathBuf::from(source::INCLUDE), sql.to_owned()];
    for folder in first.iter().chain(&folders) {
        command = command.arg("-I").arg(&folder.display().to_string());
    }
    Ok(command)
}

/// The server as a library, from the same package as the installed headers.
fn library() -> String {
    format!("/usr/lib/{}-linux-gnu/libmariadbd.a", std::env::consts::ARCH)
}

/// Links the object files of the server's library: only linking resolves the references in their
/// debug information.
fn server(place: &Path) -> Result<PathBuf> {
    let to = place.join("server.so");
    let objects = place.join("objects");
    fs::create_dir_all(&objects).map_err(|e| format!("{}: {e}", objects.display()))?;
    let mut extract = Cmd::new("ar", "x").arg(&library()).dir(objects.clone());
    for member in MEMBERS {
        extract = extract.arg(member);
    }
    extract.run()?;
    // The linker needs this symbol for destructors of static objects.
    let handle = objects.join("handle.c");
    let text = "void *__dso_handle __attribute__((visibility(\"hidden\")));\n";
    fs::write(&handle, text).map_err(|e| format!("{}: {e}", handle.display()))?;
    let options = "-shared -nostdlib -fPIC -Wl,--unresolved-symbols=ignore-all -Wl,--allow-multiple-definition";
    let mut link = Cmd::new("g++", options).dir(objects).arg("handle.c");
    for member in MEMBERS {
        link = link.arg(member);
    }
    link.arg("-o").arg(&to.display().to_string()).run()?;
    Ok(to)
}

#[cfg(test)]
mod tests;
