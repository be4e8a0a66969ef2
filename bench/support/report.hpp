// What the programs say: tables for people, rows of JSON for programs.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#include "contest.hpp"
#include "json.hpp"
#include "systems.hpp"

namespace bench {

/// Where people read. Programs read files; if that is the standard output, people read the other one.
inline std::FILE*& talk() {
  static std::FILE* file = stdout;
  return file;
}

/// What a program's `main` gives: parses the command line and calls `run`, whose status that is. Says what is wrong,
/// with 2 for status.
template <class Run>
int run_program(CLI::App& app, const char* name, int argc, char** argv, Run run) {
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fflush(talk());
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 2;
  }
}

/// What all programs are asked that measure some of the models.
inline void add_models(CLI::App& app, std::vector<std::string>& models) {
  const std::vector<std::string> all(model_names.begin(), model_names.end());
  app.add_option("--models", models, "Models: " + CLI::detail::join(all, ", "))
      ->delimiter(',')
      ->check(CLI::IsMember(all))
      ->capture_default_str();
}

/// The systems of these names, all if there are none; says of those that this build lacks why.
inline std::vector<SystemKind> chosen_systems(const std::vector<std::string>& wanted_names) {
  std::vector<SystemKind> chosen;
  std::vector<std::string> names;
  for (const SystemKind& kind : all_systems()) {
    names.push_back(kind.name);
    const bool wanted =
        wanted_names.empty() || std::find(wanted_names.begin(), wanted_names.end(), kind.name) != wanted_names.end();
    if (wanted && !kind.absent.empty())
      std::fprintf(talk(), "%s is left out: %s\n", kind.name.c_str(), kind.absent.c_str());
    else if (wanted)
      chosen.push_back(kind);
  }
  for (const std::string& name : wanted_names)
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw CLI::ValidationError("--systems",
                                 "there is no system '" + name + "'; there are " + CLI::detail::join(names, ", "));
  if (chosen.empty()) throw CLI::ValidationError("--systems", "none of these is in this build");
  return chosen;
}

inline void print_machine(const Machine& machine) {
  for (std::size_t t = 0; t < machine.threads.size(); ++t) {
    std::fprintf(talk(), "%d thread%s: %.0f GFLOP/s (%.0f in tiles of a product); reads of slices a thread, GB/s:",
                 machine.threads[t], machine.threads[t] == 1 ? "" : "s", machine.gflops[t], machine.tile_gflops[t]);
    for (std::size_t s = 0; s < machine.slices.size(); ++s)
      std::fprintf(talk(), " %.0f (%zu KB)", machine.gigabytes[t][s], machine.slices[s] / 1024);
    std::fprintf(talk(), "\n");
  }
  std::fprintf(talk(), "a barrier of two threads: %.2f us\n", machine.barrier_us);
  if (machine.register_ghz > 0)
    std::fprintf(talk(), "the clock: %.2f GHz while a thread multiplies on registers, %.2f GHz in tiles\n",
                 machine.register_ghz, machine.tile_ghz);
}

inline void print_rows(const std::vector<Row>& rows, const std::vector<Contestant>& contestants,
                       const Machine& machine) {
  const Row& first = rows[0];
  const double floor = first.floor_us(machine);
  std::fprintf(talk(), "\n%s, hidden %zu, batch %zu (%.1f nodes), %d thread%s; floor %.1f us\n", first.model.c_str(),
               first.hidden, first.batch, first.nodes, first.threads, first.threads == 1 ? "" : "s", floor);
  std::fprintf(talk(), "  %-16s %7s %12s %12s %8s %12s %12s %12s\n", "system", "threads", "median us", "min us", "runs",
               "/ floor", "/ first", "max abs err");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    std::fprintf(talk(), "  %-16s %7d %12.1f %12.1f %8ld %12.2f %12.2f %12.1e%s%s%s\n", row.system.c_str(),
                 contestants[i].threads, row.median_us, row.min_us, row.runs, row.median_us / floor,
                 row.median_us / first.median_us, row.max_abs_err, row.right ? "" : "  WRONG",
                 row.shortcuts.empty() ? "" : "  with ", row.shortcuts.c_str());
  }
  std::fflush(talk());
}

/// `more` comes behind.
inline Json json_of(const Row& row, const Machine& machine, const Json::Fields& more = {}) {
  Json::Fields fields{{"model", row.model},
                      {"hidden", row.hidden},
                      {"batch", row.batch},
                      {"threads", row.threads},
                      {"system", row.system},
                      {"median_us", row.median_us},
                      {"min_us", row.min_us},
                      {"runs", row.runs},
                      {"max_abs_err", row.max_abs_err},
                      {"floor_us", row.floor_us(machine)},
                      {"tile_floor_us", row.tile_floor_us(machine)},
                      {"linearize_us", row.linearize_us},
                      {"nodes", row.nodes},
                      {"shortcuts", row.shortcuts}};
  fields.insert(fields.end(), more.begin(), more.end());
  return Json::object(fields);
}

/// Where and when, by what libraries; `more` comes behind.
inline Json origin(const Json::Fields& more) {
  char date[32] = "";
  const std::time_t now = std::time(nullptr);
  std::strftime(date, sizeof date, "%Y-%m-%d", std::gmtime(&now));
  Json::Fields fields{{"date", date},
                      {"machine", cpu_name()},
                      {"cpus", int(std::thread::hardware_concurrency())},
                      {"compiler", "g++ " __VERSION__},
                      {"libraries", Json::list(descriptions())}};
  fields.insert(fields.end(), more.begin(), more.end());
  return Json::object(fields);
}

/// The same, and what the machine reaches: for the figures and the table.
inline Json about(const std::string& data, const Machine& machine, bool busy) {
  std::vector<Json> bandwidths;
  for (const auto& row : machine.gigabytes) bandwidths.push_back(Json::list(row));
  return origin({{"data", data},
                 {"busy", int(busy)},
                 {"threads", Json::list(machine.threads)},
                 {"gflops", Json::list(machine.gflops)},
                 {"tile_gflops", Json::list(machine.tile_gflops)},
                 {"slices", Json::list(machine.slices)},
                 {"gigabytes", Json::lines(bandwidths)},
                 {"barrier_us", machine.barrier_us},
                 {"register_ghz", machine.register_ghz},
                 {"tile_ghz", machine.tile_ghz}});
}

}  // namespace bench
