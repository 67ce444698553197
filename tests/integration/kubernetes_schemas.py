"""Holds objects to the schemas of Kubernetes: run by the Python of .cache/kubernetes, which scripts/install_dependencies makes.

kubernetes_schemas.py VERSION... < FILE: says what is wrong with each object of the YAML file, in each version; nothing when all is well.
Strict: a key that a schema does not have is wrong.
"""

import functools
import pathlib
import subprocess
import sys

ENVIRONMENT = pathlib.Path(__file__).resolve().parents[2] / ".cache/kubernetes"
OLDEST, NEWEST = 29, 37  # docs/kubernetes.md says why no older ones; the newest that there is
VERSIONS = tuple(f"1.{minor}" for minor in range(OLDEST, NEWEST + 1))


class no_schemas(Exception):
    """They are not installed."""


def problems_of(text, *versions):
    """@returns a line for each"""
    python = ENVIRONMENT / "bin/python3"
    if not (ENVIRONMENT / "requirements.txt").exists():
        raise no_schemas("scripts/install_dependencies --with-check installs the schemas of Kubernetes")
    done = subprocess.run([str(python), "-B", __file__, *(versions or VERSIONS)], input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return done.stdout.splitlines()


def main(versions):
    from kubernetes_validate import utils  # where this is run as a program
    import yaml

    utils.schema_contents = functools.cache(utils.schema_contents)  # of each version megabytes, which each object would read anew
    objects = list(yaml.safe_load_all(sys.stdin.read()))
    for version in versions:
        for one in objects:
            try:
                utils.validate(one, version, strict=True)
            except (utils.ValidationError, utils.SchemaNotFoundError) as why:
                print(f"{version}: {one.get('kind')}: {why.message.splitlines()[0]}")
        utils.schema_contents.cache_clear()


if __name__ == "__main__":
    main(sys.argv[1:])
