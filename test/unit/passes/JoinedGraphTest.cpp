// Joined graphs against a search of all paths, on random graphs and orders of joining.

#include "passes/schedule/JoinedGraph.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace dlc;

namespace {
/// Says by whole searches what a JoinedGraph is to say.
class Paths {
public:
  explicit Paths(std::vector<std::vector<unsigned>> users)
      : users(std::move(users)), wholes(this->users.size()) {
    std::iota(wholes.begin(), wholes.end(), 0);
  }

  bool isSeparated(unsigned a, unsigned b) const {
    return leadsBack(wholes[a], wholes[b]) || leadsBack(wholes[b], wholes[a]);
  }
  bool areOne(unsigned a, unsigned b) const { return wholes[a] == wholes[b]; }
  void join(unsigned a, unsigned b) {
    std::ranges::replace(wholes, unsigned(wholes[b]), unsigned(wholes[a]));
  }

private:
  /// True if a path leads from one whole to the other through a third.
  bool leadsBack(unsigned from, unsigned to) const {
    std::vector<bool> reached(users.size());
    auto reachUsers = [&](unsigned whole) {
      for (unsigned node = 0; node < users.size(); ++node)
        if (wholes[node] == whole)
          for (unsigned user : users[node])
            if (wholes[user] != from && (whole != from || wholes[user] != to))
              reached[wholes[user]] = true;
    };
    reachUsers(from);
    for (std::vector<bool> before; before != reached;) {
      before = reached;
      for (unsigned whole = 0; whole < users.size(); ++whole)
        if (before[whole] && whole != to)
          reachUsers(whole);
    }
    return reached[to];
  }

  std::vector<std::vector<unsigned>> users;
  std::vector<unsigned> wholes; // by node, a number that its whole shares
};

std::vector<std::vector<unsigned>> randomUsers(std::mt19937 &random, unsigned count) {
  std::vector<std::vector<unsigned>> users(count);
  for (unsigned node = 0; node + 1 < count; ++node)
    for (unsigned edges = random() % 3; edges > 0; --edges) {
      // Mostly near, as in a program.
      unsigned reach = random() % 4 ? std::min(count - 1, node + 4) : count - 1;
      users[node].push_back(node + 1 + random() % (reach - node));
    }
  for (std::vector<unsigned> &list : users) {
    std::ranges::sort(list);
    auto again = std::ranges::unique(list);
    list.erase(again.begin(), again.end());
  }
  return users;
}

TEST(JoinedGraph, SeparatesWhatPathsSeparate) {
  unsigned separated = 0, joined = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    unsigned count = 5 + random() % 40;
    std::vector<std::vector<unsigned>> users = randomUsers(random, count);
    Paths paths(users);
    JoinedGraph graph(users);
    for (unsigned trial = 0; trial < 3 * count; ++trial) {
      unsigned a = random() % count, b = random() % count;
      EXPECT_EQ(graph.find(a) == graph.find(b), paths.areOne(a, b));
      if (paths.areOne(a, b))
        continue;
      bool expected = paths.isSeparated(a, b);
      separated += expected;
      ASSERT_EQ(graph.isSeparated(graph.find(a), graph.find(b)), expected)
          << "seed " << seed << ", nodes " << a << " and " << b;
      if (expected)
        continue;
      graph.join(graph.find(a), graph.find(b));
      paths.join(a, b);
      ++joined;
    }
  }
  EXPECT_GT(separated, 1000u);
  EXPECT_GT(joined, 1000u);
}

TEST(JoinedGraph, KnowsItsMembers) {
  JoinedGraph graph({{1, 2}, {3}, {3}, {}});
  EXPECT_TRUE(graph.isSeparated(0, 3));
  EXPECT_FALSE(graph.isSeparated(1, 2));
  unsigned joined = graph.join(1, 2);
  std::vector<unsigned> members(graph.members(joined).begin(), graph.members(joined).end());
  std::ranges::sort(members);
  EXPECT_EQ(members, (std::vector<unsigned>{1, 2}));
  EXPECT_EQ(graph.find(1), graph.find(2));
  EXPECT_TRUE(graph.isSeparated(0, 3)); // through the two
  EXPECT_FALSE(graph.isSeparated(0, joined));
}
} // namespace
