// The page at "/": one text, without anything from elsewhere.
#ifndef PAWL_SRC_SERVER_PLAYGROUND_H_
#define PAWL_SRC_SERVER_PLAYGROUND_H_

#include <string_view>

namespace pawl::server {

std::string_view PlaygroundPage();

}  // namespace pawl::server

#endif  // PAWL_SRC_SERVER_PLAYGROUND_H_
