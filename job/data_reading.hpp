/// How stored records become numbers: the same way for all records that one model sees. A model is
/// trained on the numbers that data.train gives, so whatever else it sees is read in that way.
#pragma once

#include "proto/job_spec.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dlrun::job {

/// Fills in what `spec` leaves open and `trained` has learnt from the training data, if both have
/// the same format: columns, vocabularies, means, names of classes.
void take_learnt(const spec::DatasetSpec& trained, spec::DatasetSpec& spec);

/// Whether `trained` already holds what the training data teaches. What is not there cannot differ.
enum class taught : std::uint8_t { not_yet, yes };

/// A key of a data set whose value makes a record other numbers than training data would become.
struct reading_difference {
  std::string key;     ///< "csv.classes[0]"
  std::string here;    ///< as YAML in one line, long ones cut; "nothing" where the key is not set
  std::string trained; ///< in `trained`, likewise
  /// The key to leave out, so that its value is taken from `trained`: "csv.classes".
  std::string whole_key() const { return key.substr(0, key.find('[')); }
};

/// All such keys, in their order. It compares targets, normalisation, columns and their encodings,
/// vocabularies, names of classes, and how pictures and examples are read. It does not compare how
/// a file is laid out (paths, header, delimiter), nor names of columns, targets and features that
/// `trained` does not know. Between two formats only names of classes can be compared.
std::vector<reading_difference> reading_differences(const spec::DatasetSpec& trained,
                                                    const spec::DatasetSpec& other, taught state);

/// For people: "c here, but a in data.train: ...", with the way out.
std::string tell(const reading_difference& difference);

} // namespace dlrun::job
