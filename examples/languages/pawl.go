// Pawl from Go, through the C library: a mask, a record, a stream that is stopped, an error.
//
//	CGO_CFLAGS=-I/path/to/include CGO_LDFLAGS="-L/path/to/libpawl -lpawl -Wl,-rpath,/path/to/libpawl" go build pawl.go
//	./pawl models/tiny-extract schemas/examples/invoice.json "$(cat examples/invoice.txt)"
package main

/*
#include <pawl/pawl.h>
#include <stdlib.h>

extern int onText(void*, char*, size_t);

static int on_text(void* context, const char* text, size_t length) {
  return onText(context, (char*)text, length);
}
static void stream(pawl_generate_options* options) { options->on_text = on_text; }
*/
import "C"

import (
	"fmt"
	"os"
	"unsafe"
)

// What C keeps must not move: strings are copies in C's memory, which live as long as the program.
func text(s string) (*C.char, C.size_t) { return C.CString(s), C.size_t(len(s)) }

func check(status C.pawl_status, err *C.pawl_error) error {
	if status == C.PAWL_OK {
		return nil
	}
	defer C.pawl_error_free(err)
	return fmt.Errorf("%s at %s: %s", C.GoString(C.pawl_status_name(status)),
		C.GoString(C.pawl_error_place(err)), C.GoString(C.pawl_error_message(err)))
}

func compile(compiler *C.pawl_compiler, kind, source string, options *C.pawl_json_schema_options) (*C.pawl_grammar, error) {
	var grammar *C.pawl_grammar
	var failure *C.pawl_error
	name, _ := text(kind)
	bytes, length := text(source)
	status := C.pawl_compile(compiler, name, bytes, length, options, &grammar, &failure)
	return grammar, check(status, failure)
}

func masks() error {
	words := []string{"r", "re", "d", "g", "reen", "green", "blue", "<end>"}
	pointers := unsafe.Slice((**C.char)(C.malloc(C.size_t(len(words))*C.size_t(unsafe.Sizeof(uintptr(0))))), len(words))
	lengths := unsafe.Slice((*C.size_t)(C.malloc(C.size_t(len(words))*C.size_t(unsafe.Sizeof(C.size_t(0))))), len(words))
	for i, word := range words {
		pointers[i], lengths[i] = text(word)
	}
	end := (*C.int32_t)(C.malloc(4))
	*end = 7
	var tokens C.pawl_vocabulary_tokens
	C.pawl_vocabulary_tokens_init(&tokens, C.size_t(unsafe.Sizeof(tokens)))
	tokens.tokens, tokens.lengths, tokens.count = &pointers[0], &lengths[0], C.size_t(len(words))
	tokens.end_tokens, tokens.end_token_count = end, 1
	var vocabulary *C.pawl_vocabulary
	var compiler *C.pawl_compiler
	var matcher *C.pawl_matcher
	var failure *C.pawl_error
	if err := check(C.pawl_vocabulary_create(&tokens, &vocabulary, &failure), failure); err != nil {
		return err
	}
	defer C.pawl_vocabulary_free(vocabulary)
	if err := check(C.pawl_compiler_create(vocabulary, nil, &compiler, &failure), failure); err != nil {
		return err
	}
	defer C.pawl_compiler_free(compiler)
	grammar, err := compile(compiler, "choice", `["red", "green"]`, nil)
	if err != nil {
		return err
	}
	defer C.pawl_grammar_free(grammar)
	if err := check(C.pawl_matcher_create(grammar, nil, &matcher, &failure), failure); err != nil {
		return err
	}
	defer C.pawl_matcher_free(matcher)
	for _, token := range []int{1, 2, 7} {
		var row C.uint32_t
		C.pawl_matcher_fill_mask(matcher, &row, 1)
		fmt.Printf("allowed: %02x, taken: %s\n", uint32(row), words[token])
		C.pawl_matcher_accept(matcher, C.int32_t(token))
	}
	return nil
}

var parts int

// Takes two parts of the output, then stops it.
//
//export onText
func onText(context unsafe.Pointer, part *C.char, length C.size_t) C.int {
	parts++
	if parts < 2 {
		return 1
	}
	return 0
}

func outputs(model, schema, source string) error {
	var engine *C.pawl_engine
	var vocabulary *C.pawl_vocabulary
	var compiler *C.pawl_compiler
	var failure *C.pawl_error
	path, pathLength := text(model)
	if err := check(C.pawl_engine_load(path, pathLength, nil, &engine, &failure), failure); err != nil {
		return err
	}
	defer C.pawl_engine_free(engine)
	C.pawl_engine_vocabulary(engine, &vocabulary)
	defer C.pawl_vocabulary_free(vocabulary)
	if err := check(C.pawl_compiler_create(vocabulary, nil, &compiler, &failure), failure); err != nil {
		return err
	}
	defer C.pawl_compiler_free(compiler)
	var prompt C.pawl_prompt
	C.pawl_prompt_init(&prompt, C.size_t(unsafe.Sizeof(prompt)))
	prompt.text, prompt.text_length = text(source)
	prompt.schema, prompt.schema_length = text(schema)
	var schemaOptions C.pawl_json_schema_options
	C.pawl_json_schema_options_init(&schemaOptions, C.size_t(unsafe.Sizeof(schemaOptions)))
	C.pawl_engine_extract_options(engine, prompt.text, prompt.text_length, &schemaOptions)
	grammar, err := compile(compiler, "json_schema", schema, &schemaOptions)
	if err != nil {
		return err
	}
	defer C.pawl_grammar_free(grammar)
	for _, stopped := range []bool{false, true} {
		var options C.pawl_generate_options
		C.pawl_generate_options_init(&options, C.size_t(unsafe.Sizeof(options)))
		options.temperature = 0
		if stopped {
			C.stream(&options)
		}
		var generation *C.pawl_generation
		status := C.pawl_engine_generate(engine, &prompt, grammar, &options, &generation, &failure)
		if err := check(status, failure); err != nil {
			return err
		}
		var output C.pawl_output
		C.pawl_output_init(&output, C.size_t(unsafe.Sizeof(output)))
		C.pawl_generation_get(generation, &output)
		if stopped {
			fmt.Printf("parts: %d, cancelled: %t\n", parts, output.stop == C.PAWL_STOP_CANCELLED)
		} else {
			fmt.Println(C.GoStringN(output.text, C.int(output.text_length)))
		}
		C.pawl_generation_free(generation)
	}
	if _, err := compile(compiler, "json_schema", `{"type": "strin"}`, nil); err != nil {
		fmt.Println("error:", err)
	}
	return nil
}

func main() {
	schema, err := os.ReadFile(os.Args[2])
	if err == nil {
		err = masks()
	}
	if err == nil {
		err = outputs(os.Args[1], string(schema), os.Args[3])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
