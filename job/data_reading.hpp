/// How stored records become numbers: the same way for all records that one model sees. A model is
/// trained on the numbers that data.train gives, so whatever else it sees is read in that way.
#pragma once

#include "proto/job_spec.pb.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dlrun::job {

/// What `spec` leaves open and the training data taught is as in `trained`, where both have one
/// format: columns, vocabularies, means, names of classes.
void take_learnt(const spec::DatasetSpec& trained, spec::DatasetSpec& spec);

/// Is what the training data teaches in `trained` already? What is not there yet cannot differ.
enum class taught : std::uint8_t { not_yet, yes };

/// A key of a data set by which a record would become other numbers.
struct reading_difference {
  std::string key;     ///< "csv.classes[0]"
  std::string here;    ///< as YAML in one line, long ones cut; "nothing" where the key is not set
  std::string trained; ///< in `trained`, likewise
  /// What to leave out so that it is as in `trained`: "csv.classes".
  std::string whole_key() const { return key.substr(0, key.find('[')); }
};

/// All of them, in the order of the keys. Compared are targets, normalisation, columns and their
/// encodings, vocabularies, names of classes, and what a picture or an example becomes. Not
/// compared is how a file is laid out (paths, header, delimiter); nor are other names for the same
/// place, of columns, targets and features, that `trained` does not know. Of another format only
/// names of classes can be compared.
std::vector<reading_difference> reading_differences(const spec::DatasetSpec& trained,
                                                    const spec::DatasetSpec& other, taught state);

/// "c here, but a in data.train: ...", with the way out.
std::string tell(const reading_difference& difference);

} // namespace dlrun::job
