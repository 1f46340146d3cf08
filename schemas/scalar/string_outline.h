// StringOutline: a small picture of a StringProgram of regexes that are all to be fulfilled, in
// which every end of the program can be seen, and perhaps more.
//
//   StringOutline outline(program);
//   const StringOutline::Answer answer = outline.At(state);
//   answer.distance == StringOutline::kNoEnd    // no accepted string goes on from the state
//   answer.live                                 // it is certain that one goes on
//   answer.distance == 7                        // one may, or where it is live does, with 7 code
//                                               // points
//   answer.via                                  // the class that such a string may go on with
//   outline.AtLeast(state) == 7                 // none goes on with fewer than 7 code points
#ifndef PAWL_SCHEMAS_SCALAR_STRING_OUTLINE_H_
#define PAWL_SCHEMAS_SCALAR_STRING_OUTLINE_H_

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grammar/hash_index.h"
#include "schemas/scalar/string_program.h"
#include "src/base/memory_size.h"

namespace pawl::schema {

// Not thread-safe. The program outlives it.
class StringOutline {
 public:
  using StateId = StringProgram::StateId;
  // REQUIRES: Fits(program).
  explicit StringOutline(StringProgram& program);
  // A few regexes, and nothing but a counter besides.
  static bool Fits(const StringProgram& program) {
    return program.RegexCount() > 1 && program.RegexCount() <= limits::kRegexesInGroup &&
           !program.HasLiterals() && !program.HasSources();
  }

  // kUnknown: the picture is too large to tell.
  static constexpr uint32_t kNoEnd = UINT32_MAX, kUnknown = UINT32_MAX - 1;
  struct Answer {
    uint32_t distance = kUnknown;
    int via = -1;       // -1: none is known
    bool live = false;  // an accepted string goes on from the state, the counter aside
  };
  // Depends on nothing but the program and the state.
  Answer At(StateId state);
  // A lower bound of the code points that are missing. kUnknown: none is known.
  uint32_t AtLeast(StateId state);

  size_t MemoryBytes() const {
    return HeapBytes(parts_, part_of_, cells_, members_, points_, info_, index_, sides_, answers_,
                     at_least_, stamps_);
  }
  size_t GrowthHint() const {
    return parts_.size() * (sizeof(Part) + 40) + cells_.size() * sizeof(Span) + points_.size() * 4 +
           info_.size() * (sizeof(Info) + 24) + answers_.size() * sizeof(Answer) +
           at_least_.size() * 4;
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX, kUnasked = UINT32_MAX - 2;
  static constexpr uint32_t kAlways = RegexArena::kInfinite;
  // A term without a choice at its top, in whatever regex it comes up.
  struct Part {
    ReId term;
    uint32_t row = kNone;  // in cells_
    bool knows_classes = false;
    std::vector<uint16_t> classes = {};  // see ClassesFrom
    size_t MemoryBytes() const { return HeapBytes(classes); }
  };
  struct Span {
    uint32_t begin = kNone, count = 0;
  };
  // A point has a part of each regex.
  struct Info {
    uint32_t distance = kUnasked;
    int via = -1;
    bool main = false;  // can be reached from the program's start
  };

  uint32_t PartOf(ReId term);
  Span AddParts(ReId term);
  void Derive(ReId term, char32_t c, std::vector<ReId>& out);
  // The classes that do not lead to nothing.
  const std::vector<uint16_t>& ClassesFrom(uint32_t part);
  // The parts that the characters of a class lead to.
  Span Next(uint32_t part, int cls);
  uint32_t PointOf(const uint32_t* parts);
  // Calls fn(point) for all points that have a part of each span.
  template <typename Fn>
  void ForPoints(const std::vector<Span>& spans, const Fn& fn);
  // What is left to find is one regex, whose shortest text is as long as that.
  bool OneIsLeft(uint32_t point, uint32_t& distance, uint32_t& part) const;
  bool Accepts(uint32_t point) const;
  // Decides all points that can be reached from the given ones, if they take no more steps.
  bool Explore(const std::vector<uint32_t>& from, int64_t steps, bool main);
  // Distances of the explored points, from what is known of the ends.
  struct Edge {
    uint32_t to, from;  // places in the order of exploration
    int cls;
  };
  void Measure(const std::vector<uint32_t>& points, std::vector<Edge>& edges, bool main);
  // What is known of a state of a regex.
  struct Side {
    bool known = false;
    Span wide;
    std::vector<std::pair<Span, uint32_t>> kernels;  // with the lengths up to which they hold
    size_t MemoryBytes() const { return HeapBytes(kernels); }
  };
  const Side& SideOf(StateId state, size_t regex);
  // The nearest end of what is certain; of what may be.
  Answer FindCertain(const std::vector<const Side*>& sides);
  Answer FindPossible(const std::vector<const Side*>& sides);
  // The distance of a point; kUnasked where it has to be explored for that.
  uint32_t DistanceOf(uint32_t point) const;
  int ViaOf(uint32_t point);
  Answer Find(StateId state);
  int ClassTowards(uint32_t part);
  bool overflow() const { return arena_.overflow() || failed_; }

  StringProgram& program_;
  RegexArena& arena_;
  const size_t width_;
  const size_t classes_;
  bool failed_ = false;  // the picture of the start is too large
  int64_t derivatives_ = 0;
  std::deque<Part> parts_;
  std::unordered_map<ReId, uint32_t> part_of_;
  std::vector<Span> cells_;              // by row and class
  std::vector<uint32_t> members_;        // of spans
  std::vector<uint32_t> points_;         // parts
  std::vector<Info> info_;               // by point
  HashIndex index_;                      // of points_
  std::vector<std::deque<Side>> sides_;  // by regex and its state
  std::vector<Answer> answers_;          // by state; kUnasked
  std::vector<uint32_t> at_least_;       // by state; kUnasked
  std::vector<uint32_t> stamps_;         // by point: its place in an exploration
};

}  // namespace pawl::schema

#endif  // PAWL_SCHEMAS_SCALAR_STRING_OUTLINE_H_
