import unittest

from planted_tree import planted_tree

CATALOGUE = """# Errors
| code | exit code | meaning |
|---|---|---|
| `bad_spec` | 2 | the job file |
| `disk_full` | 1 | the disk |

```
$ dlrun train job.yaml
dlrun: job.yaml:3: train: unknown key "epoch"; did you mean "epochs"?
dlrun: cannot write /data/log: the disk is full; free space there: No space left on device
```
```sh
dlrun no message at all
```
"""


class error_catalogue(planted_tree):
    def setUp(self):
        super().setUp()
        self.plant("include/dlrun/error.hpp", "enum class error_code : unsigned {\n  /// Of the job, file.\n  bad_spec = 1,\n  disk_full,\n};\n")
        self.plant("job/exit_code.hpp", "enum class exit_code : int {\n  job_failed = 1,\n  bad_input = 2,\n};\n")
        self.plant("job/exit_code.cpp", "case error_code::bad_spec: return exit_code::bad_input;\n"
                                        "case error_code::disk_full: return exit_code::job_failed;\n")
        self.plant("job/reader.cpp", 'auto a = fmt::format("unknown key \\"{}\\"; {}", key, hint);\n'
                                     'auto b = fmt::format("did you mean \\"{}\\"?", best);\n')
        self.plant("persistence/file.cpp", 'fail(code, fmt::format("cannot {} {}{}: the disk is full; "\n  "free space there: {}", what));\n'
                                           'const auto what = "write";\n')
        self.plant("proto/job_spec.proto", "message JobSpec { TrainSpec train = 1; }\n")
        self.plant("docs/errors.md", CATALOGUE)

    def assert_catalogue(self, old, new, *words):
        self.assertIn(old, CATALOGUE)
        self.plant("docs/errors.md", CATALOGUE.replace(old, new))
        self.assert_finds("error_catalogue.py", *words)

    def test_a_complete_catalogue_is_fine(self):
        self.assert_clean("error_catalogue.py")

    def test_a_code_without_a_row_is_found(self):
        self.assert_catalogue("| `disk_full` | 1 | the disk |\n", "", "no row for the code `disk_full`")

    def test_a_code_that_is_gone_is_found(self):
        self.assert_catalogue("| `disk_full` |", "| `disk_fool` | 1 | x |\n| `disk_full` |", "docs/errors.md:5", "no error code `disk_fool`")

    def test_another_exit_code_is_found(self):
        self.assert_catalogue("| `disk_full` | 1 |", "| `disk_full` | 2 |", "docs/errors.md:5", "with 1, not 2")

    def test_a_message_that_has_changed_is_found(self):
        self.plant("job/reader.cpp", 'auto a = fmt::format("no such key: \\"{}\\"; {}", key, hint);\n'
                                     'auto b = fmt::format("did you mean \\"{}\\"?", best);\n')
        self.assert_finds("error_catalogue.py", "docs/errors.md:9", "no source says 'unknown'")

    def test_words_in_another_order_are_no_message(self):
        self.assert_catalogue("the disk is full; free space there", "free space there; the disk is full", "docs/errors.md:10")

    def test_what_only_tests_say_is_no_message(self):
        self.plant("tests/a_test.cpp", 'auto a = "a test says something";\n')
        self.assert_catalogue("$ dlrun train job.yaml", "a test says something", "docs/errors.md:8", "says something")


if __name__ == "__main__":
    unittest.main()
