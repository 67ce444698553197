/// What is wrong with a specification, and where.
#pragma once

#include <dlrun/error.hpp>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dlrun::job {

/// A place where the user wrote something: a line of a file, or an override.
struct location {
  /// File name, or the text of the override.
  std::string origin;
  /// 1-based; 0 when there are no lines.
  int line = 0;
};
/// "job.yaml:12", or the origin alone.
std::string to_string(const location& where);

/// Where each key was written, by its path ("train.optimizer.sgd.lr").
class source_map {
public:
  void set(const std::string& path, location where) { places_[path] = std::move(where); }
  /// The place of the key at `path`, or of the nearest section around it that was written.
  location find(std::string path) const;
  /// The key itself was written.
  bool has(const std::string& path) const { return places_.contains(path); }
  /// Sets the place of keys that were not written at all.
  void set_root(location where) { root_ = std::move(where); }

private:
  std::map<std::string, location> places_;
  location root_;
};

/// Collects problems, so that reading continues after the first one.
class problem_list {
public:
  /// `path` is the key the problem is about, "" for the whole text.
  void add(const location& where, const std::string& path, std::string text);
  /// For a text that takes time to make: `text` is called only if the problem is shown, and few of
  /// many problems are. It must own what it needs.
  void add(const location& where, const std::string& path, std::function<std::string()> text);
  /// Whether a problem was reported for this key already. Later checks then skip the key.
  bool reported(const std::string& path) const { return paths_.contains(path); }
  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  /// All problems as bad_spec, one a line, by place: "<where>: <key>: <text>".
  error to_error() const;

private:
  struct problem {
    location where;
    std::string path;
    std::function<std::string()> text;
  };
  std::vector<problem> problems_;
  std::set<std::string> paths_;
};

/// Whether a problem of `path` is of a key that validation has from training, where it is told.
bool is_told_of_training(const std::string& path, const source_map& sources, const problem_list& problems);

} // namespace dlrun::job
