//! What the scripts with a queue do for clients that wait. They are compared with real servers in
//! `tests/it/embedded_vs_real/queues.rs`.

use super::*;

/// Tokens, by a letter.
const TOKENS: [(&str, &str); 2] = [
    ("OURS", "1111111111111111111111111111111111111111"),
    ("THEIRS", "2222222222222222222222222222222222222222"),
];

/// A node, a client that asks, and the connection that the clients 1 and 2 receive on.
struct Scene {
    node: Store,
    asks: ClientState,
    receives: ClientState,
}

impl Scene {
    fn new() -> Scene {
        let asks = ClientState::default();
        let receives = ClientState::default();
        let mut scene = Scene {
            node: store(ServerKind::Redis),
            asks,
            receives,
        };
        for client in ["1", "2"] {
            let words = format!("SUBSCRIBE quorumlock:{client:0>16}");
            ask_at(&mut scene.node, &mut scene.receives, &words, NOW);
        }
        scene
    }

    /// The reply to a call of a script, and the messages. An entry is written without the zeros of
    /// its client.
    fn ask(&mut self, request: &str) -> (String, Vec<String>) {
        let entry = |word: &str| match word.as_bytes() {
            [b'1'..=b'9', b'a'..=b'z', ..] => format!("{:0>15}{word}", ""),
            _ => word.to_owned(),
        };
        let words: Vec<String> = request.split(' ').map(entry).collect();
        let request = TOKENS.iter().fold(words.join(" "), |text, (name, token)| {
            text.replace(name, token)
        });
        let reply = ask_at(&mut self.node, &mut self.asks, &request, NOW);
        let messages = self.node.take_messages().into_iter().map(|message| {
            let mut bytes = Vec::new();
            self.receives.hear(&message, &mut bytes);
            let text = String::from_utf8(bytes).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            format!("{} {}", &lines[4][lines[4].len() - 1..], lines[6])
        });
        let messages = messages.collect();
        let reply = reply
            .lines()
            .last()
            .unwrap_or_default()
            .replace("000000000000000", "");
        (reply, messages)
    }

    /// Each reply is in brackets, and the messages behind it.
    #[track_caller]
    fn converse(&mut self, conversation: &str) {
        for (number, (request, row)) in (1..).zip(rows(conversation)) {
            let (reply, messages) = row.strip_prefix('[').unwrap().split_once(']').unwrap();
            let (real, received) = self.ask(request);
            assert_eq!(
                (&*real, received.join(", ").as_str()),
                (spelled(reply), messages.trim_start()),
                "row {number}: {request}"
            );
        }
    }
}

#[test]
fn calls_that_wait_for_a_plain_lock_have_their_turns() {
    Scene::new().converse(
        "
        SET k OURS NX PX 1000 => [+OK]
        EVAL PLAIN 1 k take THEIRS 1000 1m1 5 p => [n 5 0 1001 11111111 - 1m1]
        EVAL PLAIN 1 k take THEIRS 1000 1m1 7 p => [y 5 0 1001 11111111 - 1m1]
        EVAL PLAIN 1 k take THEIRS 1000 2m1 5 p => [n 6 1 1001 11111111 - 1m1]
        EVAL PLAIN 1 k take THEIRS 1000 3m1 4 f => [n 4 0 1001 11111111 - 3m1]
        EVAL PLAIN 1 k take THEIRS 1000 4m1 4 n => [n 4 3 1001 11111111 - 3m1]
        # The first has no receiver.
        EVAL PLAIN 1 k release OURS => [:2] 1 m1 k, 2 ?m1 k
        EVAL PLAIN 1 k take THEIRS 1000 2m1 6 p => [y 6 1 0 - - 1m1] 1 m1 k
        EVAL PLAIN 1 k take THEIRS 1000 2m1 6 p 1m1 => [y 6 0 0 - - 2m1] 1 m1 k
        EVAL PLAIN 1 k take THEIRS 1000 2m1 6 p => [:1]
        EVAL PLAIN 1 k take THEIRS 1000 2m1 6 p => [:1]
        ZRANGE quorumlock-queue:k 0 -1 WITHSCORES => [6]
        PTTL quorumlock-queue:k => [:60000]
        EVAL PLAIN 1 k release OURS 2m1 9 => [:0]
        ZRANGE quorumlock-queue:k 0 -1 WITHSCORES => [9]
        EVAL PLAIN 1 k leave 1m1 => [:0]
        EVAL PLAIN 1 k leave 2m1 => [:1]
        ZCARD quorumlock-queue:k => [:0]
        EVAL PLAIN 1 k release THEIRS => [:1]
    ",
    );
}

#[test]
fn a_queue_is_repaired() {
    Scene::new().converse(
        "
        SET quorumlock-queue:k junk => [+OK]
        EVAL PLAIN 1 k take OURS 1000 1m1 9007199254740991 q => [n 1700086400123000 0 0 - - 1m1]
        ZADD quorumlock-queue:k inf 1m9 9007199254740991 1m8 => [:2]
        EVAL PLAIN 1 k take OURS 1000 1m2 5 q => [n 1700086400123001 1 0 - - 1m1] 1 m1 k
        ZCARD quorumlock-queue:k => [:2]
        DEL quorumlock-queue:k => [:1]
        ZADD quorumlock-queue:k 1.5 1m9 => [:1]
        EVAL PLAIN 1 k take OURS 1000 1m1 1 q => [n 2 1 0 - - 1m9] 1 m9 k
        ZRANGE quorumlock-queue:k 0 -1 WITHSCORES => [2]
        SET quorumlock-queue:k junk => [+OK]
        EVAL PLAIN 1 k release OURS => [:0]
        ZADD k 1 m => [:1]
        EVAL PLAIN 1 k release OURS => [:0]
        EVAL EXTEND 1 k OURS 1000 => [WRONG_TYPE]
        EVAL PLAIN 1 k take OURS 1000 1m1 5 n => [n 5 0 -1 - - ]
    ",
    );
}

#[test]
fn a_fenced_lock_counts_in_turns() {
    Scene::new().converse(
        "
        EVAL FENCED 1 k take OURS 1000 1f1 5 p '' 60000 7 => [7]
        EVAL FENCED 1 k take THEIRS 1000 1f1 5 p '' 60000 7 => [n 5 0 1001 11111111 - 1f1]
        EVAL FENCED 1 k acquire THEIRS 1000 60000 7 => [:-1004]
        EVAL FENCED 1 k release OURS '' '' 60000 => [:2] 1 f1 k
        EVAL FENCED 1 k take THEIRS 1000 1f1 5 p '' 60000 7 => [8]
        EVAL FENCED 1 k raise THEIRS 20 60000 => [:1]
        EVAL FENCED 1 k extend THEIRS 2000 60000 => [:1]
        GET k => [20 1700000002123 2222222222222222222222222222222222222222]
        EVAL FENCED 1 k release THEIRS 1f1 => [-ERR value is not an integer or out of range]
    ",
    );
}

#[test]
fn permits_are_granted_while_slots_are_free() {
    Scene::new().converse(
        "
        EVAL PERMIT 1 p#0 take OURS 1000 1s2:1 5 p '' 2 => [:1]
        EVAL PERMIT 1 p#0 take THEIRS 1000 2s2:1 5 p '' 2 => [n 5 0 0 11111111 tf ]
        EVAL PERMIT 1 p#1 take THEIRS 1000 2s2:1 5 p '' 2 => [:1]
        EVAL PERMIT 1 p#1 take OURS 1000 1s2:2 6 p '' 2 => [n 6 0 1001 22222222 tt 1s2:2]
        EVAL PERMIT 1 p#1 release THEIRS => [:2] 1 s2:2 p#1
        EVAL PERMIT 1 p#1 take OURS 1000 1s2:2 6 p '' 2 => [:1]
        ZCARD quorumlock-queue:quorumlock-permits:p => [:0]
    ",
    );
}

#[test]
fn readers_are_granted_together_and_writers_in_turn() {
    Scene::new().converse(
        "
        EVAL READ_WRITE 1 k take OURS 1000 1w1 5 p '' w => [:1]
        EVAL READ_WRITE 1 k take THEIRS 1000 2r1 6 p '' r => [n 6 0 1001 11111111 - 2r1]
        EVAL READ_WRITE 1 k take THEIRS 1000 1r2 7 p '' r => [n 7 1 1001 11111111 - 2r1]
        EVAL READ_WRITE 1 k take THEIRS 1000 1w3 8 p '' w 60000 4 => [n 8 2 1001 11111111 - 2r1]
        EVAL READ_WRITE 1 k release OURS => [:2] 2 r1 k, 1 r2 k, 1 ?w3 k
        EVAL READ_WRITE 1 k take OURS 1000 1r4 9 p '' r => [n 9 3 0 - - 2r1] 1 .
        EVAL READ_WRITE 1 k leave 2r1 => [:2] 1 r2 k, 1 ?w3 k
        EVAL READ_WRITE 1 k leave 1r2 => [:2] 1 w3 k, 1 ?r4 k
        EVAL READ_WRITE 1 k take THEIRS 1000 1w3 8 p '' w 60000 4 => [4]
        GET k => [f 4 1700000060123 w 1700000001123 2222222222222222222222222222222222222222]
    ",
    );
}

#[test]
fn a_node_that_does_not_write_refuses_scripts_where_they_write() {
    let mut scene = Scene::new();
    scene.node.set_condition(Condition::OutOfMemory);
    scene.converse(
        "
        EVAL PLAIN 1 k take OURS 1000 1m1 5 f => [OUT_OF_MEMORY]
        EVAL PLAIN 1 k take OURS 1000 1m1 5 s => [o 5 0 0 - - ]
        EVAL FENCED 1 k acquire OURS 1000 60000 7 => [OUT_OF_MEMORY]
        EVAL READ_WRITE 1 k acquire OURS 1000 w => [OUT_OF_MEMORY]
    ",
    );
    scene.node.set_condition(Condition::Replica);
    scene.converse(
        "
        EVAL PLAIN 1 k take OURS 1000 1m1 5 f => [READ_ONLY]
        EVAL PERMIT 1 k#0 take OURS 1000 1s1:1 5 s '' 1 => [o 5 0 0 - f ]
        EVAL FENCED 1 k acquire OURS 1000 60000 7 => [READ_ONLY]
        EVAL PLAIN 1 k release OURS 1m1 => [:0]
    ",
    );
}

#[test]
fn a_script_that_has_written_is_not_refused() {
    let mut scene = Scene::new();
    scene.converse(
        "
        EVAL FENCED 1 k acquire OURS 1000 60000 7 => [7]
    ",
    );
    scene.node.set_condition(Condition::OutOfMemory);
    scene.converse(
        "
        EVAL FENCED 1 k extend OURS 1000 60000 => [:1]
        EVAL FENCED 1 k release OURS 1f1 5 60000 => [:1]
        ZCARD quorumlock-queue:k => [:1]
    ",
    );
}
