//! Passes each event to the observer of a C program.

use super::event::EventObject;
use super::failure::{Failure, Result};
use super::userdata::Userdata;
use crate::{Observer, event};
use std::ffi::c_void;

/// `quorumlock_observer`.
pub(super) type ObserverFn = extern "C" fn(*mut c_void, *const EventObject<'_>);

/// A function of the program, with its userdata.
pub(super) struct CallbackObserver {
    callback: ObserverFn,
    userdata: Userdata,
}

impl CallbackObserver {
    pub(super) fn new(callback: Option<ObserverFn>, userdata: Userdata) -> Result<CallbackObserver> {
        Ok(CallbackObserver { callback: callback.ok_or_else(|| Failure::null("observer"))?, userdata })
    }
}

impl Observer for CallbackObserver {
    fn event(&self, event: &event::Event) {
        let event = EventObject::new(event);
        (self.callback)(self.userdata.pointer(), &raw const event);
    }
}
