/// Sends the decoded data of a job to hosts that lack it.
#pragma once

#include "data/job_data.hpp"
#include "data/recorded_data.hpp"
#include "transport/tcp_server.hpp"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace dlrun::runtime {

/// A host that sends data.
struct data_source {
  std::string host;
  std::string address; ///< of its tensor server
};

/// The root's giver offers the list of givers under this id; every giver offers its arrays under
/// the ids above it.
inline constexpr transport::segment_id giver_list_id{1};
inline constexpr std::size_t giver_list_bytes = std::size_t{16} << 10;
transport::segment_id offered_id(data::array_place place);

/// The list as text, and back: at most giver_list_bytes, what is not of it left out.
std::string written_givers(const std::map<std::string, std::string>& givers);
std::vector<data_source> read_givers(std::string_view text);

/// Offers the arrays of the job on a tensor server, which sends them as they lie in memory.
/// Thread-safe.
class data_giver {
public:
  /// `options.tls` must not be null: clients need a certificate of the job. @returns as tcp_server.
  static result<std::unique_ptr<data_giver>> start(transport::tcp_server_options options,
                                                   std::shared_ptr<const data::job_data> data);

  const std::string& address() const { return server_->address(); }
  /// At the root: the other hosts that send data, their tensor servers by host. Replaces the list.
  void others_are(const std::map<std::string, std::string>& givers) const;

private:
  explicit data_giver(std::unique_ptr<transport::tcp_server> server)
      : server_{std::move(server)} {}

  std::unique_ptr<transport::tcp_server> server_;
};

} // namespace dlrun::runtime
