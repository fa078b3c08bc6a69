#!/usr/bin/env python3
"""Measures this library beside others, on servers that it starts, and prints the table of README.md.

    python3 benches/compare/run.py [--seconds 3] [--rounds 5] [--data FOLDER]

A program for each client does the same: `rate` and `turns` in rust/src/lib.rs. They run one after the other in each
round, and a figure is the median over the rounds. Whatever is not installed is left out with a line on standard error:
redis-server, cargo, go 1.25 or later, the module `redis` of this interpreter, etcd. The folder for data, the present
one by default, is to be on a disk: for rows with fsync. Takes three minutes for each round of 3 seconds.
"""

import argparse
import datetime
import os
import pathlib
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
NODES = [1, 3, 5]
THREADS = [1, 16, 64]
# Of all rows but that of a client that knows one node.
SHARED = 3


def skip(what, why):
    print(f"left out: {what}: {why}", file=sys.stderr)


def output(*command):
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Redis:
    """Independent servers: a deployment for each number of nodes, because one that grows waits for its new nodes."""

    def __init__(self, folder, options):
        ports = free_ports(sum(NODES))
        self.processes = []
        for port in ports:
            data = pathlib.Path(folder, str(port))
            data.mkdir()
            words = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(data), *options]
            self.processes.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        for port in ports:
            wait(lambda port=port: b"PONG" in ask_redis(port))
        self.deployments = {count: [ports.pop() for _ in range(count)] for count in NODES}

    def urls(self, count):
        return [f"redis://127.0.0.1:{port}" for port in self.deployments[count]]

    def stop(self):
        end(self.processes)


class Etcd:
    """A cluster for each number of nodes."""

    def __init__(self, folder):
        self.processes = []
        self.clusters = {}
        for count in NODES:
            names = [f"{count}-{index}" for index in range(count)]
            peers = [f"http://127.0.0.1:{port}" for port in free_ports(count)]
            clients = [f"http://127.0.0.1:{port}" for port in free_ports(count)]
            members = ",".join(f"{name}={peer}" for name, peer in zip(names, peers))
            for name, peer, client in zip(names, peers, clients):
                words = ["etcd", "--name", name, "--data-dir", f"{folder}/{name}", "--log-level", "panic"]
                words += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
                words += ["--listen-client-urls", client, "--advertise-client-urls", client]
                words += ["--initial-cluster", members, "--initial-cluster-token", str(count)]
                self.processes.append(subprocess.Popen(words, stderr=subprocess.DEVNULL))
            self.clusters[count] = clients
        for client in sum(self.clusters.values(), []):
            wait(lambda client=client: b"true" in urllib.request.urlopen(f"{client}/health").read())

    def urls(self, count):
        return self.clusters[count]

    def stop(self):
        end(self.processes)


def ask_redis(port):
    with socket.create_connection(("127.0.0.1", port), 1) as connection:
        connection.sendall(b"PING\r\n")
        return connection.recv(100)


def wait(is_ready):
    deadline = time.monotonic() + 30
    while True:
        try:
            if is_ready():
                return
        except OSError:
            pass
        if time.monotonic() > deadline:
            sys.exit("a server does not start")
        time.sleep(0.05)


def end(processes):
    for process in processes:
        process.kill()
    for process in processes:
        process.wait()


def rate(client, urls, threads, seconds):
    """The median of a pair in microseconds, and pairs per second."""
    command = [*client, "rate", str(threads), str(seconds), *urls]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return [float(number) for number in printed.split()]


def hand_offs(client, urls, seconds):
    """From a release to the return of the call of another program that waits, in microseconds."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    programs = [subprocess.Popen([*client, "turns", *urls], **pipes) for _ in range(2)]
    times = []
    holder, waiter = programs
    order(holder, "lock")
    holder.stdout.readline()
    until = time.monotonic() + seconds
    while time.monotonic() < until or len(times) < 5:
        order(waiter, "lock")
        # The wait has begun, and a client that polls is at any point of its delay.
        time.sleep(random.uniform(0.02, 0.12))
        order(holder, "unlock")
        released = int(holder.stdout.readline())
        times.append((int(waiter.stdout.readline()) - released) / 1000)
        holder, waiter = waiter, holder
    # The lock is free for the next round.
    order(holder, "unlock")
    for program in programs:
        program.stdin.close()
        program.wait()
    return statistics.median(times[1:])


def order(program, word):
    program.stdin.write(word + "\n")
    program.stdin.flush()


def build():
    """The commands of the clients that could be built, by name."""
    clients = {}
    if shutil.which("cargo"):
        target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", HERE / "../../target")).resolve()
        manifest = HERE / "rust/Cargo.toml"
        subprocess.run(["cargo", "build", "--release", "--manifest-path", manifest, "--target-dir", target], check=True)
        for name in ["quorumlock", "rslock"]:
            clients[name] = [str(target / "release" / name)]
    else:
        skip("quorumlock, rslock", "no cargo")
    folder = pathlib.Path(tempfile.mkdtemp())
    for name in ["redsync", "etcd"]:
        if not shutil.which("go"):
            skip(name, "no go")
            continue
        command = ["go", "build", "-mod=mod", "-o", folder / name, f"./{name}"]
        if subprocess.run(command, cwd=HERE / "go", check=False).returncode:
            skip(name, "does not build with this go")
        else:
            clients[name] = [str(folder / name)]
    if output(sys.executable, "-c", "import redis"):
        skip("redis-py", f"{sys.executable} has no module redis")
    else:
        clients["redis-py"] = [sys.executable, str(HERE / "redis_py.py")]
    return clients


def versions(clients):
    """What is measured, with its version."""
    names = dict.fromkeys(clients, "")
    if "rslock" in clients:
        manifest = (HERE / "rust/Cargo.toml").read_text()
        names["rslock"] = re.search(r'rslock = { version = "=([^"]+)"', manifest).group(1)
    if "redsync" in clients:
        names["redsync"] = re.search(r"redsync/v4 v(\S+)", (HERE / "go/go.mod").read_text()).group(1)
    if "redis-py" in clients:
        names["redis-py"] = output(sys.executable, "-c", "import redis; print(redis.__version__)").strip()
    if "etcd" in clients and shutil.which("etcd"):
        names["etcd"] = re.search(r"Version: (\S+)", output("etcd", "--version")).group(1)
    return {name: f"{name} {version}".strip() for name, version in names.items()}


def hardware():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", text)
    kind = "virtual cores" if "hypervisor" in text else "cores"
    return f"{os.cpu_count()} {kind} of an {model.group(1) if model else 'unknown processor'}"


def shown(values):
    value = statistics.median(values)
    digits = 0 if value >= 100 else 1
    return f"{value:,.{digits}f}".replace(",", " ")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--data", default=".")
    options = parser.parse_args()
    if not shutil.which("redis-server"):
        sys.exit("no redis-server")
    clients = build()
    names = versions(clients)
    disk = tempfile.TemporaryDirectory(dir=options.data)
    memory = tempfile.TemporaryDirectory(dir="/dev/shm")
    with disk, memory:
        durable = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        servers = {"memory": Redis(memory.name, ["--save", ""]), "fsync": Redis(disk.name, durable)}
        rows = [(names[name], name, servers["memory"]) for name in clients if name != "etcd"]
        if "etcd" in clients and shutil.which("etcd"):
            servers["etcd in memory"], servers["etcd fsync"] = Etcd(memory.name), Etcd(disk.name)
            rows.append((f"{names['etcd']}, in memory", "etcd", servers["etcd in memory"]))
        else:
            skip("etcd", "no etcd, or its client was not built")
        if "quorumlock" in clients:
            rows.append(("quorumlock, fsync", "quorumlock", servers["fsync"]))
        if "etcd fsync" in servers:
            rows.append((f"{names['etcd']}, fsync", "etcd", servers["etcd fsync"]))
        try:
            table = measure(rows, clients, options)
        finally:
            for server in servers.values():
                server.stop()
    redis = re.search(r"v=(\S+)", output("redis-server", "--version")).group(1)
    print(f"Measured on {datetime.date.today()}, {hardware()}, Redis {redis}, all on this machine;")
    print(f"medians of {options.rounds} rounds of {options.seconds:g} s each.\n")
    print("| Client | 1 node | 3 nodes | 5 nodes | 1 thread | 16 threads | 64 threads | Hand-off |")
    print("|---|---|---|---|---|---|---|---|")
    for name, cells in table:
        print(f"| {name} | " + " | ".join(shown(cell) if cell else "–" for cell in cells) + " |")


def measure(rows, clients, options):
    """For each row the values of each cell."""
    table = [(name, [[] for _ in range(len(NODES) + len(THREADS) + 1)]) for name, _, _ in rows]
    for number in range(options.rounds):
        for (name, client, servers), (_, cells) in zip(rows, table):
            print(f"round {number + 1}: {name} …", file=sys.stderr)
            several = client != "redis-py"
            shared = servers.urls(SHARED if several else 1)
            command = clients[client]
            for cell, nodes in zip(cells, NODES):
                if several or nodes == 1:
                    median, per_second = rate(command, servers.urls(nodes), 1, options.seconds)
                    cell.append(median)
                    if len(shared) == nodes:
                        cells[len(NODES)].append(per_second)
            for cell, threads in zip(cells[len(NODES) + 1 :], THREADS[1:]):
                cell.append(rate(command, shared, threads, options.seconds)[1])
            cells[-1].append(hand_offs(command, shared, options.seconds))
    return table


if __name__ == "__main__":
    main()
