#include "actors/ps_shard/shard_parameters.hpp"

#include <algorithm>
#include <dlrun/check.hpp>
#include <openssl/evp.h>

namespace dlrun::ps_shard {

result<shard_parameters> shard_parameters::create(const common::job_context& job, ps_shard_id shard) {
  auto optimizer = engine::optimizer::build(job.spec.train().optimizer());
  if (!optimizer) return tl::unexpected(optimizer.error());
  const auto& range = job.shards.at(shard.value);
  auto writer = transport::parameter_writer::create(range.size);
  if (!writer) return tl::unexpected(writer.error());
  shard_parameters made{job, shard, std::move(*writer), *optimizer};

  std::vector<float> flat(job.model->layout().flat_size());
  job.model->initialise(job.spec.train().seed(), flat);
  const auto first = made.writer_.begin_write(timeline_id{0}, version_id{0});
  std::copy_n(flat.begin() + static_cast<std::ptrdiff_t>(range.offset), range.size, first.begin());
  made.writer_.publish();
  return made;
}

shard_parameters::shard_parameters(const common::job_context& job, ps_shard_id shard,
                                   transport::parameter_writer writer, engine::optimizer optimizer)
    : sampler_{job.sampler}
    , range_{job.shards.at(shard.value)}
    , writer_{std::move(writer)}
    , optimizer_{optimizer} {
  const auto& layout = job.model->layout();
  std::uint64_t state = 0;
  for (auto index = range_.first_block; index < range_.last_block; ++index) {
    const auto& block = layout.blocks()[index];
    blocks_.push_back({block, block.offset - range_.offset, state, layout.tensors()[block.tensor].momentum});
    if (block.kind == engine::block_kind::parameter)
      state += block.size * optimizer_.state_floats_per_parameter();
  }
  state_.assign(state, 0.0F);
}

std::span<float> shard_parameters::state_of(const owned_block& owned) {
  return std::span{state_}.subspan(owned.state_offset,
                                   owned.block.size * optimizer_.state_floats_per_parameter());
}

void shard_parameters::update(const owned_block& owned, step_id step, std::span<const float> root,
                              std::span<float> out) {
  const auto part = [&](auto span) { return span.subspan(owned.offset, owned.block.size); };
  switch (owned.block.kind) {
  case engine::block_kind::parameter:
    optimizer_.update(step, 1.0F / static_cast<float>(sampler_.records_in_step(step)), part(root),
                      part(writer_.current()), part(out), state_of(owned));
    break;
  case engine::block_kind::buffer:
    engine::update_buffer(1.0F / static_cast<float>(sampler_.slots(step)), owned.momentum, part(root),
                          part(writer_.current()), part(out));
    break;
  case engine::block_kind::metric: std::ranges::fill(part(out), 0.0F); break;
  }
}

result<std::optional<step_metrics>> shard_parameters::apply(timeline_id timeline, step_id step,
                                                            std::span<const float> root,
                                                            const std::function<bool()>& intact) {
  DLRUN_CHECK(root.size() == range_.size, "a root has {} floats, the shard {}", root.size(), range_.size);
  const auto out = writer_.begin_write(timeline, version_after(step));
  std::optional<step_metrics> metrics;
  for (const auto& owned : blocks_) {
    update(owned, step, root, out);
    if (owned.block.kind != engine::block_kind::metric) continue;
    const auto values = root.subspan(owned.offset, owned.block.size);
    using index = engine::parameter_layout::metric_index;
    metrics = step_metrics{values[index::loss_sum], static_cast<std::uint64_t>(values[index::correct]),
                           static_cast<std::uint64_t>(values[index::records])};
  }
  if (intact && !intact())
    return fail(error_code::protocol,
                fmt::format("the gradient of step {} changed while it was applied", step));
  writer_.publish();
  return metrics;
}

namespace {

std::string sha256(std::uint32_t number, std::span<const float> parameters, std::span<const float> state) {
  std::string digest(32, '\0');
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
  unsigned int size = 0;
  const bool ok =
      context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1 &&
      EVP_DigestUpdate(context.get(), &number, sizeof number) == 1 &&
      EVP_DigestUpdate(context.get(), parameters.data(), parameters.size_bytes()) == 1 &&
      EVP_DigestUpdate(context.get(), state.data(), state.size_bytes()) == 1 &&
      EVP_DigestFinal_ex(context.get(), reinterpret_cast<unsigned char*>(digest.data()), &size) == 1;
  DLRUN_CHECK(ok && size == digest.size(), "SHA-256 of OpenSSL cannot fail");
  return digest;
}

} // namespace

result<std::string> shard_parameters::digests(std::uint32_t first, std::uint32_t count) const {
  if (first < range_.first_block || count > range_.last_block - first || first > range_.last_block)
    return fail(error_code::bad_usage, fmt::format("blocks [{}, {}) are not in [{}, {})", first,
                                                   first + count, range_.first_block, range_.last_block));
  std::string all;
  for (auto index = first; index < first + count; ++index) {
    const auto& owned = blocks_[index - range_.first_block];
    const auto state = owned.block.kind == engine::block_kind::parameter
                           ? owned.block.size * optimizer_.state_floats_per_parameter()
                           : 0;
    all += sha256(index, writer_.current().subspan(owned.offset, owned.block.size),
                  std::span{state_}.subspan(owned.state_offset, state));
  }
  return all;
}

} // namespace dlrun::ps_shard
