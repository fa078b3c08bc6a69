//! What clients count, as text for a metrics server.

use super::boundary::{calls, frees, new_or_null};
use super::code::Code;
use super::config::ConfigHandle;
use super::failure::Failure;
use crate::Counters;
use std::ffi::{c_char, c_int, c_void};

/// `quorumlock_write`.
type WriteFn = extern "C" fn(*mut c_void, *const c_char, usize);

#[unsafe(no_mangle)]
extern "C" fn quorumlock_counters_new(separator: c_int) -> *const Counters {
    new_or_null(|| {
        let separator = u8::try_from(separator).ok().filter(u8::is_ascii)?;
        let counters = if separator == 0 {
            Counters::new()
        } else {
            Counters::by_prefix(separator.into())
        };
        Some(counters)
    })
}

frees! { quorumlock_counters_free(Counters); }

calls! {
    fn quorumlock_counters_attach(&counters: Counters, &config: ConfigHandle) {
        config.change(|builder| Ok(builder.counters(&counters)))
    }

    fn quorumlock_counters_text(
        &counters: Counters,
        write: Option<WriteFn>,
        userdata: *mut c_void
    ) {
        let write = write.ok_or_else(|| Failure::null("write"))?;
        let text = counters.prometheus_text();
        write(userdata, text.as_ptr().cast(), text.len());
        Ok(Code::Ok)
    }
}
