// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan/access_map.h"

#include <algorithm>

namespace heddle::plan {
namespace {

// Readers of a node that a new one is compared with.
constexpr size_t kCompared = 8;
// A shorter list of readers is not looked through.
constexpr uint32_t kShort = 16;

}  // namespace

AccessMap::AccessMap(uint32_t places, Ancestry& ancestry)
    : last_(places - 1),
      ancestry_(ancestry),
      nodes_(2 * static_cast<size_t>(places) - 1) {}

bool AccessMap::Add(const Few& few, std::vector<uint32_t>& operations) {
  if (few.many()) return false;
  operations.insert(operations.end(), few.op, few.op + few.count);
  return true;
}

void AccessMap::Insert(Few& few, uint32_t op) const {
  if (few.many()) return;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < few.count; ++i) {
    if (ancestry_.Before(op, few.op[i])) return;
    if (!ancestry_.Before(few.op[i], op)) few.op[kept++] = few.op[i];
  }
  few.count = kept;
  if (kept < kFew) few.op[kept] = op;
  ++few.count;
}

void AccessMap::Unite(Few& few, const Few& other) const {
  if (other.many()) few.count = kFew + 1;
  if (few.many()) return;
  for (uint32_t i = 0; i < other.count; ++i) Insert(few, other.op[i]);
}

void AccessMap::AddReaders(uint32_t node, uint32_t first, uint32_t last,
                           std::vector<uint32_t>& operations) const {
  ++work_;
  const Node& here = nodes_[node];
  if (Add(here.readers, operations)) return;
  work_ += here.whole.size();
  operations.insert(operations.end(), here.whole.begin(), here.whole.end());
  if (here.writer != kNone || first == last) return;
  const uint32_t middle = Middle(first, last);
  AddReaders(Left(node), first, middle, operations);
  AddReaders(Right(node, first, last), middle + 1, last, operations);
}

void AccessMap::FindIn(uint32_t node, uint32_t node_first, uint32_t node_last,
                       uint32_t first, uint32_t last, bool readers,
                       Found& found) const {
  ++work_;
  const Node& here = nodes_[node];
  if (first <= node_first && node_last <= last) {
    if (!Add(here.writers, found.operations)) {
      found.parts.push_back({node, node_first, node_last});
    }
    if (readers) AddReaders(node, node_first, node_last, found.operations);
    return;
  }
  if (readers) {
    work_ += here.whole.size();
    found.operations.insert(found.operations.end(), here.whole.begin(),
                            here.whole.end());
  }
  if (here.writer != kNone) {
    found.operations.push_back(here.writer);
    return;
  }
  const uint32_t middle = Middle(node_first, node_last);
  if (first <= middle) {
    FindIn(Left(node), node_first, middle, first, last, readers, found);
  }
  if (last > middle) {
    FindIn(Right(node, node_first, node_last), middle + 1, node_last, first,
           last, readers, found);
  }
}

void AccessMap::Find(uint32_t first, uint32_t last, bool readers,
                     Found& found) const {
  FindIn(0, 0, last_, first, last, readers, found);
}

void AccessMap::FindMore(const Found::Part& part,
                         std::vector<uint32_t>& operations) const {
  ++work_;
  const Node& here = nodes_[part.node];
  if (here.cover != kNone && ancestry_.Reached(here.cover)) return;
  if (Add(here.writers, operations)) return;
  const uint32_t middle = Middle(part.first, part.last);
  FindMore({Left(part.node), part.first, middle}, operations);
  FindMore({Right(part.node, part.first, part.last), middle + 1, part.last},
           operations);
}

void AccessMap::WriteAll(Node& node, uint32_t op) {
  node.writers.count = 1;
  node.writers.op[0] = op;
  node.readers.count = 0;
  node.cover = op;
  node.writer = op;
  node.whole.clear();
  node.prune_at = kShort;
}

void AccessMap::ReadAll(Node& node, uint32_t op) {
  std::vector<uint32_t>& whole = node.whole;
  // Programs read the same things in a chain of kernels most of the time, so
  // the one to replace is near the end.
  const size_t compared = std::min(whole.size(), kCompared);
  bool known = false;
  const auto end =
      std::remove_if(whole.end() - static_cast<std::ptrdiff_t>(compared),
                     whole.end(), [&](uint32_t reader) {
                       // After a push-down also the other way round.
                       known = known || ancestry_.Before(op, reader);
                       return !known && ancestry_.Before(reader, op);
                     });
  whole.erase(end, whole.end());
  if (!known) whole.push_back(op);
  if (whole.size() >= std::max(node.prune_at, kShort)) {
    work_ += whole.size();
    ancestry_.KeepLatest(whole);
    std::reverse(whole.begin(), whole.end());
    node.prune_at = static_cast<uint32_t>(2 * whole.size());
  }
  Insert(node.readers, op);
  if (node.writers.count == 0) return;
  // The later of the two is more likely to be followed by what comes.
  if (node.cover == kNone || node.cover < op) node.cover = op;
}

void AccessMap::PushDown(uint32_t node, uint32_t first, uint32_t last,
                         bool readers) {
  Node& here = nodes_[node];
  Node& left = nodes_[Left(node)];
  Node& right = nodes_[Right(node, first, last)];
  if (here.writer != kNone) {
    WriteAll(left, here.writer);
    WriteAll(right, here.writer);
    here.writer = kNone;
  }
  if (!readers) return;
  for (const uint32_t reader : here.whole) {
    ++work_;
    ReadAll(left, reader);
    ReadAll(right, reader);
  }
  here.whole.clear();
}

void AccessMap::PullUp(uint32_t node, uint32_t first, uint32_t last) {
  Node& here = nodes_[node];
  const Node& left = nodes_[Left(node)];
  const Node& right = nodes_[Right(node, first, last)];
  here.readers = left.readers;
  Unite(here.readers, right.readers);
  for (const uint32_t reader : here.whole) {
    if (here.readers.many()) break;
    Insert(here.readers, reader);
  }
  if (left.writers.count == 0 || right.writers.count == 0) {
    const Node& written = left.writers.count == 0 ? right : left;
    here.writers = written.writers;
    here.cover = written.cover;
  } else {
    here.cover = kNone;
    if (left.cover != kNone && right.cover != kNone) {
      const uint32_t later = std::max(left.cover, right.cover);
      if (ancestry_.Before(std::min(left.cover, right.cover), later)) {
        here.cover = later;
      }
    }
    // What comes after all of one side's is enough.
    const Node& more = left.writers.many() ? left : right;
    const Node& fewer = left.writers.many() ? right : left;
    here.writers = fewer.writers;
    bool covered = false;
    if (more.writers.many() && !fewer.writers.many() && more.cover != kNone) {
      for (uint32_t i = 0; i < fewer.writers.count && !covered; ++i) {
        covered = ancestry_.Before(more.cover, fewer.writers.op[i]);
      }
    }
    if (!covered) Unite(here.writers, more.writers);
  }
  // Nothing below was written since.
  if (!here.whole.empty() && here.writers.count != 0) {
    const uint32_t reader = here.whole.back();
    if (here.cover == kNone || here.cover < reader) here.cover = reader;
  }
}

void AccessMap::Update(uint32_t node, uint32_t node_first, uint32_t node_last,
                       uint32_t first, uint32_t last, bool write, uint32_t op) {
  ++work_;
  if (first <= node_first && node_last <= last) {
    if (write) {
      WriteAll(nodes_[node], op);
    } else {
      ReadAll(nodes_[node], op);
    }
    return;
  }
  // A read changes nothing about those who read before.
  PushDown(node, node_first, node_last, write);
  const uint32_t middle = Middle(node_first, node_last);
  if (first <= middle) {
    Update(Left(node), node_first, middle, first, last, write, op);
  }
  if (last > middle) {
    Update(Right(node, node_first, node_last), middle + 1, node_last, first,
           last, write, op);
  }
  PullUp(node, node_first, node_last);
}

void AccessMap::Read(uint32_t first, uint32_t last, uint32_t op) {
  Update(0, 0, last_, first, last, false, op);
}

void AccessMap::Write(uint32_t first, uint32_t last, uint32_t op) {
  Update(0, 0, last_, first, last, true, op);
}

}  // namespace heddle::plan
