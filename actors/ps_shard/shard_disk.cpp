#include "actors/ps_shard/shard_disk.hpp"

namespace dlrun::ps_shard {

void shard_disk::open(threaded_store_options options,
                      std::function<void(const std::optional<error>&)> stalled) {
  options.watcher = {[this, post = post_, stalled](const error& why) {
                       post([stalled, why] { stalled(why); });
                       return !is_gone_;
                     },
                     [post = post_, stalled] { post([stalled] { stalled(std::nullopt); }); }};
  opened_ = std::make_shared<decltype(opened_)::element_type>(nullptr);
  maker_.run([opened = opened_, options = std::move(options)] { *opened = threaded_store::open(options); });
}

void shard_disk::load_newest(common::retained_memory former, loaded done) {
  const auto memory = std::make_shared<common::retained_memory>(std::move(former));
  maker_.run([this, opened = opened_, memory, parameters = maker_.parameters(), post = post_, done] {
    const auto restored = *opened ? (**opened)->restore_newest(*parameters, std::move(*memory))
                                  : result<loaded_standing>{tl::unexpected(opened->error())};
    post([this, opened, restored, done] {
      if (*opened) store_ = **opened;
      done(restored);
    });
  });
}

void shard_disk::run(threaded_store_events events) {
  const auto at_owner = [post = post_](auto event) {
    return [post, event](const auto&... what) { post([event, what...] { event(what...); }); };
  };
  store_->run({.log = {.committed = at_owner(std::move(events.log.committed)),
                       .stalled = at_owner(std::move(events.log.stalled)),
                       .broken = at_owner(std::move(events.log.broken))},
               .snapshot_durable = at_owner(std::move(events.snapshot_durable)),
               .snapshot_failed = at_owner(std::move(events.snapshot_failed))});
}

void shard_disk::go_back(const perform_rewind& order, loaded done) {
  const auto load = [this, order, done](const result<void>& truncated) {
    if (!truncated) return done(tl::unexpected(truncated.error()));
    maker_.run([store = store_, parameters = maker_.parameters(), order, post = post_, done] {
      post([restored = store->load_after_rewind(*parameters, order), done] { done(restored); });
    });
  };
  store_->rewind(order, [post = post_, load](const result<void>& truncated) {
    post([load, truncated] { load(truncated); });
  });
}

void shard_disk::freeze(timeline_id timeline, version_id version,
                        std::function<void(const result<transport::frozen_parameters_writer>&)> done) {
  store_->freeze(maker_.parameters(), timeline, version, [post = post_, done](auto frozen) {
    auto shared = std::make_shared<result<transport::frozen_parameters_writer>>(std::move(frozen));
    post([done, shared] { done(*shared); });
  });
}

} // namespace dlrun::ps_shard
