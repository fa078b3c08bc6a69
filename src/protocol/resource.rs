//! The name of a resource in the key of its lock, whatever kind of lock it is.

use super::{fenced, read_write};

/// The name of the resource in what follows the prefix in a lock's key.
pub fn of(name: &str) -> &str {
    read_write::resource(fenced::resource(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_its_name_whatever_kind_of_lock_it_has() {
        let keys = ["orders/42", "quorumlock-fence:orders/42", "quorumlock-rw:orders/42"];
        assert_eq!(keys.map(of), ["orders/42"; 3]);
    }
}
