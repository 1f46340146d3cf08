// A server over a model of the repository, for the cases of a program that share one.
#ifndef PAWL_TESTS_SERVER_TEST_SERVER_H_
#define PAWL_TESTS_SERVER_TEST_SERVER_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

#include "src/server/server.h"

namespace pawl::server {

// Listens and has its model; one thread computes.
inline std::unique_ptr<Server> ServerOf(const std::string& model, ServerOptions options = {}) {
  options.model_path = PAWL_SOURCE_DIR "/models/" + model;
  options.model.model.threads = 1;
  auto started = Server::Start(options);
  if (!started.ok()) {
    ADD_FAILURE() << started.error().message;
    std::abort();
  }
  EXPECT_TRUE((*started)->WaitUntilReady().ok());
  return *std::move(started);
}

}  // namespace pawl::server

#endif  // PAWL_TESTS_SERVER_TEST_SERVER_H_
