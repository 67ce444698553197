"""Which PyTorch is the peer, how it runs, and what it says it runs on."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1])) # of the peer's processes too

from measuring import ROOT, failure

PYTHON = ROOT / ".cache/peers/pytorch/bin/python3"  # scripts/install_dependencies --with-peers
INDUCTOR_CACHE = ROOT / ".cache/peers/inductor"

# Ways to run a model, of which the fastest is the peer.
MODES = {"mlp": ("eager", "compile"), "cnn": ("eager", "channels-last", "compile", "compile, channels-last")}

# What restricts every library of both sides to AVX2; "widest": all that the processor has.
ISA = {"widest": {},
       "avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}}

VERBOSE = {"ONEDNN_VERBOSE": "1", "MKL_VERBOSE": "1"}  # both print their version, and oneDNN its instruction set
PROBE = """
import json, torch
from torch._inductor.cpu_vec_isa import pick_vec_isa
torch.set_num_threads(1)
torch.randn(64, 64) @ torch.randn(64, 64)
torch.nn.Conv2d(32, 64, 3)(torch.randn(4, 32, 14, 14))
print(json.dumps({"torch": torch.__version__, "aten": torch.backends.cpu.get_cpu_capability(), "inductor": str(pick_vec_isa())}))
"""


def isa_environment(isa):
    """The environment of a program that may use the instructions of that name (ISA)."""
    kept = {name: value for name, value in os.environ.items() if name not in ISA["avx2"]}
    return kept | ISA[isa]


def peer_environment(isa="widest", threads=1):
    """So many threads a process, and no spinning while it waits: the other process may need the core."""
    return isa_environment(isa) | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "passive",
                                   "TORCHINDUCTOR_CACHE_DIR": str(INDUCTOR_CACHE), "CUDA_VISIBLE_DEVICES": ""}


def line_with(text, word):
    return next((line for line in text.splitlines() if word in line), "")


def describe_peer(python, isa, threads=1):
    """@returns a line: PyTorch's version, its libraries', what each says that it computes with, threads, settings."""
    if not os.access(python, os.X_OK):
        raise failure(f"there is no {python}: run scripts/install_dependencies --with-peers, or name a python with --python")
    done = subprocess.run([str(python), "-c", PROBE], env=peer_environment(isa, threads) | VERBOSE, text=True, capture_output=True)
    if done.returncode != 0:
        raise failure(f"{python} cannot run torch: run scripts/install_dependencies --with-peers\n{done.stderr}")
    said = json.loads(done.stdout.splitlines()[-1])
    onednn = line_with(done.stdout, "info,oneDNN").rpartition("oneDNN ")[2].split(" ")[0]
    onednn_isa = line_with(done.stdout, ",isa:").rpartition("isa:")[2]
    mkl = line_with(done.stdout, "MKL_VERBOSE oneMKL").removeprefix("MKL_VERBOSE ").partition(" Product")[0] or "no MKL"
    settings = " ".join(f"{name}={value}" for name, value in ISA[isa].items()) or "all instructions of the processor"
    return (f"PyTorch {said['torch']} ({mkl}; oneDNN {onednn} on {onednn_isa}; ATen on {said['aten']}; inductor on {said['inductor']}), "
            f"{threads} thread{'s' if threads > 1 else ''} a process of {os.cpu_count()} cores; {settings}")


def fastest_mode(model, rate_of):
    """The way of running `model` with the highest rate_of(mode), in samples/s; says how fast each was."""
    rates = {mode: rate_of(mode) for mode in MODES[model]}
    best = max(rates, key=rates.get)
    print(f"{model}  PyTorch at its fastest: {best} (" + ", ".join(f"{mode} {rate:.0f}" for mode, rate in rates.items()) + " samples/s)", flush=True)
    return best
