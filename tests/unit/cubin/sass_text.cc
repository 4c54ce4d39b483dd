// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/cubin/sass_text.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace heddle::cubin {
namespace {

std::string Hex(int64_t value) {
  return absl::StrCat("0x", absl::Hex(static_cast<uint32_t>(value)));
}

std::string RegisterName(bool uniform, int index) {
  if (index == (uniform ? kSassUniformRegisterZero : kSassRegisterZero)) {
    return uniform ? "URZ" : "RZ";
  }
  return absl::StrCat(uniform ? "UR" : "R", index);
}

std::string PredicateName(const SassPredicateUse& use) {
  const std::string name =
      use.index == kSassPredicateTrue ? "PT" : absl::StrCat("P", use.index);
  return absl::StrCat(use.negated ? "!" : "", use.uniform ? "U" : "", name);
}

class Writer {
 public:
  Writer(const SassInstruction& decoded, const SassOperation& operation)
      : operation_(operation),
        text_(decoded.mnemonic.data(), decoded.mnemonic.size()),
        mnemonic_(text_) {}

  std::string Write() {
    Operation();
    return absl::StrCat(text_, " ", absl::StrJoin(operands_, ", "));
  }

 private:
  void Modifier(bool when, const char* name) {
    if (when) absl::StrAppend(&text_, ".", name);
  }
  void Add(std::string operand) { operands_.push_back(std::move(operand)); }
  void Destination() {
    Add(RegisterName(operation_.uniform, operation_.destination));
  }
  // A predicate that is not printed where nobody takes it.
  void Carry(size_t at) {
    if (operation_.destination_predicate[at].index != kSassPredicateTrue) {
      Add(PredicateName(operation_.destination_predicate[at]));
    }
  }
  void Predicate(size_t at) {
    Add(PredicateName(operation_.source_predicate[at]));
  }
  void Target(size_t at) {
    Add(PredicateName(operation_.destination_predicate[at]));
  }
  std::string SourceText(size_t at) const {
    const SassSource& source = operation_.source[at];
    std::string text;
    switch (source.kind) {
      case SassSource::Kind::kZero:
        text = mnemonic_[0] == 'U' ? "URZ" : "RZ";
        break;
      case SassSource::Kind::kRegister:
        text = RegisterName(false, source.index);
        break;
      case SassSource::Kind::kUniform:
        text = RegisterName(true, source.index);
        break;
      case SassSource::Kind::kImmediate:
        return Hex(source.value);
      case SassSource::Kind::kConstant:
        text =
            absl::StrCat("c[", Hex(source.bank), "][", Hex(source.value), "]");
        break;
    }
    const bool inverted =
        source.invert || (source.negate && operation_.extended);
    return absl::StrCat(inverted ? "~" : source.negate ? "-" : "", text);
  }
  void Source(size_t at) { Add(SourceText(at)); }
  void Sources(size_t count) {
    for (size_t i = 0; i < count; ++i) Source(i);
  }

  void Operation();
  void Multiplication();
  void Constant();
  void Special();

  const SassOperation& operation_;
  std::string text_;
  const std::string mnemonic_;
  std::vector<std::string> operands_;
};

// IMAD whose product is a constant: only what is added shows in the operation.
void Writer::Multiplication() {
  Modifier(!operation_.is_signed, "U32");
  Modifier(operation_.extended, "X");
  Destination();
  if (operation_.op == SassOp::kMultiplyAdd) {
    Sources(3);
  } else if (operation_.op == SassOp::kMove) {
    Add("product");
    Source(0);
  } else {
    Add(operation_.source[0].kind == SassSource::Kind::kZero ? "product"
                                                             : SourceText(0));
    Source(1);
  }
  if (operation_.extended) Predicate(0);
}

void Writer::Constant() {
  switch (operation_.constant_bytes) {
    case 1:
      Modifier(true, operation_.is_signed ? "S8" : "U8");
      break;
    case 2:
      Modifier(true, operation_.is_signed ? "S16" : "U16");
      break;
    case 8:
      Modifier(true, "64");
      break;
    case 16:
      Modifier(true, "128");
      break;
    default:
      break;
  }
  Destination();
  std::string index;
  if (operation_.source[0].kind != SassSource::Kind::kZero) {
    index = absl::StrCat(SourceText(0), "+");
  }
  Add(absl::StrCat("c[", Hex(operation_.constant_bank), "][", index,
                   Hex(operation_.constant_offset), "]"));
}

void Writer::Special() {
  Destination();
  switch (operation_.special) {
    case SassSpecial::kOther:
      return Add("SR_*");
    case SassSpecial::kLane:
      return Add("SR_LANEID");
    case SassSpecial::kTidX:
      return Add("SR_TID.X");
    case SassSpecial::kTidY:
      return Add("SR_TID.Y");
    case SassSpecial::kTidZ:
      return Add("SR_TID.Z");
    case SassSpecial::kCtaidX:
      return Add("SR_CTAID.X");
    case SassSpecial::kCtaidY:
      return Add("SR_CTAID.Y");
    case SassSpecial::kCtaidZ:
      return Add("SR_CTAID.Z");
    case SassSpecial::kPackedTid:
      return Add("SR_TID");
    case SassSpecial::kZero:
      return Add("SRZ");
  }
}

constexpr const char* kCompareNames[] = {"F",  "LT", "EQ", "LE",
                                         "GT", "NE", "GE", "T"};
constexpr const char* kCombineNames[] = {"AND", "OR", "XOR"};
constexpr const char* kPermuteNames[] = {"",    "F4E", "B4E", "RC8",
                                         "ECL", "ECR", "RC16"};

void Writer::Operation() {
  const SassOperation& o = operation_;
  if ((mnemonic_ == "IMAD" || mnemonic_ == "UIMAD") &&
      (o.op == SassOp::kMove || o.op == SassOp::kAdd ||
       o.op == SassOp::kMultiplyAdd)) {
    return Multiplication();
  }
  switch (o.op) {
    case SassOp::kOpaque:
      return;
    case SassOp::kMove:
      if (mnemonic_ == "R2UR") Carry(0);
      if (mnemonic_ == "CS2R") Modifier(o.destination_words == 1, "32");
      if (o.special == SassSpecial::kZero) return Special();
      Destination();
      if (mnemonic_ == "HFMA2") {
        Add("-RZ");
        Add("RZ");
      }
      return Source(0);
    case SassOp::kAdd:
      Modifier(o.destination_words == 2, "64");
      Modifier(o.extended, "X");
      Destination();
      if (mnemonic_ == "VIADD") return Sources(2);
      Carry(0);
      Carry(1);
      Sources(3);
      if (o.extended) {
        Predicate(0);
        Predicate(1);
      }
      return;
    case SassOp::kMultiplyAdd:
      return;
    case SassOp::kMultiplyWide:
    case SassOp::kMultiplyHigh:
      Modifier(true, o.op == SassOp::kMultiplyWide ? "WIDE" : "HI");
      Modifier(!o.is_signed, "U32");
      Modifier(o.extended, "X");
      Destination();
      Carry(0);
      Sources(3);
      if (o.extended) Predicate(0);
      return;
    case SassOp::kShiftAdd:
    case SassOp::kShiftAddHigh:
      Modifier(o.op == SassOp::kShiftAddHigh, "HI");
      Modifier(o.extended, "X");
      Modifier(o.sign_fill, "SX32");
      Destination();
      Carry(0);
      Sources(o.op == SassOp::kShiftAddHigh && !o.sign_fill ? 3 : 2);
      Add(Hex(o.shift));
      if (o.extended) Predicate(0);
      return;
    case SassOp::kLogic3:
      Modifier(true, "LUT");
      Modifier(o.combine == SassCombine::kAnd, "PAND");
      Carry(0);
      Destination();
      Sources(3);
      Add(Hex(o.lut));
      return Predicate(0);
    case SassOp::kFunnelShift:
      Modifier(true, o.shift_right ? "R" : "L");
      Modifier(o.shift_wrap, "W");
      absl::StrAppend(&text_, o.is_signed ? ".S" : ".U",
                      o.shift_wide ? "64" : "32");
      Modifier(o.shift_high, "HI");
      Destination();
      return Sources(3);
    case SassOp::kCompare:
      Modifier(true, kCompareNames[static_cast<int>(o.compare)]);
      Modifier(!o.is_signed, "U32");
      Modifier(true, kCombineNames[static_cast<int>(o.combine)]);
      Modifier(o.extended, "EX");
      Target(0);
      Target(1);
      Add(SourceText(0));
      Add(SourceText(1));
      Predicate(0);
      if (o.extended) Predicate(1);
      return;
    case SassOp::kLogic3Predicate:
      Modifier(true, "LUT");
      Target(0);
      Target(1);
      for (size_t i = 0; i < 3; ++i) Predicate(i);
      Add(Hex(o.lut));
      return Add(Hex(o.lut2));
    case SassOp::kSelect:
      Destination();
      Sources(2);
      return Predicate(0);
    case SassOp::kMinMax:
    case SassOp::kMinMax3:
    case SassOp::kAddMinMax:
      Modifier(!o.is_signed, "U32");
      Destination();
      Sources(o.op == SassOp::kMinMax ? 2 : 3);
      return Predicate(0);
    case SassOp::kPermute:
      Modifier(o.permute_mode != 0, kPermuteNames[o.permute_mode]);
      Destination();
      return Sources(3);
    case SassOp::kAbsolute:
    case SassOp::kReverseBits:
    case SassOp::kPopulation:
      Destination();
      return Source(0);
    case SassOp::kSignExtend:
      Modifier(o.shift_wrap, "W");
      Modifier(!o.is_signed, "U32");
      Destination();
      return Sources(2);
    case SassOp::kBitMask:
      Modifier(o.shift_wrap, "W");
      Destination();
      return Sources(2);
    case SassOp::kFindLeadingOne:
      Modifier(!o.is_signed, "U32");
      Modifier(o.shift_count, "SH");
      Destination();
      return Source(0);
    case SassOp::kPredicatesToRegister:
      if (o.shift != 0) absl::StrAppend(&text_, ".B", o.shift / 8);
      Destination();
      Add(o.uniform ? "UPR" : "PR");
      return Sources(2);
    case SassOp::kRegisterToPredicates:
      Add(o.uniform ? "UPR" : "PR");
      Source(0);
      if (o.shift != 0) absl::StrAppend(&operands_.back(), ".B", o.shift / 8);
      return Source(1);
    case SassOp::kReadSpecial:
      if (mnemonic_ == "CS2R") Modifier(o.destination_words == 1, "32");
      return Special();
    case SassOp::kReadConstant:
      return Constant();
  }
}

std::string ScratchFile() {
  return absl::StrCat("/tmp/heddle_sass_text.", getpid());
}

// Patterns are literals, each made ready once.
std::string Replace(const std::string& text, const char* pattern,
                    const char* with) {
  static auto* const ready = new std::map<const char*, std::regex>;
  const auto [found, is_new] = ready->try_emplace(pattern);
  if (is_new) found->second = std::regex(pattern, std::regex::optimize);
  return std::regex_replace(text, found->second, with);
}

// The bits of a half-precision number as nvdisasm prints it.
uint32_t HalfBits(const std::string& text) {
  static const std::map<double, uint32_t>* const bits = [] {
    auto* result = new std::map<double, uint32_t>;
    for (uint32_t half = 0; half < 0x7c00; ++half) {
      const uint32_t exponent = half >> 10;
      const double fraction = half & 0x3ff;
      (*result)[exponent == 0 ? std::ldexp(fraction, -24)
                              : std::ldexp(fraction + 1024,
                                           static_cast<int>(exponent) - 25)] =
          half;
    }
    return result;
  }();
  const uint32_t sign = text[0] == '-' ? 0x8000 : 0;
  if (text.find("INF") != std::string::npos) return sign | 0x7c00;
  const auto found = bits->find(std::fabs(std::strtod(text.c_str(), nullptr)));
  return found == bits->end() ? 0xffff : sign | found->second;
}

std::string Output(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  char buffer[4096];
  size_t size = 0;
  while ((size = fread(buffer, 1, sizeof(buffer), pipe)) != 0) {
    text.append(buffer, size);
  }
  pclose(pipe);
  return text;
}

}  // namespace

std::string SassText(const SassInstruction& decoded,
                     const SassOperation& operation) {
  return Writer(decoded, operation).Write();
}

std::string NormalSassText(const std::string& line) {
  std::string text = Replace(line, "^@!?U?P[0-9T]+ +", "");
  text = Replace(text, "\\.reuse", "");
  text = Replace(text, "\\[U?RZ\\]", "[0x0]");
  text = Replace(text, "\\[(U?R[0-9]+)\\]", "[$1+0x0]");
  text = Replace(text,
                 "^(S2U?R|CS2R(?:\\.32)?) (U?R[0-9Z]+), "
                 "SR(?!Z$|_LANEID$|_TID|_CTAID).*$",
                 "$1 $2, SR_*");
  // The other spellings of IMAD, and products that are constants.
  text = Replace(text, "^(U?IMAD)\\.(?:MOV|IADD|SHL)", "$1");
  text = Replace(text,
                 "^(U?IMAD(?:\\.U32)?(?:\\.X)? U?R[0-9Z]+, )"
                 "(?:U?RZ, [^,]+|[^,]+, U?RZ), ",
                 "$1product, ");
  text = Replace(text,
                 "^(U?IMAD(?:\\.U32)?(?:\\.X)? U?R[0-9Z]+, U?R[0-9]+), 0x1, ",
                 "$1, ");
  // A constant in two halves, the upper one first.
  text = Replace(text, "^HFMA2\\.MMA ", "HFMA2 ");
  std::smatch halves;
  static const auto* const constant =
      new std::regex("(HFMA2 R[0-9Z]+, -RZ, RZ, )([^ ,]+) ?, ([^ ,]+) ?");
  if (std::regex_match(text, halves, *constant)) {
    text = absl::StrCat(halves[1].str(),
                        Hex(HalfBits(halves[2]) << 16 | HalfBits(halves[3])));
  }
  static const auto* const choice = new std::regex(
      "(FSEL R[0-9Z]+, R[0-9Z]+, )([-+]?[0-9.]+(?:e[-+][0-9]+)?)(, .*)");
  if (std::regex_match(text, halves, *choice)) {
    const float value = std::strtof(halves[2].str().c_str(), nullptr);
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    text = absl::StrCat(halves[1].str(), Hex(bits), halves[3].str());
  }
  // Numbers as 32 bits without a sign.
  std::string result;
  static const auto* const number = new std::regex("-0x[0-9a-f]+");
  auto at = std::sregex_iterator(text.begin(), text.end(), *number);
  size_t done = 0;
  for (; at != std::sregex_iterator(); ++at) {
    result.append(text, done, static_cast<size_t>(at->position()) - done);
    result += Hex(-std::strtoll(at->str().c_str() + 1, nullptr, 16));
    done = static_cast<size_t>(at->position() + at->length());
  }
  return result.append(text, done, std::string::npos);
}

bool CanDisassemble() {
  return !Output("nvdisasm --version 2>/dev/null").empty();
}

std::vector<std::string> Disassemble(absl::Span<const uint8_t> words,
                                     uint32_t arch) {
  const size_t count = words.size() / kSassInstructionBytes;
  std::vector<std::string> result(count);
  std::vector<size_t> places(count);
  for (size_t i = 0; i < count; ++i) places[i] = i;
  const std::string path = ScratchFile();
  const std::string command = absl::StrCat(
      "nvdisasm -ndf -b ", arch == 90 ? "SM90a" : absl::StrCat("SM", arch), " ",
      path, " 2>&1");
  const std::regex line("/\\*([0-9a-f]+)\\*/\\s+(.*?)\\s*;");
  const std::regex illegal("at address (0x[0-9a-f]+)");
  // It prints nothing at all if there is one that it does not know.
  while (!places.empty()) {
    std::ofstream file(path, std::ios::binary);
    for (const size_t place : places) {
      file.write(reinterpret_cast<const char*>(words.data()) + place * 16, 16);
    }
    file.close();
    const std::string output = Output(command);
    std::set<size_t> bad;
    for (auto at = std::sregex_iterator(output.begin(), output.end(), illegal);
         at != std::sregex_iterator(); ++at) {
      bad.insert(std::stoull((*at)[1], nullptr, 16) / 16);
    }
    if (bad.empty()) {
      size_t found = 0;
      for (auto at = std::sregex_iterator(output.begin(), output.end(), line);
           at != std::sregex_iterator(); ++at, ++found) {
        const size_t number = std::stoull((*at)[1], nullptr, 16) / 16;
        if (number < places.size()) result[places[number]] = (*at)[2];
      }
      unlink(path.c_str());
      if (found == 0) return {};
      return result;
    }
    std::vector<size_t> rest;
    for (size_t i = 0; i < places.size(); ++i) {
      if (bad.find(i) == bad.end()) rest.push_back(places[i]);
    }
    places = std::move(rest);
  }
  unlink(path.c_str());
  return result;
}

}  // namespace heddle::cubin
