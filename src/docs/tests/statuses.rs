//! A status of a node of each message.

use super::errors::MINUTE;
use crate::engine::nodes::status::NodeStatusSnapshot;
use crate::fault::detail::Detail;
use crate::fault::{Cause, Fault, Phase};
use crate::protocol::server_info::ServerInfo;
use crate::{NodeNote, NodeState, NodeStatus};
use std::time::Duration;

pub(super) fn looks() -> Vec<NodeStatus> {
    use NodeState::{Down, Quarantined, Rejected, Unknown, Voting};
    let status = |state, last_fault, note, is_durable, said: &str| {
        let mut server_info = ServerInfo::default();
        server_info.learn(said.as_bytes());
        let counted_for = if let NodeNote::Founder { age } = note {
            Some(age)
        } else {
            None
        };
        let snapshot = NodeStatusSnapshot {
            state,
            time: Duration::from_millis(3200),
            is_connected: true,
            note,
            counted_for,
            mismatches: Vec::new(),
            server_info,
            last_fault,
            latency: Default::default(),
            fault_counts: Default::default(),
        };
        NodeStatus::new("10.0.0.1:6379".into(), is_durable, snapshot)
    };
    let auth = Fault::new(Phase::Handshake, Cause::Auth).with(Detail::PasswordWrong);
    let founder = NodeNote::Founder { age: MINUTE * 4320 };
    let since = NodeNote::Since { age: MINUTE / 20 };
    let version = "redis_version:7.0.15";
    let evicts = &format!("{version}\nmaxmemory:1\nmaxmemory_policy:allkeys-lru");
    vec![
        status(Voting, None, founder, false, version),
        status(Voting, None, NodeNote::Withheld, false, version),
        status(Voting, None, NodeNote::Missing, false, version),
        status(Voting, None, founder, false, evicts),
        status(
            Voting,
            None,
            founder,
            true,
            &format!("{version}\naof_enabled:0"),
        ),
        status(
            Quarantined {
                remaining: Duration::from_millis(56_800),
            },
            None,
            since,
            false,
            version,
        ),
        status(
            Down(Cause::Refused),
            Some(Fault::new(Phase::Connect, Cause::Refused)),
            NodeNote::Unknown,
            false,
            "",
        ),
        status(
            Rejected(Cause::Auth),
            Some(auth),
            NodeNote::Unknown,
            false,
            "",
        ),
        status(Unknown, None, NodeNote::Unknown, false, ""),
    ]
}
