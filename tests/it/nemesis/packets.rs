//! Packets that the kernel drops, where the machine allows it.
//!
//! Only when `QUORUMLOCK_NEMESIS_NFT` is set, because it takes the rights to change the rules of
//! the machine's firewall. The rules are in a table of their own, drop nothing but packets to and
//! from one port of the loopback interface, and belong to one `nft` process that reads its commands
//! from here: the kernel removes the table when that process ends, as it does when this one ends,
//! however that comes about.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

pub(crate) struct Packets {
    nft: Child,
    commands: ChildStdin,
    table: String,
}

impl Packets {
    /// None unless it is wanted.
    pub(crate) fn if_wanted() -> Option<Packets> {
        std::env::var_os("QUORUMLOCK_NEMESIS_NFT")?;
        let mut nft = Command::new("nft")
            .arg("-i")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("nft");
        let commands = nft.stdin.take().expect("its input");
        let mut packets = Packets {
            nft,
            commands,
            table: format!("inet quorumlock_{}", std::process::id()),
        };
        let table = packets.table.clone();
        packets.say(&format!("add table {table} {{ flags owner; }}"));
        packets.say(&format!("add counter {table} dropped"));
        packets.say(&format!(
            "add chain {table} wire {{ type filter hook input priority 0; }}"
        ));
        Some(packets)
    }

    /// Drops so many of a hundred packets to and from this port.
    pub(crate) fn drop_some(&mut self, port: u16, percent: u64) {
        for end in ["dport", "sport"] {
            let table = &self.table;
            // A comparison that is always true is refused.
            let chance = if percent < 100 {
                format!("numgen random mod 100 < {percent} ")
            } else {
                String::new()
            };
            let rule = format!(
                "add rule {table} wire iif lo tcp {end} {port} {chance}counter name dropped drop"
            );
            self.say(&rule);
        }
    }

    /// Drops nothing any more.
    pub(crate) fn drop_none(&mut self) {
        let flush = format!("flush chain {}  wire", self.table);
        self.say(&flush);
    }

    /// How many were dropped so far.
    pub(crate) fn dropped(&self) -> u64 {
        let words = format!("list counter {} dropped", self.table);
        let output = Command::new("nft")
            .args(words.split(' '))
            .output()
            .expect("nft");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let after = text
            .split("packets ")
            .nth(1)
            .unwrap_or_else(|| panic!("no counter: {text}"));
        after
            .split(' ')
            .next()
            .and_then(|number| number.parse().ok())
            .expect("a number of packets")
    }

    fn say(&mut self, line: &str) {
        writeln!(self.commands, "{line}")
            .and_then(|()| self.commands.flush())
            .expect("nft listens");
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        let _ = self.nft.kill();
        let _ = self.nft.wait();
    }
}
