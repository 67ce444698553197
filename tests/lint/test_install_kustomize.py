"""scripts/install_kustomize, with a package that is made here, and an apt-get that hands it out."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
APT_GET = """#!/bin/bash
echo "$@" >> {asked}
case " $* " in
  *" indextargets "*) if [[ -e {lists} || $* == *Dir::State=* ]]; then echo http://mirror.example/debian; fi ;;
  *" download "*) cp {package} . ;;
  *" update "*) [[ $* != *sourcelist=* ]] || cp "$(echo "$@" | sed 's/.*sourcelist=\\([^ ]*\\).*/\\1/')" {sources}; exit {update} ;;
esac
"""


class installation_of_kustomize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.script, self.installed = (self.folder / "checkout" / name for name in ("scripts/install_kustomize", ".cache/kustomize"))
        self.temporary = self.folder / "tmp"
        for path in (self.script.parent, self.folder / "fakes", self.temporary):
            path.mkdir(parents=True)
        self.package = self.make_package("echo kustomize")
        text = (ROOT / "scripts/install_kustomize").read_text()
        digest = hashlib.sha256(self.package.read_bytes()).hexdigest()
        self.script.write_text(re.sub(r"(?m)^sha256=.*$", f"sha256={digest}", text))
        self.script.chmod(0o755)
        self.lists = self.folder / "lists"  # apt has some
        self.lists.touch()
        self.fake_apt()

    def make_package(self, command):
        tree = self.folder / "tree"
        for path in ("DEBIAN", "usr/bin"):
            (tree / path).mkdir(parents=True, exist_ok=True)
        (tree / "DEBIAN/control").write_text("Package: kustomize\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody <nobody@example.com>\nDescription: none\n")
        (tree / "usr/bin/kustomize").write_text(f"#!/bin/sh\n{command}\n")
        (tree / "usr/bin/kustomize").chmod(0o755)
        made = self.folder / "kustomize_1_amd64.deb"
        subprocess.run(["dpkg-deb", "--build", "--root-owner-group", tree, made], check=True, capture_output=True)
        return made

    def fake_apt(self, update=0):
        fake = self.folder / "fakes/apt-get"
        fake.write_text(APT_GET.format(asked=self.folder / "asked", lists=self.lists, package=self.package, sources=self.folder / "sources", update=update))
        fake.chmod(0o755)

    def install(self):
        environment = {**os.environ, "PATH": f"{self.folder / 'fakes'}:{os.environ['PATH']}", "TMPDIR": str(self.temporary)}
        done = subprocess.run([self.script], env=environment, capture_output=True, text=True, timeout=60)
        self.assertEqual(list(self.temporary.iterdir()), [], "nothing is left behind")
        return done

    def asked(self):
        return (self.folder / "asked").read_text() if (self.folder / "asked").exists() else ""

    def test_unpacks_what_apt_fetches_from_the_mirror_of_this_machine(self):
        done = self.install()
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(subprocess.run([self.installed / "kustomize"], capture_output=True, text=True).stdout, "kustomize\n")
        sources = (self.folder / "sources").read_text()
        for line in ("URIs: http://mirror.example/debian", "Suites: trixie", "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg"):
            self.assertIn(line, sources.splitlines())
        for line in self.asked().splitlines()[1:]:
            self.assertIn("Dir::State=", line, "what apt knows of this machine stays as it is")

    def test_which_also_a_machine_without_lists_of_packages_has(self):
        self.lists.unlink()
        self.assertEqual(self.install().returncode, 0)
        self.assertIn("URIs: http://mirror.example/debian", (self.folder / "sources").read_text().splitlines())
        for line in self.asked().splitlines()[1:]:
            self.assertIn("Dir::State=", line, "what apt knows of this machine stays as it is")

    def test_that_is_there_is_left_alone(self):
        self.install()
        asked = self.asked()
        done = self.install()
        self.assertEqual((done.returncode, self.asked()), (0, asked))
        self.assertIn("is installed in", done.stdout)

    def test_of_which_a_part_is_there_is_done_again(self):
        self.install()
        (self.installed / "sha256").unlink()
        self.assertIn("installed kustomize", self.install().stdout)
        self.assertTrue((self.installed / "sha256").exists())

    def test_refuses_another_package(self):
        self.package = self.make_package("echo something else")
        done = self.install()
        self.assertEqual((done.returncode, self.installed.exists()), (1, False))
        self.assertIn("is not the package that this script knows", done.stderr)

    def test_says_from_where_it_cannot_be_had(self):
        self.fake_apt(update=100)
        done = self.install()
        self.assertEqual((done.returncode, self.installed.exists()), (1, False))
        self.assertIn("from http://mirror.example/debian", done.stderr)


if __name__ == "__main__":
    unittest.main()
