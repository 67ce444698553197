#!/usr/bin/python3
"""Explicit source lists: every .cpp, .cu and .proto is named in a CMakeLists.txt, its folder's or the next one above."""

import pathlib
import re
import sys

from lint_common import all_files, finding, finish, parser, read


def naming_list(root, path):
    """The nearest CMakeLists.txt at or above the file's folder, below the root's own, or None."""
    for folder in pathlib.PurePosixPath(path).parents:
        candidate = (folder / "CMakeLists.txt").as_posix()
        if (root / candidate).is_file():
            return candidate
    return None


def main():
    arguments = parser(__doc__).parse_args()
    root = arguments.root
    sources = [path for path in all_files(root) if path.endswith((".cpp", ".cu", ".proto"))]
    findings = []
    for path in sources:
        listing = naming_list(root, path)
        if listing in (None, "CMakeLists.txt"):
            findings.append(finding(path, 0, "no folder above it has a CMakeLists.txt"))
            continue
        name = pathlib.PurePosixPath(path).relative_to(pathlib.PurePosixPath(listing).parent).as_posix()
        text = re.sub(r"#[^\n]*", "", read(root, listing))
        stem = pathlib.PurePosixPath(name).stem
        if not re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w.-])", text.replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")):
            if not re.search(rf"(?<![\w./-]){re.escape(stem)}(?![\w.-])", text):
                findings.append(finding(path, 0, f"is not named in {listing}"))
    return finish("source_lists", f"{len(sources)} sources", findings)


if __name__ == "__main__":
    sys.exit(main())
