// Allocations that fail: operator new of the whole test program throws std::bad_alloc for the k-th
// allocation, after a mark, of the threads of one kind.
//
//   faults::Exempt();                                // this thread: never counted, never failed
//   faults::Arm(faults::kDecoder, 17);               // the 17th allocation of the decoder's thread
//   ... a request ...
//   const int64_t seen = faults::Disarm();           // allocations of that kind since the mark
//
// Kinds are told by the names of threads (src/base/threads.h). What C libraries take with
// malloc (tree-sitter, SQLite) is not counted: they have their own ways to say that memory ran out.
#ifndef PAWL_TESTS_SERVER_ALLOCATION_FAULTS_H_
#define PAWL_TESTS_SERVER_ALLOCATION_FAULTS_H_

#include <cstdint>

namespace pawl::faults {

// kOther: threads without a name, which are those of the connections. kPool: also those of looks.
enum Kind { kOther, kWorker, kDecoder, kPool, kCaller, kKinds };
const char* NameOf(Kind kind);

// For threads of the test.
void Exempt();
// This thread, which is one of the test, counts as kCaller until Exempt.
void CountAsCaller();

// The k-th allocation from now on fails, and the burst - 1 after it; k = 0: none.
void Arm(Kind kind, int64_t k, int64_t burst = 1);
int64_t Disarm();

}  // namespace pawl::faults

#endif  // PAWL_TESTS_SERVER_ALLOCATION_FAULTS_H_
