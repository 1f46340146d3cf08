// What the sources of the command read: of options CLI11, of texts fmt.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cmake/precompiled/standard.h"
