// Parts are kept in an order in which all paths ascend, so a search ends at the place of what it
// looks for, and joining two parts moves only parts on paths between their places (Pearce,
// Kelly 2006, "A dynamic topological sort algorithm for directed acyclic graphs"). A search that
// would succeed far away, as that from a layer's forward to its backward kernels, is cut short by a
// tree: what is below a node in the tree is reached from the node. Paths of the tree are as long as
// can be, so that it follows the whole program rather than shortcuts. Joining takes no path away,
// so the tree stays true.

#include "passes/schedule/JoinedGraph.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

using namespace dlc;

JoinedGraph::JoinedGraph(std::vector<std::vector<unsigned>> users)
    : readers(std::move(users)), operands(readers.size()), leaders(readers.size()),
      parts(readers.size()), seen(readers.size()) {
  for (unsigned node = 0; node < readers.size(); ++node)
    for (unsigned user : readers[node]) {
      assert(user > node && "numbered against the edges");
      operands[user].push_back(node);
    }
  labelNodes();
  std::iota(leaders.begin(), leaders.end(), 0);
  for (unsigned node = 0; node < parts.size(); ++node)
    parts[node] = {{node}, {labels[node]}, node};
}

/// Labels nodes from the front; how many are below each is known from the back.
void JoinedGraph::labelNodes() {
  auto count = static_cast<unsigned>(readers.size());
  std::vector<unsigned> depths(count), sizes(count, 1), parents(count, count);
  for (unsigned node = 0; node < count; ++node)
    for (unsigned operand : operands[node])
      if (parents[node] == count || depths[operand] >= depths[node]) {
        parents[node] = operand;
        depths[node] = depths[operand] + 1;
      }
  for (unsigned node = count; node-- > 0;)
    if (parents[node] < count)
      sizes[parents[node]] += sizes[node];
  labels.resize(count);
  ends.resize(count);
  std::vector<unsigned> next(count);
  unsigned nextRoot = 0;
  for (unsigned node = 0; node < count; ++node) {
    unsigned &label = parents[node] < count ? next[parents[node]] : nextRoot;
    labels[node] = label;
    next[node] = label + 1;
    ends[node] = label += sizes[node];
  }
}

unsigned JoinedGraph::find(unsigned node) const {
  while (leaders[node] != node)
    node = leaders[node] = leaders[leaders[node]];
  return node;
}

bool JoinedGraph::surelyReaches(const Part &from, const Part &to) const {
  return std::ranges::any_of(from.members, [&](unsigned member) {
    auto first = to.labels.lower_bound(labels[member]);
    return first != to.labels.end() && *first < ends[member];
  });
}

/// Visits the parts that lie on paths from `from`, at places between `from` and `to`, once each,
/// until a visit returns true.
template <typename Visit>
bool JoinedGraph::search(unsigned from, unsigned to, Way way, Visit visit) {
  unsigned first = std::min(parts[from].place, parts[to].place),
           last = std::max(parts[from].place, parts[to].place);
  ++searches;
  std::vector<unsigned> pending{from};
  while (!pending.empty()) {
    const Part &part = parts[pending.back()];
    pending.pop_back();
    for (unsigned member : part.members)
      for (unsigned node : way == Way::ToUsers ? readers[member] : operands[member]) {
        unsigned next = find(node);
        if (parts[next].place <= first || parts[next].place >= last || seen[next] == searches)
          continue;
        seen[next] = searches;
        if (visit(next))
          return true;
        pending.push_back(next);
      }
  }
  return false;
}

bool JoinedGraph::isSeparated(unsigned a, unsigned b) {
  if (parts[a].place > parts[b].place)
    std::swap(a, b);
  return search(a, b, Way::ToUsers, [&](unsigned part) {
    auto leads = [&](unsigned member) {
      return std::ranges::any_of(readers[member], [&](unsigned user) { return find(user) == b; });
    };
    return surelyReaches(parts[part], parts[b]) || std::ranges::any_of(parts[part].members, leads);
  });
}

/// The parts that a search visits, in their order.
std::vector<unsigned> JoinedGraph::between(unsigned from, unsigned to, Way way) {
  std::vector<unsigned> found;
  search(from, to, way, [&](unsigned part) {
    found.push_back(part);
    return false;
  });
  std::ranges::sort(found, {}, [&](unsigned part) { return parts[part].place; });
  return found;
}

unsigned JoinedGraph::join(unsigned a, unsigned b) {
  assert(a != b && !isSeparated(a, b) && "two parts that may be one");
  if (parts[a].place > parts[b].place)
    std::swap(a, b);
  // What b needs comes before both, what a is needed for comes behind them.
  std::vector<unsigned> order = between(b, a, Way::ToOperands),
                        behind = between(a, b, Way::ToUsers);
  unsigned into = parts[a].members.size() < parts[b].members.size() ? b : a, from = a + b - into;
  std::vector<unsigned> places{parts[a].place, parts[b].place};
  order.push_back(into);
  order.insert(order.end(), behind.begin(), behind.end());
  for (unsigned part : order)
    if (part != into)
      places.push_back(parts[part].place);
  std::ranges::sort(places);
  for (size_t i = 0; i < order.size(); ++i)
    parts[order[i]].place = places[i];
  Part &whole = parts[into], taken = std::exchange(parts[from], {});
  whole.members.insert(whole.members.end(), taken.members.begin(), taken.members.end());
  whole.labels.merge(taken.labels);
  leaders[from] = into;
  return into;
}
