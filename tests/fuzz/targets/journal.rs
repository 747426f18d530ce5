//! See `cofferdam_tests::fuzz::journal`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cofferdam_tests::fuzz::journal(data));
