// In a server without monitors no request is one for code, so plans and outputs are never made.
#include "src/server/code_completion.h"

namespace pawl::server {

struct PlannedCode {
  std::string prefix;
};
struct CodeOutput::Parts {
  std::string text;
};
struct CodePlans::Parts {};

std::shared_ptr<const Check> CodeOutput::ParseCheck() const { return nullptr; }
std::optional<CodeSpec> ReadCode(const JsonReader& /*in*/) { return std::nullopt; }
std::unique_ptr<CodePlans> CodePlans::Make(std::shared_ptr<const Vocabulary> /*vocabulary*/,
                                           const CodeOptions& /*options*/) {
  return nullptr;
}
CodePlans::CodePlans(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
CodePlans::~CodePlans() = default;
Result<CodePlan> CodePlans::Plan(const CodeSpec&, std::string, std::string) {
  return Error{ErrorCode::kUnsupported, "this server was built without monitors", "#"};
}
const std::string& CodePlan::prefix() const { return planned_->prefix; }

CodeOutput::CodeOutput(std::shared_ptr<const PlannedCode> /*planned*/)
    : parts_(std::make_unique<Parts>()) {}
CodeOutput::~CodeOutput() = default;
std::shared_ptr<const Constraint> CodeOutput::ConstraintWith(
    std::shared_ptr<const Constraint> grammar) {
  return grammar;
}
int CodeOutput::more_tokens() const { return 0; }
bool CodeOutput::Add(std::string_view /*bytes*/) { return false; }
std::string_view CodeOutput::added() const { return {}; }
bool CodeOutput::ended() const { return true; }
void CodeOutput::Finish() {}
const std::string& CodeOutput::text() const { return parts_->text; }
bool CodeOutput::Parses() const { return true; }
uint64_t CodeOutput::given_up() const { return 0; }

}  // namespace pawl::server
