//! The C interface: programs in C, C++ and Python that use it against real servers, and what its
//! header promises.
//!
//! The library is built once, as src/docs/operations.md describes, into a folder of its own;
//! [`library`] does that, and compiles and runs programs. They are the programs in `examples/c`,
//! and those beside this file, which go further than an example would.

mod examples;
mod header;
pub(crate) mod library;
mod nulls;
pub(crate) mod programs;
mod ratio;
mod wrappers;

use crate::prelude::*;
use crate::support::program;
use library::*;
