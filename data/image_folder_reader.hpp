/// Folders of pictures, one folder a class.
#pragma once

#include "data/decode.hpp"
#include "data/image.hpp"

namespace dlrun::data {

/// The layout of torchvision's ImageFolder: <records>/<class>/.../<picture>.png|.jpg|.jpeg. Classes
/// are the folders' names sorted by their bytes (of the training data, for other data), pictures
/// are read in the order of their paths. Names that begin with a dot are skipped; any other file is
/// an error.
class image_folder_reader final : public reader {
public:
  /// Both must outlive the reader. The names of the classes may be learnt if context.learn.
  image_folder_reader(spec::DatasetSpec& spec, const decode_context& context);

  result<record_layout> open(const reader_request& request) override;
  result<void> read(std::uint64_t first, std::uint64_t count, const record_buffers& out) override;

private:
  struct picture {
    std::filesystem::path file;
    std::int32_t number = 0; ///< of its class
  };

  result<void> find_classes(const std::filesystem::path& folder);
  result<void> find_pictures(const std::filesystem::path& folder, std::int32_t number);
  result<rgb_image> load(const picture& from) const;
  result<void> read_picture(const picture& from, std::span<std::uint8_t> planes) const;

  spec::DatasetSpec& spec_;
  const decode_context& context_;
  std::vector<picture> pictures_;
  std::uint32_t height_ = 0;
  std::uint32_t width_ = 0;
};

} // namespace dlrun::data
