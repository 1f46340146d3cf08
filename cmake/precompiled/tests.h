// What nearly every test reads.
#include <gtest/gtest.h>

#include "cmake/precompiled/standard.h"
