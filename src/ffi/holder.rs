//! The holder of a lock: a copy, which C reads.

use super::boundary::{call_or, call_with_error};
use super::code::Code;
use super::error_object::ErrorObject;
use super::handle::{Borrowed, Output, Returned};
use super::mutex::MutexHandle;
use super::text::Str;
use super::times::millis;
use crate::Holder;

/// `quorumlock_holder`. It never changes.
pub(super) struct HolderObject {
    holder: Holder,
    message: String,
}

fn of<R>(holder: &Borrowed<HolderObject>, otherwise: R, say: impl FnOnce(&HolderObject) -> R) -> R {
    call_or(otherwise, || holder.optional().map(|holder| say(&holder)))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_mutex_holder(
    mutex: Borrowed<MutexHandle>,
    holder: Output<*const HolderObject>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let mutex = mutex.required("mutex")?;
        let output = holder.required("holder")?;
        let Some(holder) = mutex.holder()? else {
            return Ok(Code::NotHeld);
        };
        output.write_handle(HolderObject {
            message: holder.to_string(),
            holder,
        });
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_holder_free(holder: Returned<HolderObject>) {
    call_or((), || holder.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_holder_message(holder: Borrowed<HolderObject>) -> Str {
    of(&holder, Str::EMPTY, |holder| Str::of(&holder.message))
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_holder_label(holder: Borrowed<HolderObject>) -> Str {
    of(&holder, Str::EMPTY, |holder| {
        Str::of(holder.holder.label().unwrap_or_default())
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_holder_remaining_ms(holder: Borrowed<HolderObject>) -> u64 {
    of(&holder, 0, |holder| {
        holder.holder.remaining().map_or(u64::MAX, millis)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_holder_node_count(holder: Borrowed<HolderObject>) -> usize {
    of(&holder, 0, |holder| holder.holder.nodes().len())
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_holder_node(holder: Borrowed<HolderObject>, index: usize) -> Str {
    of(&holder, Str::EMPTY, |holder| {
        holder
            .holder
            .nodes()
            .get(index)
            .map_or(Str::EMPTY, |address| Str::of(address))
    })
}
