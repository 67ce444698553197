"""What a seed makes of a job on pods."""

import random
import typing

import paused_runs
import small_data

EPOCHS = 8  # of 63 steps
WORKERS, PS_SHARDS, POD_HOSTS = (2, 3, 5), (1, 2, 3), (2, 3)
DURABILITY = ({"log": "every_step"}, {"log": "snapshots"}, {"log": "every_step", "replicas": 1})  # else durability.replicas: auto
ORPHAN_GRACE_S = 20  # hosts that no successor calls wait so long for one, and then join it anew
IMAGE_LATE, IN_ETCD, IN_GROUPS = 0.2, 0.3, 0.25  # shares of runs, of those with copies, of shapes of runs
PS_HOSTS = 2


class pod_shape(typing.NamedTuple):
    """One such job."""

    workers: int
    ps_shards: int
    pod_hosts: int
    durability: dict
    image_late: bool  # the first pods cannot have their image for a while
    in_etcd: bool = False  # its journal: then no claim has the run folder, which goes with each control pod
    ps_hosts: int = 0  # pods for PS shards, beside the others

    @classmethod
    def draw(cls, source):
        made = cls(source.choice(WORKERS), source.choice(PS_SHARDS), source.choice(POD_HOSTS), source.choice(DURABILITY),
                   source.random() < IMAGE_LATE)
        made = made._replace(in_etcd=source.random() < IN_ETCD and made.durability.get("replicas") != 1)
        has_groups = random.Random(repr(made)).random() < IN_GROUPS  # no draw of the source: a seed keeps its faults
        return made._replace(ps_hosts=PS_HOSTS if has_groups else 0)

    def plain_spec(self, data):
        spec = small_data.make_spec("mlp_dropout", data, epochs=EPOCHS, workers=self.workers, ps_shards=self.ps_shards)
        return paused_runs.with_pauses(spec)

    def spec(self, data):
        spec = {**self.plain_spec(data), "durability": self.durability}
        spec["cluster"]["orphan_grace_s"] = ORPHAN_GRACE_S
        return spec

    def describe(self):
        durability = " ".join(f"{key} {value}" for key, value in self.durability.items())
        late = (", image late" if self.image_late else "") + (", journal in an etcd" if self.in_etcd else "")
        groups = f" and {self.ps_hosts} for PS shards" if self.ps_hosts else ""
        return f"{self.workers} workers, {self.ps_shards} PS shards, {self.pod_hosts} pods of hosts{groups}, {durability}{late}"
