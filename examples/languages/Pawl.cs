// Pawl from C#, through the C library: a mask, a record, a stream that is stopped, an error.
//   mcs Pawl.cs                       (or: csc Pawl.cs)
//   LD_LIBRARY_PATH=/path/to/libpawl mono Pawl.exe models/tiny-extract schemas/examples/invoice.json "$(cat examples/invoice.txt)"
using System;
using System.IO;
using System.Runtime.InteropServices;
using System.Text;

// A piece of memory that C reads: UTF-8 with its length.
sealed class Bytes : IDisposable {
  public readonly IntPtr Data;
  public readonly UIntPtr Length;
  public Bytes(string text) {
    byte[] utf8 = Encoding.UTF8.GetBytes(text);
    Data = Marshal.AllocHGlobal(utf8.Length + 1);
    Marshal.Copy(utf8, 0, Data, utf8.Length);
    Marshal.WriteByte(Data, utf8.Length, 0);
    Length = (UIntPtr)(uint)utf8.Length;
  }
  public void Dispose() { Marshal.FreeHGlobal(Data); }
}

// Structs may end where the program needs no further fields: struct_size says how long they are.
[StructLayout(LayoutKind.Sequential)]
struct Tokens {
  public UIntPtr StructSize;
  public IntPtr Words, Lengths;
  public UIntPtr Count;
  public IntPtr Special;
  public UIntPtr SpecialCount;
  public IntPtr EndTokens;
  public UIntPtr EndTokenCount;
}
[StructLayout(LayoutKind.Sequential)]
struct Prompt {
  public UIntPtr StructSize;
  public IntPtr Text;
  public UIntPtr TextLength;
  public IntPtr ChatJson;
  public UIntPtr ChatJsonLength;
  public IntPtr Tokens;
  public UIntPtr TokenCount;
  public int ParseSpecial;
  public IntPtr Schema;
  public UIntPtr SchemaLength;
}
[StructLayout(LayoutKind.Sequential)]
struct GenerateOptions {
  public UIntPtr StructSize;
  public double Temperature;
  public int TopK, MaxTokens;
  public double TopP, MinP, RepetitionPenalty, PresencePenalty, FrequencyPenalty;
  public ulong Seed, Group;
  public int AtBudget, GrammarTemperature, SkipForced, Drafts;
  public IntPtr Stops, StopLengths;
  public UIntPtr StopCount;
  public IntPtr OnText, OnTextContext;
}
[StructLayout(LayoutKind.Sequential)]
struct Output {
  public UIntPtr StructSize;
  public IntPtr Text;
  public UIntPtr TextLength;
  public IntPtr Tokens;
  public UIntPtr TokenCount;
  public int Stop, StopIndex;
}

static class Pawl {
  const int StopCancelled = 3;
  const string Library = "pawl";
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  delegate int OnText(IntPtr context, IntPtr text, UIntPtr length);

  [DllImport(Library)] static extern IntPtr pawl_status_name(int status);
  [DllImport(Library)] static extern IntPtr pawl_error_message(IntPtr error);
  [DllImport(Library)] static extern IntPtr pawl_error_place(IntPtr error);
  [DllImport(Library)] static extern void pawl_error_free(IntPtr error);
  [DllImport(Library)] static extern void pawl_vocabulary_tokens_init(out Tokens tokens, UIntPtr size);
  [DllImport(Library)] static extern int pawl_vocabulary_create(ref Tokens tokens, ref IntPtr vocabulary, ref IntPtr error);
  [DllImport(Library)] static extern void pawl_vocabulary_free(IntPtr vocabulary);
  [DllImport(Library)] static extern int pawl_compiler_create(IntPtr vocabulary, IntPtr options, ref IntPtr compiler, ref IntPtr error);
  [DllImport(Library)] static extern void pawl_compiler_free(IntPtr compiler);
  [DllImport(Library)] static extern int pawl_compile(IntPtr compiler, IntPtr kind, IntPtr text, UIntPtr length, IntPtr options,
                                                      ref IntPtr grammar, ref IntPtr error);
  [DllImport(Library)] static extern void pawl_grammar_free(IntPtr grammar);
  [DllImport(Library)] static extern int pawl_matcher_create(IntPtr grammar, IntPtr options, ref IntPtr matcher, ref IntPtr error);
  [DllImport(Library)] static extern int pawl_matcher_fill_mask(IntPtr matcher, uint[] row, UIntPtr words);
  [DllImport(Library)] static extern int pawl_matcher_accept(IntPtr matcher, int token);
  [DllImport(Library)] static extern void pawl_matcher_free(IntPtr matcher);
  [DllImport(Library)] static extern int pawl_engine_load(IntPtr path, UIntPtr length, IntPtr options, ref IntPtr engine, ref IntPtr error);
  [DllImport(Library)] static extern int pawl_engine_vocabulary(IntPtr engine, ref IntPtr vocabulary);
  [DllImport(Library)] static extern int pawl_engine_extract_options(IntPtr engine, IntPtr text, UIntPtr length, IntPtr options);
  [DllImport(Library)] static extern void pawl_engine_free(IntPtr engine);
  [DllImport(Library)] static extern void pawl_json_schema_options_init(IntPtr options, UIntPtr size);
  [DllImport(Library)] static extern void pawl_prompt_init(out Prompt prompt, UIntPtr size);
  [DllImport(Library)] static extern void pawl_generate_options_init(out GenerateOptions options, UIntPtr size);
  [DllImport(Library)] static extern int pawl_engine_generate(IntPtr engine, ref Prompt prompt, IntPtr grammar, ref GenerateOptions options,
                                                              ref IntPtr generation, ref IntPtr error);
  [DllImport(Library)] static extern void pawl_output_init(out Output output, UIntPtr size);
  [DllImport(Library)] static extern int pawl_generation_get(IntPtr generation, ref Output output);
  [DllImport(Library)] static extern void pawl_generation_free(IntPtr generation);

  static UIntPtr Size<T>() { return (UIntPtr)(uint)Marshal.SizeOf(typeof(T)); }
  static string TextOf(IntPtr data, int length) {
    byte[] utf8 = new byte[length];
    Marshal.Copy(data, utf8, 0, length);
    return Encoding.UTF8.GetString(utf8);
  }
  static void Check(int status, IntPtr error) {
    if (status == 0) return;
    string line = Marshal.PtrToStringAnsi(pawl_status_name(status)) + " at " +
                  Marshal.PtrToStringAnsi(pawl_error_place(error)) + ": " + Marshal.PtrToStringAnsi(pawl_error_message(error));
    pawl_error_free(error);
    throw new InvalidOperationException(line);
  }
  static IntPtr Compile(IntPtr compiler, string kind, string text, IntPtr options) {
    IntPtr grammar = IntPtr.Zero, error = IntPtr.Zero;
    using (Bytes name = new Bytes(kind), source = new Bytes(text))
      Check(pawl_compile(compiler, name.Data, source.Data, source.Length, options, ref grammar, ref error), error);
    return grammar;
  }

  static void Masks() {
    string[] words = {"r", "re", "d", "g", "reen", "green", "blue", "<end>"};
    IntPtr pointers = Marshal.AllocHGlobal(words.Length * IntPtr.Size), lengths = Marshal.AllocHGlobal(words.Length * IntPtr.Size);
    for (int i = 0; i < words.Length; ++i) {
      Bytes bytes = new Bytes(words[i]);
      Marshal.WriteIntPtr(pointers, i * IntPtr.Size, bytes.Data);
      Marshal.WriteIntPtr(lengths, i * IntPtr.Size, (IntPtr)words[i].Length);
    }
    IntPtr end = Marshal.AllocHGlobal(4);
    Marshal.WriteInt32(end, 7);
    Tokens tokens;
    pawl_vocabulary_tokens_init(out tokens, Size<Tokens>());
    tokens.Words = pointers;
    tokens.Lengths = lengths;
    tokens.Count = (UIntPtr)(uint)words.Length;
    tokens.EndTokens = end;
    tokens.EndTokenCount = (UIntPtr)1u;
    IntPtr vocabulary = IntPtr.Zero, compiler = IntPtr.Zero, matcher = IntPtr.Zero, error = IntPtr.Zero;
    Check(pawl_vocabulary_create(ref tokens, ref vocabulary, ref error), error);
    Check(pawl_compiler_create(vocabulary, IntPtr.Zero, ref compiler, ref error), error);
    IntPtr grammar = Compile(compiler, "choice", "[\"red\", \"green\"]", IntPtr.Zero);
    Check(pawl_matcher_create(grammar, IntPtr.Zero, ref matcher, ref error), error);
    foreach (int token in new[] {1, 2, 7}) {
      uint[] row = {0};
      pawl_matcher_fill_mask(matcher, row, (UIntPtr)1u);
      Console.WriteLine("allowed: {0:x2}, taken: {1}", row[0], words[token]);
      pawl_matcher_accept(matcher, token);
    }
    pawl_matcher_free(matcher);
    pawl_grammar_free(grammar);
    pawl_compiler_free(compiler);
    pawl_vocabulary_free(vocabulary);
  }

  static void Outputs(string model, string schema, string text) {
    IntPtr engine = IntPtr.Zero, vocabulary = IntPtr.Zero, compiler = IntPtr.Zero, error = IntPtr.Zero;
    using (Bytes path = new Bytes(model), source = new Bytes(text), wanted = new Bytes(schema)) {
      Check(pawl_engine_load(path.Data, path.Length, IntPtr.Zero, ref engine, ref error), error);
      pawl_engine_vocabulary(engine, ref vocabulary);
      Check(pawl_compiler_create(vocabulary, IntPtr.Zero, ref compiler, ref error), error);
      // A struct may also be longer than the library's: its end is zeros then.
      IntPtr schemaOptions = Marshal.AllocHGlobal(1024);
      pawl_json_schema_options_init(schemaOptions, (UIntPtr)1024u);
      pawl_engine_extract_options(engine, source.Data, source.Length, schemaOptions);
      IntPtr grammar = Compile(compiler, "json_schema", schema, schemaOptions);
      Prompt prompt;
      pawl_prompt_init(out prompt, Size<Prompt>());
      prompt.Text = source.Data;
      prompt.TextLength = source.Length;
      prompt.Schema = wanted.Data;
      prompt.SchemaLength = wanted.Length;
      int parts = 0;
      OnText twoParts = (context, part, length) => ++parts < 2 ? 1 : 0;  // then the output stops
      foreach (bool stopped in new[] {false, true}) {
        GenerateOptions options;
        pawl_generate_options_init(out options, Size<GenerateOptions>());
        options.Temperature = 0;
        if (stopped) options.OnText = Marshal.GetFunctionPointerForDelegate(twoParts);
        IntPtr generation = IntPtr.Zero;
        Check(pawl_engine_generate(engine, ref prompt, grammar, ref options, ref generation, ref error), error);
        Output output;
        pawl_output_init(out output, Size<Output>());
        pawl_generation_get(generation, ref output);
        if (stopped)
          Console.WriteLine("parts: {0}, cancelled: {1}", parts, output.Stop == StopCancelled ? "true" : "false");
        else
          Console.WriteLine(TextOf(output.Text, (int)output.TextLength));
        pawl_generation_free(generation);
      }
      GC.KeepAlive(twoParts);
      try {
        Compile(compiler, "json_schema", "{\"type\": \"strin\"}", IntPtr.Zero);
      } catch (InvalidOperationException failure) {
        Console.WriteLine("error: " + failure.Message);
      }
      pawl_grammar_free(grammar);
      pawl_compiler_free(compiler);
      pawl_vocabulary_free(vocabulary);
      pawl_engine_free(engine);
    }
  }

  static int Main(string[] arguments) {
    try {
      Masks();
      Outputs(arguments[0], File.ReadAllText(arguments[1]), arguments[2]);
      return 0;
    } catch (Exception failure) {
      Console.Error.WriteLine(failure.Message);
      return 1;
    }
  }
}
