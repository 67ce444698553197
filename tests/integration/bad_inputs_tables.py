"""Wrong tables."""

import gzip

from bad_input_case import case


@case("a CSV file with a bad cell", "data", "t.csv", "line 3", "column y", "ten")
def _(at):
    return at.table("1,2,0", "1,ten,1")


@case("a CSV file with an empty cell", "data", "t.csv", "line 3", "column x")
def _(at):
    return at.table("1,2,0", ",2,1")


@case("a CSV file with a changed column count", "data", "t.csv", "line 3", "2 columns", "3")
def _(at):
    return at.table("1,2,0", "1,2")


@case("a CSV file with a quote that does not end", "data", "t.csv", "line 3")
def _(at):
    return at.table("1,2,0", '1,"2,1')


@case("a CSV file with a label out of range", "data", "t.csv", "record 1", "label 7")
def _(at):
    return at.table("1,2,0", "1,2,7")


@case("a CSV file with a number that an embedding has no row for", "data", "t.csv", "record 1", "place 1", "'words'", "0 to 2")
def _(at):
    return at.table("1,2,0", "7,3,1", layers=[{"name": "y", "select": {"first": 1, "count": 1}},
                                              {"name": "words", "embedding": {"num_embeddings": 3, "embedding_dim": 4}},
                                              "flatten"])


@case("a CSV file without a column that is named", "data", "t.csv", '"z"')
def _(at):
    return at.table("1,2,0", csv={"target": "z"})


@case("a CSV file without records", "data", "t.csv", "no records")
def _(at):
    return at.table()


@case("an empty CSV file", "data", "t.csv", "empty")
def _(at):
    commands = at.table()
    at.file("t.csv")
    return commands


def plain_table(at, content, **csv):
    """A job on a table with this content, of which two columns are learnt from."""
    at.file("t.csv", content)
    return at.data_job({"format": "csv", "records": "t.csv", "csv": csv}, input=[2], layers=[{"linear": {"out_features": 2}}])


@case("a target that is also an input, by its number", "data", "t.csv", "columns are numbers from 0 to 2", '"02"')
def _(at):
    return plain_table(at, "1,2,0\n3,4,1\n", header=False, target="02")


@case("a target that is also an input, by its name", "spec", "job.yaml:", "y", "used twice")
def _(at):
    return plain_table(at, "x,y\n1,0\n2,1\n", target="y", columns=[{"column": "x"}, {"column": "y"}])


@case("a target of validation data that is also an input", "data", "data.validation.csv", '"b"', "is the target")
def _(at):
    commands = plain_table(at, "x,a,b\n1,0,1\n2,1,0\n", target="a")
    return [(*command, "--set", "data.validation={records: t.csv, csv: {target: b}}") for command in commands]


@case("an index without a name among the columns", "data", "t.csv", "column 1 of the header has no name")
def _(at):
    return plain_table(at, ",x,class\n0,5,0\n1,6,1\n", target="class")


@case("two columns of one name", "data", "t.csv", 'two columns are called "x"')
def _(at):
    return plain_table(at, "x,x,class\n0,5,0\n1,6,1\n", target="class")


@case("a separator at the end of a line", "data", "t.csv", "line 3", "4 columns", "names 3")
def _(at):
    return at.table("1,2,0", "1,2,1,")


for encoding in ("utf-16", "utf-32"):
    @case(f"a CSV file in {encoding}", "data", "t.csv", f"is {encoding.upper()} text", "save it as UTF-8")
    def _(at, encoding=encoding):
        return plain_table(at, "x,y,class\n1,2,0\n".encode(encoding), target="class")


@case("a CSV file in UTF-16 that does not say so", "data", "t.csv", "line 1", "UTF-16")
def _(at):
    return plain_table(at, "x,y,class\n1,2,0\n".encode("utf-16-le"), target="class")


@case("a packed CSV file in UTF-16", "data", "t.csv", "is UTF-16 text")
def _(at):
    return plain_table(at, gzip.compress("x,y,class\n1,2,0\n".encode("utf-16")), target="class")


@case("a CSV file whose lines end with CR", "data", "t.csv", "line 1", "a carriage return within a line")
def _(at):
    return plain_table(at, "x,y,class\r1,2,0\r3,4,1\r", target="class")


for cell, words in {"1e999": "too large for a 64-bit float", "1e39": "too large for a 32-bit float", "nan": "is not a number",
                    "-inf": "is not a number", "0x1p3": "is not a number", "1_000": "is not a number",
                    '"1,5"': "decimals stand behind a point"}.items():
    @case(f"a CSV file with the number {cell}", "data", "t.csv", "line 3", "column y", words)
    def _(at, cell=cell):
        return at.table("1,2,0", f"1,{cell},1")


@case("a CSV file with a class that is no number", "data", "t.csv", "line 2", "column class", '"nan" is no class')
def _(at):
    return at.table("1,2,nan", "1,2,0")


for value in ("nan", "inf", "none"):
    @case(f"{value} for a missing number", "data", "data.train.csv.columns", '"x"', "a number must stand for")
    def _(at, value=value):
        return plain_table(at, "x,y,class\n,2,0\n", target="class", columns=[{"column": "x", "missing": value}, {"column": "y"}])


for what, part in {"train": "data.train.records=bad.csv", "validation": "data.validation={records: bad.csv}"}.items():
    @case(f"targets of {what} that the loss does not take", "data", "bad.csv", "record 1", "the target 2", "bce_with_logits",
          "from 0 to 1")
    def _(at, part=part):
        at.file("bad.csv", "x,y\n1,1\n2,2\n3,0\n")
        at.file("good.csv", "x,y\n1,1\n2,0\n3,0.5\n")
        spec = at.spec()
        spec["data"]["train"] = {"format": "csv", "records": "good.csv", "csv": {"target": "y"}}
        spec["model"] = {"input": [1], "layers": [{"linear": {"out_features": 1}}], "loss": "bce_with_logits"}
        spec["train"].update(microbatch_size=1, microbatches_per_step=1)
        return at.job(spec, part)


WORDS = [{"column": "x", "standardize": True}, {"column": "city", "type": "categorical", "encoding": "one_hot"}]
OTHERWISE = {  # what data.validation says of its csv, beside WORDS of data.train -> the key that is told, and both values
    "other names of classes": ({"classes": ["pear", "apple"]}, "classes[0]", "pear here", "apple in data.train"),
    "some of the names of classes": ({"classes": ["apple"]}, "classes", "[apple] here", "[apple, pear] in data.train"),
    "another vocabulary": ({"columns": [WORDS[0], {**WORDS[1], "vocabulary": ["Oslo", "Rome"]}]}, "columns[1].vocabulary[0]",
                           "Oslo here", "Rome in data.train"),
    "another order of columns": ({"columns": WORDS[::-1]}, "columns[0].column", "city here", "x in data.train"),
    "a column without its scale": ({"columns": [{"column": "x"}, WORDS[1]]}, "columns[0].standardize", "nothing here",
                                   "true in data.train"),
    "an index instead of one_hot": ({"columns": [WORDS[0], {"column": "city", "type": "categorical"}]}, "columns[1].encoding",
                                    "nothing here", "one_hot in data.train"),
}
for what, (keys, key, *values) in OTHERWISE.items():
    @case(f"validation data with {what}", "data", f"data.validation.csv.{key}", *values, "leave csv.", "or write the same")
    def _(at, keys=keys):
        at.file("t.csv", "x,city,class\n1,Rome,pear\n2,Oslo,apple\n3,Rome,pear\n")
        spec = at.spec()
        spec["data"] = {"train": {"format": "csv", "records": "t.csv", "csv": {"target": "class", "columns": WORDS}},
                        "validation": {"records": "t.csv", "csv": keys}}
        spec["model"] = {"input": [3], "layers": [{"linear": {"out_features": 2}}]}
        spec["train"].update(microbatch_size=1, microbatches_per_step=1)
        return at.job(spec)
