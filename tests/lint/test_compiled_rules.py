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

    def test_a_header_that_its_own_source_includes_first_is_left_to_clang_tidy(self):
        self.plant("engine/a.hpp", "#pragma once\nstd::string f();\n")
        self.plant("engine/a.cpp", '// a\n#include "engine/a.hpp"\n')
        self.plant_build("engine/a.cpp")
        self.assert_clean(self.SCRIPT)

    def test_a_source_with_caf_proves_nothing(self):
        self.plant("engine/a.hpp", "#pragma once\nstd::string f();\n")
        self.plant("engine/a.cpp", '#include "engine/a.hpp"\n#include <caf/all.hpp>\n')
        self.plant_build("engine/a.cpp")
        self.assert_finds(self.SCRIPT, "engine/a.hpp", "does not compile alone")

    def test_a_header_sees_the_definitions_of_its_folder(self):
        self.plant("tests/engine/a.hpp", "#pragma once\ninline const char* program() { return PROGRAM; }\n")
        self.plant("tests/engine/a_test.cpp", '#include "tests/engine/a.hpp"\n')
        self.plant_build("tests/engine/a_test.cpp", "-DPROGRAM=\\\"x\\\"")
        self.assert_clean(self.SCRIPT)

    def test_a_header_that_comes_second_in_its_source_is_compiled(self):
        self.plant("engine/a.hpp", "#pragma once\nstd::string f();\n")
        self.plant("engine/a.cpp", '#include <string>\n#include "engine/a.hpp"\n')
        self.plant_build("engine/a.cpp")
        self.assert_finds(self.SCRIPT, "engine/a.hpp", "does not compile alone")

    def test_a_missing_pragma_once_is_found(self):
        self.plant("engine/a.hpp", "// says nothing\nint f();\n")
        self.assert_finds(self.SCRIPT, "engine/a.hpp:1", "#pragma once")


class tidy(planted_tree):
    def setUp(self):
        super().setUp()
        self.plant(".clang-tidy", (LINT.parent.parent / ".clang-tidy").read_text())

    def plant_source(self, text):
        source = self.plant("engine/a.cpp", text)
        entry = {"directory": str(self.root), "file": str(source), "command": f"/usr/bin/c++ -std=c++20 -I{self.root} -o a.o -c {source}"}
        self.plant("build/commands/compile_commands.json", json.dumps([entry]))

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

    def test_a_build_that_is_not_configured_is_named(self):
        self.assert_finds("tidy.py", "build/commands", "cmake --preset commands")


if __name__ == "__main__":
    unittest.main()
