//! See `cofferdam_tests::fuzz::repair`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cofferdam_tests::fuzz::repair(data));
