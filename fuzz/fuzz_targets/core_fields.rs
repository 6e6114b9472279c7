//! libFuzzer target: hands arbitrary bytes to `frondb_core::fuzz::fields`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_core::fuzz::fields(data);
});
