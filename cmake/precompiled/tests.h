// What nearly every test reads.
#include "cmake/precompiled/standard.h"

#include <gtest/gtest.h>
