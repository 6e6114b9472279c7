//! libFuzzer target: hands arbitrary bytes to `frondb_cli::fuzz::table`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_cli::fuzz::table(data);
});
