//! What most tests name: their own tools, the library, and parts of the standard library.

pub(crate) use crate::clients::*;
pub(crate) use crate::support::capable::*;
pub(crate) use crate::support::child::{Child, End};
pub(crate) use crate::support::fake::{Act, Fake, bulk, healthy, is, say};
pub(crate) use crate::support::process::{alone, eventually, new_folder, succeeds};
pub(crate) use crate::support::proxy::{Direction, Proxy};
pub(crate) use crate::support::queues::{
    count, entries, has_channels, has_entries, no_entry_stays,
};
pub(crate) use crate::support::server::{Answer, Server, free_port};
pub(crate) use crate::support::sides::Sides;
pub(crate) use crate::support::versions::servers;
pub(crate) use quorumlock::embedded::EmbeddedNode;
pub(crate) use quorumlock::event::Event;
pub(crate) use quorumlock::kind::{Any, Kind};
pub(crate) use quorumlock::{
    Builder, CancelHandle, Cause, Counters, ErrorKind, ExtendOutcome, FencingToken, Lease, Mutex,
    MutexGuard, NodeState, Owner, Phase, Redlock, ReleaseOutcome, RestartPolicy, Wait, Watchdog,
};
pub(crate) use std::collections::{BTreeMap, BTreeSet};
pub(crate) use std::io::{Read as _, Write as _};
pub(crate) use std::net::TcpStream;
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::process::{Command, Stdio};
pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::time::{Duration, Instant};
pub(crate) use std::{fs, thread};
