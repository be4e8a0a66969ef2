// The frame of a program with arguments: what it answers, and with which exit status, when something is wrong.
#pragma once

#include <CLI/CLI.hpp>
#include <cortex/cortex.hpp>
#include <cstdio>
#include <exception>

namespace examples {

/// Parses the arguments of `app` and runs `run`, which gives the exit status. 1: Cortex fails; 2: wrong arguments or
/// input.
template <class Run>
int run_main(CLI::App& app, int argc, char** argv, const char* program, Run run) {
  const auto say = [&](const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "%s: %s\n", program, error.what());
  };
  try {
    app.parse(argc, argv);
    return run();
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const cortex::Error& error) {
    say(error);
    return 1;
  } catch (const std::exception& error) {
    say(error);
    return 2;
  }
}

}  // namespace examples
