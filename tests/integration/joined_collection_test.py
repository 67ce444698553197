"""The same as model_collection_test.py, of hosts that came by themselves, with a key or a token: they leave with success only when the
model is in the run folder."""

import secrets
import shutil

from bench_case import main
from end_case import COMPLETED, FAILED, ends_on_several_hosts
from join_case import lets_hosts_join

SHORT_GRACE_S = 3


class joined_hosts(lets_hosts_join, ends_on_several_hosts):
    hosts_min = 3

    def setUp(self):
        super().setUp()
        self.key = self.bench.folder / "key"
        self.key.write_text(secrets.token_hex(32) + "\n")
        self.key.chmod(0o600)
        self.write_list(hosts_min=self.hosts_min, key_file="key")

    def keyed(self, name):
        return self.agent(name, options=("--key-file", str(self.key)))

    def all_keyed(self):
        return [self.keyed(name) for name in self.hosts.names[1:]]

    def expect_ends(self, agents, exit_code):
        self.assertEqual([one.wait() for one in agents], [exit_code] * len(agents), "".join(one.said() for one in agents))

    def expect_waiting(self, agents):
        self.assertEqual([one.process.poll() for one in agents], [None] * len(agents), "".join(one.said() for one in agents))


class comes_together(joined_hosts):
    def test_from_hosts_with_a_key_that_waited_for_the_next_root(self):
        agents = self.all_keyed()
        job, spec = self.begin()
        with self.collecting(job):
            report = self.kill_root(job)
        self.expect_waiting(agents)
        job.begin()
        self.expect_whole(job, spec, report)
        self.expect_ends(agents, COMPLETED)

    def test_from_hosts_with_a_token_which_need_no_other_one(self):
        job, spec = self.begin()
        agents = [self.agent(name, self.token(job)) for name in self.hosts.names[1:]]
        with self.ending(job):
            report = self.kill_root(job)
        self.expect_waiting(agents)
        job.begin()
        self.expect_whole(job, spec, report)
        self.expect_ends(agents, COMPLETED)

    def test_from_hosts_that_join_again_with_the_key_or_with_a_new_token(self):
        agents = self.all_keyed()
        job, spec = self.begin(self.small_job(orphan_grace_s=SHORT_GRACE_S))
        with self.collecting(job):
            report = self.kill_root(job)
        self.expect_ends(agents, FAILED)
        job.begin()
        again = [self.keyed("beta"), self.agent("gamma", self.token(job))]
        self.expect_whole(job, spec, report)
        self.expect_ends(again, COMPLETED)


class says_what_is_missing(joined_hosts):
    def test_and_lets_no_host_leave_with_success(self):
        agents = dict(zip(self.hosts.names[1:], self.all_keyed()))
        job, spec = self.begin()
        kept = self.bench.folder / "kept"
        with self.collecting(job) as holder:
            report = self.kill_root(job)
            agents[holder].process.kill()
            self.hosts.kill_all(holder)
            self.hosts.folder_of(holder).rename(kept)
            self.hosts.folder_of(holder).mkdir()
        self.keyed(holder)
        job.begin()
        self.assertEqual(job.wait_end(), FAILED, job.output())
        self.expect_told(job.output().splitlines()[-1], holder)
        self.expect_not_whole(job, holder)
        self.expect_waiting([one for name, one in agents.items() if name != holder])
        self.hosts.kill_all(holder)
        shutil.rmtree(self.hosts.folder_of(holder))
        kept.rename(self.hosts.folder_of(holder))
        agents[holder] = self.keyed(holder)
        job.begin()
        self.expect_whole(job, spec, report)
        self.expect_ends(list(agents.values()), COMPLETED)


if __name__ == "__main__":
    main()
