//! How a node is reached: its address, or the address of a master that its server has named, and
//! the socket of the present connection.

use super::login::Login;
use super::race::{self, Attempt, Place, Progress, Race};
use crate::algorithm::time::Timestamp;
use crate::engine::socket_state::SocketState;
use crate::fault::{Cause, Fault, Phase};
use crate::os::resolve::{self, Resolution};
use crate::os::stream::{self, Stream};
use crate::os::transport::TransportConfig;
use crate::os::waker::Waker;
use crate::protocol::credentials::Credentials;
use crate::protocol::endpoint::{Address, Endpoint};
use crate::protocol::moved::NamedMaster;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The way to one node.
pub(in crate::engine) struct Link {
    pub(in crate::engine) endpoint: Endpoint,
    /// How connections to the node are protected.
    pub(in crate::engine) transport: TransportConfig,
    /// Where the credentials come from, if not from the URL.
    pub(in crate::engine) login: Option<Login>,
    /// Where the master of the node's shard is, as a server of it has named it last.
    named: Option<NamedMaster>,
    /// Whether connections lead there, until one fails.
    is_redirected: bool,
    pub(super) socket: SocketState,
    /// When the connection was begun, without the time of the name's look-up.
    pub(super) opened_at: Timestamp,
    race: Race,
    /// While connections lead to a master that was named: the addresses of the URL's host.
    home: Race,
    /// A look-up that may outlast the connection it was begun for: there is one at most, and those
    /// that were begun for a server which is not the one to connect to any more.
    resolution: Option<Resolution>,
    /// What the addresses of the node share while they are tried.
    time: Duration,
    waker: Arc<Waker>,
}

impl Link {
    pub(super) fn new(
        endpoint: Endpoint,
        transport: TransportConfig,
        time: Duration,
        waker: Arc<Waker>,
    ) -> Link {
        Link {
            endpoint,
            transport,
            login: None,
            named: None,
            is_redirected: false,
            socket: SocketState::Closed,
            opened_at: Timestamp::ORIGIN,
            race: Race::new(),
            home: Race::new(),
            resolution: None,
            time,
            waker,
        }
    }

    /// What the server has accepted, as far as it is known.
    pub(in crate::engine) fn credentials(&self) -> Option<&Credentials> {
        match &self.login {
            Some(login) => login.accepted.as_ref(),
            None => self.endpoint.handshake().credentials.as_ref(),
        }
    }

    /// What the provider has returned last, if there is one, to be sent now.
    pub(super) fn next_credentials(&mut self) -> Option<&Credentials> {
        self.login.as_mut()?.next()
    }

    /// Whether the connection waits for credentials.
    pub(super) fn awaits_credentials(&self) -> bool {
        self.login.as_ref().is_some_and(|login| login.is_awaited)
    }

    /// Begins to wait for what connecting needs.
    pub(super) fn prepare(&mut self, now: Timestamp) {
        self.opened_at = now;
        self.socket = SocketState::Resolving;
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// It failed at once.
    pub(super) fn open(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.opened_at = now;
        // What an earlier connection did not wait for is as old as that.
        self.take_resolved();
        let (host, port) = match (self.master(), self.endpoint.address()) {
            (Some(master), _) => (&master.host, master.port),
            (None, Address::Tcp(host, port)) => (host, *port),
            (None, Address::Unix(path)) => {
                self.race.learn([Place::Unix(path.clone())]);
                return self.race(now);
            }
        };
        if let Some(address) = resolve::literal(host, port) {
            self.race.learn([Place::Tcp(address)]);
            return self.race(now);
        }
        if self.resolution.is_none() {
            match Resolution::begin(host, port, Arc::clone(&self.waker)) {
                Ok(resolution) => self.resolution = Some(resolution),
                // No thread: known addresses need none.
                Err(_) if self.race.first().is_some() => return self.race(now),
                Err(error) => {
                    return Err(Fault::new(Phase::Resolve, stream::cause_of(&error)));
                }
            }
        }
        self.socket = SocketState::Resolving;
        self.resolved(now)
    }

    /// Whether connections lead to a master that was named, and not to the address of the URL.
    pub(super) fn is_redirected(&self) -> bool {
        self.is_redirected
    }

    fn master(&self) -> Option<&NamedMaster> {
        self.named.as_ref().filter(|_| self.is_redirected)
    }

    /// Whether connections can lead to this master: the host of a Unix domain socket is no address.
    pub(super) fn can_follow(&self, named: &NamedMaster) -> bool {
        !named.host.is_empty() || matches!(self.endpoint.address(), Address::Tcp(..))
    }

    /// Lets connections lead to this master from now on. There must be none. Returns it, unless it
    /// is the one that was followed last.
    pub(in crate::engine) fn follow(&mut self, mut named: NamedMaster) -> Option<&NamedMaster> {
        if named.host.is_empty() {
            match (self.master(), self.endpoint.address()) {
                (Some(master), _) => named.host.clone_from(&master.host),
                (None, Address::Tcp(host, _)) => named.host.clone_from(host),
                (None, Address::Unix(_)) => {}
            }
        }
        let is_new = self.named.as_ref() != Some(&named);
        self.named = Some(named);
        self.redirect(true);
        self.named.as_ref().filter(|_| is_new)
    }

    /// Lets connections lead to the master that was named, or to the address of the URL, of which
    /// the addresses are known as before. What is being looked up is another server's.
    fn redirect(&mut self, is_redirected: bool) {
        if std::mem::replace(&mut self.is_redirected, is_redirected) {
            self.race = std::mem::replace(&mut self.home, Race::new());
        }
        if is_redirected {
            self.home = std::mem::replace(&mut self.race, Race::new());
        }
        self.resolution = None;
    }

    /// How the next connection is protected.
    pub(in crate::engine) fn protection(&self) -> TransportConfig {
        match self.named_host() {
            Some(host) => self.transport.named(host),
            None => self.transport.clone(),
        }
    }

    /// The host that was named with a master: its certificate must be for that, unless the URL
    /// names another one.
    fn named_host(&self) -> Option<&str> {
        self.master()
            .map(|master| &*master.host)
            .filter(|_| self.endpoint.server_name().is_none())
    }

    /// Goes on to connect when the host name has been looked up. Addresses that are known from an
    /// earlier time do not wait for a resolver that hangs or fails.
    pub(in crate::engine) fn resolved(&mut self, now: Timestamp) -> Result<(), Fault> {
        if !self.is_resolving() {
            return Ok(());
        }
        if self.take_resolved() || self.race.first().is_some() && now >= self.resolved_by() {
            return self.race(now);
        }
        Ok(())
    }

    /// Whether the connection waits for a look-up. One of an earlier connection may still run while
    /// this one waits for credentials.
    pub(in crate::engine) fn is_resolving(&self) -> bool {
        matches!(self.socket, SocketState::Resolving)
            && self.resolution.is_some()
            && !self.awaits_credentials()
    }

    /// Takes what the look-up has found, if it is over. A failed one leaves what is known.
    fn take_resolved(&mut self) -> bool {
        let Some(addresses) = self.resolution.as_ref().and_then(Resolution::answer) else {
            return false;
        };
        self.resolution = None;
        if !addresses.is_empty() || self.race.first().is_none() {
            self.race.learn(addresses.into_iter().map(Place::Tcp));
        }
        true
    }

    /// Until when known addresses wait for others.
    fn resolved_by(&self) -> Timestamp {
        self.opened_at.after(self.time / 2)
    }

    /// Takes a connection that is being made as far as it goes without waiting. True when it is
    /// made with this.
    pub(super) fn advance(&mut self, now: Timestamp) -> Result<bool, Fault> {
        self.resolved(now)?;
        let SocketState::Connecting(_) = self.socket else {
            return Ok(false);
        };
        self.socket = match self.race.advance(now)? {
            Progress::Made(stream) => SocketState::Open(
                self.protection()
                    .begin(stream)
                    .map_err(|error| race::failed(&error))?,
            ),
            Progress::Making(stream) => SocketState::Connecting(stream),
        };
        Ok(self.is_open())
    }

    /// When to [`advance`](Link::advance) it though the stream is not ready: another address may
    /// have to be tried.
    pub(super) fn due(&self, now: Timestamp) -> Timestamp {
        match self.socket {
            SocketState::Connecting(_) => self.race.due(now),
            SocketState::Resolving if self.is_resolving() && self.race.first().is_some() => {
                self.resolved_by()
            }
            _ => Timestamp::NEVER,
        }
    }

    /// Begins another connection to where this one leads, if it is open.
    pub(in crate::engine) fn connect_beside(&self) -> Option<io::Result<Stream>> {
        self.race
            .first()
            .filter(|_| self.is_open())
            .map(Stream::begin)
    }

    /// Whether bytes may flow both ways.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        matches!(self.socket, SocketState::Open(_))
    }

    /// Whether a server that should speak TLS has sent nothing.
    pub(super) fn awaits_first_byte(&self) -> bool {
        matches!(&self.socket, SocketState::Open(transport) if transport.awaits_first_byte())
    }

    /// The connection has ended so. If it has not `worked`, another address is tried next time, or
    /// the name looked up.
    pub(super) fn close(&mut self, worked: bool, fault: Fault) {
        if fault.cause != Cause::Closed {
            self.socket
                .stream()
                .into_iter()
                .for_each(|stream| stream.reset_on_close());
        }
        match (worked, self.is_open()) {
            (true, _) => {}
            (false, _) if self.is_redirected => self.redirect(false),
            (false, true) => self.race.skip_first(),
            // The name is looked up again, and these are tried if that fails.
            (false, false) => {}
        }
        self.discard();
    }

    /// Drops the connection as it is.
    pub(super) fn discard(&mut self) {
        self.race.stop();
        self.socket = SocketState::Closed;
        self.login
            .iter_mut()
            .for_each(|login| login.is_awaited = false);
    }

    /// Tries the addresses that are known.
    fn race(&mut self, now: Timestamp) -> Result<(), Fault> {
        self.socket = SocketState::Connecting(self.race.begin(self.time, now)?);
        self.opened_at = now;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::{PlayedServer, at, soon};
    use crate::os::background_call::BackgroundCall;

    fn link(url: &str) -> Link {
        let endpoint = Endpoint::parse(url).unwrap();
        let waker = Arc::new(Waker::new().unwrap());
        Link::new(
            endpoint,
            TransportConfig::Plain,
            Duration::from_millis(100),
            waker,
        )
    }

    #[test]
    fn a_master_that_is_named_is_followed_and_named_once() {
        let mut link = link("redis://10.0.0.1:1");
        let [master, other] = [2, 3].map(|port| NamedMaster {
            host: "10.0.0.2".to_owned(),
            port,
        });
        assert_eq!(link.follow(master.clone()), Some(&master));
        assert!(link.is_redirected());
        assert_eq!(link.follow(master), None);
        assert_eq!(link.follow(other.clone()), Some(&other));
    }

    #[test]
    fn a_master_that_is_named_without_a_host_is_on_the_host_that_was_asked() {
        let named = |host: &str| NamedMaster {
            host: host.to_owned(),
            port: 2,
        };
        let mut by_network = link("redis://10.0.0.1:1");
        assert!(by_network.can_follow(&named("")) && by_network.can_follow(&named("10.0.0.2")));
        assert_eq!(by_network.follow(named("")), Some(&named("10.0.0.1")));
        let by_path = link("unix:///a/path");
        assert!(!by_path.can_follow(&named("")) && by_path.can_follow(&named("10.0.0.2")));
    }

    #[test]
    #[cfg(feature = "tls")]
    fn the_certificate_of_a_master_is_for_the_host_that_was_named_or_what_the_url_names() {
        for (url, host) in [
            ("rediss://10.0.0.1", Some("10.0.0.2")),
            ("rediss://10.0.0.1?server_name=redis", None),
        ] {
            let mut link = link(url);
            assert_eq!(link.named_host(), None);
            link.follow(NamedMaster {
                host: "10.0.0.2".to_owned(),
                port: 2,
            });
            assert_eq!(link.named_host(), host);
        }
    }

    #[test]
    fn what_a_name_leads_to_replaces_what_is_known_and_a_failed_look_up_leaves_it() {
        for (host, stays) in [("localhost", false), ("no\0name", true)] {
            let mut link = link("redis://localhost:1");
            let known = Place::Tcp("127.0.0.9:9".parse().unwrap());
            link.race.learn([known.clone()]);
            // The simulator, where this is run too, looks nothing up.
            let Ok(resolution) = Resolution::begin(host, 1, Arc::clone(&link.waker)) else {
                return;
            };
            link.resolution = Some(resolution);
            let is_taken = (0..2000).any(|_| {
                std::thread::sleep(Duration::from_millis(1));
                link.take_resolved()
            });
            assert!(is_taken);
            assert_eq!(link.race.first() == Some(&known), stays, "{host:?}");
        }
    }

    /// What was looked up for an earlier connection begins none before there are credentials.
    #[test]
    fn a_look_up_that_is_left_does_not_connect_without_credentials() {
        let mut link = link("redis://localhost:1");
        let now = Timestamp::ORIGIN;
        let mut login = Login::new(BackgroundCall::start("test", || None).unwrap());
        assert!(!login.begin(now));
        link.login = Some(login);
        // The simulator, where this is run too, looks nothing up.
        let Ok(resolution) = Resolution::begin("localhost", 1, Arc::clone(&link.waker)) else {
            return;
        };
        link.resolution = Some(resolution);
        link.prepare(now);
        for _ in 0..40 {
            link.resolved(now).unwrap();
            assert!(matches!(link.socket, SocketState::Resolving));
            assert_eq!(link.due(now), Timestamp::NEVER);
            std::thread::sleep(Duration::from_millis(5));
        }
        link.login = None;
        // A busy machine takes longer than that for a look-up.
        soon(|| {
            link.resolved(now).unwrap();
            (!matches!(link.socket, SocketState::Resolving)).then_some(())
        });
    }

    /// A look-up that does not end. None in the simulator, which looks nothing up.
    fn hanging(link: &Link) -> Option<Resolution> {
        let resolution = Resolution::begin("localhost", 1, Arc::clone(&link.waker)).ok()?;
        // There is one answer.
        soon(|| resolution.answer());
        Some(resolution)
    }

    #[test]
    #[cfg(not(feature = "simulated"))]
    fn addresses_that_are_known_wait_for_a_look_up_half_of_the_time() {
        for is_known in [false, true] {
            let server = PlayedServer::new();
            let mut link = link("redis://localhost:1");
            let known = is_known.then(|| Place::Tcp(server.address()));
            link.race.learn(known);
            link.resolution = hanging(&link);
            link.resolved(at(99)).unwrap();
            assert!(matches!(link.socket, SocketState::Closed));
            assert_eq!(link.due(at(99)), Timestamp::NEVER, "nothing waits for it");
            link.open(at(1)).unwrap();
            let due = if is_known { at(51) } else { Timestamp::NEVER };
            assert_eq!(link.due(at(1)), due);
            for (millis, is_over) in [(50, false), (51, is_known)] {
                link.resolved(at(millis)).unwrap();
                let is_waiting = matches!(link.socket, SocketState::Resolving);
                assert_eq!(is_waiting, !is_over, "{millis}");
            }
        }
    }

    /// As where no thread can be started.
    #[test]
    fn a_look_up_that_cannot_begin_fails_only_where_no_address_is_known() {
        let known = Place::Tcp("[::1]:1".parse().unwrap());
        for (known, phase) in [(None, Phase::Resolve), (Some(known), Phase::Connect)] {
            let mut link = link("redis://localhost:1");
            link.race.learn(known);
            // It begins everywhere but in the simulator, which has no such addresses either.
            if let Err(fault) = link.open(at(1)) {
                assert_eq!(fault.phase, phase);
                assert_ne!(fault.cause, Cause::UnknownHost);
            }
        }
    }

    #[test]
    #[cfg(not(feature = "simulated"))]
    fn a_connection_that_is_being_made_is_looked_at_when_another_address_is_to_be_tried() {
        let [first, second] = [(); 2].map(|()| PlayedServer::new());
        let mut link = link("redis://localhost:1");
        let places = [first, second].map(|server| Place::Tcp(server.address()));
        link.race.learn(places);
        link.race(at(1)).unwrap();
        assert_eq!(link.due(at(1)), at(51));
    }

    #[test]
    fn what_is_known_of_a_node_stays_when_no_connection_is_made_and_what_was_named_does_not() {
        let refused = Fault::new(Phase::Connect, Cause::Refused);
        let known = Place::Tcp("127.0.0.9:9".parse().unwrap());
        let mut link = link("redis://10.0.0.1:1");
        link.race.learn([known.clone()]);
        link.close(false, refused);
        assert_eq!(link.race.first(), Some(&known));
        for port in [2, 3] {
            link.follow(NamedMaster {
                host: "10.0.0.2".to_owned(),
                port,
            });
            assert_eq!(link.race.first(), None);
            let named = Place::Tcp(([127, 0, 0, 1], port).into());
            link.race.learn([named]);
        }
        link.close(false, refused);
        assert!(!link.is_redirected());
        assert_eq!(link.race.first(), Some(&known));
    }
}
