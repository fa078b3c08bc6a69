//! What clients count, as text for a metrics server.

use super::boundary::{call_or, calls, frees};
use super::code::Code;
use super::config::ConfigHandle;
use super::failure::Failure;
use super::handle::{Borrowed, new_handle};
use crate::Counters;
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null;

/// `quorumlock_counters`.
pub(super) struct CountersHandle(Counters);

/// `quorumlock_write`.
pub(super) type WriteFn = extern "C" fn(*mut c_void, *const c_char, usize);

#[unsafe(no_mangle)]
extern "C" fn quorumlock_counters_new(separator: c_int) -> *const CountersHandle {
    call_or(null(), || {
        let separator = u8::try_from(separator).ok().filter(u8::is_ascii)?;
        let counters = if separator == 0 {
            Counters::new()
        } else {
            Counters::by_prefix(separator.into())
        };
        Some(new_handle(CountersHandle(counters)))
    })
}

frees! { quorumlock_counters_free(CountersHandle); }

calls! {
    fn quorumlock_counters_attach(
        counters: Borrowed<CountersHandle>,
        config: Borrowed<ConfigHandle>
    ) {
        let counters = counters.required("counters")?;
        config.required("config")?.change(|builder| Ok(builder.counters(&counters.0)))
    }

    fn quorumlock_counters_text(
        counters: Borrowed<CountersHandle>,
        write: Option<WriteFn>,
        userdata: *mut c_void
    ) {
        let counters = counters.required("counters")?;
        let write = write.ok_or_else(|| Failure::null("write"))?;
        let text = counters.0.prometheus_text();
        write(userdata, text.as_ptr().cast(), text.len());
        Ok(Code::Ok)
    }
}
