/* What the example of pawl.h takes for granted (prelude.h, for C). */
#ifndef PAWL_TESTS_EXAMPLES_PRELUDE_C_H_
#define PAWL_TESTS_EXAMPLES_PRELUDE_C_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pawl/pawl.h"

extern const char *path, *schema;
extern const float* logits;
int32_t sample(const float* of, const uint32_t* row);
int show(void* context, const char* text, size_t length);

#endif /* PAWL_TESTS_EXAMPLES_PRELUDE_C_H_ */
