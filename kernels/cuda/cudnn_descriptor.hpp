/// What cuDNN's graph interface is told, and asked.
#pragma once

#include <cstdint>
#include <cudnn.h>
#include <dlrun/error.hpp>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace dlrun::kernels::cuda {

/// One of cuDNN's descriptors: attributes, then finalize(), then it is used or asked. The first
/// thing that goes wrong with it, or with one that it is made of, is its status; what is called
/// after that does nothing. So a whole graph is made without looking, and its end is looked at.
class cudnn_descriptor {
public:
  explicit cudnn_descriptor(cudnnBackendDescriptorType_t type) {
    status_ = cudnnBackendCreateDescriptor(type, &raw_);
  }
  ~cudnn_descriptor() {
    if (raw_ != nullptr) static_cast<void>(cudnnBackendDestroyDescriptor(raw_));
  }
  cudnn_descriptor(cudnn_descriptor&& from) noexcept
      : raw_(std::exchange(from.raw_, nullptr))
      , status_(from.status_) {}
  cudnn_descriptor& operator=(cudnn_descriptor&& from) noexcept {
    std::swap(raw_, from.raw_);
    std::swap(status_, from.status_);
    return *this;
  }

  /// An attribute of one value or several; the type is what cuDNN calls that of the values.
  template <class Value>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           std::span<const Value> values) {
    if (status_ != CUDNN_STATUS_SUCCESS) return;
    status_ =
        cudnnBackendSetAttribute(raw_, name, type, static_cast<std::int64_t>(values.size()), values.data());
  }
  template <class Value>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const Value& value) {
    set(name, type, std::span<const Value>(&value, 1));
  }
  void set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> numbers) {
    set(name, CUDNN_TYPE_INT64, numbers);
  }
  /// Another descriptor, finalized.
  void set(cudnnBackendAttributeName_t name, const cudnn_descriptor& other) {
    if (status_ == CUDNN_STATUS_SUCCESS) status_ = other.status_;
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.raw_);
  }
  void finalize() {
    if (status_ == CUDNN_STATUS_SUCCESS) status_ = cudnnBackendFinalize(raw_);
  }

  /// Values of an attribute: as many as there are, but at most `most`. None where there is an
  /// error, which is not this descriptor's status.
  template <class Value>
  std::vector<Value> get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                         std::int64_t most) const {
    std::vector<Value> values(static_cast<std::size_t>(most));
    std::int64_t count = 0;
    if (status_ != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(raw_, name, type, most, &count, values.data()) != CUDNN_STATUS_SUCCESS)
      count = 0;
    values.resize(static_cast<std::size_t>(count < most ? count : most));
    return values;
  }
  /// Fills `others`, made and not finalized, from an attribute. @returns how many.
  std::int64_t get(cudnnBackendAttributeName_t name, std::span<cudnn_descriptor> others) const {
    std::vector<cudnnBackendDescriptor_t> handles;
    for (const auto& one : others) handles.push_back(one.raw_);
    std::int64_t count = 0;
    if (status_ != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                                 static_cast<std::int64_t>(handles.size()), &count,
                                 handles.data()) != CUDNN_STATUS_SUCCESS)
      return 0;
    return count < static_cast<std::int64_t>(handles.size()) ? count
                                                             : static_cast<std::int64_t>(handles.size());
  }
  /// How many values there are.
  std::int64_t count(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type) const {
    std::int64_t found = 0;
    if (status_ != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(raw_, name, type, 0, &found, nullptr) != CUDNN_STATUS_SUCCESS)
      return 0;
    return found;
  }

  cudnnStatus_t status() const { return status_; }
  cudnnBackendDescriptor_t raw() const { return raw_; }

private:
  cudnnBackendDescriptor_t raw_ = nullptr;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
};

} // namespace dlrun::kernels::cuda
