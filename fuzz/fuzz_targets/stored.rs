//! What is stored on a node, by whichever program: see the body.
#![no_main]

#[path = "../bodies/mod.rs"]
mod bodies;

libfuzzer_sys::fuzz_target!(|input: &[u8]| bodies::stored::run(input));
