"""Whoever is not a process of the job gets no word in: no network port is open, another user is refused, and so is who talks nonsense."""

import contextlib
import os
import random
import signal
import socket
import unittest

import hostile_runs
from bench_case import bench_case, main
from dlrun_job import all_run
from doors import GREETING, NOBODY, listening, network_sockets, said_as, sockets_of, talk
from hosts_case import WORKERS, on_several_hosts

ENDLESS = 100000
SESSIONS = 60  # with each socket of the job
OF_EACH_KIND, ATTACK_S = 20, 2
REFUSED_WITHIN_S = 30  # on however busy a machine


class strangers(bench_case):
    def pids_in(self, job, status):
        return {role["pid"] for role in status["roles"]} | {job.root.pid}

    def all_pids(self, job):
        return self.pids_in(job, job.wait_until_all_run())

    def test_a_job_opens_no_network_port(self):
        with self.bench.start(self.spec(epochs=ENDLESS, workers=2)) as job:
            sockets = set().union(*(sockets_of(pid) for pid in self.all_pids(job)))
            self.assertTrue(sockets, "its processes talk over sockets")
            self.assertEqual(sockets & network_sockets(), set())
            job.root.send_signal(signal.SIGTERM)
            job.wait_end()

    def test_who_talks_nonsense_or_nothing_changes_nothing(self):
        spec = self.spec(epochs=30, workers=2)
        expected = self.undisturbed(spec)["parameters_sha256"]
        choose = random.Random(7)
        with self.bench.start(spec) as job, contextlib.ExitStack() as peers:
            with job.held_from_step(1, all_run) as status:
                doors = listening(set().union(*(sockets_of(pid) for pid in self.pids_in(job, status))))
                for kind, name in doors:
                    for i in range(SESSIONS):
                        peer = peers.enter_context(socket.socket(socket.AF_UNIX, kind))
                        peer.setblocking(False)
                        with contextlib.suppress(OSError):
                            peer.connect(name)
                            if i % 2:
                                peer.send(choose.randbytes(choose.choice((1, 24, 56, 300, 5000))))
            self.assertEqual(job.wait_end(), 0, job.output())
            self.assertEqual(job.report()["parameters_sha256"], expected)
            self.assertEqual(job.report()["recoveries"], [])

    @unittest.skipUnless(os.geteuid() == 0, "only root can become somebody else")
    def test_another_user_gets_not_one_byte(self):
        with self.bench.start(self.spec(epochs=ENDLESS, workers=2)) as job:
            pids = self.all_pids(job)
            doors = listening(set().union(*(sockets_of(pid) for pid in pids)))
            self.assertGreaterEqual(len(doors), len(pids), "each process can be reached by those of the job")
            said = said_as(NOBODY, lambda: str(sum(talk(kind, name, words) for kind, name in doors
                                                   for words in (GREETING, b"status", bytes(32)))))
            self.assertEqual(said, "0")
            self.assertEqual(job.events("role-exited"), [])
            job.root.send_signal(signal.SIGTERM)
            job.wait_end()


class strangers_of_other_hosts(on_several_hosts):
    host_count = 3  # the last is that of strangers

    def setUp(self):
        super().setUp()
        self.list = self.hosts.write_file(self.bench.folder / "hosts.yaml", count=self.host_count - 1)

    def test_no_listener_talks_to_them_and_the_job_goes_on(self):
        with self.start(self.unhurried(self.small_job(epochs=ENDLESS))) as job:
            job.wait_until_all_run()
            victim = hostile_runs.target(job, self.hosts, WORKERS)
            enemies = hostile_runs.strangers(victim, self.bench.folder, 1)
            self.assertGreater(len(enemies.expect_no_other_port()), WORKERS)
            papers, counted = victim.take_papers(), hostile_runs.totals()
            ways = enemies.ways(papers)
            counted.add(enemies.answer_of(enemies.attack(ways, dict.fromkeys(ways, OF_EACH_KIND), ATTACK_S)))
            enemies.disturb_the_rest(papers, counted)
            self.assertTrue(counted.are_all_refused(REFUSED_WITHIN_S), "\n".join(counted.lines()))
            self.assertEqual(counted.sessions(), OF_EACH_KIND * len(ways))
            victim.take_papers()
            enemies.expect_a_door_opens(papers)  # it was not for any other reason that nobody was let in
            self.assertEqual(job.events("role-exited") + job.events("host-lost"), [])
            job.root.send_signal(signal.SIGTERM)
            job.wait_end()


if __name__ == "__main__":
    main()
