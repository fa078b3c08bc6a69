//! An error of each message: of a URL, of a setting, a name, a lease or a wait, and where too few
//! nodes answered.

use crate::algorithm::node::NodeId;
use crate::events::error::{Error, NodeFault};
use crate::fault::detail::Detail;
use crate::fault::{Cause, Fault, Phase};
use crate::os::fork::ForkEpoch;
use crate::protocol::endpoint::EndpointError;
use crate::{CancelHandle, Lease, Mutex, Redlock, Wait, Watchdog};
use std::time::Duration;

pub(super) const MINUTE: Duration = Duration::from_secs(60);
pub(super) const TIMEOUT: Detail = Detail::Limit(Duration::from_millis(100), Some("node_timeout"));

pub(super) fn url_errors() -> [EndpointError; 16] {
    use EndpointError::*;
    [
        BadDatabase,
        BadDurable,
        BadEncoding,
        BadHost,
        BadPort,
        Blank,
        NoHost,
        NoPassword,
        NoPath,
        NoScheme,
        RepeatedParameter,
        Tls,
        Unencoded('#'),
        UnixUnsupported,
        UnknownParameter,
        UnsupportedScheme,
    ]
}

fn client() -> Redlock {
    Redlock::builder()
        .nodes(["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"])
        .build()
        .unwrap()
}

/// Errors that no node is asked for.
pub(super) fn errors() -> Vec<Error> {
    let client = client();
    let order = || client.mutex("orders/42");
    let of_set = |count: usize| client.mutex_set(["a", "b"].iter().take(count));
    let refused = |mutex: Mutex| mutex.try_lock().unwrap_err();
    let built = |builder: crate::Builder| builder.build().unwrap_err();
    let variable = |name: &str, value: &str| {
        let variables = [
            ("QUORUMLOCK_NODES", "redis://10.0.0.1"),
            (&format!("QUORUMLOCK_{name}"), value),
        ];
        crate::Builder::from_variables("QUORUMLOCK_", variables).unwrap_err()
    };
    let one = || Redlock::builder().node("redis://10.0.0.1");
    let lease = |text: &str| text.parse::<Lease>();
    let text =
        |key: &str, end: u64| format!("quorumlock-lease:1:{key}:10000:{end}:{}", "ab".repeat(20));
    let cancelled = CancelHandle::new();
    cancelled.cancel();
    let far = 253_402_300_799_999;
    let mut errors = vec![
        built(Redlock::builder()),
        built(Redlock::builder().nodes((1..=65).map(|port| format!("redis://10.0.0.1:{port}")))),
        built(one().node("redis://:secret@10.0.0.1:6379/3")),
        crate::Builder::from_variables("QUORUMLOCK_", [("", "")]).unwrap_err(),
        variable("NODES", "redis://10.0.0.1,redis://:secret@"),
        variable("TTL", "secret"),
        variable("SPIN", "secret"),
        variable("RETRY_DELAY", "secret"),
        variable("DRIFT_FACTOR", "secret"),
        variable("DURABLE", "secret"),
        variable("RESTART_POLICY", "secret"),
        built(one().node_timeout(Duration::ZERO)),
        built(one().drift_factor(1.0)),
        built(one().retry_delay(Duration::ZERO, MINUTE)),
        built(one().max_ttl(Duration::ZERO)),
        built(one().ttl(MINUTE * 2)),
        built(one().fence_retention(Duration::MAX)),
        built(one().place_lease(Duration::MAX)),
        built(one().spin(MINUTE)),
        refused(client.mutex("")),
        refused(client.mutex("quorumlock-fence:x")),
        refused(client.mutex("quorumlock-node")),
        refused(client.mutex("quorumlock-permits:x")),
        refused(client.mutex("quorumlock-queue:x")),
        refused(client.mutex("quorumlock-rw:x")),
        of_set(0).try_lock().unwrap_err(),
        client.semaphore("calls", 0).try_lock().unwrap_err(),
        refused(order().min_hold(MINUTE * 90)),
        refused(order().ttl(Duration::ZERO)),
        refused(order().ttl(Duration::from_millis(2))),
        refused(order().ttl(MINUTE * 90)),
        refused(order().watchdog(Watchdog::new().period(Duration::ZERO))),
        refused(order().watchdog(Watchdog::new().notify_before(MINUTE))),
        lease("nonsense").unwrap_err(),
    ];
    if let (Ok(ended), Ok(other)) = (lease(&text("orders/42", 1)), lease(&text("other", far))) {
        errors.push(client.attach(ended).unwrap_err());
        let prefixed = Redlock::builder()
            .node("redis://10.0.0.1")
            .prefix("shop:")
            .build()
            .unwrap();
        errors.push(
            prefixed
                .attach(lease(&text("other", far)).unwrap())
                .unwrap_err(),
        );
        errors.push(order().attach(other).unwrap_err());
    }
    errors.push(lease(&text("a,b", far).replacen(":1:", ":5:", 1)).unwrap_err());
    errors.push(Error::lease_lost("orders/42"));
    errors.push(Error::shut_down("lock", "orders/42"));
    errors.push(Error::lease_too_short(
        "orders/42",
        Duration::from_millis(1200),
        Duration::from_secs(2),
    ));
    errors.push(Error::too_late("orders/42", Duration::from_millis(20)));
    errors.push(Error::ended_meanwhile(
        "orders/42",
        Duration::from_millis(20),
    ));
    errors.push(Error::entropy());
    let full = std::io::Error::from_raw_os_error(24);
    let actions = [
        "open a descriptor",
        "register a fork handler",
        "start the watchdog's thread",
    ];
    errors.extend(actions.map(|action| Error::system(action, &full)));
    errors.push(
        order()
            .lock_with(&Wait::unlimited().cancelled_by(&cancelled))
            .unwrap_err(),
    );
    errors.push(crate::api::forked::check(ForkEpoch::of_a_parent()).unwrap_err());
    errors
}

/// Errors that too few nodes answered.
pub(super) fn unavailable() -> Vec<Error> {
    let Redlock { client, .. } = client();
    let node = |last: u8, fault| NodeFault::new(format!("10.0.0.{last}:6379"), fault);
    let (refused, slow) = (
        Fault::new(Phase::Connect, Cause::Refused),
        Fault::new(Phase::Reply, Cause::TimedOut).with(TIMEOUT),
    );
    let restarted = Fault::new(Phase::Reply, Cause::Quarantined)
        .with(Detail::Left(Duration::from_millis(58_300)));
    let other = |word: &str| vec![format!("10.0.0.3:6379: {word}")];
    let error = |what, causes, others| Error::unavailable(what, 3, MINUTE, causes, others);
    vec![
        error(
            "connect",
            vec![node(1, refused), node(2, slow)],
            other("answered"),
        ),
        error(
            "lock \"orders/42\"",
            vec![node(1, refused), node(2, slow)],
            other("healthy, not asked"),
        ),
        error(
            "lock \"orders/42\"",
            vec![node(1, refused), node(2, slow)],
            other("not asked"),
        ),
        error(
            "lock \"orders/42\"",
            vec![node(1, restarted), node(2, restarted)],
            other("answered"),
        ),
        error(
            "confirm the release of \"orders/42\"",
            vec![node(1, slow), node(2, slow)],
            other("asked, answer not awaited"),
        ),
        error(
            "find the holder of \"orders/42\"",
            vec![node(1, refused), node(2, slow)],
            other("answered"),
        ),
        error("lock \"orders/42\"", Vec::new(), other("answered")),
        client.no_expiry(
            "orders/42",
            [NodeId::new(0), NodeId::new(2)].into_iter().collect(),
        ),
        client.unsettled(Duration::from_secs(2), &[(NodeId::new(0), slow)]),
    ]
}
