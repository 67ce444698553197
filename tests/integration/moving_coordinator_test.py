"""One job on four hosts with its journal in an etcd: the coordinator is on any of them, and losing its host costs nobody else."""

import coordinator_losses as losses
import cut_connections
import paused_runs
from bench_case import main
from dlrun_job import all_run, pid_of
from etcd_members import no_etcd
from hosts_case import on_several_hosts

LOSSES = 2  # scripts/acceptance/coordinator_losses has more
EPOCHS = 6


class moving_coordinator(on_several_hosts):
    host_count = losses.JOB_HOSTS

    def setUp(self):
        super().setUp()
        self.etcd = self.enter_or_skip(losses.etcd_on(self.hosts, self.bench.folder), no_etcd)
        self.spec = self.unhurried(paused_runs.with_pauses(losses.make_spec(self.data, EPOCHS)))

    def start(self):
        cluster = {**self.spec["cluster"], "journal": self.etcd.journal()}
        return self.hosts.start(self.bench, {**self.spec, "cluster": cluster}, self.list)

    def expect_same_bits(self, job):
        self.pauses.end()
        report = job.expect_complete(may_redo=True)
        self.assertEqual(report["parameters_sha256"], self.undisturbed(self.spec)["parameters_sha256"])
        return report

    def test_its_host_is_lost_again_and_again(self):
        with self.start() as job:
            job.wait_until_all_run()
            with losses.watched_steps(job) as steps:
                moments = [losses.lose_coordinator_host(job, self.hosts, self.etcd) for _ in range(LOSSES)]
                self.expect_same_bits(job)
        losses.expect_others_lived(job, self.hosts)
        print("pauses of steps, ms:", sorted(round(steps.pause_ms(moment)) for moment in moments))

    def test_the_leader_of_the_etcd_is_killed_and_stands_still(self):
        with self.start() as job:
            job.wait_until_all_run()
            with losses.watched_steps(job) as steps:
                moments = [losses.lose_leader(self.etcd, number) for number in range(LOSSES)]
                report = self.expect_same_bits(job)
        self.etcd.expect_no_restart(report)
        print("pauses of steps, ms:", sorted(round(steps.pause_ms(moment)) for moment in moments))

    def test_a_connection_that_is_cut_costs_it_nothing_and_it_hears_again_what_is_wanted(self):
        with self.start() as job:
            with job.held_from_step(1, all_run) as status:
                ports = cut_connections.ports_of(job.root.pid)
                self.assertEqual(cut_connections.cut_connections(pid_of(status, "coordinator"), ports), 1)
                code, _, complaint = job.ask("scale", "--workers", "2")
                self.assertEqual(code, 0, complaint)
            report = self.expect_same_bits(job)
        losses.expect_no_recovery(job, self.hosts, report)

    def test_it_moves_when_its_host_alone_has_no_way_to_the_etcd(self):
        with self.start() as job:
            job.wait_until_all_run()
            cut_off = losses.coordinator_host(job)
            losses.cut_from_etcd(self.hosts, cut_off)
            job.wait_for(lambda status: losses.coordinator_host(job) != cut_off and all_run(status), "another coordinator is up")
            report = self.expect_same_bits(job)
        self.assertEqual({one["role"] for one in report["recoveries"]}, {"coordinator"})
        self.assertEqual(job.events("host-lost"), [])

    def test_it_is_off_the_hosts_of_the_root_and_the_ps_shards_and_says_why(self):
        with self.start() as job:
            job.wait_until_all_run()
            told = [event["text"] for event in job.events("role-placed")]
            self.expect_same_bits(job)
        self.assertIn("coordinator 0 runs on host beta: its journal is in an etcd, and no PS shard is there", told)
        self.assertNotIn("beta", [host for role, host in losses.places(job).items() if role.startswith("ps_shard")])


if __name__ == "__main__":
    main()
