//! libFuzzer target: hands arbitrary bytes to `frondb::fuzz::attachment_frame`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    frondb::fuzz::attachment_frame(data);
});
