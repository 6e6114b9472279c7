//! libFuzzer target: hands arbitrary bytes to `frondb_filter::fuzz::filter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_filter::fuzz::filter(data);
});
