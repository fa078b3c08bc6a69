//! When a connection asks whether the port speaks TLS, and what becomes of the answer.

use super::NodeConnection;
use super::probe::{ALERT, Probe};
use crate::algorithm::fault::{Cause, Fault};
use crate::algorithm::time::Timestamp;
use crate::engine::socket_state::SocketState;
use crate::os::transport::TransportConfig;
use crate::protocol::endpoint::Address;
use crate::protocol::session::HandshakeState;

impl NodeConnection {
    /// Goes on to find out whether the port speaks TLS.
    ///
    /// # Errors
    /// It does not, and the URL says that it does.
    pub(super) fn probe(&mut self, now: Timestamp) -> Result<(), Fault> {
        if matches!(self.transport, TransportConfig::Plain) {
            if self.probe.advance() {
                self.probe = Probe::SpeaksTls;
            }
            return match self.ended {
                Some((fault, until)) if now >= until || !self.probe.is_under_way() => Err(fault),
                _ => Ok(()),
            };
        }
        let SocketState::Open(transport) = &self.socket else { return Ok(()) };
        if !transport.awaits_first_byte() {
            return Ok(());
        }
        if matches!(self.probe, Probe::NotBegun) && now >= self.probe_at() {
            self.probe = Probe::by_ping(self.connect_beside().and_then(Result::ok));
        }
        if self.probe.advance() { Err(Fault::new(self.phase(), Cause::NotTls)) } else { Ok(()) }
    }

    /// When a silent server is to be asked.
    pub(super) fn probe_at(&self) -> Timestamp {
        self.session.waiting_since().unwrap_or(self.opened_at).after(self.node_timeout / 2)
    }

    /// Whether a connection that has ended so stays for a moment: the node is asked first whether it speaks TLS.
    pub(in crate::engine) fn asks_for_tls(&mut self, fault: Fault, now: Timestamp) -> bool {
        if let Some((_, until)) = self.ended {
            return now < until && self.probe.is_under_way();
        }
        let may_be_asked = matches!(self.endpoint.address(), Address::Tcp(..)) && matches!(self.probe, Probe::NotBegun);
        if !may_be_asked || fault.cause != Cause::Closed || !self.may_be_tls(fault) {
            return false;
        }
        self.probe = Probe::by_client_hello(self.connect_beside().and_then(Result::ok));
        if self.probe.is_under_way() {
            self.ended = Some((fault, now.after(self.node_timeout / 2)));
        }
        self.ended.is_some()
    }

    /// The probe that stays when a connection has ended, which is still open here.
    pub(super) fn probe_after(&mut self, fault: Fault) -> Probe {
        match std::mem::take(&mut self.probe) {
            probe if self.may_be_tls(fault) => probe,
            _ => Probe::NotBegun,
        }
    }

    /// Whether a connection without TLS has ended in the handshake, as one does where the port speaks TLS. That may be
    /// known from an earlier time.
    fn may_be_tls(&self, fault: Fault) -> bool {
        let is_pending = self.is_open() && self.session.standing() == HandshakeState::Pending;
        let is_plain = matches!(self.transport, TransportConfig::Plain);
        cfg!(feature = "tls") && is_plain && is_pending && matches!(fault.cause, Cause::Closed | Cause::Tls(_))
    }

    /// Whether a node whose URL says nothing of TLS speaks it: a probe has found that out, or it has sent an alert.
    pub(super) fn speaks_tls(&self) -> bool {
        let is_plain = matches!(self.transport, TransportConfig::Plain);
        is_plain && (matches!(self.probe, Probe::SpeaksTls) || self.session.traffic.input().starts_with(&[ALERT, 3]))
    }
}
