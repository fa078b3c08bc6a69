//! The promise: the command is dead before the lease is, and nothing of its group is left.

use super::*;

/// Programs that run at the same time.
const AT_ONCE: usize = 10;
/// What the command does: it ignores SIGTERM, and writes the time since the machine was started,
/// over and over.
pub(super) const STUBBORN: &str = "import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)
while True:
    os.pwrite(file, b'%020d' % (time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000), 0)
    time.sleep(0.0005)
";

/// A machine that pauses for longer than this can keep no promise: longer than a part of the time
/// between SIGKILL and the end of the lease.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE_US: u64 = LONGEST_PAUSE.as_micros() as u64;

/// A thread that notices when the machine pauses, as when a host takes the processor away, and when
/// its wall clock is set forward: that ends leases early (rule 4.1).
struct Pauses {
    seen: Arc<Guarded<Vec<(u64, u64)>>>,
    is_over: Arc<AtomicBool>,
}

impl Pauses {
    fn watch() -> Pauses {
        let pauses = Pauses {
            seen: Arc::default(),
            is_over: Arc::default(),
        };
        let seen = Arc::clone(&pauses.seen);
        let is_over = Arc::clone(&pauses.is_over);
        thread::spawn(move || {
            let clocks = || (boot_time_us(), SystemTime::now());
            let mut last = clocks();
            while !is_over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(1));
                let now = clocks();
                let set = now.1.duration_since(last.1).unwrap_or_default();
                if now.0 - last.0 > LONGEST_PAUSE_US || set > LONGEST_PAUSE {
                    seen.lock().unwrap().push((last.0, now.0));
                }
                last = now;
            }
        });
        pauses
    }

    /// Whether the machine stood still at some time between these.
    fn overlap(&self, from: u64, to: u64) -> bool {
        self.seen
            .lock()
            .unwrap()
            .iter()
            .any(|&(begin, end)| begin <= to && end >= from)
    }
}

impl Drop for Pauses {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

struct Run {
    tool: Running,
    events: PathBuf,
    stamp: PathBuf,
}

/// Starts a program whose command writes to a stamp.
fn start(
    deployment: &Deployment,
    folder: &Path,
    number: usize,
    grace: &str,
    command: &[&str],
) -> Run {
    let name = |kind: &str| folder.join(format!("{number}.{kind}"));
    let events = name("events");
    let stamp = name("stamp");
    // The shell opens a descriptor for the events.
    let mut tool = in_script(deployment, "exec 9>\"$0\"; exec \"$@\"", &events);
    tool.args("run --ttl 6s --json-events 9 --grace".split(' '))
        .args([grace, &format!("lock-{number}"), "--"])
        .args(command)
        .arg(&stamp);
    Run {
        tool: Running::start(tool),
        events,
        stamp,
    }
}

/// The last time at which the command was alive.
pub(super) fn last_sign(stamp: &Path) -> u64 {
    fs::read_to_string(stamp)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or_default()
}

#[test]
#[allow(clippy::print_stdout)]
fn a_command_that_ignores_sigterm_is_gone_before_the_lease_ends() {
    let deployment = Deployment::of(5);
    let folder = folder();
    let wanted = rounds() * AT_ONCE;
    let pauses = Pauses::watch();
    let mut least = u64::MAX;
    let mut judged = 0;
    let mut set_aside = 0;
    while judged < wanted {
        assert!(
            set_aside < 10 * wanted,
            "the machine stands still all the time"
        );
        let command = ["python3", "-c", STUBBORN];
        let start = |number| start(&deployment, &folder, number, "1500ms", &command);
        let mut runs: Vec<Run> = (0..AT_ONCE).map(start).collect();
        let are_running = || {
            // On a machine that is very busy, a lock may be lost before its command has begun:
            // another try.
            for (number, run) in runs.iter_mut().enumerate() {
                if run.tool.is_over() {
                    let _ = fs::remove_file(&run.stamp);
                    *run = start(number);
                }
            }
            runs.iter().all(|run| last_sign(&run.stamp) > 0)
        };
        assert!(eventually(Duration::from_secs(60), are_running));
        pause(&deployment.servers[..3]);
        for run in runs {
            run.tool.wait().exits(70);
            let events = events(&fs::read_to_string(&run.events).unwrap());
            let [stopping, killing, ended] = ["stopping", "killing", "ended"]
                .map(|wanted| &events.iter().find(|(name, _)| name == wanted).unwrap().1);
            let end = killing["boot_time_us"] + killing["left_us"];
            let last = last_sign(&run.stamp);
            fs::remove_file(&run.stamp).unwrap();
            if pauses.overlap(stopping["boot_time_us"] - 1_000_000, ended["boot_time_us"]) {
                set_aside += 1;
                continue;
            }
            judged += 1;
            assert!(
                ended["left_us"] > 0,
                "the group is gone only after the lease: {events:?}"
            );
            assert!(
                last < end,
                "alive {} µs after the end of the lease",
                last.saturating_sub(end)
            );
            least = least.min(end - last);
        }
        resume(&deployment.servers[..3]);
    }
    println!(
        "{judged} of {judged} gone before the end of the lease, by at least {least} µs; {set_aside} set aside"
    );
}

/// Nothing asks it to end before.
#[test]
fn a_command_without_grace_is_killed_before_the_lease_ends() {
    let deployment = Deployment::of(3);
    let folder = folder();
    let command = ["python3", "-c", STUBBORN];
    let run = start(&deployment, &folder, 0, "0s", &command);
    assert_soon!(last_sign(&run.stamp) > 0, "it has not begun");
    pause(&deployment.servers[..2]);
    run.tool.wait().exits(70);
    let events = events(&fs::read_to_string(&run.events).unwrap());
    let killing = events.iter().find(|(name, _)| name == "killing");
    assert!(killing.unwrap().1["left_us"] > 0, "{events:?}");
}

#[test]
fn nothing_of_the_group_is_left() {
    let deployment = Deployment::of(5);
    let folder = folder();
    // The shell writes the ids of what it has started, and waits.
    let script = "sleep 99 & echo $! > \"$0.new\"; (trap '' TERM; sleep 99) & echo $! >> \"$0.new\"; echo $$ >> \
                  \"$0.new\"; mv \"$0.new\" \"$0\"; wait";
    let run = start(&deployment, &folder, 0, "1500ms", &["sh", "-c", script]);
    assert!(eventually(Duration::from_secs(30), || run.stamp.exists()));
    let text = fs::read_to_string(&run.stamp).unwrap();
    let pids: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(pids.len() == 3 && pids.iter().all(|&pid| exists(pid)));
    pause(&deployment.servers[..3]);
    run.tool.wait().exits(70);
    assert!(
        !pids.iter().any(|&pid| exists(pid)),
        "some of {pids:?} are left"
    );
}

#[test]
fn what_a_command_leaves_behind_ends_before_the_release() {
    let deployment = Deployment::of(1);
    let script = "(trap '' TERM; sleep 99) & echo $!";
    let ended = deployment.run(&("run --grace 300ms a -- sh -c", [script]));
    let pid: u32 = ended.out.trim().parse().unwrap();
    assert_eq!(
        (ended.code, exists(pid), deployment.keys()),
        (Some(0), false, 0),
        "{}",
        ended.all()
    );
}

/// It is of the group of the command, and its parent of another one.
#[test]
fn a_process_whose_parent_has_left_the_group_ends_before_the_release() {
    let deployment = Deployment::of(1);
    let left = folder().join("left");
    let script = "import os, signal, sys, time
if os.fork() == 0:
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(99)
    os.setsid()
    with open(sys.argv[1] + '.new', 'w') as file:
        file.write(f'{os.getpid()} {child}')
    os.rename(sys.argv[1] + '.new', sys.argv[1])
    os.waitpid(child, 0)
    time.sleep(99)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
";
    let mut tool = deployment.tool(&("run --grace 300ms a -- python3 -c", [script]));
    tool.arg(&left).stdout(Stdio::null()).stderr(Stdio::null());
    run(tool).exits(0);
    let pids = fs::read_to_string(&left).unwrap();
    let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    let [parent, child] = pids[..] else {
        panic!("{pids:?}")
    };
    let is_child_gone = || !exists(child);
    let has_child = !eventually(Duration::from_secs(2), is_child_gone);
    let has_parent = exists(parent);
    send(parent, Signal::SIGKILL);
    if has_child {
        send(child, Signal::SIGKILL);
    }
    assert!(has_parent, "a process of another group is left alone");
    assert!(!has_child, "it is left when the lock is released");
}

#[test]
#[allow(clippy::print_stdout)]
fn a_program_that_is_killed_takes_its_command_along() {
    let deployment = Deployment::of(5);
    let folder = folder();
    let mut longest = 0;
    let mut late = 0;
    for number in 0..5 * rounds() {
        // Without the shell in between: it is this program that is killed.
        let stamp = folder.join(format!("{number}.stamp"));
        let name = format!("lock-{number}");
        let words = ["run", &name, "--", "python3", "-c", STUBBORN];
        let start = || {
            let mut tool = deployment.tool(&words);
            tool.arg(&stamp);
            Running::start(tool)
        };
        let mut tool = start();
        let is_running = || {
            // On a machine that is very busy, too few nodes may answer in time: another try.
            if tool.is_over() {
                tool = start();
            }
            last_sign(&stamp) > 0
        };
        assert!(eventually(Duration::from_secs(60), is_running));
        let killed = boot_time_us();
        drop(tool);
        // The kernel has killed the command before it reports that this program is gone.
        let gone = boot_time_us();
        // Two looks far enough apart that a living command writes in between.
        thread::sleep(Duration::from_millis(300));
        let last = last_sign(&stamp);
        thread::sleep(Duration::from_millis(300));
        assert_eq!(last, last_sign(&stamp), "it still runs");
        // On a machine that is very busy, it may take long until a program that is killed gets the
        // time to end.
        assert!(
            last < gone + 20_000,
            "alive {} µs after the end of the program",
            last - gone
        );
        longest = longest.max(last.saturating_sub(killed));
        late += usize::from(last >= killed + 100_000);
        assert!(
            late <= 1 + number / 10,
            "alive {} µs after the kill, {late} times",
            last - killed
        );
    }
    println!(
        "the command lived for at most {longest} µs longer, {late} times for more than 100 ms"
    );
}

/// Moves to the process group of a child that ends soon.
const MOVER: &str = "
import os, sys, time
child = os.fork()
if child == 0:
    time.sleep(9)
    os._exit(0)
os.setpgid(child, child)
os.setpgid(0, child)
open(sys.argv[1], 'w').close()
time.sleep(99)
";

#[test]
fn a_command_that_has_left_its_group_is_ended() {
    let deployment = Deployment::of(1);
    let stamp = folder().join("stamp");
    let mut tool = deployment.tool(&("run a -- python3 -c", [MOVER]));
    tool.arg(&stamp);
    let mut running = Running::start(tool);
    assert_soon!(stamp.exists());
    running.send(Signal::SIGTERM);
    assert_soon!(running.is_over());
    assert_eq!(running.code(), Some(143));
}

#[test]
fn a_process_of_another_group_is_left_alone() {
    let deployment = Deployment::of(1);
    let file = folder().join("pid");
    // The command starts it, waits until it has a session of its own, and ends.
    let script = "setsid sh -c 'echo $$ > \"$0\"; exec sleep 99' \"$0\" >/dev/null 2>&1 & \
                  while [ ! -s \"$0\" ]; do sleep 0.01; done";
    let ended = deployment.succeeds(&("run a -- sh -c", [script, file.to_str().unwrap()]));
    let pid: u32 = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    assert!(exists(pid), "{}", ended.all());
    send(pid, Signal::SIGKILL);
}
