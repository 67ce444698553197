#!/usr/bin/python3
"""GPU kernels as nvcc makes them: registers, memory that spills, and fused multiply-adds, held to kernels/cuda/resources.txt.

Compiles each kernels/cuda/*.cu for one architecture. A kernel may not spill, nor take more registers than its line says: fewer threads
then fit into a multiprocessor. Fused multiply-adds give other bits than the processor's two roundings: a kernel has as many as its line
says, which are those of exp, log, tanh and erf. Both are numbers of one release of CUDA, which the file names: with another one only
spilling is looked for. --fix writes the file. Where there is no nvcc of CUDA 13 or newer, says so.
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from lint_common import finding, finish, parser

RESOURCES = "kernels/cuda/resources.txt"
HEADER = "# CUDA {}, compute capability 9.0: kernel, registers, fused multiply-adds (scripts/lint/gpu_kernels.py --fix)\n"
ARCHITECTURE = "90"
VERSION_MIN = 13
FLAGS = ["-std=c++20", "-O3", "--expt-relaxed-constexpr", "--fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true"]
FUSED = re.compile(r"\bfma\.rn\.f(32|64)\b")


def find_nvcc(root):
    """The compiler and its release, or (None, None) where there is none that is new enough."""
    for folder in (*os.get_exec_path(), str(root / "build/cuda/bin"), "/usr/local/cuda/bin"):
        nvcc = shutil.which("nvcc", path=folder)
        if nvcc is None:
            continue
        said = subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout
        release = re.search(r"release (\d+)\.\d+", said)
        if release and int(release.group(1)) >= VERSION_MIN:
            return pathlib.Path(nvcc), release.group().removeprefix("release ")
    return None, None


def plain_name(mangled):
    """`namespace::kernel(arguments)` without namespaces and arguments."""
    whole = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout.strip()
    whole = whole.replace("(anonymous namespace)::", "").replace("dlrun::kernels::cuda::", "").replace("dlrun::kernels::", "")
    return re.sub(r"^void ", "", whole).partition("(")[0].replace(" ", "")


class kernel:
    def __init__(self, source, registers, spilled, fused):
        self.source, self.registers, self.spilled, self.fused = source, registers, spilled, fused


def kernels_of(nvcc, root, source):
    """Name -> kernel, of one .cu file."""
    with tempfile.TemporaryDirectory() as folder:
        ptx = pathlib.Path(folder, "code.ptx")
        subprocess.run([nvcc, *FLAGS, f"-I{root}", f"-I{root / 'include'}", f"-arch=compute_{ARCHITECTURE}", "--ptx", "-o", ptx,
                        root / source], check=True)
        said = subprocess.run([nvcc.parent / "ptxas", f"-arch=sm_{ARCHITECTURE}", "-O3", "-v", "-o", os.devnull, ptx], check=True,
                              capture_output=True, text=True).stderr
        code = ptx.read_text()
    fused = {name: len(FUSED.findall(body)) for name, body in re.findall(r"\.entry (\w+)\((.*?)^\}", code, re.S | re.M)}
    found = {}
    for part in said.split("Compiling entry function '")[1:]:
        mangled = part.partition("'")[0]
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        spilled = sum(map(int, re.findall(r"(\d+) bytes spill", part)))
        found[plain_name(mangled)] = kernel(source, registers, spilled, fused[mangled])
    return found


def all_kernels(nvcc, root):
    sources = sorted(path.relative_to(root).as_posix() for path in (root / "kernels/cuda").glob("*.cu"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(lambda source: kernels_of(nvcc, root, source), sources))
    return {name: one for part in parts for name, one in part.items()}


def recorded(root):
    """Name -> (line, registers, fused multiply-adds)."""
    lines = {}
    if (root / RESOURCES).exists():
        for number, line in enumerate((root / RESOURCES).read_text().splitlines(), 1):
            if line and not line.startswith("#"):
                name, registers, fused = line.split()
                lines[name] = (number, int(registers), int(fused))
    return lines


def findings(root, kernels, release):
    known = recorded(root)
    is_comparable = not known or f"# CUDA {release}," in (root / RESOURCES).read_text()
    for name, one in sorted(kernels.items()):
        if one.spilled:
            yield finding(one.source, 0, f"{name} spills {one.spilled} bytes of registers into memory")
        if not is_comparable:
            continue
        if name not in known:
            yield finding(RESOURCES, 0, f"has no line for {name} of {one.source}; --fix writes it")
            continue
        line, registers, fused = known[name]
        if one.registers > registers:
            yield finding(RESOURCES, line, f"{name} takes {one.registers} registers, not {registers}; where that is meant, --fix")
        if one.fused != fused:
            yield finding(RESOURCES, line, f"{name} has {one.fused} fused multiply-adds, not {fused}: other bits than the processor's?")
    for name, (line, _, _) in sorted(known.items()):
        if is_comparable and name not in kernels:
            yield finding(RESOURCES, line, f"there is no kernel {name} any more; --fix removes it")


def main():
    options = parser(__doc__)
    options.add_argument("--fix", action="store_true", help=f"write {RESOURCES} as it is now")
    arguments = options.parse_args()
    nvcc, release = find_nvcc(arguments.root)
    if nvcc is None:
        print("gpu_kernels: there is no nvcc of CUDA 13 or newer, so no kernel can be looked at")
        return finish("gpu_kernels", "0 kernels", [])
    kernels = all_kernels(nvcc, arguments.root)
    if arguments.fix:
        lines = [f"{name} {one.registers} {one.fused}\n" for name, one in sorted(kernels.items())]
        (arguments.root / RESOURCES).write_text(HEADER.format(release) + "".join(lines))
    return finish("gpu_kernels", f"{len(kernels)} kernels", list(findings(arguments.root, kernels, release)))


if __name__ == "__main__":
    sys.exit(main())
