// What a machine makes of a loop: sizes that the planning of generated kernels takes from the
// target. No field has a default: a target states them all.
#pragma once

#include "runtime/artifact/artifact_generated.h"

#include <cstdint>

namespace dlc::rt {

/// Of matrix products that are generated.
struct ProductLimits {
  /// Rows of a and y: more are work enough for library code.
  int64_t mostRows;
  /// Columns of y in an item where each element is a product of two rows, so many of b. More of
  /// them read a block of a's rows more often while it is near. A multiple of what the target's
  /// emitter adds up at once.
  int64_t dotColumns;
  /// Columns of y in an item where rows of b are added up: few enough for many threads, and for the
  /// sums to stay in the second-level cache. A multiple of the emitter's, too.
  int64_t sumColumns;
  /// Chunks of a product, for many threads to share.
  int64_t mostChunks;
};

struct LoopLimits {
  /// Elements of an item at most: an operand or two stay in the first-level cache.
  int64_t itemElements;
  /// Elements: decoding the number of a smaller item would show.
  int64_t leastItemElements;
  /// Kept elements of an item at most where a reduction enumerates those, each with all its terms.
  int64_t keptItemElements;
  /// Elements of an item at most where each has a partial result, which one thread combines.
  int64_t reducedItemElements;
  /// Elements of an item at most along an innermost loop that a reduction keeps: what else the item
  /// has are terms of their sums.
  int64_t reducedColumns;
  /// Likewise of what combines partial results.
  int64_t combinedColumns;
  /// Elements of an operand that lie side by side, where an item's threads bring what lies in
  /// another order through memory that they share; of rows that are added up, which they bring
  /// there, too, four times as many. 0 where they share none.
  int64_t sharedRun;
  /// Lanes of f32: inner extents are kept multiples of it where possible.
  int64_t vectorLanes;
  /// Items of a large reduction, each with a partial result: enough for many threads to share.
  int64_t mostPartials;
  /// Bytes that a thread takes at a time at least.
  int64_t chunkBytes;
  /// Chunks of a kernel at most.
  int64_t mostChunks;
  /// Elements: from so many that are kept on, a reduction enumerates those and needs no partial
  /// results.
  int64_t manyKept;
  /// Elements of flat updates beside each other: a range longer than an item has a multiple of it,
  /// which splits well among threads.
  int64_t rangeMultiple;
  /// In which sums of f32 and narrower floats are added up: F64 or F32. Others are always F64.
  artifact::DType sums;
  /// Whether a kernel that reduces may go on with its results: its emitter knows epilogues.
  bool epilogues;
  ProductLimits products;

  /// Bytes that move in the time of one operation on an element.
  double bytesPerOperation;
  /// Bytes that move in the time of one exponential.
  double bytesPerFunction;
  /// Bytes: a pass over less memory takes about as long as the arithmetic that would save it.
  int64_t leastSavedBytes;

  /// An item has room for a vector, and what lies beside each other is aligned.
  bool areConsistent() const {
    return 0 < vectorLanes && vectorLanes <= leastItemElements &&
           leastItemElements <= itemElements && itemElements <= reducedItemElements &&
           vectorLanes <= keptItemElements && vectorLanes <= reducedColumns &&
           vectorLanes <= combinedColumns && sharedRun >= 0 && mostPartials > 0 && chunkBytes > 0 &&
           mostChunks > 0 && manyKept > 0 && rangeMultiple > 0 && rangeMultiple % 32 == 0 &&
           products.dotColumns > 0 && products.sumColumns > 0 && products.mostChunks > 0;
  }
};

} // namespace dlc::rt
