import unittest

from planted_tree import planted_tree

WORDS = "word " * 30


class prose(planted_tree):
    def test_what_fits_is_fine(self):
        self.plant("a.md", "# " + WORDS + "\n\n" + "x" * 110 + "\n| " + WORDS + "|\n```\n" + WORDS + "\n```\n")
        self.assert_clean("line_lengths.py")

    def test_a_wide_paragraph_is_found_and_wrapped(self):
        file = self.plant("a.md", "first\n\n" + WORDS.strip() + "\n\nlast\n")
        self.assert_finds("line_lengths.py", "a.md:3", "110")
        self.assert_clean("line_lengths.py", "--fix")
        self.assertEqual(file.read_text(), "first\n\n" + ("word " * 22).strip() + "\n" + ("word " * 8).strip() + "\n\nlast\n")
        self.assert_clean("line_lengths.py")

    def test_an_item_keeps_its_indentation(self):
        file = self.plant("a.md", "- " + WORDS.strip() + "\n- short\n")
        self.assert_clean("line_lengths.py", "--fix")
        self.assertEqual(file.read_text(), "- " + ("word " * 21).strip() + "\n  " + ("word " * 9).strip() + "\n- short\n")

    def test_links_and_code_stay_whole(self):
        link = "[some words that are a link](docs/a-page-with-a-long-name.md#and-an-anchor)"
        file = self.plant("a.md", "word " * 12 + link + " end\n")
        self.assert_clean("line_lengths.py", "--fix")
        self.assertIn("\n" + link + " end\n", file.read_text())


class comments(planted_tree):
    def test_a_wide_comment_is_found_and_wrapped(self):
        file = self.plant("a.hpp", "  /// " + WORDS.strip() + "\nint f();\n")
        self.assert_finds("line_lengths.py", "a.hpp:1", "100")
        self.assert_clean("line_lengths.py", "--fix")
        self.assertEqual(file.read_text(), "  /// " + ("word " * 19).strip() + "\n  /// " + ("word " * 11).strip() + "\nint f();\n")

    def test_drawings_tags_and_code_are_left_alone(self):
        self.plant("a.hpp", "// a    " + WORDS + "\nint f(); // " + WORDS + "\n")
        self.assert_clean("line_lengths.py")
        file = self.plant("a.hpp", "/// short\n/// @returns " + WORDS.strip() + "\n")
        self.assert_clean("line_lengths.py", "--fix")
        self.assertTrue(file.read_text().startswith("/// short\n/// @returns word"))


if __name__ == "__main__":
    unittest.main()
