//! Nodes that differ, hang, are killed or lose their data: the numbers of fenced locks and of
//! writers grow all the same.

use crate::prelude::*;
use crate::read_write::long;

/// A lock with numbers.
struct Numbered {
    mutex: fn(&Redlock) -> Mutex<Any>,
    key: &'static str,
    /// What the key of a free lock contains, after this number.
    free: fn(u64) -> String,
    /// Has the lock without a number meanwhile, if that is possible.
    between: fn(&Redlock),
}

const KINDS: [Numbered; 2] = [
    Numbered {
        mutex: |client| long_lock(client, "k").fenced().erase(),
        key: "quorumlock-fence:k",
        free: |number| format!("{number} 0 "),
        between: |_| (),
    },
    Numbered {
        mutex: |client| long(client).fenced().write.erase(),
        key: "quorumlock-rw:k",
        free: |number| format!("f {number} {}", micros() / 1000 + 600_000),
        between: |client| drop(wait_for(&long(client).read)),
    },
];

fn fence(guard: &MutexGuard<Any>) -> FencingToken {
    guard.fence().expect("it has a number")
}

impl Numbered {
    /// The number that a node has.
    fn number(&self, server: &Server) -> u64 {
        let value = value(server, self.key).expect("the key stays");
        let number = value.split(' ').find_map(|word| word.parse().ok());
        number.expect("a number")
    }

    /// The token of the holder.
    fn owner(&self, server: &Server) -> Option<String> {
        let value = value(server, self.key)?;
        let owner = value.split(' ').find(|word| word.len() == 40);
        owner.map(str::to_owned)
    }

    #[track_caller]
    fn becomes_free(&self, servers: &[Server]) {
        let is_free = || servers.all(|server| self.owner(server).is_none());
        assert_soon!(is_free());
    }
}

#[test]
fn numbers_that_differ_are_raised_to_the_greatest() {
    for (kind, count) in KINDS
        .iter()
        .flat_map(|kind| [3, 5].map(|count| (kind, count)))
    {
        let (servers, client) = deployment(count);
        let mutex = (kind.mutex)(&client);
        drop(take(&mutex));
        kind.becomes_free(&servers);
        // A client with a clock that is ahead by a day took it, and no other client saw that.
        let ahead = micros() + 86_400_000_000;
        for (index, server) in servers.iter().enumerate() {
            let text = (kind.free)(ahead + 10 * index as u64);
            ok(server, &["SET", kind.key, &text]);
        }
        let before: u64 = servers.iter().map(scripts_run).sum();
        let guard = take(&mutex);
        let last = fence(&guard);
        assert!(last.get() > ahead, "of a quorum, one other's");
        let has_it = |server: &&Server| kind.number(server) == last.get();
        assert!(
            servers.iter().filter(has_it).count() > count / 2,
            "a quorum has it before it is known"
        );
        unlock(guard);
        let ran = servers.iter().map(scripts_run).sum::<u64>() - before;
        assert!(ran > 2 * count as u64, "{ran}: some were raised");
        (kind.between)(&client);
        assert!(fence(&take(&mutex)) > last);
    }
}

#[test]
fn a_node_that_lost_its_data_gets_the_key_again_and_no_smaller_number() {
    for kind in &KINDS {
        let mut servers = Server::several(3).unwrap();
        let guard = take(&(kind.mutex)(&client(&servers)));
        let have_it = || servers.all(|server| kind.owner(server).is_some());
        assert_soon!(have_it());
        servers[0].restart().unwrap();
        assert_eq!(value(&servers[0], kind.key), None);
        let is_repaired = || {
            extend(&guard, LONG_TTL);
            value(&servers[0], kind.key).is_some()
        };
        assert_soon!(is_repaired());
        assert!(kind.number(&servers[0]) >= fence(&guard).get());
        assert!(kind.owner(&servers[0]).is_some());
        assert_eq!(kind.owner(&servers[0]), kind.owner(&servers[1]));
        unlock(guard);
        kind.becomes_free(&servers);
    }
}

#[test]
fn nodes_that_all_lost_their_data_go_on_above_what_they_gave_out() {
    for kind in &KINDS {
        let mut servers = Server::several(3).unwrap();
        // The numbers that they issued are forgotten, and no client guards against that.
        let client = client_with(&servers, |builder| {
            builder.restart_policy(RestartPolicy::Off)
        });
        let before = fence(&take(&(kind.mutex)(&client)));
        servers
            .iter_mut()
            .for_each(|server| server.restart().unwrap());
        let mut after = None;
        assert_soon!({
            let again = (kind.mutex)(&client).try_lock().ok().flatten();
            after = again.as_ref().map(fence);
            after.is_some()
        });
        assert!(after > Some(before), "by the clock alone");
    }
}

#[test]
fn a_minority_that_hangs_or_is_gone_costs_no_number() {
    for kind in &KINDS {
        let mut servers: Vec<Server> = durable().several(5).unwrap();
        let nodes = servers
            .iter()
            .map(|server| format!("{}?durable=true", server.url()));
        let client = client_within(nodes, Duration::from_secs(1));
        let mutex = (kind.mutex)(&client);
        let mut last = fence(&take(&mutex));
        let next = || {
            (kind.between)(&client);
            let guard = wait_for(&mutex);
            assert!(fence(&guard) > last);
            last = fence(&guard);
        };
        minorities_fail(&mut servers, next);
    }
}
