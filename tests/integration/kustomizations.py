"""The kustomizations of deploy/k8s, rendered in a copy, as they are and with a wrong field."""

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
KEY = re.compile(r"(?<=[\s{,-])[A-Za-z][A-Za-z0-9]*(?=:)|(?<=~1)[a-z-]+$|(?<=/)[a-zA-Z]+(?=/|$)", re.M)


def rendering_words():
    """The command that renders a folder; empty: there is none."""
    if INSTALLED.exists():
        return [INSTALLED, "build"]
    if shutil.which("kustomize"):
        return ["kustomize", "build"]
    return ["kubectl", "kustomize"] if shutil.which("kubectl") else []


def is_overlay(file):
    return file.parts[-3] == "overlays"


class kustomize_tree:
    """A copy in that folder."""

    def __init__(self, parent, source=SOURCE):
        self.folder = pathlib.Path(parent, "k8s")
        shutil.copytree(source, self.folder, dirs_exist_ok=True)
        self.files = sorted(file for kind in ("components", "overlays") for file in (self.folder / kind).rglob("kustomization.yaml"))

    def folder_of(self, file):
        """What is rendered to see what that file does: of a component the base with it."""
        if is_overlay(file) or file.parent.name == "base":
            return file.parent
        using = self.folder / "with" / file.parent.name
        using.mkdir(parents=True, exist_ok=True)
        (using / "kustomization.yaml").write_text(yaml.safe_dump({"resources": ["../../base"], "components": [f"../../components/{file.parent.name}"]}))
        return using

    def rendered(self, file):
        """@returns its text; None: kustomize says that something is wrong"""
        done = subprocess.run([*rendering_words(), self.folder_of(file)], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None

    def wrong_fields(self):
        """Those that can be planted: file within the tree -> where in it the names of keys end."""
        planted = {}
        for file in (file for one in [*self.files, self.folder / "base/kustomization.yaml"] for file in one.parent.glob("*.yaml")):
            text = file.read_text()
            body = text.find("apiVersion") - 1
            if body < 0:
                continue  # the job, of which kustomize knows nothing
            planted[str(file.relative_to(self.folder))] = [one.end() for one in KEY.finditer(text) if one.start() > body]
        return planted


class planter:
    """Plants wrong fields in a copy of its own."""

    def __init__(self, source):
        self.parent = tempfile.TemporaryDirectory()
        self.tree = kustomize_tree(self.parent.name, source)
        self.right = {}  # what is made of each file as it is

    def is_caught(self, name, end):
        file = self.tree.folder / name
        if name not in self.right:
            self.right[name] = self.tree.rendered(file)
        text = file.read_text()
        file.write_text(f"{text[:end]}x{text[end:]}")
        wrong = self.tree.rendered(file)
        file.write_text(text)
        if wrong is None or wrong == self.right[name]:
            return wrong is None
        return read_manifests(wrong) != read_manifests(self.right[name])


own_planter = None  # of each process


def begin_to_plant(source):
    global own_planter
    own_planter = planter(source)


def is_caught(planted):
    """One of wrong_fields(): file, end."""
    return own_planter.is_caught(*planted)
