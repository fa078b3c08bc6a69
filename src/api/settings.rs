//! The settings of a client that are values, with their defaults.

use crate::algorithm::label::HolderLabel;
use crate::algorithm::lease::MAX_TTL;
use crate::algorithm::quarantine::RestartPolicy;
use std::time::Duration;

/// Time to live of a lock that names none, by a client that names none.
const TTL: Duration = Duration::from_secs(10);

/// The settings of a client, as its builder and the client itself have them.
#[derive(Clone)]
pub struct Settings {
    /// What is put before names to make keys.
    pub prefix: String,
    /// How long a node has to answer: far more than a healthy one in the same region needs, far
    /// less than a caller notices.
    pub node_timeout: Duration,
    /// The part of a time to live that clocks may disagree by.
    pub drift_factor: f64,
    /// The shortest delay between two attempts.
    pub retry_min: Duration,
    /// The longest one.
    pub retry_max: Duration,
    /// How long to try while too few nodes answer.
    pub unavailable_after: Duration,
    /// The longest time to live that a lock may ask for.
    pub max_ttl: Duration,
    /// The time to live of locks that name none. None: the default.
    pub ttl: Option<Duration>,
    /// What the client calls itself. None: it cannot be used.
    pub(crate) label: Option<HolderLabel>,
    /// What is done about nodes that were restarted.
    pub restart_policy: RestartPolicy,
    /// Whether all nodes are declared durable, unless their URLs declare something else.
    pub durable: bool,
    /// How long a fenced lock's key is kept: far longer than clocks of machines disagree by.
    pub fence_retention: Duration,
    /// How long an entry in front of a queue may let others wait.
    pub place_lease: Duration,
    /// Time to poll without sleeping: about what servers on the same machine or in the same rack
    /// take.
    pub spin: Duration,
    /// Whether waiters are woken by messages.
    pub release_notifications: bool,
}

impl Settings {
    /// The time to live of locks that name none.
    pub(crate) fn default_ttl(&self) -> Duration {
        self.ttl.unwrap_or(TTL.min(self.max_ttl))
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            prefix: String::new(),
            node_timeout: Duration::from_millis(100),
            drift_factor: 0.01,
            retry_min: Duration::from_millis(2),
            retry_max: Duration::from_millis(250),
            unavailable_after: Duration::from_secs(3),
            max_ttl: MAX_TTL,
            ttl: None,
            label: Some(HolderLabel::NONE),
            restart_policy: RestartPolicy::default(),
            durable: false,
            fence_retention: Duration::from_secs(24 * 60 * 60),
            place_lease: Duration::from_secs(1),
            spin: Duration::from_micros(100),
            release_notifications: true,
        }
    }
}
