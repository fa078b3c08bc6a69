//! Tells a program's observer what the library's own is told.

use super::event::{Event, Kind};
use super::failure::{Failure, Result};
use super::userdata::Userdata;
use crate::{
    Acquired, AttemptLost, EventsDropped, Extended, ExtensionFailed, KeyWithoutExpiry, LossReason, Lost, NodeDown,
    NodeMayEvict, NodeNotDurable, NodeQuarantined, NodeUp, Observer, QuarantineEnded, ReleaseFailed,
    ReleaseNotificationsRefused, ReleaseOutcome, Released, Repaired,
};
use std::ffi::c_void;

/// `quorumlock_observer`.
pub(super) type Callback = extern "C" fn(*mut c_void, *const Event);

/// Who is told.
pub(super) struct Listener {
    callback: Callback,
    userdata: Userdata,
}

impl Listener {
    pub(super) fn new(callback: Option<Callback>, userdata: Userdata) -> Result<Listener> {
        Ok(Listener { callback: callback.ok_or_else(|| Failure::null("observer"))?, userdata })
    }

    fn tell(&self, event: Event) {
        (self.callback)(self.userdata.pointer(), &raw const event);
    }
}

impl Observer for Listener {
    fn acquired(&self, event: &Acquired) {
        self.tell(Event {
            waited: event.waited(),
            attempts: event.attempts(),
            round_trips: event.round_trips(),
            ..Event::of(Kind::Acquired, event.resource())
        });
    }

    fn attempt_lost(&self, event: &AttemptLost) {
        let (attempts, granted, refused) = (event.attempt(), event.granted(), event.refused());
        let lost = Event { attempts, granted, refused, ..Event::of(Kind::AttemptLost, event.resource()) };
        self.tell(lost.because(event.causes()));
    }

    fn events_dropped(&self, event: &EventsDropped) {
        self.tell(Event { dropped: event.count(), ..Event::of(Kind::EventsDropped, "") });
    }

    fn extended(&self, event: &Extended) {
        let (ttl, is_automatic) = (event.ttl(), event.is_automatic());
        self.tell(Event { ttl, is_automatic, ..Event::of(Kind::Extended, event.resource()) });
    }

    fn extension_failed(&self, event: &ExtensionFailed) {
        let (remaining, is_automatic) = (event.remaining(), event.is_automatic());
        let failed = Event { remaining, is_automatic, ..Event::of(Kind::ExtensionFailed, event.resource()) };
        self.tell(failed.because(event.causes()));
    }

    fn key_without_expiry(&self, event: &KeyWithoutExpiry) {
        let addresses = event.addresses().iter().map(String::as_str);
        self.tell(Event::of(Kind::KeyWithoutExpiry, event.resource()).at(addresses));
    }

    fn lost(&self, event: &Lost) {
        let kind = match event.reason() {
            LossReason::KeyGone => Kind::LostKey,
            LossReason::LeaseEnded => Kind::LostTime,
        };
        self.tell(Event::of(kind, event.resource()));
    }

    fn node_down(&self, event: &NodeDown) {
        let fault = std::slice::from_ref(event.fault());
        self.tell(Event::of(Kind::NodeDown, "").at([event.address()]).because(fault));
    }

    fn node_may_evict(&self, event: &NodeMayEvict) {
        self.tell(Event { policy: event.policy(), ..Event::of(Kind::NodeMayEvict, "") }.at([event.address()]));
    }

    fn node_not_durable(&self, event: &NodeNotDurable) {
        self.tell(Event::of(Kind::NodeNotDurable, "").at([event.address()]));
    }

    fn node_quarantined(&self, event: &NodeQuarantined) {
        let remaining = event.remaining();
        self.tell(Event { remaining, ..Event::of(Kind::NodeQuarantined, "") }.at([event.address()]));
    }

    fn quarantine_ended(&self, event: &QuarantineEnded) {
        self.tell(Event::of(Kind::QuarantineEnded, "").at([event.address()]));
    }

    fn node_up(&self, event: &NodeUp) {
        self.tell(Event::of(Kind::NodeUp, "").at([event.address()]));
    }

    fn release_failed(&self, event: &ReleaseFailed) {
        let failed = Event { is_freed: event.is_dropped(), ..Event::of(Kind::ReleaseFailed, event.resource()) };
        self.tell(failed.because(event.causes()));
    }

    fn released(&self, event: &Released) {
        let kind = match event.outcome() {
            ReleaseOutcome::Expired => Kind::Expired,
            ReleaseOutcome::Released => Kind::Released,
        };
        self.tell(Event { is_freed: event.is_dropped(), ..Event::of(kind, event.resource()) });
    }

    fn repaired(&self, event: &Repaired) {
        self.tell(Event::of(Kind::Repaired, event.resource()).at(event.addresses().iter().map(String::as_str)));
    }

    fn release_notifications_refused(&self, event: &ReleaseNotificationsRefused) {
        let kind = if event.is_publishing() { Kind::PublishRefused } else { Kind::SubscribeRefused };
        let fault = std::slice::from_ref(event.fault());
        self.tell(Event::of(kind, "").at([event.address()]).because(fault));
    }
}
