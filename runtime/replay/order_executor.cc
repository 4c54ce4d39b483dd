// SPDX-License-Identifier: Apache-2.0
#include "runtime/replay/order_executor.h"

#include <queue>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/replay/launcher.h"

namespace heddle::replay {
namespace {

class OrderExecutor : public Executor {
 public:
  OrderExecutor(const device::Driver& driver, const BoundProgram& program,
                RandomOrders orders)
      : driver_(driver), program_(program), orders_(std::move(orders)) {}
  ~OrderExecutor() override {
    if (stream_ == nullptr) return;
    driver_.StreamSynchronize(stream_);
    driver_.StreamDestroy(stream_);
  }
  OrderExecutor(const OrderExecutor&) = delete;
  OrderExecutor& operator=(const OrderExecutor&) = delete;

  absl::Status Init() {
    return driver_.Check(driver_.StreamCreate(&stream_, CU_STREAM_NON_BLOCKING),
                         "cuStreamCreate");
  }

  const char* name() const override { return "random orders"; }
  CUstream stream() const override { return stream_; }

  absl::Status Run() override {
    for (const uint32_t index : orders_.Next()) {
      const Operation& operation = program_.step().operations[index];
      if (absl::Status s = Submit(driver_, program_, operation, stream_,
                                  /*early=*/false);
          !s.ok()) {
        return absl::Status(
            s.code(), absl::StrCat("operation ", index, " (", operation.label,
                                   "): ", s.message()));
      }
    }
    return absl::OkStatus();
  }

 private:
  const device::Driver& driver_;
  const BoundProgram& program_;
  RandomOrders orders_;
  CUstream stream_ = nullptr;
};

}  // namespace

RandomOrders::RandomOrders(uint32_t nodes, absl::Span<const plan::Edge> edges,
                           uint64_t seed)
    : out_(nodes), in_count_(nodes), random_(seed) {
  for (const plan::Edge& edge : edges) {
    out_[edge.from].push_back(edge.to);
    ++in_count_[edge.to];
  }
}

std::vector<uint32_t> RandomOrders::Next() {
  std::priority_queue<std::pair<uint64_t, uint32_t>> ready;
  std::vector<uint32_t> pending = in_count_;
  for (uint32_t node = 0; node < pending.size(); ++node) {
    if (pending[node] == 0) ready.emplace(random_(), node);
  }
  std::vector<uint32_t> order;
  order.reserve(pending.size());
  while (!ready.empty()) {
    const uint32_t node = ready.top().second;
    ready.pop();
    order.push_back(node);
    for (const uint32_t to : out_[node]) {
      if (--pending[to] == 0) ready.emplace(random_(), to);
    }
  }
  return order;
}

absl::StatusOr<std::unique_ptr<Executor>> CreateOrderExecutor(
    const device::Driver& driver, const BoundProgram& program,
    absl::Span<const plan::Edge> edges, uint64_t seed) {
  const auto count = static_cast<uint32_t>(program.step().operations.size());
  for (const plan::Edge& edge : edges) {
    if (edge.from >= count || edge.to >= count) {
      return absl::InvalidArgumentError(
          absl::StrCat("an edge from operation ", edge.from, " to ", edge.to,
                       ", and the step has ", count));
    }
  }
  RandomOrders orders(count, edges, seed);
  if (orders.Next().size() != count) {
    return absl::InvalidArgumentError("the edges form a cycle");
  }
  auto executor =
      std::make_unique<OrderExecutor>(driver, program, std::move(orders));
  if (absl::Status s = executor->Init(); !s.ok()) return s;
  return executor;
}

}  // namespace heddle::replay
