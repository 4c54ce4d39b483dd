// SPDX-License-Identifier: Apache-2.0
#include "runtime/access/linear.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "runtime/access/state.h"

namespace heddle::access {
namespace {

// A few symbols with small ranges, so that all their values can be tried.
class SmallWorld {
 public:
  explicit SmallWorld(std::mt19937_64* random) : random_(*random) {
    for (int i = 0; i < 3; ++i) {
      const int64_t lo = Pick(-4, 4);
      Symbol symbol;
      symbol.range = {lo, lo + Pick(0, 5)};
      symbols_.push_back(domain_.universe().NewSymbol(symbol));
    }
  }

  int64_t Pick(int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random_);
  }

  Form RandomForm() {
    Form form;
    form.constant = Pick(-20, 20);
    for (const SymbolId symbol : symbols_) {
      const int64_t coefficient = Pick(-3, 3) * (Pick(0, 2) == 0 ? 8 : 1);
      if (coefficient != 0) form.terms.push_back({symbol, coefficient});
    }
    return form;
  }

  // Calls `visit(values)` with every choice of values.
  template <typename Visit>
  void ForAll(const Visit& visit) {
    const Universe& universe = domain_.universe();
    std::vector<int64_t> values(3);
    const auto range = [&](int i) {
      return universe.symbol(symbols_[i]).range;
    };
    for (Wide a = range(0).lo; a <= range(0).hi; ++a) {
      for (Wide b = range(1).lo; b <= range(1).hi; ++b) {
        for (Wide c = range(2).lo; c <= range(2).hi; ++c) {
          values = {static_cast<int64_t>(a), static_cast<int64_t>(b),
                    static_cast<int64_t>(c)};
          visit(values);
        }
      }
    }
  }

  int64_t ValueOf(const Form& form, const std::vector<int64_t>& values) const {
    int64_t value = form.constant;
    for (const Term& term : form.terms) {
      const auto it = std::find(symbols_.begin(), symbols_.end(), term.symbol);
      value += term.coefficient * values[it - symbols_.begin()];
    }
    return value;
  }

  Domain& domain() { return domain_; }

 private:
  std::mt19937_64& random_;
  Domain domain_;
  std::vector<SymbolId> symbols_;
};

TEST(LinearTest, RangesUnderBoundsHoldAllThatTheFormCanBe) {
  std::mt19937_64 random(1);
  int tighter = 0;
  for (int round = 0; round < 20000; ++round) {
    SmallWorld world(&random);
    Universe& universe = world.domain().universe();
    const Form form = world.RandomForm();
    std::vector<Bound> bounds;
    for (int i = 0; i < 3; ++i) {
      // One that some values meet.
      const Form of = world.RandomForm();
      const int64_t lo = world.Pick(-30, 30);
      bounds.push_back({universe.Intern(of), {lo, lo + world.Pick(0, 40)}});
    }
    const Range range = universe.RangeOf(form, bounds);
    const Range without = universe.RangeOf(form, {});
    tighter += range == without ? 0 : 1;
    world.ForAll([&](const std::vector<int64_t>& values) {
      for (const Bound& bound : bounds) {
        const int64_t value = world.ValueOf(universe.form(bound.form), values);
        if (value < bound.range.lo || value > bound.range.hi) return;
      }
      const int64_t value = world.ValueOf(form, values);
      ASSERT_TRUE(value >= range.lo && value <= range.hi) << "round " << round;
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(tighter, 1000);  // the bounds were of some use
}

TEST(LinearTest, QuotientsAndWhatDefinesThemHoldForAllValues) {
  std::mt19937_64 random(2);
  int divisions = 0;
  for (int round = 0; round < 20000; ++round) {
    SmallWorld world(&random);
    Universe& universe = world.domain().universe();
    const Form numerator = world.RandomForm();
    const int shift = static_cast<int>(world.Pick(1, 40));
    // Factors of both kinds: shifts, and the magic numbers of divisions.
    int64_t factor = 1;
    if (world.Pick(0, 2) != 0 && shift > 6) {
      const int64_t divisor = world.Pick(2, 40);
      factor = ((int64_t{1} << shift) + divisor - 1) / divisor;
      factor += world.Pick(0, 3) == 0 ? world.Pick(-2, 2) : 0;
      if (factor <= 0) factor = 1;
    }
    State state;
    state.reachable = true;
    const SymbolId quotient = world.domain().Quotient(
        universe.Intern(numerator), factor, shift, state);
    const Symbol& symbol = universe.symbol(quotient);
    divisions += factor > 1 && !symbol.definition.empty() ? 1 : 0;
    world.ForAll([&](const std::vector<int64_t>& values) {
      const Wide product = Wide{world.ValueOf(numerator, values)} * factor;
      const Wide exact = product >> shift;
      ASSERT_TRUE(exact >= symbol.range.lo && exact <= symbol.range.hi);
      for (const Bound& bound : symbol.definition) {
        Form rest = universe.form(bound.form);
        const int64_t of_quotient = rest.CoefficientOf(quotient);
        Form without = rest;
        std::erase_if(without.terms, [&](const Term& term) {
          return term.symbol == quotient;
        });
        const Wide value =
            Wide{world.ValueOf(without, values)} + Wide{of_quotient} * exact;
        ASSERT_TRUE(value >= bound.range.lo && value <= bound.range.hi)
            << "round " << round;
      }
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(divisions, 1000);
}

TEST(LinearTest, FormsWrapAndReduceAsRegistersDo) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 2000; ++round) {
    SmallWorld world(&random);
    const Form a = Times(world.RandomForm(), static_cast<int64_t>(random()));
    const Form b = world.RandomForm();
    const auto factor = static_cast<int64_t>(random());
    const Form sum = Add(a, b, factor);
    const Form reduced = Reduced32(sum);
    world.ForAll([&](const std::vector<int64_t>& values) {
      const auto wrap = [&](const Form& form) {
        uint64_t value = static_cast<uint64_t>(form.constant);
        size_t i = 0;
        for (const Term& term : form.terms) {
          while (i < 3 && term.symbol != i) ++i;
          value += static_cast<uint64_t>(term.coefficient) *
                   static_cast<uint64_t>(values[i]);
        }
        return value;
      };
      const uint64_t expected =
          wrap(a) + wrap(b) * static_cast<uint64_t>(factor);
      ASSERT_EQ(wrap(sum), expected);
      ASSERT_EQ(static_cast<uint32_t>(wrap(reduced)),
                static_cast<uint32_t>(expected));
    });
    if (HasFatalFailure()) return;
  }
}

TEST(LinearTest, RangesWithoutBoundsStayWithoutThem) {
  const Range half{0, kUnbounded};
  EXPECT_EQ(Sum(half, {5, 5}), (Range{5, kUnbounded}));
  EXPECT_EQ(Scale(half, -3), (Range{-kUnbounded, 0}));
  EXPECT_EQ(Product(kAnything, {0, 0}), (Range{0, 0}));
  EXPECT_EQ(Product({2, 3}, {-1, 4}), (Range{-3, 12}));
  EXPECT_EQ(Sum({kUnbounded - 1, kUnbounded - 1}, {5, 5}).hi, kUnbounded);
}

}  // namespace
}  // namespace heddle::access
