# The tag of C++ exceptions: Clang refers to it, and the library that has it is not built for WASI.
  .tagtype __cpp_exception i32
  .globl __cpp_exception
__cpp_exception:
