//! The manual.
//!
//! * [`rules`]: what the library does, rule by rule, with the tests that show each.
//! * [`choosing`]: when to use which lock, what each costs, and what it does not promise.
//! * [`operations`]: nodes, access control, restarts, settings, sizing, errors.
//! * [`command_line`]: programs of any language under a lock, and what the nodes hold.
//! * [`migrating`]: from redlock-py, redsync, rslock, Redisson and ShedLock.
//! * [`recipes`]: complete answers to common tasks, and the debate about Redlock.
//! * [`tls`]: certificates, settings of servers and clients, managed services, faults.
//! * [`compatibility`]: versions side by side, changes of the interface, and support.
//! * [`messages`]: every message of an error or an event, and what to do about it.
//! * [`architecture`]: how the code is divided, and why.
//! * [`testing`]: what was tested, how, and what was not.
//! * [`performance`]: what a lock costs, and where that goes.

// The pages are read as files too, where their links lead to files. Of two definitions of a link,
// the first counts: those here lead to the same pages of this documentation.

#[doc = include_str!("choosing.md")]
pub mod choosing {}

#[doc = "[testing page]: crate::docs::testing"]
#[doc = include_str!("compatibility.md")]
pub mod compatibility {}

#[doc = "[testing page]: crate::docs::testing"]
#[doc = include_str!("architecture.md")]
pub mod architecture {}

#[doc = "[operations page]: crate::docs::operations"]
#[doc = "[page about TLS]: crate::docs::tls"]
#[doc = include_str!("messages.md")]
pub mod messages {}
// The page shows the events of the C interface too.
#[cfg(test)]
#[cfg(feature = "capi")]
pub(crate) mod tests;

#[doc = "[`Counters`]: crate::Counters"]
#[doc = "[after a fork]: crate#after-a-fork"]
#[doc = "[messages page]: crate::docs::messages"]
#[doc = "[rules page]: crate::docs::rules"]
#[doc = "[page about TLS]: crate::docs::tls"]
#[doc = include_str!("operations.md")]
pub mod operations {}

#[doc = "[operations page]: crate::docs::operations"]
#[doc = include_str!("command_line.md")]
pub mod command_line {}

#[doc = include_str!("migrating.md")]
pub mod migrating {}

#[doc = "[`CancelHandle`]: crate::CancelHandle"]
#[doc = "[`FenceChecker`]: crate::FenceChecker"]
#[doc = "[`Lease`]: crate::Lease"]
#[doc = "[`on_lost`]: crate::MutexGuard::on_lost"]
#[doc = "[rules page]: crate::docs::rules"]
#[doc = "[clusters of one shard]: crate::docs::operations#clusters-of-one-shard"]
#[doc = "[durable nodes]: crate::docs::operations#durable-nodes"]
#[doc = "[managed services]: crate::docs::tls#managed-services"]
#[doc = "[passwords that rotate]: crate::docs::operations#passwords-that-rotate"]
#[doc = "[the holder of a lock]: crate::docs::operations#the-holder-of-a-lock"]
#[doc = "[page about TLS]: crate::docs::tls"]
#[doc = "[waits and holds]: crate::docs::operations#spans"]
#[doc = include_str!("recipes.md")]
pub mod recipes {}

#[doc = include_str!("rules.md")]
pub mod rules {}

#[doc = include_str!("performance.md")]
pub mod performance {}

#[doc = "[operations page]: crate::docs::operations#what-restart-protection-detects"]
#[doc = "[rules page]: crate::docs::rules"]
#[doc = include_str!("testing.md")]
pub mod testing {}

#[doc = "[one managed Redis]: crate::docs::recipes#one-managed-redis"]
#[doc = "[messages page]: crate::docs::messages"]
#[doc = include_str!("tls.md")]
pub mod tls {}
