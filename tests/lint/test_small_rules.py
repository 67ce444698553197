import unittest

from planted_tree import planted_tree


class formatting(planted_tree):
    def setUp(self):
        super().setUp()
        self.plant(".clang-format", "BasedOnStyle: LLVM\n")

    def test_formatted_code_is_fine(self):
        self.plant("engine/a.cpp", "int f() { return 1; }\n")
        self.assert_clean("format.py")

    def test_unformatted_code_is_found_and_can_be_put_right(self):
        file = self.plant("engine/a.cpp", "int f( ) {return 1;}\n")
        self.assert_finds("format.py", "engine/a.cpp:1")
        self.assert_clean("format.py", "--fix")
        self.assertEqual(file.read_text(), "int f() { return 1; }\n")


class forbidden_words(planted_tree):
    def test_waiting_for_ever_is_found(self):
        self.plant("actors/a.cpp", "// caf::infinite is what we never say\nvoid f() { g(caf::infinite); }\n")
        self.assert_finds("forbidden.py", "actors/a.cpp:2", "nothing waits for ever")

    def test_sleeping_in_tests_is_found(self):
        for call in ("std::this_thread::sleep_for(1s);", "usleep (5);", "::sleep(1);"):
            self.plant("tests/a_test.cpp", f"void f() {{ {call} }}\n")
            self.assert_finds("forbidden.py", "tests/a_test.cpp:1", "no sleeping")

    def test_deleted_ranges_of_keys_are_found(self):
        self.plant("persistence/a.cpp", "void f() { batch.DeleteRange(a, b); }\n")
        self.assert_finds("forbidden.py", "persistence/a.cpp:1", "one by one")

    def test_skipped_and_disabled_tests_are_found(self):
        self.plant("tests/a_test.cpp", "TEST(a, DISABLED_b) {}\n")
        self.assert_finds("forbidden.py", "runs or does not exist")
        self.plant("tests/a_test.cpp", "void f() { GTEST_SKIP(); }\n")
        self.assert_finds("forbidden.py", "runs or does not exist")

    def test_what_is_put_off_is_found_in_comments_too(self):
        self.plant("engine/a.hpp", "// TODO: later\n")
        self.assert_finds("forbidden.py", "engine/a.hpp:1", "TODO")

    def test_rows_of_dashes_are_found(self):
        self.plant("engine/a.cpp", "// ---- sums\n// ----------------\nint a; // ---- and\n")
        self.assert_finds("forbidden.py", "engine/a.cpp:2", "headed by one line")
        self.plant("engine/a.cpp", "// ---- sums\n")
        self.assert_clean("forbidden.py")

    def test_globbed_sources_are_found(self):
        self.plant("engine/CMakeLists.txt", "file(GLOB sources *.cpp)\n")
        self.assert_finds("forbidden.py", "engine/CMakeLists.txt:1", "explicit")

    def test_symbolic_links_are_found_whatever_they_lead_to(self):
        file = self.plant("engine/a.cpp", "int a;\n")
        for name, target in (("to_file", file), ("to_folder", file.parent), ("to_nothing", "/nowhere")):
            link = file.parent / name
            link.symlink_to(target)
            self.assert_finds("forbidden.py", f"engine/{name}: a symbolic link")
            link.unlink()
        self.assert_clean("forbidden.py")

    def test_other_words_are_fine(self):
        self.plant("tests/a_test.cpp", "int f() { return asleep(1) + infinite; } // no sleep(1)\n")
        self.assert_clean("forbidden.py")


class actor_readmes(planted_tree):
    GOOD = "# worker\n**Owns** a\n**Handles** b\n**Sends** c\n**Fails when** d\n**Recovers by** e\n"

    def setUp(self):
        super().setUp()
        self.plant("actors/worker/worker.cpp", "")

    def test_a_readme_that_answers_all_is_fine(self):
        self.plant("actors/worker/README.md", self.GOOD)
        self.assert_clean("actor_readmes.py")

    def test_a_missing_readme_is_found(self):
        self.assert_finds("actor_readmes.py", "actors/worker/README.md", "is missing")

    def test_a_question_without_an_answer_is_found(self):
        self.plant("actors/worker/README.md", self.GOOD.replace("**Recovers by** e\n", ""))
        self.assert_finds("actor_readmes.py", "Recovers by")

    def test_a_long_readme_is_found(self):
        self.plant("actors/worker/README.md", self.GOOD + "more\n" * 60)
        self.assert_finds("actor_readmes.py", "60 are allowed")


class source_lists(planted_tree):
    def setUp(self):
        super().setUp()
        self.plant("CMakeLists.txt", "add_subdirectory(engine)\n")
        self.plant("engine/CMakeLists.txt", "dlrun_library(engine SOURCES model.cpp layers/relu.cpp)\n")
        self.plant("engine/model.cpp", "")
        self.plant("engine/layers/relu.cpp", "")

    def test_named_sources_are_fine(self):
        self.assert_clean("source_lists.py")

    def test_a_source_that_is_not_named_is_found(self):
        self.plant("engine/del.cpp", "")
        self.assert_finds("source_lists.py", "engine/del.cpp", "not named in engine/CMakeLists.txt")

    def test_a_name_in_a_comment_does_not_count(self):
        self.plant("engine/CMakeLists.txt", "dlrun_library(engine SOURCES model.cpp) # layers/relu.cpp\n")
        self.assert_finds("source_lists.py", "engine/layers/relu.cpp")

    def test_a_source_without_any_list_is_found(self):
        self.plant("data/sampler.cpp", "")
        self.assert_finds("source_lists.py", "data/sampler.cpp", "no folder above")


class markdown_links(planted_tree):
    def setUp(self):
        super().setUp()
        self.plant("docs/testing.md", "# Testing\n## What is promised, exactly\n")

    def test_links_that_lead_somewhere_are_fine(self):
        self.plant("README.md", "# It\n[a](docs/testing.md) [b](docs/testing.md#what-is-promised-exactly) [c](#it) [d](https://example.org/x)\n"
                                "`[code](nowhere.md)`\n```\n[code](nowhere.md)\n```\n")
        self.assert_clean("markdown_links.py")

    def test_a_link_to_a_missing_file_is_found(self):
        self.plant("docs/a.md", "[spec](spec.md)\n")
        self.assert_finds("markdown_links.py", "docs/a.md:1", "there is no docs/spec.md")

    def test_a_link_to_a_missing_heading_is_found(self):
        self.plant("README.md", "text\n[a](docs/testing.md#promises)\n")
        self.assert_finds("markdown_links.py", "README.md:2", "no heading #promises")


class quoted_code(planted_tree):
    def setUp(self):
        super().setUp()
        self.plant("data/a.hpp", "int one();\nint two();\nint three();\n")

    def test_a_quotation_with_lines_left_out_is_fine(self):
        self.plant("A.md", "<!-- from data/a.hpp -->\n```cpp\nint one();\n// ...\nint three();\n```\n")
        self.assert_clean("quoted_code.py")

    def test_code_that_changed_since_is_found(self):
        self.plant("A.md", "text\n<!-- from data/a.hpp -->\n```cpp\nint one();\nint zwei();\n```\n")
        self.assert_finds("quoted_code.py", "A.md:2", "int zwei();")

    def test_a_source_that_is_gone_is_found(self):
        self.plant("A.md", "<!-- from data/b.hpp -->\n```cpp\nint one();\n```\n")
        self.assert_finds("quoted_code.py", "data/b.hpp", "not there")


class scripts(planted_tree):
    def test_a_script_that_parses_is_fine(self):
        self.plant("scripts/go", "#!/bin/bash\necho hello\n").chmod(0o755)
        self.assert_clean("scripts.py")

    def test_a_script_that_does_not_parse_is_found(self):
        self.plant("scripts/go", "#!/bin/bash\nif true; then\n").chmod(0o755)
        self.assert_finds("scripts.py", "scripts/go")

    def test_a_script_that_may_not_be_executed_is_found(self):
        self.plant("scripts/go", "#!/usr/bin/python3\nprint(1)\n")
        self.assert_finds("scripts.py", "chmod +x")

    def test_an_interpreter_from_the_path_is_found(self):
        self.plant("scripts/go", "#!/usr/bin/env python3\nprint(1)\n").chmod(0o755)
        self.assert_finds("scripts.py", "scripts/go:1", "env python3")

    def test_a_script_that_does_not_find_a_module_of_the_tree_is_found(self):
        self.plant("elsewhere/helper.py", "answer = 42\n")
        self.plant("scripts/go", "#!/usr/bin/python3\nimport argparse\nimport helper\nargparse.ArgumentParser().parse_args()\n").chmod(0o755)
        self.assert_finds("scripts.py", "scripts/go", "helper")

    def test_a_script_that_needs_what_is_not_installed_is_fine(self):
        self.plant("scripts/go", "#!/usr/bin/python3\nimport argparse\nimport no_such_package\nargparse.ArgumentParser().parse_args()\n").chmod(0o755)
        self.assert_clean("scripts.py")


if __name__ == "__main__":
    unittest.main()
