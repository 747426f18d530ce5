//! See `cofferdam_tests::fuzz::stream`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cofferdam_tests::fuzz::stream(data));
