#include "data/reader_registry.hpp"

#include "job/choices.hpp"

#include <dlrun/detail/named_factories.hpp>

namespace dlrun {
namespace {

/// With layers and metrics the only state that outlives a call: a program says once which formats
/// it reads.
detail::named_factories<reader_factory>& readers() {
  static detail::named_factories<reader_factory> all{"reader", job::built_in_formats()};
  return all;
}

} // namespace

result<void> register_reader(const std::string& name, reader_factory factory) {
  return readers().add(name, std::move(factory));
}

result<std::unique_ptr<reader>> data::make_registered_reader(const std::string& name,
                                                             const std::string& key) {
  if (const auto factory = readers().find(name))
    return detail::call_factory(fmt::format("reader '{}'", name),
                                [&]() -> result<std::unique_ptr<reader>> { return (*factory)(); });
  return fail(error_code::bad_spec,
              fmt::format("{}: no reader is called \"{}\"; there are {}", key, name, readers().names()));
}

} // namespace dlrun
