/// Makers of the losses, one file a family. `layer` names the model's last layer and `output` is
/// the shape of what it gives for a record; each checks its arguments and the shape, and fills in
/// PyTorch's defaults.
#pragma once

#include "engine/loss.hpp"
#include "proto/job_spec.pb.h"

namespace dlrun::engine {

using loss_result = result<std::unique_ptr<const loss>>;

/// torch.nn.CrossEntropyLoss over scores of shape [classes]; targets are class numbers.
loss_result make_cross_entropy(const spec::CrossEntropy& spec, const std::string& layer, const shape& output);
/// torch.nn.BCEWithLogitsLoss over logits of shape [values]; targets are from 0 to 1.
loss_result make_bce_with_logits(const spec::BceWithLogits& spec, const std::string& layer,
                                 const shape& output);
/// torch.nn.MSELoss, L1Loss and HuberLoss over outputs of shape [values]; targets are any numbers.
loss_result make_mse(const std::string& layer, const shape& output);
loss_result make_l1(const std::string& layer, const shape& output);
loss_result make_huber(const spec::Huber& spec, const std::string& layer, const shape& output);

/// bad_spec: "loss <name>: <what>".
tl::unexpected<error> loss_error(const char* name, const std::string& what);

} // namespace dlrun::engine
