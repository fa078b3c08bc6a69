//! Descriptors that belong to the library: no program that the host starts inherits one.

use crate::prelude::*;

/// Connections for commands, connections for subscriptions, and the pair that wakes the driver.
#[test]
fn no_socket_is_inherited_by_another_program() {
    alone(|| {
        let servers = Server::several(3).unwrap();
        let before = descriptors();
        let mine = client(&servers);
        let theirs = client(&servers);
        let held = take(&long_lock(&theirs, "k"));
        let waiting =
            std::thread::spawn(move || long_lock(&mine, "k").lock_timeout(SOON * 10).map(drop));
        let ours = || -> Vec<String> {
            let sockets = descriptors()
                .into_iter()
                .filter(|(number, target)| before.get(number) != Some(target));
            sockets
                .map(|(_, target)| target)
                .filter(|target| target.starts_with("socket:"))
                .collect()
        };
        // Two clients of three nodes, each with a pair of its own; and the subscriptions of the
        // one that waits.
        assert_soon!(ours().len() >= 2 * (3 + 2) + 3, "{:?}", ours());
        let ours = ours();
        std::thread::sleep(Duration::from_millis(20));
        let listing = Command::new("ls")
            .args(["-l", "/proc/self/fd"])
            .output()
            .unwrap();
        let listing = String::from_utf8(listing.stdout).unwrap();
        assert!(
            listing.contains("/proc/"),
            "not a list of descriptors: {listing}"
        );
        let inherited: Vec<_> = ours
            .iter()
            .filter(|socket| listing.contains(socket.as_str()))
            .collect();
        assert!(inherited.is_empty(), "{inherited:?} in\n{listing}");
        drop(held);
        waiting.join().unwrap().unwrap();
    });
}
