// What the sources of the command read: of options CLI11, of texts fmt.
#include "cmake/precompiled/standard.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
