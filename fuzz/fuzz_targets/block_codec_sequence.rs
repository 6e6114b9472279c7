//! libFuzzer target: hands arbitrary bytes to `frondb_block::fuzz::codec_sequence`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb_block::fuzz::codec_sequence(data);
});
