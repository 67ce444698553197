import sys
import unittest

from planted_tree import LINT, planted_tree

sys.path.insert(0, str(LINT))
import sizes  # noqa: E402

SCRIPT = "sizes.py"


def body(lines):
    return "{\n" + "  step();\n" * (lines - 2) + "}\n"


class function_lengths(planted_tree):
    def test_sixty_lines_are_fine(self):
        self.plant("engine/a.cpp", "void f() " + body(60))
        self.assert_clean(SCRIPT)

    def test_sixty_one_lines_are_found(self):
        self.plant("engine/a.cpp", "int x;\nvoid f() " + body(61))
        self.assert_finds(SCRIPT, "engine/a.cpp:2", "f has 61 lines")

    def test_a_long_class_of_short_functions_is_fine(self):
        self.plant("engine/a.hpp", "class a {\npublic:\n" + ("  int f() const {\n    return 1;\n  }\n" * 40) + "};\n")
        self.assert_clean(SCRIPT)

    def test_a_long_lambda_counts_to_the_function_around_it(self):
        self.plant("engine/a.cpp", "void f() {\n  auto g = [] " + body(60) + "}\n")
        self.assert_finds(SCRIPT, "f has")

    def test_a_function_of_the_baseline_may_not_grow(self):
        self.plant("scripts/lint/sizes_baseline.txt", "# old\nengine/a.cpp f 70\n")
        self.plant("engine/a.cpp", "void f() " + body(71))
        self.assert_finds(SCRIPT, "71 lines, 70 are allowed")

    def test_the_baseline_shrinks_with_the_function(self):
        self.plant("scripts/lint/sizes_baseline.txt", "engine/a.cpp f 70\n")
        self.plant("engine/a.cpp", "void f() " + body(65))
        self.assert_finds(SCRIPT, "lower or remove its 70")

    def test_the_baseline_forgets_what_is_gone(self):
        self.plant("scripts/lint/sizes_baseline.txt", "engine/a.cpp f 70\n")
        self.plant("engine/a.cpp", "void g() {}\n")
        self.assert_finds(SCRIPT, "is gone")

    def test_a_long_file_is_only_a_warning(self):
        self.plant("engine/a.hpp", "int x;\n" * 451)
        self.assert_clean(SCRIPT)


class scanner(unittest.TestCase):
    def functions(self, text):
        return [(name, lines) for name, _, lines in sizes.functions(text)]

    def test_a_constructor_with_a_member_list_is_one_function(self):
        self.assertEqual(self.functions("foo::foo(int a) : a_{a}, b_{1}, c_(2) {\n  go();\n}\n"), [("foo::foo", 3)])

    def test_initialisers_and_types_are_no_functions(self):
        self.assertEqual(self.functions("struct p { int x = 0; int y{1}; };\nconstexpr p origin = {f(1), 2};\nenum class e { a, b };\n"), [])

    def test_braces_in_literals_and_comments_do_not_count(self):
        self.assertEqual(self.functions('void f() {\n  g("{", \'{\', R"({{)"); // {\n  /* { */ }\nvoid h() {}\n'), [("f", 3), ("h", 1)])

    def test_digit_separators_are_no_characters(self):
        self.assertEqual(self.functions("int f() { return 1'000'000; }\nint g() { return 2; }\n"), [("f", 1), ("g", 1)])

    def test_macros_that_hold_braces_are_skipped(self):
        self.assertEqual(self.functions("#define OPEN \\\n  if (x) {\nvoid f() {}\n"), [("f", 1)])

    def test_a_gtest_case_has_its_full_name(self):
        self.assertEqual(self.functions("TEST(sampler, every_record_once) {\n}\n"), [("sampler.every_record_once", 2)])

    def test_specialised_templates_hold_functions(self):
        text = "template <>\nstruct hash<void(int)> {\n  int operator()(int x) const noexcept {\n    return x;\n  }\n};\n"
        self.assertEqual(self.functions(text), [("operator()", 3)])

    def test_default_arguments_in_braces_do_not_end_a_signature(self):
        self.assertEqual(self.functions("void f(options o = {}, int x = 1) {\n}\n"), [("f", 2)])

    def test_a_lambda_in_a_namespace_is_a_function(self):
        self.assertEqual(self.functions("const auto twice = [](int x) {\n  return 2 * x;\n};\n"), [("lambda", 3)])


if __name__ == "__main__":
    unittest.main()
