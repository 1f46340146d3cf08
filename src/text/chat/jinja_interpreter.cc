// A stack machine with four stacks: values, loops, buffers that are written to, and macros that are
// running. Variables are found by walking from the innermost scope outwards: a round of a loop, the
// body of a macro and a block that is set have scopes of their own, so what is set there does not
// leak, as in Jinja. Each instruction spends a step.
#include <algorithm>
#include <cstddef>
#include <ctime>
#include <string>
#include <string_view>

#include "src/base/json.h"
#include "src/text/chat/jinja_parser.h"
#include "src/text/chat/jinja_program.h"

namespace pawl::jinja {

// Appends `time` to `out`; answers what is wrong with the format, or nothing.
std::string FormatTime(std::string_view format, const std::tm& time, std::string& out);

// Only the conversions that say something about a date or a time of day; the C library's function
// would follow the locale of the process.

namespace {

constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};
constexpr const char* kDays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                 "Thursday", "Friday", "Saturday"};

std::string Padded(int value, int width, char pad) {
  std::string digits = std::to_string(value);
  const auto wide = static_cast<size_t>(width);
  if (pad != '\0' && digits.size() < wide) digits.insert(0, wide - digits.size(), pad);
  return digits;
}

}  // namespace

std::string FormatTime(std::string_view format, const std::tm& time, std::string& out) {
  for (size_t i = 0; i < format.size(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const bool bare = i + 1 < format.size() && format[i + 1] == '-';  // %-d: without padding
    i += bare ? 2 : 1;
    const char c = i < format.size() ? format[i] : '\0';
    const char zero = bare ? '\0' : '0';
    const int hour = time.tm_hour % 12 == 0 ? 12 : time.tm_hour % 12;
    const auto month = static_cast<size_t>(time.tm_mon % 12 + 12) % 12;
    const auto day = static_cast<size_t>(time.tm_wday % 7 + 7) % 7;
    switch (c) {
      case 'Y':
        out += Padded(time.tm_year + 1900, 4, '\0');
        break;
      case 'y':
        out += Padded(time.tm_year % 100, 2, zero);
        break;
      case 'm':
        out += Padded(time.tm_mon + 1, 2, zero);
        break;
      case 'd':
        out += Padded(time.tm_mday, 2, zero);
        break;
      case 'e':
        out += Padded(time.tm_mday, 2, bare ? '\0' : ' ');
        break;
      case 'H':
        out += Padded(time.tm_hour, 2, zero);
        break;
      case 'I':
        out += Padded(hour, 2, zero);
        break;
      case 'M':
        out += Padded(time.tm_min, 2, zero);
        break;
      case 'S':
        out += Padded(time.tm_sec, 2, zero);
        break;
      case 'j':
        out += Padded(time.tm_yday + 1, 3, zero);
        break;
      case 'p':
        out += time.tm_hour < 12 ? "AM" : "PM";
        break;
      case 'B':
        out += kMonths[month];
        break;
      case 'b':
      case 'h':
        out += std::string_view(kMonths[month]).substr(0, 3);
        break;
      case 'A':
        out += kDays[day];
        break;
      case 'a':
        out += std::string_view(kDays[day]).substr(0, 3);
        break;
      case 'F':
        out += Padded(time.tm_year + 1900, 4, '\0') + "-" + Padded(time.tm_mon + 1, 2, '0') + "-" +
               Padded(time.tm_mday, 2, '0');
        break;
      case 'T':
        out += Padded(time.tm_hour, 2, '0') + ":" + Padded(time.tm_min, 2, '0') + ":" +
               Padded(time.tm_sec, 2, '0');
        break;
      case '%':
        out += '%';
        break;
      default:
        return "the conversion at byte " + std::to_string(i) +
               " is not supported; expected one of Y y m d e H I M S j p B b h A a F T %";
    }
  }
  return "";
}

namespace {

enum Function : int64_t { kRaiseException, kStrftimeNow, kNamespace, kDict, kRange };
constexpr const char* kFunctions[] = {"raise_exception", "strftime_now", "namespace", "dict",
                                      "range"};
// More than a template needs, less than would use up memory.
constexpr size_t kMaxMacroDepth = 256;
constexpr int64_t kMaxRange = 100000;  // as Jinja's sandbox has it

class Interpreter {
 public:
  Interpreter(const Program& program, Heap& heap, const RunOptions& options)
      : program_(program), heap_(heap), options_(options) {}

  Result<MarkedText> Run(const std::vector<std::pair<std::string, Value>>& variables) {
    scope_ = heap_.NewScope(nullptr);
    for (size_t i = 0; i < std::size(kFunctions); ++i) {
      Set(kFunctions[i], Value::Function(static_cast<int64_t>(i)));
    }
    scope_ = heap_.NewScope(scope_);
    for (const auto& [name, value] : variables) Set(name, value);
    while (!heap_.failed() && program_.code[pc_].op != Op::kEnd) {
      at_ = pc_;
      heap_.Spend(1);
      Step(program_.code[pc_++]);
    }
    if (heap_.failed()) {
      Error error = heap_.error();
      error.place = PlaceOf(program_.source, program_.code[at_].offset);
      return error;
    }
    return std::move(buffers_.front());
  }

 private:
  struct Frame {
    size_t back;  // the instruction after the call
    Scope* scope;
    size_t loops;
    std::vector<bool> given;  // parameters
  };

  // ---- stacks ----
  void Push(Value value) { stack_.push_back(value); }
  Value Pop() {
    const Value value = stack_.back();
    stack_.pop_back();
    return value;
  }
  std::string_view NameAt(int32_t index) const {
    return program_.names[static_cast<size_t>(index)];
  }
  void Jump(int32_t distance) { pc_ = at_ + static_cast<size_t>(static_cast<ptrdiff_t>(distance)); }

  // ---- variables ----
  void Set(std::string_view name, const Value& value) {
    for (auto& [known, old] : scope_->variables) {
      if (known == name) {
        old = value;
        return;
      }
    }
    scope_->variables.emplace_back(name, value);
  }
  const Value* FindName(std::string_view name) {
    for (Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
      heap_.Spend(static_cast<int64_t>(scope->variables.size() / 16));
      for (const auto& [known, value] : scope->variables) {
        if (known == name) return &value;
      }
    }
    return nullptr;
  }
  void PopScope() { scope_ = scope_->parent; }

  // ---- output ----
  void Write(const MarkedText& text) {
    MarkedText& out = buffers_.back();
    if (out.size() + text.size() > options_.max_output) {
      return heap_.Fail(ErrorCode::kLimit, "the template writes more than " +
                                               std::to_string(options_.max_output) + " bytes");
    }
    if (heap_.SpendBytes(text.size())) out.Append(text);
  }

  // ---- calls ----
  // The arguments on top of the stack; valid until it changes.
  Arguments ArgumentsOf(const CallShape& shape) const {
    const Value* first = stack_.data() + (stack_.size() - shape.size());
    return {first, static_cast<size_t>(shape.positional), &shape.names, first + shape.positional};
  }
  void Drop(size_t count) { stack_.resize(stack_.size() - count); }

  void CallMacro(const MacroValue& macro, const CallShape& shape, const Value* caller) {
    const MacroCode& code = program_.macros[static_cast<size_t>(macro.index)];
    const Arguments arguments = ArgumentsOf(shape);
    if (frames_.size() >= kMaxMacroDepth) {
      return heap_.Fail(ErrorCode::kLimit, "macros call each other more than " +
                                               std::to_string(kMaxMacroDepth) + " deep");
    }
    if (arguments.count > code.parameters.size()) {
      return heap_.Fail("the macro " + json::Quote(code.name) + " takes " +
                        std::to_string(code.parameters.size()) + " arguments, found " +
                        std::to_string(arguments.count));
    }
    Frame frame{pc_, scope_, loops_.size(), std::vector<bool>(code.parameters.size())};
    Scope* scope = heap_.NewScope(macro.scope);
    for (size_t i = 0; i < code.parameters.size(); ++i) {
      const std::string& name = code.parameters[i];
      const auto named = std::find(shape.names.begin(), shape.names.end(), name);
      Value value = heap_.UndefinedOf(name);
      if (i < arguments.count) {
        value = arguments.positional[i];
        frame.given[i] = true;
        if (named != shape.names.end()) {
          return heap_.Fail("the argument " + json::Quote(name) + " is there twice");
        }
      } else if (named != shape.names.end()) {
        value = arguments.named[named - shape.names.begin()];
        frame.given[i] = true;
      }
      scope->variables.emplace_back(name, value);
    }
    for (const std::string& name : shape.names) {
      if (std::find(code.parameters.begin(), code.parameters.end(), name) ==
          code.parameters.end()) {
        return heap_.Fail("the macro " + json::Quote(code.name) + " has no parameter " +
                          json::Quote(name));
      }
    }
    scope->variables.emplace_back("caller",
                                  caller != nullptr ? *caller : heap_.UndefinedOf("caller"));
    Drop(shape.size() + 1 + (caller != nullptr ? 1 : 0));
    frames_.push_back(std::move(frame));
    scope_ = scope;
    buffers_.emplace_back();
    pc_ = static_cast<size_t>(code.entry);
  }

  void Call(const Instruction& instruction) {
    const CallShape& shape = program_.calls[static_cast<size_t>(instruction.a)];
    const Value callee = stack_[stack_.size() - shape.size() - 1];
    if (callee.is(Value::Kind::kMacro)) {
      Value caller;
      if (instruction.b != 0) caller = stack_[stack_.size() - shape.size() - 2];
      return CallMacro(*callee.macro, shape, instruction.b != 0 ? &caller : nullptr);
    }
    if (!callee.is(Value::Kind::kFunction) || instruction.b != 0) {
      return heap_.Fail("cannot call " + KindName(callee) + "; expected a macro" +
                        (instruction.b != 0
                             ? ""
                             : " or one of raise_exception, strftime_now, namespace, dict, range"));
    }
    const Value result = CallFunction(callee.integer, ArgumentsOf(shape));
    Drop(shape.size() + 1);
    Push(result);
  }

  Value CallFunction(int64_t function, const Arguments& arguments) {
    const size_t total = arguments.count + arguments.names->size();
    switch (function) {
      case kRaiseException: {
        const Value* message = arguments.Find(0, "message");
        if (message == nullptr || total != 1) break;
        heap_.Fail("the template refuses: " + ToText(heap_, *message).bytes());
        return {};
      }
      case kStrftimeNow: {
        const Value* format = arguments.Find(0, "format");
        if (format == nullptr || total != 1 || !format->is_string()) break;
        if (!options_.now) {
          heap_.Fail("strftime_now: the template asks for the time, and none is given");
          return {};
        }
        std::string out;
        if (const std::string bad = FormatTime(format->string->bytes(), *options_.now, out);
            !bad.empty()) {
          heap_.Fail("strftime_now: " + bad);
          return {};
        }
        return heap_.String(std::move(out));
      }
      case kNamespace:
      case kDict: {
        std::vector<std::pair<Value, Value>> entries;
        if (arguments.count > 1) break;
        if (arguments.count == 1) {
          if (!arguments.positional[0].is_dict()) break;
          entries = arguments.positional[0].dict->entries;
        }
        for (size_t i = 0; i < arguments.names->size(); ++i) {
          const std::string& name = (*arguments.names)[i];
          const auto same = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
            return entry.first.is_string() && entry.first.string->bytes() == name;
          });
          if (same != entries.end()) {
            same->second = arguments.named[i];
          } else {
            entries.emplace_back(heap_.String(name), arguments.named[i]);
          }
        }
        return heap_.NewDict(std::move(entries), function == kNamespace);
      }
      case kRange: {
        if (arguments.count < 1 || total > 3 || !arguments.names->empty()) break;
        int64_t bounds[3] = {0, 0, 1};
        for (size_t i = 0; i < arguments.count; ++i) {
          if (!arguments.positional[i].is_integer()) {
            heap_.Fail("range needs integers; found " + KindName(arguments.positional[i]));
            return {};
          }
          bounds[arguments.count == 1 ? 1 : i] = arguments.positional[i].as_integer();
        }
        const auto [from, to, step] = bounds;
        if (step == 0) {
          heap_.Fail("the step of a range cannot be 0");
          return {};
        }
        std::vector<Value> items;
        for (int64_t at = from; step > 0 ? at < to : at > to;) {
          items.push_back(Value::Integer(at));
          if (static_cast<int64_t>(items.size()) > kMaxRange) {
            heap_.Fail(ErrorCode::kLimit,
                       "a range of more than " + std::to_string(kMaxRange) + " numbers");
            return {};
          }
          if (__builtin_add_overflow(at, step, &at)) break;
        }
        return heap_.NewList(std::move(items), List::Type::kRange);
      }
      default:
        break;
    }
    heap_.Fail(std::string(kFunctions[function]) + ": expected other arguments");
    return {};
  }

  void Return() {
    Frame frame = std::move(frames_.back());
    frames_.pop_back();
    pc_ = frame.back;
    scope_ = frame.scope;
    loops_.resize(frame.loops);
    MarkedText text = std::move(buffers_.back());
    buffers_.pop_back();
    Push(heap_.String(std::move(text)));
  }

  // ---- loops ----
  void ForBegin() {
    const Value from = Pop();
    Loop* loop = heap_.NewLoop();
    loop->items = Iterate(heap_, from);
    loops_.push_back(loop);
  }
  void EndLoop() {
    loop_finished_ = loops_.back()->finished;
    loops_.pop_back();
  }
  void NextRound(Loop& loop, bool body) {
    scope_ = heap_.NewScope(scope_);
    Push(loop.items[loop.next++]);
    if (!body) return;
    Value variable = Value::Of(Value::Kind::kLoop);
    variable.loop = &loop;
    scope_->variables.emplace_back("loop", variable);
  }

  void StepLoop(const Instruction& i) {
    switch (i.op) {
      case Op::kForBegin:
        return ForBegin();
      case Op::kFilterNext: {
        Loop& loop = *loops_.back();
        if (loop.next < loop.items.size()) return NextRound(loop, false);
        loop.items.resize(loop.kept);
        loop.next = 0;
        return Jump(i.a);
      }
      case Op::kFilterKeep: {
        Loop& loop = *loops_.back();
        if (Truth(Pop())) loop.items[loop.kept++] = loop.items[loop.next - 1];
        return PopScope();
      }
      case Op::kForNext: {
        Loop& loop = *loops_.back();
        if (loop.next < loop.items.size()) return NextRound(loop, true);
        EndLoop();
        return Jump(i.a);
      }
      case Op::kForContinue:
        PopScope();
        if (i.b != 0) loops_.back()->finished = true;
        return Jump(i.a);
      case Op::kForBreak:
        PopScope();
        EndLoop();
        return Jump(i.a);
      case Op::kForElse:
        if (loop_finished_) Jump(i.a);
        return;
      default:
        return;
    }
  }

  void Unpack(size_t count) {
    std::vector<Value> items = Iterate(heap_, Pop());
    if (heap_.failed()) return;
    if (items.size() != count) {
      return heap_.Fail("expected " + std::to_string(count) + " values to unpack, found " +
                        std::to_string(items.size()));
    }
    std::reverse(items.begin(), items.end());
    for (const Value& item : items) Push(item);
  }

  void StoreAttribute(std::string_view name, std::string_view attribute) {
    const Value* target = FindName(name);
    if (target == nullptr || !target->is_dict() || !target->dict->is_namespace) {
      return heap_.Fail("only attributes of a namespace can be set, and " + json::Quote(name) +
                        " is none; expected one made by namespace()");
    }
    const Value value = Pop();
    for (auto& [key, old] : target->dict->entries) {
      if (key.is_string() && key.string->bytes() == attribute) {
        old = value;
        return;
      }
    }
    target->dict->entries.emplace_back(heap_.String(std::string(attribute)), value);
  }

  Value Name(std::string_view name) {
    if (const Value* value = FindName(name)) return *value;
    return heap_.UndefinedOf(name);
  }

  Value MakeDict(size_t count) {
    std::vector<std::pair<Value, Value>> entries;
    const size_t first = stack_.size() - 2 * count;
    for (size_t i = first; i < stack_.size() && !heap_.failed(); i += 2) {
      const Value& key = stack_[i];
      if (!key.is_string() && !key.is_number() && !key.is(Value::Kind::kNone)) {
        heap_.Fail("the key of a mapping cannot be " + KindName(key));
        break;
      }
      const auto same = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
        return Equal(heap_, entry.first, key);
      });
      if (same != entries.end()) {
        same->second = stack_[i + 1];
      } else {
        entries.emplace_back(key, stack_[i + 1]);
      }
    }
    Drop(2 * count);
    return heap_.NewDict(std::move(entries));
  }

  static Value ConstantOf(Constant constant) {
    switch (constant) {
      case Constant::kUndefined:
        return {};
      case Constant::kNone:
        return Value::None();
      case Constant::kFalse:
      case Constant::kTrue:
        return Value::Bool(constant == Constant::kTrue);
    }
    return {};
  }

  void Sign(Op op) {
    const Value value = Pop();
    if (!value.is_number()) {
      return heap_.Fail("a sign needs a number; found " + KindName(value));
    }
    return Push(op == Op::kPlus ? Arithmetic(heap_, Op::kAdd, Value::Integer(0), value)
                : value.is(Value::Kind::kFloat)
                    ? Value::Float(-value.real)
                    : Arithmetic(heap_, Op::kSubtract, Value::Integer(0), value));
  }

  void Operate(const Instruction& i) {
    switch (i.op) {
      case Op::kNot:
        return Push(Value::Bool(!Truth(Pop())));
      case Op::kNegate:
      case Op::kPlus:
        return Sign(i.op);
      case Op::kAdd:
      case Op::kSubtract:
      case Op::kMultiply:
      case Op::kDivide:
      case Op::kFloorDivide:
      case Op::kModulo:
      case Op::kPower:
      case Op::kConcat: {
        const Value right = Pop();
        return Push(Arithmetic(heap_, i.op, Pop(), right));
      }
      case Op::kEqual:
      case Op::kNotEqual:
      case Op::kLess:
      case Op::kLessEqual:
      case Op::kGreater:
      case Op::kGreaterEqual:
      case Op::kIn:
      case Op::kNotIn: {
        const Value right = Pop();
        return Push(Value::Bool(Compare(heap_, i.op, Pop(), right)));
      }
      case Op::kChain: {
        const Value right = Pop();
        if (Compare(heap_, static_cast<Op>(i.b), Pop(), right)) return Push(right);
        Push(Value::Bool(false));
        return Jump(i.a);
      }
      default:
        return;
    }
  }

  // A filter, a test or a method, with its subject below the arguments.
  void Apply(const Instruction& i) {
    const CallShape& shape = program_.calls[static_cast<size_t>(i.a)];
    const Value subject = stack_[stack_.size() - shape.size() - 1];
    const Arguments arguments = ArgumentsOf(shape);
    Value result;
    if (i.op == Op::kFilter) {
      result = ApplyFilter(heap_, i.b, subject, arguments);
    } else if (i.op == Op::kTest) {
      result = Value::Bool(ApplyTest(heap_, i.b, subject, arguments));
    } else {
      result = CallMethod(heap_, subject, NameAt(i.b), arguments);
    }
    Drop(shape.size() + 1);
    return Push(result);
  }

  void StepValue(const Instruction& i) {
    const auto a = static_cast<size_t>(i.a);
    switch (i.op) {
      case Op::kText:
        return Write(program_.strings[a]);
      case Op::kOutput:
        return Write(ToText(heap_, Pop()));
      case Op::kString:
        return Push(Value::String(&program_.strings[a]));
      case Op::kInteger:
        return Push(Value::Integer(program_.integers[a]));
      case Op::kFloat:
        return Push(Value::Float(program_.floats[a]));
      case Op::kConstant:
        return Push(ConstantOf(static_cast<Constant>(i.a)));
      case Op::kName:
        return Push(Name(NameAt(i.a)));
      case Op::kList:
      case Op::kTuple: {
        std::vector<Value> items(stack_.end() - static_cast<ptrdiff_t>(a), stack_.end());
        Drop(a);
        return Push(heap_.NewList(std::move(items),
                                  i.op == Op::kList ? List::Type::kList : List::Type::kTuple));
      }
      case Op::kDict:
        return Push(MakeDict(a));
      case Op::kAttribute:
        return Push(Attribute(heap_, Pop(), NameAt(i.a)));
      case Op::kItem: {
        const Value key = Pop();
        return Push(Item(heap_, Pop(), key));
      }
      case Op::kSlice: {
        const Value step = Pop(), end = Pop(), begin = Pop();
        return Push(SliceOf(heap_, Pop(), begin, end, step));
      }
      default:
        return;
    }
  }

  // The operations are ordered by what they are about (jinja_program.h).
  void Step(const Instruction& i) {
    if (i.op <= Op::kSlice) return StepValue(i);
    if (i.op <= Op::kChain) return Operate(i);
    if (i.op >= Op::kForBegin && i.op <= Op::kForElse) return StepLoop(i);
    const auto a = static_cast<size_t>(i.a);
    switch (i.op) {
      case Op::kJump:
        return Jump(i.a);
      case Op::kJumpIfFalse:
        if (!Truth(Pop())) Jump(i.a);
        return;
      case Op::kJumpIfFalseKeep:
      case Op::kJumpIfTrueKeep:
        if (Truth(stack_.back()) == (i.op == Op::kJumpIfTrueKeep)) return Jump(i.a);
        return Drop(1);
      case Op::kFilter:
      case Op::kTest:
      case Op::kMethod:
        return Apply(i);
      case Op::kCall:
        return Call(i);
      case Op::kStore:
        return Set(NameAt(i.a), Pop());
      case Op::kStoreAttribute:
        return StoreAttribute(NameAt(i.a), NameAt(i.b));
      case Op::kUnpack:
        return Unpack(a);
      case Op::kPushScope:
        scope_ = heap_.NewScope(scope_);
        return;
      case Op::kPopScope:
        return PopScope();
      case Op::kPushBuffer:
        buffers_.emplace_back();
        return;
      case Op::kPopBuffer: {
        MarkedText text = std::move(buffers_.back());
        buffers_.pop_back();
        return Push(heap_.String(std::move(text)));
      }
      case Op::kMacro:
        return Push(heap_.NewMacro(i.a, scope_));
      case Op::kArgument:
        if (frames_.back().given[a]) Jump(i.b);
        return;
      case Op::kReturn:
        return Return();
      default:
        return;
    }
  }

  const Program& program_;
  Heap& heap_;
  const RunOptions& options_;
  size_t pc_ = 0, at_ = 0;  // the next instruction, and the one that runs
  Scope* scope_ = nullptr;
  std::vector<Value> stack_;
  std::vector<Loop*> loops_;
  std::vector<MarkedText> buffers_ = std::vector<MarkedText>(1);
  std::vector<Frame> frames_;
  bool loop_finished_ = false;  // of the loop that ended last
};

}  // namespace

Result<MarkedText> Run(const Program& program, Heap& heap,
                       const std::vector<std::pair<std::string, Value>>& variables,
                       const RunOptions& options) {
  return Interpreter(program, heap, options).Run(variables);
}

}  // namespace pawl::jinja
