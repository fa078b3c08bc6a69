//! The nodes and settings of a client to be.

use super::boundary::{call, call_or, call_with_error};
use super::code::Code;
use super::error_object::ErrorObject;
use super::failure::Result;
use super::fork_safe_mutex::ForkSafeMutex;
use super::handle::{Borrowed, Output, Returned, new_handle};
use super::observer::{self, ObserverFn};
use super::text::Bytes;
use super::userdata::{ReleaseFn, Userdata};
use crate::{Builder, Redlock, host_label};
use std::ffi::c_void;
use std::ptr::null;

/// `quorumlock_config`.
pub(super) struct ConfigHandle(ForkSafeMutex<Builder>);

impl ConfigHandle {
    fn new(builder: Builder) -> Result<ConfigHandle> {
        Ok(ConfigHandle(ForkSafeMutex::new(builder)?))
    }

    pub(super) fn builder(&self) -> Result<Builder> {
        Ok(self.0.lock()?.clone())
    }

    /// Changes the settings; a failure leaves them as they are.
    pub(super) fn change(&self, change: impl FnOnce(Builder) -> Result<Builder>) -> Result<Code> {
        let mut builder = self.0.lock()?;
        *builder = change(builder.clone())?;
        Ok(Code::Ok)
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_new() -> *const ConfigHandle {
    call_or(null(), || {
        Some(new_handle(ConfigHandle::new(Redlock::builder()).ok()?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_from_env(
    prefix: Bytes,
    prefix_length: usize,
    config: Output<*const ConfigHandle>,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let prefix = prefix.text(prefix_length, "prefix")?;
        let config = config.required("config")?;
        config.write_handle(ConfigHandle::new(Builder::from_env(prefix)?)?);
        Ok(Code::Ok)
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_free(config: Returned<ConfigHandle>) {
    call_or((), || config.take().map(drop));
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_add_node(
    config: Borrowed<ConfigHandle>,
    url: Bytes,
    url_length: usize,
) -> Code {
    call(|| {
        let config = config.required("config")?;
        let url = url.text(url_length, "url")?;
        config.change(|builder| Ok(builder.node(url)))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set(
    config: Borrowed<ConfigHandle>,
    name: Bytes,
    name_length: usize,
    value: Bytes,
    value_length: usize,
    error: Output<*const ErrorObject>,
) -> Code {
    call_with_error(error, || {
        let config = config.required("config")?;
        let name = name.text(name_length, "name")?;
        let value = value.text(value_length, "value")?;
        config.change(|builder| Ok(builder.set(name, value)?))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_set_label_here(config: Borrowed<ConfigHandle>) -> Code {
    call(|| {
        config
            .required("config")?
            .change(|builder| Ok(builder.label(host_label())))
    })
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_add_observer(
    config: Borrowed<ConfigHandle>,
    observer: Option<ObserverFn>,
    userdata: *mut c_void,
    release: ReleaseFn,
) -> Code {
    call(|| {
        // Owned from here on: it is released also if this fails.
        let userdata = Userdata::new(userdata, release);
        let config = config.required("config")?;
        let observer = observer::calling(observer, userdata)?;
        config.change(|builder| Ok(builder.observer(observer)))
    })
}
