"""Holds objects to the schemas of Kubernetes: run by the Python of .cache/kubernetes, which scripts/install_dependencies makes.

kubernetes_schemas.py VERSION...: reads a list of objects as JSON in each line, and answers each with a list of what is wrong in which version.
Strict: a key that a schema does not have is wrong.
"""

import atexit
import functools
import json
import pathlib
import subprocess
import sys

ENVIRONMENT = pathlib.Path(__file__).resolve().parents[2] / ".cache/kubernetes"
OLDEST, NEWEST = 27, 37  # that any job runs on; that there is
OLDEST_FOR_ALL = "1.29"  # docs/kubernetes.md says which jobs run on older ones
VERSIONS = tuple(f"1.{minor}" for minor in range(OLDEST, NEWEST + 1))
UNKNOWN_TO_OLDEST = "'podReplacementPolicy' was unexpected"  # and 1.28 does not heed it
REFUSED_BY_OLDEST = f"{VERSIONS[0]}: Job: Additional properties are not allowed ({UNKNOWN_TO_OLDEST})"


class no_schemas(Exception):
    """They are not installed."""


def problems_of(objects):
    """In all versions. @returns a line for each"""
    if not (ENVIRONMENT / "requirements.txt").exists():
        raise no_schemas("scripts/install_dependencies --with-check installs the schemas of Kubernetes")
    process = reader_of_schemas()
    print(json.dumps(list(objects)), file=process.stdin, flush=True)
    answer = process.stdout.readline()
    if not answer:
        raise AssertionError("the reader of the schemas has ended")
    return [": ".join(one) for one in json.loads(answer)]


@functools.cache
def reader_of_schemas():
    """Reads them once, and lives as long as this program."""
    process = subprocess.Popen([ENVIRONMENT / "bin/python3", "-B", __file__, *VERSIONS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


class held_to_schemas:
    """Base of tests that hold objects to them."""

    def problems(self, objects):
        try:
            return problems_of(objects)
        except no_schemas as why:
            return self.leave_out(why)

    def expect_fits_kubernetes(self, objects):
        """In all versions; but the oldest one refuses jobs whose control pods may not overlap, for that field alone."""
        objects = list(objects)
        refused = [REFUSED_BY_OLDEST for one in objects if "podReplacementPolicy" in one.get("spec", {})]
        self.assertEqual(self.problems(objects), refused)


class schemas_of:
    """Those of a version of Kubernetes."""

    def __init__(self, version):
        from kubernetes_validate import utils  # where this is run as a program
        from referencing import Registry, Resource

        self.utils, self.version = utils, version
        self.full = next(one for one in utils.all_versions() if utils.major_minor(one) == version)
        self.definitions = (Resource.from_contents(self.contents("_definitions")) @ Registry()).crawl()
        self.validator_of = functools.cache(self.make_validator)

    def contents(self, name):
        return self.utils.schema_contents(f"kubernetes-json-schema/v{self.full}-local-strict/{name}.json", self.version)

    def make_validator(self, kind, api_version):
        from jsonschema import Draft202012Validator

        group, _, version = api_version.rpartition("/")
        api = "-".join(filter(None, (group.split(".")[0], version)))
        return Draft202012Validator(self.contents(f"{kind.lower()}-{api}"), registry=self.definitions)

    def problems_of(self, one):
        """What is known of the oldest version, and the worst of all else."""
        from jsonschema.exceptions import best_match

        try:
            validator = self.validator_of(one["kind"], one["apiVersion"])
        except FileNotFoundError:
            return ["there is no such kind of object"]
        errors = list(validator.iter_errors(one))
        known = [error for error in errors if UNKNOWN_TO_OLDEST in error.message]
        worst = best_match(error for error in errors if UNKNOWN_TO_OLDEST not in error.message)
        return [error.message.splitlines()[0] for error in (*known, worst) if error]


def main(versions):
    schemas = [schemas_of(version) for version in versions]
    for line in sys.stdin:
        objects = json.loads(line)
        print(json.dumps([(of.version, one["kind"], problem) for of in schemas for one in objects for problem in of.problems_of(one)]), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
