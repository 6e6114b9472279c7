//! libFuzzer target: hands arbitrary bytes to `frondb_block::fuzz::payload`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_block::fuzz::payload(data);
});
