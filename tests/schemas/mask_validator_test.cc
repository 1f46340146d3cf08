// mask_validator_tool does the same for as long as one likes.
#include "tests/schemas/mask_validator.h"

#include <gtest/gtest.h>

namespace pawl::property {
namespace {

TEST(MaskValidatorTest, MasksAllowWhatIsValidAndNothingElse) {
  const MaskReport report = CheckMasks(7, 0, 3000);
  EXPECT_EQ(report.failure, "");
  EXPECT_GE(report.demanded, 5000u);
  EXPECT_GE(report.completed, 10'000u);
  EXPECT_GE(report.refused, 10'000u);
}

}  // namespace
}  // namespace pawl::property
