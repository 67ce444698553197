import unittest

from planted_tree import planted_tree

SCHEMA = """
message JobSpec {
  optional string name = 1 [(rule) = {identifier: true}];  // no default
  TrainSpec train = 2 [(rule) = {required: true}];
}
message TrainSpec {
  optional int64 epochs = 1 [(rule) = {default: "1", min: 1, max: 1000, on_resume: FREE}];
  repeated double betas = 2 [(rule) = {default: "[0.9, 0.999]", min: 0, max: 1, max_exclusive: true}];
  optional string mode = 3 [(rule) = {default: "fast", one_of: ["fast", "slow"]}];
  map<string, string> options = 4;
  KindSpec kind = 5;
}
message KindSpec {
  oneof kind { Plain plain = 1; Sized sized = 2; }
}
message Plain {}
message Sized { optional int64 size = 1 [(rule) = {required: true, min: -1}]; }
"""
HEAD = "| key | type and range | default | meaning |\n|---|---|---|---|\n"
REFERENCE = f"""# Jobs
## Top level
{HEAD}| `name` | a name | the file's | names it |
| `train` | keys | required | how |

## `train`
{HEAD}| `epochs` | an integer from 1 to 1000 | `1` | times |
| `betas` | list, each a number from 0 to below 1 | `[0.9, 0.999]` | decay |
| `mode` | one of fast, slow | `fast` | speed |
| `options`, `kind` | keys | | more |

## When a run is resumed
| key | on resume | |
|---|---|---|
| `train.epochs` | free | |

## More
Without arguments: **`plain`**.

**`sized`** - has a `size`,
and a description of two lines

{HEAD}| `size` | an integer from -1 | required | how large |
"""


class spec_reference(planted_tree):
    def assert_reference(self, old, new, *words):
        """With `old` replaced by `new` there is one complaint, with these words."""
        self.assertIn(old, REFERENCE)
        self.plant("proto/job_spec.proto", SCHEMA)
        self.plant("docs/spec.md", REFERENCE.replace(old, new))
        self.assert_finds("spec_reference.py", *words)

    def test_a_complete_reference_is_fine(self):
        self.plant("proto/job_spec.proto", SCHEMA)
        self.plant("docs/spec.md", REFERENCE)
        self.assert_clean("spec_reference.py")

    def test_a_key_without_a_row_is_found(self):
        self.assert_reference("| `mode` | one of fast, slow | `fast` | speed |\n", "", "docs/spec.md:9", "no row for `mode` of TrainSpec")

    def test_what_may_change_on_resume_is_listed_as_the_rules_say(self):
        row = "| `train.epochs` | free | |\n"
        self.assert_reference(row, "", "no row for `train.epochs`, which is free on resume")
        self.assert_reference(row, row.replace("free", "revision"), "`train.epochs` is free on resume, not revision")
        self.assert_reference(row, row + "| `train.mode` | free | |\n", "`train.mode` is without a rule on resume, not free")

    def test_a_key_in_another_section_is_no_row_of_its_own(self):
        self.assert_reference("| `name` | a name", "| `size` | an integer from -1 | required | x |\n| `name` | a name",
                              "JobSpec has no such key")

    def test_a_section_without_a_row_is_found(self):
        self.assert_reference("| `train` | keys | required | how |\n", "", "no row for `train` of JobSpec")

    def test_other_bounds_are_found(self):
        self.assert_reference("from 1 to 1000 |", "from 1 to 100 |", "docs/spec.md:11", "its bounds are 1 and 1000")
        self.assert_reference("0 to below 1", "0 to 1", "a bound is exclusive")

    def test_another_default_is_found(self):
        self.assert_reference("| `1` | times", "| `2` | times", "the default is `1`, not `2`")
        self.assert_reference("-1 | required |", "-1 | `3` |", "the default is required")

    def test_other_allowed_texts_are_found(self):
        self.assert_reference("one of fast, slow", "one of fast", "allowed is one of fast, slow")

    def test_a_kind_that_is_not_named_is_found(self):
        self.assert_reference("**`plain`**", "plain", "`plain` of KindSpec is not named")

    def test_keys_without_a_table_are_found(self):
        table = REFERENCE[REFERENCE.index("**`sized`**"):]
        self.assert_reference(table, "**`sized`**", "no table for the keys of Sized: size")

    def test_a_table_that_does_not_say_of_what_it_is_is_found(self):
        self.plant("proto/job_spec.proto", SCHEMA)
        self.plant("docs/spec.md", REFERENCE.replace("**`sized`** - has", "**`seized`** - has"))
        status, complaints = self.lint("spec_reference.py")
        self.assertEqual(status, 1)
        self.assertIn("docs/spec.md:27: which keys is this table of?", complaints[-1])


if __name__ == "__main__":
    unittest.main()
