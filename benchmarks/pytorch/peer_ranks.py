"""PyTorch's peers as a whole: DDP with one process a rank on this host, and what torchrun's ranks and torchft's replicas tell."""

import json
import pathlib
import socket
import subprocess

from measuring import RUN_SECONDS_MAX, failure, small_data
from peer_environment import peer_environment

HERE = pathlib.Path(__file__).resolve().parent
RANKS = 2
# Of torchft's lighthouse: so a replica is missed after 0.5 s.
TUNED_LIGHTHOUSE = ["--min_replicas", "1", "--join_timeout_ms", "100", "--quorum_tick_ms", "20", "--heartbeat_timeout_ms", "500"]


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def train_ranks(python, model, epochs, mode, isa="widest", data=small_data.FASHION_MNIST):
    """Starts one process a rank, without torchrun between. @returns what rank 0 reports."""
    shared = dict(peer_environment(isa), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    command = [python, str(HERE / "peer_ddp.py"), "--model", model, "--epochs", str(epochs), "--mode", mode, "--data", data]
    ranks = [subprocess.Popen(command, env=dict(shared, RANK=str(rank)), text=True, stdout=subprocess.PIPE) for rank in range(RANKS)]
    try:
        outputs = [rank.communicate(timeout=RUN_SECONDS_MAX)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    if any(rank.returncode != 0 for rank in ranks):
        raise failure(f"PyTorch failed on {model}: its ranks ended with {[rank.returncode for rank in ranks]}")
    return json.loads(outputs[0])


def steps_told(folder):
    """What peer_elastic has written there: each step that was done -> of how many ranks it was, when it was done last."""
    file = folder / "steps"
    whole = file.read_text().rpartition("\n")[0] if file.exists() else ""
    return {int(step): int(ranks) for step, ranks in map(str.split, whole.splitlines())}


def batches_told(folder, replicas):
    """What peer_replica has written there: how many batches all replicas together have committed, as each says."""
    told = [folder / f"batches-{number}" for number in range(replicas)]
    return [int(([0] + file.read_text().rpartition("\n")[0].split())[-1]) if file.exists() else 0 for file in told]
