/// Where a worker reads the parameters of the PS shards.
#pragma once

#include "actors/common/job_context.hpp"
#include "actors/common/way_back.hpp"
#include "transport/parameter_segment.hpp"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace dlrun::worker {

/// A shard's parameters as they are mapped here, or as a copy of them was fetched.
using parameter_source = std::shared_ptr<const transport::parameter_reader>;

/// The parameters of each PS shard's newest start: mapped once where memory is shared, else a new
/// copy each time, of the shard's two buffers in turn. Called inside the entry lock of its owner.
class parameter_sources {
public:
  using taker = std::function<void(const parameter_source&)>;

  /// `context` and `client` outlive this.
  parameter_sources(const common::role_context& context, transport::segment_fetches& client,
                    common::way_back back);

  /// A shard says where its parameters lie. What a newer start replaces is not served any more.
  void follow(const protocol::shard_state& state);
  /// Calls `done` once, at once where the parameters are mapped; with null where they cannot be
  /// had.
  void get(ps_shard_id shard, taker done);
  /// Of all shards in their order, null where nothing is mapped.
  std::vector<parameter_source> all() const;
  /// Whether a source shows what the shard writes from then on.
  bool is_shared(ps_shard_id shard) const;

private:
  struct shard_memory {
    dlrun::incarnation incarnation; ///< of the shard's start
    protocol::tensor_location parameters;
    parameter_source source; ///< null while mapping, and where nothing is shared
    bool is_fetching = false;
    int buffer = 0;               ///< that a copy is taken of next
    std::vector<taker> waiting{}; ///< for what is being fetched
  };

  void fetch(ps_shard_id shard);
  void on_fetched(ps_shard_id shard, incarnation start, result<transport::segment> fetched);

  const common::role_context& context_;
  transport::segment_fetches& client_;
  common::way_back back_;
  std::map<ps_shard_id, shard_memory> shards_;
};

} // namespace dlrun::worker
