//! libFuzzer target: hands arbitrary bytes to `frondb_core::fuzz::tuple`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_core::fuzz::tuple(data);
});
