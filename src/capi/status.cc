// A status is an error code of the library under a name that C can hold; the error object has its
// message and place, as text that lives as long as the object.
#include "src/capi/handles.h"

extern "C" {

int pawl_abi_version(void) { return PAWL_ABI_VERSION; }
const char* pawl_version(void) { return PAWL_VERSION; }

const char* pawl_status_name(pawl_status status) {
  switch (status) {
    case PAWL_OK:
      return "ok";
    case PAWL_REFUSED:
      return "refused";
    case PAWL_ENDED:
      return "ended";
    case PAWL_BAD_ARGUMENT:
      return "bad argument";
    default:
      if (status < PAWL_INVALID || status > PAWL_INTERNAL) return "unknown";
      return pawl::ErrorCodeName(static_cast<pawl::ErrorCode>(status - PAWL_INVALID));
  }
}

pawl_status pawl_error_status(const pawl_error* error) {
  return error == nullptr ? static_cast<pawl_status>(PAWL_OK) : error->status;
}
const char* pawl_error_message(const pawl_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
const char* pawl_error_place(const pawl_error* error) {
  return error == nullptr ? "" : error->place.c_str();
}
void pawl_error_free(pawl_error* error) { delete error; }

}  // extern "C"
