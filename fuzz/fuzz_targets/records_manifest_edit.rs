//! libFuzzer target: hands arbitrary bytes to `frondb_records::fuzz::manifest_edit`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_records::fuzz::manifest_edit(data);
});
