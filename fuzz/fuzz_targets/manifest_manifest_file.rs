//! libFuzzer target: hands arbitrary bytes to `frondb_manifest::fuzz::manifest_file`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_manifest::fuzz::manifest_file(data);
});
