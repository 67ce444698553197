"""A job of four hosts whose journal is in an etcd on three hosts: hosts of its coordinator are lost, and leaders of the etcd."""

import re
import threading

import small_data
from dlrun_job import all_run, expect, now_us, wait_until
from etcd_members import CLIENT_PORT, PEER_PORT, etcd_members

WORKERS, PS_SHARDS = 3, 2
JOB_HOSTS = 4  # the first ones
BESIDE, APART = ("beta", "gamma", "delta"), ("epsilon", "zeta", "eta")  # where an etcd is: on hosts of the job, or on others
LOOK_S = 0.03
WITHOUT_JOURNAL = re.compile(r"inc=(\d+) quit: (?:the journal cannot be written|no etcd answers)")
PAUSE_BEFORE_US, PAUSE_AFTER_US = 200_000, 6_000_000


def make_spec(data, epochs):
    spec = small_data.make_spec("mlp_dropout", data, epochs=epochs, workers=WORKERS, ps_shards=PS_SHARDS)
    spec["durability"] = {"log": "every_step"}
    spec["cluster"]["restart"] = {"intensity": 1000}
    return spec


def etcd_on(hosts, folder, names=BESIDE):
    return etcd_members(folder / "etcd", [hosts.address(name) for name in names], [hosts.within(name) for name in names])


class watched_steps:
    """The step of a job, looked at all the time: how long it stood still."""

    def __init__(self, job):
        self.job, self.seen, self.is_over = job, [], threading.Event()
        self.thread = threading.Thread(target=self.look)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()

    def look(self):
        while not self.is_over.wait(LOOK_S):
            status = self.job.try_status()
            if status and (not self.seen or status["step"] != self.seen[-1][1]):
                self.seen.append((now_us(), status["step"]))

    def pause_ms(self, moment_us):
        """The longest time without a new step around a moment, as far as looks can tell."""
        near = [at for at, _ in self.seen if moment_us - PAUSE_BEFORE_US <= at <= moment_us + PAUSE_AFTER_US]
        return max((later - before for before, later in zip(near, near[1:])), default=PAUSE_AFTER_US) / 1000


def places(job):
    """Role -> host, as the events of the job tell it so far."""
    return {f"{event['role']} {event['index']}": event["host"] for event in job.events("role-placed")}


def coordinator_host(job):
    return places(job).get("coordinator 0")


def lose_host(hosts, etcd, name):
    """Its link goes, then all of dlrun that runs there, and what it had on its disk; the member of the etcd there is cut off."""
    hosts.lose(name, spared=etcd.pids())
    hosts.folder_of(name).mkdir(parents=True)


def cut_from_etcd(hosts, name):
    """No member of an etcd on another host hears this one, or is heard by it."""
    ports = f"{CLIENT_PORT}-{PEER_PORT + 10 * len(BESIDE)}"
    hosts.drop(name, f"tcp sport {ports} drop; iif lan tcp dport {ports}")


def lose_coordinator_host(job, hosts, etcd):
    """@returns when it was lost, in microseconds, after another coordinator is up and the host is back."""
    lost, joined = coordinator_host(job), len(job.events("host-joined"))
    expect(lost != hosts.names[0], f"the coordinator is on {lost}, with the root")
    moment = now_us()
    lose_host(hosts, etcd, lost)
    job.wait_for(lambda status: coordinator_host(job) != lost and all_run(status), "another coordinator is up")
    hosts.set_link(lost, "up")
    wait_until(lambda: len(job.events("host-joined")) > joined, f"{lost} is back")
    return moment


def lose_leader(etcd, number):
    """Kills or stops the leader, in turns, until another leads, and lets it come back. @returns when, in microseconds"""
    moment = now_us()
    etcd.lose_leader(by_kill=number % 2 == 0)
    return moment


def spared(job, hosts):
    """Starts of coordinators that ended by themselves, since an etcd on a busy machine did not answer for five seconds, as their logs
    say."""
    logs = [log for folder in (job.run_dir, hosts.folder) for log in folder.rglob("coordinator-0.log")]
    return {int(start) for log in logs for start in WITHOUT_JOURNAL.findall(log.read_text(errors="replace"))}


def may_have_ended(job, hosts):
    """Roles that are no loss."""
    return {"coordinator"} if spared(job, hosts) else set()


def expect_no_recovery(job, hosts, report):
    """But of those."""
    expect({one["role"] for one in report["recoveries"]} <= may_have_ended(job, hosts), f"nobody was to be replaced: {report['recoveries']}")


def expect_others_lived(job, hosts):
    """No role has ended but with the host that it was on, and those."""
    for event in job.events("role-exited"):
        is_spared = event["role"] == "coordinator" and event["incarnation"] in spared(job, hosts)
        expect(is_spared or "is lost with host" in event["text"], f"a role ended on a host that was not lost: {event['text']}")
