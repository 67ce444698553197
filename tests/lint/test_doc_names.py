import unittest

from planted_tree import planted_tree


class doc_names(planted_tree):
    def setUp(self):
        super().setUp()
        self.plant("engine/network.cpp", "namespace a { class network { void run(); }; constexpr unsigned records_max = 65'536; }\n")
        self.plant("engine/chunks.hpp", "inline constexpr std::size_t chunk_bytes = std::size_t{1} << 20;\n")
        self.plant("tests/engine/network_test.cpp", "")

    def test_names_that_exist_are_fine(self):
        self.plant("README.md", "`engine/network`, `engine/network.cpp`, `engine/`, `network::run`, `network::run()`, `network_test`\n")
        self.assert_clean("doc_names.py")

    def test_a_file_that_is_gone_is_found(self):
        self.plant("README.md", "\nsee `engine/gone.cpp`\n")
        self.assert_finds("doc_names.py", "README.md:2", "no such file")

    def test_a_member_that_is_gone_is_found(self):
        self.plant("README.md", "`network::walk` and `std::walk`\n")
        self.assert_finds("doc_names.py", "README.md:1", "`walk`")

    def test_a_test_that_is_gone_is_found(self):
        self.plant("README.md", "`gone_test`\n")
        self.assert_finds("doc_names.py", "README.md:1", "no such test")

    def test_blocks_of_code_and_history_are_passed_over(self):
        self.plant("README.md", "```\n`engine/gone.cpp`\n```\n")
        self.plant("CHANGELOG.md", "`engine/gone.cpp` is gone\n")
        self.assert_clean("doc_names.py")

    def test_a_figure_that_is_the_constant_is_fine(self):
        self.plant("README.md", "65,536 <!-- = records_max --> records, 1 MiB <!-- = chunk_bytes -->\n")
        self.assert_clean("doc_names.py")

    def test_a_figure_that_is_not_the_constant_is_found(self):
        self.plant("README.md", "\n65,535 <!-- = records_max --> records\n")
        self.assert_finds("doc_names.py", "README.md:2", "set records_max to 65536")
        self.plant("README.md", "2 MiB <!-- = chunk_bytes -->\n")
        self.assert_finds("doc_names.py", "README.md:1", "chunk_bytes")

    def test_a_figure_of_no_constant_is_found(self):
        self.plant("README.md", "3 <!-- = nothing -->\n")
        self.assert_finds("doc_names.py", "README.md:1", "`nothing` is 0 constants")


if __name__ == "__main__":
    unittest.main()
