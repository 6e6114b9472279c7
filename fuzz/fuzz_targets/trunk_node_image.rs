//! libFuzzer target: hands arbitrary bytes to `frondb_trunk::fuzz::node_image`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_trunk::fuzz::node_image(data);
});
