"""Wrong lists of hosts, and what cannot be where there are some: told before anything is started on any."""

import json

from bad_input_case import case

HERE = {"name": "alpha", "address": "127.0.0.1"}


def listed(at, *hosts, overrides=(), **keys):
    """`train` of a good job on these hosts, and `doctor`, which looks at them alone."""
    path = at.file("hosts.yaml", json.dumps({"hosts": list(hosts), **keys}))
    train, _ = at.job(at.spec(), *overrides)
    return [(*train, "--hosts", path), ("doctor", "--hosts", path)]


@case("a host that is listed twice", "folder", "hosts.yaml:1", 'hosts[2].name: "beta" is a host\'s already', "list each host once")
def _(at):
    return listed(at, HERE, {"name": "beta", "address": "10.9.9.8"}, {"name": "beta", "address": "10.9.9.9"})


@case("two hosts of one address", "folder", 'hosts[1].address: "127.0.0.1"', "list each host once")
def _(at):
    return listed(at, HERE, {"name": "beta", "address": "127.0.0.1"})


@case("a host that nobody knows", "data", "hosts.yaml", "host beta", "'no.such.host.invalid'", "/etc/hosts")
def _(at):
    return listed(at, HERE, {"name": "beta", "address": "no.such.host.invalid"})


@case("a list without this host", "folder", "hosts.yaml", "has an address of this machine", "add it", "127.0.0.1")
def _(at):
    return listed(at, {"name": "beta", "address": "203.0.113.9"})


@case("a list of no hosts", "folder", "hosts.yaml:1", "hosts: is missing or empty")
def _(at):
    return listed(at)


@case("a list of hosts that is not there", "folder", "nowhere.yaml", "no such file")
def _(at):
    return [(*words[:-1], "nowhere.yaml") for words in listed(at, HERE)]


@case("a key of hosts that is misspelt", "folder", "hosts.yaml:1", "adress", 'did you mean "address"?')
def _(at):
    return listed(at, HERE, {"name": "beta", "adress": "10.9.9.8"})


@case("an IPv6 address", "folder", "hosts[1].address", "fd00::7", "write the IPv4 address of beta")
def _(at):
    return listed(at, HERE, {"name": "beta", "address": "fd00::7"})


@case("a command for agents that is not there", "folder", "hosts.yaml: start:", "'sssh'", "install it")
def _(at):
    return listed(at, HERE, {"name": "beta", "address": "203.0.113.9"}, start=["sssh", "{host}"])


@case("copies on more hosts than there are", "folder", "durability.replicas", "2 stores", "--hosts", "let it be auto")
def _(at):
    copied = ("durability.log=every_step", "durability.replicas=2")
    return [at.job(at.spec(), *copied)[0], *listed(at, HERE, overrides=copied)[:1]]


@case("several hosts for roles that share a process", "folder", "cluster.placement", "leave --hosts out")
def _(at):
    return listed(at, HERE, overrides=("cluster.placement=threads",))[:1]


@case("another host than this one without GPUs", "folder", "hosts.yaml: host beta: gpus: none", "alpha: leave the key out")
def _(at):
    return listed(at, HERE, {"name": "beta", "address": "203.0.113.9", "gpus": "none"}, start=["sh"])


@case("a list whose only host has no GPUs", "folder", "hosts.yaml: host alpha: workers on GPUs run on other hosts", "list one", "join.hosts_min: 2")
def _(at):
    return listed(at, HERE | {"gpus": "none"}, overrides=("cluster.device=cuda",), start=["sh"])[:1]


@case("a device that this host cannot settle", "data", "cluster.device", "gpus: none", 'let it be "cuda" or "cpu"')
def _(at):
    return listed(at, HERE | {"gpus": "none"}, {"name": "beta", "address": "127.0.0.2"}, overrides=("cluster.device=auto",), start=["sh"])[:1]
