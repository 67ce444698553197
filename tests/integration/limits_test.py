"""What a user, a container or a network namespace does not let a job have, and paths that lead nowhere: said before anything is made."""

import contextlib
import json
import os
import pathlib
import re
import resource
import subprocess
import unittest

from bench_case import main
from shell_case import shell_case
from waiting import wait_until


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
        return self.ask(*words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (count, count)))

    def ask(self, *words, **options):
        """Of a job of that user."""
        return self.dlrun(*words, user=self.USER, group=self.USER, extra_groups=[], **options)

    def has_processes(self):
        """Whether that user has some that have not ended."""
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
                if int(fields["Uid"].split()[0]) == self.USER and not fields["State"].startswith(("Z", "X")):
                    return True
        return False

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

    def test_are_too_few_for_more_workers_of_a_job_that_runs(self):
        said = self.as_user(20, "train", "job.yaml", "--run-dir", "own/run").stderr.decode()
        count = int(re.search(r"about (\d+) threads", said)[1]) + 10
        answer = self.as_user(count, "train", "job.yaml", "--run-dir", "own/run", "--detach", "--set", "train.epochs=1000000", "--set",
                              "train.microbatches_per_step=12")
        self.assertEqual(answer.returncode, 0, answer)
        try:
            answer = self.ask("scale", "own/run", "--workers", "9")
            self.assertEqual(answer.returncode, 1, answer)
            for word in ("the workers that would come", f"the user may have {count} (ulimit -u)"):
                self.assertIn(word, answer.stderr.decode())
            self.assertEqual(json.loads(self.ask("status", "own/run", "--json").stdout)["workers"]["wanted"], 1)
        finally:
            self.ask("stop", "own/run")
            wait_until(lambda: not self.has_processes(), "nothing runs any more")

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


class places_that_are_none(shell_case):
    def expect_said(self, command, *words):
        answer = self.shell(command)
        said = answer.stderr.decode()
        self.assertEqual(answer.returncode, 2, f"{command}\n{said}")
        for word in words:
            self.assertIn(word, said, command)
        self.assertEqual(len(said.splitlines()), 1, said)
        return said

    def test_a_folder_that_one_is_in_is_not_to_be_removed(self):
        for folder in ("/", ".", ".."):
            said = self.expect_said(f"$DLRUN train job.yaml --run-dir {folder}", "is not empty", "choose another")
            self.assertNotIn("remove it", said)
        (self.folder / "full").mkdir()
        (self.folder / "full" / "file").touch()
        self.expect_said("$DLRUN train job.yaml --run-dir full", "remove it, or choose another")

    def test_a_current_folder_that_was_removed_is_told(self):
        gone = "mkdir gone; cd gone; rmdir ../gone;"
        for verb in ("train ../job.yaml", f"train {self.folder}/job.yaml", "resume run", "validate job.yaml", "export run"):
            answer = self.shell(f"{gone} $DLRUN {verb}")
            self.assertNotEqual(answer.returncode, 0, answer)
            self.assertIn("the current folder is gone: change into another one", answer.stderr.decode(), verb)

    def test_a_link_that_leads_to_itself_is_not_no_file(self):
        (self.folder / "loop").symlink_to("loop")
        self.expect_said("$DLRUN validate loop", "symbolic link")
        for verb in ("status", "stop", "resume", "export"):
            self.expect_said(f"$DLRUN {verb} loop", "Too many levels of symbolic links")

    def test_a_folder_that_is_not_there_is_told_as_such(self):
        for verb in ("status", "stop"):
            self.expect_said(f"$DLRUN {verb} nowhere", "'nowhere' is not the folder of a running job: it does not exist")
        self.expect_said("$DLRUN status .", "is not the folder of a running job")

    def test_lines_that_end_with_a_carriage_return_alone_are_told(self):
        text = (self.folder / "job.yaml").read_text() + "\n"
        (self.folder / "old.yaml").write_bytes(("# a comment\n" + text).replace("\n", "\r").encode())
        self.expect_said("$DLRUN validate old.yaml", "old.yaml", "carriage return")
        (self.folder / "dos.yaml").write_bytes(text.replace("\n", "\r\n").encode())
        self.assertEqual(self.shell("$DLRUN validate dos.yaml").returncode, 0)

    def test_no_threads_are_refused(self):
        self.trained()
        for verb in ("evaluate run", "predict run --input t.csv"):
            answer = self.shell(f"$DLRUN {verb} --threads 0")
            self.assertEqual(answer.returncode, 2, answer)
            self.assertIn("--threads: expected a whole number from 1 to 4096, found '0'", answer.stderr.decode())


if __name__ == "__main__":
    main()
