//! Permits of programs that are killed, and on nodes that are gone.

use super::*;

#[test]
fn a_permit_whose_holder_was_killed_is_back_when_its_time_is_up_and_no_sooner() {
    alone(|| {
        let servers = Server::several(5).unwrap();
        let ttl = Duration::from_millis(600);
        let holder = || {
            let semaphore = client(&servers).semaphore(NAME, 2).ttl(ttl);
            move || [semaphore.lock().unwrap(), semaphore.lock().unwrap()]
        };
        let next = || semaphore(&client(&servers), 2).lock().unwrap();
        is_free_in_time(ttl, holder, next);
    });
}
