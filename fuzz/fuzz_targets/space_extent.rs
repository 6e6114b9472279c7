//! libFuzzer target: hands arbitrary bytes to `frondb_space::fuzz::extent`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_space::fuzz::extent(data);
});
