//! Gives the shared library its soname. Before 1.0 the interface may change with the minor version,
//! so that is part of it: a program never meets a library it was not built for.

fn main() {
    let version = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}"));
    if let (Ok(major), Ok(minor)) = (version("MAJOR"), version("MINOR")) {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfrondb.so.{major}.{minor}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
