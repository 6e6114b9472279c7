//! libFuzzer target: hands arbitrary bytes to `frondb_run::fuzz::value_ref`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_run::fuzz::value_ref(data);
});
