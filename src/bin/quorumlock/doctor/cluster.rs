//! How many shards the cluster of a server has, by the reply to `CLUSTER SLOTS`.

use crate::connection::Value;
use std::collections::BTreeSet;

/// How many slots the shards of a cluster serve together.
const SLOTS: i64 = 16_384;

/// How many shards serve the slots. None if not all slots are served, or if it is another reply.
pub(super) fn shards(reply: Value) -> Option<usize> {
    let mut masters = BTreeSet::new();
    let mut served = 0_i64;
    for range in reply.array()? {
        let range = range.array()?;
        let [
            Value::Integer(first),
            Value::Integer(last),
            Value::Array(master),
            ..,
        ] = range.as_slice()
        else {
            return None;
        };
        masters.insert(master.get(2)?.text()?);
        served = served.checked_add(last.checked_sub(*first)?.checked_add(1)?)?;
    }
    (served == SLOTS).then_some(masters.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: i64, last: i64, master: &str) -> Value {
        let text = |text: &str| Value::Bulk(text.as_bytes().to_vec());
        let node = Value::Array(vec![text("10.0.0.1"), Value::Integer(6379), text(master)]);
        Value::Array(vec![Value::Integer(first), Value::Integer(last), node])
    }

    #[test]
    fn shards_are_masters_that_serve_all_slots_together() {
        for (ranges, expected) in [
            (vec![range(0, 16_383, "a")], Some(1)),
            (vec![range(0, 99, "a"), range(100, 16_383, "a")], Some(1)),
            (vec![range(0, 99, "a"), range(100, 16_383, "b")], Some(2)),
            (vec![range(0, 99, "a")], None),
            (vec![range(i64::MIN, i64::MAX, "a")], None),
            (vec![Value::Integer(0)], None),
            (vec![], None),
        ] {
            assert_eq!(shards(Value::Array(ranges.clone())), expected, "{ranges:?}");
        }
        assert_eq!(shards(Value::Nil), None);
    }
}
