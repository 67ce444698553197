#include "job/data_reading.hpp"

#include "job/choices.hpp"
#include "job/spec_differences.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <google/protobuf/util/message_differencer.h>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace dlrun::job {
namespace {

using name_list = google::protobuf::RepeatedPtrField<std::string>;
using number_list = google::protobuf::RepeatedField<double>;

/// A column without what has to be learnt is as the training column of its name. Those are
/// `trained`, by their names.
void take_learnt_column(const std::unordered_map<std::string_view, const spec::CsvColumn*>& trained,
                        spec::CsvColumn& column) {
  const auto found = trained.find(column.column());
  if (found == trained.end()) return;
  const auto* const known = found->second;
  if (type_of(column) == column_type::categorical && column.vocabulary_size() == 0)
    *column.mutable_vocabulary() = known->vocabulary();
  if (!column.standardize() || column.has_mean() || !known->has_mean()) return;
  column.set_mean(known->mean());
  column.set_std(known->std());
}

/// `made` has this key as `from` has it, or not at all.
template <class Section>
void take_key(const char* key, const Section& from, Section& made) {
  Section copy = from;
  made.GetReflection()->SwapFields(&made, &copy, {Section::descriptor()->FindFieldByName(key)});
}

/// One number is that of all channels.
bool is_same(const number_list& one, const number_list& other) {
  if (one.size() == other.size()) return std::ranges::equal(one, other);
  const auto& single = one.size() == 1 ? one : other;
  const auto& many = one.size() == 1 ? other : one;
  return single.size() == 1 && std::ranges::all_of(many, [&](double value) { return value == single[0]; });
}

/// A name that training has stands where it has it. Others are those of another file.
void place_names(const name_list& trained, name_list& made) {
  if (trained.size() != made.size()) {
    made = trained;
    return;
  }
  const std::unordered_set<std::string_view> known(trained.begin(), trained.end());
  for (int i = 0; i < made.size(); ++i)
    if (known.contains(made[i])) made[i] = trained[i];
}

enum class scaling : std::uint8_t { none, to_be_learnt, given };

scaling scaling_of(const spec::CsvColumn& column) {
  if (column.has_mean()) return scaling::given;
  return column.standardize() ? scaling::to_be_learnt : scaling::none;
}

bool is_scaled_alike(const spec::CsvColumn& one, const spec::CsvColumn& other) {
  const auto first = scaling_of(one);
  const auto second = scaling_of(other);
  if (first == scaling::none || second == scaling::none) return first == second;
  if (first == scaling::to_be_learnt || second == scaling::to_be_learnt) return true;
  return one.mean() == other.mean() && one.std() == other.std();
}

void read_column_as(const spec::CsvColumn& trained, spec::CsvColumn& made) {
  if (type_of(made) != type_of(trained)) {
    auto column = made.column();
    made = trained;
    made.set_column(std::move(column));
    return;
  }
  if (encoding_of(made) != encoding_of(trained)) take_key("encoding", trained, made);
  if (unknown_of(made) != unknown_of(trained)) take_key("unknown", trained, made);
  if (trained.vocabulary_size() > 0 && made.vocabulary_size() > 0)
    *made.mutable_vocabulary() = trained.vocabulary();
  if (made.has_missing() != trained.has_missing() || made.missing() != trained.missing())
    take_key("missing", trained, made);
  if (is_scaled_alike(trained, made)) return;
  for (const char* const key : {"standardize", "mean", "std"}) take_key(key, trained, made);
}

/// Columns of both are told apart by their places in a record.
void read_columns_as(const spec::CsvSpec& trained, spec::CsvSpec& made) {
  if (trained.columns().empty() || made.columns().empty()) return;
  if (trained.columns_size() != made.columns_size()) {
    *made.mutable_columns() = trained.columns();
    return;
  }
  std::unordered_set<std::string_view> known;
  for (const auto& column : trained.columns()) known.insert(column.column());
  for (int i = 0; i < made.columns_size(); ++i) {
    auto& column = *made.mutable_columns(i);
    if (known.contains(column.column())) column.set_column(trained.columns(i).column());
    read_column_as(trained.columns(i), column);
  }
}

const name_list& classes_of(const spec::DatasetSpec& data) {
  return format_of(data) == data_format::csv ? data.csv().classes() : data.image_folder().classes();
}

/// Names that are not written are taken from training.
void read_classes_as(const spec::DatasetSpec& trained, bool are_known, spec::DatasetSpec& made) {
  const auto& then = classes_of(trained);
  if (classes_of(made).empty() || (then.empty() && !are_known)) return;
  (format_of(made) == data_format::csv ? *made.mutable_csv()->mutable_classes()
                                       : *made.mutable_image_folder()->mutable_classes()) = then;
}

void read_pictures_as(const spec::ImageFolderSpec& trained, spec::ImageFolderSpec& made) {
  made.set_channels(trained.channels());
  // Without it all have one size, which is the model's; and to its own size a picture stays as it
  // is.
  if (!trained.resize().empty() && !made.resize().empty()) *made.mutable_resize() = trained.resize();
}

void read_examples_as(const spec::TfRecordSpec& trained, spec::TfRecordSpec& made) {
  place_names(trained.features(), *made.mutable_features());
  place_names(trained.target(), *made.mutable_target());
  made.set_bytes(trained.bytes());
  *made.mutable_shape() = trained.shape();
}

/// `other`, with the keys by which it is read as in `trained`: equal to `other` where it says
/// nothing else.
spec::DatasetSpec read_as(const spec::DatasetSpec& trained, const spec::DatasetSpec& other, taught state) {
  auto made = other;
  if (trained.has_targets() && other.has_targets()) made.set_targets(trained.targets());
  const bool is_of_format = other.format() == trained.format();
  read_classes_as(trained, is_of_format && state == taught::yes, made);
  if (!is_of_format) return made;
  auto& normalize = *made.mutable_normalize();
  if (!is_same(normalize.mean(), trained.normalize().mean()))
    *normalize.mutable_mean() = trained.normalize().mean();
  if (!is_same(normalize.std(), trained.normalize().std()))
    *normalize.mutable_std() = trained.normalize().std();
  const auto format = format_of(made);
  if (format == data_format::csv) {
    place_names(trained.csv().target(), *made.mutable_csv()->mutable_target());
    read_columns_as(trained.csv(), *made.mutable_csv());
  }
  if (format == data_format::image_folder)
    read_pictures_as(trained.image_folder(), *made.mutable_image_folder());
  if (format == data_format::tfrecord) read_examples_as(trained.tfrecord(), *made.mutable_tfrecord());
  return made;
}

} // namespace

void take_learnt(const spec::DatasetSpec& trained, spec::DatasetSpec& spec) {
  if (spec.format() != trained.format()) return;
  const auto format = format_of(spec);
  if (format == data_format::csv) {
    auto& csv = *spec.mutable_csv();
    if (csv.columns().empty()) *csv.mutable_columns() = trained.csv().columns();
    std::unordered_map<std::string_view, const spec::CsvColumn*> known;
    for (const auto& column : trained.csv().columns()) known.emplace(column.column(), &column);
    for (auto& column : *csv.mutable_columns()) take_learnt_column(known, column);
    if (csv.classes().empty()) *csv.mutable_classes() = trained.csv().classes();
  }
  if (format == data_format::image_folder && spec.image_folder().classes().empty())
    *spec.mutable_image_folder()->mutable_classes() = trained.image_folder().classes();
}

std::vector<reading_difference> reading_differences(const spec::DatasetSpec& trained,
                                                    const spec::DatasetSpec& other, taught state) {
  spec::JobSpec as_trained;
  spec::JobSpec as_is;
  auto& expected = *as_trained.mutable_data()->mutable_train();
  auto& found = *as_is.mutable_data()->mutable_train();
  expected = read_as(trained, other, state);
  found = other;
  found.mutable_normalize(); // as read_as() makes it
  if (google::protobuf::util::MessageDifferencer::Equals(expected, found)) return {};
  const std::string_view section = "data.train.";
  std::vector<reading_difference> all;
  for (auto& one : differences(as_trained, as_is)) {
    if (!one.path.starts_with(section)) continue; // a section that only one of them has
    all.push_back({one.path.substr(section.size()), std::move(one.after), std::move(one.before)});
  }
  return all;
}

std::string tell(const reading_difference& difference) {
  return fmt::format("{} here, but {} in data.train: the same record would become other numbers; leave {} "
                     "out, so that it is as in data.train, or write the same",
                     difference.here, difference.trained, difference.whole_key());
}

} // namespace dlrun::job
