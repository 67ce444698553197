"""Images of scripts/build_image."""

import atexit
import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

BUILD_IMAGE = pathlib.Path(__file__).resolve().parents[2] / "scripts/build_image"
NAME = "dlrun:test"


class no_image(Exception):
    """It cannot be built here, and why."""


def build(program, file, *words, **options):
    """@param options of subprocess.run  @returns what is said, the digest last"""
    if not shutil.which("umoci"):
        raise no_image("scripts/install_dependencies --with-image installs what images are built with")
    done = subprocess.run([BUILD_IMAGE, "--program", os.path.realpath(program), "--output", file, "--tag", NAME, *words], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout


def unpack(file, folder):
    """@returns the folder that is the root of its containers"""
    subprocess.run(["tar", "-x", "-f", file, "--one-top-level=layout"], cwd=folder, check=True)
    subprocess.run(["umoci", "unpack", "--image", f"layout:{NAME}", "bundle"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(folder / "layout")
    return folder / "bundle/rootfs"


@functools.cache
def root_of(program):
    """Of the image of that program: made once a test program, and gone when that ends."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dlrun-image-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    build(program, folder / "image.tar")
    return unpack(folder / "image.tar", folder)
