// How rows that lie here and there on a device come to the host.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include "cortex/base/vector.hpp"
#include "cortex/jit/cuda_driver.hpp"

namespace cortex::runtime {

/// How rows come to the host: rows near each other in one transfer, with what lies between them, since to begin
/// another takes longer.
struct CudaTransfers {
  struct Piece {
    jit::CudaPointer from, to;
  };
  Vector<Piece> pieces;
  Vector<std::size_t> at;  // [rows] in what the pieces bring, one after the other

  CudaTransfers(std::span<const jit::CudaPointer> rows, std::size_t bytes) : at(rows.size()) {
    constexpr std::size_t worth = 32 << 10;  // bytes that are sent in the time that a transfer takes to begin
    Vector<std::size_t> order(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return rows[a] < rows[b]; });
    std::size_t total = 0;
    for (const std::size_t i : order) {
      if (pieces.empty() || rows[i] > pieces.back().to + worth) pieces.push_back({rows[i], rows[i]});
      Piece& last = pieces.back();
      total += std::size_t(rows[i] + bytes - last.to);
      last.to = rows[i] + bytes;
      at[i] = total - bytes;
    }
  }

  /// So many that a kernel brings the rows sooner: each takes about as long to begin as a launch.
  bool are_many() const { return pieces.size() > 2; }
};

}  // namespace cortex::runtime
