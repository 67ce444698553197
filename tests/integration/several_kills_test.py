"""Several roles killed at once at random, seeded moments, and all: the same bits, nothing missing, nothing left."""

import any_kills
import small_data
from any_kill_case import any_kill_case
from bench_case import main


def over_tcp(spec):
    spec["cluster"]["tensor_channel"] = "tcp"
    return spec


class several_kills(any_kill_case):
    """Where gradients and parameters are lost together, training goes back to a version that all have."""

    def test_anyone_and_everyone_with_every_step_logged(self):
        self.expect_survival("mlp_dropout", "every_step", any_kills.SEVERAL, seed=6, count=4)

    def test_anyone_and_everyone_in_mode_snapshots(self):
        self.expect_survival("cnn_batch_norm", "snapshots", any_kills.SEVERAL, seed=7, count=4)

    def test_anyone_where_ps_shards_exchange_norms_with_every_step_logged(self):
        self.expect_survival("mlp_dropout", "every_step", any_kills.SEVERAL, seed=9, count=4,
                             change=small_data.add_coupled_updates)

    def test_anyone_where_ps_shards_exchange_norms_in_mode_snapshots(self):
        self.expect_survival("mlp_dropout", "snapshots", [*any_kills.SEVERAL, "ps_shard"], seed=10, count=4,
                             change=small_data.add_coupled_updates)

    def test_anyone_and_everyone_over_tcp(self):
        self.expect_survival("mlp_dropout", "every_step", any_kills.SEVERAL, seed=11, count=4, change=over_tcp)


if __name__ == "__main__":
    main()
