//! libFuzzer target: hands arbitrary bytes to `frondb_records::fuzz::wal_record`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_records::fuzz::wal_record(data);
});
