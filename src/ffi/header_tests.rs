//! The header and the code say the same.
