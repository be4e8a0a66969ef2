// What a search is of, and its candidates: compiled, several at the same time where that can be, and taken one by one.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "cortex/base/error.hpp"
#include "cortex/base/function_ref.hpp"
#include "cortex/base/target.hpp"
#include "cortex/base/vector.hpp"
#include "cortex/ra/graph.hpp"
#include "cortex/ra/schedule_text.hpp"
#include "cortex/runtime/workers.hpp"
#include "cortex/tune/call_results.hpp"
#include "cortex/tune/log.hpp"

namespace cortex::tuning {

/// A compiled candidate with the user's weights and inputs.
class Trial {
 public:
  virtual ~Trial() = default;
  /// What it would run, as far as others may run the same; empty: not known before it is loaded.
  virtual std::string code() const { return {}; }
  /// What takes long before the first call, and may be done for several candidates at the same time.
  virtual void load() {}
  virtual void call(std::size_t batch) = 0;
  /// A call, and a look at its results before they are given back.
  virtual void inspect(std::size_t batch, FunctionRef<void(const CallResults&)> look) = 0;
  /// A call that only numbers its nodes, and a look at its workspace. It need not be loaded.
  virtual void number(std::size_t batch, FunctionRef<void(const runtime::Workspace&)> look) = 0;
};

/// What a search is of.
struct Subject {
  const ra::Graph& graph;
  Target target;
  int workers;  // that may share a call
  std::size_t num_batches;
  /// A candidate; `Error` if the compiler refuses it. One for the interpreter only numbers nodes.
  std::function<std::unique_ptr<Trial>(const Schedule&, const Target&)> make;
  Placement placement = Placement::anywhere;   // of the workers' threads
  std::string machine = machine_name(target);  // what it is measured on
  std::size_t loads_at_once = 1;
};

/// Candidates that are loaded and not yet taken.
class Loader {
 public:
  explicit Loader(const Subject& subject) : subject_(subject) {}

  bool has(const Schedule& schedule) const { return loaded_.count(to_string(schedule)) > 0; }
  /// Makes and loads those that are not loaded yet. Of several schedules of which the compiler makes the same the first
  /// is loaded, and the others are refused.
  void load(const Vector<Schedule>& schedules) {
    Vector<Loaded*> fresh;
    for (const Schedule& schedule : schedules) {
      const auto [found, is_new] = loaded_.try_emplace(to_string(schedule));
      Loaded& one = found->second;
      if (!is_new) continue;
      one.note(attempt([&] { make(one, found->first, schedule); }));
      if (!one.refused) fresh.push_back(&one);
    }
    runtime::on_all_cores(int(fresh.size()), [&](int i) {
      Loaded& one = *fresh[std::size_t(i)];
      one.note(attempt([&] { one.trial->load(); }));
    });
  }
  /// One of these. Throws the `Error` for which it was refused.
  std::unique_ptr<Trial> take(const Schedule& schedule) {
    const auto found = loaded_.find(to_string(schedule));
    Loaded one = std::move(found->second);
    loaded_.erase(found);
    if (one.refused) throw *one.refused;
    return std::move(one.trial);
  }

 private:
  struct Loaded {
    std::unique_ptr<Trial> trial;
    std::optional<Error> refused;

    void note(const cortex::Result<Done>& done) {
      if (!done) refused = done.error();
    }
  };

  void make(Loaded& one, const std::string& text, const Schedule& schedule) {
    one.trial = subject_.make(schedule, subject_.target);
    const std::string code = one.trial->code();
    if (code.empty()) return;
    const std::string& first = codes_.try_emplace(code, text).first->second;
    if (first == text) return;
    one.trial.reset();
    throw Error(Code::invalid_schedule, "the compiler makes the same of it as of:\n" + first);
  }

  const Subject& subject_;
  std::map<std::string, Loaded> loaded_;      // by the schedule
  std::map<std::string, std::string> codes_;  // the schedule that had them first
};

}  // namespace cortex::tuning
