// HTTP through the system's curl: Pawl has no TLS of its own.
#ifndef PAWL_SRC_CLI_CURL_H_
#define PAWL_SRC_CLI_CURL_H_

#include "pawl/result.h"
#include "src/engine/hub_client.h"

namespace pawl::cli {

// A HubGet. The address and the headers go to curl's standard input, so that other users of the
// machine do not see the token among the processes. Errors: kUnsupported without curl; kIo where
// the connection was not made or was cut; kInvalid where curl says that another try is of no use,
// as with a certificate that it does not trust.
Status CurlGet(const HubRequest& request, const HubReceiver& receiver);

}  // namespace pawl::cli

#endif  // PAWL_SRC_CLI_CURL_H_
