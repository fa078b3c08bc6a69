//! Hung nodes: a minority of them costs nothing that can be measured, a majority costs one node
//! timeout and no more.

use crate::prelude::*;

/// How much longer a lock and unlock may take with a hung minority than without: the median against
/// the median.
const TOLERATED: f64 = 1.5;
const WARM_UP: usize = 50;
const SAMPLES: usize = 300;

#[test]
fn a_minority_that_hangs_before_it_is_known_costs_nothing() {
    for impaired in [1, 2] {
        costs_nothing(impaired, |hung, client| {
            pause(hung);
            client()
        });
    }
}

#[test]
fn a_minority_that_hangs_on_open_connections_costs_nothing() {
    for impaired in [1, 2] {
        costs_nothing(impaired, |hung, client| {
            let client = client();
            while (0..10)
                .filter_map(|_| pair(&client.mutex("before")))
                .count()
                < 10
            {}
            pause(hung);
            client
        });
    }
}

/// Compares five servers of which `count` hang with five healthy ones. The healthy members of both
/// are the same.
#[track_caller]
fn costs_nothing(count: usize, hang: impl FnOnce(&[Server], &dyn Fn() -> Redlock) -> Redlock) {
    let servers = Server::several(5 + count).unwrap();
    let (all, hung) = servers.split_at(5);
    let healthy = client(all).mutex("healthy");
    let impaired = hang(hung, &|| client(all[count..].iter().chain(hung))).mutex("impaired");
    let mut ratios = Vec::new();
    for _ in 0..TRIES {
        let ratio = ratio_of_medians(&impaired, &healthy);
        if ratio.is_some_and(|ratio| ratio <= TOLERATED) {
            return;
        }
        ratios.push(ratio);
    }
    panic!(
        "with {} of 5 hung, lock and unlock take so many times as long, or work too rarely: {ratios:.2?}",
        hung.len()
    );
}

#[allow(clippy::print_stdout)]
fn ratio_of_medians(impaired: &Mutex, healthy: &Mutex) -> Option<f64> {
    for _ in 0..WARM_UP {
        pair(impaired);
        pair(healthy);
    }
    let (impaired, healthy): (Vec<_>, Vec<_>) = (0..SAMPLES)
        .map(|_| (pair(impaired), pair(healthy)))
        .unzip();
    let impaired = median(impaired)?;
    let healthy = median(healthy)?;
    let ratio = impaired.as_secs_f64() / healthy.as_secs_f64();
    println!(
        "lock and unlock: {impaired:?} with hung nodes, {healthy:?} without, ratio {ratio:.2}"
    );
    Some(ratio)
}

/// The time of one lock and unlock. None when it failed: a machine that is held up for a node
/// timeout is no node's fault.
fn pair(mutex: &Mutex) -> Option<Duration> {
    let start = Instant::now();
    let guard = mutex.try_lock().ok()?.expect("there is no other client");
    assert_eq!(guard.unlock().ok()?, ReleaseOutcome::Released);
    Some(start.elapsed())
}

/// None when more than one in twenty failed.
fn median(times: Vec<Option<Duration>>) -> Option<Duration> {
    let samples = times.len();
    let mut times: Vec<Duration> = times.into_iter().flatten().collect();
    times.sort_unstable();
    (times.len() >= samples - samples / 20).then(|| times[times.len() / 2])
}

#[test]
fn a_hung_majority_is_reported_within_the_node_timeout_and_by_name() {
    let servers = Server::several(5).unwrap();
    let (hung, _) = servers.split_at(3);
    let on_open_connections = || {
        resume(hung);
        let mutex = client(&servers).mutex("x");
        // Every node must know the client: the fourth and fifth answer may still be on its way.
        while (0..10).filter_map(|_| pair(&mutex)).count() < 10 {}
        pause(hung);
        mutex
    };
    let not_yet_connected = || client(&servers).mutex("x");
    let preparations: [(&dyn Fn() -> Mutex, _); 2] = [
        (&on_open_connections, NODE_TIMEOUT),
        (&not_yet_connected, NODE_TIMEOUT * 2),
    ];
    for (prepare, limit) in preparations {
        let mutex = is_reported(hung, Some(limit), prepare);
        for _ in 0..20 {
            is_reported(hung, None, || mutex.clone());
        }
    }
}

/// An attempt fails in time and names exactly the hung nodes, in one of [`TRIES`]. Without a limit
/// it takes one node timeout, or two where a connection had to be opened, as the error shows.
#[track_caller]
fn is_reported(hung: &[Server], limit: Option<Duration>, prepare: impl Fn() -> Mutex) -> Mutex {
    let expected: Vec<_> = hung.each(|server| (server.address(), Cause::TimedOut));
    let mut seen = Vec::new();
    for _ in 0..TRIES {
        let mutex = prepare();
        let start = Instant::now();
        let error = failure(&mutex);
        let time = start.elapsed();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let were_connected = causes(&error)
            .iter()
            .all(|(_, phase, _)| *phase == Phase::Reply);
        let limit = limit.unwrap_or(if were_connected {
            NODE_TIMEOUT
        } else {
            NODE_TIMEOUT * 2
        });
        let named: Vec<_> = causes(&error)
            .into_iter()
            .map(|(address, _, cause)| (address, cause))
            .collect();
        if named == expected && time <= limit + SLACK {
            return mutex;
        }
        seen.push((time, error));
    }
    panic!("{seen:?}");
}

fn client<'s>(servers: impl IntoIterator<Item = &'s Server>) -> Redlock {
    client_within(servers.into_iter().map(Server::url), NODE_TIMEOUT)
}
