"""The kustomizations of deploy/k8s, rendered in a copy, as they are and with a wrong field."""

import functools
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import yaml
from small_cluster import read_manifests

ROOT = pathlib.Path(__file__).resolve().parents[2]
SOURCE = ROOT / "deploy/k8s"
INSTALLED = ROOT / ".cache/kustomize/kustomize"  # by scripts/install_kustomize
FIELD = re.compile(r"(?<=[\s{,-])[A-Za-z]\w*(?=:)")
FIELD_OR_PART_OF_PATH = re.compile(FIELD.pattern + r"|(?<=~1)[a-z-]+$|(?<=/)[a-zA-Z]+(?=/|$)", re.M)
ONE_CORE = {"GOMAXPROCS": "1", "GOGC": "off"}  # a rendering ends before it pays to have more, and others run beside it


class no_kustomize(Exception):
    """None is here."""


@functools.cache
def rendering_words():
    """The command that renders a folder. Raises no_kustomize."""
    if INSTALLED.with_name("sha256").exists():  # which is written when all else is there
        return [INSTALLED, "build"]
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    if shutil.which("kubectl"):
        return ["kubectl", "kustomize"]
    raise no_kustomize("no kustomize is here: scripts/install_kustomize fetches it, and kubectl has one too")


def is_of_component(file):
    return file.parts[-3] == "components"


def ends_of_fields(text, what=FIELD):
    """Where their names end in it."""
    return [one.end() for one in what.finditer(text)]


def with_wrong_field(text, end):
    """That of which the name ends there."""
    return f"{text[:end]}x{text[end:]}"


class kustomize_tree:
    """A copy in that folder."""

    def __init__(self, parent, source=SOURCE):
        self.folder = pathlib.Path(parent, "k8s")
        shutil.copytree(source, self.folder, dirs_exist_ok=True)
        self.files = sorted(file for kind in ("base", "components", "overlays") for file in (self.folder / kind).rglob("kustomization.yaml"))

    def folder_of(self, file):
        """What is rendered to see what that file does: of a component the base with it."""
        if not is_of_component(file):
            return file.parent
        using = self.folder / "with" / file.parent.name
        using.mkdir(parents=True, exist_ok=True)
        (using / "kustomization.yaml").write_text(yaml.safe_dump({"resources": ["../../base"], "components": [f"../../components/{file.parent.name}"]}))
        return using

    def rendered(self, file):
        """@returns its text; None: kustomize says that something is wrong"""
        done = subprocess.run([*rendering_words(), self.folder_of(file)], env=os.environ | ONE_CORE, capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    def wrong_fields(self):
        """Those that can be planted: file within the tree -> where in it their names end."""
        planted = {}
        for file in (file for one in self.files for file in one.parent.glob("*.yaml")):
            text = file.read_text()
            body = text.find("apiVersion") - 1
            if body < 0:
                continue  # the job, of which kustomize knows nothing
            planted[str(file.relative_to(self.folder))] = [end for end in ends_of_fields(text, FIELD_OR_PART_OF_PATH) if end > body]
        return planted


class planter:
    """Plants wrong fields in a copy of its own, within the parent, whose owner removes it: processes of a pool are killed."""

    def __init__(self, source, parent):
        self.tree = kustomize_tree(tempfile.mkdtemp(dir=parent), source)
        self.right = {}  # what is made of each file as it is

    def is_caught(self, name, end):
        file = self.tree.folder / name
        if name not in self.right:
            self.right[name] = read_manifests(self.tree.rendered(file))
        text = file.read_text()
        file.write_text(with_wrong_field(text, end))
        wrong = self.tree.rendered(file)
        file.write_text(text)
        return wrong is None or read_manifests(wrong) != self.right[name]


own_planter = None  # of each process


def begin_to_plant(source, parent):
    global own_planter
    own_planter = planter(source, parent)


def is_caught(planted):
    """One of wrong_fields(): file, end."""
    return own_planter.is_caught(*planted)
