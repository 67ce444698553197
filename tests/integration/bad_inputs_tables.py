"""Wrong tables."""

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
