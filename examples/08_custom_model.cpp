// Lesson 8: a model of your own: what a database's query plan will cost. After QPPNet (Marcus and Papaemmanouil 2019):
// each kind of plan operator has a small network of its own, and the networks are put together as the plan is.
#include <array>
#include <cmath>
#include <cortex/cortex.hpp>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

// A planner's nodes. There are more kinds than the model has seen enough of.
enum class Operator : std::uint8_t { scan, filter, join, sort, aggregate, materialize };
struct Plan {
  Operator op;
  std::array<float, 4> estimates;  // the planner's: rows, row width, selectivity, pages; logarithms
  std::unique_ptr<Plan> outer, inner;
};
constexpr auto op = cortex::field<&Plan::op>;
constexpr auto estimates = cortex::field<&Plan::estimates>;
constexpr auto outer = cortex::optional_child<&Plan::outer>;
constexpr auto inner = cortex::optional_child<&Plan::inner>;

constexpr int hidden = 48, given = 4, kinds = 6;
using Weights = std::map<std::string, std::vector<float>>;
std::vector<double> by_hand(const Plan& n, const Weights& weights);  // below, by plain recursion

// What a network says of a plan: a vector for the operator above it, and the logarithm of a time.
auto cost_model() {
  const cortex::Dim X{"estimates", given}, H{"hidden", hidden}, K{"operators", kinds};
  cortex::Model<Plan> m("query_cost", cortex::tree.with_max_children(2));
  auto x = m.field("x", estimates, X);
  auto h = m.placeholder<float>("h", H);

  // Equations are C++: what operators share is a function. A network has weights of its own, named after it, and reads
  // the estimates, and what `below` makes of the operators below.
  const auto network = [&](const std::string& name, const auto& below) {
    auto W = m.input<float>("W_" + name, H, X);
    return m.compute(
        name, H, [&](auto n, auto i) { return relu(sum(X, [&](auto j) { return W(i, j) * x(n, j); }) + below(n, i)); });
  };
  const auto times = [&](const auto& U, auto child, auto i) {
    return sum(H, [&](auto j) { return U(i, j) * h(child, j); });
  };

  // Each kind has equations that fit it: a scan has nothing below, a filter one operator, and a join two whose order
  // matters, since one is read once for each row of the other.
  auto b_scan = m.input<float>("b_scan", H);
  auto scan = network("scan", [&](auto, auto i) { return b_scan(i); });
  auto U_filter = m.input<float>("U_filter", H, H);
  auto filter = network("filter", [&](auto n, auto i) { return times(U_filter, outer(n), i); });
  auto U_outer = m.input<float>("U_outer", H, H), U_inner = m.input<float>("U_inner", H, H);
  auto join =
      network("join", [&](auto n, auto i) { return times(U_outer, outer(n), i) + times(U_inner, inner(n), i); });
  // All others share one network. Where kinds differ in numbers and not in equations, no branch is needed: an integer
  // of the node is an index like any other, here of a row of biases.
  auto U_other = m.input<float>("U_other", H, H), b_other = m.input<float>("b_other", K, H);
  auto other = network("other", [&](auto n, auto i) { return times(U_other, outer(n), i) + b_other(op(n), i); });

  // The switch, on an enumeration. Without `otherwise`, a call with a node of another kind would be refused.
  using cortex::when;
  auto body = m.switch_(
      "body", [](auto n) { return op(n); }, when(Operator::scan, scan), when(Operator::filter, filter),
      when(Operator::join, join), cortex::otherwise(other));
  auto all = m.recursion(h, body);

  // The predicted time of each operator with all that is below it: a number at each node, so no dimension.
  auto w = m.input<float>("w", H);
  auto seconds =
      m.output<float>("seconds", [&](auto n) { return exp(sum(H, [&](auto i) { return w(i) * all(n, i); }) - 3); });
  return m.program(seconds, all);
}

std::unique_ptr<Plan> plan(Operator op, std::array<float, 4> estimates, std::unique_ptr<Plan> outer = nullptr,
                           std::unique_ptr<Plan> inner = nullptr) {
  return std::make_unique<Plan>(Plan{op, estimates, std::move(outer), std::move(inner)});
}

// The larger of two differences. NaN, which std::fmax would pass over, stays.
double larger(double a, double b) { return a >= b || std::isnan(a) ? a : b; }

int main() try {
  // A version of the program for each case of the switch: all filters of a level run together, then all joins, ... The
  // standard schedule would also part leaves from the rest, of which there is no need here: leaves are scans.
  auto model = cortex::compile(cost_model(), cortex::Schedule{}.dynamic_batch().specialize_if_else("body"));

  // Weights by formula; a trained model's are read from a file, see lesson 9.
  Weights weights;
  const auto fill = [&](const std::string& name, int count, float scale) {
    for (int i = 0; i < count; ++i) weights[name].push_back(scale * (0.3F + std::sin(float(i * i % 1009))));
    model.bind(name, weights[name]);
  };
  for (const std::string name : {"scan", "filter", "join", "other"}) fill("W_" + name, hidden * given, 0.1F);
  for (const char* name : {"U_filter", "U_outer", "U_inner", "U_other"}) fill(name, hidden * hidden, 0.06F);
  fill("b_scan", hidden, 0.2F), fill("b_other", kinds * hidden, 0.2F), fill("w", hidden, 0.1F);

  // Two plans of one query: a planner asks about many at once, and takes the cheapest.
  using enum Operator;
  const auto orders = [] { return plan(scan, {13.1F, 4.2F, 0.0F, 9.8F}); };
  const auto customers = [] { return plan(scan, {10.3F, 4.9F, 0.0F, 7.0F}); };
  std::vector<std::unique_ptr<Plan>> plans;
  plans.push_back(plan(aggregate, {2.3F, 2.0F, 0, 0},
                       plan(filter, {9.2F, 4.4F, -1.2F, 0}, plan(join, {13, 5, -1, 0}, orders(), customers()))));
  plans.push_back(plan(aggregate, {2.3F, 2.0F, 0, 0},
                       plan(join, {9.2F, 5, -1, 0}, plan(sort, {13.1F, 4.2F, 0, 0}, orders()),
                            plan(materialize, {9, 4.9F, 0, 0}, plan(filter, {9, 4.9F, -1.2F, 0}, customers())))));

  const auto result = model(plans);
  double difference = 0;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    const std::vector<double> h = by_hand(*plans[p], weights);
    double log = -3;
    for (int i = 0; i < hidden; ++i) log += weights["w"][i] * h[i];
    std::printf("plan %zu: %.3f s, and without its topmost operator %.3f s\n", p, result[p][0],
                result.node(plans[p]->outer.get())[0]);
    difference = larger(difference, std::abs(result[p][0] / std::exp(log) - 1));
    for (int i = 0; i < hidden; ++i) difference = larger(difference, std::abs(result.root(p, "h")[i] - h[i]));
  }
  std::printf("largest difference from plain recursion: %.1e\n", difference);
  return difference < 1e-5 ? 0 : 1;
} catch (const cortex::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}

std::vector<double> by_hand(const Plan& n, const Weights& weights) {
  std::vector<double> h(hidden);
  const auto add = [&](std::vector<double>& to, const std::string& name, const auto& x) {
    for (int i = 0; i < hidden; ++i)
      for (std::size_t j = 0; j < x.size(); ++j) to[i] += double(weights.at(name)[i * x.size() + j]) * x[j];
  };
  const auto add_bias = [&](const char* name, int row) {
    for (int i = 0; i < hidden; ++i) h[i] += weights.at(name)[row * hidden + i];
  };
  const char* const name = n.op == Operator::scan     ? "scan"
                           : n.op == Operator::filter ? "filter"
                           : n.op == Operator::join   ? "join"
                                                      : "other";
  add(h, std::string("W_") + name, n.estimates);
  if (n.op == Operator::scan) add_bias("b_scan", 0);
  if (n.op == Operator::filter) add(h, "U_filter", by_hand(*n.outer, weights));
  if (n.op == Operator::join)
    add(h, "U_outer", by_hand(*n.outer, weights)), add(h, "U_inner", by_hand(*n.inner, weights));
  if (n.op > Operator::join) add(h, "U_other", by_hand(*n.outer, weights)), add_bias("b_other", int(n.op));
  for (double& x : h) x = std::fmax(x, 0);
  return h;
}
