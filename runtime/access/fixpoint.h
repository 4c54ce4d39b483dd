// SPDX-License-Identifier: Apache-2.0
#ifndef HEDDLE_RUNTIME_ACCESS_FIXPOINT_H_
#define HEDDLE_RUNTIME_ACCESS_FIXPOINT_H_

// Runs the interpreter over a kernel until nothing changes any more.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "runtime/access/control_flow.h"
#include "runtime/access/interpreter.h"
#include "runtime/access/state.h"

namespace heddle::access {

class Fixpoint {
 public:
  Fixpoint(const ControlFlow& flow, Interpreter* interpreter, Domain* domain)
      : flow_(flow), interpreter_(*interpreter), domain_(*domain) {}

  // False if it did not settle.
  bool Run();
  uint32_t sweeps() const { return sweeps_; }

  // Calls `visit` with every instruction that can be reached, the place where
  // it is and the state in front of it.
  void Visit(const std::function<void(uint32_t, uint32_t, State*)>& visit);

 private:
  // What the registers of a loop do from one round to the next.
  struct Slot {
    enum class Kind : uint8_t {
      kSame,  // nothing
      kStep,  // grows by `step`
      kAny,
    };
    Kind kind = Kind::kSame;
    int64_t step = 0;
  };
  struct Rest {
    Range range;
    int growths = 0;
  };
  struct Head {
    std::vector<Slot> slots = std::vector<Slot>(kSlots);
    std::array<bool, 2 * kPredicates> varies{};  // predicates, in the loop
    SymbolId count = 0;                          // of the rounds
    bool has_count = false;
    State last;  // what the back edges were computed from
    std::map<FormId, Rest> bounds;
  };

  State InOf(uint32_t block);
  State MeetAtHead(uint32_t block, State entry, State back);
  bool IsInduction(const Head& head, int slot, const Value& back) const;
  void LoopBounds(const State& entry, const State& back,
                  const std::vector<SymbolId>& renewed, Head* head,
                  State* state);

  const ControlFlow& flow_;
  Interpreter& interpreter_;
  Domain& domain_;
  std::vector<State> edges_;        // by edge
  std::map<uint32_t, Head> heads_;  // by block
  bool head_changed_ = false;
  uint32_t sweeps_ = 0;
};

}  // namespace heddle::access

#endif  // HEDDLE_RUNTIME_ACCESS_FIXPOINT_H_
