#!/usr/bin/env bash
# verbatim_bar.sh [CASES [BUILD]]: random schemas with copied fields over random texts (docs/extraction.md).
#
# In every state that walks meet, masks are what each token says, no state is a dead end, and the completion
# fits. Every value is compared with all spans of its text by brute force. The default is 1,000 cases.
set -euo pipefail
cd "$(dirname "$0")/.."
PAWL_SOURCE_CASES=${1:-1000} "${2:-build}/bin/schemas_test" --gtest_filter='SourceTest.RandomSchemasAndTexts:SourceConditionsTest.EqualsBruteForce'
