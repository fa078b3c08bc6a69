//! When a connection asks whether the port speaks TLS, and what becomes of the answer.

use super::link::Link;
use super::probe::{self, Probe};
use crate::algorithm::time::Timestamp;
use crate::fault::{Cause, Fault, Phase};
use crate::os::transport::TransportConfig;
use crate::protocol::endpoint::Address;
use std::time::Duration;

/// What a second connection shows about a port.
#[derive(Default)]
pub(super) struct Probing {
    probe: Probe,
    /// The node has ended the connection so, and is asked first whether it speaks TLS, until then
    /// at most.
    pub(super) ended: Option<(Fault, Timestamp)>,
}

impl Probing {
    /// Goes on to find it out. A silent server is asked at this time.
    ///
    /// # Errors
    /// The port does not speak TLS, and the URL is `rediss://`. Or the node has ended the
    /// connection.
    pub(super) fn advance(
        &mut self,
        link: &Link,
        asked_at: Timestamp,
        now: Timestamp,
    ) -> Result<(), Fault> {
        if matches!(link.transport, TransportConfig::Plain) {
            if self.probe.advance() {
                self.probe = Probe::SpeaksTls;
            }
            return match self.ended {
                Some((fault, until)) if now >= until || !self.probe.is_under_way() => Err(fault),
                _ => Ok(()),
            };
        }
        if !link.awaits_first_byte() {
            return Ok(());
        }
        if matches!(self.probe, Probe::NotBegun) && now >= asked_at {
            self.probe = Probe::by_ping(link.connect_beside().and_then(Result::ok));
        }
        if self.probe.advance() {
            Err(Fault::new(Phase::Handshake, Cause::NotTls))
        } else {
            Ok(())
        }
    }

    /// When to [`advance`](Probing::advance) it next, of a silent server or one that has ended the
    /// connection.
    pub(super) fn due(&self, asked_at: Timestamp, now: Timestamp) -> Timestamp {
        match (&self.probe, self.ended) {
            (_, Some((_, until))) => until.min(now.after(probe::LOOK)),
            (Probe::NotBegun, None) => asked_at,
            (Probe::Asking(..), None) => now.after(probe::LOOK),
            (Probe::Ended | Probe::SpeaksTls, None) => Timestamp::NEVER,
        }
    }

    /// Whether a connection that has ended so stays for this time at most: the node is asked first
    /// whether it speaks TLS.
    pub(super) fn holds(
        &mut self,
        link: &Link,
        fault: Fault,
        time: Duration,
        now: Timestamp,
    ) -> bool {
        if let Some((_, until)) = self.ended {
            return now < until && self.probe.is_under_way();
        }
        let may_be_asked = matches!(link.endpoint.address(), Address::Tcp(..))
            && matches!(self.probe, Probe::NotBegun);
        if may_be_asked && fault.cause == Cause::Closed {
            self.probe = Probe::by_client_hello(link.connect_beside().and_then(Result::ok));
            self.ended = self
                .probe
                .is_under_way()
                .then_some((fault, now.after(time)));
        }
        self.ended.is_some()
    }

    /// The connection is closed. The probe continues where the port may speak TLS.
    pub(super) fn close(&mut self, may_be_tls: bool) {
        self.ended = None;
        if !may_be_tls {
            self.probe = Probe::NotBegun;
        }
    }

    /// Whether a probe has shown that the port speaks TLS, and the URL is not `rediss://`.
    pub(super) fn has_found_tls(&self) -> bool {
        matches!(self.probe, Probe::SpeaksTls)
    }
}
