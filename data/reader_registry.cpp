#include "data/reader_registry.hpp"

#include <array>
#include <dlrun/detail/named_factories.hpp>

namespace dlrun {
namespace {

constexpr std::array<std::string_view, 5> built_in = {"idx", "csv", "image_folder", "npy", "tfrecord"};

/// With layers and metrics the only state that outlives a call: a program says once which formats
/// it reads.
detail::named_factories<reader_factory>& readers() {
  static detail::named_factories<reader_factory> all{"reader", built_in};
  return all;
}

} // namespace

result<void> register_reader(const std::string& name, reader_factory factory) {
  return readers().add(name, std::move(factory));
}

std::span<const std::string_view> data::built_in_formats() { return built_in; }

result<std::unique_ptr<reader>> data::make_registered_reader(const std::string& name,
                                                             const std::string& key) {
  if (const auto factory = readers().find(name))
    return detail::call_factory(fmt::format("reader '{}'", name),
                                [&]() -> result<std::unique_ptr<reader>> { return (*factory)(); });
  return fail(error_code::bad_spec,
              fmt::format("{}: no reader is called \"{}\"; there are {}", key, name, readers().names()));
}

} // namespace dlrun
