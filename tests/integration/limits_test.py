"""What a user, a container or a network namespace does not let a job have, and paths that lead nowhere: said before anything is made."""

import os
import re
import resource
import subprocess
import unittest

from bench_case import main
from shell_case import shell_case


class open_files(shell_case):
    def test_descriptors_that_were_left_open_count(self):
        self.trained()
        opened = "for i in $(seq 40); do exec {fd}</dev/null; done"
        answer = self.shell(f"ulimit -n 90; {opened}; $DLRUN train job.yaml --run-dir again")
        self.assertEqual(answer.returncode, 1, answer)
        self.assertIn("with 40 that are open already", answer.stderr.decode())
        self.assertFalse((self.folder / "again").exists())
        answer = self.shell(f"ulimit -n 400; {opened}; $DLRUN train job.yaml --run-dir again")
        self.assertEqual(answer.returncode, 0, answer)


@unittest.skipIf(os.geteuid() != 0, "only root can be another user")
class few_threads(shell_case):
    """Of a user who runs nothing else. Root may have any number."""

    USER = 64123

    def as_user(self, count, *words):
        self.folder.chmod(0o755)
        (self.folder / "own").mkdir(exist_ok=True)
        os.chown(self.folder / "own", self.USER, self.USER)
        return self.dlrun(*words, user=self.USER, group=self.USER, extra_groups=[],
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (count, count)))

    def test_are_refused_whatever_their_number(self):
        for count in (2, 3, 5, 10, 20, 30, 40, 50):
            with self.subTest(count):
                answer = self.as_user(count, "train", "job.yaml", "--run-dir", "own/run")
                said = answer.stderr.decode(errors="replace")
                self.assertEqual(answer.returncode, 1, said)
                for word in ("threads", f"the user may have {count} (ulimit -u)", "cluster.workers"):
                    self.assertIn(word, said.splitlines()[-1])
                self.assertFalse((self.folder / "own" / "run").exists())

    def test_are_enough_when_there_are_as_many_as_are_named(self):
        said = self.as_user(20, "train", "job.yaml", "--run-dir", "own/run").stderr.decode()
        needed = int(re.search(r"about (\d+) threads", said)[1])
        answer = self.as_user(needed + 1, "train", "job.yaml", "--run-dir", "own/run")
        self.assertEqual(answer.returncode, 0, answer)

    def test_do_not_concern_root(self):
        answer = self.shell("ulimit -u 5; $DLRUN train job.yaml --run-dir run")
        self.assertEqual(answer.returncode, 0, answer)

    def test_are_found_by_doctor(self):
        (self.folder / "hosts.yaml").write_text("hosts:\n- {name: here, address: 127.0.0.1}\n")
        answer = self.as_user(24, "doctor", "job.yaml", "--hosts", "hosts.yaml")
        self.assertNotEqual(answer.returncode, 0, answer)
        self.assertRegex((answer.stdout + answer.stderr).decode(), r"processes.*ulimit -u")


@unittest.skipIf(subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode, "no network namespace can be made here")
class no_loopback(shell_case):
    def train(self, channel):
        return self.shell(f"unshare -n $DLRUN train job.yaml --run-dir {channel} --set cluster.tensor_channel={channel}")

    def test_is_told_where_tensors_would_go_by_it(self):
        answer = self.train("tcp")
        self.assertEqual(answer.returncode, 1, answer)
        for word in ("127.0.0.1", "ip link set lo up", "shared_memory"):
            self.assertIn(word, answer.stderr.decode())
        self.assertFalse((self.folder / "tcp").exists())

    def test_does_not_matter_where_they_do_not(self):
        answer = self.train("shared_memory")
        self.assertEqual(answer.returncode, 0, answer)


if __name__ == "__main__":
    main()
