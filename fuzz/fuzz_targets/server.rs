//! What a server reports of itself, and its errors: see the body.
#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::server::run(input));
