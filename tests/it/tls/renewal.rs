//! Certificates in files that change while a client uses them.

use super::*;
use crate::credentials::{for_load, rotation, under_load};

const LONG: Duration = Duration::from_secs(20);
/// Files are looked at once a second. On a busy machine a look may be late.
const LOOKED: Duration = Duration::from_millis(2500);

#[test]
fn a_certificate_that_changes_is_used_from_the_next_handshake_on() {
    skip_unless!(has_tls());
    let [ours, foreign] = [(); 2].map(|()| Authority::with(&["node", "client"]));
    let plan = ours.plan("node");
    let plan = plan.arguments(&["--tls-auth-clients", "optional"]);
    let servers = plan.several(3).unwrap();
    let [certificate, key] = ["used.crt", "used.key"].map(|name| ours.path(name));
    let present = |authority: &Authority| {
        fs::write(&certificate, authority.read("client.crt")).unwrap();
        fs::write(&key, authority.read("client.key")).unwrap();
    };
    present(&ours);
    let events = Seen::nothing();
    let failure = picked!(event @ Event::CredentialsFailed { .. } => event.to_string());
    let redlock = client_with(&servers, |builder| {
        let builder = builder.tls(ours.roots().identity_file(&certificate, &key));
        builder.observer(events.by(failure))
    });
    let mutex = redlock.mutex("orders/42");
    let locks = || mutex.try_lock().map(|guard| guard.is_some());
    assert!(locks().unwrap());

    // Open connections stay as they are.
    present(&foreign);
    thread::sleep(LOOKED);
    assert!(locks().unwrap());
    servers.iter().for_each(cut);
    // The end of the old connections may show first.
    let is_alert = |fault: &quorumlock::NodeFault| matches!(fault.cause(), Cause::Tls(_));
    let is_refused = || {
        let refused = locks().err();
        refused
            .is_some_and(|error| !error.causes().is_empty() && error.causes().iter().all(is_alert))
    };
    assert!(eventually(LONG, is_refused));

    present(&ours);
    assert!(eventually(LONG, || locks().is_ok_and(|is_held| is_held)));

    // What cannot be used changes nothing, and is told once.
    fs::write(&key, "hunter2").unwrap();
    let is_told = || {
        let _ = locks();
        let told = events.all();
        told.iter().any(|event| event.contains("the files of TLS"))
    };
    assert!(eventually(LONG, is_told), "{:?}", events.all());
    servers.iter().for_each(cut);
    assert!(eventually(LONG, || locks().is_ok_and(|is_held| is_held)));
    let told = events.all();
    assert!(
        told.iter().all(|event| !event.contains("hunter2")),
        "{told:?}"
    );
}

/// A time as `openssl ca` takes it.
fn stamp(time: SystemTime) -> String {
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let mut command = Command::new("date");
    command.args(["-u", "-d", &format!("@{}", seconds.as_secs())]);
    let shown = succeeds(command.arg("+%Y%m%d%H%M%SZ"));
    shown.trim().to_owned()
}

/// A certificate is valid for 6 s, or a sixth of the time: for 10 s of a minute.
#[test]
fn client_certificates_end_while_locks_are_held_and_taken() {
    skip_unless!(has_tls());
    let authority = Authority::with(&["node"]);
    let servers = authority.plan("node").several(5).unwrap();
    let [certificate, key] = ["used.crt", "used.key"].map(|name| authority.path(name));
    let total = rotation(9);
    let life = (total / 6).max(Duration::from_secs(6));
    let renew = || {
        let now = SystemTime::now();
        let [begin, end] = [now - Duration::from_secs(60), now + life].map(stamp);
        let validity = Some((&*begin.leak(), &*end.leak()));
        authority.issue(
            "client",
            Particulars {
                validity,
                ..Particulars::default()
            },
        );
        fs::write(&key, authority.read("client.key")).unwrap();
        fs::write(&certificate, authority.read("client.crt")).unwrap();
    };
    renew();
    fs::copy(&certificate, authority.path("first.crt")).unwrap();
    fs::copy(&key, authority.path("first.key")).unwrap();
    let identity = authority.roots().identity_file(&certificate, &key);
    under_load(for_load(&servers).tls(identity), |pairs| {
        let begin = Instant::now();
        let (mut renewals, mut cuts) = (0, 0);
        while begin.elapsed() < total {
            if begin.elapsed() >= life * renewals / 3 {
                renew();
                renewals += 1;
            }
            // One server after the other, each twice in a life.
            if begin.elapsed() >= life * cuts / 10 {
                cut(&servers[cuts as usize % servers.len()]);
                cuts += 1;
            }
            thread::sleep(Duration::from_millis(10));
        }
        assert!(pairs.load(Ordering::Relaxed) > 100);
    });
    let ended = authority.roots();
    let ended = ended.identity_file(authority.path("first.crt"), authority.path("first.key"));
    let late = for_load(&servers).tls(ended).build().unwrap();
    let refused = late.mutex("held").try_lock().unwrap_err();
    let mut causes = refused.causes().iter().map(|fault| fault.cause());
    assert!(
        causes.all(|cause| matches!(cause, Cause::Tls(_))),
        "{refused}"
    );
}
