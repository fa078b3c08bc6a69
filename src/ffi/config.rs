//! The nodes and settings of a client to be.

use super::boundary::{calls, frees, new_or_null};
use super::code::Code;
use super::event::EventObject;
use super::failure::{Failure, Result};
use super::fork_safe_mutex::ForkSafeMutex;
use super::handle::Borrowed;
use super::userdata::{ReleaseFn, Userdata};
use crate::event::Event;
use crate::{Builder, Redlock, host_label};
use std::ffi::c_void;

/// `quorumlock_observer`.
type ObserverFn = extern "C" fn(*mut c_void, *const EventObject<'_>);

/// `quorumlock_config`.
pub(super) type ConfigHandle = ForkSafeMutex<Builder>;

impl ConfigHandle {
    pub(super) fn builder(&self) -> Result<Builder> {
        Ok(self.lock()?.clone())
    }

    /// Changes the settings; a failure leaves them as they are.
    pub(super) fn change(&self, change: impl FnOnce(Builder) -> Result<Builder>) -> Result<Code> {
        let mut builder = self.lock()?;
        let changed = change(builder.clone())?;
        let old = std::mem::replace(&mut *builder, changed);
        drop(builder);
        // After the mutex: what it alone has is released by a callback, which may change the
        // settings too.
        drop(old);
        Ok(Code::Ok)
    }
}

#[unsafe(no_mangle)]
extern "C" fn quorumlock_config_new() -> *const ConfigHandle {
    new_or_null(|| ConfigHandle::new(Redlock::builder()).ok())
}

frees! { quorumlock_config_free(ConfigHandle); }

calls! {
    fn quorumlock_config_from_env(*prefix[prefix_length]; new config: ConfigHandle; error) {
        ConfigHandle::new(Builder::from_env(prefix)?)?
    }

    fn quorumlock_config_add_node(&config: ConfigHandle, *url[url_length]) {
        config.change(|builder| Ok(builder.node(url)))
    }

    fn quorumlock_config_set(
        &config: ConfigHandle,
        *name[name_length],
        *value[value_length];
        error
    ) {
        config.change(|builder| Ok(builder.set(name, value)?))
    }

    fn quorumlock_config_set_label_here(&config: ConfigHandle) {
        config.change(|builder| Ok(builder.label(host_label())))
    }

    fn quorumlock_config_add_observer(
        config: Borrowed<ConfigHandle>,
        observer: Option<ObserverFn>,
        userdata: *mut c_void,
        release: ReleaseFn
    ) {
        // Owned from here on: it is released also if this fails.
        let userdata = Userdata::new(userdata, release);
        let config = config.required("config")?;
        let observer = observer.ok_or_else(|| Failure::null("observer"))?;
        let observer = move |event: &Event| {
            let event = EventObject::new(event);
            observer(userdata.pointer(), &raw const event);
        };
        config.change(|builder| Ok(builder.observer(observer)))
    }
}
