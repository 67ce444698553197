"""A host on which no role comes up does not end the job: roles start elsewhere, and there again once it is well."""

import os
import signal

from bench_case import main
from dlrun_job import wait_until
from hosts_case import on_several_hosts

STEP = 20
BUDGET = 4  # restarts: fewer than a host that is bad for ever would use


class a_host_that_is_bad(on_several_hosts):
    def test_gets_no_roles_and_the_bits_are_the_same(self):
        spec = self.small_job(restart={"intensity": BUDGET})
        with self.start(spec) as job:
            with job.held_from_step(STEP) as status:
                where = {event["index"]: event["host"] for event in job.events("role-placed") if event["role"] == "worker"}
                worker = next(index for index, host in where.items() if host == "beta")
                logs = self.hosts.folder_of("beta") / "run" / "logs"
                logs.rename(logs.with_name("logs-before"))
                logs.write_text("where the logs of roles should be")  # so no role can begin there
                pid = next(role["pid"] for role in status["roles"] if (role["role"], role["index"]) == ("worker", worker))
                os.kill(pid, signal.SIGKILL)
            event = wait_until(lambda: job.events("host-avoided"), "beta is avoided")[0]
            self.assertEqual(event["host"], "beta")
            self.assertIn("logs", event["text"])
            moved = wait_until(lambda: [one for one in job.events("role-placed")
                                        if (one["role"], one["index"]) == ("worker", worker)][1:], "the worker is elsewhere")
            self.assertNotEqual(moved[0]["host"], "beta")
            logs.unlink()
            logs.with_name("logs-before").rename(logs)
            report = self.expect_same_bits(job, spec)
        self.assertLessEqual(len(report["recoveries"]), BUDGET)


if __name__ == "__main__":
    main()
