//! libFuzzer target: hands arbitrary bytes to `frondb_run::fuzz::spool_frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_run::fuzz::spool_frame(data);
});
