// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/control_flow.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace heddle::access {
namespace {

using cubin::SassAccess;
using cubin::SassFlow;
using cubin::SassInstruction;
using cubin::SassOperand;
using cubin::SassOperandKind;

constexpr int64_t kBytes = cubin::kSassInstructionBytes;

bool Unconditional(const SassInstruction& code) {
  if (code.guard != cubin::kSassPredicateTrue || code.guard_negated) {
    return false;
  }
  for (const SassOperand& operand : code.operands()) {
    if ((operand.kind == SassOperandKind::kPredicate ||
         operand.kind == SassOperandKind::kUniformPredicate) &&
        operand.access == SassAccess::kRead &&
        (operand.index != cubin::kSassPredicateTrue || operand.negated)) {
      return false;
    }
  }
  return true;
}

// BRA.DIV and BRA.CONV: where not all threads of a mask are together, or all.
bool AsksWarp(const SassInstruction& code) {
  for (const SassOperand& operand : code.operands()) {
    if (operand.kind == SassOperandKind::kUniformRegister) return true;
  }
  return false;
}

int ConvergenceOf(const SassInstruction& code) {
  for (const SassOperand& operand : code.operands()) {
    if (operand.kind == SassOperandKind::kConvergenceBarrier) {
      return operand.index;
    }
  }
  return -1;
}

// BSSY writes a convergence barrier, BSYNC goes to what it stands for;
// WARPSYNC.COLLECTIVE and ENDCOLLECTIVE are treated as users of one more.
constexpr int kCollective = 16;
constexpr int kBarriers = kCollective + 1;

// What is known in front of an instruction: for every convergence barrier, and
// every register that returns go by, the places in the code that it may hold.
// Rows of bits, one a place; `open`: the register may hold something else.
struct Known {
  std::vector<uint64_t> bits;
  std::vector<uint8_t> open;  // by row

  bool Add(const Known& other) {
    bool grew = false;
    for (size_t i = 0; i < bits.size(); ++i) {
      grew |= (other.bits[i] & ~bits[i]) != 0;
      bits[i] |= other.bits[i];
    }
    for (size_t i = 0; i < open.size(); ++i) {
      grew |= other.open[i] > open[i];
      open[i] |= other.open[i];
    }
    return grew;
  }
};

// The register that a return goes by, -1 if none.
int AddressRegister(const SassInstruction& code) {
  for (const SassOperand& operand : code.operands()) {
    if (operand.kind == SassOperandKind::kRegister) return operand.index;
  }
  return -1;
}

// Where control goes behind an instruction.
struct Successor {
  uint32_t index = 0;
  int8_t taken = -1;
  int8_t depth = 0;  // 1: into a function, -1: out of one
  friend auto operator<=>(const Successor&, const Successor&) = default;
};
using Next = std::vector<Successor>;

class Successors {
 public:
  Successors(absl::Span<const CodeInstruction> code,
             absl::Span<const BranchTargets> branch_targets,
             absl::Span<const uint32_t> fatal_calls, std::string* unknown)
      : code_(code),
        branch_targets_(branch_targets),
        fatal_calls_(fatal_calls.begin(), fatal_calls.end()),
        unknown_(unknown) {
    std::set<int64_t> places;
    std::set<int> registers;
    for (uint32_t i = 0; i < code.size(); ++i) {
      const SassInstruction& instruction = code[i].decoded;
      if (instruction.flow == SassFlow::kMeetingPoint &&
          instruction.has_target) {
        places.insert(instruction.target);
      }
      if (instruction.flow == SassFlow::kCall) {
        places.insert((int64_t{i} + 1) * kBytes);
      }
      if (instruction.flow == SassFlow::kReturn &&
          AddressRegister(instruction) >= 0) {
        registers.insert(AddressRegister(instruction));
      }
      // Return addresses are moved into registers as constants.
      int64_t constant;
      if (MovesConstant(i, &constant) && IsPlace(constant)) {
        places.insert(constant);
      }
    }
    AddSources(&registers);
    places_.assign(places.begin(), places.end());
    words_ = (places_.size() + 63) / 64;
    int row = kBarriers;
    for (const int index : registers) row_of_[index] = row++;
    rows_ = static_cast<size_t>(row);
  }

  Known Nothing() const {
    Known known;
    known.bits.assign(rows_ * words_, 0);
    known.open.assign(rows_, 0);
    return known;
  }

  // Where control can go behind `index`, in front of which `known` holds.
  Next Of(uint32_t index, const Known& known) {
    Next next;
    const SassInstruction& code = code_[index].decoded;
    const bool always = Unconditional(code);
    const auto to = [&](int64_t offset, int taken, int depth = 0) {
      if (!IsPlace(offset)) {
        Unknown(index, "leads out of the kernel");
        return;
      }
      next.push_back({static_cast<uint32_t>(offset / kBytes),
                      static_cast<int8_t>(taken), static_cast<int8_t>(depth)});
    };
    const int64_t following = (int64_t{index} + 1) * kBytes;
    switch (code.flow) {
      case SassFlow::kNext:
        if (!code.known()) Unknown(index, "is not known");
        to(following, -1);
        break;
      case SassFlow::kBranch:
        if (AsksWarp(code)) {
          // Depends on which threads are here, whatever its predicates say.
          to(code.target, -1);
          to(following, -1);
          break;
        }
        to(code.target, always ? -1 : 1);
        if (!always) to(following, 0);
        break;
      case SassFlow::kCall:
        if (!IsFatal(index)) to(code.target, always ? -1 : 1, 1);
        if (!always) to(following, 0);
        break;
      case SassFlow::kIndirectCall:
        if (!IsFatal(index)) {
          Unknown(index, "calls a function that is not known");
        }
        if (!always) to(following, 0);
        break;
      case SassFlow::kIndirectBranch:
        BranchTo(index, [&](int64_t target) { to(target, always ? -1 : 1); });
        if (!always) to(following, 0);
        break;
      case SassFlow::kReturn: {
        const int address = AddressRegister(code);
        const int row = address < 0 ? kCollective : row_of_.at(address);
        for (const int64_t place : Places(known, row)) {
          to(place, always ? -1 : 1, address < 0 ? 0 : -1);
        }
        if (!always) to(following, 0);
        break;
      }
      case SassFlow::kExit:
        if (!always) to(following, 0);
        break;
      case SassFlow::kTrap:
      case SassFlow::kMeetingPoint:
        to(following, -1);
        break;
      case SassFlow::kMeet: {
        to(following, -1);
        const int barrier = ConvergenceOf(code);
        if (barrier < 0 || barrier >= kCollective) break;
        for (const int64_t place : Places(known, barrier)) {
          if (place != following) to(place, -1);
        }
        break;
      }
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    return next;
  }

  // Whether control passes from `index` to the next instruction and nowhere
  // else.
  bool GoesOn(uint32_t index) const {
    const SassInstruction& code = code_[index].decoded;
    return code.known() && index + 1 < code_.size() &&
           (code.flow == SassFlow::kNext ||
            code.flow == SassFlow::kMeetingPoint);
  }

  // Every place that Of can name.
  std::vector<bool> Starts() const {
    std::vector<bool> starts(code_.size());
    const auto add = [&](int64_t offset) {
      if (IsPlace(offset)) starts[static_cast<size_t>(offset / kBytes)] = true;
    };
    add(0);
    for (uint32_t i = 0; i < code_.size(); ++i) {
      if (code_[i].decoded.has_target) add(code_[i].decoded.target);
      if (!GoesOn(i)) add((int64_t{i} + 1) * kBytes);
    }
    for (const BranchTargets& branch : branch_targets_) {
      for (const uint32_t target : branch.targets) add(target);
    }
    for (const int64_t place : places_) add(place);
    return starts;
  }

  // What is known behind the instruction.
  void Update(uint32_t index, Known* known) const {
    const SassInstruction& code = code_[index].decoded;
    const bool always = Unconditional(code);
    if (code.flow == SassFlow::kMeetingPoint && code.has_target) {
      const int barrier = ConvergenceOf(code);
      const int row = barrier < 0 ? kCollective : barrier;
      if (row <= kCollective) {
        if (always) Clear(row, known);
        Insert(row, code.target, known);
      }
      return;
    }
    for (const SassOperand& operand : code.operands()) {
      if (operand.access != SassAccess::kWrite) continue;
      if (operand.kind == SassOperandKind::kConvergenceBarrier &&
          operand.index < kCollective) {
        known->open[operand.index] = 1;  // moved from a register
      }
      if (operand.kind != SassOperandKind::kRegister) continue;
      for (const auto& [address, row] : row_of_) {
        if (address >= operand.index &&
            address < operand.index + operand.count) {
          UpdateAddress(index, row, always, known);
        }
      }
    }
  }

 private:
  template <typename To>
  void BranchTo(uint32_t index, const To& to) {
    for (const BranchTargets& branch : branch_targets_) {
      if (branch.branch != index * kBytes) continue;
      for (const uint32_t target : branch.targets) to(target);
      return;
    }
    Unknown(index, "branches to places that are not known");
  }

  bool IsPlace(int64_t offset) const {
    return offset >= 0 && offset % kBytes == 0 &&
           offset / kBytes < static_cast<int64_t>(code_.size());
  }

  bool MovesConstant(uint32_t index, int64_t* constant) const {
    const cubin::SassOperation& op = code_[index].operation;
    if (op.op != cubin::SassOp::kMove || op.uniform ||
        op.source[0].kind != cubin::SassSource::Kind::kImmediate) {
      return false;
    }
    *constant = static_cast<uint32_t>(op.source[0].value);
    return true;
  }

  // The register that `index` copies, -1 if it does something else.
  int MovesRegister(uint32_t index) const {
    const cubin::SassOperation& op = code_[index].operation;
    return op.op == cubin::SassOp::kMove && !op.uniform &&
                   op.destination_words == 1 && !op.source[0].negate &&
                   !op.source[0].invert &&
                   op.source[0].kind == cubin::SassSource::Kind::kRegister
               ? op.source[0].index
               : -1;
  }

  // Registers that are copied to those which returns go by.
  void AddSources(std::set<int>* registers) const {
    bool grew = true;
    while (grew) {
      grew = false;
      for (uint32_t i = 0; i < code_.size(); ++i) {
        const int source = MovesRegister(i);
        if (source >= 0 &&
            registers->count(code_[i].operation.destination) != 0) {
          grew |= registers->insert(source).second;
        }
      }
    }
  }

  void UpdateAddress(uint32_t index, int row, bool always, Known* known) const {
    Known now;
    now.bits.assign(words_, 0);
    bool open = false;
    int64_t constant;
    const int source = MovesRegister(index);
    const auto source_row = row_of_.find(source);
    if (MovesConstant(index, &constant)) {
      // A constant that is no place in the code is never returned to.
      const auto it =
          std::lower_bound(places_.begin(), places_.end(), constant);
      if (it != places_.end() && *it == constant) {
        const auto bit = static_cast<size_t>(it - places_.begin());
        now.bits[bit / 64] |= uint64_t{1} << (bit % 64);
      }
    } else if (source >= 0 && source_row != row_of_.end()) {
      const size_t from = static_cast<size_t>(source_row->second);
      std::copy_n(known->bits.begin() + static_cast<int64_t>(from * words_),
                  words_, now.bits.begin());
      open = known->open[from] != 0;
    } else {
      open = true;
    }
    if (always) Clear(row, known);
    for (size_t i = 0; i < words_; ++i) {
      known->bits[static_cast<size_t>(row) * words_ + i] |= now.bits[i];
    }
    known->open[static_cast<size_t>(row)] |= open ? 1 : 0;
  }

  void Clear(int row, Known* known) const {
    std::fill_n(known->bits.begin() + static_cast<int64_t>(row * words_),
                words_, 0);
    known->open[static_cast<size_t>(row)] = 0;
  }

  void Insert(int row, int64_t place, Known* known) const {
    const auto it = std::lower_bound(places_.begin(), places_.end(), place);
    if (it == places_.end() || *it != place) return;
    const auto bit = static_cast<size_t>(it - places_.begin());
    known->bits[static_cast<size_t>(row) * words_ + bit / 64] |= uint64_t{1}
                                                                 << (bit % 64);
  }

  std::vector<int64_t> Places(const Known& known, int row) const {
    if (known.open[static_cast<size_t>(row)] != 0) return places_;
    std::vector<int64_t> places;
    for (size_t i = 0; i < places_.size(); ++i) {
      const uint64_t word =
          known.bits[static_cast<size_t>(row) * words_ + i / 64];
      if ((word >> (i % 64) & 1) != 0) places.push_back(places_[i]);
    }
    return places;
  }

  bool IsFatal(uint32_t index) const {
    return fatal_calls_.count(static_cast<uint32_t>(index * kBytes)) != 0;
  }

  void Unknown(uint32_t index, const char* what) {
    if (!unknown_->empty()) return;
    const absl::string_view name = code_[index].decoded.mnemonic;
    *unknown_ = absl::StrCat(name.empty() ? "the instruction" : name, " at 0x",
                             absl::Hex(index * kBytes), " ", what);
  }

  absl::Span<const CodeInstruction> code_;
  absl::Span<const BranchTargets> branch_targets_;
  std::set<uint32_t> fatal_calls_;
  std::string* unknown_;
  // Where barriers and return addresses can lead, ascending.
  std::vector<int64_t> places_;
  size_t words_ = 0;  // of a row
  size_t rows_ = 0;
  std::map<int, int> row_of_;  // by register
};

// Calls that are under way: a function is looked at once for every call, so
// that what one caller has in its registers does not get into another's.
class Contexts {
 public:
  // From context `from` through an edge that enters (1) or leaves (-1) a
  // function, at instruction `at`. What is not told apart is only less exact.
  uint32_t Step(uint32_t from, int depth, uint32_t at, size_t blocks) {
    std::vector<uint32_t> calls = calls_[from];
    if (depth > 0 && calls.size() < kMaxDepth && blocks < kMaxBlocks) {
      calls.push_back(at);
    } else if (depth < 0 && !calls.empty()) {
      calls.pop_back();
    }
    const auto [it, made] =
        ids_.try_emplace(calls, static_cast<uint32_t>(calls_.size()));
    if (made) calls_.push_back(std::move(calls));
    return it->second;
  }

 private:
  static constexpr size_t kMaxDepth = 3;
  static constexpr size_t kMaxBlocks = 4000;
  std::vector<std::vector<uint32_t>> calls_ = {{}};
  std::map<std::vector<uint32_t>, uint32_t> ids_ = {{{}, 0}};
};

// Depth first: reverse postorder, and edges to what is still being visited.
void Order(ControlFlow* flow) {
  enum class Mark : uint8_t { kNew, kOpen, kDone };
  std::vector<Mark> mark(flow->blocks.size(), Mark::kNew);
  std::vector<std::pair<uint32_t, size_t>> stack;
  stack.emplace_back(0, 0);
  mark[0] = Mark::kOpen;
  while (!stack.empty()) {
    auto& [block, next] = stack.back();
    const std::vector<uint32_t>& out = flow->blocks[block].out;
    if (next == out.size()) {
      mark[block] = Mark::kDone;
      flow->order.push_back(block);
      stack.pop_back();
      continue;
    }
    FlowEdge& edge = flow->edges[out[next++]];
    if (mark[edge.to] == Mark::kOpen) {
      edge.back = true;
      flow->blocks[edge.to].loop_head = true;
    } else if (mark[edge.to] == Mark::kNew) {
      mark[edge.to] = Mark::kOpen;
      stack.emplace_back(edge.to, 0);
    }
  }
  std::reverse(flow->order.begin(), flow->order.end());
}

// What lies between the ends of an edge back, in this order, may be in a loop;
// loops that overlap are one.
void MarkLoops(ControlFlow* flow) {
  std::vector<uint32_t> position(flow->blocks.size());
  for (uint32_t i = 0; i < flow->order.size(); ++i) {
    position[flow->order[i]] = i;
  }
  std::vector<std::pair<uint32_t, uint32_t>> loops;
  for (const FlowEdge& edge : flow->edges) {
    if (edge.back) loops.emplace_back(position[edge.to], position[edge.from]);
  }
  std::sort(loops.begin(), loops.end());
  uint32_t marked = 0;  // positions before this one
  for (size_t i = 0; i < loops.size();) {
    const uint32_t first = loops[i].first;
    uint32_t last = loops[i].second;
    while (++i < loops.size() && loops[i].first <= last) {
      last = std::max(last, loops[i].second);
    }
    for (marked = std::max(marked, first); marked <= last; ++marked) {
      flow->blocks[flow->order[marked]].repeats = true;
    }
  }
}

}  // namespace

ControlFlow BuildControlFlow(absl::Span<const CodeInstruction> code,
                             absl::Span<const BranchTargets> branch_targets,
                             absl::Span<const uint32_t> fatal_calls) {
  ControlFlow flow;
  if (code.empty()) {
    flow.unknown = "it has no code";
    return flow;
  }
  Successors successors(code, branch_targets, fatal_calls, &flow.unknown);
  const std::vector<bool> starts = successors.Starts();
  Contexts contexts;
  // Blocks by first instruction and context; runs of instructions that control
  // enters at their first only.
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> index;
  std::vector<uint32_t> context_of;
  std::vector<Known> known;  // by block
  std::vector<std::map<std::pair<uint32_t, int8_t>, uint32_t>> edges;
  uint32_t place = 0;
  const auto block_at = [&](uint32_t first, uint32_t context) {
    const auto [it, made] = index.try_emplace(
        {first, context}, static_cast<uint32_t>(flow.blocks.size()));
    if (made) {
      FlowBlock block;
      block.first = block.last = first;
      while (successors.GoesOn(block.last) && !starts[block.last + 1]) {
        ++block.last;
      }
      block.place = place;
      place += block.last - block.first + 1;
      flow.blocks.push_back(std::move(block));
      context_of.push_back(context);
      known.push_back(successors.Nothing());
      edges.emplace_back();
    }
    return std::make_pair(it->second, made);
  };
  // In the order of the code, which is mostly that of the flow.
  std::set<std::pair<uint32_t, uint32_t>> pending;
  block_at(0, 0);
  pending.insert({0, 0});
  while (!pending.empty()) {
    const uint32_t b = pending.begin()->second;
    pending.erase(pending.begin());
    const uint32_t first = flow.blocks[b].first;
    const uint32_t last = flow.blocks[b].last;
    Known here = known[b];
    for (uint32_t i = first; i < last; ++i) successors.Update(i, &here);
    const Next next = successors.Of(last, here);
    if (!flow.unknown.empty()) return flow;
    successors.Update(last, &here);
    for (const Successor& successor : next) {
      if (!starts[successor.index]) {
        flow.unknown = "its control flow does not hang together";
        return flow;
      }
      const uint32_t context = contexts.Step(context_of[b], successor.depth,
                                             last, flow.blocks.size());
      const auto [to, made] = block_at(successor.index, context);
      edges[b][{to, successor.taken}] = 0;
      if (known[to].Add(here) || made) {
        pending.insert({flow.blocks[to].first, to});
      }
    }
  }
  for (uint32_t b = 0; b < flow.blocks.size(); ++b) {
    const uint32_t last = flow.blocks[b].last;
    if (edges[b].empty() && code[last].decoded.flow == SassFlow::kReturn) {
      flow.unknown = absl::StrCat("the return at 0x", absl::Hex(last * kBytes),
                                  " goes to a place that is not known");
      return flow;
    }
    for (const auto& [target, unused] : edges[b]) {
      const auto edge = static_cast<uint32_t>(flow.edges.size());
      flow.edges.push_back({b, target.first, target.second, false});
      flow.blocks[b].out.push_back(edge);
      flow.blocks[target.first].in.push_back(edge);
    }
  }
  Order(&flow);
  MarkLoops(&flow);
  return flow;
}

}  // namespace heddle::access
