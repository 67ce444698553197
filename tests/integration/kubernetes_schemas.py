"""Holds objects to the schemas of Kubernetes: run by the Python of .cache/kubernetes, which scripts/install_dependencies makes.

kubernetes_schemas.py VERSION... < FILE: says what is wrong with each object of the YAML file, in each version; nothing when all is well.
Strict: a key that a schema does not have is wrong.
"""

import pathlib
import subprocess
import sys

ENVIRONMENT = pathlib.Path(__file__).resolve().parents[2] / ".cache/kubernetes"
OLDEST, NEWEST = "1.31", "1.37"  # docs/kubernetes.md: from which on Jobs are complete by a successPolicy; the newest that there is


class no_schemas(Exception):
    """They are not installed."""


def problems_of(text, *versions):
    """@returns a line for each"""
    python = ENVIRONMENT / "bin/python3"
    if not (ENVIRONMENT / "requirements.txt").exists():
        raise no_schemas("scripts/install_dependencies --with-check installs the schemas of Kubernetes")
    done = subprocess.run([str(python), "-B", __file__, *(versions or (OLDEST, NEWEST))], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.splitlines()


def main(versions):
    import kubernetes_validate  # where this is run as a program
    import yaml

    for one in yaml.safe_load_all(sys.stdin.read()):
        for version in versions:
            try:
                kubernetes_validate.validate(one, version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as why:
                print(f"{version}: {one.get('kind')}: {why.message.splitlines()[0]}")


if __name__ == "__main__":
    main(sys.argv[1:])
