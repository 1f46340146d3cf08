# A formula for Homebrew. scripts/release.sh writes the address and the checksum of a release into it.
class Pawl < Formula
  desc "Structured output for language models"
  homepage "https://example.invalid/pawl"
  url "https://example.invalid/pawl-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on "cli11" => :build
  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "nlohmann-json" => :build
  depends_on "fmt"
  uses_from_macos "sqlite"
  uses_from_macos "zlib"

  def install
    system "cmake", "-S", ".", "-B", "build", "-G", "Ninja", "-DPAWL_BUILD_TESTS=OFF", "-DPAWL_BUILD_BENCH=OFF",
           "-DPAWL_CUDA=OFF", "-DPAWL_WERROR=OFF", *std_cmake_args
    system "cmake", "--build", "build"
    system "cmake", "--install", "build"
  end

  test do
    output = shell_output("#{bin}/pawl generate --prompt x --choice red --choice green")
    assert_match(/^(red|green)$/, output)
  end
end
