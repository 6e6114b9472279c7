//! libFuzzer target: hands arbitrary bytes to `frondb_wal::fuzz::segment_header`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_wal::fuzz::segment_header(data);
});
