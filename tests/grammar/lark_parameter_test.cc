// Rules with a parameter.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/grammar/lark_test_util.h"

namespace pawl {
namespace {

TEST(Lark, ParametricRules) {
  Check(R"(
    start    :  perm::0x0 "X"
    perm::_  :  ae::_ be::_              %if is_zeros([10:12])
             |  "a" perm::set_bit(0)     %if bit_clear(0)
             |  "b" perm::set_bit(1)     %if bit_clear(1)
             |  "c" perm::set_bit(2)     %if bit_clear(2)
    ae::_ : ""    %if is_ones([0:1])
    be::_ : ce::_ %if is_ones([1:2])
    ce::_ : ""    %if is_ones([2:3])
  )",
        {"abcX", "bcaX", "cbaX"}, {"X", "aX", "abX", "aaX", "abccX"});
  Check(R"(
    start  : aa::0
    aa::_  : "a" aa::incr(_)    %if lt(_, 6)
           | bb::_
    bb::_  : "b" bb::incr(_)    %if lt(_, 6)
           | ""
  )",
        {"", "aaabbb", "bbbbbb"}, {"ba", "aaaaaaa", "aaabbbb"});
  Check(R"(
    start    :  pick::0
    pick::_  :  ""                      %if and(bit_count_ge(_, 1), not(eq([0:2], 3)))
             |  "a" pick::bit_or(0x1)   %if and(bit_clear(0), bit_count_lt(_, 3))
             |  "b" pick::set_bit(1)    -> b %if bit_clear(1)
             |  "c" pick::set_bit(2)    %if or(bit_clear(2), eq(_, 7))
  )",
        {"a", "b", "c", "ac", "bc", "cb"}, {"", "ab", "abc", "aa", "acb"});
}

TEST(Lark, ParameterFunctions) {
  Check(R"(
    start: n::5
    n::_: "x" n::decr([0:3])      %if gt(_, 2)
        | "y" m::bit_and(0x1)     %if or(eq(_, 2), is_zeros([1:3]))
    m::_: "0"                     %if eq(_, 0)
        | "1"                     %if true()
        | "2" k::clear_bit(0)     %if le(_, 1)
    k::_: ("z"                    %if bit_count_eq(_, 0)
        | "w"                     %if bit_count_ne(_, 0))
  )",
        {"xxxy0", "xxxy1", "xxxy2z"}, {"xxy0", "xxxxy0", "xxxy2w", "y1"});
  // Counters stay where they are full.
  Check("start: n::0\nn::_: \"x\" n::incr([0:1]) | \"y\" %if is_ones([0:1])", {"xy", "xxxy"},
        {"y", "x"});
}

// Bug: a count without an end took 160 MB before it was refused.
TEST(Lark, SoManyValuesAreRefused) {
  const Result<GrammarIr> ir = ReadLark("start: x::0\nx::_: \"a\" x::incr(_)\n", {});
  ASSERT_FALSE(ir.ok());
  EXPECT_EQ(ir.error().code, ErrorCode::kLimit);
  EXPECT_EQ(ir.error().message, "rules with a parameter are called with more than 100000 values");
  EXPECT_EQ(ir.error().place, "2:1");
}

}  // namespace
}  // namespace pawl
