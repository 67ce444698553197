/// All of dlrun's C++ interface.
#pragma once

#include <dlrun/job.hpp>
#include <dlrun/layer.hpp>
#include <dlrun/metric.hpp>
#include <dlrun/model.hpp>
#include <dlrun/reader.hpp>
#include <dlrun/report.hpp>
#include <dlrun/spec.hpp>
#include <dlrun/training.hpp>
