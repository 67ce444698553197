#include "tests/persistence/faulty_file_system.hpp"

#include <filesystem>
#include <thread>

namespace dlrun::test {

namespace fs = std::filesystem;
using rocksdb::IOStatus;

namespace {

/// "a//b" and "a/b" are one file.
std::string normal(const std::string& path) {
  auto text = fs::path(path).lexically_normal().string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

IOStatus power_error() { return IOStatus::IOError("the power is cut"); }

/// `failing`: part of a path for each operation that is to fail; an empty one is none.
template <class Operation>
bool is_to_fail(const std::map<Operation, std::string>& failing, Operation what, const std::string& path) {
  const auto found = failing.find(what);
  return found != failing.end() && !found->second.empty() && path.find(found->second) != std::string::npos;
}

/// For bytes that are appended to `file`, which may be written over one that was longer. None where
/// there is no limit.
std::optional<std::uint64_t> room_for_append(const std::optional<std::uint64_t>& free_bytes,
                                             const unsynced_changes::file_state& file) {
  if (!free_bytes) return std::nullopt;
  return *free_bytes + (file.size() - file.bytes);
}

} // namespace

/// Appends as the file system lets it.
class faulty_writable_file : public rocksdb::FSWritableFileOwnerWrapper {
public:
  faulty_writable_file(std::unique_ptr<rocksdb::FSWritableFile> below, faulty_file_system& system,
                       std::string path)
      : FSWritableFileOwnerWrapper(std::move(below))
      , system_(system)
      , path_(std::move(path)) {}

  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  rocksdb::IODebugContext*) override {
    return system_.append(path_, data, *target(), options);
  }
  IOStatus Append(const rocksdb::Slice& data, const rocksdb::IOOptions& options,
                  const rocksdb::DataVerificationInfo&, rocksdb::IODebugContext*) override {
    return system_.append(path_, data, *target(), options);
  }
  IOStatus Truncate(std::uint64_t size, const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return system_.truncate(path_, size, *target());
  }
  IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override { return system_.sync(path_); }
  IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override { return system_.sync(path_); }

private:
  faulty_file_system& system_;
  std::string path_;
};

/// Only its syncs are used.
class faulty_random_rw_file : public rocksdb::FSRandomRWFileOwnerWrapper {
public:
  faulty_random_rw_file(std::unique_ptr<rocksdb::FSRandomRWFile> below, faulty_file_system& system,
                        std::string path)
      : FSRandomRWFileOwnerWrapper(std::move(below))
      , system_(system)
      , path_(std::move(path)) {}

  IOStatus Write(std::uint64_t, const rocksdb::Slice&, const rocksdb::IOOptions&,
                 rocksdb::IODebugContext*) override {
    return IOStatus::NotSupported("writes in the middle of a file");
  }
  IOStatus Sync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override { return system_.sync(path_); }
  IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override { return system_.sync(path_); }

private:
  faulty_file_system& system_;
  std::string path_;
};

class faulty_random_access_file : public rocksdb::FSRandomAccessFileOwnerWrapper {
public:
  faulty_random_access_file(std::unique_ptr<rocksdb::FSRandomAccessFile> below,
                            const faulty_file_system& system, std::string path)
      : FSRandomAccessFileOwnerWrapper(std::move(below))
      , system_(system)
      , path_(std::move(path)) {}

  IOStatus Read(std::uint64_t offset, std::size_t size, const rocksdb::IOOptions& options,
                rocksdb::Slice* result, char* scratch, rocksdb::IODebugContext* context) const override {
    if (auto status = system_.check_read(path_); !status.ok()) return status;
    return target()->Read(offset, size, options, result, scratch, context);
  }

private:
  const faulty_file_system& system_;
  std::string path_;
};

class faulty_sequential_file : public rocksdb::FSSequentialFileOwnerWrapper {
public:
  faulty_sequential_file(std::unique_ptr<rocksdb::FSSequentialFile> below, const faulty_file_system& system,
                         std::string path)
      : FSSequentialFileOwnerWrapper(std::move(below))
      , system_(system)
      , path_(std::move(path)) {}

  IOStatus Read(std::size_t size, const rocksdb::IOOptions& options, rocksdb::Slice* result, char* scratch,
                rocksdb::IODebugContext* context) override {
    if (auto status = system_.check_read(path_); !status.ok()) return status;
    return target()->Read(size, options, result, scratch, context);
  }

private:
  const faulty_file_system& system_;
  std::string path_;
};

class faulty_directory : public rocksdb::FSDirectoryWrapper {
public:
  faulty_directory(std::unique_ptr<rocksdb::FSDirectory> below, faulty_file_system& system, std::string path)
      : FSDirectoryWrapper(std::move(below))
      , system_(system)
      , path_(std::move(path)) {}

  IOStatus Fsync(const rocksdb::IOOptions&, rocksdb::IODebugContext*) override {
    return system_.sync_directory(path_);
  }
  IOStatus FsyncWithDirOptions(const rocksdb::IOOptions&, rocksdb::IODebugContext*,
                               const rocksdb::DirFsyncOptions&) override {
    return system_.sync_directory(path_);
  }

private:
  faulty_file_system& system_;
  std::string path_;
};

faulty_file_system::faulty_file_system(std::uint64_t seed)
    : FileSystemWrapper(rocksdb::FileSystem::Default())
    , unsynced_(seed) {}

void faulty_file_system::cut_power_after(std::uint64_t changes) {
  const std::lock_guard lock(mutex_);
  cut_at_ = changes_ + changes;
}
bool faulty_file_system::power_is_cut() const {
  const std::lock_guard lock(mutex_);
  return cut_;
}
std::uint64_t faulty_file_system::changes() const {
  const std::lock_guard lock(mutex_);
  return changes_;
}
void faulty_file_system::set_free_bytes(std::optional<std::uint64_t> bytes) {
  const std::lock_guard lock(mutex_);
  free_bytes_ = bytes;
}
void faulty_file_system::set_read_only(bool read_only) {
  const std::lock_guard lock(mutex_);
  read_only_ = read_only;
}
void faulty_file_system::fail(operation what, const std::string& part) {
  const std::lock_guard lock(mutex_);
  failing_[what] = part;
}
void faulty_file_system::set_sync_delay(std::chrono::microseconds delay) {
  const std::lock_guard lock(mutex_);
  sync_delay_ = delay;
}

IOStatus faulty_file_system::count_change(operation what, const std::string& path) {
  if (cut_) return power_error();
  if (read_only_ && what != operation::sync)
    return IOStatus::IOError("While changing " + path, "Read-only file system");
  if (is_to_fail(failing_, what, path))
    return IOStatus::IOError("While changing " + path, "Input/output error");
  ++changes_;
  if (!cut_at_ || changes_ < *cut_at_) return IOStatus::OK();
  cut_ = true;
  return power_error();
}

IOStatus faulty_file_system::check_read(const std::string& path) const {
  const std::lock_guard lock(mutex_);
  if (is_to_fail(failing_, operation::read, path))
    return IOStatus::IOError("While reading " + path, "Input/output error");
  return cut_ ? power_error() : IOStatus::OK();
}

IOStatus faulty_file_system::append(const std::string& path, const rocksdb::Slice& data,
                                    rocksdb::FSWritableFile& below, const rocksdb::IOOptions& options) {
  const std::lock_guard lock(mutex_);
  const bool was_cut = cut_;
  auto status = count_change(operation::write, path);
  auto written = data.size();
  if (!status.ok()) {
    if (was_cut || !cut_) return status;
    written = unsynced_.random_up_to(data.size()); // the power goes while this is written
  } else if (const auto room = room_for_append(free_bytes_, unsynced_.file(path));
             room && data.size() > *room) {
    written = *room;
    status = IOStatus::NoSpace("While appending to " + path, "No space left on device");
  }
  if (written > 0)
    if (auto done = below.Append(rocksdb::Slice(data.data(), written), options, nullptr); !done.ok())
      return done;
  auto& file = unsynced_.file(path);
  const auto size_before = file.size();
  file.bytes += written;
  if (free_bytes_) *free_bytes_ -= file.size() - size_before;
  return status;
}

/// The real disk need not be asked.
IOStatus faulty_file_system::sync(const std::string& path) {
  std::chrono::microseconds delay{};
  std::uint64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (auto status = count_change(operation::sync, path); !status.ok()) return status;
    delay = sync_delay_;
    bytes = unsynced_.file(path).bytes;
  }
  if (delay.count() > 0) std::this_thread::yield();
  for (const auto end = std::chrono::steady_clock::now() + delay; std::chrono::steady_clock::now() < end;)
    std::this_thread::yield();
  const std::lock_guard lock(mutex_);
  if (cut_) return power_error();
  auto& file = unsynced_.file(path);
  file.synced_bytes = std::max(file.synced_bytes, bytes);
  return IOStatus::OK();
}

IOStatus faulty_file_system::truncate(const std::string& path, std::uint64_t bytes,
                                      rocksdb::FSWritableFile& below) {
  const std::lock_guard lock(mutex_);
  if (auto status = count_change(operation::write, path); !status.ok()) return status;
  auto& file = unsynced_.file(path);
  if (free_bytes_) *free_bytes_ += file.size() - std::min(file.size(), bytes);
  file.bytes = std::min(file.bytes, bytes);
  file.reused_bytes = std::min(file.reused_bytes, bytes);
  file.synced_bytes = std::min(file.synced_bytes, bytes);
  return below.Truncate(bytes, {}, nullptr);
}

IOStatus faulty_file_system::sync_directory(const std::string& path) {
  const std::lock_guard lock(mutex_);
  if (auto status = count_change(operation::sync, path); !status.ok()) return status;
  unsynced_.directory_synced(path);
  return IOStatus::OK();
}

std::string faulty_file_system::bury(const std::string& path) {
  if (!fs::exists(path)) return {};
  if (free_bytes_) *free_bytes_ += unsynced_.file(path).size();
  return unsynced_.bury(path);
}

void faulty_file_system::restore_power() {
  const std::lock_guard lock(mutex_);
  unsynced_.lose();
  cut_at_.reset();
  cut_ = false;
}

IOStatus faulty_file_system::NewSequentialFile(const std::string& path, const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSSequentialFile>* file,
                                               rocksdb::IODebugContext* context) {
  if (auto status = check_read(path); !status.ok()) return status;
  std::unique_ptr<rocksdb::FSSequentialFile> below;
  auto status = target()->NewSequentialFile(path, options, &below, context);
  if (status.ok()) *file = std::make_unique<faulty_sequential_file>(std::move(below), *this, path);
  return status;
}

IOStatus faulty_file_system::NewRandomAccessFile(const std::string& path, const rocksdb::FileOptions& options,
                                                 std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
                                                 rocksdb::IODebugContext* context) {
  if (auto status = check_read(path); !status.ok()) return status;
  std::unique_ptr<rocksdb::FSRandomAccessFile> below;
  auto status = target()->NewRandomAccessFile(path, options, &below, context);
  if (status.ok()) *file = std::make_unique<faulty_random_access_file>(std::move(below), *this, path);
  return status;
}

IOStatus faulty_file_system::NewWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                                             rocksdb::IODebugContext* context) {
  const auto path = normal(name);
  const std::lock_guard lock(mutex_);
  if (auto status = count_change(operation::write, path); !status.ok()) return status;
  const auto buried = bury(path);
  std::unique_ptr<rocksdb::FSWritableFile> below;
  auto status = target()->NewWritableFile(path, options, &below, context);
  if (!status.ok()) return status;
  unsynced_.file(path) = {};
  unsynced_.created(path, buried);
  *file = std::make_unique<faulty_writable_file>(std::move(below), *this, path);
  return status;
}

IOStatus faulty_file_system::ReopenWritableFile(const std::string& name, const rocksdb::FileOptions& options,
                                                std::unique_ptr<rocksdb::FSWritableFile>* file,
                                                rocksdb::IODebugContext* context) {
  const auto path = normal(name);
  const std::lock_guard lock(mutex_);
  if (cut_) return power_error();
  if (read_only_) return IOStatus::IOError("While opening " + path, "Read-only file system");
  std::unique_ptr<rocksdb::FSWritableFile> below;
  auto status = target()->ReopenWritableFile(path, options, &below, context);
  if (!status.ok()) return status;
  unsynced_.know(path);
  *file = std::make_unique<faulty_writable_file>(std::move(below), *this, path);
  return status;
}

IOStatus faulty_file_system::ReuseWritableFile(const std::string& name, const std::string& old_name,
                                               const rocksdb::FileOptions& options,
                                               std::unique_ptr<rocksdb::FSWritableFile>* file,
                                               rocksdb::IODebugContext* context) {
  const auto path = normal(name);
  const auto before = normal(old_name);
  const std::lock_guard lock(mutex_);
  if (!fs::exists(before)) return IOStatus::NotFound("While opening " + before);
  if (auto status = count_change(operation::rename, path); !status.ok()) return status;
  if (auto status = rename(before, path); !status.ok()) return status;
  std::unique_ptr<rocksdb::FSWritableFile> below;
  auto status = target()->ReuseWritableFile(path, path, options, &below, context);
  if (!status.ok()) return status;
  unsynced_.file(path) = {0, 0, fs::file_size(path)};
  *file = std::make_unique<faulty_writable_file>(std::move(below), *this, path);
  return status;
}

IOStatus faulty_file_system::NewRandomRWFile(const std::string& name, const rocksdb::FileOptions& options,
                                             std::unique_ptr<rocksdb::FSRandomRWFile>* file,
                                             rocksdb::IODebugContext* context) {
  const auto path = normal(name);
  const std::lock_guard lock(mutex_);
  if (cut_) return power_error();
  if (read_only_) return IOStatus::IOError("While opening " + path, "Read-only file system");
  std::unique_ptr<rocksdb::FSRandomRWFile> below;
  auto status = target()->NewRandomRWFile(path, options, &below, context);
  if (!status.ok()) return status;
  unsynced_.know(path);
  *file = std::make_unique<faulty_random_rw_file>(std::move(below), *this, path);
  return status;
}

IOStatus faulty_file_system::NewDirectory(const std::string& name, const rocksdb::IOOptions& options,
                                          std::unique_ptr<rocksdb::FSDirectory>* directory,
                                          rocksdb::IODebugContext* context) {
  const auto path = normal(name);
  std::unique_ptr<rocksdb::FSDirectory> below;
  auto status = target()->NewDirectory(path, options, &below, context);
  if (status.ok()) *directory = std::make_unique<faulty_directory>(std::move(below), *this, path);
  return status;
}

IOStatus faulty_file_system::GetChildren(const std::string& path, const rocksdb::IOOptions& options,
                                         std::vector<std::string>* names, rocksdb::IODebugContext* context) {
  auto status = target()->GetChildren(path, options, names, context);
  std::erase_if(*names, [](const std::string& name) { return name.starts_with(grave); });
  return status;
}

IOStatus faulty_file_system::DeleteFile(const std::string& name, const rocksdb::IOOptions& options,
                                        rocksdb::IODebugContext* context) {
  const auto path = normal(name);
  const std::lock_guard lock(mutex_);
  if (!fs::exists(path)) return target()->DeleteFile(path, options, context);
  if (auto status = count_change(operation::write, path); !status.ok()) return status;
  unsynced_.removed(path, bury(path));
  return IOStatus::OK();
}

IOStatus faulty_file_system::CreateDirIfMissing(const std::string& name, const rocksdb::IOOptions& options,
                                                rocksdb::IODebugContext* context) {
  const auto path = normal(name);
  const std::lock_guard lock(mutex_);
  if (fs::exists(path)) return target()->CreateDirIfMissing(path, options, context);
  if (auto status = count_change(operation::write, path); !status.ok()) return status;
  unsynced_.created(path, "");
  return target()->CreateDirIfMissing(path, options, context);
}

IOStatus faulty_file_system::RenameFile(const std::string& old_name, const std::string& new_name,
                                        const rocksdb::IOOptions&, rocksdb::IODebugContext*) {
  const auto from = normal(old_name);
  const auto to = normal(new_name);
  const std::lock_guard lock(mutex_);
  if (auto status = count_change(operation::rename, to); !status.ok()) return status;
  return rename(from, to);
}

IOStatus faulty_file_system::rename(const std::string& from, const std::string& to) {
  const auto buried = bury(to);
  auto status = target()->RenameFile(from, to, {}, nullptr);
  if (!status.ok()) return status;
  unsynced_.renamed(from, to, buried);
  return status;
}

IOStatus faulty_file_system::GetFreeSpace(const std::string& path, const rocksdb::IOOptions& options,
                                          std::uint64_t* free, rocksdb::IODebugContext* context) {
  const std::lock_guard lock(mutex_);
  if (!free_bytes_) return target()->GetFreeSpace(path, options, free, context);
  *free = *free_bytes_;
  return IOStatus::OK();
}

} // namespace dlrun::test
