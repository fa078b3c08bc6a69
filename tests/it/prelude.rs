//! What most tests name: their own tools, the library, and parts of the standard library.

pub(crate) use crate::clients::*;
pub(crate) use crate::storm::{self, Random};
pub(crate) use crate::support::capable::*;
pub(crate) use crate::support::child::{Child, End};
pub(crate) use crate::support::fake::{Act, Fake, bulk, healthy, is, say};
pub(crate) use crate::support::package::{self, root, text_of};
pub(crate) use crate::support::preload;
pub(crate) use crate::support::process::*;
pub(crate) use crate::support::program::{Running, program, without_variables};
pub(crate) use crate::support::proxy::{Direction, Proxy};
pub(crate) use crate::support::queues::{
    self, Stranger, count, entries, forge, has_channels, has_entries, no_entry_stays,
};
pub(crate) use crate::support::server::{Answer, Plan, Server, TLS_VARIABLE, binaries, free_port};
pub(crate) use crate::support::shard::{self, follow, is_synchronised, promote, replica_of};
pub(crate) use crate::support::sides::Sides;
pub(crate) use crate::support::threads::*;
pub(crate) use crate::support::timing::*;
pub(crate) use crate::support::versions::{servers, servers_with, shown, threes};
pub(crate) use nix::sys::signal::Signal;
pub(crate) use quorumlock::embedded::EmbeddedNode;
pub(crate) use quorumlock::event::{Event, GaveUpReason};
pub(crate) use quorumlock::kind::{Any, Fenced, Kind};
pub(crate) use quorumlock::protocol::kinds;
pub(crate) use quorumlock::{
    Builder, CancelHandle, Cause, Counters, Error, ErrorKind, ExtendOutcome, FencingToken, Lease,
    Mutex, MutexGuard, NodeState, NodeStatus, Owner, Phase, Redlock, ReentrantMutex,
    ReleaseOutcome, RestartPolicy, RwReadGuard, ServerError, ShutdownOutcome, Wait, Watchdog,
};
pub(crate) use std::collections::{BTreeMap, BTreeSet, HashSet};
pub(crate) use std::ffi::OsStr;
pub(crate) use std::fmt::{Debug, Display};
pub(crate) use std::fs::File;
pub(crate) use std::io::{BufReader, Read as _, Write as _};
pub(crate) use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
pub(crate) use std::ops::Range;
pub(crate) use std::panic::{AssertUnwindSafe, catch_unwind};
pub(crate) use std::path::{Path, PathBuf};
pub(crate) use std::process::{Command, Stdio};
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
pub(crate) use std::sync::{Arc, Barrier, Mutex as Guarded, OnceLock, mpsc};
pub(crate) use std::thread::JoinHandle;
pub(crate) use std::time::{Duration, Instant, SystemTime};
pub(crate) use std::{fs, io, thread};
