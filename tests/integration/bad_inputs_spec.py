"""Wrong job files: what is written in them, and shapes that do not fit."""

import json
import os

from bad_input_case import case

METRICS_TLS = "{address: 127.0.0.1, certificate_file: /nowhere/tls.crt, key_file: /nowhere/tls.key, ca_file: /nowhere/ca.crt}"


@case("an unknown key", "spec", "job.yaml:2", "learning_rate", "valid are")
def _(at):
    return at.job({"learning_rate": 0.1, **at.spec()})


@case("a misspelt key", "spec", "job.yaml:3", "epoch", 'did you mean "epochs"?')
def _(at):
    spec = at.spec()
    return at.job({"train": {"epoch": 3, **spec.pop("train")}, **spec})


@case("a key of another section", "spec", "job.yaml:2", "epochs", "train.epochs")
def _(at):
    return at.job({"epochs": 3, **at.spec()})


@case("a key that is written twice", "spec", "job.yaml:2", "name", "written twice")
def _(at):
    return at.job(json.dumps(at.spec()).replace("{", '{"name": "x",\n', 1))


@case("text where a number belongs", "spec", "train.epochs", "many", "an integer")
def _(at):
    return at.job(at.spec(), "train.epochs=many")


@case("a number where a section belongs", "spec", "job.yaml:", "cluster", "expected keys")
def _(at):
    return at.job({**at.spec(), "cluster": 3})


@case("a number in quotes", "spec", "job.yaml:3", "train.epochs", "in quotes")
def _(at):
    spec = at.spec()
    return at.job({"train": {**spec.pop("train"), "epochs": "3"}, **spec})


@case("a GPU that is named twice", "spec", "cluster.gpus[2]", "GPU 1 is named twice")
def _(at):
    return at.job(at.spec(), "cluster.device=auto", "cluster.gpus=[1, 0, 1]")


@case("GPUs for a job on processors", "spec", "cluster.gpus", "with cluster.device: cpu none is used", "leave this out")
def _(at):
    return at.job(at.spec(), "cluster.gpus=0")


@case("an unknown device", "spec", "cluster.device", "gpu", "auto, cpu, cuda")
def _(at):
    return at.job(at.spec(), "cluster.device=gpu")


@case("an unknown precision", "spec", "train.precision", "fp16", "fp32, tf32, bf16")
def _(at):
    return at.job(at.spec(), "train.precision=fp16")


@case("a precision of GPUs for a job on processors", "spec", "train.precision", "with cluster.device: cpu none is used", "leave this out")
def _(at):
    return at.job(at.spec(), "train.precision=tf32")


@case("a GPU that is not there", "folder", "; or leave cluster.gpus out")
def _(at):
    return [command for command in at.job(at.spec(), "cluster.device=auto", "cluster.gpus=1023") if command[0] == "train"]


@case("workers beyond their maximum", "spec", "cluster.workers_max", "2 is below cluster.workers, which is 3")
def _(at):
    return at.job(at.spec(), "cluster.workers=3", "cluster.workers_max=2")


@case("fewer workers than their minimum", "spec", "cluster.workers_min", "3 is above cluster.workers, which is 2")
def _(at):
    return at.job(at.spec(), "cluster.workers=2", "cluster.workers_min=3")


@case("a journal of another kind", "spec", "cluster.journal.folder", "expected no arguments")
def _(at):
    return at.job(at.spec(), "cluster.journal.folder=somewhere")


@case("a port for metrics beyond the last", "spec", "observability.prometheus_port", "from 0 to 65535", "65536")
def _(at):
    return at.job(at.spec(), "observability.prometheus_port=65536")


@case("metrics for other hosts at no port", "spec", "observability.prometheus_tls", "write observability.prometheus_port")
def _(at):
    return at.job(at.spec(), f"observability.prometheus_tls={METRICS_TLS}")


@case("metrics at an address that is a name", "spec", "observability.prometheus_tls.address", "expected the IPv4 address", "here.example")
def _(at):
    return at.job(at.spec(), f"observability.prometheus_tls={METRICS_TLS}", "observability.prometheus_port=9464",
                  "observability.prometheus_tls.address=here.example")


@case("half precision for a job on processors", "spec", "train.precision: bf16 is a precision of GPUs", "leave this out")
def _(at):
    return at.job(at.spec(), "train.precision=bf16")


@case("half precision for numbers of rows that are computed", "spec", "train.precision: embedding", "1000 rows", "write tf32")
def _(at):
    spec = at.spec()
    spec["model"]["layers"] = ["flatten", {"linear": {"out_features": 2}}, {"embedding": {"num_embeddings": 1000, "embedding_dim": 4}},
                               "flatten", {"linear": {"out_features": 10}}]
    return at.job(spec, "train.precision=bf16", "cluster.device=cuda")


@case("an unknown layer", "spec", "job.yaml:", "liner", 'did you mean "linear"?')
def _(at):
    return at.layers_job("flatten", {"liner": {"out_features": 10}})


@case("a layer of no features", "spec", "job.yaml:", "out_features", "found 0")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 0}})


for override in ("train.epochs=0", "train.microbatch_size=0", "train.microbatches_per_step=-4", "cluster.workers=0",
                 "cluster.ps_shards=-1", "cluster.threads_per_worker=0", "train.optimizer.sgd.lr=-1",
                 "train.microbatch_size=1000000", "train.epochs=100000000000000000000", "cluster.workers=1e9"):
    @case(f"a size out of range, {override}", "spec", *override.split("="))
    def _(at, override=override):
        return at.job(at.spec(), override)


for override, number in {"train.optimizer.sgd.lr=.nan": ".nan", "train.optimizer.sgd.momentum=inf": "inf",
                         "train.optimizer.sgd.weight_decay=1e999": "1e999", "train.optimizer={adam: {eps: -.inf}}": "-.inf",
                         "train.clip_norm=nan": "nan", "model.loss={cross_entropy: {weight: [.nan, 1]}}": ".nan",
                         "model.loss={bce_with_logits: {pos_weight: [inf]}}": "inf",
                         "data.train.normalize={mean: nan}": "nan", "data.train.normalize={std: .inf}": ".inf"}.items():
    @case(f"a number that is none, {override}", "spec", override.split("=")[0], "expected a number", f'"{number}"')
    def _(at, override=override):
        return at.job(at.spec(), override)


for number, way_out in {"010": "write 10, without leading zeros", "+5": "write 5, without '+'", "0x10": "write it in decimal digits alone",
                        "1e3": "write 1000", "1_000": "write it in decimal digits alone"}.items():
    @case(f"a number of --set that is written otherwise, {number}", "spec", "--set", "train.epochs", f'"{number}"; {way_out}')
    def _(at, number=number):
        return at.job(at.spec(), f"train.epochs={number}")

    @case(f"a number of a job file that is written otherwise, {number}", "spec", "job.yaml:1", "train.epochs", f'"{number}"; {way_out}')
    def _(at, number=number):
        spec = at.spec()
        spec["train"]["epochs"] = "@"
        return at.job(json.dumps(spec).replace('"@"', number))


@case("a path of --set that does not exist", "spec", "--set train.epoks=3", 'did you mean "train.epochs"?')
def _(at):
    return at.job(at.spec(), "train.epoks=3")


@case("a --set without a value", "spec", "train.epochs", "path=value")
def _(at):
    return at.job(at.spec(), "train.epochs")


@case("a file that is no YAML", "spec", "job.yaml:", "not valid YAML")
def _(at):
    return at.job("name: [x\n")


@case("an empty file", "spec", "job.yaml", "is empty")
def _(at):
    return at.job("")


@case("a job file that is not there", "spec", "nowhere.yaml", "no such file")
def _(at):
    return [("train", "nowhere.yaml"), ("validate", "nowhere.yaml")]


@case("a folder in place of a job file", "spec", "not a file")
def _(at):
    return [("train", at.folder), ("validate", at.folder)]


@case("a job file that may not be read", "spec", "job.yaml", "Permission denied", as_nobody=True)
def _(at):
    commands = at.job(at.spec())
    (at.folder / "job.yaml").chmod(0)
    return commands


@case("a YAML bomb of anchors", "spec", "job.yaml:1", "anchors")
def _(at):
    return at.job("a: &a [lol, lol]\n" + "".join(f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n"
                                                 for a, b in zip("abcdefgh", "bcdefghi")))


@case("a YAML bomb of brackets", "bomb", "job.yaml:1", "nested deeper than 32 levels")
def _(at):
    return at.job("[" * 1_000_000)


@case("a YAML bomb of values", "bomb", "job.yaml:", "more than 100000 values")
def _(at):
    return at.job("name: [" + "0," * 500_000 + "0]\n")


@case("a job file of 1 GB", "spec", "job.yaml", "larger than 1024 KiB")
def _(at):
    commands = at.job("name: x\n#")
    os.truncate(at.folder / "job.yaml", 1 << 30)
    return commands


@case("a job file of bytes", "spec", "job.yaml:1", "not UTF-8")
def _(at):
    return at.job(b"name: \xff\xfe\n")


# ---- shapes

@case("a layer that does not take images", "spec", "linear", "flatten")
def _(at):
    spec = at.spec("cnn_batch_norm")
    spec["model"]["layers"].remove("flatten")
    return at.job(spec)


@case("a window larger than the image", "spec", "max_pool2d", "40", "12")
def _(at):
    return at.layers_job({"max_pool2d": {"kernel_size": 40}}, "flatten", {"linear": {"out_features": 10}})


@case("shapes that cannot be added", "spec", "add", "64", "10")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 64}, "name": "wide"},
                         {"linear": {"out_features": 10}, "name": "narrow"}, {"add": {}, "inputs": ["wide", "narrow"]})


@case("a model of more parameters than memory holds", "spec", "linear", "parameters")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 1048576}}, {"linear": {"out_features": 1048576}},
                         {"linear": {"out_features": 10}})


@case("a model for other records", "data", "train-images", "28", "12")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 10}}, input=[1, 28, 28])


@case("more classes in the data than outputs", "data", "train-labels", "5")
def _(at):
    return at.layers_job("flatten", {"linear": {"out_features": 5}})


@case("no store of a PS shard", "spec", "durability.replicas", "from 1 to 100", '"0"')
def _(at):
    return at.job(at.spec(), "durability.log=every_step", "durability.replicas=0")


@case("a negative number of stores", "spec", "durability.replicas", "from 1 to 100", '"-1"')
def _(at):
    return at.job(at.spec(), "durability.log=every_step", "durability.replicas=-1")


@case("a word for the number of copies that is none", "spec", "durability.replicas", "expected auto, or an integer", '"autos"')
def _(at):
    return at.job(at.spec(), "durability.replicas=autos")


@case("copies of what is not the same to the bit", "spec", "durability.replicas", "leave cluster.determinism at strict")
def _(at):
    return at.job(at.spec(), "durability.log=every_step", "durability.replicas=2", "cluster.determinism=relaxed")


@case("copies of what is not kept", "spec", "durability.replicas", "write another durability.log")
def _(at):
    return at.job(at.spec(), "durability.log=off", "durability.replicas=2")
