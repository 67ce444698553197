import json
import unittest

from planted_tree import LINT, planted_tree


class self_contained_headers(planted_tree):
    SCRIPT = "self_contained_headers.py"

    def test_a_header_that_includes_what_it_uses_is_fine(self):
        self.plant("engine/a.hpp", "#pragma once\n#include <string>\nstd::string f();\n")
        self.assert_clean(self.SCRIPT)

    def test_a_header_that_forgot_an_include_is_found(self):
        self.plant("engine/a.hpp", "#pragma once\nstd::string f();\n")
        self.assert_finds(self.SCRIPT, "engine/a.hpp", "does not compile alone")

    def test_a_change_in_an_included_header_is_noticed(self):
        self.plant("engine/base.hpp", "#pragma once\nusing number = int;\n")
        self.plant("engine/a.hpp", '#pragma once\n#include "engine/base.hpp"\nnumber f();\n')
        self.assert_clean(self.SCRIPT)
        self.plant("engine/base.hpp", "#pragma once\n")
        self.assert_finds(self.SCRIPT, "engine/a.hpp", "does not compile alone")

    def plant_build(self, source, options=""):
        entry = {"directory": str(self.root), "file": str(self.root / source), "command": f"c++ {options} -c {source}"}
        self.plant("build/commands/compile_commands.json", json.dumps([entry]))

    def test_a_header_sees_the_definitions_of_its_folder(self):
        self.plant("tests/engine/a.hpp", "#pragma once\ninline const char* program() { return PROGRAM; }\n")
        self.plant("tests/engine/a_test.cpp", '#include "tests/engine/a.hpp"\n')
        self.plant_build("tests/engine/a_test.cpp", "-DPROGRAM=\\\"x\\\"")
        self.assert_clean(self.SCRIPT)

    def test_a_missing_pragma_once_is_found(self):
        self.plant("engine/a.hpp", "// says nothing\nint f();\n")
        self.assert_finds(self.SCRIPT, "engine/a.hpp:1", "#pragma once")


class tidy(planted_tree):
    def setUp(self):
        super().setUp()
        self.plant(".clang-tidy", (LINT.parent.parent / ".clang-tidy").read_text())

    def plant_source(self, text, *others):
        """engine/a.cpp, and others as b0.cpp, b1.cpp, ..."""
        sources = [self.plant("engine/a.cpp", text)]
        sources += [self.plant(f"engine/b{number}.cpp", other) for number, other in enumerate(others)]
        entries = [{"directory": str(self.root), "file": str(source), "command": f"/usr/bin/c++ -std=c++20 -I{self.root} -o a.o -c {source}"}
                   for source in sources]
        self.plant("build/commands/compile_commands.json", json.dumps(entries))

    def many(self, count):
        """Enough sound sources for batches of several on any machine of up to 32 cores."""
        return [f"int sound{number}() {{ return {number}; }}\n" for number in range(count)]

    def test_sound_code_is_fine_the_second_time_too(self):
        self.plant_source("int twice(int value) { return 2 * value; }\n")
        self.assert_clean("tidy.py")
        self.assert_clean("tidy.py")

    def test_use_after_move_is_found(self):
        self.plant_source("#include <string>\n#include <utility>\nvoid take(std::string);\n"
                          "auto f(std::string text) {\n  take(std::move(text));\n  return text.size();\n}\n")
        self.assert_finds("tidy.py", "engine/a.cpp:6", "bugprone-use-after-move")

    def test_a_name_in_another_style_is_found_in_a_header(self):
        self.plant("engine/a.hpp", "#pragma once\nint twiceAsMuch(int value);\n")
        self.plant_source('#include "engine/a.hpp"\n')
        self.assert_finds("tidy.py", "engine/a.hpp:2", "twiceAsMuch")

    def test_a_finding_is_named_by_its_source_also_where_many_are_analysed_together(self):
        self.plant_source("int twice(int value) { return 2 * value; }\n", *self.many(150), "int twiceAsMuch(int value) { return value; }\n")
        self.assert_finds("tidy.py", "engine/b150.cpp:1", "twiceAsMuch")

    def test_sources_that_do_not_go_together_are_analysed_alone(self):
        self.plant_source("namespace { int same() { return 1; } }\nint one() { return same(); }\n", *self.many(150),
                          "namespace { int same() { return 2; } }\nint two() { return same(); }\n")
        self.assert_clean("tidy.py")

    def test_a_source_that_does_not_compile_is_named(self):
        self.plant_source("int twice(int value) { return 2 * value }\n", *self.many(3))
        self.assert_finds("tidy.py", "engine/a.cpp:1", "expected ';'")

    def test_a_build_that_is_not_configured_is_named(self):
        self.assert_finds("tidy.py", "build/commands", "cmake --preset commands")


if __name__ == "__main__":
    unittest.main()
