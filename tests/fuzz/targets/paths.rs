//! See `cofferdam_tests::fuzz::paths`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cofferdam_tests::fuzz::paths(data));
