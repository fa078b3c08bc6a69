//! The program `quorumlock` of another version beside the present one, on the same servers.
//!
//! `QUORUMLOCK_OTHER_VERSION` names that program. Without it, it is built from the last tag of a
//! release; where there is none, the tests do nothing.

use super::*;
use crate::capi::library::{cargo, finishes};

const OTHER_VARIABLE: &str = "QUORUMLOCK_OTHER_VERSION";
/// For how long the programs run side by side.
const SECONDS_VARIABLE: &str = "QUORUMLOCK_VERSIONS_SECONDS";
/// Programs of each version that want one lock.
const LOOPS: usize = 2;
const SHARED: u32 = 2;
const RUN: [&str; 5] = ["run", "--wait", "60s", "--node-timeout", "2s"];

const ALONE: &str = "n=$(cat counter); sleep 0.003; echo $((n + 1)) > counter; \
                     echo ${QUORUMLOCK_FENCE:-0} >> fences";
const READING: &str =
    "n=$(cat counter); sleep 0.003; [ \"$n\" = \"$(cat counter)\" ] || echo $n >> torn";
const SHARING: &str = "mkdir in.$$; ls -d in.* | wc -l >> counts; sleep 0.003; rmdir in.$$";

/// The ways to take the locks of one kind.
type Sides = &'static [Side];

/// Options and names, and the command that runs under the lock.
struct Side {
    options: &'static [&'static str],
    command: &'static str,
}

const fn side(options: &'static [&'static str], command: &'static str) -> Side {
    Side { options, command }
}

const KINDS: [Sides; 8] = [
    &[side(&["a"], ALONE)],
    &[side(&["--fair", "a"], ALONE)],
    &[side(&["--fenced", "a"], ALONE)],
    &[side(&["--fair", "--fenced", "a"], ALONE)],
    &[side(&["a", "b"], ALONE), side(&["b"], ALONE)],
    &[
        side(&["--write", "a"], ALONE),
        side(&["--read", "a"], READING),
    ],
    &[side(&["--write", "--fenced", "a"], ALONE)],
    &[side(&["--permits", "2", "a"], SHARING)],
];

/// The two versions, the other one first; none where there is no other.
fn versions() -> Option<[PathBuf; 2]> {
    static OTHER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let named = || std::env::var_os(OTHER_VARIABLE).map(PathBuf::from);
    let other = OTHER.get_or_init(|| named().or_else(last_release)).clone();
    if other.is_none() {
        say("there is no tag of a release, and no other program is named");
    }
    Some([other?, PRESENT.into()])
}

/// The program of the last release, built from its tag.
fn last_release() -> Option<PathBuf> {
    let git = |words: &[&str]| Command::new("git").args(words).current_dir(root()).output();
    let described = git(&["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]).ok()?;
    let tag = String::from_utf8(described.stdout).ok()?;
    let tag = Some(tag.trim()).filter(|tag| !tag.is_empty())?;
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("release-{tag}"));
    fs::create_dir_all(&source).unwrap();
    let archive = source.join("source.tar").display().to_string();
    let archived = git(&["archive", "--output", &archive, tag]);
    assert!(archived.unwrap().status.success());
    let mut tar = program("tar");
    succeeds(tar.args(["xf", &archive]).current_dir(&source));
    let mut build = cargo("build --locked --features cli --bin quorumlock --target-dir target");
    finishes(build.current_dir(&source));
    Some(source.join("target/debug/quorumlock"))
}

/// Not by `println`, which a run shows of failed tests only.
fn say(what: &str) {
    _ = writeln!(std::io::stderr(), "skipped: cli::versions: {what}");
}

/// The kinds that both versions have.
fn kinds(other: &Path) -> Vec<Sides> {
    let mut help = program(other);
    help.args(["run", "--help"]);
    let help = run(help).all();
    let has = |side: &Side| {
        let missing = side
            .options
            .iter()
            .find(|word| word.starts_with("--") && !help.contains(**word));
        missing
            .inspect(|word| say(&format!("the other version has no {word}")))
            .is_none()
    };
    let kinds: Vec<Sides> = KINDS
        .into_iter()
        .filter(|sides| sides.iter().all(has))
        .collect();
    assert!(!kinds.is_empty());
    kinds
}

#[test]
fn programs_of_two_versions_exclude_each_other() {
    let Some(versions) = versions() else { return };
    let seconds = storm::number(SECONDS_VARIABLE).unwrap_or(4);
    let end = Instant::now() + Duration::from_secs(seconds);
    thread::scope(|scope| {
        for sides in kinds(&versions[0]) {
            let versions = &versions;
            scope.spawn(move || side_by_side(versions, sides, end));
        }
    });
}

/// Programs of both versions want one lock, until then.
fn side_by_side(versions: &[PathBuf; 2], sides: Sides, end: Instant) {
    let deployment = Deployment::of(3);
    let folder = folder();
    fs::write(folder.join("counter"), "0\n").unwrap();
    let runs = |program: &Path, side: &Side| {
        let mut count = 0;
        while Instant::now() < end {
            let words = [&RUN[..], side.options, &["--", "sh", "-c", side.command]].concat();
            let mut command = deployment.tool_at(program, &words);
            command.current_dir(&folder);
            let ended = run(command);
            let options = side.options;
            assert_eq!(
                ended.code,
                Some(0),
                "{program:?} {options:?}: {}",
                ended.all()
            );
            count += 1;
        }
        count
    };
    // The runs of each version and side.
    let counts: Vec<(&PathBuf, &Side, u64)> = thread::scope(|scope| {
        let each = versions
            .iter()
            .flat_map(|program| sides.iter().map(move |side| (program, side)));
        let each = each.flat_map(|both| [both; LOOPS]);
        let started: Vec<_> = each
            .map(|(program, side)| (program, side, scope.spawn(|| runs(program, side))))
            .collect();
        let ended = started.into_iter();
        ended
            .map(|(program, side, runs)| (program, side, runs.join().unwrap()))
            .collect()
    });
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let numbers = |name: &str| -> Vec<u64> {
        read(name)
            .lines()
            .map(|line| line.trim().parse().unwrap())
            .collect()
    };
    let title = sides[0].options.join(" ");
    let alone = counts.iter().filter(|(_, side, _)| side.command == ALONE);
    let written: u64 = alone.map(|(_, _, count)| count).sum();
    assert_eq!(numbers("counter"), [written], "{title}: a lost update");
    let fences = numbers("fences");
    assert!(fences.is_sorted(), "{title}: {fences:?}");
    assert_eq!(read("torn"), "", "{title}: a reader beside a writer");
    let most = numbers("counts").into_iter().max().unwrap_or(0);
    assert!(most <= SHARED.into(), "{title}: {most} at once");
    let by = |program| -> u64 {
        let of_program = counts.iter().filter(|(by, ..)| *by == program);
        of_program.map(|(.., count)| count).sum()
    };
    let [other, present] = versions.each_ref().map(by);
    assert!(
        other > 0 && present > 0,
        "{title}: {other} and {present} runs"
    );
    _ = writeln!(
        std::io::stderr(),
        "versions: {title}: {other} runs by the other version, {present} by this one"
    );
}

/// Both wait for no time that would end the wait but for a message: 25 s, and the other one's time
/// to live of 30 s.
#[test]
fn programs_of_two_versions_wake_each_other() {
    let Some(versions) = versions() else { return };
    let [other, present] = &versions;
    for sides in kinds(other) {
        for [holder, waiter] in [[other, present], [present, other]] {
            let first = &sides[0];
            let last = sides.last().unwrap();
            let title = format!("{holder:?} wakes {waiter:?}: {:?}", last.options);
            let deployment = Deployment::of(3);
            let folder = folder();
            let start = |program: &Path, side: &Side, script: &str| -> Running {
                let patient = &["--place-lease", "25s"];
                let words = [&RUN[..], patient, side.options, &["--", "sh", "-c", script]].concat();
                let mut command = deployment.tool_at(program, &words);
                command.current_dir(&folder);
                Running::start(command)
            };
            let until_go = "touch held.$$; while ! [ -e go ]; do sleep 0.02; done";
            // As many as the lock lets in.
            let count = if first.command == SHARING { SHARED } else { 1 };
            let held: Vec<Running> = (0..count).map(|_| start(holder, first, until_go)).collect();
            let files = || fs::read_dir(&folder).unwrap().count();
            assert_soon!(files() == held.len(), "{title}");
            let waiting = start(waiter, last, "true");
            let is_queue = |key: &String| key.starts_with("quorumlock-queue:");
            let waits = || {
                let mut servers = deployment.servers.iter();
                servers.all(|server| server.keys().unwrap().iter().any(is_queue))
            };
            assert_soon!(waits(), "{title}: it does not queue");
            fs::write(folder.join("go"), "").unwrap();
            let begun = Instant::now();
            let ended = waiting.wait();
            assert_eq!(ended.code, Some(0), "{title}: {}", ended.all());
            assert!(begun.elapsed() < SOON, "{title}: {:?}", begun.elapsed());
            held.into_iter().for_each(|child| drop(child.wait()));
        }
    }
}
