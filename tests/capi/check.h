/* Checks of the C tests: what fails is written to stderr and counted. */
#ifndef PAWL_TESTS_CAPI_CHECK_H_
#define PAWL_TESTS_CAPI_CHECK_H_

#include <stdio.h>
#include <string.h>

#include "pawl/pawl.h"

static int failures = 0;
#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
      ++failures;                                                             \
    }                                                                         \
  } while (0)

/* The call fails with the status, and its error says the same at this place. */
#define CHECK_FAILS(call, wanted, where)                                                      \
  do {                                                                                        \
    pawl_error* error = NULL;                                                                 \
    CHECK((call) == (wanted));                                                                \
    CHECK(error != NULL && pawl_error_status(error) == (wanted));                             \
    CHECK(pawl_error_message(error)[0] != 0);                                                 \
    if (strcmp(pawl_error_place(error), where) != 0) {                                        \
      fprintf(stderr, "%s:%d: place '%s': %s\n", __FILE__, __LINE__, pawl_error_place(error), \
              pawl_error_message(error));                                                     \
      ++failures;                                                                             \
    }                                                                                         \
    pawl_error_free(error);                                                                   \
  } while (0)

#endif /* PAWL_TESTS_CAPI_CHECK_H_ */
