//! The functions that read an error and its faults.

use super::boundary::call_or;
use super::code::Code;
use super::error_object::{CauseNumber, ErrorObject, FaultObject, PhaseNumber, show};
use super::handle::{Borrowed, Returned, View};
use super::text::Str;
use std::ffi::c_int;

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_free(error: Returned<ErrorObject>) {
    call_or((), || error.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_result(error: Borrowed<ErrorObject>) -> Code {
    call_or(Code::Ok, || Some(error.optional()?.code))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_message(error: Borrowed<ErrorObject>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(&error.optional()?.message)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_is_permanent(error: Borrowed<ErrorObject>) -> c_int {
    call_or(0, || Some(error.optional()?.is_permanent.into()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_fault_count(error: Borrowed<ErrorObject>) -> usize {
    call_or(0, || Some(error.optional()?.faults.len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_fault(
    error: Borrowed<ErrorObject>,
    index: usize,
) -> *const FaultObject {
    call_or(std::ptr::null(), || {
        Some(show(&error.optional()?.faults, index))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_address(fault: View<FaultObject>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(fault.get()?.fault.address())))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_phase(fault: View<FaultObject>) -> PhaseNumber {
    call_or(PhaseNumber::None, || Some(fault.get()?.phase()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_cause(fault: View<FaultObject>) -> CauseNumber {
    call_or(CauseNumber::None, || Some(fault.get()?.cause().0))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_number(fault: View<FaultObject>) -> i64 {
    call_or(-1, || fault.get()?.cause().1)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_message(fault: View<FaultObject>) -> Str {
    call_or(Str::EMPTY, || Some(Str::of(&fault.get()?.message)))
}
