"""How PyTorch runs as a fair peer: threads that do not spin, and the fastest code that OpenBLAS has for this CPU."""
import os
import pathlib
import re
import subprocess

from measuring import failure

PROBE_GAIN_MIN = 1.1  # a core type other than OpenBLAS's own choice must be this much faster
PROBE = """
import time, torch
torch.set_num_threads(1)
a, b = torch.randn(128, 784), torch.randn(784, 512)
maps = open('/proc/self/maps').read()
def seconds():
    started = time.process_time()
    for _ in range(20):
        a @ b
    return time.process_time() - started
seconds()
print('openblas' in maps, min(seconds() for _ in range(10)), torch.__version__)
"""


def peer_environment(core_type=None, threads=1):
    """So many threads a process, and no spinning while it waits: the other process may need the core."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads), OPENBLAS_NUM_THREADS=str(threads), OMP_WAIT_POLICY="passive")
    environment.pop("OPENBLAS_CORETYPE", None)
    if core_type:
        environment["OPENBLAS_CORETYPE"] = core_type
    return environment


def probe(python, core_type=None):
    """Seconds of CPU for a few matrix products under that core type, and PyTorch's version."""
    done = subprocess.run([python, "-c", PROBE], env=peer_environment(core_type), text=True, capture_output=True)
    if done.returncode != 0:
        if core_type:
            return float("inf"), ""  # this CPU cannot run it
        raise failure(f"{python} cannot import torch: run scripts/install_dependencies --with-peers\n{done.stderr}")
    openblas, seconds, version = done.stdout.split()
    if openblas != "True":
        raise failure("PyTorch runs on the slow reference BLAS here, which would be no fair peer: install libopenblas0 "
                      "(scripts/install_dependencies --with-peers)")
    return float(seconds), version


def fastest_core_type(python):
    """OpenBLAS mistakes newer CPUs for ancient ones: where another core type is clearly faster, the peer gets it."""
    own, version = probe(python)
    flags = set(re.search(r"^flags\s*:(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)[1].split())
    candidates = [name for name, flag in (("Haswell", "avx2"), ("Zen", "avx2"), ("SkylakeX", "avx512f")) if flag in flags]
    seconds, core_type = min(((probe(python, name)[0], name) for name in candidates), default=(own, None))
    return (core_type if own / seconds >= PROBE_GAIN_MIN else None), version
