// The functions of models in a build that has none (PAWL_BUILD_ENGINE=OFF): the library shows all
// functions of its header, so that a program that does not call these runs with either build.
#include "src/capi/handles.h"

namespace {

pawl_status None(pawl_error** error) {
  return pawl::capi::Guard(error, [&]() -> pawl_status {
    return pawl::capi::Fail(error, PAWL_UNSUPPORTED, "this build of Pawl has no models");
  });
}

}  // namespace

extern "C" {

void pawl_engine_options_init(pawl_engine_options* options, size_t struct_size) {
  pawl::capi::InitStruct(options, struct_size, {});
}
void pawl_prompt_init(pawl_prompt* prompt, size_t struct_size) {
  pawl::capi::InitStruct(prompt, struct_size, {});
}
void pawl_generate_options_init(pawl_generate_options* options, size_t struct_size) {
  pawl::capi::InitStruct(options, struct_size, {});
}
void pawl_output_init(pawl_output* output, size_t struct_size) {
  pawl::capi::InitStruct(output, struct_size, {});
}
void pawl_sample_init(pawl_sample* sample, size_t struct_size) {
  pawl::capi::InitStruct(sample, struct_size, {});
}
void pawl_sampler_options_init(pawl_sampler_options* options, size_t struct_size) {
  pawl::capi::InitStruct(options, struct_size, {});
}
pawl_status pawl_engine_load(const char*, size_t, const pawl_engine_options*, pawl_engine**,
                             pawl_error** error) {
  return None(error);
}
void pawl_engine_free(pawl_engine*) {}
pawl_status pawl_engine_extract_options(const pawl_engine*, const char*, size_t,
                                        pawl_json_schema_options*) {
  return PAWL_UNSUPPORTED;
}
pawl_status pawl_engine_vocabulary(const pawl_engine*, pawl_vocabulary**) {
  return PAWL_UNSUPPORTED;
}
pawl_status pawl_engine_encode(const pawl_engine*, const char*, size_t, int32_t*, size_t, size_t*) {
  return PAWL_UNSUPPORTED;
}
pawl_status pawl_engine_save_drafts(pawl_engine*, pawl_error** error) { return None(error); }
pawl_status pawl_generation_start(pawl_engine*, const pawl_prompt*, const pawl_grammar*,
                                  const pawl_generate_options*, pawl_generation**,
                                  pawl_error** error) {
  return None(error);
}
pawl_status pawl_generation_wait(pawl_generation*, pawl_error** error) { return None(error); }
void pawl_generation_cancel(pawl_generation*) {}
pawl_status pawl_generation_get(const pawl_generation*, pawl_output*) { return PAWL_UNSUPPORTED; }
void pawl_generation_free(pawl_generation*) {}
pawl_status pawl_engine_generate(pawl_engine*, const pawl_prompt*, const pawl_grammar*,
                                 const pawl_generate_options*, pawl_generation**,
                                 pawl_error** error) {
  return None(error);
}
pawl_status pawl_check_create(pawl_judge, void*, int32_t, pawl_check**, pawl_error** error) {
  return None(error);
}
pawl_status pawl_check_from_grammar(const pawl_grammar*, int32_t, pawl_check**,
                                    pawl_error** error) {
  return None(error);
}
pawl_status pawl_check_from_spec(const pawl_vocabulary*, const char*, size_t, double, int32_t,
                                 pawl_check**, pawl_error** error) {
  return None(error);
}
void pawl_check_free(pawl_check*) {}
pawl_status pawl_critic_create(pawl_score, void*, pawl_critic**, pawl_error** error) {
  return None(error);
}
pawl_status pawl_critic_from_command(const char*, size_t, double, int32_t, pawl_critic**,
                                     pawl_error** error) {
  return None(error);
}
void pawl_critic_free(pawl_critic*) {}
pawl_status pawl_engine_sample(pawl_engine*, const pawl_prompt*, const pawl_grammar*,
                               const pawl_sampler_options*, pawl_samples**, pawl_error** error) {
  return None(error);
}
size_t pawl_samples_count(const pawl_samples*) { return 0; }
double pawl_samples_effective_size(const pawl_samples*, int32_t* timed_out) {
  if (timed_out != nullptr) *timed_out = 0;
  return 0;
}
pawl_status pawl_samples_get(const pawl_samples*, size_t, pawl_sample*) { return PAWL_UNSUPPORTED; }
void pawl_samples_free(pawl_samples*) {}
pawl_status pawl_engine_score(pawl_engine*, const pawl_prompt*, const int32_t*, size_t, double,
                              double*, double*, pawl_error** error) {
  return None(error);
}
const char* pawl_answer_json(const pawl_answer*, size_t* length) {
  if (length != nullptr) *length = 0;
  return "";
}
void pawl_answer_free(pawl_answer*) {}
pawl_status pawl_engine_search(pawl_engine*, const pawl_prompt*, const pawl_grammar*, const char*,
                               size_t, const pawl_check* const*, size_t, const pawl_critic*,
                               pawl_answer**, pawl_error** error) {
  return None(error);
}
pawl_status pawl_engine_classify(pawl_engine*, const pawl_prompt*, const char*, size_t,
                                 pawl_answer**, pawl_error** error) {
  return None(error);
}

}  // extern "C"
