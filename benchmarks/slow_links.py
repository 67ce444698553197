"""Links between two hosts as slow as one says, and what passes through them."""

import contextlib
import ctypes
import fcntl
import heapq
import os
import pathlib
import select
import struct
import subprocess
import threading
import time

from measuring import EXAMPLES, failure, training_rate

import dlrun_job
import net_hosts

LINK = "lan"
BURST_S, BURST_MIN = 0.0005, 128 << 10  # of what a link may send at once after a rest
SAMPLE_S = 0.002
BUSY_MIN = 0.1  # of what the link could do: less are acknowledgements and beats
TUNSETIFF, TUNSETOFFLOAD = 0x400454CA, 0x400454D0
TUN_FLAGS = 0x0001 | 0x1000 | 0x4000  # IFF_TUN, IFF_NO_PI, IFF_VNET_HDR: large packets pass whole
OFFLOADS = 0x01 | 0x02  # TUN_F_CSUM, TUN_F_TSO4
PACKET_MAX = 10 + 65_536
CLONE_NEWNET = 0x40000000


def bits_of(rate):
    """Bits a second of 1gbit, 10gbit, 500mbit."""
    for unit, factor in (("gbit", 1e9), ("mbit", 1e6)):
        if rate.endswith(unit):
            return float(rate.removesuffix(unit)) * factor
    raise failure(f"a rate is like 10gbit or 500mbit, not {rate}")


def example_rate(program, bench, model, settings, net=None, words_before=()):
    """Samples a second of an example, and its run folder. @param net: on these hosts, else on this one
    @param words_before: of a command that runs the program, as env"""
    run_dir = bench.new_run_dir()
    overrides = [f"{path}={value}" for path, value in settings.items()]
    arguments = ["train", str(EXAMPLES / f"{model}.yaml"), "--run-dir", str(run_dir), *dlrun_job.option("--set", overrides)]
    if net:
        arguments += ["--hosts", str(net.next_list())]
    within = [*(net.within() if net else ()), *words_before]
    with dlrun_job.running_job(program, run_dir, arguments, run_dir.with_suffix(".out"), within) as job:
        return training_rate(run_dir / "logs", job.expect_complete()), run_dir


class slow_links(net_hosts.net_hosts):
    """Two hosts, each of which sends at `rate` at most."""

    def __init__(self, folder, rate=None, congestion=None):
        super().__init__(folder, 2)
        self.rate, self.congestion = rate, congestion
        self.lists = 0
        self.cpus = {"alpha": 1, "beta": 64}

    def make(self):
        super().make()
        for name in self.names:
            self.set_speed(name)

    def next_list(self):
        """The hosts of another run, in folders that no run has had. Workers go where a thread of theirs has the most of `cpus`, the
        PS shard to the root."""
        self.lists += 1
        folder = self.folder_of(self.names[1]) / f"run{self.lists}"
        return self.write_file(self.folder / f"hosts{self.lists}.yaml", alpha={"cpus": self.cpus["alpha"]},
                               beta={"cpus": self.cpus["beta"], "folder": str(folder)})

    def set_speed(self, name):
        if self.congestion:
            setting = f"net.ipv4.tcp_congestion_control={self.congestion}"
            subprocess.run([*self.within(name), "sysctl", "-q", "-w", setting], check=True)
        if not self.rate:
            return
        self.limit(name, self.rate, max(BURST_MIN, int(bits_of(self.rate) / 8 * BURST_S)))


class delayed_links(slow_links):
    """The same, and each packet is on its way for `delay_s`: carried by a thread here, since not every kernel has netem."""

    def __init__(self, folder, rate, congestion, delay_s):
        super().__init__(folder, rate, congestion)
        self.delay_s, self.over = delay_s, threading.Event()
        self.ends, self.carrier = [], None

    def make(self):
        if os.geteuid() != 0:
            raise net_hosts.no_namespaces("network namespaces take root and iproute2")
        net_hosts.ip("netns", "add", self.switch)
        for name in self.names:
            inside = self.namespace(name)
            net_hosts.ip("netns", "add", inside)
            self.ends.append(self.open_end(inside))
            net_hosts.ip("-n", inside, "addr", "add", f"{self.address(name)}/24", "dev", LINK)
            for link in (LINK, "lo"):
                net_hosts.ip("-n", inside, "link", "set", link, "up")
            self.folder_of(name).mkdir(parents=True)
            self.set_speed(name)
        self.carrier = threading.Thread(target=self.carry)
        self.carrier.start()

    def __exit__(self, *exception):
        self.over.set()
        if self.carrier:
            self.carrier.join()
        super().__exit__(*exception)
        for end in self.ends:
            os.close(end)

    @staticmethod
    def open_end(inside):
        """The device of a namespace, whose packets are read and written here."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open("/proc/thread-self/ns/net") as own, open(f"/run/netns/{inside}") as other:
            if libc.setns(other.fileno(), CLONE_NEWNET) != 0:
                raise net_hosts.no_namespaces(f"cannot enter {inside}: {os.strerror(ctypes.get_errno())}")
            try:
                end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
                fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", LINK.encode(), TUN_FLAGS))
                fcntl.ioctl(end, TUNSETOFFLOAD, OFFLOADS)
            finally:
                libc.setns(own.fileno(), CLONE_NEWNET)
        return end

    def carry(self):
        waiting, count = [], 0
        while not self.over.is_set():
            rest = waiting[0][0] - time.monotonic() if waiting else 0.05
            for end in select.select(self.ends, [], [], max(rest, 0))[0]:
                with contextlib.suppress(BlockingIOError):
                    while True:
                        packet = os.read(end, PACKET_MAX)
                        count += 1
                        heapq.heappush(waiting, (time.monotonic() + self.delay_s, count, self.ends[end == self.ends[0]], packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, to, packet = heapq.heappop(waiting)
                with contextlib.suppress(OSError):  # a full queue loses packets, as links do
                    os.write(to, packet)


# ---- what passes


class sampled:
    """What a host sends and hears, in bytes, each 2 ms while it is entered: times, and counts of both."""

    def __init__(self, net, name):
        self.net, self.name = net, name
        self.times, self.heard, self.sent = [], [], []

    def __enter__(self):
        holder = subprocess.Popen([*self.net.within(self.name), "sleep", "60"])
        try:
            # Opened through a process that is there, it stays that of the namespace.
            file = pathlib.Path(f"/proc/{holder.pid}/net/dev")
            own = pathlib.Path("/proc/self/net/dev").read_bytes()
            deadline = time.monotonic() + 5
            while f" {LINK}:".encode() not in file.read_bytes() or file.read_bytes() == own:
                if time.monotonic() > deadline:
                    raise failure(f"no link {LINK} in {self.net.namespace(self.name)}")
            self.file = os.open(file, os.O_RDONLY)
        finally:
            holder.kill()
            holder.wait()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.sample)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        os.close(self.file)

    def sample(self):
        next_at = time.monotonic()
        while not self.over.is_set():
            [line] = [line for line in os.pread(self.file, 1 << 16, 0).decode().splitlines() if line.lstrip().startswith(f"{LINK}:")]
            fields = line.partition(":")[2].split()
            self.times.append(time.monotonic())
            self.heard.append(int(fields[0]))
            self.sent.append(int(fields[8]))
            next_at = max(next_at + SAMPLE_S, self.times[-1])
            time.sleep(max(next_at - time.monotonic(), 0))

    def busy_share(self, bits):
        """Bytes of both directions against what one direction could do in that time."""
        moved = self.heard[-1] - self.heard[0] + self.sent[-1] - self.sent[0]
        return 8 * moved / bits / (self.times[-1] - self.times[0])

    def moved(self):
        """Bytes heard and sent so far: of the newest sample."""
        return self.heard[-1], self.sent[-1]


def transfers(times, counts, bits, rest_s):
    """Runs of samples in which bytes flow: (share of the link, bytes). Rests shorter than `rest_s` are part of a run. The
    first and the last interval of a run are left out, since bytes flowed in a part of them; so are runs that were under way
    at the beginning or the end."""
    busy = [i for i in range(1, len(times)) if 8 * (counts[i] - counts[i - 1]) > BUSY_MIN * bits * (times[i] - times[i - 1])]
    runs = []
    for i in busy:
        if runs and times[i - 1] - times[runs[-1][1]] < rest_s:
            runs[-1][1] = i
        else:
            runs.append([i, i])
    found = []
    for first, last in runs:
        whole = times[first - 1] - times[0] > rest_s and times[-1] - times[last] > rest_s
        if whole and last - first > 2:
            moved = counts[last - 1] - counts[first]
            found.append((8 * moved / bits / (times[last - 1] - times[first]), counts[last] - counts[first - 1]))
    return found


def large(found, bytes_min):
    """Those transfers that are large enough: shares of the link, and bytes of each."""
    kept = [one for one in found if one[1] >= bytes_min]
    if not kept:
        raise failure(f"no transfer of {bytes_min / 1e6:.0f} MB was seen: measure for longer, or take a smaller model")
    return list(zip(*kept))


# ---- the floor

RECEIVE = """
import socket, sys
listener = socket.create_server((sys.argv[1], 4999))
print("ready", flush=True)
room = memoryview(bytearray(1 << 20))
peer = listener.accept()[0]
while peer.recv_into(room): pass
"""
SEND = """
import socket, sys, time
peer = socket.create_connection((sys.argv[1], 4999))
block = bytes(1 << 20)
for turn in range(int(sys.argv[3])):
    for _ in range(int(sys.argv[2]) >> 20): peer.sendall(block)
    time.sleep(float(sys.argv[4]))
"""


def plain_stream(net, bits, size, turns=5):
    """Shares of the link that one TCP connection of the kernel uses which sends `size` bytes, rests, and does so again."""
    alpha, beta = net.names
    receiver = subprocess.Popen([*net.within(alpha), "python3", "-c", RECEIVE, net.address(alpha)], stdout=subprocess.PIPE)
    rest_s = size * 8 / bits / 2
    try:
        receiver.stdout.readline()
        with sampled(net, beta) as seen:
            time.sleep(rest_s)
            words = [net.address(alpha), str(size), str(turns), str(1.5 * rest_s)]
            subprocess.run([*net.within(beta), "python3", "-c", SEND, *words], check=True)
            time.sleep(rest_s)
        receiver.wait(10)
    finally:
        receiver.kill()
        receiver.wait()
        receiver.stdout.close()
    return list(large(transfers(seen.times, seen.sent, bits, rest_s), 0.9 * size)[0])
