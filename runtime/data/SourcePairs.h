// Sample i of one source belongs to sample i of the others.
#pragma once

#include "runtime/data/Source.h"

namespace dlc::rt {

/// Throws Error(BadInput) if the sources have not the same samples: as many, or, of two
/// directories, images called alike.
void requirePair(const Source &a, const Source &b);

// One line each, for whoever starts a run.

/// The first pairs, in which names that pair by mistake show.
std::string noteOnPairs(const Source &one, const Source &other);
/// The first folders that a source numbers as classes.
std::string noteOnClasses(const Source &source);

} // namespace dlc::rt
