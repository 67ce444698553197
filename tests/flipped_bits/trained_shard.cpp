#include "tests/flipped_bits/trained_shard.hpp"

#include "actors/common/history_conversion.hpp"
#include "tests/flipped_bits/copy_pair.hpp"
#include "tests/flipped_bits/flipping_file_system.hpp"

#include <dlrun/check.hpp>
#include <spdlog/logger.h>

namespace dlrun::flipped_bits {
namespace {

namespace fs = std::filesystem;

constexpr protocol::parked_slot left_out{{9}, {1}}; ///< so that timeline 1 has other bits

persistence::shard_store_options options_of(const fs::path& directory, std::size_t inline_max) {
  persistence::shard_store_options made;
  made.directory = directory.string();
  made.opener = {1};
  made.files = flipping_file_system(std::make_shared<bit_flip>());
  made.inline_bytes_max = inline_max;
  made.segment_bytes = std::uint64_t{32} << 10;
  return made;
}

} // namespace

trained_shard::trained_shard(const fs::path& folder)
    : folder_(folder)
    , job_(test::small_job(folder, {"train.epochs=6"}))
    , store_(persistence::shard_store::open(options_of(folder / "own", inline_bytes_max[0])).value())
    , live_(std::make_unique<test::training_shard>(job_))
    , copies_{kept_copy{}} {
  digests_[{timeline_, live_->version}] = live_->digests();
  train(4);
  take_snapshot();
  train(4);
  take_snapshot();
  train(2);
  keep_copy();
  go_back({7});
  train(5);
  take_snapshot();
  keep_copy();
  train(2);
  take_snapshot();
  train(2);
  DLRUN_CHECK(store_->drop_below({4}), "the floor is refused");
}

std::shared_ptr<const common::job_context> trained_shard::job_in(const fs::path& run_dir) const {
  auto made = std::make_shared<common::job_context>(*job_);
  made->run_dir = run_dir;
  return made;
}

std::string trained_shard::digests_of(timeline_id timeline, version_id version) const {
  const auto found = digests_.find({timeline, version});
  return found == digests_.end() ? "" : found->second;
}

void trained_shard::train(int steps) {
  for (int i = 0; i < steps; ++i) {
    const auto made = live_->train(0, timeline_, parked_);
    const persistence::log_record record{made.step, made.timeline, made.extra, std::as_bytes(made.root)};
    DLRUN_CHECK(store_->append(std::span(&record, 1)), "step {} is refused", made.step);
    digests_[{timeline_, live_->version}] = live_->digests();
  }
}

void trained_shard::take_snapshot() {
  const auto image = live_->parameters.begin_image(1);
  const common::snapshot_extra extra{live_->parameters.range(), image->floats(), live_->metrics.sums(),
                                     live_->ledger};
  const auto written =
      ps_shard::write_snapshot(*store_, live_->version, timeline_, *image, extra, [] { return true; });
  image->abandon();
  DLRUN_CHECK(written, "the snapshot of version {} is refused", live_->version);
}

void trained_shard::go_back(version_id to) {
  const auto before = timeline_;
  ++timeline_.value;
  parked_ = {left_out};
  const protocol::history history{{{0}, {0}, 0, {}}, {timeline_, to, 0, parked_}};
  DLRUN_CHECK(store_->rewind(common::history_to_store(history), to), "the way back is refused");
  auto numbers = ps_shard::shard_parameters::create(job_, {0}).value();
  spdlog::logger log{"flipped bits"};
  const auto made =
      ps_shard::restore(*store_, numbers, job_->sampler, history, to, ps_shard::damaged_snapshot::leave, log)
          .value();
  live_ = std::make_unique<test::training_shard>(job_, std::move(numbers));
  live_->version = to;
  live_->ledger = made.ledger;
  live_->metrics = ps_shard::epoch_metrics{made.metrics};
  for (std::uint64_t version = 0; version <= to.value; ++version)
    digests_[{timeline_, {version}}] = digests_of(before, {version});
}

/// Goes on from the copy before, and alternates where records are kept.
void trained_shard::keep_copy() {
  const auto to = folder_ / ("copy-" + std::to_string(copies_.size()));
  if (!copies_.back().folder.empty()) fs::copy(copies_.back().folder, to, fs::copy_options::recursive);
  const auto inline_max = inline_bytes_max[copies_.size() % std::size(inline_bytes_max)];
  copy_pair pair{{store_.get(), options_of(to, inline_max), std::make_shared<bit_flip>()}};
  DLRUN_CHECK(pair.run() && pair.noticed().empty(), "an undisturbed copy gets nowhere");
  copies_.push_back({to, timeline_, live_->version});
}

} // namespace dlrun::flipped_bits
