//! libFuzzer target: hands arbitrary bytes to `frondb::fuzz::backup_list`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb::fuzz::backup_list(data);
});
