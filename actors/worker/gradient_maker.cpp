#include "actors/worker/gradient_maker.hpp"

#include "actors/common/clock.hpp"

namespace dlrun::worker {

gradient_maker::gradient_maker(const common::role_context& context, common::way_back back, events told)
    : context_(context)
    , back_(std::move(back))
    , told_(std::move(told)) {}

result<void> gradient_maker::open(std::shared_ptr<transport::segment_offers> server) {
  server_ = std::move(server);
  auto made = trainer::create(context_.job, {context_.role.index}, context_.self.incarnation, server_,
                              context_.progress);
  if (!made) return tl::unexpected(made.error());
  trainer_ = std::move(*made);
  return {};
}

void gradient_maker::copy(const fetch_part& order, const parameter_source& source) {
  thread_.run([this, source, order] {
    const bool is_there = trainer_->copy_part(source, order.shard, order.timeline, order.version);
    back_.enter([&] { told_.copied(order, is_there); });
  });
}

// ---- a gradient

void gradient_maker::carry_out(const compute_gradient& order, std::vector<parameter_source> sources) {
  computing_ = order.slots.size();
  computing_since_ = common::now();
  thread_.run([this, order, sources = std::move(sources)] { compute(order, sources); });
}

/// Once, of the steps before that.
void gradient_maker::tell_host_share(step_id begun) {
  if (trainer_->host_layers().empty()) return;
  const auto share = share_.on_begin(begun, common::now(), trainer_->host_time());
  if (!share) return;
  back_.post([this, percent = 100 * *share] {
    context_.log->info("host-share: {:.1f} % of a step, in the mean of {}, go to layers on the processor and "
                       "their copies",
                       percent, host_share::steps);
  });
}

void gradient_maker::tell_remarks() {
  for (auto& one : trainer_->take_remarks())
    back_.post([this, remark = std::move(one)] { context_.log->info("{}", remark); });
}

void gradient_maker::compute(const compute_gradient& order, const std::vector<parameter_source>& sources) {
  tell_host_share(order.step);
  auto made =
      trainer_->compute(order, sources, [this](const auto& buffer, const auto& header, std::uint64_t from) {
        back_.enter([&] { told_.part(push_of(buffer, header), from); });
      });
  tell_remarks();
  if (made) return back_.enter([&] { on_computed(order, std::move(*made)); });
  back_.post([this, order, why = made.error(), slot = trainer_->diverged_slot()] {
    on_not_computed(order, why, slot);
  });
}

void gradient_maker::end_computation() {
  computing_ = 0;
  compute_time_ += common::now() - computing_since_;
}

void gradient_maker::on_computed(const compute_gradient& order, computed_gradient made) {
  slots_computed_ += order.slots.size();
  end_computation();
  kept_.insert_or_assign({order.step, order.slots}, std::move(made));
  told_.computed(order);
}

void gradient_maker::on_not_computed(const compute_gradient& order, const error& why,
                                     std::optional<slot_id> slot) {
  end_computation();
  if (why.code == error_code::diverged) return told_.diverged(order.step, slot, why.message);
  if (why.code == error_code::role_lost) {
    context_.log->info("overwritten: step {}: {}", order.step, why.message);
    return told_.overwritten(order);
  }
  told_.failed(fmt::format("cannot compute step {} slots [{}, {}): {}", order.step, order.slots.begin,
                           order.slots.end, why.message));
}

void gradient_maker::carry_out(const check_gradient& order) {
  thread_.run([this, made = order.made] { check(made); });
}

void gradient_maker::check(const compute_gradient& made) {
  std::optional<std::span<const float>> values;
  back_.enter([&] {
    if (const auto found = kept_.find({made.step, made.slots}); found != kept_.end())
      values = found->second.buffer.buffer().values();
  });
  if (!values) return;
  // The buffer may have been given back meanwhile: this thread alone writes there again.
  const auto finite = trainer_->check_finite(made, *values);
  if (finite) return;
  back_.post([this, step = made.step, why = finite.error(), slot = trainer_->diverged_slot()] {
    told_.diverged(step, slot, why.message);
  });
}

// ---- what is said of them

protocol::push gradient_maker::push_of(const transport::pooled_gradient& buffer,
                                       const transport::gradient_header& header) const {
  return {.timeline = header.timeline,
          .worker = {context_.role.index},
          .self = context_.self,
          .step = header.step,
          .slots = {header.slots_begin, header.slots_end},
          .records = header.records,
          .tensor_sequence = header.sequence,
          .where = {server_->address(), buffer.id().value, buffer.buffer().shared().size()}};
}

std::optional<protocol::push> gradient_maker::find_push(step_id step, protocol::slot_range slots) const {
  const auto found = kept_.find({step, slots});
  if (found == kept_.end()) return std::nullopt;
  return push_of(found->second.buffer, found->second.header);
}

void gradient_maker::add_figures(protocol::worker_status& status) const {
  status.slots_computed = slots_computed_;
  status.compute_us = static_cast<std::uint64_t>(compute_time_.count());
  status.computing = computing_;
  if (computing_ > 0)
    status.computing_us = static_cast<std::uint64_t>((common::now() - computing_since_).count());
}

} // namespace dlrun::worker
