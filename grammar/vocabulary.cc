#include "pawl/vocabulary.h"
