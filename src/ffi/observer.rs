//! Passes each event to the observer of a C program.

use super::event::EventObject;
use super::failure::{Failure, Result};
use super::userdata::Userdata;
use crate::event::Event;
use std::ffi::c_void;

/// `quorumlock_observer`.
pub(super) type ObserverFn = extern "C" fn(*mut c_void, *const EventObject<'_>);

/// A function of the program with its userdata, as an observer.
pub(super) fn calling(
    callback: Option<ObserverFn>,
    userdata: Userdata,
) -> Result<impl Fn(&Event) + Send + Sync> {
    let callback = callback.ok_or_else(|| Failure::null("observer"))?;
    Ok(move |event: &Event| {
        let event = EventObject::new(event);
        callback(userdata.pointer(), &raw const event);
    })
}
