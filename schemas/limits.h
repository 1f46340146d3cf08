// All budgets of schemas/: what a schema may ask for, how far something is searched,
// and from which size on a shortcut is taken.
//
// Three kinds, by folder:
//  - refused: a schema beyond it does not compile; the error has the number;
//  - given up: beyond it a question stays open, or an answer is found anew. What is written is
//    valid all the same; docs/json_schema.md says what is lost ("Where the look-ahead ends");
//  - switch: from here on another method with the same answer is cheaper.
// All of them count steps, states, values or bytes, never seconds: the same input ends the same way
// everywhere. What a caller may choose is in pawl/compiler.h; the numbers of the strict
// profile are not ours and stand in read/strict_profile.cc; the size of whole grammars is bounded
// by grammar/memory_budget.h.
#ifndef PAWL_SCHEMAS_LIMITS_H_
#define PAWL_SCHEMAS_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace pawl::limits {

// read/: given up. Keys of one object that Keys::kAll asks for.
inline constexpr size_t kAskedKeys = 64;

// compiler: refused. A separator: the mark and its white space.
inline constexpr size_t kSeparatorBytes = 17;

// number/: refused. Numbers of a schema, as they are written there.
inline constexpr int64_t kDecimalExponent = 100'000;
inline constexpr size_t kDecimalDigits = 10'000;
// Divisors: significant digits, so that a product of two fits into 128 bits.
inline constexpr size_t kDivisorDigits = 18;
// Exponents that are read behind a mantissa that has to keep to a bound or a divisor.
inline constexpr int kTextExponent = 400;
// Places of a bound, a divisor or a listed number when it is written out.
inline constexpr int64_t kNumberPlaces = 1000;
// read/: given up. Digits of a number in a text that has a space between groups of three.
inline constexpr size_t kSpacedDigits = 30;
// number/, scalar/: given up. Exponents beyond it read as this one.
inline constexpr int64_t kFarExponent = int64_t{1} << 50;
// States that the search for an exponent looks at.
inline constexpr size_t kExponentStates = 20'000;

// formula/: given up. Steps of all products of disjunctions that one question may take, and rounds
// in which what holds for certain is put into the rest.
inline constexpr size_t kProductSteps = 200'000;
inline constexpr int kUnitRounds = 16;
// Conditions of one kind, other than lists, that are combined in full.
inline constexpr size_t kCombinedConditions = 3;
// Shortest texts of formats that schemas share, and how long each may be.
inline constexpr size_t kWitnesses = 256, kWitnessBytes = 1024;
// Formulas share parts: those with more than so many are looked through with a memory. Switch.
inline constexpr uint32_t kSharedParts = 1000;
// So many regexes of one choice become one. Of those that search for something (or begin with what
// may go on for ever) each step of a union looks at all, which a product does once for each state
// of one; so those have to be more. Switches.
inline constexpr size_t kMergedRegexes = 8, kMergedSearches = 100;
// Steps of the regexes' arena in which a union has to be made.
inline constexpr uint64_t kUnionSteps = 1u << 21;
// Values of a set from which others are taken away.
inline constexpr size_t kNarrowedValues = 4096;

// scalar/: given up. Steps of the walk over what a text goes on with, of one question: to the
// nearest end, and to any where no table says whether there is one.
inline constexpr size_t kNearestSteps = 20'000, kSourceSteps = 200'000;
// scalar/: given up. Steps of the regexes' arena (about 50 ns each) that one search may take; how
// many all of them take before each gets less; and after how many nothing is searched any more,
// since one mask may ask about a hundred thousand states. Reading a text does not count: it must
// not fail for what searches have cost.
inline constexpr uint64_t kSearchWork = 1u << 20, kSearchWorkOfAll = 1u << 20;
inline constexpr uint64_t kSearchWorkLater = 1u << 13, kSearchWorkEver = 1u << 21;
// Steps in which the outline of a product (scalar/string_outline.h) is explored from its start, and
// from what comes up besides; alternatives of a state that are looked at.
inline constexpr int64_t kOutlineSteps = 60'000, kOutlineStepsLater = 6'000;
// Derivatives for the picture of the start. All pictures of 1,280 pairs of patterns and formats and
// of MaskBench that are not too large take fewer. That of format "regex" would take 52,000.
inline constexpr int64_t kOutlineDerivatives = 15'000;
inline constexpr size_t kOutlinePoints = 256;
// Sets of multiples that combined conditions on one number have together.
inline constexpr size_t kLattices = 256;
// Multiples that are tried one behind the other: enough for 24 divisors.
inline constexpr int kMultiplesInARow = 256;
// Zeros that are written out behind a number.
inline constexpr int64_t kZerosWritten = 4'000;
// Digits that are counted: two counts of them fit into a word.
inline constexpr int kCountedDigits = 30'000;
// With so many digits left there are more numbers than anybody will see.
inline constexpr int kCountlessDigits = 8;
// Regexes whose steps are remembered together; of more a product has a group for each so many.
inline constexpr size_t kRegexesInGroup = 8;
// Tokens that settle a condition: conditions side by side, ranges of tokens that are kept (and that
// have to be put together for one mask), states that are looked at to see that a condition is never
// settled.
inline constexpr size_t kSettlingRegexes = 200, kSettlingEvents = 500'000;
inline constexpr size_t kSettlingStates = 64;
// A row of slots by atom, if it is not longer than that. Switch.
inline constexpr size_t kSlotRow = 4096;
// Rows of next states that are made at once.
inline constexpr size_t kRowsAtOnce = 16;
// Walks of strings by classes of characters. Places with more plain tokens than that are wide; cuts
// are made around nodes with so many tokens; subtrees with so many are worth a question, smaller
// ones with a mixed class are read token by token, and after so many tokens the walk by classes is
// given up for the one by bytes; so many where searches restart, behind each of whose states many
// others stand. Switches.
inline constexpr uint32_t kWidePlace = 3000, kCutTokens = 2048;
inline constexpr uint32_t kWorthAsking = 256, kWorthComparing = 128, kTokensRead = 4000;
inline constexpr uint32_t kTokensReadAgain = 40'000;

// read/: refused.
inline constexpr int64_t kSubschemas = 150'000;
inline constexpr int kReferenceChain = 1000;
// Arrays and objects in an `enum`. Each is followed by itself, so time grows with the square of
// their number: a second or two. Under uniqueItems each item is told apart from those before it.
inline constexpr int64_t kConstantContainers = 1000, kUniqueContainers = 250;
// unevaluated*: schemas applied in place, each under each of its conditions; patterns (or
// `contains`) that count under a condition, all combinations of which are formed.
inline constexpr size_t kEvaluatedSchemas = 20'000, kConditionalPatterns = 6;
// Notes on annotations: a schema of 16 MiB can have a million, each with a long pointer.
inline constexpr size_t kAnnotationNotes = 1000;
// Intervals of code points from which a string's program finds one through a table of pages.
// Switch.
inline constexpr size_t kPagedIntervals = 32;
// Members of an object from which references find theirs by an index. Switch.
inline constexpr size_t kIndexedMembers = 32;

// frames/: given up. All strings of a schema together: so many questions of `step_fuel` steps, and
// bytes for each step.
inline constexpr int64_t kStringQuestions = 64, kBytesPerStep = 160;
// A string that has to be short is looked for up to this length, or max_string.
inline constexpr size_t kShortString = 64;
// Keys that were seen are forgotten one by one while they are few. Switch.
inline constexpr size_t kForgottenKeys = 64;

// solve/, uniqueItems: given up. Arrays and objects that are counted and all kept apart (each makes
// all others dearer), and those that are kept apart beforehand though that is rarely needed.
inline constexpr size_t kKeptApart = 256, kKeptApartBeforehand = 4;
// Demands of which the first values are kept; items that a completion may have to write.
inline constexpr size_t kValueLists = 1000;
inline constexpr uint64_t kCountedItems = 1 << 16;
// Looking for a loop (an endless set): states, and steps of one digit, which leave bounds behind.
inline constexpr size_t kLoopStates = 64;
inline constexpr int kLoopSteps = 25;
// Texts that continue a value: states, ways to go on from one; so many of them count as endless.
inline constexpr size_t kContinuationStates = 200'000, kChoices = 40;
inline constexpr double kCountless = 1e12;

// solve/: given up. Values and containers in one another: two for each of the 520 levels of JSON
// that a schema may have (a `const`), and some for what leads there; 1,040 take less than a MiB of
// stack.
inline constexpr int kSolverDepth = 1100;
// Ways to fulfil a formula that are tried, open branches whose outcomes are all tried, and how many
// sets of paths are kept.
inline constexpr size_t kCubes = 64, kTracksEnumerated = 6, kKeptCubes = 10'000;
// Once something is found a few more tries may find something shorter; that is enough.
inline constexpr int kShorterTries = 4;
// The longest text that a completion writes.
inline constexpr size_t kTextBytes = size_t{1} << 16;
// Of so many conditions on one key its values are told apart before anything is multiplied out
// (switch); keys that are settled one inside the other; tables of values that are kept.
inline constexpr size_t kManyBranches = 8, kSettledKeys = 6, kKeptClasses = 1000;
// Of so many disjunctions on one object a propositional solver picks the values of the keys
// (switch). Names that are looked at for them, keys that are chosen together, classes of values of
// each, parts of the formula, choices that are tried; steps of one question and of all.
inline constexpr size_t kManyClauses = 8, kClauseNames = 1000, kClauseKeys = 128;
inline constexpr size_t kClauseOptions = 16, kClauseParts = 20'000;
inline constexpr int kClauseTries = 8;
inline constexpr int64_t kClauseSteps = 100'000, kClauseStepsOfAll = 20'000'000;
// Items and members beyond those with a place of their own that are written down; items that are
// planned to differ from all before; different `contains` of one array.
inline constexpr uint64_t kBuiltItems = 4096, kPlannedMembers = 5000, kPlannedApart = 40;
inline constexpr size_t kComparedContains = 32;
// Values that can be counted: those of an enum, and looked through for it; others, with the steps
// to list them, for one question and for all.
inline constexpr size_t kEnumValues = 20'000, kTriedValues = 1'000'000, kListedValues = 4096;
inline constexpr int64_t kListingSteps = 20'000, kListingStepsOfAll = 1'000'000;
// Trying all values: steps for one place and for all, conditions that meet there, and depth (of
// arrays and objects, and of items one behind the other).
inline constexpr int64_t kTryingSteps = 2'000, kTryingStepsOfAll = 200'000, kTriedConditions = 8;
inline constexpr int kTryingDepth = 200;
// Lists of spare keys that are kept for the same demands. Switch.
inline constexpr size_t kSpareLists = 4;
// Keys that the same conditions are true of are one kind: states that are looked at to find the
// kinds, kinds, keys of one that has an end, some of one without, and steps to list them.
inline constexpr size_t kKeyStates = 200, kKeyKinds = 16;
inline constexpr size_t kKeysOfAKind = 64, kSomeKeysOfAKind = 16, kKeyListSteps = 2000;

// machine/: given up. Keys whose first bytes are kept, and texts next to those taken that are
// tried.
inline constexpr size_t kKnownKeys = 4096, kOtherTexts = 8;

// masks/: given up. Walks of wide strings that are kept.
inline constexpr size_t kWideWalks = 256;
// Seen keys that are followed one by one; of more only those that fit into a token. Switch.
inline constexpr size_t kFewKeys = 64;
// Digits in one token that are taken at once; longer ones are walked like anything else. Switch.
inline constexpr size_t kDigitsAtOnce = 32;

}  // namespace pawl::limits

#endif  // PAWL_SCHEMAS_LIMITS_H_
