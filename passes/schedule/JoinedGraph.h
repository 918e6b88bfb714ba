// A graph without cycles whose nodes are joined step by step, as long as it keeps none.
//
// Knows nothing of MLIR: nodes are numbered, and each is behind all that lead to it. What joining
// costs depends on what lies between the nodes, not on the size of the graph.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

namespace dlc {

class JoinedGraph {
public:
  /// `users[i]` are the nodes that read node i: greater numbers, each once.
  explicit JoinedGraph(std::vector<std::vector<unsigned>> users);

  /// The number by which a node is known since it was joined with others.
  unsigned find(unsigned node) const;
  std::span<const unsigned> users(unsigned node) const { return readers[node]; }
  /// The original nodes of a joined one.
  std::span<const unsigned> members(unsigned joined) const { return parts[joined].members; }

  /// True if a path leads from one of two joined nodes to the other through a third, so that they
  /// would be a cycle if they were one.
  bool isSeparated(unsigned a, unsigned b);
  /// Joins two nodes that are not separated; returns the number of what they are now.
  unsigned join(unsigned a, unsigned b);

private:
  /// Nodes that are one.
  struct Part {
    std::vector<unsigned> members;
    std::set<unsigned> labels; // of the members
    unsigned place = 0;        // in an order in which paths only ascend
  };

  void labelNodes();
  bool surelyReaches(const Part &from, const Part &to) const;
  enum class Way { ToUsers, ToOperands };
  template <typename Visit> bool search(unsigned from, unsigned to, Way way, Visit visit);
  std::vector<unsigned> between(unsigned from, unsigned to, Way way);

  std::vector<std::vector<unsigned>> readers, operands; // by original node
  /// Of a tree in which the parent is one of the operands, the one with the longest path behind it:
  /// the nodes below a node have its label to the one before `ends`.
  std::vector<unsigned> labels, ends;
  mutable std::vector<unsigned> leaders; // a way to the number of the joined node
  std::vector<Part> parts;               // by the joined node's number
  std::vector<unsigned> seen;            // the search that last came by
  unsigned searches = 0;
};

} // namespace dlc
