// The latencies of a model over batches of trees, beside those of plain recursion.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "measure.hpp"
#include "ptb.hpp"

namespace examples {

using Batch = std::vector<const Phrase*>;

/// What one batch size gave: medians over calls, in microseconds, and means over batches.
struct Column {
  std::size_t trees = 0;
  double nodes = 0, linearize = 0, execute = 0, call = 0, recursion = 0;
};

/// Calls of `model` on batches of `size` trees, and of plain recursion, `recursion(tree)`, on the same trees in turn.
template <class Model, class Recursion>
Column measure(const Model& model, Recursion& recursion, const Batch& trees, std::size_t size, int runs) {
  // As many batches as it takes to meet each tree; no tree stands twice in a batch.
  std::vector<Batch> batches;
  Column column;
  column.trees = size = std::min(size, trees.size());
  for (std::size_t at = 0; at < trees.size(); at += size) {
    Batch batch;
    for (std::size_t i = 0; i < size; ++i) batch.push_back(trees[(at + i) % trees.size()]);
    batches.push_back(std::move(batch));
  }
  for (const Batch& batch : batches)
    for (const Phrase* tree : batch) column.nodes += double(size_of(tree).nodes) / double(batches.size());

  Samples linearize, execute, call, plain;
  float sink = 0;
  constexpr std::size_t turn = 10;  // calls of one kind in a row, so that each finds its own weights in the cache
  for (std::size_t done = 0; done < std::size_t(runs); done += turn) {
    const std::size_t end = std::min(done + turn, std::size_t(runs));
    for (std::size_t i = done; i < end; ++i) {
      const Batch& batch = batches[i % batches.size()];
      call.add(microseconds([&] {
        const auto result = model(batch);
        linearize.add(double(result.linearize_ns()) / 1e3);
        execute.add(double(result.execute_ns()) / 1e3);
        sink += result[0][0];
      }));
    }
    for (std::size_t i = done; i < end; ++i)
      plain.add(microseconds([&] {
        for (const Phrase* tree : batches[i % batches.size()]) sink += recursion(tree)[0];
      }));
  }
  if (sink == 1234567.0F) std::puts("");  // the results are used
  column.linearize = linearize.median(), column.execute = execute.median(), column.call = call.median(),
  column.recursion = plain.median();
  return column;
}

inline void print_table(const std::vector<Column>& columns, int runs) {
  const auto row = [&](const char* name, auto value, const char* format) {
    std::printf("  %-42s", name);
    for (const Column& column : columns) std::printf(format, value(column));
    std::printf("\n");
  };
  std::printf("\n  %-42s", ("median of " + std::to_string(runs) + " calls").c_str());
  for (const Column& column : columns) std::printf("%14s", ("batch of " + std::to_string(column.trees)).c_str());
  std::printf("\n");
  row(
      "nodes in a batch, mean", [](const Column& c) { return c.nodes; }, "%14.1f");
  row(
      "linearization, us", [](const Column& c) { return c.linearize; }, "%14.2f");
  row(
      "execution, us", [](const Column& c) { return c.execute; }, "%14.1f");
  row(
      "whole call, us", [](const Column& c) { return c.call; }, "%14.1f");
  row(
      "nodes per second", [](const Column& c) { return c.nodes / c.call * 1e6; }, "%14.0f");
  row(
      "trees per second", [](const Column& c) { return double(c.trees) / c.call * 1e6; }, "%14.0f");
  row(
      "plain recursive C++, one thread, us", [](const Column& c) { return c.recursion; }, "%14.1f");
  row(
      "plain recursion's time / whole call's time", [](const Column& c) { return c.recursion / c.call; }, "%13.2fx");
  std::printf("\n");
}

}  // namespace examples
