//! Pawl from Rust, through the C library: a mask, a record, a stream that is stopped, an error.
//!   rustc --edition 2021 pawl.rs -L /path/to/libpawl -C link-arg=-Wl,-rpath,/path/to/libpawl
//!   ./pawl models/tiny-extract schemas/examples/invoice.json "$(cat examples/invoice.txt)"
use std::ffi::{c_char, c_int, c_void, CStr};
use std::io::Write;
use std::ptr::{null, null_mut};

/// A handle or an error: the library knows what is inside.
type Handle = *mut c_void;

/// Structs may end where the program needs no further fields: struct_size says how long they are.
#[repr(C)]
struct Tokens {
    struct_size: usize,
    tokens: *const *const c_char,
    lengths: *const usize,
    count: usize,
    special: *const i32,
    special_count: usize,
    end_tokens: *const i32,
    end_token_count: usize,
}

#[repr(C)]
struct Prompt {
    struct_size: usize,
    text: *const u8,
    text_length: usize,
    chat_json: *const u8,
    chat_json_length: usize,
    tokens: *const i32,
    token_count: usize,
    parse_special: i32,
    schema: *const u8,
    schema_length: usize,
}

type OnText = extern "C" fn(*mut c_void, *const u8, usize) -> c_int;

#[repr(C)]
struct GenerateOptions {
    struct_size: usize,
    temperature: f64,
    top_k: i32,
    max_tokens: i32,
    top_p: f64,
    min_p: f64,
    penalties: [f64; 3],
    seed: u64,
    group: u64,
    at_budget: i32,
    grammar_temperature: i32,
    skip_forced: i32,
    drafts: i32,
    stops: *const *const c_char,
    stop_lengths: *const usize,
    stop_count: usize,
    on_text: Option<OnText>,
    on_text_context: *mut c_void,
}

#[repr(C)]
struct Output {
    struct_size: usize,
    text: *const u8,
    text_length: usize,
    tokens: *const i32,
    token_count: usize,
    stop: i32,
    stop_index: i32,
}

const STOP_CANCELLED: i32 = 3;

#[link(name = "pawl")]
extern "C" {
    fn pawl_status_name(status: i32) -> *const c_char;
    fn pawl_error_status(error: Handle) -> i32;
    fn pawl_error_message(error: Handle) -> *const c_char;
    fn pawl_error_place(error: Handle) -> *const c_char;
    fn pawl_error_free(error: Handle);
    fn pawl_vocabulary_tokens_init(tokens: *mut Tokens, size: usize);
    fn pawl_vocabulary_create(tokens: *const Tokens, out: *mut Handle, error: *mut Handle) -> i32;
    fn pawl_vocabulary_free(vocabulary: Handle);
    fn pawl_compiler_create(vocabulary: Handle, options: *const c_void, out: *mut Handle, error: *mut Handle) -> i32;
    fn pawl_compiler_free(compiler: Handle);
    fn pawl_compile(
        compiler: Handle, kind: *const c_char, text: *const u8, length: usize, options: *const c_void,
        out: *mut Handle, error: *mut Handle,
    ) -> i32;
    fn pawl_grammar_free(grammar: Handle);
    fn pawl_matcher_create(grammar: Handle, options: *const c_void, out: *mut Handle, error: *mut Handle) -> i32;
    fn pawl_matcher_fill_mask(matcher: Handle, row: *mut u32, words: usize) -> i32;
    fn pawl_matcher_accept(matcher: Handle, token: i32) -> i32;
    fn pawl_matcher_free(matcher: Handle);
    fn pawl_engine_load(path: *const u8, length: usize, options: *const c_void, out: *mut Handle, error: *mut Handle) -> i32;
    fn pawl_engine_vocabulary(engine: Handle, out: *mut Handle) -> i32;
    fn pawl_engine_extract_options(engine: Handle, text: *const u8, length: usize, options: *mut c_void) -> i32;
    fn pawl_engine_free(engine: Handle);
    fn pawl_json_schema_options_init(options: *mut c_void, size: usize);
    fn pawl_prompt_init(prompt: *mut Prompt, size: usize);
    fn pawl_generate_options_init(options: *mut GenerateOptions, size: usize);
    fn pawl_engine_generate(
        engine: Handle, prompt: *const Prompt, grammar: Handle, options: *const GenerateOptions, out: *mut Handle,
        error: *mut Handle,
    ) -> i32;
    fn pawl_output_init(output: *mut Output, size: usize);
    fn pawl_generation_get(generation: Handle, output: *mut Output) -> i32;
    fn pawl_generation_free(generation: Handle);
}

fn text_of(text: *const c_char) -> String {
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// What a function made, or its error as one line.
fn made(call: impl FnOnce(*mut Handle, *mut Handle) -> i32) -> Result<Handle, String> {
    let (mut out, mut error): (Handle, Handle) = (null_mut(), null_mut());
    if call(&mut out, &mut error) == 0 {
        return Ok(out);
    }
    unsafe {
        let line = format!(
            "{} at {}: {}",
            text_of(pawl_status_name(pawl_error_status(error))),
            text_of(pawl_error_place(error)),
            text_of(pawl_error_message(error))
        );
        pawl_error_free(error);
        Err(line)
    }
}

/// The options of schemas. A struct may also be longer than the library's: its end is zeros then.
type SchemaOptions = [usize; 128];

fn compile(compiler: Handle, kind: &CStr, text: &str, options: Option<&SchemaOptions>) -> Result<Handle, String> {
    let options = options.map_or(null(), |o| o.as_ptr() as *const c_void);
    made(|out, error| unsafe {
        pawl_compile(compiler, kind.as_ptr(), text.as_ptr(), text.len(), options, out, error)
    })
}

fn masks() -> Result<(), String> {
    let words = ["r", "re", "d", "g", "reen", "green", "blue", "<end>"];
    let pointers: Vec<_> = words.iter().map(|w| w.as_ptr() as *const c_char).collect();
    let lengths: Vec<_> = words.iter().map(|w| w.len()).collect();
    let end = [7i32];
    unsafe {
        let mut tokens: Tokens = std::mem::zeroed();
        pawl_vocabulary_tokens_init(&mut tokens, std::mem::size_of::<Tokens>());
        tokens.tokens = pointers.as_ptr();
        tokens.lengths = lengths.as_ptr();
        tokens.count = words.len();
        tokens.end_tokens = end.as_ptr();
        tokens.end_token_count = 1;
        let vocabulary = made(|out, error| pawl_vocabulary_create(&tokens, out, error))?;
        let compiler = made(|out, error| pawl_compiler_create(vocabulary, null(), out, error))?;
        let grammar = compile(compiler, c"choice", r#"["red", "green"]"#, None)?;
        let matcher = made(|out, error| pawl_matcher_create(grammar, null(), out, error))?;
        for token in [1usize, 2, 7] {
            let mut row = [0u32; 1];
            pawl_matcher_fill_mask(matcher, row.as_mut_ptr(), row.len());
            println!("allowed: {:02x}, taken: {}", row[0], words[token]);
            pawl_matcher_accept(matcher, token as i32);
        }
        pawl_matcher_free(matcher);
        pawl_grammar_free(grammar);
        pawl_compiler_free(compiler);
        pawl_vocabulary_free(vocabulary);
    }
    Ok(())
}

/// Takes two parts of the output, then stops it.
extern "C" fn two_parts(context: *mut c_void, text: *const u8, length: usize) -> c_int {
    let parts = unsafe { &mut *(context as *mut Vec<Vec<u8>>) };
    parts.push(unsafe { std::slice::from_raw_parts(text, length) }.to_vec());
    (parts.len() < 2) as c_int
}

fn outputs(model: &str, schema: &str, text: &str) -> Result<(), String> {
    unsafe {
        let engine = made(|out, error| pawl_engine_load(model.as_ptr(), model.len(), null(), out, error))?;
        let mut vocabulary: Handle = null_mut();
        pawl_engine_vocabulary(engine, &mut vocabulary);
        let compiler = made(|out, error| pawl_compiler_create(vocabulary, null(), out, error))?;
        let mut schema_options: SchemaOptions = [0; 128];
        let place = schema_options.as_mut_ptr() as *mut c_void;
        pawl_json_schema_options_init(place, std::mem::size_of::<SchemaOptions>());
        pawl_engine_extract_options(engine, text.as_ptr(), text.len(), place);
        let grammar = compile(compiler, c"json_schema", schema, Some(&schema_options))?;
        let mut prompt: Prompt = std::mem::zeroed();
        pawl_prompt_init(&mut prompt, std::mem::size_of::<Prompt>());
        (prompt.text, prompt.text_length) = (text.as_ptr(), text.len());
        (prompt.schema, prompt.schema_length) = (schema.as_ptr(), schema.len());
        let mut parts: Vec<Vec<u8>> = Vec::new();
        for stopped in [false, true] {
            let mut options: GenerateOptions = std::mem::zeroed();
            pawl_generate_options_init(&mut options, std::mem::size_of::<GenerateOptions>());
            options.temperature = 0.0;
            if stopped {
                options.on_text = Some(two_parts);
                options.on_text_context = &mut parts as *mut _ as *mut c_void;
            }
            let generation = made(|out, error| {
                pawl_engine_generate(engine, &prompt, grammar, &options, out, error)
            })?;
            let mut output: Output = std::mem::zeroed();
            pawl_output_init(&mut output, std::mem::size_of::<Output>());
            pawl_generation_get(generation, &mut output);
            if stopped {
                println!("parts: {}, cancelled: {}", parts.len(), output.stop == STOP_CANCELLED);
            } else {
                let record = std::slice::from_raw_parts(output.text, output.text_length);
                std::io::stdout().write_all(record).and(writeln!(std::io::stdout())).map_err(|e| e.to_string())?;
            }
            pawl_generation_free(generation);
        }
        println!("error: {}", compile(compiler, c"json_schema", r#"{"type": "strin"}"#, None).unwrap_err());
        pawl_grammar_free(grammar);
        pawl_compiler_free(compiler);
        pawl_vocabulary_free(vocabulary);
        pawl_engine_free(engine);
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let result = std::fs::read_to_string(&arguments[2])
        .map_err(|e| e.to_string())
        .and_then(|schema| masks().and_then(|_| outputs(&arguments[1], &schema, &arguments[3])));
    if let Err(line) = result {
        eprintln!("{line}");
        std::process::exit(1);
    }
}
