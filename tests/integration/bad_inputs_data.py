"""Wrong files of data, but for tables."""

import gzip
import pathlib
import struct

import small_data
from bad_input_case import RECORDS, case
from damaged_files import flipped, npy, png, tfrecord


@case("a data file that is not there", "data", "nowhere", "No such file")
def _(at):
    return at.data_job({**at.data, "records": str(at.folder / "nowhere")})


@case("a folder in place of a data file", "data", "somewhere")
def _(at):
    (at.folder / "somewhere").mkdir()
    return at.data_job({**at.data, "records": str(at.folder / "somewhere")})


@case("a data file that may not be read", "data", "train-labels", "Permission denied", as_nobody=True)
def _(at):
    pathlib.Path(at.data["labels"]).chmod(0)
    return at.job(at.spec())


@case("a truncated gzip file", "data", "half.gz", "truncated", "byte")
def _(at):
    packed = gzip.compress(at.good_images())
    return at.images("half.gz", packed[:len(packed) // 2])


@case("a corrupt gzip file", "data", "bad.gz", "damaged gzip data", "byte")
def _(at):
    packed = gzip.compress(at.good_images())
    return at.images("bad.gz", flipped(packed, len(packed) // 2))


@case("a gzip file with a wrong checksum", "data", "bad.gz", "damaged gzip data")
def _(at):
    packed = gzip.compress(at.good_images())
    return at.images("bad.gz", flipped(packed, len(packed) - 8))


@case("a truncated IDX file", "data", "short", "truncated", "byte")
def _(at):
    return at.images("short", at.good_images()[:-1])


@case("an IDX file of something else", "data", "other", "not an IDX file")
def _(at):
    return at.images("other", b"no images" * 100)


@case("an IDX file of floats", "data", "floats", "32-bit floats")
def _(at):
    return at.images("floats", struct.pack(">4I", 0xD03, RECORDS, 12, 12) + bytes(RECORDS * 12 * 12 * 4))


@case("an IDX file that promises more than memory holds", "data", "huge", "byte")
def _(at):
    return at.images("huge", struct.pack(">4I", 0x803, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF))


@case("an IDX file without records", "data", "none", "there is nothing to train on")
def _(at):
    return at.images("none", struct.pack(">4I", 0x803, 0, 12, 12))


@case("more labels than records", "data", str(RECORDS), str(RECORDS + 1))
def _(at):
    return at.labels(bytes(RECORDS + 1))


@case("a label out of range", "data", "train-labels", "10", str(RECORDS - 1))
def _(at):
    return at.labels(bytes(RECORDS - 1) + b"\x0a")


@case("a truncated PNG picture", "data", "a.png", "PNG")
def _(at):
    return at.picture(png()[:40])


@case("a damaged PNG picture", "data", "a.png", "PNG", "byte")
def _(at):
    return at.picture(flipped(png(), 45))


@case("a PNG picture of 16 bits", "data", "a.png", "16 bits")
def _(at):
    return at.picture(png(16, bytes(9)))


@case("a text in place of a picture", "data", "a.png", "neither a PNG nor a JPEG")
def _(at):
    return at.picture(b"a picture of a cat")


@case("a folder without pictures", "data", "pictures")
def _(at):
    (at.folder / "pictures").mkdir()
    return at.data_job({"format": "image_folder", "records": "pictures"})


@case("a truncated TFRecord file", "data", "r.tfrecord", "byte 0", "truncated")
def _(at):
    return at.examples(bytes(11))


@case("a TFRecord file of something else", "data", "r.tfrecord", "checksum of its length")
def _(at):
    return at.examples(b"no records at all")


@case("a TFRecord file with a damaged record", "data", "r.tfrecord", "record 0", "its checksum does not match")
def _(at):
    return at.examples(flipped(tfrecord(bytes(20)), 15))


@case("a TFRecord file without the feature", "data", "r.tfrecord", "record 0", '"x"; it has none')
def _(at):
    return at.examples(tfrecord(b""))


@case("a truncated npy file", "data", "x.npy", "byte", "ends within its head")
def _(at):
    return at.arrays(npy()[:20])


@case("an npy file of another size", "data", "x.npy", "truncated", "there")
def _(at):
    return at.arrays(npy(size=100))


@case("an npy file of another type", "data", "x.npy", "<c8")
def _(at):
    return at.arrays(npy(descr="<c8"))


@case("an npy file in Fortran order", "data", "x.npy", "Fortran", "numpy.ascontiguousarray")
def _(at):
    return at.arrays(npy(fortran=True))


@case("more data than memory may be taken", "data", "t.csv", "data.memory_limit")
def _(at):
    commands = at.table(*["1,2,0"] * 1000)
    return [(*command, "--set", "data.memory_limit=4kB") for command in commands]


@case("more microbatches a step than data", "data", "train.microbatches_per_step", "4096", str(RECORDS))
def _(at):
    return at.job(at.spec(), "train.microbatches_per_step=4096")


@case("an unknown format", "spec", "data.train", "cvs")
def _(at):
    return at.table("1,2,0", format="cvs")


@case("a key of another format", "spec", "job.yaml:", "data.train.labels", "leave this out")
def _(at):
    return at.table("1,2,0", labels="y")


for what, part in {"train": "data.train.records=bad.npy",
                   "validation": "data.validation={records: bad.npy, labels: labels.npy}"}.items():
    @case(f"an npy file for {what} with a number that is none", "data", "bad.npy", "record 1", "nan at place 1")
    def _(at, part=part):
        numbers = [1.0] * (2 * RECORDS)
        at.file("good.npy", small_data.npy((RECORDS, 2), struct.pack(f"<{2 * RECORDS}f", *numbers)))
        numbers[3] = float("nan")
        at.file("bad.npy", small_data.npy((RECORDS, 2), struct.pack(f"<{2 * RECORDS}f", *numbers)))
        at.file("labels.npy", small_data.npy((RECORDS,), bytes(RECORDS), "|u1"))
        spec = at.spec()
        spec["data"]["train"] = {"format": "npy", "records": "good.npy", "labels": "labels.npy"}
        spec["model"].update(input=[2], layers=[{"linear": {"out_features": 2}}])
        return at.job(spec, part)
