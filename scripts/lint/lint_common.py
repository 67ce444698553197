"""What the lint scripts share: which files there are, how to read C++ without its comments, how to report."""

import argparse
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess
import sys

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
CPP_SUFFIXES = (".hpp", ".cpp", ".cu")
SKIPPED_FOLDERS = {".git", ".cache", "build", "runs", "__pycache__"}


class finding:
    """One thing that is wrong, at a line of a file (line 0: the file as a whole)."""

    def __init__(self, path, line, message):
        self.path, self.line, self.message = str(path), line, message

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message}" if self.line else f"{self.path}: {self.message}"


def parser(description):
    """Every script takes --root, so that it can be tried on a tree other than its own."""
    result = argparse.ArgumentParser(description=description.strip().splitlines()[0])
    result.add_argument("--root", type=pathlib.Path, default=REPOSITORY, metavar="DIR",
                        help="the source tree to look at (default: this one)")
    return result


def walk(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]  # these are not walked into
        for name in sorted([*names, *links]):
            yield (pathlib.Path(folder) / name).relative_to(root).as_posix()


def all_paths(root):
    """Relative to the root, of everything that is, or could be, under version control."""
    if (root / ".git").exists():
        listing = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                                 check=True, capture_output=True, text=True).stdout
        return sorted(set(listing.split("\0")) - {""})
    return list(walk(root))


def all_files(root):
    return [path for path in all_paths(root) if (root / path).is_file()]


def cpp_files(root, suffixes=CPP_SUFFIXES):
    return [path for path in all_files(root) if path.endswith(suffixes)]


def read(root, path):
    return (root / path).read_text(encoding="utf-8", errors="replace")


CPP_TOKEN = re.compile(
    r'(?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)'
    r'|(?P<raw>R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")'
    r'|(?P<string>"(?:\\.|[^"\\\n])*")'
    r"|(?P<character>(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+')",
    re.DOTALL)


def without_comments(text, keep_strings=False):
    """The text with comments (and the insides of literals) blanked; every line keeps its number."""
    def blank(match):
        if match.group("comment"):
            return re.sub(r"[^\n]", " ", match.group())
        if keep_strings:
            return match.group()
        quote = '"' if not match.group("character") else "'"
        return quote + "\n" * match.group().count("\n") + quote
    return CPP_TOKEN.sub(blank, text)


INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)


def includes(text):
    """(line, '<' or '"', name) of every include directive."""
    code = without_comments(text, keep_strings=True)
    return [(code.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)) for match in INCLUDE.finditer(code)]


def resolve_include(root, name):
    """The file of this tree that an include means, or None for the system's and generated ones."""
    for candidate in (name, f"include/{name}"):
        if (root / candidate).is_file():
            return candidate
    return None


class include_graph:
    """Which files of the tree a file needs, directly and in the end."""

    def __init__(self, root):
        self.root = root
        self.direct_ = {}
        self.closure_ = {}

    def direct(self, path):
        if path not in self.direct_:
            self.direct_[path] = includes(read(self.root, path))
        return self.direct_[path]

    def closure(self, path):
        """`path` and every file of the tree that it includes, however deep, sorted."""
        if path not in self.closure_:
            seen, todo = {path}, [path]
            while todo:
                for _, _, name in self.direct(todo.pop()):
                    target = resolve_include(self.root, name)
                    if target and target not in seen:
                        seen.add(target)
                        todo.append(target)
            self.closure_[path] = sorted(seen)
        return self.closure_[path]


def is_tidied(root, graph, source):
    """Whether clang-tidy looks at a source (why not at all: tidy.py)."""
    return not source.startswith("tests/") and not any("#include <caf/" in read(root, path) for path in graph.closure(source))


class passed_cache:
    """Remembers by content what was looked at and found good, so that only what changed is looked at again."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def key(self, root, files, *settings):
        digest = hashlib.sha256()
        for setting in settings:
            digest.update(repr(setting).encode() + b"\0")
        for path in files:
            digest.update(path.encode() + b"\0" + hashlib.sha256((root / path).read_bytes()).digest())
        return digest.hexdigest()

    def has(self, key):
        mark = self.folder / key
        if mark.exists():
            os.utime(mark)
            return True
        return False

    def add(self, key):
        (self.folder / key).touch()

    def forget_old(self, days=30):
        import time
        for mark in self.folder.iterdir():
            if mark.stat().st_mtime < time.time() - days * 86400:
                mark.unlink(missing_ok=True)


def in_parallel(function, items):
    """[function(item)] with one thread a core; the functions wait for other programs."""
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        return list(pool.map(function, items))


def tool_version(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def finish(name, looked_at, findings, warnings=()):
    """Prints what was found and a closing line. @returns the exit status."""
    for one in warnings:
        print(f"warning: {one}")
    for one in findings:
        print(f"error: {one}")
    print(f"{name}: {looked_at} looked at, {len(findings)} findings")
    sys.stdout.flush()
    return 1 if findings else 0
