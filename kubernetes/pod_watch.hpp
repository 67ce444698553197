/// pod_watch: what becomes of the pods of a job's hosts, as the API server tells it.
#pragma once

#include "kubernetes/api_client.hpp"
#include "kubernetes/pod_record.hpp"
#include "kubernetes/retry_pauses.hpp"

#include <atomic>
#include <functional>
#include <string>
#include <variant>
#include <vector>

namespace dlrun::kubernetes {

/// All pods that there are. What is not in it is gone, if it was there before `began`.
struct pod_listing {
  std::vector<pod_record> pods;
  time_point began{};
};
struct pod_gone {
  std::string uid;
};
/// A pod is new, or has changed.
using pod_news = std::variant<pod_listing, pod_record, pod_gone>;

/// A request for the pods with these labels. @param query what else belongs to it, encoded
api_request pods_request(const std::string& verb, const std::string& selector, const std::string& query);

struct listed_pods {
  pod_listing all;
  std::string version; ///< from which they can be watched
};
/// All pods with these labels, 100 at a time.
answer<listed_pods> list_pods(api_client& client, const std::string& selector, time_point give_up);

struct pod_watch_options {
  std::string selector; ///< of labels, as in app.kubernetes.io/name=dlrun,...
  std::function<void(pod_news)> tell;
  std::function<void(const api_refusal&)> complain; ///< each time that it has to wait
  std::function<void()> works = [] {};              ///< the server told something
  std::function<bool()> goes_on;                    ///< asked about once a second, and between requests
};

/// Lists the pods and watches them from there on. A watch that the server ends (it is asked for 240
/// to 300 s) begins again at once where it was; one that is too old (410, as status or as an ERROR
/// in the stream) begins with a list; after anything else it waits, as retry_pauses. Every 4 to 6
/// minutes it lists in any case: a server whose etcd was restored has lower versions from then on,
/// and tells a watch from before nothing until they have come as far again
/// (https://github.com/kubernetes/kubernetes/issues/107457). Who sees signs of that has it list at
/// once.
class pod_watch {
public:
  /// `client` outlives it, and is used by nobody else meanwhile.
  pod_watch(api_client& client, pod_watch_options options);

  /// Blocks until `goes_on` says no.
  void run();
  /// It lists within about a second, or once it can. Thread-safe.
  void list_anew() { is_list_wanted_ = true; }

private:
  void list();
  bool is_to_list() const;
  void follow();
  void take(std::string_view line);
  void pause(const api_refusal& why);

  api_client& client_;
  pod_watch_options options_;
  retry_pauses pauses_;
  std::string version_;  ///< from which it is watched; "": it is to be listed
  time_point list_at_{}; ///< so it is then
  std::atomic<bool> is_list_wanted_ = false;
  bool has_moved_ = false; ///< something came since the last request
  bool is_listed_ = false; ///< and nothing has come since
  std::string broken_;     ///< what the stream in hand said of itself
};

} // namespace dlrun::kubernetes
