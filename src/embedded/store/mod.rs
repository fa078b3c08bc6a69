//! The embedded node without its sockets: a request and the time go in, the bytes of a reply come out.
//!
//! Pure: no clock, socket or thread, so that a simulator can run many of these on time of its own. Replies are those
//! of a real server byte for byte, error texts included; only strings and sorted sets exist, and only the commands and
//! options that the library uses. Scripts are not interpreted: those of [`script`](crate::protocol::script) are known
//! by their text and written out in Rust in `scripts`, all others are refused.
//!
//! Left out, and refused as a server refuses what it does not know: `SET` with GET, KEEPTTL, EXAT, PXAT or a condition
//! on the value other than IFEQ, `PEXPIRE` with a condition, `DELEX` by digest, subscription by pattern, RESP3.
//!
//! What is published is kept until the caller takes it ([`Store::take_messages`]) and lets each [`ClientState`] hear
//! it.
//!
//! Checks come in a server's order: does the command exist, has it the right number of arguments, is the client let
//! in, is there memory, is this a master, is it loaded. Valkey asks for the password first.

use super::command::Command;
use super::config::{Condition, ServerKind};
use super::expire::{self, integer};
use super::info::{self, Facts, NO_REPLICATION_ID};
use super::keyspace::Keyspace;
pub use super::keyspace::Millis;
pub use super::pubsub::Message;
use super::pubsub::{Exchange, Subscriptions};
use super::range::get_range;
use super::reply::{self, NOT_AN_INTEGER, OUT_OF_MEMORY, READ_ONLY, SYNTAX, ScriptValue};
use super::scripts::{self, Known};
use super::set::{set, set_all};
use super::zset;

/// How many databases `SELECT` can choose from.
pub const DATABASES: usize = 16;

/// What a node remembers about one connection. A fresh one is not logged in and uses database 0.
#[derive(Clone, Debug, Default)]
pub struct ClientState {
    authenticated: bool,
    database: usize,
    subscriptions: Subscriptions,
}

impl ClientState {
    /// Appends what this connection hears of a message to `out`: nothing, unless it has subscribed to its channel.
    pub fn hear(&self, message: &Message, out: &mut Vec<u8>) {
        self.subscriptions.hear(message, out);
    }
}

/// The state of one node.
#[derive(Clone)]
pub struct Store {
    condition: Condition,
    databases: [Keyspace; DATABASES],
    exchange: Exchange,
    kind: ServerKind,
    password: Option<String>,
    /// How often it was promoted from a replica to a master since it was started.
    promotions: u32,
    run_id: String,
    scripts: bool,
    known_scripts: Known,
    started: Millis,
}

impl Store {
    /// An empty master without a password, started at `now`. `run_id` is what `INFO` reports: 40 hex digits.
    pub fn new(kind: ServerKind, run_id: String, now: Millis) -> Store {
        Store {
            condition: Condition::default(),
            databases: Default::default(),
            exchange: Exchange::default(),
            kind,
            password: None,
            promotions: 0,
            run_id,
            scripts: true,
            known_scripts: Known::default(),
            started: now,
        }
    }

    /// The password that the user `default` must log in with; `None`, the default, lets every client in.
    pub fn set_password(&mut self, password: Option<String>) {
        self.password = password;
    }

    /// Whether the node has `EVAL`; it has by default.
    pub fn set_scripts(&mut self, available: bool) {
        self.scripts = available;
    }

    /// Puts the node into a condition, until it is changed. A replica that becomes anything else is promoted to a
    /// master.
    pub fn set_condition(&mut self, condition: Condition) {
        self.promotions += u32::from(self.condition == Condition::Replica && condition != Condition::Replica);
        self.condition = condition;
    }

    /// Restarts the node as a durable one: its keys stay, its run id and uptime do not. All sessions are void.
    pub fn restart(&mut self, run_id: String, now: Millis) {
        self.run_id = run_id;
        self.promotions = 0;
        self.started = now;
        self.exchange.clear();
        self.forget_scripts();
    }

    /// Forgets the scripts that it has run, like `SCRIPT FLUSH`.
    pub fn forget_scripts(&mut self) {
        self.known_scripts = Known::default();
    }

    /// Deletes every key of every database, like a restart without persistence.
    pub fn clear(&mut self) {
        self.databases.iter_mut().for_each(Keyspace::clear);
    }

    /// What was published since it was last asked.
    pub fn take_messages(&mut self) -> Vec<Message> {
        self.exchange.take()
    }

    /// A connection has come to its end.
    pub fn forget(&mut self, session: &mut ClientState) {
        self.exchange.forget(&mut session.subscriptions);
    }

    /// The value of a key of database 0, if it is a string.
    pub fn value(&self, key: &[u8], now: Millis) -> Option<&[u8]> {
        self.databases[0].string(key, now).ok().flatten()
    }

    /// The last millisecond of a key of database 0: `None` without a key, `Some(None)` when it lives for ever.
    pub fn deadline(&self, key: &[u8], now: Millis) -> Option<Option<Millis>> {
        self.databases[0].deadline(key, now)
    }

    /// The keys of database 0, in byte order.
    pub fn keys(&self, now: Millis) -> impl Iterator<Item = &[u8]> {
        self.databases[0].keys(now)
    }

    /// Runs one command and appends its reply to `out`. A request of no words at all has no reply.
    pub fn execute(&mut self, session: &mut ClientState, arguments: &[&[u8]], now: Millis, out: &mut Vec<u8>) {
        let Some((&name, rest)) = arguments.split_first() else { return };
        let command = Command::named(name).filter(|&command| self.has(command));
        let barred = self.password.is_some() && !session.authenticated && command != Some(Command::Auth);
        if barred && self.kind == ServerKind::Valkey9 {
            return reply::error(out, NOT_AUTHENTICATED);
        }
        let Some(command) = command else {
            return reply::unknown_command(out, arguments, self.kind);
        };
        if !command.arity().contains(&arguments.len()) {
            return reply::wrong_arity(out, name);
        }
        if barred {
            return reply::error(out, NOT_AUTHENTICATED);
        }
        if let Some(refusal) = self.refusal(command) {
            return reply::error(out, refusal);
        }
        let is_listener = session.subscriptions.are_any();
        if is_listener && !command.fits_a_listener() {
            let name = String::from_utf8_lossy(name).to_lowercase();
            return reply::error(out, &format!("ERR Can't execute '{name}': {ONLY_LISTENING}"));
        }
        match (command, rest) {
            (Command::Auth, _) => self.authenticate(session, rest, out),
            (Command::Dbsize, _) => reply::integer(out, count(self.database(session).keys(now).count())),
            (Command::Del, keys) => {
                let database = self.database(session);
                let deleted = keys.iter().filter(|key| database.remove(key, now)).count();
                reply::integer(out, count(deleted));
            }
            (Command::Delex, _) => delete_if(self.database(session), rest, now, out),
            (Command::Delifeq, [key, value]) => match remove_if_equal(self.database(session), key, value, now) {
                Ok(deleted) => reply::integer(out, i64::from(deleted)),
                Err(error) => reply::error(out, error),
            },
            (Command::Echo, [text]) => reply::bulk(out, text),
            (Command::Eval, [text, key_count, values @ ..]) => {
                self.known_scripts.learn(text);
                self.evaluate(session, text, key_count, values, now, out);
            }
            (Command::Evalsha, [hash, key_count, values @ ..]) => match self.known_scripts.text(hash) {
                Some(text) => self.evaluate(session, text, key_count, values, now, out),
                None => reply::error(out, NO_SCRIPT[usize::from(self.kind == ServerKind::Valkey9)]),
            },
            (Command::Exists, keys) => {
                let database = self.database(session);
                let present = keys.iter().filter(|key| database.exists(key, now)).count();
                reply::integer(out, count(present));
            }
            (Command::Flushall, _) => self.flush(rest, out),
            (Command::Get, [key]) => match self.database(session).string(key, now) {
                Ok(Some(value)) => reply::bulk(out, value),
                Ok(None) => reply::null(out),
                Err(error) => reply::error(out, error),
            },
            (Command::Getrange, [key, start, end]) => get_range(self.database(session), key, [start, end], now, out),
            (Command::Info, sections) => {
                let uptime_seconds = now.saturating_sub(self.started) / 1000;
                let (condition, kind) = (self.condition, self.kind);
                let [current, former] = self.replication_ids();
                let replication_ids = [&*current, &*former];
                let facts = Facts { condition, kind, run_id: &self.run_id, replication_ids, uptime_seconds };
                info::info(out, sections, &facts);
            }
            (Command::Msetex, [key_count, values @ ..]) => {
                set_all(self.database(session), key_count, values, now, out);
            }
            (Command::Pexpire, [key, milliseconds, options @ ..]) => {
                expire(self.database(session), key, milliseconds, options, now, out);
            }
            (Command::Ping, text) if is_listener => {
                reply::array(out, 2);
                reply::bulk(out, b"pong");
                reply::bulk(out, text.first().copied().unwrap_or_default());
            }
            (Command::Ping, []) => reply::simple(out, "PONG"),
            (Command::Ping, [text, ..]) => reply::bulk(out, text),
            (Command::Pttl, [key]) => reply::integer(out, expire::remaining(self.database(session), key, now)),
            (Command::Publish, [channel, payload]) => {
                reply::integer(out, self.exchange.publish(channel.to_vec(), payload));
            }
            (Command::Role, _) => info::role(out, self.condition),
            (Command::Select, [index]) => select(session, index, out),
            (Command::Set, [key, value, options @ ..]) => {
                let can_compare = matches!(self.kind, ServerKind::Redis84 | ServerKind::Valkey9);
                set(self.database(session), key, value, options, can_compare, now, out);
            }
            (Command::Subscribe, channels) => self.exchange.subscribe(&mut session.subscriptions, channels, out),
            (Command::Unsubscribe, channels) => self.exchange.unsubscribe(&mut session.subscriptions, channels, out),
            (Command::Time, _) => {
                reply::array(out, 2);
                reply::bulk(out, (now / 1000).to_string().as_bytes());
                reply::bulk(out, (now % 1000 * 1000).to_string().as_bytes());
            }
            (Command::Zadd | Command::Zcard | Command::Zrange | Command::Zrem | Command::Zscore, [key, rest @ ..]) => {
                zset::run(command, self.database(session), key, rest, now, out)
            }
            // The arity table has seen to it that nothing else comes here.
            _ => reply::wrong_arity(out, name),
        }
    }

    /// Runs one of the library's own scripts, by its text.
    fn evaluate(
        &mut self,
        session: &ClientState,
        text: &[u8],
        key_count: &[u8],
        values: &[&[u8]],
        now: Millis,
        out: &mut Vec<u8>,
    ) {
        let Some(key_count) = integer(key_count) else {
            return reply::error(out, NOT_AN_INTEGER);
        };
        let Ok(key_count) = usize::try_from(key_count) else {
            return reply::error(out, "ERR Number of keys can't be negative");
        };
        let Some((keys, values)) = values.split_at_checked(key_count) else {
            return reply::error(out, "ERR Number of keys can't be greater than number of args");
        };
        let node = (&mut self.databases[session.database], &mut self.exchange);
        match scripts::run(text, node, keys, values, self.condition, now) {
            Ok(ScriptValue::Bulk(text)) => reply::bulk(out, &text),
            Ok(ScriptValue::Integer(number)) => reply::integer(out, number),
            Err(failure) => reply::error(out, &failure.text(self.kind)),
        }
    }

    /// The present name of its data's history, and the former one: another pair with each promotion.
    fn replication_ids(&self) -> [String; 2] {
        let name = |promotions: u32| format!("{promotions:08x}{}", self.run_id.get(8..).unwrap_or_default());
        let former = self.promotions.checked_sub(1).map_or(NO_REPLICATION_ID.to_owned(), name);
        [name(self.promotions), former]
    }

    fn authenticate(&self, session: &mut ClientState, rest: &[&[u8]], out: &mut Vec<u8>) {
        let (user, password) = match *rest {
            [password] => {
                if self.password.is_none() {
                    return reply::error(out, NO_PASSWORD_CONFIGURED);
                }
                (b"default".as_slice(), password)
            }
            [user, password] => (user, password),
            _ => return reply::error(out, SYNTAX),
        };
        let known = self.password.as_ref().is_none_or(|expected| expected.as_bytes() == password);
        if user == b"default" && known {
            session.authenticated = true;
            reply::simple(out, "OK");
        } else {
            reply::error(out, "WRONGPASS invalid username-password pair or user is disabled.");
        }
    }

    fn flush(&mut self, rest: &[&[u8]], out: &mut Vec<u8>) {
        match rest {
            [] => {}
            [how] if how.eq_ignore_ascii_case(b"ASYNC") || how.eq_ignore_ascii_case(b"SYNC") => {}
            _ => return reply::error(out, SYNTAX),
        }
        self.clear();
        reply::simple(out, "OK");
    }

    fn database(&mut self, session: &ClientState) -> &mut Keyspace {
        &mut self.databases[session.database]
    }

    fn has(&self, command: Command) -> bool {
        match command {
            Command::Delex | Command::Msetex => self.kind == ServerKind::Redis84,
            Command::Delifeq => self.kind == ServerKind::Valkey9,
            Command::Eval | Command::Evalsha => self.scripts,
            _ => true,
        }
    }

    /// Why the node's condition forbids this command.
    fn refusal(&self, command: Command) -> Option<&'static str> {
        match self.condition {
            Condition::Loading if !command.answered_while_loading() => Some(match self.kind {
                ServerKind::Redis | ServerKind::Redis62 | ServerKind::Redis84 => {
                    "LOADING Redis is loading the dataset in memory"
                }
                ServerKind::Valkey9 => "LOADING Valkey is loading the dataset in memory",
            }),
            Condition::OutOfMemory if command.needs_memory() => Some(OUT_OF_MEMORY),
            Condition::Replica if command.writes() => Some(READ_ONLY),
            _ => None,
        }
    }
}

const DATABASE_OUT_OF_RANGE: &str = "ERR DB index is out of range";
/// As Redis puts it, and as Valkey does.
const NO_SCRIPT: [&str; 2] = ["NOSCRIPT No matching script. Please use EVAL.", "NOSCRIPT No matching script."];
const NOT_AN_INT: &str = "ERR value is out of range, value must between -2147483648 and 2147483647";
const NOT_AUTHENTICATED: &str = "NOAUTH Authentication required.";
const NO_PASSWORD_CONFIGURED: &str = "ERR AUTH <password> called without any password configured for the default \
    user. Are you sure your configuration is correct?";
const ONLY_LISTENING: &str = "only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context";

/// `PEXPIRE key ms`, without the conditions that newer servers take.
fn expire(database: &mut Keyspace, key: &[u8], milliseconds: &[u8], options: &[&[u8]], now: Millis, out: &mut Vec<u8>) {
    if let Some(option) = options.first() {
        out.extend_from_slice(b"-ERR Unsupported option ");
        out.extend(option.iter().filter(|byte| !byte.is_ascii_control()));
        return out.extend_from_slice(b"\r\n");
    }
    match expire::expire(database, key, milliseconds, now) {
        Ok(moved) => reply::integer(out, i64::from(moved)),
        Err(text) => reply::error(out, text),
    }
}

/// `DELEX key [IFEQ value | IFNE value]`, without the conditions on digests.
fn delete_if(database: &mut Keyspace, rest: &[&[u8]], now: Millis, out: &mut Vec<u8>) {
    let deleted = match *rest {
        [key] => database.remove(key, now),
        [key, _, _] if !database.exists(key, now) => false,
        [key, condition, value] => {
            let Ok(present) = database.string(key, now) else {
                return reply::error(out, "ERR Key should be of string type if conditions are specified");
            };
            let is_equal = present == Some(value);
            if !condition.eq_ignore_ascii_case(b"IFEQ") && !condition.eq_ignore_ascii_case(b"IFNE") {
                return reply::error(out, "ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE");
            }
            is_equal == condition.eq_ignore_ascii_case(b"IFEQ") && database.remove(key, now)
        }
        _ => return reply::wrong_arity(out, b"delex"),
    };
    reply::integer(out, i64::from(deleted));
}

fn remove_if_equal(database: &mut Keyspace, key: &[u8], value: &[u8], now: Millis) -> Result<bool, &'static str> {
    Ok(database.string(key, now)? == Some(value) && database.remove(key, now))
}

fn select(session: &mut ClientState, index: &[u8], out: &mut Vec<u8>) {
    let Some(index) = integer(index) else {
        return reply::error(out, NOT_AN_INTEGER);
    };
    if i32::try_from(index).is_err() {
        return reply::error(out, NOT_AN_INT);
    }
    match usize::try_from(index) {
        Ok(index) if index < DATABASES => {
            session.database = index;
            reply::simple(out, "OK");
        }
        _ => reply::error(out, DATABASE_OUT_OF_RANGE),
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
