#include "tests/flipped_bits/flipping_file_system.hpp"

#include <string>
#include <utility>

namespace dlrun::flipped_bits {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

class flipping_file : public rocksdb::FSWritableFileOwnerWrapper {
public:
  flipping_file(std::unique_ptr<rocksdb::FSWritableFile> below, std::shared_ptr<bit_flip> flip)
      : FSWritableFileOwnerWrapper(std::move(below))
      , flip_(std::move(flip)) {}

  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* context) override {
    auto bytes = data.ToString();
    flip_->show(place::written, std::as_writable_bytes(std::span(bytes)));
    return target()->Append(bytes, options, context);
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo&,
                  IODebugContext* context) override {
    return Append(data, options, context);
  }
  // In memory that would take it for good, at once.
  void SetPreallocationBlockSize(std::size_t) override {}
  void PrepareWrite(std::size_t, std::size_t, const IOOptions&, IODebugContext*) override {}
  IOStatus Allocate(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }
  IOStatus Sync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus RangeSync(std::uint64_t, std::uint64_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::OK();
  }

private:
  std::shared_ptr<bit_flip> flip_;
};

class unsynced_directory : public rocksdb::FSDirectory {
public:
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
};

class file_system : public rocksdb::FileSystemWrapper {
public:
  explicit file_system(std::shared_ptr<bit_flip> flip)
      : FileSystemWrapper(rocksdb::FileSystem::Default())
      , flip_(std::move(flip)) {}
  const char* Name() const override { return "flipping"; }

  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<rocksdb::FSWritableFile>* file, IODebugContext* context) override {
    return wrapped(target()->NewWritableFile(path, options, file, context), *file);
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* file,
                              IODebugContext* context) override {
    return wrapped(target()->ReopenWritableFile(path, options, file, context), *file);
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string& before, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* file,
                             IODebugContext* context) override {
    return wrapped(target()->ReuseWritableFile(path, before, options, file, context), *file);
  }
  IOStatus NewDirectory(const std::string&, const IOOptions&, std::unique_ptr<rocksdb::FSDirectory>* made,
                        IODebugContext*) override {
    *made = std::make_unique<unsynced_directory>();
    return IOStatus::OK();
  }

private:
  IOStatus wrapped(IOStatus status, std::unique_ptr<rocksdb::FSWritableFile>& file) const {
    if (status.ok()) file = std::make_unique<flipping_file>(std::move(file), flip_);
    return status;
  }

  std::shared_ptr<bit_flip> flip_;
};

} // namespace

std::shared_ptr<rocksdb::FileSystem> flipping_file_system(std::shared_ptr<bit_flip> flip) {
  return std::make_shared<file_system>(std::move(flip));
}

} // namespace dlrun::flipped_bits
