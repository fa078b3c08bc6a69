//! Processes of a group that are no children of this process, though it adopts orphans: their own
//! parents live, and have left the group.
//!
//! A number of a process may be another one's by the time it is used. So a process is held by a
//! descriptor before it is looked at for the last time, and signalled by that.

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, pidfd_send_signal, waitid,
};
use std::fs;
use std::iter;

/// The parent of a process, and its group.
type Place = (i32, i32);

/// Whether there are any.
pub(super) fn has_strays(group: i32) -> bool {
    !strays(group).is_empty()
}

/// Signals them.
pub(super) fn signal_strays(group: i32, signal: i32) {
    let Some(signal) = Signal::from_named_raw(signal) else {
        return;
    };
    for pid in strays(group) {
        let held = Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        if let Some(held) = held.filter(|_| strays(group).contains(&pid)) {
            // It may have ended a moment ago.
            let _ = pidfd_send_signal(held, signal);
        }
    }
}

fn strays(group: i32) -> Vec<i32> {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // Most commands leave nothing behind.
    if waitid(WaitId::All, look).is_err() {
        return Vec::new();
    }
    let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let all: Vec<(i32, Place)> = numbers
        .filter_map(|pid: i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, place(&stat)?))
        })
        .collect();
    let this = getpid().as_raw_nonzero().get();
    let parent = |pid: &i32| {
        let known = all.iter().find(|(other, _)| other == pid);
        known.map(|&(_, (parent, _))| parent)
    };
    let is_below = |pid: i32| {
        let mut ancestors = iter::successors(parent(&pid), parent).take(all.len());
        ancestors.any(|ancestor| ancestor == this)
    };
    let in_group = all.iter().filter(|&&(_, (_, other))| other == group);
    in_group
        .map(|&(pid, _)| pid)
        .filter(|&pid| is_below(pid))
        .collect()
}

/// From what Linux shows of a process. None for one that has ended.
fn place(stat: &str) -> Option<Place> {
    // The name, in parentheses, may contain anything.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let has_ended = ["Z", "X"].contains(&fields.next()?);
    let mut number = || fields.next()?.parse().ok();
    Some((number()?, number()?)).filter(|_| !has_ended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_parent_and_a_group_until_it_has_ended() {
        assert_eq!(place("7 (a) S 9 ()) S 5 6 6 0 -1"), Some((5, 6)));
        assert_eq!(place("7 (sh) Z 5 6 6 0 -1"), None);
        assert_eq!(place("7 (sh"), None);
    }
}
