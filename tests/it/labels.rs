//! Labels of holders: what is stored on the nodes, which locks it keeps out, and what reads it.

mod fenced_values;
mod holders;
mod other_libraries;
