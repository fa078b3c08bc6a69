//! What `run` costs: `quorumlock run NAME -- true`, against the least that the same takes.
//!
//! Both run by turns, so that what else the machine does slows both down. As it is installed:
//! `cargo test --profile cli --all-features --test it -- cli::cost --nocapture`.

use super::*;

/// How many of each are run, by turns.
const ROUNDS: usize = 60;

/// What it takes at least: connections, `SET` on all nodes, a process that runs `true`, `DEL` on
/// all nodes.
fn bare(deployment: &Deployment) {
    let connect = |server: &Server| TcpStream::connect(server.address()).unwrap();
    let mut nodes: Vec<TcpStream> = deployment.servers.each(connect);
    ask(
        &mut nodes,
        b"*6\r\n$3\r\nSET\r\n$4\r\nbare\r\n$1\r\nx\r\n$2\r\nNX\r\n$2\r\nPX\r\n$5\r\n30000\r\n",
    );
    assert!(
        Command::new("true")
            .stdin(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    ask(&mut nodes, b"*2\r\n$3\r\nDEL\r\n$4\r\nbare\r\n");
}

fn ask(nodes: &mut [TcpStream], command: &[u8]) {
    nodes
        .iter_mut()
        .for_each(|node| node.write_all(command).unwrap());
    nodes
        .iter_mut()
        .for_each(|node| assert!(node.read(&mut [0; 64]).unwrap() > 0));
}

/// Where the machine is busy, the processes of a run wait for each other. Debug builds show little
/// of what users run.
const MOST: f64 = if cfg!(debug_assertions) { 20.0 } else { 8.0 };

#[test]
#[allow(clippy::print_stdout)]
fn a_run_costs_little_more_than_its_process_and_its_lock() {
    let deployment = Deployment::of(5);
    let mut ours = Vec::new();
    let mut floor = Vec::new();
    for _ in 0..ROUNDS * rounds() {
        let begun = Instant::now();
        bare(&deployment);
        floor.push(begun.elapsed());
        let begun = Instant::now();
        let mut tool = deployment.tool("run ours -- true");
        assert!(
            tool.stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap()
                .success()
        );
        ours.push(begun.elapsed());
    }
    let ours = median(ours);
    let floor = median(floor);
    let ratio = ours.as_secs_f64() / floor.as_secs_f64();
    println!("run true: {ours:?}, bare: {floor:?}, ratio {ratio:.2}");
    assert!(ratio < MOST, "{ratio:.2}");
}
