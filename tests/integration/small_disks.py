"""Disks of the size that a test needs, mounted for it. Needs root; `why_not()` says what is missing."""

import os
import pathlib
import shutil
import subprocess
import tempfile

from dlrun_job import wait_until

CHUNK = 1 << 16


def call(*command):
    """@returns what the command complained of; "" when it did its work."""
    try:
        answer = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)
    except OSError as problem:
        return str(problem)
    return "" if answer.returncode == 0 else answer.stderr.strip() or f"{command[0]} ended with {answer.returncode}"


class disk:
    """A file system on a temporary folder. `complaint`: why it could not be mounted."""

    def __init__(self, *mount_options):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dlrun-disk-"))
        self.mount_options = mount_options
        self.mount()

    def mount(self):
        self.complaint = call("mount", *self.mount_options, self.folder)

    def unmount(self):
        if self.folder.is_mount():
            call("umount", "--lazy", self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.unmount()
        self.folder.rmdir()

    def make_read_only(self):
        """Waits until no file on it is open for writing: a killed process is a zombie before its last thread is gone."""
        wait_until(lambda: not call("mount", "-o", "remount,ro", self.folder), f"{self.folder} is read-only")

    def ballast(self):
        return self.folder / "ballast"

    def fill(self):
        """Leaves not a byte."""
        with open(self.ballast(), "ab", buffering=0) as file:
            size = CHUNK
            while size:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2


def in_memory(size):
    """A tmpfs of so many bytes, such as "64m"."""
    return disk("-t", "tmpfs", "-o", f"size={size}", "dlrun-test")


class failing_disk(disk):
    """An ext4 in a file; the kernel makes it read-only when it meets an error, whoever is writing."""

    BYTES = 256 << 20

    def __init__(self, folder):
        self.image = pathlib.Path(folder) / "disk.img"
        with open(self.image, "wb") as file:
            file.truncate(self.BYTES)
        made = call("mkfs.ext4", "-q", "-F", self.image)
        super().__init__(*self.options())
        self.complaint = made or self.complaint or self.complaint_of_trigger()

    def options(self):
        return "-o", "loop,errors=remount-ro", self.image

    def trigger(self):
        device = subprocess.run(["findmnt", "-no", "SOURCE", self.folder], capture_output=True, text=True).stdout
        return pathlib.Path("/sys/fs/ext4") / pathlib.Path(device.strip()).name / "trigger_fs_error"

    def complaint_of_trigger(self):
        return "" if self.trigger().exists() else f"there is no {self.trigger()}"

    def fail(self):
        """What was written so far is on it; from now on it is read-only."""
        os.sync()
        self.trigger().write_text("1")

    def repair(self):
        """A copy of it: tests beside this one, with mount namespaces of their own, may have the failed one mounted for a while."""
        self.unmount()
        failed, self.image = self.image, self.image.with_name("repaired.img")
        call("cp", "--sparse=always", failed, self.image)
        call("e2fsck", "-y", self.image)  # ends with 1 when it repaired something
        self.mount_options = self.options()
        self.mount()


def why_not():
    """Why no disk can be mounted here; "" when one can."""
    if os.geteuid() != 0:
        return "only root can mount a file system"
    if not shutil.which("mount"):
        return "there is no program 'mount'"
    with in_memory("1m") as tried:
        return f"mount is refused here: {tried.complaint}" if tried.complaint else ""
