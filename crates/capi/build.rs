//! Sets the soname of the shared library. Until 1.0 the interface may change with the minor
//! version, so the soname contains it: a program never runs with the library of another minor
//! version.

fn main() {
    let version = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}"));
    if let (Ok(major), Ok(minor)) = (version("MAJOR"), version("MINOR")) {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfrondb.so.{major}.{minor}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
