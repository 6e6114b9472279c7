//! libFuzzer target: hands arbitrary bytes to `frondb_run::fuzz::run_meta`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_run::fuzz::run_meta(data);
});
