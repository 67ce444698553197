import os
import unittest

from planted_tree import planted_tree

SCRIPT = "gpu_kernels.py"
PTX = ".visible .entry first(\n)\n{\n fma.rn.f32 a;\n}\n.visible .entry second(\n)\n{\n mul.rn.f32 b;\n}\n"
LINES = "# CUDA 13.0, compute capability 9.0: kernel, registers, fused multiply-adds\nfirst 20 1\nsecond 10 0\n"


class gpu_kernels(planted_tree):
    """nvcc and ptxas are played: what they say of two kernels is given by the test."""

    def setUp(self):
        super().setUp()
        before = os.environ["PATH"]
        self.addCleanup(lambda: os.environ.update(PATH=before))
        os.environ["PATH"] = f"{self.root / 'build/cuda/bin'}:{before}"
        self.plant("kernels/cuda/some.cu", "__global__ void first() {}\n")
        self.plant("kernels/cuda/resources.txt", LINES)
        self.say()

    def say(self, release="13.0", registers=20, spilled=0):
        self.play("nvcc", f'case $1 in --version) echo "release {release}, V"; exit;; esac\n'
                  f'while [ $# -gt 1 ]; do [ "$1" = -o ] && out=$2; shift; done\nprintf %s "{PTX}" >"$out"\n')
        self.play("ptxas", f"cat >&2 <<'TEXT'\n{self.told('first', registers, spilled)}{self.told('second', 10, 0)}TEXT\n")

    def told(self, name, registers, spilled):
        return (f"ptxas info : Compiling entry function '{name}' for 'sm_90'\n    {spilled} bytes spill stores, {spilled} bytes spill loads\n"
                f"ptxas info : Used {registers} registers\n")

    def play(self, name, text):
        self.plant(f"build/cuda/bin/{name}", f"#!/bin/sh\n{text}")
        os.chmod(self.root / f"build/cuda/bin/{name}", 0o755)

    def test_kernels_as_they_were_are_fine(self):
        self.assert_clean(SCRIPT)

    def test_fewer_registers_are_fine(self):
        self.say(registers=18)
        self.assert_clean(SCRIPT)

    def test_more_registers_are_found(self):
        self.say(registers=21)
        self.assert_finds(SCRIPT, "kernels/cuda/resources.txt:2", "first takes 21 registers, not 20")

    def test_numbers_of_another_release_are_not_compared(self):
        self.say(release="13.1", registers=21)
        self.assert_clean(SCRIPT)

    def test_spilling_is_found_with_any_release(self):
        self.say(release="13.1", spilled=8)
        self.assert_finds(SCRIPT, "first spills 16 bytes")

    def test_spilling_is_found(self):
        self.say(spilled=8)
        self.assert_finds(SCRIPT, "kernels/cuda/some.cu", "first spills 16 bytes")

    def test_another_number_of_fused_multiply_adds_is_found(self):
        self.plant("kernels/cuda/resources.txt", LINES.replace("first 20 1", "first 20 0"))
        self.assert_finds(SCRIPT, "first has 1 fused multiply-adds, not 0")

    def test_a_kernel_without_a_line_is_found(self):
        self.plant("kernels/cuda/resources.txt", LINES.replace("first 20 1\n", ""))
        self.assert_finds(SCRIPT, "has no line for first of kernels/cuda/some.cu")

    def test_a_line_without_a_kernel_is_found(self):
        self.plant("kernels/cuda/resources.txt", LINES + "third 9 0\n")
        self.assert_finds(SCRIPT, "resources.txt:4", "there is no kernel third any more")


if __name__ == "__main__":
    unittest.main()
