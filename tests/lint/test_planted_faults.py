import importlib.util
import pathlib
import subprocess

from planted_tree import planted_tree

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "tests/kernels_cuda/planted_faults.py"
SPEC = importlib.util.spec_from_file_location("planted_faults", SCRIPT)
planted_faults = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(planted_faults)


class planted_faults_places(planted_tree):
    """Which barriers, events and waits it finds, and what is compiled in their place. What the tests notice takes a build."""

    def setUp(self):
        super().setUp()
        self.plant("kernels/cuda/a.cu", "void f() {\n  __syncthreads(); // until then\n  // __syncthreads();\n  __syncthreads();\n}\n")
        self.plant("kernels/cuda/README.md", "__syncthreads()\n")
        self.plant("engine/cuda/b.cpp", "  on_.record(lane::compute, **at);\n  if (auto done = on_.finish(*events_[i]); !done) return done;\n"
                   "  return device_->finish(lane_);\n  other.finish(1);\n  on_.wait(lane::side,\n           *at);\n")
        self.plant("engine/cuda/c.hpp", "  void flush();\n  void flush(lane on) {\n    if (on == lane::compute) flush();\n  }\n"
                   "  ~pass() { on_.flush(); }\n  void wait() { inner_->wait(on, at); }\n")
        self.places, self.switched = planted_faults.find_places(self.root)

    def test_names_each_by_its_file_number_and_line(self):
        self.assertEqual([(one.name, one.line) for one in self.places],
                         [("kernels/cuda/a.cu#1", 2), ("kernels/cuda/a.cu#2", 4), ("engine/cuda/b.cpp#1", 1), ("engine/cuda/b.cpp#2", 2),
                          ("engine/cuda/b.cpp#3", 3), ("engine/cuda/b.cpp#4", 5), ("engine/cuda/c.hpp#1", 3), ("engine/cuda/c.hpp#2", 5),
                          ("engine/cuda/c.hpp#3", 6)])
        self.assertEqual([one.number for one in self.places], [1, 2, 3, 4, 5, 6, 7, 8, 9])
        self.assertEqual([one.text for one in self.places[-4:]],
                         ["on_.wait(lane::side, *at)", "flush()", "on_.flush()", "inner_->wait(on, at)"])

    def test_leaves_comments_and_all_other_code_as_they_are(self):
        self.assertEqual(self.switched["kernels/cuda/a.cu"].splitlines()[1:4],
                         ["  (planted_fault == 1 ? static_cast<void>(0) : __syncthreads()); // until then", "  // __syncthreads();",
                          "  (planted_fault == 2 ? static_cast<void>(0) : __syncthreads());"])
        engine = self.switched["engine/cuda/b.cpp"]
        self.assertIn("auto done = (planted_fault == 4 ? ::dlrun::result<void>{} : on_.finish(*events_[i])); !done", engine)
        self.assertIn("return (planted_fault == 5 ? ::dlrun::result<void>{} : device_->finish(lane_));", engine)
        self.assertIn("  other.finish(1);\n", engine)

    def test_with_threads_it_removes_barriers_alone(self):
        listed = subprocess.run([SCRIPT, "--threads", "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertTrue(listed)
        self.assertEqual([line for line in listed if not line.startswith("kernels/") or "__syncthreads()" not in line], [])

    def test_says_whether_what_is_not_caught_is_known(self):
        one = self.places[0]
        self.assertEqual(planted_faults.verdict(one, "some.test"), ("some.test", True))
        self.assertFalse(planted_faults.verdict(one, None)[1])
        planted_faults.EQUIVALENT[one.name] = "nothing reads it"
        self.addCleanup(planted_faults.EQUIVALENT.clear)
        self.assertEqual(planted_faults.verdict(one, None), ("NOT CAUGHT: nothing reads it", True))
        self.assertFalse(planted_faults.verdict(one, "some.test")[1])
