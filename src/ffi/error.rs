//! The functions that read an error and its faults.

use super::boundary::{call_or, frees, parts};
use super::failure::Failure;
use super::fault::FaultObject;
use super::handle::{Borrowed, View};
use super::text::Str;
use std::ffi::c_int;

frees! { quorumlock_error_free(Failure); }

parts! { Borrowed<Failure>:
    quorumlock_error_result() -> c_int = |error| error.code as c_int;
    quorumlock_error_message() -> Str = |error| Str::of(&error.message);
    quorumlock_error_is_permanent() -> c_int = |error| error.is_permanent.into();
    quorumlock_error_fault_count() -> usize = |error| error.faults.len();
    quorumlock_error_fault(index: usize) -> View<FaultObject> =
        |error| View::of(error.faults.get(index));
}

parts! { View<FaultObject>:
    quorumlock_fault_address() -> Str = |fault| Str::of(fault.fault.address());
    quorumlock_fault_phase() -> c_int = |fault| fault.fault.phase() as c_int;
    quorumlock_fault_cause() -> c_int = FaultObject::cause;
    quorumlock_fault_message() -> Str = |fault| Str::of(&fault.message);
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_number(fault: View<FaultObject>) -> i64 {
    call_or(-1, || Some(fault.optional()?.number()))
}
