//! Passes each event to the observer of a C program.

use super::event::Event;
use super::failure::{Failure, Result};
use super::userdata::Userdata;
use crate::{Observer, event};
use std::ffi::c_void;

/// `quorumlock_observer`.
pub(super) type Callback = extern "C" fn(*mut c_void, *const Event<'_>);

/// A function of the program, with its userdata.
pub(super) struct CallbackObserver {
    callback: Callback,
    userdata: Userdata,
}

impl CallbackObserver {
    pub(super) fn new(callback: Option<Callback>, userdata: Userdata) -> Result<CallbackObserver> {
        Ok(CallbackObserver { callback: callback.ok_or_else(|| Failure::null("observer"))?, userdata })
    }
}

impl Observer for CallbackObserver {
    fn event(&self, event: &event::Event) {
        let event = Event::new(event);
        (self.callback)(self.userdata.pointer(), &raw const event);
    }
}
