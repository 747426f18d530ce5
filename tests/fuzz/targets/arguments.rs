//! See `cofferdam_tests::fuzz::arguments`. Run it with `-rss_limit_mb=512`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| cofferdam_tests::fuzz::arguments(data));
