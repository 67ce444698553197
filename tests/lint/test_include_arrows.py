import unittest

from planted_tree import planted_tree

SCRIPT = "include_arrows.py"


class include_arrows(planted_tree):
    def setUp(self):
        super().setUp()
        self.plant("include/dlrun/error.hpp", "#pragma once\n")
        self.plant("engine/model.hpp", "#pragma once\n#include <dlrun/error.hpp>\n")
        self.plant("data/sampler.hpp", "#pragma once\n")
        self.plant("actors/protocol/messages.hpp", "#pragma once\n#include <caf/all.hpp>\n")
        self.plant("actors/worker/worker.hpp", '#pragma once\n#include "actors/protocol/messages.hpp"\n#include "engine/model.hpp"\n')
        self.plant("cli/main.cpp", '#include "actors/worker/worker.hpp"\n#include "job/report.pb.h"\n')

    def test_arrows_that_point_down_are_fine(self):
        self.assert_clean(SCRIPT)

    def test_an_arrow_that_points_up_is_found(self):
        self.plant("engine/graph.cpp", '#include "actors/common/ask.hpp"\n')
        self.plant("actors/common/ask.hpp", "#pragma once\n")
        self.assert_finds(SCRIPT, "engine/graph.cpp:1", "points up", "actors/common")

    def test_a_role_that_includes_a_role_is_found(self):
        self.plant("actors/agent/agent.cpp", '#include "actors/worker/worker.hpp"\n')
        self.assert_finds(SCRIPT, "actors/agent/agent.cpp:1", "roles never include one another")

    def test_who_shows_a_run_knows_roles_but_neither_caf_nor_who_starts_it(self):
        self.plant("actors/agent/board.hpp", "#pragma once\n")
        self.plant("observability/metrics.cpp", '#include "actors/agent/board.hpp"\n')
        self.assert_clean(SCRIPT)
        self.plant("observability/metrics.cpp", '#include "actors/protocol/messages.hpp"\n')
        self.assert_finds(SCRIPT, "observability/metrics.cpp", "caf/all.hpp")
        self.plant("cli/run.hpp", "#pragma once\n")
        self.plant("observability/metrics.cpp", '#include "cli/run.hpp"\n')
        self.assert_finds(SCRIPT, "observability/metrics.cpp:1", "points up")

    def test_caf_below_the_actors_is_found(self):
        self.plant("engine/graph.cpp", "#include <caf/actor.hpp>\n")
        self.assert_finds(SCRIPT, "engine/graph.cpp:1", "caf/actor.hpp")

    def test_caf_in_a_core_is_found_by_the_name_of_the_file(self):
        self.plant("actors/worker/worker_core.hpp", "#pragma once\n#include <caf/actor.hpp>\n")
        self.assert_finds(SCRIPT, "actors/worker/worker_core.hpp:2", "pure core")

    def test_caf_in_a_core_is_found_through_another_header(self):
        self.plant("actors/worker/worker_core.hpp", '#pragma once\n#include "actors/protocol/messages.hpp"\n')
        self.assert_finds(SCRIPT, "worker_core.hpp", "through actors/protocol/messages.hpp")

    def test_a_core_that_says_it_is_pure_is_held_to_it(self):
        self.plant("actors/worker/pace.hpp", "#pragma once\n#include <thread>\n/// Pure: same calls, same answers.\n")
        self.assert_finds(SCRIPT, "actors/worker/pace.hpp:2", "<thread>")

    def test_a_core_that_reads_the_clock_is_found(self):
        self.plant("actors/common/supervisor.cpp", "#include <chrono>\nauto now() { return std::chrono::steady_clock::now(); }\n")
        self.assert_finds(SCRIPT, "actors/common/supervisor.cpp:2", "time is an argument")

    def test_folders_of_one_level_that_include_each_other_are_found(self):
        self.plant("data/reader.cpp", '#include "engine/model.hpp"\n')
        self.plant("engine/feed.cpp", '#include "data/sampler.hpp"\n')
        status, complaints = self.lint(SCRIPT)
        self.assertEqual(status, 1)
        self.assertEqual(len(complaints), 2)
        self.assertIn("data and engine include each other", complaints[0])

    def test_an_include_that_is_not_written_from_the_root_is_found(self):
        self.plant("engine/shape.hpp", "#pragma once\n")
        self.plant("engine/graph.cpp", '#include "shape.hpp"\n')
        self.assert_finds(SCRIPT, "engine/graph.cpp:1", "from the root")

    def test_a_public_header_in_quotes_is_found(self):
        self.plant("engine/graph.cpp", '#include "dlrun/error.hpp"\n')
        self.assert_finds(SCRIPT, "engine/graph.cpp:1", "with <>")

    def test_a_folder_without_a_place_is_found(self):
        self.plant("misc/helpers.cpp", "#include <dlrun/error.hpp>\n")
        self.assert_finds(SCRIPT, "misc has no place")

    def test_an_include_in_a_comment_is_no_include(self):
        self.plant("engine/graph.cpp", "// #include <caf/actor.hpp>\n/*\n#include <caf/actor.hpp>\n*/\n")
        self.assert_clean(SCRIPT)

    def test_tests_may_include_everything(self):
        self.plant("tests/engine/all_test.cpp", '#include "actors/worker/worker.hpp"\n#include <caf/all.hpp>\n')
        self.assert_clean(SCRIPT)


if __name__ == "__main__":
    unittest.main()
