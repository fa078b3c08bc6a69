//! What C can ask of an error and its faults.

use super::boundary::value;
use super::code::Code;
use super::handle::{Lent, Returned, Seen};
use super::report::{CauseNumber, Fault, Phase, Report, show};
use super::text::Str;
use std::ffi::c_int;

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_free(error: Returned<Report>) {
    value((), || error.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_result(error: Lent<Report>) -> Code {
    value(Code::Ok, || Some(error.optional()?.code))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_message(error: Lent<Report>) -> Str {
    value(Str::EMPTY, || Some(Str::of(&error.optional()?.message)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_is_permanent(error: Lent<Report>) -> c_int {
    value(0, || Some(error.optional()?.is_permanent.into()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_fault_count(error: Lent<Report>) -> usize {
    value(0, || Some(error.optional()?.faults.len()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_error_fault(error: Lent<Report>, index: usize) -> *const Fault {
    value(std::ptr::null(), || Some(show(&error.optional()?.faults, index)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_address(fault: Seen<Fault>) -> Str {
    value(Str::EMPTY, || Some(Str::of(fault.look()?.fault.address())))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_phase(fault: Seen<Fault>) -> Phase {
    value(Phase::None, || Some(fault.look()?.phase()))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_cause(fault: Seen<Fault>) -> CauseNumber {
    value(CauseNumber::None, || Some(fault.look()?.cause().0))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_number(fault: Seen<Fault>) -> i64 {
    value(-1, || fault.look()?.cause().1)
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_fault_message(fault: Seen<Fault>) -> Str {
    value(Str::EMPTY, || Some(Str::of(&fault.look()?.message)))
}
