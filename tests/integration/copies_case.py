"""Base of tests of jobs that keep a copy of each PS shard's store on another host, as jobs of several hosts do."""

from hosts_case import explained, on_several_hosts

STEP = 20


def newest(role):
    """The newest version that the store of a role can restore."""
    return role["store"]["versions"][-1][-1]


class copies(on_several_hosts):
    """PS shard 0 is on alpha, 1 on beta; gamma has the copies of both."""

    log = "every_step"  # or "snapshots"

    def copied_job(self):
        spec = self.unhurried(self.small_job())
        spec["durability"] = {"log": self.log}  # durability.replicas: auto
        return spec

    def roles(self, status, kind):
        return {role["index"]: role for role in status["roles"] if role["role"] == kind}

    def places(self, job):
        """(role, index) -> host"""
        return {role: one["host"] for role, one in explained(job).items()}

    def wait_until_whole(self, job, hosts):
        """@param hosts where the copy of each PS shard is to be whole"""
        def are_whole(status):
            keepers = self.roles(status, "keeper")  # none while the job waits for its hosts
            of_shards = [keepers.get(shard, {}) for shard in range(len(hosts))]
            return ([one.get("state") for one in of_shards] == ["whole"] * len(hosts) and
                    [one.get("store", {}).get("host") for one in of_shards] == hosts)

        return job.wait_for(are_whole, f"the copies on {hosts} are whole")

    def committed(self, job):
        """What is in all copies, and so was committed before, when the job is looked at. All shards make the same snapshots."""
        return min(newest(role) for role in self.roles(job.status(), "keeper").values())

    def begin(self):
        spec = self.copied_job()
        job = self.start(spec)
        self.addCleanup(job.__exit__)
        job.wait_for_step(STEP)
        self.wait_until_whole(job, ["gamma", "gamma"])
        return job, spec

    def expect_nothing_lost(self, job, spec, committed):
        """@param committed by each loss of the host of a PS shard, before it"""
        report = self.expect_same_bits(job, spec, may_redo=True)
        self.expect_committed_kept(report, committed)
        return report
