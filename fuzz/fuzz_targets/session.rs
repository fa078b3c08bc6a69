//! A whole conversation with a server that may send anything: see the body.
#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::session::run(input));
