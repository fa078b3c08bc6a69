//! What is encoded is what is decoded: see the body.
#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::round_trip::run(input));
