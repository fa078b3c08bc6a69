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
            return Ok(());
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
        self.session.traffic.waiting_since().unwrap_or(self.opened_at).after(self.node_timeout / 2)
    }

    /// The probe that stays when a connection has ended, which is still open here.
    pub(super) fn probe_after(&mut self, fault: Fault) -> Probe {
        let is_open = self.is_open() && self.session.standing() == HandshakeState::Pending;
        let is_plain = matches!(self.transport, TransportConfig::Plain);
        // In the handshake, and perhaps known to be TLS from an earlier time.
        let may_be_tls = is_plain && is_open && matches!(fault.cause, Cause::Closed | Cause::Tls(_));
        match std::mem::take(&mut self.probe) {
            _ if !cfg!(feature = "tls") || !may_be_tls => Probe::NotBegun,
            Probe::NotBegun if matches!(self.endpoint.address(), Address::Tcp(..)) => {
                Probe::by_client_hello(self.connect_beside().and_then(Result::ok))
            }
            probe => probe,
        }
    }

    /// Whether a node whose URL says nothing of TLS speaks it: a probe has found that out, or it has sent an alert.
    pub(super) fn speaks_tls(&self) -> bool {
        let is_plain = matches!(self.transport, TransportConfig::Plain);
        is_plain && (matches!(self.probe, Probe::SpeaksTls) || self.session.traffic.input().starts_with(&[ALERT, 3]))
    }
}
