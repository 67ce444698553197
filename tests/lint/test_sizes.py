import sys
import unittest

from planted_tree import LINT, planted_tree

sys.path.insert(0, str(LINT))
import sizes  # noqa: E402

SCRIPT = "sizes.py"


def body(lines):
    return "{\n" + "  step();\n" * (lines - 2) + "}\n"


class function_lengths(planted_tree):
    def test_forty_five_lines_are_fine(self):
        self.plant("engine/a.cpp", "void f() " + body(45))
        self.assert_clean(SCRIPT)

    def test_forty_six_lines_are_found(self):
        self.plant("engine/a.cpp", "int x;\nvoid f() " + body(46))
        self.assert_finds(SCRIPT, "engine/a.cpp:2", "f has 46 lines")

    def test_a_long_lambda_counts_to_the_function_around_it(self):
        self.plant("engine/a.cpp", "void f() {\n  auto g = [] " + body(60) + "}\n")
        self.assert_finds(SCRIPT, "f has")

    def test_a_function_of_the_baseline_may_not_grow(self):
        self.plant("scripts/lint/sizes_baseline.txt", "# old\nfunction engine/a.cpp f 70\n")
        self.plant("engine/a.cpp", "void f() " + body(71))
        self.assert_finds(SCRIPT, "71 lines, 70 are allowed")

    def test_the_baseline_shrinks_with_the_function(self):
        self.plant("scripts/lint/sizes_baseline.txt", "function engine/a.cpp f 70\n")
        self.plant("engine/a.cpp", "void f() " + body(65))
        self.assert_finds(SCRIPT, "lower or remove its 70")

    def test_the_baseline_forgets_what_is_gone(self):
        self.plant("scripts/lint/sizes_baseline.txt", "function engine/a.cpp f 70\n")
        self.plant("engine/a.cpp", "void g() {}\n")
        self.assert_finds(SCRIPT, "is gone")

    def test_a_file_of_the_list_that_is_gone_is_found(self):
        self.plant("scripts/lint/sizes_baseline.txt", "class engine a 400 20\n")
        self.assert_finds(SCRIPT, "engine a is gone")

    def test_a_long_file_is_only_a_warning(self):
        self.plant("engine/a.hpp", "int x;\n" * 451)
        self.assert_clean(SCRIPT)


def class_with(methods):
    return "class a {\npublic:\n" + "  int f() const { return 1; }\n" * methods + "};\n"


class class_sizes(planted_tree):
    def list_class(self, lines, methods):
        self.plant("scripts/lint/sizes_baseline.txt", f"class engine a {lines} {methods}\n")

    def test_thirty_methods_are_fine(self):
        self.plant("engine/a.hpp", class_with(30))
        self.assert_clean(SCRIPT)

    def test_thirty_one_methods_are_found(self):
        self.plant("engine/a.hpp", class_with(31))
        self.assert_finds(SCRIPT, "engine/a.hpp", "a has 31 lines in 31 methods")

    def test_a_class_spread_over_files_is_one_class(self):
        self.plant("engine/a.hpp", "class a {\n  void f();\n  void g();\n};\n")
        for name in range(8):
            self.plant(f"engine/a_{name}.cpp", f"void a::f_{name}() " + body(40))
        self.assert_finds(SCRIPT, "engine/a.hpp", "a has 320 lines in 8 methods")

    def test_classes_of_two_folders_and_nested_ones_count_for_themselves(self):
        self.plant("engine/a.hpp", class_with(20))
        self.plant("data/a.hpp", class_with(20))
        self.plant("job/a.hpp", class_with(20).replace("public:\n", "public:\n  struct b {\n" + "    int g() { return 1; }\n" * 20 + "  };\n"))
        self.assert_clean(SCRIPT)

    def test_a_listed_class_may_not_grow(self):
        self.list_class(31, 31)
        self.plant("engine/a.hpp", class_with(32))
        self.assert_finds(SCRIPT, "32 lines in 32 methods, more than the 31 in 31")

    def test_a_listed_class_of_today_is_fine(self):
        self.list_class(34, 34)
        self.plant("engine/a.hpp", class_with(32))
        self.assert_clean(SCRIPT)

    def test_the_list_shrinks_with_the_class(self):
        self.list_class(50, 50)
        self.plant("engine/a.hpp", class_with(40))
        self.assert_finds(SCRIPT, "lower or remove its 50 50")

    def test_a_class_that_has_become_small_leaves_the_list(self):
        self.list_class(31, 31)
        self.plant("engine/a.hpp", class_with(30))
        self.assert_finds(SCRIPT, "lower or remove its 31 31")


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

    def test_methods_know_their_class(self):
        text = ("namespace x {\nclass a : public b<int> {\n  void f() {}\n  struct c { int g() { return 1; } };\n};\n"
                "template <class T>\nint d<T>::e::h() {\n}\nenum class k { l };\nvoid free() {}\n}\n")
        self.assertEqual(list(sizes.methods(text)), [("a", 0), ("a", 1), ("a::c", 0), ("a::c", 1), ("d::e", 2)])

    def test_a_lambda_in_a_namespace_is_a_function(self):
        self.assertEqual(self.functions("const auto twice = [](int x) {\n  return 2 * x;\n};\n"), [("lambda", 3)])


if __name__ == "__main__":
    unittest.main()
