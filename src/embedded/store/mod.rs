//! The embedded node without its sockets: a request and the time go in, the bytes of a reply come
//! out.
//!
//! Pure: no clock, socket or thread, so that a simulator can run many of these on time of its own.
//! Replies to the library are those of a real server byte for byte, error texts included; only
//! strings and sorted sets exist, and only the commands and options that are used. Scripts are not
//! interpreted: the scripts of [`script`](crate::protocol::script) are known by their text and
//! written out in Rust in `scripts`, all others are refused.
//!
//! Left out, and refused as a server refuses what it does not know: other options of `SET` than NX
//! and PX, options in lower case, subscription by pattern, RESP3.
//!
//! What is published is kept until the caller takes it ([`Store::take_messages`]) and lets each
//! [`ClientState`] hear it.
//!
//! Checks come in the order of Valkey, which asks for the password first: is the client let in,
//! does the command exist, is there memory, is this a master, is it loaded. The number of arguments
//! is checked last, and by servers before memory.

mod info;

use super::calls::{Calls, QUEUE};
use super::command;
use super::config::{Condition, ServerKind};
use super::keyspace::Keyspace;
pub use super::keyspace::Millis;
use super::numbers::integer;
use super::options;
pub use super::pubsub::Message;
use super::pubsub::{self, Exchange, Subscriptions};
use super::reply::{Answer, NO_ARGUMENT, Reply, SYNTAX};
use super::scripts::{self, Script};
use std::collections::BTreeMap;

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
    /// Appends what this connection hears of a message to `out`: nothing, unless it has subscribed
    /// to its channel.
    pub fn hear(&self, message: &Message, out: &mut Vec<u8>) {
        pubsub::hear(&self.subscriptions, message, out);
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
    /// Those that were run here, by the hashes by which they can be called.
    known_scripts: BTreeMap<&'static str, Script>,
    started: Millis,
}

impl Store {
    /// An empty master without a password, started at `now`. `run_id` is what `INFO` reports: 40
    /// hex digits.
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
            known_scripts: BTreeMap::new(),
            started: now,
        }
    }

    /// The password that the user `default` must log in with; `None`, the default, lets every
    /// client in.
    pub fn set_password(&mut self, password: Option<String>) {
        self.password = password;
    }

    /// Whether the node has `EVAL`; it has by default.
    pub fn set_scripts(&mut self, available: bool) {
        self.scripts = available;
    }

    /// Puts the node into a condition, until it is changed. A replica that becomes anything else is
    /// promoted to a master.
    pub fn set_condition(&mut self, condition: Condition) {
        self.promotions +=
            u32::from(self.condition == Condition::Replica && condition != Condition::Replica);
        self.condition = condition;
    }

    /// Restarts the node as a durable one: its keys stay, its run id and uptime do not. All
    /// sessions are void.
    pub fn restart(&mut self, run_id: String, now: Millis) {
        self.run_id = run_id;
        self.promotions = 0;
        self.started = now;
        self.exchange.clear();
        self.forget_scripts();
    }

    /// Forgets the scripts that it has run, like `SCRIPT FLUSH`.
    pub fn forget_scripts(&mut self) {
        self.known_scripts.clear();
    }

    /// Deletes every key of every database, like a restart without persistence.
    pub fn clear(&mut self) {
        self.databases = Default::default();
    }

    /// Takes over the keys of another node, like a replica, or a restart from a snapshot.
    pub fn copy_keys(&mut self, other: &Store) {
        self.databases.clone_from(&other.databases);
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
        self.databases[0].string_at(key, now).ok().flatten()
    }

    /// The last millisecond of a key of database 0: `None` without a key, `Some(None)` when it
    /// lives for ever.
    pub fn deadline(&self, key: &[u8], now: Millis) -> Option<Option<Millis>> {
        self.databases[0].deadline_at(key, now)
    }

    /// The keys of database 0, in byte order.
    pub fn keys(&self, now: Millis) -> impl Iterator<Item = &[u8]> {
        self.databases[0].keys_at(now)
    }

    /// Runs one command and appends its reply to `out`. A request of no words at all has no reply.
    pub fn execute(
        &mut self,
        session: &mut ClientState,
        arguments: &[&[u8]],
        now: Millis,
        out: &mut Vec<u8>,
    ) {
        if let Some((name, rest)) = arguments.split_first() {
            let answer = self.answer(session, name, rest, now);
            answer.unwrap_or_else(Reply::Error).write(out);
        }
    }

    fn answer(
        &mut self,
        session: &mut ClientState,
        name: &[u8],
        rest: &[&[u8]],
        now: Millis,
    ) -> Answer {
        let capitals = String::from_utf8_lossy(name).to_ascii_uppercase();
        if self.password.is_some() && !session.authenticated && capitals != "AUTH" {
            return Err("NOAUTH Authentication required.".into());
        }
        let is_known = self.scripts || !capitals.starts_with("EVAL");
        let Some(needs) = command::needs(&capitals).filter(|_| is_known) else {
            // Servers repeat the arguments, too.
            return Err(format!("ERR unknown command '{}'", name.escape_ascii()).into());
        };
        let name = &*capitals;
        command::check(needs, self.condition, self.kind)?;
        let is_listener = !session.subscriptions.is_empty();
        if is_listener && !matches!(name, "PING" | "SUBSCRIBE") {
            return Err("ERR only SUBSCRIBE and PING are allowed in this context".into());
        }
        let database = &mut self.databases[session.database];
        database.advance(now);
        Ok(match (name, rest) {
            ("AUTH", [_, ..]) => self.authenticate(session, rest)?,
            ("DEL", keys @ [_, ..]) => {
                Reply::count(keys.iter().filter(|key| database.remove(key)).count())
            }
            ("EVAL", [text, key_count, values @ ..]) => {
                let script = scripts::of_text(text);
                if let Some(script @ (_, Some(hash), _)) = script {
                    self.known_scripts.insert(hash, script);
                }
                self.evaluate(session, script, key_count, values, now)?
            }
            ("EVALSHA", [hash, key_count, values @ ..]) => {
                let no_script = match self.kind {
                    ServerKind::Valkey9 => "NOSCRIPT No matching script.",
                    _ => "NOSCRIPT No matching script. Please use EVAL.",
                };
                let hash = String::from_utf8_lossy(hash).to_lowercase();
                let script = self.known_scripts.get(&*hash).copied();
                script.ok_or(no_script)?;
                self.evaluate(session, script, key_count, values, now)?
            }
            ("GET", [key]) => database.string(key)?.map_or(Reply::Null, Reply::bulk),
            ("GETRANGE", [key, start, end]) => {
                let value = database.string(key).map(Option::unwrap_or_default);
                Reply::bulk(options::part(value, [start, end], 0)?)
            }
            ("INFO", sections) => Reply::bulk(self.info(sections, now)),
            ("PING", []) if is_listener => Reply::Array(vec![Reply::bulk("pong"), Reply::bulk("")]),
            ("PING", []) => Reply::Simple("PONG"),
            ("PTTL", [key]) => Reply::Integer(database.remaining(key)),
            ("PUBLISH", [channel, payload]) => {
                Reply::count(self.exchange.publish(channel.to_vec(), payload))
            }
            ("SELECT", [index]) => select(session, index)?,
            ("SET", [key, value, options @ ..]) => {
                if options::set(database, key, value, options)? {
                    OK
                } else {
                    Reply::Null
                }
            }
            ("SUBSCRIBE", channels @ [_, ..]) => self
                .exchange
                .subscribe(&mut session.subscriptions, channels),
            ("TIME", []) => {
                let parts = [now / 1000, now % 1000 * 1000];
                Reply::Array(parts.map(|part| Reply::bulk(part.to_string())).into())
            }
            ("ZADD", [key, rest @ ..]) if rest.len() > 1 => {
                Reply::count(options::add(database, key, rest)?)
            }
            ("ZCARD", [key]) => Reply::count(database.members(key)?.len()),
            ("ZRANGE", [key, start, end, options @ ..]) => {
                options::range(database.members(key), [start, end], options)?
            }
            _ => {
                let name = name.to_lowercase();
                return Err(format!("ERR wrong number of arguments for '{name}' command").into());
            }
        })
    }

    /// Runs a script, if it is one of the library's own.
    fn evaluate(
        &mut self,
        session: &ClientState,
        script: Option<Script>,
        key_count: &[u8],
        values: &[&[u8]],
        now: Millis,
    ) -> Answer {
        let key_count = usize::try_from(integer(key_count)?)
            .map_err(|_| "ERR Number of keys can't be negative")?;
        let too_few = "ERR Number of keys can't be greater than number of args";
        let (keys, values) = values.split_at_checked(key_count).ok_or(too_few)?;
        let unknown = "ERR the embedded node runs only quorumlock's own scripts";
        let (script, _, run) = script.ok_or(unknown)?;
        let key = *keys.first().ok_or(NO_ARGUMENT)?;
        run(&mut Calls {
            arguments: values,
            condition: self.condition,
            database: &mut self.databases[session.database],
            exchange: &mut self.exchange,
            has_written: false,
            key,
            kind: self.kind,
            now,
            queue: [QUEUE, key].concat(),
            script,
        })
    }

    fn authenticate(&self, session: &mut ClientState, rest: &[&[u8]]) -> Answer {
        let (user, password) = match *rest {
            [_] if self.password.is_none() => {
                let text = "ERR AUTH <password> called without any password configured for the \
                    default user. Are you sure your configuration is correct?";
                return Err(text.into());
            }
            [password] => (b"default".as_slice(), password),
            [user, password] => (user, password),
            _ => return Err(SYNTAX),
        };
        let known = self
            .password
            .as_ref()
            .is_none_or(|expected| expected.as_bytes() == password);
        if user != b"default" || !known {
            return Err("WRONGPASS invalid username-password pair or user is disabled.".into());
        }
        session.authenticated = true;
        Ok(OK)
    }
}

const OK: Reply = Reply::Simple("OK");

fn select(session: &mut ClientState, index: &[u8]) -> Answer {
    let out_of_int = "ERR value is out of range, value must between -2147483648 and 2147483647";
    let index = i32::try_from(integer(index)?).map_err(|_| out_of_int)?;
    let index = usize::try_from(index)
        .ok()
        .filter(|index| *index < DATABASES);
    session.database = index.ok_or("ERR DB index is out of range")?;
    Ok(OK)
}

#[cfg(test)]
mod tests;
