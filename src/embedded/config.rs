//! What an embedded node pretends to be, and to be going through.

/// Which server a node is like: what `INFO` reports, and the texts of some errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerKind {
    /// Redis 7.0. The default.
    #[default]
    Redis,
    /// Redis 6.2: as [`Redis`](ServerKind::Redis), and an error raised inside a script names the
    /// place in front of its code.
    Redis62,
    /// Valkey 9.0: names itself in `INFO` and in errors.
    Valkey9,
}

/// What a node is going through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// Answers `-LOADING` to all that touches a key, like a server that reads its data set after a
    /// start.
    Loading,
    /// Answers `-OOM` to `SET`; deletes and moves deadlines as ever.
    OutOfMemory,
    /// Answers `-READONLY` to all that writes, and reports in `INFO` that it is a replica.
    Replica,
    /// A master in good health. The default.
    #[default]
    Serving,
}
