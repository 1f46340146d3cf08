// The bound on bodies that have not arrived: what is granted stays within it whatever is asked in
// whatever order, somebody always goes on, and those that stall go first.
#include "src/server/waiting_bodies.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/server/http_server.h"
#include "tests/server/http_client.h"
#include "tests/server/http_echo.h"
#include "tests/server/memory_stream.h"

namespace pawl::server {
namespace {

using std::chrono::milliseconds;

struct Body final : WaitingBodies::Share {
  size_t wanted = 0;  // bytes of the whole
  int told = 0;
  void MayGoOn() noexcept override { ++told; }
};

TEST(WaitingBodiesTest, TheLongestStalledGoes) {
  WaitingBodies waiting(4 * WaitingBodies::kStepBytes);
  WaitingBodies::TimePoint now{};
  Body a, b, c;
  EXPECT_TRUE(waiting.Grow(a, now));
  EXPECT_TRUE(waiting.Grow(b, now + milliseconds(1)));
  EXPECT_TRUE(waiting.Grow(a, now + milliseconds(2)));
  EXPECT_TRUE(waiting.Grow(b, now + milliseconds(3)));
  // No body has stalled yet.
  EXPECT_FALSE(waiting.Grow(c, now + milliseconds(4)));
  EXPECT_FALSE(a.dropped() || b.dropped() || c.dropped());
  EXPECT_FALSE(waiting.Grow(c, now + milliseconds(2) + WaitingBodies::kStallTime));
  EXPECT_TRUE(a.dropped());
  EXPECT_EQ(a.told, 1);
  // One at a time.
  EXPECT_FALSE(waiting.Grow(c, now + milliseconds(9) + WaitingBodies::kStallTime));
  EXPECT_FALSE(b.dropped());
  waiting.Leave(a, now);
  EXPECT_EQ(c.told, 1);
  EXPECT_EQ(WaitingBodies::Room(c), WaitingBodies::kFreeBytes + WaitingBodies::kStepBytes);
  EXPECT_EQ(waiting.bytes(), 3 * WaitingBodies::kStepBytes);
  waiting.Leave(b, now);
  waiting.Leave(c, now);
  EXPECT_EQ(waiting.bytes(), 0u);
}

// Bodies that all send as fast as they may and do not fit: each either arrives or is dropped, and
// some arrive.
TEST(WaitingBodiesTest, SomebodyAlwaysGoesOn) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    const size_t bound = (1 + random() % 20) * WaitingBodies::kStepBytes;
    WaitingBodies waiting(bound);
    std::deque<Body> bodies(1 + random() % 30);
    std::vector<Body*> live;
    for (Body& body : bodies) {
      // One body always has space.
      body.wanted = random() % (bound + WaitingBodies::kFreeBytes);
      live.push_back(&body);
    }
    size_t arrived = 0;
    WaitingBodies::TimePoint now{};
    const size_t stalling = round % 2 == 0 ? 0 : random() % live.size();
    for (int step = 0; !live.empty(); ++step) {
      ASSERT_LT(step, 100'000);
      now += milliseconds(random() % 20);
      const size_t i = random() % live.size();
      Body& body = *live[i];
      const bool stalls = static_cast<size_t>(&body - &bodies[0]) < 0 + stalling && stalling > 0 &&
                          WaitingBodies::Room(body) > WaitingBodies::kFreeBytes;
      bool leaves = body.dropped();
      if (!leaves && !stalls && WaitingBodies::Room(body) < body.wanted) {
        waiting.Grow(body, now);
      } else if (!leaves && !stalls) {
        leaves = true;
        ++arrived;
      }
      ASSERT_LE(waiting.bytes(), bound);
      if (stalls && !leaves) {
        // It stalls until the others have arrived; its own time ends it then.
        leaves = std::all_of(live.begin(), live.end(), [&](const Body* other) {
          return static_cast<size_t>(other - &bodies[0]) < stalling;
        });
      }
      if (!leaves) continue;
      waiting.Leave(body, now);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
    }
    EXPECT_EQ(waiting.bytes(), 0u);
    EXPECT_GT(arrived, 0u);
  }
}

std::string Head(size_t length) {
  return "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}

// Connections, by a clock of the test's own: with stalled bodies up to the bound, a new body gets
// memory, the oldest are told 408, and small requests are answered all the time.
TEST(WaitingBodiesTest, StalledBodiesMakeRoom) {
  HttpOptions options;
  options.max_body_bytes = 1 << 20;
  options.max_waiting_bytes = 4 << 20;
  const auto shared = std::make_shared<HttpShared>(options, EchoHandler());
  std::deque<std::unique_ptr<MemoryClient>> stalled;
  for (int i = 0; i < 20; ++i) {
    stalled.push_back(std::make_unique<MemoryClient>(shared));
    stalled.back()->Say(Head(1'000'000) + std::string(900'000, 'x'));
    EXPECT_LE(shared->bodies.bytes(), options.max_waiting_bytes);
    MemoryClient small(shared);
    small.Say(Head(1000) + std::string(1000, 'x'));
    EXPECT_TRUE(small.wire().out.starts_with("HTTP/1.1 200 "));
  }
  const auto dropped = [&] {
    int count = 0;
    for (const auto& client : stalled) {
      client->RunIfWanted();
      count += client->wire().out.starts_with("HTTP/1.1 408 ") ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(dropped(), 0);
  // Those that wait look again; those that stall go, the oldest first, one for each step.
  MemoryClient last(shared);
  last.Say(Head(500'000) + std::string(400'000, 'x'));
  for (int i = 0; i < 40; ++i) {
    for (const auto& client : stalled) client->Pass(milliseconds(100));
    last.Pass(milliseconds(100));
    dropped();
  }
  EXPECT_GE(dropped(), 1);
  EXPECT_TRUE(stalled.front()->wire().out.starts_with("HTTP/1.1 408 "));
  last.Say(std::string(100'000, 'x'));
  EXPECT_TRUE(last.wire().out.starts_with("HTTP/1.1 200 ")) << last.wire().out;
  EXPECT_LE(shared->bodies.bytes(), options.max_waiting_bytes);
  stalled.clear();
  EXPECT_EQ(shared->bodies.bytes(), 0u);
}

int64_t ResidentBytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  long pages = 0, resident = 0;
  const int read = std::fscanf(file, "%ld %ld", &pages, &resident);
  std::fclose(file);
  return read == 2 ? int64_t{resident} * ::getpagesize() : 0;
}

// 150 bodies of 8 MiB that stop before their end, over real connections.
TEST(WaitingBodiesTest, HundredAndFiftyStalledBodies) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  const auto server = HttpServer::Start({}, EchoHandler());
  ASSERT_TRUE(server.ok());
  const int port = (*server)->port();
  ASSERT_EQ(Connection(port).Post("/a", "warm").status, 200);
  const int64_t before = ResidentBytes();
  const std::string piece(1 << 20, 'x');
  int64_t most = 0;
  {
    std::deque<Connection> stalled;
    for (int i = 0; i < 150; ++i) {
      Connection& c = stalled.emplace_back(port);
      // What the server does not read stays on the way; the test does not wait for it.
      timeval limit{0, 1000};
      ::setsockopt(c.fd(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      c.Send(Head(size_t{8} << 20));
      for (int k = 0; k < 7; ++k) {
        if (!c.Send(piece)) break;
      }
      most = std::max(most, ResidentBytes());
    }
    EXPECT_LE((*server)->waiting_bytes(), size_t{64} << 20);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(Connection(port).Post("/a", std::string(1000, 'x')).status, 200);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
    EXPECT_LT(most - before, 64 * kMiB + 150 * 128 * 1024 + 32 * kMiB);
  }
  for (int i = 0; i < 500 && (*server)->connections() > 0; ++i) {
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_EQ((*server)->connections(), 0);
  EXPECT_EQ((*server)->waiting_bytes(), 0u);
  EXPECT_LT(ResidentBytes() - before, 32 * kMiB);
}

}  // namespace
}  // namespace pawl::server
