//! libFuzzer target: hands arbitrary bytes to `frondb_manifest::fuzz::superblock`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_manifest::fuzz::superblock(data);
});
