//! libFuzzer target: hands arbitrary bytes to `frondb_block::fuzz::frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_block::fuzz::frame(data);
});
