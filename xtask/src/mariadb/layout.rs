//! Checks, after the build of the plugin, that its headers describe the installed server.
//!
//! ```text
//!   headers of a nearby release  --compiled, layout.cc-->  layouts  \
//!                                                                     compared, member by member
//!   libmariadbd.a, exact release --debug information-->    layouts  /
//! ```
//! A server loads only plugins built with its own `mysql_version.h`. No package has `handler.h`, so
//! most headers may come from another patch release (`source.rs`). Debian builds `libmariadbd.a`
//! from the server's source and leaves the debug information in it. That library is compiled for
//! programs that embed a server, so this check compiles the headers with the same macros. A few
//! members exist only in the embedded server or only in the normal server; these are the same in
//! all releases.
//!
//! The check does not compare macros in the headers that no package has, because debug information
//! lacks the values of macros.

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

/// Fewest classes and enumerators that headers and server must have in common; today they have
/// 3,100. A library without debug information has none.
const FEWEST: usize = 2500;

/// The object files of the library whose classes are compared. The debug information of a class is
/// in the object file that has the class's virtual functions.
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
/// which is compiled again if the result has changed. Compares nothing if headers and server have
/// the same version, or if the server's library is missing.
///
/// # Errors
/// The differences in parts that the plugin uses. A plugin with such a difference must not be
/// loaded.
pub(super) fn check(plugin: &Path) -> Result {
    let (headers, server) = (source::version_of_headers()?, source::installed_version()?);
    let result = result_beside(plugin);
    if headers == server {
        eprintln!("headers of MariaDB {headers}, the server's version");
        return write(&result, "");
    }
    let library = library();
    if !Path::new(&library).exists() {
        eprintln!("{library} is missing: the headers of {headers} are not compared with {server}");
        return write(&result, "");
    }
    let drifts = drifts(&format!("{headers} {server}"), &plugin.with_file_name("generated"))?;
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

/// Checks that the headers of a built plugin are known to describe the server. A package depends on
/// versions of the server for which this is so.
pub(super) fn is_known(plugin: &Path) -> Result {
    let (headers, server) = (source::version_of_headers()?, source::installed_version()?);
    if headers == server || read(&result_beside(plugin))?.contains(&format!("\"{server}\"")) {
        return Ok(());
    }
    Err(format!("the headers of MariaDB {headers} were not compared with the server, {server}"))
}

/// Returns the header with the result of the comparison, which abi.cc includes.
fn result_beside(plugin: &Path) -> PathBuf {
    plugin.with_file_name("generated").join("frondb_layouts.h")
}

/// Writes a file, unless it already has this text, because a newer file would be compiled again.
fn write(file: &Path, text: &str) -> Result {
    if fs::read_to_string(file).is_ok_and(|found| found == text) {
        return Ok(());
    }
    fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))
}

/// Returns all differences of headers and server. Keeps them in a file, because finding them takes
/// half a minute. `generated` is the folder of the header that the plugin's build generates.
fn drifts(versions: &str, generated: &Path) -> Result<Vec<Drift>> {
    let place = folder().join("layout");
    fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let kept = place.join("drifts");
    // The file begins with the versions and with the probe's list of headers, which say what was
    // compared.
    let first = format!("{versions}\n{}", read(&root().join(PROBE))?);
    if let Some(drifts) = fs::read_to_string(&kept).ok().and_then(|text| Drift::list(&text, &first))
    {
        return Ok(drifts);
    }
    let headers =
        debug_info::read(&compile(&place, "headers", &source::get()?.join("sql"), generated)?)?;
    let server = debug_info::read(&server(&place)?)?;
    let (compared, drifts) = compare::compare(&headers, &server);
    if compared < FEWEST {
        return Err(format!("{} describes only {compared} of the headers' classes", library()));
    }
    write(&kept, &Drift::text(&drifts, &first))?;
    Ok(drifts)
}

/// Compiles the headers, to get their debug information. `sql` is the folder with the server's
/// headers.
fn compile(place: &Path, name: &str, sql: &Path, generated: &Path) -> Result<PathBuf> {
    let to = place.join(format!("{name}.so"));
    let command = with_headers(
        "-DMYSQL_DYNAMIC_PLUGIN -g -O0 -shared -nostdlib -fno-eliminate-unused-debug-types -femit-class-debug-always",
        sql,
        generated,
    )?;
    let probe = root().join(PROBE);
    command.arg(&probe.display().to_string()).arg("-o").arg(&to.display().to_string()).run()?;
    Ok(to)
}

/// Returns a command of the C++ compiler with the folders of the headers and the macros of the
/// embedded server.
fn with_headers(options: &str, sql: &Path, generated: &Path) -> Result<Cmd> {
    let source = source::get()?;
    let mut command = Cmd::new(
        "g++",
        "-std=gnu++17 -w -fPIC -DHAVE_CONFIG_H -DDBUG_OFF -DMYSQL_SERVER=1 \
         -DEMBEDDED_LIBRARY -D_GNU_SOURCE",
    );
    command = options.split_whitespace().fold(command, Cmd::arg);
    let parts = ["include", "wsrep-lib/include", "wsrep-lib/wsrep-API/v26"];
    let folders = parts.map(|part| source.join(part));
    let first = [generated.to_owned(), PathBuf::from(source::INCLUDE), sql.to_owned()];
    for folder in first.iter().chain(&folders) {
        command = command.arg("-I").arg(&folder.display().to_string());
    }
    Ok(command)
}

/// Returns the path of the server's library, which is in the same package as the installed headers.
fn library() -> String {
    format!("/usr/lib/{}-linux-gnu/libmariadbd.a", std::env::consts::ARCH)
}

/// Links the object files [`MEMBERS`] of the server's library, because only linking resolves the
/// references in their debug information.
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
