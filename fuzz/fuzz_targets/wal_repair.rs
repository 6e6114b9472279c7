//! libFuzzer target: hands arbitrary bytes to `frondb_wal::fuzz::repair`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_wal::fuzz::repair(data);
});
